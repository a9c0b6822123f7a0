"""Suggests a similar name in the hint of an error about a name that does not exist."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from contextlib import closing

from sparkwave.catalog import errors
from sparkwave.catalog.errors import Error
from sparkwave.catalog.names import closest
from sparkwave.planner.functions.scalar_functions import ALIASES
from sparkwave.planner.parse.record_functions import LISTED_EACH, LISTED_ONE
from sparkwave.planner.parse.set_returning import SET_RETURNING
from sparkwave.planner.parse.trees import NOT_HERE
from sparkwave.server.session.session import Session
from sparkwave.server.session.variables import SESSION, SYSTEM

# PostgreSQL's names of types; the tables of the planner have engines' names beside them.
_TYPES = (
    "boolean", "smallint", "integer", "int", "bigint", "real", "double", "numeric", "decimal", "varchar", "text",
    "bytea", "date", "time", "timestamp", "timestamptz", "interval", "json", "jsonb", "uuid", "serial", "bigserial",
    "smallserial",
)  # fmt: skip


# PostgreSQL's types that Sparkwave does not have: these names are not misspelled.
_FOREIGN = frozenset(kind.value.lower() for kind in NOT_HERE) | {
    "box", "cidr", "circle", "line", "lseg", "macaddr", "macaddr8", "name", "path", "pg_lsn", "polygon", "tsquery",
    "tsvector", "txid_snapshot", "varbit", "jsonpath",
}  # fmt: skip


# Functions that have a grammar, or operators, of their own.
_OF_GRAMMAR = (
    "coalesce", "nullif", "greatest", "least", "mod", "trim", "position", "extract", "normalize", "overlaps",
    "array_transform",
)  # fmt: skip


def _relations(session: Session) -> Iterable[str]:
    return (relation.name for relation in session.context.store.catalog.named if relation.database == session.database)


def _schemas(session: Session) -> Iterable[str]:
    return (schema for database, schema in session.context.store.catalog.schemas if database == session.database)


def _functions(session: Session) -> Iterable[str]:
    with closing(session.context.system_views.cursor("pgc.pg_proc")) as cursor:
        known = [name for (name,) in cursor.execute("SELECT DISTINCT proname FROM memory.pgc.pg_proc").fetchall()]
    return (*ALIASES, *SET_RETURNING, *LISTED_ONE, *LISTED_EACH, *_OF_GRAMMAR, *known)


def _types(session: Session) -> Iterable[str]:
    return (*_TYPES, *(made.name for made in session.context.store.catalog.types))


_KINDS = "relation|table|view|materialized view|source|sink|index|sequence|subscription"
_RULES: tuple[tuple[str, str, Callable[[Session], Iterable[str]]], ...] = (
    (rf'^(?:{_KINDS}) "(?:[^".]+\.)?([^".]+)" does not exist$', "the relation", _relations),
    (r"^function (?:\w+\.)?(\w+)(?:\(.*\))? does not exist$", "the function", _functions),
    (r'^type "(?:[^".]+\.)?([^".\[]+)(?:\[\])*" does not exist$', "the type", _types),
    (r'^schema "([^"]+)" does not exist$', "the schema", _schemas),
    (r"^Unrecognized config entry `(.+)`$", "the variable", lambda session: SESSION),
    (r'^unrecognized system parameter "(.+)"$', "the parameter", lambda session: (*SYSTEM, *SESSION)),
    (r'^unrecognized configuration parameter "(.+)"$', "the variable", lambda session: SESSION),
)


def suggest(session: Session, error: Error) -> None:
    """Add a similar name that exists as the hint of an error about a missing name, unless the error has a hint."""
    if error.hint not in (None, errors.NO_FUNCTION):
        return
    for pattern, what, names in _RULES:
        found = re.search(pattern, error.message)
        if found is not None:
            meant = None if what == "the type" and found[1] in _FOREIGN else closest(found[1], names(session))
            if meant is not None:
                error.hint = f'Perhaps you meant {what} "{meant}".'
            return
