"""Reads the bodies of a client's messages and builds those of the server's, as pure functions over bytes.

Layouts are those of the PostgreSQL docs, "Message Formats". `frame` adds the type byte and the length. Readers raise
Error 08P01 for a body that is too short or has bytes left over.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Sequence
from typing import NamedTuple

from sparkwave.catalog.errors import INVALID_PARAMETER_VALUE, PROTOCOL_VIOLATION, SYNTAX_ERROR, Error
from sparkwave.server.wire.client_encoding import UTF8, Encoding
from sparkwave.server.wire.result import ResultColumn

PROTOCOL_3 = 3 << 16
CANCEL_REQUEST, SSL_REQUEST, GSSENC_REQUEST = 80877102, 80877103, 80877104

# Type bytes of a client's messages
QUERY, PARSE, BIND, DESCRIBE, EXECUTE, CLOSE = b"Q", b"P", b"B", b"D", b"E", b"C"
SYNC, FLUSH, TERMINATE, FUNCTION_CALL, PASSWORD = b"S", b"H", b"X", b"F", b"p"

# of messages in both directions
COPY_DATA, COPY_DONE, COPY_FAIL = b"d", b"c", b"f"

# of the server's messages
ERROR_RESPONSE, NOTICE_RESPONSE, PARAMETER_STATUS, READY_FOR_QUERY = b"E", b"N", b"S", b"Z"
ROW_DESCRIPTION, DATA_ROW, COMMAND_COMPLETE, EMPTY_QUERY_RESPONSE = b"T", b"D", b"C", b"I"
PARSE_COMPLETE, BIND_COMPLETE, CLOSE_COMPLETE, PORTAL_SUSPENDED = b"1", b"2", b"3", b"s"
PARAMETER_DESCRIPTION, NO_DATA = b"t", b"n"
COPY_IN_RESPONSE, COPY_OUT_RESPONSE, NEGOTIATE_PROTOCOL_VERSION, AUTHENTICATION = b"G", b"H", b"v", b"R"


_UINT16, _INT32, _UINT32 = map(struct.Struct, ("!H", "!i", "!I"))


def frame(code: bytes, body: bytes = b"") -> bytes:
    """Return a whole message: type byte, length and body."""
    return code + _INT32.pack(len(body) + 4) + body


def cstring(text: str, encoding: Encoding = UTF8) -> bytes:
    """Return a zero-terminated text. A character that the encoding does not have becomes a question mark."""
    return text.encode(encoding.codec, "replace").replace(b"\0", b"") + b"\0"


class Parse(NamedTuple):
    name: str
    sql: str
    oids: tuple[int, ...]


class Bind(NamedTuple):
    """A Bind message.

    `values` are the bytes as sent, None for NULL. `formats` and `result_formats` have no code, one code for all, or one
    code for each parameter or column.
    """

    portal: str
    statement: str
    formats: tuple[int, ...]
    values: tuple[bytes | None, ...]
    result_formats: tuple[int, ...]


class Reader:
    """Takes fields off the front of a message body."""

    def __init__(self, body: bytes, encoding: Encoding = UTF8) -> None:
        self.body = body
        self._encoding = encoding
        self.at = 0

    def take(self, count: int) -> bytes:
        if count < 0 or self.at + count > len(self.body):
            raise Error("insufficient data left in message", PROTOCOL_VIOLATION)
        self.at += count
        return self.body[self.at - count : self.at]

    def _number(self, packed: struct.Struct) -> int:
        try:
            (number,) = packed.unpack_from(self.body, self.at)
        except struct.error:
            raise Error("insufficient data left in message", PROTOCOL_VIOLATION) from None
        self.at += packed.size
        return number

    def count(self) -> int:
        """Return an unsigned number of following items: as in Postgres, up to 65535 parameters."""
        return self._number(_UINT16)

    def int32(self) -> int:
        return self._number(_INT32)

    def oid(self) -> int:
        return self._number(_UINT32)

    def string(self) -> str:
        end = self.body.find(b"\0", self.at)
        if end < 0:
            raise Error("invalid string in message", PROTOCOL_VIOLATION)
        start, self.at = self.at, end + 1
        return self._encoding.decode(self.body[start:end])

    def formats(self) -> tuple[int, ...]:
        count = self.count()
        codes: tuple[int, ...] = struct.unpack(f"!{count}h", self.take(2 * count)) if count else ()
        for code in codes:
            if code not in (0, 1):
                raise Error(f"unsupported format code: {code}", INVALID_PARAMETER_VALUE)
        return codes

    def value(self) -> bytes | None:
        length = self.int32()
        return None if length == -1 else self.take(length)

    def done(self) -> None:
        if self.at != len(self.body):
            raise Error("invalid message format", PROTOCOL_VIOLATION)


def read_query(body: bytes, encoding: Encoding = UTF8) -> str:
    reader = Reader(body, encoding)
    sql = reader.string()
    reader.done()
    return sql


def read_parse(body: bytes, encoding: Encoding = UTF8) -> Parse:
    reader = Reader(body, encoding)
    message = Parse(reader.string(), reader.string(), tuple(reader.oid() for _ in range(reader.count())))
    reader.done()
    return message


def read_bind(body: bytes, encoding: Encoding = UTF8) -> Bind:
    reader = Reader(body, encoding)
    message = Bind(
        reader.string(),
        reader.string(),
        reader.formats(),
        tuple(reader.value() for _ in range(reader.count())),
        reader.formats(),
    )
    reader.done()
    return message


# The bodies that most drivers send, read without a Reader to save time.
_UNNAMED_PORTAL, _ALL_OF_UNNAMED_PORTAL = b"P\0", b"\0\0\0\0\0"


def read_target(body: bytes, encoding: Encoding = UTF8) -> tuple[str, str]:
    """Return the kind (S statement, P portal) and the name in a Describe or Close."""
    if body == _UNNAMED_PORTAL:
        return "P", ""
    reader = Reader(body, encoding)
    kind, name = reader.take(1).decode("latin-1"), reader.string()
    reader.done()
    if kind not in "SP":
        raise Error(f"invalid message subtype {ord(kind)}", PROTOCOL_VIOLATION)
    return kind, name


def read_execute(body: bytes, encoding: Encoding = UTF8) -> tuple[str, int]:
    """Return the portal's name and the row limit; 0 is no limit."""
    if body == _ALL_OF_UNNAMED_PORTAL:
        return "", 0
    reader = Reader(body, encoding)
    portal, limit = reader.string(), reader.int32()
    reader.done()
    return portal, max(limit, 0)


def spread_formats(codes: Sequence[int], count: int, what: str) -> tuple[int, ...]:
    """Return one format code for each of `count` items, from the 0, 1 or `count` codes that were sent.

    Raises Error 08P01 for another number of codes; `what` is a part of its message, e.g. "result formats but query has
    {} columns".
    """
    if len(codes) == count:
        return tuple(codes)
    if len(codes) > 1:
        raise Error(f"bind message has {len(codes)} {what.format(count)}", PROTOCOL_VIOLATION)
    return tuple(codes or (0,)) * count


def read_startup(body: bytes) -> dict[str, str]:
    """Return the names and values of a StartupMessage (after the version), with `options` not yet split."""
    reader = Reader(body)
    parameters = {}
    while name := reader.string():
        parameters[name] = reader.string()
    reader.done()
    return parameters


_OPTION = re.compile(r"(?:-c\s*|--)([^=\s]+)=(.*)", re.DOTALL)


def merge_options(parameters: dict[str, str]) -> dict[str, str]:
    """Return `parameters` with the settings inside `options` as separate entries; explicit parameters win.

    Raises Error 42601 for an option that is no `-c name=value` or `--name=value`.
    """
    settings: dict[str, str] = {}
    words = [re.sub(r"\\(.)", r"\1", word) for word in re.findall(r"(?:\\.|\S)+", parameters.get("options", ""))]
    while words:
        word = words.pop(0)
        if word == "-c" and words:
            word += words.pop(0)
        match = _OPTION.fullmatch(word)
        if match is None:
            raise Error(f"invalid command-line argument for server process: {word}", SYNTAX_ERROR)
        settings[match[1].replace("-", "_")] = match[2]
    explicit = {name: value for name, value in parameters.items() if name != "options"}
    return settings | explicit


def row_description(columns: Sequence[ResultColumn], formats: Sequence[int], encoding: Encoding = UTF8) -> bytes:
    fields = [
        cstring(column.name, encoding)
        + struct.pack(
            "!IhIhih", column.table_oid, column.attnum, column.type.oid, column.type.length, column.typmod, format
        )
        for column, format in zip(columns, formats, strict=True)
    ]
    return struct.pack("!h", len(fields)) + b"".join(fields)


def parameter_description(oids: Sequence[int]) -> bytes:
    return struct.pack("!H", len(oids)) + struct.pack(f"!{len(oids)}I", *oids)


def copy_response(columns: int, format: int) -> bytes:
    """Return the body of CopyInResponse or CopyOutResponse. `format` is 0 (text) or 1 (binary), for all columns."""
    return struct.pack(f"!bh{columns}h", format, columns, *([format] * columns))


def negotiate_version(unknown: Sequence[str]) -> bytes:
    """Return the newest supported protocol version and the `_pq_.` options that are unknown."""
    return struct.pack("!ii", PROTOCOL_3, len(unknown)) + b"".join(map(cstring, unknown))


# Names of PostgreSQL's routines by which drivers recognise an error after which they prepare the statement again.
CHANGED_COLUMNS = "cached plan must not change result type"
_ROUTINES = {CHANGED_COLUMNS: "RevalidateCachedQuery"}


def error_fields(error: Error, severity: str, encoding: Encoding = UTF8) -> bytes:
    """Return the body of ErrorResponse or NoticeResponse."""
    optional = {
        "D": error.detail, "H": error.hint, "P": error.position, "W": error.context,
        "R": _ROUTINES.get(error.message),
    }  # fmt: skip
    if (names := error.concerned) is not None:
        optional |= {"s": names.schema, "t": names.table, "c": names.column, "n": names.constraint}
    fields = {"S": severity, "V": severity, "C": error.sqlstate, "M": error.message} | {
        code: str(value) for code, value in optional.items() if value is not None
    }
    return b"".join(code.encode() + cstring(value, encoding) for code, value in fields.items()) + b"\0"
