"""Reads intervals from text in all forms that PostgreSQL reads (interval_in, DecodeInterval and DecodeISO8601Interval).

PostgreSQL 15: src/backend/utils/adt/datetime.c. This module is sent to Spark's executors (`executor.spark.kernel`), so
it imports nothing of this package but what is sent with it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from sparkwave.catalog.errors import DATETIME_FIELD_OVERFLOW, INTERVAL_FIELD_OVERFLOW, INVALID_DATETIME_FORMAT, Error
from sparkwave.catalog.moment_texts import Failure, split_fields

_SECOND, _MINUTE, _HOUR, _DAY = 1_000_000, 60_000_000, 3_600_000_000, 86_400_000_000  # microseconds
_UNIT_WORDS = {
    "microsecond": "us usec usecs useconds microsecon", "millisecond": "ms msec msecs mseconds millisecon",
    "second": "s sec secs second seconds", "minute": "m min mins minute minutes", "hour": "h hr hrs hour hours",
    "day": "d day days", "week": "w week weeks", "month": "mon mons month months", "year": "y yr yrs year years",
    "decade": "dec decs decade decades", "century": "c cent century centuries",
    "millennium": "mil mils millennia millennium",
}  # fmt: skip
UNITS = {word: unit for unit, words in _UNIT_WORDS.items() for word in words.split()}
_LONGEST_WORD = 10  # characters of a word that count
_CLOCK = frozenset(("hour", "minute", "second", "millisecond", "microsecond"))
_TIMES = {"microsecond": 1, "millisecond": 1_000, "second": _SECOND, "minute": _MINUTE, "hour": _HOUR}
_YEARS = {"year": 1, "decade": 10, "century": 100, "millennium": 1_000}
_INT32, _INT64 = range(-(2**31), 2**31), range(-(2**63), 2**63)
_INTEGER = re.compile(r"[+-]?[0-9]*")
_FRACTION = re.compile(r"\.[0-9]*(?:[eE][+-]?[0-9]+)?")
_ISO_NUMBER = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")


@dataclass(frozen=True)
class Interval:
    """Months, days and microseconds; PostgreSQL keeps them apart."""

    months: int = 0
    days: int = 0
    micros: int = 0


def read_interval(text: str, fields: str = "") -> Interval:
    """Return what a text says. Raises Error 22007, and 22015 or 22008 for a field or an interval that is too long.

    `fields` are those of the type, such as `day to second`: a number without a unit is of the last one.
    """
    try:
        try:
            found = _decoded(split_fields(text), fields)
        except Failure as failure:
            if str(failure) != "format":
                raise
            found = _iso(text)
    except Failure as failure:
        if str(failure) == "format":
            raise Error(f'invalid input syntax for type interval: "{text}"', INVALID_DATETIME_FORMAT) from None
        raise Error(f'interval field value out of range: "{text}"', INTERVAL_FIELD_OVERFLOW) from None
    if found.months not in _INT32:
        raise Error("interval out of range", DATETIME_FIELD_OVERFLOW)
    return found


def within(interval: Interval, modifier: int) -> Interval:
    """Return an interval cut to the fields of PostgreSQL's modifier, and rounded (AdjustIntervalForTypmod)."""
    fields, digits = modifier >> 16, modifier & 0xFFFF
    sign, micros = -1 if interval.micros < 0 else 1, abs(interval.micros)
    if fields in _OF_MONTHS:
        years = abs(interval.months) // _OF_MONTHS[fields] * _OF_MONTHS[fields]
        return Interval(years if interval.months > 0 else -years)
    unit = _CUT_TO.get(fields)
    if unit is not None:
        micros -= micros % unit if unit else micros
    elif digits < 6:
        step = 10 ** (6 - digits)
        micros = (micros + step // 2) // step * step
    return Interval(interval.months, interval.days, sign * micros)


# By the bits of the fields: the months that an interval is a multiple of, and the microseconds, 0 for none.
_OF_MONTHS = {0x4: 12, 0x2: 1, 0x6: 1}
_CUT_TO = {0x8: 0, 0x400: _HOUR, 0x408: _HOUR, 0x800: _MINUTE, 0xC00: _MINUTE, 0xC08: _MINUTE}


def duckdb_text(interval: Interval) -> str:
    """Return the text of an interval as DuckDB reads it."""
    return f"{interval.months} months {interval.days} days {interval.micros} microseconds"


class _Sum:
    """The fields of a text, added up."""

    def __init__(self) -> None:
        self.years = self.months = self.days = self.micros = 0

    @property
    def interval(self) -> Interval:
        return Interval(self.years * 12 + self.months, self.days, self.micros)

    def add(self, unit: str, value: int, fraction: float) -> None:
        """Add so many of a unit; fractions of months are days, and those of days time (AdjustFractDays and others)."""
        if unit in _TIMES:
            self.micros = _fit(self.micros + _fit(value * _TIMES[unit], _INT64), _INT64)
            self._add_micros(fraction, _TIMES[unit])
        elif unit in ("day", "week"):
            size = 7 if unit == "week" else 1
            self.days = _fit(self.days + _fit(_fit(value, _INT32) * size, _INT32), _INT32)
            self._add_days(fraction, size)
        elif unit == "month":
            self.months = _fit(self.months + _fit(value, _INT32), _INT32)
            self._add_days(fraction, 30)
        else:
            self.years = _fit(self.years + _fit(_fit(value, _INT32) * _YEARS[unit], _INT32), _INT32)
            self.months = _fit(self.months + round(fraction * _YEARS[unit] * 12), _INT32)

    def _add_days(self, fraction: float, size: int) -> None:
        days = int(fraction * size)
        self.days = _fit(self.days + days, _INT32)
        self._add_micros(fraction * size - days, _DAY)

    def _add_micros(self, fraction: float, size: int) -> None:
        """Add a part of microseconds; half a microsecond is none."""
        scaled = fraction * size
        whole = int(scaled)
        self.micros = _fit(self.micros + whole + (scaled - whole > 0.5) - (scaled - whole < -0.5), _INT64)


def _fit(value: int, allowed: range) -> int:
    if value not in allowed:
        raise Failure("field")
    return value


def _decoded(fields: list[tuple[str, str]], of_type: str) -> Interval:
    """Return the sum of fields, which are read backwards, because a unit stands behind its number (DecodeInterval)."""
    default = of_type.rpartition(" ")[2] or "second"
    total, known, unit, is_before = _Sum(), set[str](), "", False
    for kind, field in reversed(fields):
        if kind in ("string", "special"):
            if field == "@":
                continue
            if field == "ago":
                is_before, unit = True, field
                continue
            if (unit := UNITS.get(field[:_LONGEST_WORD], "")) == "":
                raise Failure("format")
            continue
        clock = _clock(field, kind, of_type == "minute to second")
        if clock is not None:
            total.micros, told, unit = clock, _CLOCK, "day"
        else:
            told, unit = _number(field, unit or default, total)
        if told & known:
            raise Failure("format")
        known |= told
    if not known:
        raise Failure("format")
    found = total.interval
    return Interval(-found.months, -found.days, -found.micros) if is_before else found


def _clock(field: str, kind: str, ends_in_seconds: bool) -> int | None:
    """Return the microseconds of a time such as 1:30 or -1:30:05; None of another field (DecodeTimeForInterval)."""
    if kind != "time" and not (kind == "tz" and ":" in field):
        return None
    try:
        micros = _time(field[field[0] in "+-" :], ends_in_seconds)
        return -micros if field[0] == "-" else micros
    except Failure:
        if kind == "time":
            raise
        return None


def _time(text: str, ends_in_seconds: bool) -> int:
    match = re.fullmatch(r"([0-9]+):([0-9]*)(?::([0-9]*))?(\.[0-9]*)?", text)
    if match is None:
        raise Failure("format")
    hour, minute, second = int(match[1]), int(match[2] or 0), int(match[3] or 0)
    if match[3] is None and (match[4] is not None or ends_in_seconds):  # mm:ss.fraction
        hour, minute, second = 0, hour, minute
    micros = round(float(f"0{match[4]}") * 1e6) if match[4] is not None else 0
    if minute > 59 or second > 60:
        raise Failure("field")
    return _fit(hour * _HOUR + minute * _MINUTE + second * _SECOND + micros, _INT64)


def _number(field: str, unit: str, total: _Sum) -> tuple[frozenset[str], str]:
    """Add a number of a unit, or SQL's years-months. Returns the told fields, and the unit of the next number."""
    if unit == "ago":
        raise Failure("format")
    digits = _integer(field)
    value, rest = _fit(int(digits) if digits.strip("+-") else 0, _INT64), field[len(digits) :]
    sign, fraction = -1 if field[0] == "-" else 1, 0.0
    if rest[:1] == "-":
        months = _integer(rest[1:])
        if months != rest[1:] or not 0 <= int(months or 0) < 12:
            raise Failure("format" if months != rest[1:] else "field")
        value, unit = value * 12 + sign * int(months or 0), "month"
    elif rest[:1] == ".":
        if _FRACTION.fullmatch(rest) is None:
            raise Failure("format")
        fraction = sign * float(f"0{rest}")
    elif rest:
        raise Failure("format")
    total.add(unit, value, fraction)
    told = {unit, "millisecond", "microsecond"} if unit == "second" and fraction else {unit}
    return frozenset(told), "day" if unit == "hour" else unit


def _integer(text: str) -> str:
    match = _INTEGER.match(text)
    return match[0] if match is not None else ""


# ISO 8601.


def _iso(text: str) -> Interval:
    """Return an interval such as P1Y2M3DT4H5M6S or P0001-02-03T04:05:06 (DecodeISO8601Interval)."""
    if len(text) < 2 or text[0] != "P":
        raise Failure("format")
    total, at, is_date, has_field = _Sum(), 1, True, False
    while at < len(text):
        if text[at] == "T":
            at, is_date, has_field = at + 1, False, False
            continue
        value, fraction, end = _iso_number(text, at)
        width = len(_integer(text[at:].removeprefix("-")))
        unit = text[end : end + 1]
        at = end + 1
        units = _ISO_DATE if is_date else _ISO_TIME
        if unit in units:
            total.add(units[unit], value, fraction)
            has_field = True
            continue
        if has_field or unit not in (("", "T", "-") if is_date else ("", ":")):
            raise Failure("format")
        if unit != "-" and unit != ":" and width == (8 if is_date else 6):  # without separators
            for name, part in zip(_PARTS[is_date], (value // 10000, value // 100 % 100, value % 100), strict=True):
                total.add(name, part, 0.0)
            total.add("day" if is_date else "microsecond", 0, fraction)
        else:
            end = _separated(text, at, unit, (value, fraction), total, is_date)
        if end < len(text) and text[end] != "T":
            raise Failure("format")
        at = end
    return total.interval


_ISO_DATE = {"Y": "year", "M": "month", "W": "week", "D": "day"}
_ISO_TIME = {"H": "hour", "M": "minute", "S": "second"}
_PARTS = {True: ("year", "month", "day"), False: ("hour", "minute", "second")}


def _separated(text: str, at: int, unit: str, first: tuple[int, float], total: _Sum, is_date: bool) -> int:
    """Add years, months and days, or hours, minutes and seconds, with separators between. Returns where they end."""
    first_unit, *others = _PARTS[is_date]
    total.add(first_unit, *first)
    if unit not in ("-", ":"):
        return at - 1
    separator = unit
    for place, name in enumerate(others):
        value, fraction, at = _iso_number(text, at)
        total.add(name, value, fraction)
        if text[at : at + 1] != separator or place == 1:
            return at
        at += 1
    return at


def _iso_number(text: str, at: int) -> tuple[int, float, int]:
    """Return the whole and the rest of a number, and where it ends (ParseISO8601Number)."""
    match = _ISO_NUMBER.match(text, at)
    if match is None or text[at] == "+":
        raise Failure("format")
    value = float(match[0])
    if not -1e15 <= value <= 1e15:
        raise Failure("field")
    return int(value), value - int(value), match.end()
