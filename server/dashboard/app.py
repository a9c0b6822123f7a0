"""The dashboard's HTTP paths: its files, a JSON answer for each page, login and logout, and changes.

The event loop runs nothing that waits: queries and password checks run on a few threads, so that many browsers use no
more of the server than those threads.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import anyio
from anyio import to_thread
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import FileResponse, Response
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles
from starlette.types import ASGIApp

from sparkwave.catalog import errors
from sparkwave.catalog.errors import Error
from sparkwave.catalog.lake.translation import DuckDBError
from sparkwave.catalog.names import DEFAULT_DATABASE
from sparkwave.server.context import Context
from sparkwave.server.dashboard.actions import ACTIONS
from sparkwave.server.dashboard.contents import PAGES
from sparkwave.server.dashboard.guard import Headed, Refused, check_change, check_site, check_token, is_local
from sparkwave.server.dashboard.logins import Login, Logins, TooManyGuesses
from sparkwave.server.dashboard.pages import Pages, Reader
from sparkwave.server.wire.authentication import is_this_machine
from sparkwave.server.wire.conversation import as_error

logger = logging.getLogger(__name__)

FILES = Path(__file__).parent / "static"
THREADS = 3
LARGEST_BODY = 1 << 16  # a statement to be quoted

_STATUS = {
    errors.INSUFFICIENT_PRIVILEGE: 403,
    errors.INVALID_AUTHORIZATION: 401,
    errors.INVALID_PASSWORD: 401,
    **dict.fromkeys(errors.MISSING, 404),
    errors.QUERY_CANCELED: 503,
    errors.INTERNAL_ERROR: 500,
}


def make_app(context: Context, port: int, is_encrypted: bool) -> ASGIApp:
    """Return the dashboard's application for a server; `port` names its cookie."""
    site = _Site(context, port, is_encrypted)
    app = Starlette(
        routes=[
            Route("/", lambda request: FileResponse(FILES / "index.html")),
            Mount("/static", StaticFiles(directory=FILES)),
            Route("/api/session", site.session),
            Route("/api/login", site.log_in, methods=["POST"]),
            Route("/api/logout", site.log_out, methods=["POST"]),
            Route("/api/pages/{name}", site.page),
            Route("/api/actions/{name}", site.act, methods=["POST"]),
        ],
        exception_handlers={Refused: _refused, TooManyGuesses: _too_many, Error: _failed, DuckDBError: _failed},
    )
    return Headed(app)


class _Site:
    def __init__(self, context: Context, port: int, is_encrypted: bool) -> None:
        self._context = context
        self._is_encrypted = is_encrypted
        self._cookie = f"sparkwave_{port}"  # browsers send a cookie to all ports of a machine
        self._pages = Pages(context, PAGES)
        self._logins = Logins(lambda: context.store.catalog.users)
        self._threads = anyio.CapacityLimiter(THREADS)

    async def session(self, request: Request) -> Response:
        """The browser's user. Without passwords, a browser on this machine is logged in as root."""
        check_site(request)
        login, key = self._find(request), None
        if login is None and self._logins.is_open and is_local(request):
            key = self._logins.enter_open()
            login = self._logins.find(key, True)
        return self._who(login, key)

    async def log_in(self, request: Request) -> Response:
        check_change(request)
        body = await _body(request)
        name, password = str(body.get("user", "")), str(body.get("password", ""))
        address = request.client.host if request.client else ""
        if not self._is_encrypted and not is_this_machine(address):
            raise Error(
                "no password is taken from another machine over a connection without TLS",
                errors.INVALID_AUTHORIZATION,
                hint="Give the server a certificate (--tls-certificate), or come by way of an SSH tunnel.",
            )
        key = await self._in_thread(partial(self._logins.enter, name, password, address, is_local(request)))
        self._logins.leave(request.cookies.get(self._cookie))
        return self._who(self._logins.find(key, is_local(request)), key)

    async def log_out(self, request: Request) -> Response:
        check_change(request)
        check_token(request, self._known(request))
        self._logins.leave(request.cookies.get(self._cookie))
        answer = _json({"user": None})
        answer.delete_cookie(self._cookie, httponly=True, samesite="strict")
        return answer

    async def page(self, request: Request) -> Response:
        check_site(request)
        reader = self._reader(request, self._known(request))
        id_ = request.query_params.get("id")
        if id_ is not None and not (id_.isdecimal() and len(id_) < 19):
            raise Error("the id of a relation is a number", errors.INVALID_PARAMETER_VALUE)
        name = request.path_params["name"]
        return _json(await self._in_thread(lambda: self._pages.show(reader, name, None if id_ is None else int(id_))))

    async def act(self, request: Request) -> Response:
        check_change(request)
        login = self._known(request)
        check_token(request, login)
        action = ACTIONS.get(request.path_params["name"])
        if action is None:
            raise Refused(404, "there is no such action")
        body, reader = await _body(request), self._reader(request, login)
        done = await self._in_thread(lambda: action(self._context, reader, body))
        self._pages.forget()
        return _json(done)

    def _find(self, request: Request) -> Login | None:
        return self._logins.find(request.cookies.get(self._cookie), is_local(request))

    def _known(self, request: Request) -> Login:
        login = self._find(request)
        if login is None:
            raise Refused(401, "log in first")
        return login

    def _reader(self, request: Request, login: Login) -> Reader:
        return Reader(login.name, request.query_params.get("database", DEFAULT_DATABASE))

    def _who(self, login: Login | None, key: str | None) -> Response:
        if login is None:
            return _json({"user": None, "has_passwords": not self._logins.is_open})
        catalog = self._context.store.catalog
        user = catalog.users[login.name]
        answer = _json(
            {
                "user": login.name,
                "is_super": user.is_super,
                "token": login.token,
                "has_passwords": not self._logins.is_open,
                "databases": sorted(catalog.databases),
            }
        )
        if key is not None:
            answer.set_cookie(self._cookie, key, httponly=True, samesite="strict", secure=self._is_encrypted)
        return answer

    async def _in_thread(self, work: Callable[[], Any]) -> Any:
        return await to_thread.run_sync(work, limiter=self._threads)


async def _body(request: Request) -> dict[str, Any]:
    """The JSON object in a request's body. Raises Refused."""
    content = b""
    async for part in request.stream():
        content += part
        if len(content) > LARGEST_BODY:
            raise Refused(413, "the request is too large")
    try:
        found = json.loads(content)
    except (ValueError, RecursionError) as error:
        raise Refused(400, "the request is no JSON") from error
    if not isinstance(found, dict):
        raise Refused(400, "the request is no JSON object")
    return found


def _json(content: dict[str, Any], status: int = 200) -> Response:
    return Response(json.dumps(content, default=_as_text), status, media_type="application/json")


def _as_text(value: Any) -> str:
    return value.isoformat() if hasattr(value, "isoformat") else str(value)


async def _refused(request: Request, refused: Exception) -> Response:
    assert isinstance(refused, Refused)
    return _json({"error": refused.message}, refused.status)


async def _too_many(request: Request, error: Exception) -> Response:
    assert isinstance(error, TooManyGuesses)
    answer = _json({"error": str(error)}, 429)
    answer.headers["retry-after"] = f"{error.seconds:.0f}"
    return answer


async def _failed(request: Request, raw: Exception) -> Response:
    error = as_error(raw)
    content = {"error": error.message, "detail": error.detail, "hint": error.hint, "sqlstate": error.sqlstate}
    return _json(content, _STATUS.get(error.sqlstate, 400))
