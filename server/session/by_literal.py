"""Recognizes queries that differ only in a literal at their end, so that they share one plan.

To plan a text takes milliseconds, so `SELECT a FROM t WHERE k = 7` runs as `… WHERE k = $1`, if it is a lookup.
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
    r"""(?P<head>\s*SELECT\b(?:[^'"$;/-]|-(?!-)|/(?!\*)|"[^"]*")*=\s*)(?P<value>\d{1,18}|'[^'\\]*')\s*;?\s*""",
    re.IGNORECASE,
)
_BITS = {"smallint": 15, "integer": 31, "bigint": 63}


@dataclass(frozen=True)
class ByLiteral:
    """A query's text up to its last literal, the text with a parameter in the literal's place, and its value."""

    text: str
    template: str
    value: int | str


@lru_cache(maxsize=64)  # `split` and then `prepare` ask for the same text
def by_literal(sql: str) -> ByLiteral | None:
    """Return the parts of a single statement that may be a lookup by its last literal, else None."""
    match = _LAST_LITERAL.fullmatch(sql) if len(sql) <= LONGEST_TEXT else None
    if match is None:
        return None
    head, value = match["head"], match["value"]
    return ByLiteral(head + value, f"{head}$1", value[1:-1] if value[0] == "'" else int(value))


def prepare_lookup(session: Session, given: ByLiteral) -> Prepared | None:
    """Return the prepared lookup; None if the query is no lookup or has an error."""
    try:
        statement = parse(given.template, session.variables.date_order)
        if not isinstance(statement, Query):
            return None
        batch = queries.plan(session, statement, ()).batch
    except Error:
        return None  # raised when the text itself is planned
    if batch.served is None or batch.served.lookup is None:
        return None
    (type_,) = batch.parameters
    return Prepared(session, statement, (), given.text, (given.value,)) if _fits(given.value, type_) else None


def _fits(value: int | str, type_: Type) -> bool:
    """Return whether the literal has the type without a cast."""
    return type_.is_text if isinstance(value, str) else type_.is_integer and value < 1 << _BITS[type_.name]
