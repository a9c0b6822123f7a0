"""Prints dates, timestamps and intervals in the styles of DateStyle and IntervalStyle.

Sources: `EncodeDateOnly`, `EncodeDateTime` and `EncodeInterval` in PostgreSQL's src/backend/utils/adt/datetime.c.
"""

from __future__ import annotations

import datetime
import re
from collections.abc import Callable

_DAY = r"(?P<year>\d{4,})-(?P<month>\d\d)-(?P<day>\d\d)"
_CLOCK = r"(?P<clock>\d\d:\d\d:\d\d(?:\.\d+)?)"
_ISO_DATE = re.compile(rf"{_DAY}(?P<era> BC)?")
_ISO_MOMENT = re.compile(rf"{_DAY} {_CLOCK}(?:[+-][\d:]+)?(?P<era> BC)?")


def styled_date(iso: str, style: str, order: str) -> str:
    """Convert a date from ISO style to the style SQL, Postgres or German; infinity stays as it is."""
    match = _ISO_DATE.fullmatch(iso)
    return iso if match is None else _numbers(match, style, order) + (match["era"] or "")


def styled_moment(iso: str, style: str, order: str, zone: str | None) -> str:
    """Convert a timestamp from ISO style to another style.

    `zone` is the time zone's abbreviation at that moment, None for a timestamp without time zone.
    """
    match = _ISO_MOMENT.fullmatch(iso)
    if match is None:
        return iso
    ending = ("" if zone is None else f" {zone}") + (match["era"] or "")
    if style != "Postgres":
        return f"{_numbers(match, style, order)} {match['clock']}{ending}"
    month, day = _MONTHS[int(match["month"]) - 1], match["day"]
    middle = f"{day} {month}" if order == "DMY" else f"{month} {day}"
    return f"{_weekday(match)} {middle} {match['clock']} {match['year']}{ending}"


def _numbers(match: re.Match[str], style: str, order: str) -> str:
    year, month, day = match["year"], match["month"], match["day"]
    first, second = (day, month) if order == "DMY" or style == "German" else (month, day)
    return _SEPARATORS[style].join((first, second, year))


_SEPARATORS = {"SQL": "/", "Postgres": "-", "German": "."}
_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
_WEEKDAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")


def _weekday(match: re.Match[str]) -> str:
    """Return the weekday of a date.

    The calendar repeats every 400 years, so a year beyond the range of Python's dates is replaced by one within it.
    """
    year = 1 - int(match["year"]) if match["era"] else int(match["year"])
    return _WEEKDAYS[datetime.date(2000 + year % 400, int(match["month"]), int(match["day"])).weekday()]


# Intervals: months, days and microseconds, each with its own sign.


def interval_text(months: int, days: int, micros: int) -> str:
    """Print an interval in IntervalStyle postgres, e.g. `1 year 2 mons -3 days +04:05:06.7`."""
    parts: list[str] = []
    negative = False
    for value, unit in zip((*_years(months), days), ("year", "mon", "day"), strict=True):
        if value:
            parts.append(f"{'+' if negative and value > 0 else ''}{value} {unit}{'' if value == 1 else 's'}")
            negative = value < 0
    if micros or not parts:
        sign = "-" if micros < 0 else "+" if negative else ""
        parts.append(sign + clock_text(abs(micros)))
    return " ".join(parts)


def clock_text(micros: int) -> str:
    """Print `HH:MM:SS[.ffffff]` without trailing zeros; hours may exceed 24."""
    hours, minutes, seconds, fraction = _clock(micros)
    text = f"{hours:02}:{minutes:02}:{seconds:02}"
    return f"{text}.{fraction:06}".rstrip("0") if fraction else text


def _verbose(months: int, days: int, micros: int) -> str:
    """Return the text of an interval in the style postgres_verbose, e.g.

    `@ 1 year 2 mons -3 days 4 hours ago`: `ago` reverses all signs if the first unit is negative.
    """
    sign = next((-1 if value < 0 else 1 for value in (months, days, micros) if value), 1)
    hours, minutes, seconds, fraction = (sign * (-part if micros < 0 else part) for part in _clock(abs(micros)))
    years, rest = _years(months)
    units = (("year", years), ("mon", rest), ("day", days))
    text = [f" {sign * value} {unit}{'' if sign * value == 1 else 's'}" for unit, value in units if value]
    text += [f" {n} {unit}{'' if n == 1 else 's'}" for unit, n in (("hour", hours), ("min", minutes)) if n]
    if seconds or fraction:
        minus = "-" if seconds < 0 or fraction < 0 else ""
        text.append(f" {minus}{_seconds(seconds, fraction)} sec{'' if abs(seconds) == 1 and not fraction else 's'}")
    return "@" + ("".join(text) or " 0") + (" ago" if sign < 0 else "")


def _sql_standard(months: int, days: int, micros: int) -> str:
    """Return an interval in the style sql_standard, e.g. `1-2`; mixed units or signs print a sign for each part."""
    values = [value for value in (months, days, micros) if value]
    if not values:
        return "0"
    has_one_sign = min(values) > 0 or max(values) < 0
    hours, minutes, seconds, fraction = _clock(abs(micros))
    clock = f"{hours}:{minutes:02}:{_seconds(seconds, fraction, width=2)}"
    years, rest = map(abs, _years(months))
    if not has_one_sign or (months and (days or micros)):
        signs = ["-" if value < 0 else "+" for value in (months, days, micros)]
        return f"{signs[0]}{years}-{rest} {signs[1]}{abs(days)} {signs[2]}{clock}"
    sign = "-" if values[0] < 0 else ""
    if months:
        return f"{sign}{years}-{rest}"
    return f"{sign}{abs(days)} {clock}" if days else sign + clock


def _iso_8601(months: int, days: int, micros: int) -> str:
    """Return an interval in the style iso_8601, e.g. `P1Y2M-3DT4H5M6.7S`."""
    sign = -1 if micros < 0 else 1
    hours, minutes, seconds, fraction = _clock(abs(micros))
    years, rest = _years(months)
    day = "".join(f"{value}{unit}" for value, unit in ((years, "Y"), (rest, "M"), (days, "D")) if value)
    clock = "".join(f"{sign * value}{unit}" for value, unit in ((hours, "H"), (minutes, "M")) if value)
    if seconds or fraction:
        clock += f"{'-' if sign < 0 else ''}{_seconds(seconds, fraction)}S"
    if not day and not clock:
        return "PT0S"
    return f"P{day}" + (f"T{clock}" if clock else "")


def _years(months: int) -> tuple[int, int]:
    """Return years and months, both with the sign of `months`."""
    years, rest = divmod(abs(months), 12)
    return (-years, -rest) if months < 0 else (years, rest)


def _clock(micros: int) -> tuple[int, int, int, int]:
    """Return hours, minutes, seconds and microseconds of a duration that is not negative."""
    seconds, fraction = divmod(micros, 1_000_000)
    return seconds // 3600, seconds // 60 % 60, seconds % 60, fraction


def _seconds(seconds: int, fraction: int, width: int = 1) -> str:
    text = f"{abs(seconds):0{width}}"
    return f"{text}.{abs(fraction):06}".rstrip("0") if fraction else text


INTERVAL_STYLES: dict[str, Callable[[int, int, int], str]] = {
    "postgres": interval_text,
    "postgres_verbose": _verbose,
    "sql_standard": _sql_standard,
    "iso_8601": _iso_8601,
}
