"""Texts of times and intervals by a pattern: to_char.

PostgreSQL 15: src/backend/utils/adt/formatting.c (DCH_to_char). This module is sent to Spark's executors
(`executor.spark.kernel`), so it imports nothing of this package but what is sent with it.
"""

from __future__ import annotations

import re
import zoneinfo
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from sparkwave.catalog.errors import INVALID_DATETIME_FORMAT, Error
from sparkwave.catalog.interval_texts import read_interval
from sparkwave.catalog.moment_texts import julian
from sparkwave.catalog.patterns import Part, ending, parts_of

_UPPER = (
    "MONTH", "SSSSS", "Y,YYY", "A.D.", "A.M.", "B.C.", "P.M.", "HH24", "HH12", "IDDD", "IYYY", "SSSS", "YYYY", "DAY",
    "DDD", "FF1", "FF2", "FF3", "FF4", "FF5", "FF6", "IYY", "MON", "TZH", "TZM", "YYY", "AD", "AM", "BC", "CC", "DD",
    "DY", "FX", "HH", "ID", "IW", "IY", "MI", "MM", "MS", "OF", "PM", "RM", "SS", "TZ", "US", "WW", "YY", "D", "I", "J",
    "Q", "W", "Y",
)  # fmt: skip
WORDS = tuple(sorted({*_UPPER, *map(str.lower, _UPPER), "Month", "Mon", "Day", "Dy"}, key=len, reverse=True))
PREFIXES, SUFFIXES = ("FM", "fm", "TM", "tm"), ("TH", "th", "SP")
MONTHS = ("January", "February", "March", "April", "May", "June", "July", "August", "September", "October", "November",
          "December")  # fmt: skip
DAYS = ("Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday")
ROMAN = ("I", "II", "III", "IV", "V", "VI", "VII", "VIII", "IX", "X", "XI", "XII")
# What an interval has not.
_OF_DATES = frozenset(("AD", "BC", "A.D.", "B.C.", "MONTH", "MON", "DAY", "DY", "D", "ID", "TZ", "TZH", "TZM", "OF"))
_TEXT = re.compile(
    r"(\d+)-(\d\d)-(\d\d)( \(BC\))?(?: (\d\d):(\d\d):(\d\d)(\.\d+)?)?(?:([+-])(\d\d)(?::(\d\d))?(?::(\d\d))?)?"
)


@dataclass(frozen=True)
class _Fields:
    """The fields of a time or an interval; `year` counts 1 BC as 0. `offset` is in seconds."""

    year: int
    month: int
    day: int
    hour: int
    minute: int
    second: int
    micros: int
    day_of_year: int
    offset: int = 0
    zone: str = ""
    is_interval: bool = False

    @property
    def shown_year(self) -> int:
        return _shown(self.year, self)


def moment_chars(text: str, type_: str, pattern: str, zone: str) -> str | None:
    """Return to_char of a time or an interval, given as DuckDB's text of a type of its. Raises Error 22007, 22P02."""
    if not pattern:
        return None
    if type_ in ("INTERVAL", "TIME"):
        fields = _interval_fields(text)
    else:
        found = _TEXT.fullmatch(text)
        if found is None:  # infinity
            return None
        fields = _moment_fields(found, zone if type_ != "TIMESTAMP" else "")
    return "".join(_written(part, fields) for part in parts_of(pattern, WORDS, PREFIXES, SUFFIXES))


def _interval_fields(text: str) -> _Fields:
    found = read_interval(text)
    sign, months, micros = (-1 if found.micros < 0 else 1), abs(found.months), abs(found.micros)
    year, month = (part if found.months >= 0 else -part for part in divmod(months, 12))
    hour, minute, second = micros // 3_600_000_000, micros // 60_000_000 % 60, micros // 1_000_000 % 60
    day_of_year = (year * 12 + month) * 30 + found.days
    hour, minute, second, micros = (sign * part for part in (hour, minute, second, micros % 1_000_000))
    return _Fields(year, month, found.days, hour, minute, second, micros, day_of_year, is_interval=True)


def _moment_fields(found: re.Match[str], zone: str) -> _Fields:
    year = int(found[1]) if found[4] is None else 1 - int(found[1])
    month, day = int(found[2]), int(found[3])
    hour, minute, second = (int(found[place] or 0) for place in (5, 6, 7))
    micros = round(float(found[8] or 0) * 1_000_000)
    day_of_year = julian(year, month, day) - julian(year, 1, 1) + 1
    offset, name = (
        _offset(found, year, timedelta(hours=hour, minutes=minute, seconds=second), zone) if zone else (0, "")
    )
    return _Fields(year, month, day, hour, minute, second, micros, day_of_year, offset, name)


def _offset(found: re.Match[str], year: int, clock: timedelta, zone: str) -> tuple[int, str]:
    """Return the offset and the abbreviation of a zone at a time; of years that Python lacks as in a near year."""
    near = year if 1 < year < 9999 else 2000 + year % 4 * 4 if year > 9998 else 1800
    day = int(found[3]) if near == year else min(int(found[3]), 28)
    local = datetime(near, int(found[2]), day) + clock
    try:
        named = zoneinfo.ZoneInfo(zone)
    except (zoneinfo.ZoneInfoNotFoundError, ValueError):
        named = None
    if found[9] is None:
        there = local.replace(tzinfo=named or UTC)
    else:
        seconds = sum(int(found[place] or 0) * unit for place, unit in ((10, 3600), (11, 60), (12, 1)))
        seconds = -seconds if found[9] == "-" else seconds
        there = (local - timedelta(seconds=seconds)).replace(tzinfo=UTC).astimezone(named or UTC)
        if named is None:
            return seconds, ""
    offset = there.utcoffset()
    return round(offset.total_seconds()) if offset is not None else 0, there.tzname() or ""


def iso_week(year: int, month: int, day: int) -> tuple[int, int]:
    """Return the year and the number of the ISO week of a date (date2isoyear, date2isoweek)."""
    this, in_year = julian(year, month, day), year
    start = iso_start(in_year)
    if this < start:
        in_year -= 1
        start = iso_start(in_year)
    elif this >= iso_start(in_year + 1):
        in_year += 1
        start = iso_start(in_year)
    return in_year, (this - start) // 7 + 1


def iso_start(year: int) -> int:
    """Return the Julian day of the Monday of a year's first ISO week."""
    fourth = julian(year, 1, 4)
    return fourth - fourth % 7


def _written(part: Part, fields: _Fields) -> str:
    """Return the text of a part of a pattern."""
    if not part.word:
        return part.text
    upper = part.word.upper()
    if fields.is_interval and upper in _OF_DATES:
        hint = "Intervals are not tied to specific calendar dates."
        raise Error("invalid format specification for an interval value", INVALID_DATETIME_FORMAT, hint=hint)
    is_filled = not part.affixes & {"FM", "fm"}
    is_wide = is_filled and (upper == "RM" or not part.affixes & {"TM", "tm"})
    if (word := _word(part.word, upper, fields, is_wide)) is not None:
        return word
    text = _number(upper, fields, is_filled)
    if text and part.affixes & {"TH", "th"} and upper not in ("TZH", "TZM", "OF", "FX"):
        text += ending(text).upper() if "TH" in part.affixes else ending(text)
    return text


def _word(word: str, upper: str, fields: _Fields, is_filled: bool) -> str | None:
    """Return the text of a part that is a word; None for a number."""
    match upper:
        case "AM" | "PM" | "A.M." | "P.M.":
            text = "PM" if _remainder(fields.hour, 24) >= 12 else "AM"
            text = f"{text[0]}.M." if "." in upper else text
        case "AD" | "BC" | "A.D." | "B.C.":
            text = "BC" if fields.year <= 0 else "AD"
            text = f"{text[0]}.{text[1]}." if "." in upper else text
        case "TZ":
            text = fields.zone
        case "MONTH" | "MON":
            name = MONTHS[fields.month - 1]
            return _cased(name, word).ljust(9 if is_filled else 0) if upper == "MONTH" else _cased(name[:3], word)
        case "DAY" | "DY":
            name = DAYS[(julian(fields.year, fields.month, fields.day) + 1) % 7]
            return _cased(name, word).ljust(9 if is_filled else 0) if upper == "DAY" else _cased(name[:3], word)
        case "RM":
            text = _roman(fields)
            text = text.ljust(4) if is_filled and text else text
        case "FX":
            return ""
        case _:
            return None
    return text if word.isupper() else text.lower()


def _cased(name: str, word: str) -> str:
    return name.upper() if word.isupper() else name.lower() if word.islower() else name


def _roman(fields: _Fields) -> str:
    if not fields.month and not fields.year:
        return ""
    if not fields.month:
        return ROMAN[11 if fields.year >= 0 else 0]
    return ROMAN[fields.month - 1] if fields.month > 0 else ROMAN[12 + fields.month]


def _remainder(value: int, by: int) -> int:
    """Return the remainder as in C, with the sign of the value."""
    return abs(value) % by * (-1 if value < 0 else 1)


def _quotient(value: int, by: int) -> int:
    return abs(value) // by * (-1 if value < 0 else 1)


def _padded(number: int, width: int, signed: int, is_filled: bool) -> str:
    """Return a number with zeros up to a width, which is one more where `signed` is negative, C's %0*d."""
    return f"{number:0{width + (signed < 0)}d}" if is_filled else str(number)


_CLOCK = {"MI": "minute", "SS": "second"}
_YEARS = {"YYYY": (4, 0), "YYY": (3, 1000), "YY": (2, 100), "Y": (1, 10)}


def _shown(year: int, fields: _Fields) -> int:
    return year if fields.is_interval or year > 0 else 1 - year


def _number(word: str, fields: _Fields, is_filled: bool) -> str:
    """Return the number of a part, with zeros unless FM is before it."""
    hour, micros = fields.hour, fields.micros
    match word:
        case "HH" | "HH12":
            return _padded(_remainder(hour, 12) or 12, 2, hour, is_filled)
        case "HH24":
            return _padded(hour, 2, hour, is_filled)
        case "MI" | "SS":
            value = getattr(fields, _CLOCK[word])
            return _padded(value, 2, value, is_filled)
        case "MS" | "US" | "FF1" | "FF2" | "FF3" | "FF4" | "FF5" | "FF6":
            width = {"MS": 3, "US": 6}.get(word) or int(word[2])
            return f"{_quotient(micros, 10 ** (6 - width)):0{width}d}"
        case "SSSS" | "SSSSS":
            return str(hour * 3600 + fields.minute * 60 + fields.second)
        case "TZH" | "TZM" | "OF":
            return _zone(word, fields.offset, is_filled)
        case "MM":
            return _padded(fields.month, 2, fields.month, is_filled)
        case "DD":
            return _padded(fields.day, 2, 0, is_filled)
        case "Q":
            return str(_quotient(fields.month - 1, 3) + 1) if fields.month else ""
        case "W":
            return str(_quotient(fields.day - 1, 7) + 1)
        case "WW":
            return _padded(_quotient(fields.day_of_year - 1, 7) + 1, 2, 0, is_filled)
        case "DDD":
            return _padded(fields.day_of_year, 3, 0, is_filled)
        case "Y,YYY":
            thousands = _quotient(fields.shown_year, 1000)
            return f"{thousands},{fields.shown_year - thousands * 1000:03d}"
        case "CC":
            return _century(fields, is_filled)
    return _of_weeks(word, fields, is_filled)


def _of_weeks(word: str, fields: _Fields, is_filled: bool) -> str:
    day = julian(fields.year, fields.month, fields.day)
    year, week = iso_week(fields.year, fields.month, fields.day)
    match word:
        case "D":
            return str((day + 1) % 7 + 1)
        case "ID":
            return str((day + 1) % 7 or 7)
        case "J":
            return str(day)
        case "IW":
            return _padded(week, 2, 0, is_filled)
        case "IDDD":
            return _padded(day - iso_start(year) + 1, 3, 0, is_filled)
    shown = _shown(year, fields) if word.startswith("I") else fields.shown_year
    width, by = _YEARS[word.replace("I", "Y", 1)]
    shown = _remainder(shown, by) if by else shown
    return _padded(shown, width, fields.shown_year if width > 1 else 0, is_filled)


def _zone(word: str, offset: int, is_filled: bool) -> str:
    sign, hours, minutes = "-" if offset < 0 else "+", abs(offset) // 3600, abs(offset) % 3600 // 60
    if word == "TZM":
        return f"{minutes:02d}"
    if word == "TZH":
        return f"{sign}{hours:02d}"
    behind = f":{minutes:02d}" if abs(offset) % 3600 else ""
    return f"{sign}{hours:0{2 if is_filled else 1}d}{behind}"


def _century(fields: _Fields, is_filled: bool) -> str:
    if fields.is_interval:
        found = _quotient(fields.year, 100)
    else:
        found = (fields.year - 1) // 100 + 1 if fields.year > 0 else _quotient(fields.year, 100) - 1
    return _padded(found, 2, found, is_filled) if -99 <= found <= 99 else str(found)
