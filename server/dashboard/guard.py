"""What every request has to pass, and what every answer says to the browser.

Against pages of other sites a browser is open in as well: `Host` has to be an address, not a name that somebody
points at this machine (DNS rebinding), unless a password stands in between; requests have to come from the dashboard's
own page (`Sec-Fetch-Site`, `Origin`); changes bring along a token that only that page can read.
"""

from __future__ import annotations

import ipaddress
import secrets

from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from sparkwave.server.dashboard.logins import Login
from sparkwave.server.wire.authentication import is_this_machine

TOKEN_HEADER = "x-sparkwave-token"

_ALWAYS = {
    "content-security-policy": "default-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'; "
    "object-src 'none'",
    "x-frame-options": "DENY",
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
}
# Of what a proxy adds, on behalf of a client that may be anywhere.
_FORWARDED = ("forwarded", "x-forwarded-for", "x-forwarded-host", "x-real-ip", "via")


class Headed:
    """An application whose answers have the headers that keep browsers from being used against it."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def send_headed(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                headers.update(_ALWAYS)
                headers.setdefault("cache-control", "no-store" if scope["path"].startswith("/api/") else "no-cache")
            await send(message)

        await self._app(scope, receive, send_headed if scope["type"] == "http" else send)


class Refused(Exception):
    """A request that is not answered, with the status that says so."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status, self.message = status, message


def is_local(request: Request) -> bool:
    """Whether the client is on this machine, and no name or proxy stands between it and us."""
    if request.client is None or any(name in request.headers for name in _FORWARDED):
        return False
    return is_this_machine(request.client.host) and _is_address(request.headers)


def _is_address(headers: Headers) -> bool:
    """Whether a request names the server by an address, or as localhost, which no name server can redirect."""
    hosts = headers.getlist("host")
    if len(hosts) != 1:
        return False
    host = hosts[0].rpartition(":")[0] if not hosts[0].endswith("]") and ":" in hosts[0] else hosts[0]
    if host.lower() == "localhost":
        return True
    try:
        ipaddress.ip_address(host.removeprefix("[").removesuffix("]"))
    except ValueError:
        return False
    return True


def check_site(request: Request) -> None:
    """Raise Refused for what another site's page asks for."""
    site = request.headers.get("sec-fetch-site", "same-origin")
    own = f"{request.url.scheme}://{request.headers.get('host', '')}"
    if site not in ("same-origin", "none") or request.headers.get("origin", own) != own:
        raise Refused(403, "this is for the dashboard's own page only")


def check_change(request: Request) -> None:
    """Raise Refused unless the dashboard's own page asks for a change: what forms of others send is no JSON."""
    check_site(request)
    if request.headers.get("content-type", "").partition(";")[0].strip().lower() != "application/json":
        raise Refused(415, "a change is JSON")


def check_token(request: Request, login: Login) -> None:
    """Raise Refused unless the request has the token of the login."""
    if not secrets.compare_digest(request.headers.get(TOKEN_HEADER, "").encode(), login.token.encode()):
        raise Refused(403, "the token of the session is missing or wrong")
