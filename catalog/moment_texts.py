"""Reads dates and times from text in all forms that PostgreSQL reads (ParseDateTime and DecodeDateTime in datetime.c).

The order of day, month and year in a text such as `01/02/03` is DateStyle's: MDY, DMY or YMD. This module is sent to
Spark's executors (`executor.spark.kernel`), so it imports nothing of this package but what is sent with it.
"""

from __future__ import annotations

import string
import zoneinfo
from calendar import monthrange
from dataclasses import dataclass, field
from datetime import datetime

from sparkwave.catalog.errors import (
    DATETIME_FIELD_OVERFLOW,
    INVALID_DATETIME_FORMAT,
    INVALID_PARAMETER_VALUE,
    INVALID_TIME_ZONE_DISPLACEMENT_VALUE,
    Error,
)
from sparkwave.catalog.moment_words import (
    CHANGING,
    DAYLIGHT,
    ENDLESS,
    MONTHS,
    NO_WORDS,
    RELATIVE,
    STANDARD,
    UNITS,
    WEEKDAYS,
)

MDY = "MDY"  # the order of DateStyle's default
_DAY = 86_400_000_000  # microseconds
_JULIAN_EPOCH = 2451545  # 2000-01-01
_LAST_DATE = 2147483494  # the Julian day after the last date
_TIMESTAMPS = range(-211813488000000000, 9223371331200000000)  # microseconds since 2000-01-01
_DIGITS, _LETTERS = frozenset(string.digits), frozenset(string.ascii_letters)
_ALNUM, _SPACES, _PUNCTUATION = _DIGITS | _LETTERS, frozenset(" \t\n\v\f\r"), frozenset(string.punctuation)
_MOST_FIELDS, _MOST_CHARACTERS = 25, 128
_ZONES: dict[str, str] = {}  # the names of zones, by their small letters; filled by the first use
_YMD = frozenset({"year", "month", "day"})
_HMS = frozenset({"hour", "minute", "second"})
_EPOCHS = {"date": "1970-01-01", "timestamp with time zone": "1970-01-01 00:00:00+00:00"}
_NAMES = {
    "timestamp without time zone": "timestamp",
    "time without time zone": "time",
}


@dataclass(frozen=True)
class Moment:
    """What a text says: `word` (epoch, infinity, now, today, ..) or the Julian `day`, with `micros` since midnight.

    `offset` is in seconds east of Greenwich, None without a zone. Of a relative day (`tomorrow 04:05`) the word has the
    day, and the other fields the time.
    """

    day: int = 0
    micros: int = 0
    offset: int | None = None
    word: str | None = None


class Failure(Exception):
    """A text of a bad `format`, with a `field` out of range (perhaps in this `order`), or with a bad `zone`."""


@dataclass
class _Parts:
    """What the fields of a text have told so far; `known` are the names of the fields, as in PostgreSQL's fmask."""

    order: str
    known: set[str] = field(default_factory=set)
    year: int = 0
    month: int = 0
    day: int = 0
    day_of_year: int = 0
    hour: int = 0
    minute: int = 0
    second: int = 0
    micros: int = 0
    has_text_month: bool = False
    is_julian: bool = False
    is_short_year: bool = False
    is_bc: bool = False
    half: str | None = None  # am or pm
    offset: int = 0
    zone: str | None = None  # a name, whose offset depends on the moment
    word: str | None = None


def read_moment(text: str, type_: str, order: str = MDY) -> Moment:
    """Return what a text of a type (a name such as `timestamp with time zone`) says.

    Raises Error 22007, 22008 for a field that is out of range, 22009 for an offset, 22023 for an unknown zone.
    """
    name = _NAMES.get(type_, type_)
    try:
        fields = split_fields(text)
        return _time(fields, order) if name == "time" else _moment(fields, order, name, text)
    except Failure as failure:
        raise _error(str(failure), text, name) from None


def no_moment(text: str, type_: str) -> Error:
    """Return Error 22007 of a text that is no date or time of a type."""
    return Error(f'invalid input syntax for type {_NAMES.get(type_, type_)}: "{text}"', INVALID_DATETIME_FORMAT)


def _error(kind: str, text: str, type_: str) -> Error:
    if kind == "format":
        return no_moment(text, type_)
    if kind == "zone":
        message = f'time zone displacement out of range: "{text}"'
        return Error(message, INVALID_TIME_ZONE_DISPLACEMENT_VALUE)
    hint = 'Perhaps you need a different "datestyle" setting.' if kind == "order" else None
    return Error(f'date/time field value out of range: "{text}"', DATETIME_FIELD_OVERFLOW, hint=hint)


# Fields.


def split_fields(text: str) -> list[tuple[str, str]]:
    """Return the fields of a text with their kinds: date, time, number, string, special or tz (ParseDateTime)."""
    found: list[tuple[str, str]] = []
    at, end = 0, len(text)
    if any(len(word) > _MOST_CHARACTERS for word in text.split()):
        raise Failure("format")

    def run(start: int, characters: frozenset[str]) -> int:
        while start < end and text[start] in characters:
            start += 1
        return start

    while at < end:
        start, first = at, text[at]
        following = ""
        if first in _SPACES:
            at += 1
            continue
        if len(found) >= _MOST_FIELDS:
            raise Failure("format")
        if first in _DIGITS:
            at = run(at, _DIGITS)
            following = text[at : at + 1]
            kind = "number"
            if following == ":":
                at, kind = run(at, _DIGITS | {":", "."}), "time"
            elif following and following in "-/.":
                at += 1
                if text[at : at + 1] in _DIGITS:
                    at = run(at, _DIGITS)
                    kind = "number" if following == "." else "date"
                    if text[at : at + 1] == following:
                        at, kind = run(at, _DIGITS | {following}), "date"
                else:
                    at, kind = run(at, _ALNUM | {following}), "date"
        elif first == ".":
            at, kind = run(at + 1, _DIGITS), "number"
        elif first in _LETTERS:
            at, kind = run(at, _LETTERS), "string"
            following = text[at : at + 1]
            if (following and following in "-/.") or (
                (following == "+" or following in _DIGITS) and not _is_token(text[start:at].lower())
            ):
                at, kind = run(at, _ALNUM | frozenset("+-/_.:")), "date"
        elif first in "+-":
            at = run(at + 1, _SPACES)
            body, following = at, text[at : at + 1]
            if following in _DIGITS:
                at, kind = run(at, _DIGITS | frozenset(":.-")), "tz"
            elif following in _LETTERS:
                at, kind = run(at, _LETTERS), "special"
            else:
                raise Failure("format")
            found.append((kind, first + text[body:at].lower()))
            continue
        elif first in _PUNCTUATION:
            at += 1
            continue
        else:
            raise Failure("format")
        found.append((kind, text[start:at].lower()))
    return found


def _is_token(word: str) -> bool:
    words = (MONTHS, WEEKDAYS, UNITS, NO_WORDS, RELATIVE, ENDLESS)
    return any(word in each for each in words) or word in ("t", "ad", "bc", "am", "pm", "allballs", "dst")


def _number(text: str) -> tuple[int, str]:
    """Return the leading integer of a text, 0 without one, and the rest."""
    digits = len(text) - len(text.lstrip(string.digits))
    value = int(text[:digits] or 0)
    if value >= 2**31:
        raise Failure("field")
    return value, text[digits:]


def _fraction(text: str) -> int:
    """Return the microseconds of `.123`."""
    if set(text[1:]) - _DIGITS:
        raise Failure("format")
    return round(float(f"0{text}") * 1_000_000)


def _take(parts: _Parts, told: set[str]) -> None:
    if told & parts.known:
        raise Failure("format")
    parts.known |= told


# Dates and timestamps.


def _moment(fields: list[tuple[str, str]], order: str, type_: str, text: str) -> Moment:
    """Return a date or timestamp (DecodeDateTime, and the checks of date_in and timestamp_in)."""
    parts = _Parts(order)
    prefix = ""
    for place, (kind, value) in enumerate(fields):
        if kind in ("string", "special"):
            prefix = _prefix(parts, fields, place) or prefix
            if prefix == "time" and not parts.known >= _YMD:
                raise Failure("format")
            continue
        if kind == "tz":
            told_set = _zone_field(parts, value)
        elif kind == "time":
            if prefix not in ("", "time"):
                raise Failure("format")
            prefix = ""
            told_set = _clock(parts, value)
            _check_clock(parts)
        elif kind == "date":
            told_set = _date_field(parts, value, prefix)
            prefix = ""
        elif prefix:
            told_set = _prefixed(parts, value, prefix)
            prefix = ""
        else:
            told_set = _number_field(parts, value)
        _take(parts, told_set)
    _finish(parts)
    return _made(parts, type_, text)


def _date_field(parts: _Parts, value: str, prefix: str) -> set[str]:
    if prefix == "julian":
        day, rest = _number(value)
        _set_julian(parts, day)
        parts.offset = _zone_offset(rest)
        return {*_YMD, *_HMS, "zone"}
    if not prefix and not parts.known >= {"month", "day"}:
        return _date(parts, value)
    if value[0] in _DIGITS or prefix:
        if prefix not in ("", "time"):
            raise Failure("format")
        return _clock_with_zone(parts, value, parts.known)
    return _zone_field(parts, value)


def _prefix(parts: _Parts, fields: list[tuple[str, str]], place: int) -> str:
    """Note what the word at a place says; a prefix is returned, and `T` needs a time behind it."""
    told = _word(parts, fields[place][1])
    following = fields[place + 1][0] if place + 1 < len(fields) else ""
    if told == "time" and following not in ("number", "time", "date"):
        raise Failure("format")
    return told


def _zone_field(parts: _Parts, value: str) -> set[str]:
    """Read an offset, or a zone's name."""
    if value[0] in "+-":
        parts.offset = _zone_offset(value)
    else:
        parts.zone = _zone(value)
    return {"zone"}


def _clock_with_zone(parts: _Parts, value: str, known: set[str]) -> set[str]:
    """Read `hhmmss-zz`."""
    digits, minus, zone = value.partition("-")
    if parts.known >= _HMS or not minus:
        raise Failure("format")
    parts.offset = _zone_offset(minus + zone)
    return _run_together(parts, digits, known) | {"zone"}


def _prefixed(parts: _Parts, value: str, prefix: str) -> set[str]:
    """Read a number after `J` (a Julian day) or `T` (a time)."""
    number, rest = _number(value)
    if rest[:1] not in ("", "."):
        raise Failure("format")
    if prefix == "julian":
        _set_julian(parts, number)
        if not rest:
            return set(_YMD)
        micros = int(float(f"0{rest}") * _DAY)
        parts.hour, micros = divmod(micros, 3_600_000_000)
        parts.minute, micros = divmod(micros, 60_000_000)
        parts.second, parts.micros = divmod(micros, 1_000_000)
        return {*_YMD, *_HMS}
    told = _run_together(parts, value, parts.known | _YMD) if prefix == "time" else set()
    if told != _HMS:
        raise Failure("format")
    return told


def _number_field(parts: _Parts, value: str) -> set[str]:
    whole, point, _ = value.partition(".")
    if point and not parts.known & _YMD:
        return _date(parts, value)
    if point and len(whole) > 2:
        return _run_together(parts, value, parts.known)
    if not point and len(value) >= 6 and not (parts.known & _YMD and parts.known & _HMS):
        return _run_together(parts, value, parts.known)
    return _single(parts, value, parts.known, parts.has_text_month)


def _date(parts: _Parts, text: str) -> set[str]:
    """Read a date with separators (DecodeDate)."""
    pieces: list[str] = []
    at = 0
    while at < len(text):
        while at < len(text) and text[at] not in _ALNUM:
            at += 1
        if at == len(text):
            raise Failure("format")
        start, same = at, _DIGITS if text[at] in _DIGITS else _LETTERS
        while at < len(text) and text[at] in same:
            at += 1
        pieces.append(text[start:at])
        at += 1  # as PostgreSQL does, whatever it is
    known, told = set(parts.known), set[str]()
    has_month = False
    numbers = []
    for piece in pieces:
        if piece[0] in _DIGITS:
            numbers.append(piece)
        elif piece not in NO_WORDS:
            if piece not in MONTHS or "month" in known:
                raise Failure("format")
            parts.month, has_month = MONTHS[piece], True
            known.add("month")
            told.add("month")
    for piece in numbers:
        found = _single(parts, piece, known, has_month)
        if found & known:
            raise Failure("format")
        known |= found
        told |= found
    if known - {"day of year", "zone"} != _YMD:
        raise Failure("format")
    return told


def _single(parts: _Parts, text: str, known: set[str], has_text_month: bool) -> set[str]:
    """Read a number whose meaning depends on what is known (DecodeNumber)."""
    value, rest = _number(text)
    if len(rest) == len(text):
        raise Failure("format")
    if rest.startswith("."):
        if len(text) - len(rest) > 2:
            return _run_together(parts, text, known | _YMD)
        parts.micros = _fraction(rest)
    elif rest:
        raise Failure("format")
    days = known & _YMD
    if len(text) == 3 and days == {"year"} and 1 <= value <= 366:
        parts.day_of_year = value
        return {"day of year", "month", "day"}
    if days == _YMD:
        return _run_together(parts, text, known)
    is_year = len(text) >= 3 or parts.order == "YMD"
    if not days:
        what = "year" if is_year else "day" if parts.order == "DMY" else "month"
    elif days == {"year"} or days == {"day"}:
        what = "month"
    elif days == {"month"}:
        what = "year" if has_text_month and is_year else "day"
    elif days == {"month", "year"}:
        what = "day"
        if has_text_month and len(text) >= 3 and parts.is_short_year:  # the first number was the day
            parts.day, parts.year, parts.is_short_year = parts.year, value, False
            return {"day"}
    elif days == {"month", "day"}:
        what = "year"
    else:
        raise Failure("format")
    setattr(parts, what, value)
    if what == "year":
        parts.is_short_year = len(text) <= 2
    return {what}


def _run_together(parts: _Parts, text: str, known: set[str]) -> set[str]:
    """Read `yyyymmdd`, `hhmmss` or `hhmm` (DecodeNumberField)."""
    digits, point, _ = text.partition(".")
    if point:
        parts.micros = round(float(f"0{text[len(digits) :]}") * 1_000_000)
    elif not known >= _YMD and len(digits) >= 6:
        parts.year, parts.month, parts.day = int(digits[:-4]), int(digits[-4:-2]), int(digits[-2:])
        parts.is_short_year = parts.is_short_year or len(digits) == 6
        return set(_YMD)
    if not known >= _HMS and len(digits) in (4, 6):
        parts.hour, parts.minute, parts.second = int(digits[:2]), int(digits[2:4]), int(digits[4:] or 0)
        return set(_HMS)
    raise Failure("format")


def _clock(parts: _Parts, text: str) -> set[str]:
    """Read `hh:mm`, `hh:mm:ss.ffffff` or `mm:ss.ffffff` (DecodeTime)."""
    hour, rest = _number(text)
    minute, rest = _number(rest[1:])
    second = micros = 0
    if rest.startswith("."):
        hour, minute, second, micros = 0, hour, minute, _fraction(rest)
    elif rest:
        second, rest = _number(rest[1:])
        if rest and rest[0] != ".":
            raise Failure("format")
        micros = _fraction(rest) if rest else 0
    if minute > 59 or second > 60:
        raise Failure("field")
    parts.hour, parts.minute, parts.second, parts.micros = hour, minute, second, micros
    return set(_HMS)


def _check_clock(parts: _Parts) -> None:
    if parts.minute > 59 or parts.second > 60 or not 0 <= _micros(parts) <= _DAY:
        raise Failure("field")


def _micros(parts: _Parts) -> int:
    return ((parts.hour * 60 + parts.minute) * 60 + parts.second) * 1_000_000 + parts.micros


def _word(parts: _Parts, word: str) -> str:
    """Note what a word says, except a prefix of the next field, which is returned."""
    told: set[str] = set()
    if word in STANDARD:
        parts.offset, told = STANDARD[word] * 60, {"zone"}
    elif word in DAYLIGHT:
        parts.offset, told = DAYLIGHT[word] * 60, {"zone", "daylight"}
    elif word in CHANGING:
        parts.zone, told = _zone(CHANGING[word]), {"zone"}
    elif word in MONTHS:
        if parts.known & {"month", "day"} == {"month"} and not parts.has_text_month and 1 <= parts.month <= 31:
            parts.day, told = parts.month, {"day"}  # the number was no month
        else:
            told = {"month"}
        parts.has_text_month, parts.month = True, MONTHS[word]
    elif word in UNITS:
        return UNITS[word]
    elif word == "t":
        return "time"
    elif word == "dst":
        parts.offset, told = parts.offset + 3600, {"dst", "daylight"}
    elif word in ("am", "pm"):
        parts.half, told = word, {"half"}
    elif word in ("ad", "bc"):
        parts.is_bc, told = word == "bc", {"era"}
    elif word in WEEKDAYS:
        told = {"weekday"}
    elif word == "now" or word in ENDLESS:
        parts.word, told = word, {*_YMD, *_HMS, "zone"}
    elif word in RELATIVE:
        parts.word, told = word, set(_YMD)
    elif word == "allballs":
        parts.hour = parts.minute = parts.second = parts.offset = 0
        told = {*_HMS, "zone"}
    elif word not in NO_WORDS:
        parts.zone, told = _zone(word, "format"), {"zone"}
    _take(parts, told)
    return ""


def _finish(parts: _Parts) -> None:
    """Check and complete the fields (ValidateDate, and what follows it)."""
    if "year" in parts.known and not parts.is_julian and parts.word is None:
        if parts.is_bc or not parts.is_short_year:
            if parts.year <= 0:
                raise Failure("field")
            parts.year = 1 - parts.year if parts.is_bc else parts.year
        else:
            parts.year += 2000 if parts.year < 70 else 1900
    if parts.word is None:
        if "day of year" in parts.known:
            parts.year, parts.month, parts.day = of_julian(julian(parts.year, 1, 1) + parts.day_of_year - 1)
        if ("month" in parts.known and not 1 <= parts.month <= 12) or (
            "day" in parts.known and not 1 <= parts.day <= 31
        ):
            raise Failure("order")
        if parts.known >= _YMD and parts.day > monthrange(2000 + parts.year % 400, parts.month)[1]:
            raise Failure("field")
    if parts.half is not None and parts.hour > 12:
        raise Failure("field")
    if parts.half is not None:
        parts.hour = parts.hour % 12 + (12 if parts.half == "pm" else 0)


def _made(parts: _Parts, type_: str, text: str) -> Moment:
    if parts.word in ENDLESS:
        return Moment(word=parts.word)
    if not parts.known >= _YMD:
        raise Failure("format")
    if "dst" in parts.known and (parts.zone is not None or "zone" not in parts.known):
        raise Failure("format")
    if parts.word is not None:
        return Moment(0, _micros(parts), parts.offset if "zone" in parts.known else None, parts.word)
    day = julian(parts.year, parts.month, parts.day)
    offset = _offset_at(parts.zone, day, _micros(parts)) if parts.zone is not None else parts.offset
    moment = Moment(day, _micros(parts), offset if "zone" in parts.known else None)
    if type_ == "date":
        if not 0 <= day < _LAST_DATE:
            raise Error(f'date out of range: "{text}"', DATETIME_FIELD_OVERFLOW)
        return moment
    shift = offset * 1_000_000 if type_ == "timestamp with time zone" and moment.offset is not None else 0
    if (day - _JULIAN_EPOCH) * _DAY + moment.micros - shift not in _TIMESTAMPS:
        raise Error(f'timestamp out of range: "{text}"', DATETIME_FIELD_OVERFLOW)
    return moment


# Times of day.


def _time(fields: list[tuple[str, str]], order: str) -> Moment:
    """Return a time of day, which may follow a date (DecodeTimeOnly)."""
    parts = _Parts(order)
    prefix = ""
    last = fields[-1][0] if fields else ""
    for place, (kind, value) in enumerate(fields):
        is_first = place == 0 and len(fields) >= 2
        if kind in ("string", "special"):
            if value in MONTHS or value in WEEKDAYS or value in ENDLESS or value in RELATIVE - {"now"}:
                raise Failure("format")
            if value == "now":
                _take(parts, set(_HMS))
                parts.word = value
                continue
            prefix = _prefix(parts, fields, place) or prefix
            continue
        if kind == "tz":
            told_set = _zone_field(parts, value)
        elif kind == "time":
            told_set = _clock(parts, value)
        elif kind == "date":
            if is_first and (last == "date" or fields[1][0] == "time"):
                told_set = _date(parts, value)
            elif value[0] in _DIGITS:
                told_set = _clock_with_zone(parts, value, parts.known | _YMD)
            else:
                told_set = _zone_field(parts, value)
        elif prefix:
            told_set = _prefixed(parts, value, prefix)
            prefix = ""
        else:
            told_set = _time_number(parts, value, is_first and last == "date")
        _take(parts, told_set)
    _finish(parts)
    _check_clock(parts)
    if not parts.known >= _HMS:
        raise Failure("format")
    is_undated = parts.zone is not None and not parts.known >= _YMD and _is_changing(parts.zone)
    if is_undated or ("dst" in parts.known and (parts.zone is not None or "zone" not in parts.known)):
        raise Failure("format")
    return Moment(0, _micros(parts), None, parts.word)


def _time_number(parts: _Parts, value: str, may_be_date: bool) -> set[str]:
    whole, point, _ = value.partition(".")
    if point and may_be_date:
        return _date(parts, value)
    if (point and len(whole) > 2) or (not point and len(value) > 4):
        return _run_together(parts, value, parts.known | _YMD)
    if point:
        raise Failure("format")
    return _single(parts, value, parts.known | _YMD, has_text_month=False)


# Days and zones.


def julian(year: int, month: int, day: int) -> int:
    """Return the Julian day (date2j)."""
    year, month = (year + 4800, month + 1) if month > 2 else (year + 4799, month + 13)
    return year * 365 - 32167 + year // 4 - year // 100 + year // 400 + 7834 * month // 256 + day


def of_julian(day: int) -> tuple[int, int, int]:
    """Return year (0 is 1 BC), month and day of a Julian day (j2date)."""
    julian = day + 32044
    quad, rest = divmod(julian, 146097)
    extra = rest * 4 + 3
    julian += 60 + quad * 3 + extra // 146097
    quad, julian = divmod(julian, 1461)
    y = julian * 4 // 1461
    julian = ((julian + 305) % 365 if y else (julian + 306) % 366) + 123
    month_quad = julian * 2141 // 65536
    return y + quad * 4 - 4800, (month_quad + 10) % 12 + 1, julian - 7834 * month_quad // 256


def _set_julian(parts: _Parts, day: int) -> None:
    parts.year, parts.month, parts.day = of_julian(day)
    parts.is_julian = True


def _zone_offset(text: str) -> int:
    """Return the seconds east of `+hh`, `-hhmm` or `+hh:mm:ss` (DecodeTimezone)."""
    if text[:1] not in ("+", "-"):
        raise Failure("format")
    hour, rest = _number(text[1:])
    minute = second = 0
    if rest.startswith(":"):
        minute, rest = _number(rest[1:])
        if rest.startswith(":"):
            second, rest = _number(rest[1:])
    elif not rest and len(text) > 3:
        hour, minute = divmod(hour, 100)
    if hour > 15 or minute > 59 or second > 59:
        raise Failure("zone")
    if rest:
        raise Failure("format")
    east = (hour * 60 + minute) * 60 + second
    return -east if text[0] == "-" else east


def _zones() -> dict[str, str]:
    if not _ZONES:
        _ZONES.update((name.lower(), name) for name in zoneinfo.available_timezones())
    return _ZONES


def _zone(name: str, failure: str | None = None) -> str:
    """Return a zone's name as it is written. Raises Error 22023, or the given failure, for an unknown one."""
    found = _zones().get(name.lower())
    if found is None and failure is not None:
        raise Failure(failure)
    if found is None:
        raise Error(f'time zone "{name}" not recognized', INVALID_PARAMETER_VALUE)
    return found


def _is_changing(zone: str) -> bool:
    """Return whether a zone's offset is not always the same."""
    times = (datetime(year, month, 1) for year in (1900, 1950, 1970, 1990, 2010, 2026) for month in (1, 7))
    return len({zoneinfo.ZoneInfo(zone).utcoffset(time) for time in times}) > 1


def _offset_at(zone: str, day: int, micros: int) -> int:
    """Return the seconds east of a zone at a local time: the standard time's where a clock is put back or forward."""
    year, month, of_month = of_julian(day + micros // _DAY)
    minutes = micros % _DAY // 60_000_000
    # A year that Python lacks has the rules of one with the same calendar.
    year = year if 1 < year < 9999 else 1000 + year % 400 if year <= 1 else 2400 + year % 400
    local = datetime(year, month, of_month, minutes // 60, minutes % 60)
    found = [zoneinfo.ZoneInfo(zone).utcoffset(local.replace(fold=fold)) for fold in (0, 1)]
    return min(int(offset.total_seconds()) for offset in found if offset is not None)


# The engines' form.


def iso_text(moment: Moment, type_: str) -> str:
    """Return a moment as text of a type that DuckDB reads: ISO, in UTC where it has an offset, BC after the day.

    A relative one is its word alone.
    """
    if moment.word is not None:
        return _EPOCHS.get(type_, "1970-01-01 00:00:00") if moment.word == "epoch" else moment.word
    if type_.startswith("time ") or type_ == "time":
        return _clock_text(moment.micros)
    if type_ == "date":
        return _day_text(moment.day)
    is_zoned = type_ == "timestamp with time zone" and moment.offset is not None
    days, micros = divmod(moment.micros - (moment.offset or 0) * 1_000_000 * is_zoned, _DAY)
    return f"{_day_text(moment.day + days)} {_clock_text(micros)}{'+00:00' if is_zoned else ''}"


def _day_text(day: int) -> str:
    year, month, of_month = of_julian(day)
    era = " (BC)" if year < 1 else ""
    return f"{year if year > 0 else 1 - year:04}-{month:02}-{of_month:02}{era}"


def _clock_text(micros: int) -> str:
    seconds, fraction = divmod(micros, 1_000_000)
    minutes, second = divmod(seconds, 60)
    clock = f"{minutes // 60:02}:{minutes % 60:02}:{second:02}"
    return f"{clock}.{fraction:06}" if fraction else clock
