"""Texts of intervals in the engines' form."""

from __future__ import annotations

import re

from sparkwave.catalog.errors import Error
from sparkwave.catalog.interval_texts import UNITS, duckdb_text, read_interval

_NUMBER = r"-?\d++(?:\.\d{1,6}+)?"
# What DuckDB reads as PostgreSQL does: numbers with units, and a clock time, or a number of seconds.
_WORD = f"(?:microseconds?|milliseconds?|{'|'.join(sorted(UNITS, key=len, reverse=True))})"
_CLOCK = r"-?\d++:\d\d(?::\d\d(?:\.\d{1,6})?)?"
_PLAIN = re.compile(rf"\s*+(?:{_NUMBER}\s*+{_WORD}(?![a-z])\s*+)*+(?:{_CLOCK}\s*+)?|\s*+{_NUMBER}\s*+", re.IGNORECASE)
# The units that sqlglot reads behind a number.
_UNITS = frozenset(
    name + plural
    for name in ("year", "month", "week", "day", "hour", "minute", "second", "millisecond", "microsecond", "decade",
                 "century", "millennium")
    for plural in ("", "s")
)  # fmt: skip
UNITS_US = {
    "microsecond": 1, "millisecond": 1_000, "second": 1_000_000, "minute": 60_000_000, "hour": 3_600_000_000,
    "day": 86_400_000_000, "week": 604_800_000_000,
}  # fmt: skip


def interval_text(text: str) -> str:
    """Return an interval's text, in DuckDB's form where it would misread it. Raises Error 22007, 22008 or 22015."""
    found = read_interval(text)
    return text if _PLAIN.fullmatch(text) else duckdb_text(found)


def is_plain_interval(text: str) -> bool:
    """Return whether sqlglot reads the whole text of an interval: numbers with units that DuckDB knows."""
    words = re.findall(r"[A-Za-z]+", text)
    if ":" in text or not all(word.lower() in _UNITS for word in words):
        return False
    try:
        return interval_text(text) == text
    except Error:
        return False


def is_unit(word: str) -> bool:
    """Return whether a word behind the text of an interval is its unit."""
    return word.lower() in _UNITS


def fixed_length_us(text: str) -> int | None:
    """Return the length in µs of an interval's text; None for months and years, and for what is no interval."""
    try:
        found = read_interval(text)
    except Error:
        return None
    return None if found.months else found.days * UNITS_US["day"] + found.micros
