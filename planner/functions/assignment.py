"""Whether a value may be stored in a column of another type, as PostgreSQL's assignment casts have it.

DuckDB's casts, which then store the value, go further: from text to anything, and between numbers and booleans.
"""

from __future__ import annotations

from sqlglot import exp

from sparkwave.catalog import errors
from sparkwave.catalog.errors import Error
from sparkwave.catalog.model import Column
from sparkwave.catalog.types import Type
from sparkwave.planner.parse.trees import position_of

NUMBERS, MOMENTS, TEXTS, DOCUMENTS = "numbers", "moments", "texts", "documents"
# Of these types alone something is said here.
_GROUPS = {
    **dict.fromkeys(("smallint", "integer", "bigint", "numeric", "real", "double precision"), NUMBERS),
    **dict.fromkeys(("date", "timestamp without time zone", "timestamp with time zone"), MOMENTS),
    **dict.fromkeys(("text", "character varying"), TEXTS),
    **dict.fromkeys(("json", "jsonb"), DOCUMENTS),
    **{name: name for name in ("boolean", "uuid", "bytea")},
}


def is_assignable(source: Type, target: Type) -> bool:
    """Return whether a column may be given a value of a type. True also for types of which nothing is known here."""
    own, other = group_of(source), group_of(target)
    if None in (own, other):
        return True
    if source.dimensions != target.dimensions:
        return target.is_text
    return own == other or other == TEXTS


def group_of(type_: Type) -> str | None:
    """Return the group of types of which one may be assigned to another, and compared with; None for other types.

    For an array it is that of its elements.
    """
    return None if type_.labels or type_.fields else _GROUPS.get(type_.name)


def check_assigned(column: Column, source: Type, value: exp.Expr | None) -> None:
    """Raise Error 42804 unless a value of a type may be stored in a column."""
    if is_assignable(source, column.type):
        return
    raise Error(
        f'column "{column.name}" is of type {column.type.shown} but expression is of type {source.shown}',
        errors.DATATYPE_MISMATCH,
        hint="You will need to rewrite or cast the expression.",
        position=position_of(value) if value is not None else None,
    )
