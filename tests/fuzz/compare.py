"""What two servers answered, and how it is compared: rows as bags of values, by the types of both sides."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from datetime import timedelta
from decimal import Decimal, localcontext

import psycopg
from psycopg import pq

from sparkwave.catalog.interval_texts import read_interval

from .differences import TYPES

_NAMES = {
    16: "bool", 17: "bytea", 20: "int8", 21: "int2", 23: "int4", 25: "text", 114: "json", 700: "float4", 701: "float8",
    1000: "bool[]", 1005: "int2[]", 1007: "int4[]", 1009: "text[]", 1015: "varchar[]", 1016: "int8[]", 1021: "float4[]",
    1022: "float8[]", 1043: "varchar", 1082: "date", 1083: "time", 1114: "timestamp", 1184: "timestamptz",
    1186: "interval", 1231: "numeric[]", 1700: "numeric", 3802: "jsonb",
}  # fmt: skip
_FLOATS = {"float4": 6, "float8": 9}  # digits that have to be equal
_NUMBERS = ("float4", "float8", "numeric", "int8", "int4", "int2")  # the less exact first

Value = str | None


@dataclass(frozen=True)
class Answer:
    """Rows as text with the types of their columns, or an error; `status` is how a command ended."""

    types: tuple[str, ...] = ()
    rows: tuple[tuple[Value, ...], ...] = ()
    status: str = ""
    code: str = ""
    message: str = ""

    @property
    def failed(self) -> str:
        """SQLSTATE and message of an error, else nothing."""
        return f"{self.code} {self.message}" if self.code else ""


def ask(connection: psycopg.Connection[object], sql: str) -> Answer:
    """One statement by the simple protocol. Raises OperationalError when the connection is lost."""
    result = connection.pgconn.exec_(sql.encode())
    if connection.pgconn.status != pq.ConnStatus.OK:
        raise psycopg.OperationalError(connection.pgconn.error_message.decode(errors="replace"))
    if result.status == pq.ExecStatus.FATAL_ERROR:
        code, message = (
            (result.error_field(field) or b"?????").decode()
            for field in (pq.DiagnosticField.SQLSTATE, pq.DiagnosticField.MESSAGE_PRIMARY)
        )
        return Answer(code=code, message=message)
    columns = range(result.nfields)
    rows = ([result.get_value(row, column) for column in columns] for row in range(result.ntuples))
    return Answer(
        tuple(_NAMES.get(result.ftype(column), str(result.ftype(column))) for column in columns),
        tuple(tuple(None if value is None else value.decode() for value in row) for row in rows),
        (result.command_status or b"").decode(),
    )


def difference(one: Answer, other: Answer) -> str:
    """How the rows of two answers differ; nothing if they are the same."""
    if len(one.types) != len(other.types):
        return f"{len(one.types)} columns, not {len(other.types)}"
    kinds = [_compared_as(*pair) for pair in zip(one.types, other.types, strict=True)]
    mine, theirs = (Counter(tuple(map(_value, row, kinds)) for row in answer.rows) for answer in (one, other))
    extra, missing = list((mine - theirs).elements()), list((theirs - mine).elements())
    if not extra and not missing:
        return ""
    return "\n".join([*(f"extra   {row}" for row in extra[:5]), *(f"missing {row}" for row in missing[:5])])


def types_differ(mine: Answer, postgres: Answer) -> str:
    """The outputs whose types are not PostgreSQL's, and not said to be others."""
    pairs = zip(mine.types, postgres.types, strict=False)
    return ", ".join(
        f"{one} is {other} in PostgreSQL" for one, other in pairs if one != other and (one, other) not in TYPES
    )


def _compared_as(one: str, other: str) -> str:
    """The type that values of two types are compared as: the less exact of two types of numbers."""
    if one in _NUMBERS and other in _NUMBERS:
        return next((kind for kind in _NUMBERS if kind in (one, other)), "numeric")
    return "interval" if one == other == "interval" else "text"


def _value(text: Value, kind: str) -> Value:
    """Text that is the same for equal values."""
    if text is None or kind not in ("numeric", "interval", *_FLOATS):
        return text
    if kind == "interval":  # docs/limits.md: equal ones that are grouped are shown as justify_interval has them
        found = read_interval(text)
        return str(timedelta(found.months * 30 + found.days, 0, found.micros))
    if kind in _FLOATS:
        return f"{float(text) + 0.0:.{_FLOATS[kind]}g}"
    # A numeric has 19 places at most here. Zeros at the end are the declared scale, which a stored one may not have.
    with localcontext(prec=100):
        value = Decimal(text)
        return f"{(round(value, 19) if value.is_finite() else value).normalize() + 0:f}"
