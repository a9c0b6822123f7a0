"""Protects the dashboard from pages of other sites in the same browser, by checks and security headers.

Unless a password is needed, `Host` has to be an address: a name could point to this machine by DNS rebinding. Requests
have to come from the dashboard's own page (`Sec-Fetch-Site`, `Origin`). A change has to carry a token that only that
page can read.
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
# Headers that a proxy adds, behind which a client may be on any machine.
_FORWARDED = ("forwarded", "x-forwarded-for", "x-forwarded-host", "x-real-ip", "via")


class Headed:
    """Wraps an application and adds the security headers to its answers."""

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
    """A request that is refused with an HTTP status."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status, self.message = status, message


def is_local(request: Request) -> bool:
    """Return whether the client runs on this machine, and addressed the server without a name or a proxy."""
    if request.client is None or any(name in request.headers for name in _FORWARDED):
        return False
    return is_this_machine(request.client.host) and _is_address(request.headers)


def _is_address(headers: Headers) -> bool:
    """Return whether a request names the server by an address or as localhost, which no name server can redirect."""
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
    """Raise Refused for a request from another site's page."""
    site = request.headers.get("sec-fetch-site", "same-origin")
    own = f"{request.url.scheme}://{request.headers.get('host', '')}"
    if site not in ("same-origin", "none") or request.headers.get("origin", own) != own:
        raise Refused(403, "this is for the dashboard's own page only")


def check_change(request: Request) -> None:
    """Raise Refused unless the dashboard's own page asks for a change: forms of other sites cannot send JSON."""
    check_site(request)
    if request.headers.get("content-type", "").partition(";")[0].strip().lower() != "application/json":
        raise Refused(415, "a change is JSON")


def check_token(request: Request, login: Login) -> None:
    """Raise Refused unless the request has the login's token."""
    if not secrets.compare_digest(request.headers.get(TOKEN_HEADER, "").encode(), login.token.encode()):
        raise Refused(403, "the token of the session is missing or wrong")
