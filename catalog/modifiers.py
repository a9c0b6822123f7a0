"""Modifiers of types of times: the digits of `timestamp(3)`, and the fields of `interval day to second(3)`.

They are numbers, as PostgreSQL keeps them (`atttypmod`; src/backend/utils/adt/timestamp.c).
"""

from __future__ import annotations

from sparkwave.catalog.types import INTERVAL, Type

# The function of a time and such a number, by which the time is cut or rounded.
TO_MODIFIER = "_to_modifier"
MOST_DIGITS = 6  # after the point of a second
_BITS = {"year": 4, "month": 2, "day": 8, "hour": 0x400, "minute": 0x800, "second": 0x1000}
_NAMES = tuple(_BITS)
_ALL_FIELDS, _ALL_DIGITS = 0x7FFF, 0xFFFF
# The last fields that may follow the first one and TO.
LAST_FIELDS = {
    "year": ("month",), "day": ("hour", "minute", "second"), "hour": ("minute", "second"), "minute": ("second",),
}  # fmt: skip
_RANGES = _BITS | {
    f"{first} to {last}": sum(_BITS[name] for name in _NAMES[_NAMES.index(first) : _NAMES.index(last) + 1])
    for first, lasts in LAST_FIELDS.items()
    for last in lasts
}


def interval_modifier(fields: str, digits: int | None) -> int:
    """Return the modifier of an interval with these fields, "" for all, and so many digits, None for all."""
    return (_RANGES.get(fields, _ALL_FIELDS) << 16) | (_ALL_DIGITS if digits is None else min(digits, MOST_DIGITS))


def fields_of(modifier: int) -> str:
    """Return the fields of an interval, "" for all."""
    return next((fields for fields, bits in _RANGES.items() if bits == modifier >> 16), "")


def with_modifier(type_: Type, modifier: int) -> str:
    """Return a type as users write it: `timestamp(3) without time zone`, `interval day to second(3)`."""
    digits = modifier & _ALL_DIGITS
    written = f"({digits})" if digits <= MOST_DIGITS else ""
    if type_ == INTERVAL:
        return " ".join(filter(None, (type_.name, fields_of(modifier)))) + written
    name, _, rest = type_.name.partition(" ")
    return f"{name}{written} {rest}"


def length_of_modifier(modifier: int) -> int:
    """Return what a column has in the place of the n of varchar(n): n is PostgreSQL's modifier less 4."""
    return modifier - 4


def modifier_of_length(length: int) -> int:
    """Return PostgreSQL's modifier by what a column of times has in the place of the n of varchar(n)."""
    return length + 4
