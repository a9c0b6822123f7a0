"""Parsing of CHECK and of varchar(n)."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from sqlglot import exp

from sparkwave.catalog import errors
from sparkwave.catalog.errors import Error
from sparkwave.catalog.modifiers import length_of_modifier
from sparkwave.catalog.relation_details import Check
from sparkwave.planner.definitions.object_names import object_name
from sparkwave.planner.parse.generated import check_one_row, columns_read
from sparkwave.planner.parse.identifiers import folded
from sparkwave.planner.parse.shown_text import shown_text
from sparkwave.planner.parse.time_types import modifier_of

_COLLATIONS = ("default", "C", "POSIX", "ucs_basic", "C.UTF-8", "C.utf8")


def is_by_bytes(collation: str) -> bool:
    """Return whether a collation orders text by its bytes, the only order here. RisingWave takes "posix", too."""
    return collation in _COLLATIONS or collation.upper() in _COLLATIONS


def check_of(constraint: exp.CheckColumnConstraint, name: str) -> Check:
    """Return a check.

    Raises Error 0A000 for a query in the condition, 42803 and 42P20 for a function of several rows.
    """
    condition = constraint.this.unnest()
    check_one_row(condition, "check constraint")
    return Check(name, shown_text(condition))


def named_checks(
    table: str, checks: Iterable[Check], columns: Collection[str], taken: Iterable[str] = ()
) -> tuple[Check, ...]:
    """Return the checks of a table with these columns, each with a name, as PostgreSQL gives them.

    Raises Error 42703 for one that reads another column, 42710 for a duplicate name.
    """
    found: list[Check] = []
    names = set(taken)
    for check in checks:
        read = sorted(columns_read(check.condition))
        for column in read:
            if column not in columns:
                raise Error(f'column "{column}" does not exist', errors.UNDEFINED_COLUMN)
        one = read[0] if len(read) == 1 else None
        name = check.name or object_name(table, one, "check", lambda own: own not in names)
        if name in names:
            raise Error(f'check constraint "{name}" already exists', errors.DUPLICATE_OBJECT)
        names.add(name)
        found.append(Check(name, check.condition, tuple(read)))
    return tuple(found)


_LONGEST = 10_485_760  # PostgreSQL: src/include/access/htup_details.h, MaxAttrSize
_PADDED = (exp.DType.CHAR, exp.DType.BPCHAR, exp.DType.NCHAR)
_OF_CHARACTERS = (exp.DType.VARCHAR, exp.DType.NVARCHAR, *_PADDED)


def length_of(kind: exp.Expr) -> int | None:
    """Return the n of varchar(n) and char(n), 1 for char without n; None for any other type. Raises Error 22023.

    For a type of times it is PostgreSQL's modifier less 4, as it is for those.
    """
    if isinstance(kind, exp.DataType) and (modifier := modifier_of(kind)) is not None:
        return length_of_modifier(modifier)
    if not isinstance(kind, exp.DataType) or kind.this not in _OF_CHARACTERS:
        return None
    if not kind.expressions:
        return 1 if kind.this in (exp.DType.CHAR, exp.DType.NCHAR) else None
    name = "varchar" if kind.this in (exp.DType.VARCHAR, exp.DType.NVARCHAR) else "char"
    text = kind.expressions[0].this.name
    if not text.isdigit() or int(text) < 1:
        raise Error(f"length for type {name} must be at least 1", errors.INVALID_PARAMETER_VALUE)
    if int(text) > _LONGEST:
        raise Error(f"length for type {name} cannot exceed {_LONGEST}", errors.INVALID_PARAMETER_VALUE)
    return int(text)


def is_padded(kind: exp.Expr) -> bool:
    """Return whether a type is char(n), bpchar, or an array of it, which PostgreSQL fills up with blanks."""
    return any(part.this in _PADDED for part in kind.find_all(exp.DataType))


def no_padded_type(position: int | None) -> Error:
    """Return the error for a type that `is_padded`, in RisingWave's words."""
    message = "CHAR is not supported, please use VARCHAR instead"
    hint = "Values of varchar(n) are not filled up with blanks, and their own blanks at the end count."
    return Error(message, errors.FEATURE_NOT_SUPPORTED, hint=hint, position=position)


def constraint_name(constraint: exp.Expr) -> str:
    """Return the name in CONSTRAINT, "" without one."""
    return folded(constraint.this) if isinstance(constraint.this, exp.Identifier) else ""
