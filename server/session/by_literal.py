"""Queries that clients send with a value written out at the end: each is another text, and all are one query.

Planning a text takes milliseconds, so `SELECT a FROM t WHERE k = 7` is run as `… WHERE k = $1`, if that is a lookup.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache

from sparkwave.catalog.errors import Error
from sparkwave.catalog.types import Type
from sparkwave.planner.statements import Query
from sparkwave.server.reads import queries
from sparkwave.server.session.plan_cache import LONGEST_TEXT, parse
from sparkwave.server.session.prepared import Prepared
from sparkwave.server.session.session import Session

_LAST_LITERAL = re.compile(
    r"""(?P<head>\s*SELECT\b(?:[^'"$;]|"[^"]*")*=\s*)(?P<value>\d{1,18}|'[^'\\]*')\s*;?\s*""", re.IGNORECASE
)
_BITS = {"smallint": 15, "integer": 31, "bigint": 63}


@dataclass(frozen=True)
class ByLiteral:
    """A text without what follows its last literal, the same with a parameter in its place, and its value."""

    text: str
    template: str
    value: int | str


@lru_cache(maxsize=64)  # who splits a text asks, and then who prepares it
def by_literal(sql: str) -> ByLiteral | None:
    """What a text is if it is one statement that may be a lookup by its last literal."""
    match = _LAST_LITERAL.fullmatch(sql) if len(sql) <= LONGEST_TEXT else None
    if match is None:
        return None
    head, value = match["head"], match["value"]
    return ByLiteral(head + value, f"{head}$1", value[1:-1] if value[0] == "'" else int(value))


def prepare_lookup(session: Session, given: ByLiteral) -> Prepared | None:
    """The lookup that a text is; None if it is anything else, or wrong."""
    try:
        statement = parse(given.template)
        if not isinstance(statement, Query):
            return None
        batch = queries.plan(session, statement, ()).batch
    except Error:
        return None  # told when the text itself is planned
    if batch.served is None or batch.served.lookup is None:
        return None
    (type_,) = batch.parameters
    return Prepared(session, statement, (), given.text, (given.value,)) if _fits(given.value, type_) else None


def _fits(value: int | str, type_: Type) -> bool:
    """Whether a literal is of a type, as it stands."""
    return type_.is_text if isinstance(value, str) else type_.is_integer and value < 1 << _BITS[type_.name]
