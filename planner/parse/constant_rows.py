"""INSERTs of constant rows: one form for all, with their text, so that no tree has to be made of the rows.

Making the tree of many rows takes longer than the rest of such an INSERT. Of two statements that differ only in their
constants the second has the plan of the first. They are recognised by the form of their text; any other text, or a
faulty one, is left to the parser.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from sparkwave.catalog.lazy import lazy
from sparkwave.catalog.model import Column
from sparkwave.catalog.types import FLOAT_DIGITS, MOST_DIGITS, Type

_NAME = r'(?:"(?:[^"]|"")++"|[a-z_][a-z0-9_$]*+)'
_HEAD = re.compile(
    rf"\s*+insert\s++into\s++{_NAME}(?:\.{_NAME}){{0,2}}\s*+(?:\(\s*+{_NAME}\s*+(?:,\s*+{_NAME}\s*+)*+\)\s*+)?values\s*+",
    re.IGNORECASE,
)
_CONSTANT = re.compile(
    r"'(?:[^'\0]|'')*+'(?:::(?:date|timestamp|timestamptz)\b)?|"
    r"[+-]?(?:\d++(?:\.\d++)?+|\.\d++)(?:e[+-]?\d++)?|null\b|true\b|false\b",
    re.IGNORECASE,
)
_ROW = rf"\(\s*+(?:{_CONSTANT.pattern})(?:\s*+,\s*+(?:{_CONSTANT.pattern})){{%d}}+\s*+\)"
# Dates that the engines read like PostgreSQL.
_DAY = re.compile(
    r"'\d{4}-\d\d-\d\d(?:[ T]\d\d:\d\d:\d\d(?:\.\d{1,6})?(?:[+-]\d\d(?::\d\d)?|Z)?)?'"
    r"(?:::(?:date|timestamp|timestamptz))?",
    re.IGNORECASE,
)
_DAY_TYPES = ("date", "timestamp without time zone", "timestamp with time zone")


_FIRST_ROW = re.compile(r"\([^()']*+(?:'[^']*+'[^()']*+)*+\)")


@dataclass(frozen=True)
class ConstantRows:
    """The rows of an INSERT of constants.

    `values` is SQL that the engines read as PostgreSQL does, if `fit`. `sql` is the whole statement. `form` is the same
    statement with one row, of constants that stand for any of their kind.
    """

    sql: str
    form: str
    values: str
    width: int

    @property
    def query(self) -> str:
        return f"VALUES {self.values}"

    @lazy
    def constants(self) -> list[str]:
        return _CONSTANT.findall(self.values)

    @property
    def count(self) -> int:
        return len(self.constants) // self.width

    def fit(self, columns: Sequence[Column]) -> bool:
        """Return whether the constants are of a kind that these columns take unchanged."""
        constants = self.constants
        return all(
            _fits(column.type, constants[place :: self.width]) for place, column in enumerate(columns[: self.width])
        )


def constant_rows(sql: str) -> ConstantRows | None:
    """Return the constants of an INSERT of constants only; None for any other statement."""
    head = _HEAD.match(sql)
    if head is None:
        return None
    values = sql[head.end() :].rstrip().removesuffix(";").rstrip()
    first = _FIRST_ROW.match(values)
    if first is None:
        return None
    constants = _CONSTANT.findall(first[0])
    row = _ROW % max(len(constants) - 1, 0)
    if re.fullmatch(rf"{row}(?:\s*+,\s*+{row})*+", values, re.IGNORECASE) is None:
        return None
    form = f"{head[0]}({', '.join(map(_typical, constants))})"
    return ConstantRows(sql, form, values, len(constants))


def has_constant_default(column: Column) -> bool:
    """Return whether a column's default is such a constant, and fits."""
    default = column.default or ""
    return _CONSTANT.fullmatch(default) is not None and _fits(column.type, [default])


def _typical(constant: str) -> str:
    """Return a constant that is planned in the same way."""
    if constant[0] == "'":
        return "''" if constant[-1] == "'" else f"'2000-01-01'{constant[constant.rindex(':') - 1 :]}"
    return constant.lower() if constant[0].isalpha() else "1"


def _fits(type_: Type, constants: Sequence[str]) -> bool:
    kinds = {constant[0] for constant in constants} - {"n", "N"}
    if kinds == {"'"}:
        if type_.is_text:
            return all(constant[-1] == "'" for constant in constants if constant[0] == "'")
        is_day = not type_.dimensions and type_.name in _DAY_TYPES
        return is_day and all(_DAY.fullmatch(constant) for constant in constants if constant[0] == "'")
    if kinds <= set("tTfF"):
        return type_ == Type("boolean") or not kinds
    has_exponent = type_.name == "numeric" and any("e" in constant.lower() for constant in constants)
    most = FLOAT_DIGITS if type_.is_float else MOST_DIGITS
    is_inexact = any(len(constant) > most for constant in constants)
    return type_.is_numeric and kinds <= set("+-.0123456789") and not has_exponent and not is_inexact
