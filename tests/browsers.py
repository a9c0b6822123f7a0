"""A browser without a page: HTTP to a dashboard, its cookies kept, its headers as given."""

from __future__ import annotations

import http.client
import json
import re
import ssl
from dataclasses import dataclass, field
from http.cookies import SimpleCookie
from typing import Any
from urllib.parse import urlsplit

from servers import Server

TOKEN = "X-Sparkwave-Token"


def dashboard_url(server: Server, host: str = "127.0.0.1") -> str:
    """Where a server that has just started has its dashboard, by an address of this machine."""
    return re.findall(r"dashboard on (\S+)", server.log())[-1].replace("0.0.0.0", host)


@dataclass
class Answer:
    """What came back; `json` if that is JSON."""

    status: int
    headers: http.client.HTTPMessage
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)


@dataclass
class Browser:
    """Asks one dashboard. A header of None is not sent."""

    url: str
    tls: ssl.SSLContext | None = None
    source: str = "127.0.0.1"  # the address that it comes from, if it is on this machine
    cookies: dict[str, str] = field(default_factory=dict)
    token: str = ""

    def ask(self, method: str, path: str, body: object = None, **headers: str | None) -> Answer:
        place = urlsplit(self.url)
        assert place.hostname is not None
        source = (self.source, 0) if place.hostname.startswith("127.") else None
        connection: http.client.HTTPConnection
        if self.tls is not None:
            connection = http.client.HTTPSConnection(
                place.hostname, place.port, timeout=30, source_address=source, context=self.tls
            )
        else:
            connection = http.client.HTTPConnection(place.hostname, place.port, timeout=30, source_address=source)
        given = {name.replace("_", "-"): value for name, value in headers.items() if value is not None}
        if self.cookies:
            given["Cookie"] = "; ".join(f"{name}={value}" for name, value in self.cookies.items())
        try:
            content = body if isinstance(body, bytes | None) else json.dumps(body).encode()
            connection.request(method, path, content, given)
            answer = connection.getresponse()
            found = Answer(answer.status, answer.headers, answer.read())
        finally:
            connection.close()
        for line in found.headers.get_all("Set-Cookie") or ():
            for name, morsel in SimpleCookie(line).items():
                self.cookies[name] = morsel.value
        return found

    def get(self, path: str, **headers: str | None) -> Answer:
        return self.ask("GET", path, **headers)

    def post(self, path: str, body: object, **headers: str | None) -> Answer:
        """As the dashboard's own page asks, unless headers say otherwise."""
        own = {
            "Content_Type": "application/json",
            "Origin": self.url,
            "Sec_Fetch_Site": "same-origin",
            TOKEN.replace("-", "_"): self.token,
        }
        return self.ask("POST", path, body, **{**own, **headers})

    def open(self) -> Any:
        """The session, whose token is taken up."""
        session = self.get("/api/session").json
        self.token = session.get("token", "")
        return session

    def log_in(self, user: str, password: str, **headers: str | None) -> Answer:
        answer = self.post("/api/login", {"user": user, "password": password}, **headers)
        if answer.status == 200:
            self.token = answer.json.get("token", "")
        return answer

    def page(self, name: str, id_: int | None = None) -> Any:
        answer = self.get(f"/api/pages/{name}" + (f"?id={id_}" if id_ is not None else ""))
        assert answer.status == 200, answer.body
        return answer.json
