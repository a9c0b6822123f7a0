"""A client of the protocol by hand: messages as bytes, and what comes back."""

from __future__ import annotations

import socket
import struct

PROTOCOL_3, SSL, GSSENC, CANCEL = 196608, 80877103, 80877104, 80877102


def message(code: bytes, body: bytes = b"") -> bytes:
    return code + struct.pack("!i", len(body) + 4) + body


def shorts(*values: int) -> bytes:
    return struct.pack(f"!h{len(values)}h", len(values), *values)


def query(sql: str) -> bytes:
    return message(b"Q", sql.encode() + b"\0")


def parse(sql: str, name: str = "", oids: tuple[int, ...] = ()) -> bytes:
    return message(b"P", f"{name}\0{sql}\0".encode() + struct.pack(f"!h{len(oids)}i", len(oids), *oids))


def bind(
    portal: str = "", name: str = "", values: tuple = (), formats: tuple[int, ...] = (), results: tuple[int, ...] = ()
) -> bytes:
    fields = [struct.pack("!i", -1) if v is None else struct.pack("!i", len(v)) + v for v in values]
    body = f"{portal}\0{name}\0".encode() + shorts(*formats) + struct.pack("!h", len(values)) + b"".join(fields)
    return message(b"B", body + shorts(*results))


def describe(kind: str, name: str = "") -> bytes:
    return message(b"D", f"{kind}{name}\0".encode())


def close(kind: str, name: str = "") -> bytes:
    return message(b"C", f"{kind}{name}\0".encode())


def execute(portal: str = "", limit: int = 0) -> bytes:
    return message(b"E", portal.encode() + b"\0" + struct.pack("!i", limit))


def startup(version: int = PROTOCOL_3, **parameters: str) -> bytes:
    pairs = "".join(f"{name}\0{value}\0" for name, value in parameters.items()).encode() + b"\0"
    return struct.pack("!ii", len(pairs) + 8, version) + pairs


SYNC, FLUSH, COPY_DONE = message(b"S"), message(b"H"), message(b"c")


class Raw:
    """A client that shows messages as `(code, body)`, errors as `("E", "SEVERITY SQLSTATE message")`."""

    def __init__(self, port: int, start: bool = True) -> None:
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=5)
        self.file = self.socket.makefile("rb")
        self.key = b""
        if start:
            self.send(startup(user="root", database="dev"))
            self.key = next(body for code, body in self.until("Z") if code == "K")

    def send(self, *messages: bytes) -> None:
        self.socket.sendall(b"".join(messages))

    def read(self) -> tuple[str, bytes | str]:
        code, length = struct.unpack("!ci", self.file.read(5))
        body = self.file.read(length - 4)
        if code not in b"EN":
            return code.decode(), body
        fields = {field[:1].decode(): field[1:].decode() for field in body.split(b"\0") if field}
        return code.decode(), " ".join(fields[key] for key in "SCM")

    def until(self, last: str) -> list[tuple[str, bytes | str]]:
        got = [self.read()]
        while got[-1][0] != last:
            got.append(self.read())
        return got

    def until_text(self, start: str) -> str:
        """The first error or notice that starts so."""
        while True:
            _, body = self.read()
            if isinstance(body, str) and body.startswith(start):
                return body

    def ask(self, *messages: bytes) -> list[tuple[str, bytes | str]]:
        """What is answered up to ReadyForQuery, without that."""
        self.send(*messages)
        return self.until("Z")[:-1]

    def codes(self, *messages: bytes) -> str:
        return "".join(code for code, _ in self.ask(*messages))

    def is_closed(self) -> bool:
        return self.file.read() == b""


def row(*values: bytes | None) -> tuple[str, bytes]:
    cells = [struct.pack("!i", -1) if v is None else struct.pack("!i", len(v)) + v for v in values]
    return "D", struct.pack("!h", len(values)) + b"".join(cells)
