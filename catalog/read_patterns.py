"""Times by a text and a pattern: to_timestamp and to_date.

PostgreSQL 15: src/backend/utils/adt/formatting.c (DCH_from_char and do_to_timestamp). This module is sent to Spark's
executors (`executor.spark.kernel`), so it imports nothing of this package but what is sent with it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from sparkwave.catalog.errors import (
    DATETIME_FIELD_OVERFLOW,
    FEATURE_NOT_SUPPORTED,
    INVALID_DATETIME_FORMAT,
    INVALID_TIME_ZONE_DISPLACEMENT_VALUE,
    Error,
)
from sparkwave.catalog.moment_chars import DAYS, MONTHS, PREFIXES, ROMAN, SUFFIXES, WORDS, iso_start
from sparkwave.catalog.moment_texts import Moment, iso_text, julian, of_julian
from sparkwave.catalog.patterns import Part, parts_of

_SPACES = " \t\n\v\f\r"
_INTEGER = re.compile(r"[ \t\n\v\f\r]*[+-]?\d+")
_THOUSANDS = re.compile(r"[ \t\n\v\f\r]*([+-]?\d+),([ \t\n\v\f\r]*[+-]?\d{1,3})")
# The fields that words are numbers of.
_FIELDS = {
    "HH": "hour", "HH12": "hour", "HH24": "hour", "MI": "minute", "SS": "second", "MM": "month", "DD": "day",
    "DDD": "day_of_year", "IDDD": "day_of_year", "D": "weekday", "ID": "weekday", "WW": "week", "IW": "week", "Q": "",
    "CC": "century", "W": "week_of_month", "J": "julian", "SSSS": "seconds", "SSSSS": "seconds", "MS": "millis",
    "US": "micros", **dict.fromkeys(("YYYY", "YYY", "YY", "Y", "IYYY", "IYY", "IY", "I"), "year"),
    **{f"FF{count}": "micros" for count in range(1, 7)}, "TZH": "zone_hours", "TZM": "zone_minutes",
}  # fmt: skip
# The characters of a number, where they are not those of its word.
_WIDTHS = {"HH12": 2, "HH24": 2, "IDDD": 3, "ID": 1, "MS": 3, "US": 6, "TZH": 2, "TZM": 2,
           **{f"FF{count}": count for count in range(1, 7)}}  # fmt: skip
_LOWER_MONTHS, _LOWER_DAYS = tuple(map(str.lower, MONTHS)), tuple(map(str.lower, DAYS))
# The names that words stand for, and what they tell.
_NAMED = {
    **dict.fromkeys(("AM", "PM"), ("is_pm", ("am", "pm"))),
    **dict.fromkeys(("A.M.", "P.M."), ("is_pm", ("a.m.", "p.m."))),
    **dict.fromkeys(("AD", "BC"), ("is_bc", ("ad", "bc"))),
    **dict.fromkeys(("A.D.", "B.C."), ("is_bc", ("a.d.", "b.c."))),
    "MONTH": ("month", _LOWER_MONTHS), "MON": ("month", tuple(name[:3] for name in _LOWER_MONTHS)),
    "DAY": ("weekday", _LOWER_DAYS), "DY": ("weekday", tuple(name[:3] for name in _LOWER_DAYS)),
    "RM": ("month", tuple(map(str.lower, ROMAN))),
}  # fmt: skip
_NO_DIGITS = frozenset((*_NAMED, "TZ", "TZH", "OF", "FX"))
_YEARS = frozenset(("YYYY", "YYY", "YY", "Y", "IYYY", "IYY", "IY", "I"))
_ISO = frozenset(("IYYY", "IYY", "IY", "I", "IW", "ID", "IDDD"))
_GREGORIAN = frozenset(
    ("YYYY", "YYY", "YY", "Y", "Y,YYY", "MONTH", "MON", "MM", "RM", "DD", "DDD", "D", "W", "WW")
)  # fmt: skip
_INT32 = range(-(2**31), 2**31)
_SECOND, _MINUTE, _HOUR, _DAY = 1_000_000, 60_000_000, 3_600_000_000, 86_400_000_000
_EPOCH = 2451545  # the Julian day of 2000-01-01


def moment_by_pattern(text: str, pattern: str, type_: str) -> str:
    """Return the ISO text of what a text says by a pattern; `type_` is date or timestamp with time zone.

    Raises Error 22007, 22008, 22009, 0A000.
    """
    reader = _Reader(text, parts_of(pattern, WORDS, PREFIXES, SUFFIXES))
    reader.read()
    return iso_text(_moment(reader, text), type_)


@dataclass
class _Reader:
    """The state of DCH_from_char."""

    text: str
    parts: tuple[Part, ...]
    at: int = 0
    told: dict[str, int] = field(default_factory=dict)
    year_width: int = 0
    digits: int = 6  # of the second, by FF
    zone_sign: int = 0
    has_halves: bool = False
    is_fixed: bool = False
    convention: str = ""
    skipped: int = 0

    def get(self, name: str) -> int:
        return self.told.get(name, 0)

    @property
    def character(self) -> str:
        return self.text[self.at : self.at + 1]

    def read(self) -> None:
        for place, part in enumerate(self.parts):
            if self.at >= len(self.text):
                return
            if not self.is_fixed and part.word.upper() != "FX" and (part.word or not place):
                self._skip_spaces()
            if part.word:
                self._read_word(part, place)
                if not self.is_fixed:
                    self.skipped = 0
                    self._skip_spaces()
            else:
                self._read_character(not part.is_quoted and _is_gap(part.text))

    def _skip_spaces(self) -> None:
        while self.character and self.character in _SPACES:
            self.at, self.skipped = self.at + 1, self.skipped + 1

    def _read_character(self, is_gap: bool) -> None:
        if self.is_fixed:
            self.at += 1
        elif is_gap:
            self.skipped -= 1
            if _is_gap(self.character):
                self.at, self.skipped = self.at + 1, self.skipped + 1
        elif self.skipped > 0:
            self.skipped -= 1
        else:
            self.at += 1

    def _read_word(self, part: Part, place: int) -> None:
        word = part.word.upper()
        own = "iso" if word in _ISO else "gregorian" if word in _GREGORIAN else ""
        if own and self.convention not in ("", own):
            hint = "Do not mix Gregorian and ISO week date conventions in a formatting template."
            raise Error("invalid combination of date conventions", INVALID_DATETIME_FORMAT, hint=hint)
        self.convention = own or self.convention
        if word == "FX":
            self.is_fixed = True
        elif word in ("TZ", "OF"):
            message = f'formatting field "{part.word}" is only supported in to_char'
            raise Error(message, FEATURE_NOT_SUPPORTED)
        elif word in _NAMED:
            self._read_name(part.word, *_NAMED[word])
        elif word == "Y,YYY":
            self._read_thousands(part)
        else:
            self._read_number(part, word, place)
            if part.affixes & {"TH", "th"}:
                self.at = min(self.at + 2, len(self.text))

    def _read_name(self, written: str, name: str, values: tuple[str, ...]) -> None:
        rest = self.text[self.at :].lower()
        ordered = reversed(values) if values[0] == "i" else values
        found = next((value for value in ordered if rest.startswith(value)), None)
        if found is None:
            raise _bad(self.text[self.at :].split(" ")[0], written, "The given value did not match any of the allowed "
                       "values for this field.")  # fmt: skip
        self.at += len(found)
        self.has_halves = self.has_halves or name == "is_pm"
        place = values.index(found)
        self._put(name, place + (name == "month"), written)
        if name == "weekday":  # which another word may not have told
            self.told[name] = place + 1

    def _read_thousands(self, part: Part) -> None:
        found = _THOUSANDS.match(self.text, self.at)
        if found is None:
            raise Error('invalid input string for "Y,YYY"', INVALID_DATETIME_FORMAT)
        self._put("year", int(found[1]) * 1000 + int(found[2]), part.word)
        self.year_width, self.at = 4, found.end()
        if part.affixes & {"TH", "th"}:
            self.at = min(self.at + 2, len(self.text))

    def _read_number(self, part: Part, word: str, place: int) -> None:
        if word == "TZH":
            self._read_zone_sign()
        elif word == "TZM":
            self.zone_sign = self.zone_sign or 1
        self.has_halves = self.has_halves or word in ("HH", "HH12")
        value, length = self._integer(part, word, place)
        if word in ("MS", "US") or word.startswith("FF"):
            self.digits = int(word[2]) if word.startswith("FF") else self.digits
            value *= 10 ** max((3 if word == "MS" else 6) - length, 0)
        if word in _YEARS:
            self.year_width = len(word)
        if _FIELDS[word]:
            self._put(_FIELDS[word], value, part.word)
        if word in _YEARS and len(word) < 4 and length < 4:
            self.told["year"] = _whole_year(value)
        if word == "ID":
            self.told["weekday"] = value % 7 + 1

    def _read_zone_sign(self) -> None:
        if self.character in ("+", "-", " "):
            self.zone_sign = -1 if self.character == "-" else 1
            self.at += 1
        else:
            self.zone_sign = -1 if self.skipped > 0 and self.text[self.at - 1] == "-" else 1

    def _integer(self, part: Part, word: str, place: int) -> tuple[int, int]:
        """Return a number and the count of its characters (from_char_parse_int_len)."""
        self._skip_spaces()
        width, start = _WIDTHS.get(word, len(word)), self.at
        copied = self.text[start : start + width]
        if part.affixes & {"FM", "fm"} or self._ends_behind(part, place):
            found = _INTEGER.match(self.text, start)
        else:
            self._check_width(part.word, width, copied)
            found = _INTEGER.match(copied)
        if found is None:
            raise _bad(copied, part.word, "Value must be an integer.")
        value = int(found[0])
        if value not in _INT32:
            detail = f"Value must be in the range {_INT32[0]} to {_INT32[-1]}."
            message = f'value for "{part.word}" in source string is out of range'
            raise Error(message, DATETIME_FIELD_OVERFLOW, detail=detail)
        self.at = start + len(found[0])
        return value, len(found[0])

    def _check_width(self, word: str, width: int, copied: str) -> None:
        hint = 'If your source string is not fixed-width, try using the "FM" modifier.'
        if len(copied) < width:
            detail = f"Field requires {width} characters, but only {len(copied)} remain."
            message = f'source string too short for "{word}" formatting field'
            raise Error(message, INVALID_DATETIME_FORMAT, detail=detail, hint=hint)
        found = _INTEGER.match(copied)
        if found is not None and len(found[0]) < width:
            detail = f"Field requires {width} characters, but only {len(found[0])} could be parsed."
            raise _bad(copied, word, detail, hint)

    def _ends_behind(self, part: Part, place: int) -> bool:
        """Whether no digit follows a number (is_next_separator)."""
        if part.affixes & {"TH", "th"} or place + 1 == len(self.parts):
            return True
        following = self.parts[place + 1]
        return following.word.upper() in _NO_DIGITS if following.word else not following.text.isdigit()

    def _put(self, name: str, value: int, word: str) -> None:
        if self.get(name) not in (0, value):
            detail = "This value contradicts a previous setting for the same field type."
            message = f'conflicting values for "{word}" field in formatting string'
            raise Error(message, INVALID_DATETIME_FORMAT, detail=detail)
        self.told[name] = value


def _is_gap(character: str) -> bool:
    """Whether a character is a space or a separator."""
    is_separator = " " < character < "\x7f" and not character.isalnum()
    return bool(character) and (character in _SPACES or is_separator)


def _bad(value: str, word: str, detail: str, hint: str | None = None) -> Error:
    return Error(f'invalid value "{value}" for "{word}"', INVALID_DATETIME_FORMAT, detail=detail, hint=hint)


def _whole_year(year: int) -> int:
    """Return the year nearest to 2020 that ends in some digits (adjust_partial_year_to_2020)."""
    return year + next(
        (more for below, more in ((70, 2000), (100, 1900), (520, 2000), (1000, 1000)) if year < below), 0
    )


def _moment(read: _Reader, text: str) -> Moment:
    """Return the time of the fields (do_to_timestamp). Raises Error 22007, 22008, 22009."""
    hour, minute, second = _clock(read)
    told: set[str] = set()
    year, month, day = _year(read, told), 1, 1
    if read.get("julian"):
        year, month, day = of_julian(read.get("julian"))
        told |= {"year", "month", "day"}
    day_of_year, day_of_month = read.get("day_of_year"), read.get("day")
    if week := read.get("week"):
        if read.convention == "iso":
            weekday = read.get("weekday")
            shift = 0 if not weekday else weekday - 2 if weekday > 1 else 6
            year, month, day = of_julian(iso_start(year) + (week - 1) * 7 + shift)
            told |= {"year", "month", "day"}
        else:
            day_of_year = (week - 1) * 7 + 1
    if read.get("week_of_month"):
        day_of_month = (read.get("week_of_month") - 1) * 7 + 1
    if day_of_month:
        day, told = day_of_month, told | {"day"}
    if read.get("month"):
        month, told = read.get("month"), told | {"month"}
    if day_of_year and (month <= 1 or day <= 1):
        if not year and not read.get("is_bc"):
            raise Error("cannot calculate day of year without year information", INVALID_DATETIME_FORMAT)
        year, month, day = _by_day_of_year(read.convention == "iso", year, month, day, day_of_year)
        told |= {"year", "month", "day"} if read.convention == "iso" else {"month", "day"}
    fraction = read.get("millis") * 1000 + read.get("micros")
    is_day = _is_day(told, year, month, day)
    if not is_day or not (0 <= hour < 24 and 0 <= minute < 60 and 0 <= second < 60 and 0 <= fraction < _SECOND):
        raise Error(f'date/time field value out of range: "{text}"', DATETIME_FIELD_OVERFLOW)
    micros = hour * _HOUR + minute * _MINUTE + second * _SECOND + fraction
    return _rounded(Moment(julian(year, month, day), micros, _offset(read, text)), 10 ** (6 - read.digits))


def _rounded(moment: Moment, step: int) -> Moment:
    """Return a time rounded to a step in microseconds, halves away from the year 2000 (AdjustTimestampForTypmod)."""
    days = moment.day - _EPOCH
    whole = days * _DAY + moment.micros
    rounded = (abs(whole) + step // 2) // step * step * (1 if whole >= 0 else -1)
    return Moment(_EPOCH + rounded // _DAY, rounded % _DAY, moment.offset)


def _clock(read: _Reader) -> tuple[int, int, int]:
    rest, second = divmod(read.get("seconds"), 60)
    hour, minute = divmod(rest, 60)
    hour, minute = read.get("hour") or hour, read.get("minute") or minute
    if read.has_halves:
        if not 1 <= hour <= 12:
            hint = "Use the 24-hour clock, or give an hour between 1 and 12."
            raise Error(f'hour "{hour}" is invalid for the 12-hour clock', INVALID_DATETIME_FORMAT, hint=hint)
        hour = hour % 12 + (12 if read.get("is_pm") else 0)
    return hour, minute, read.get("second") or second


def _year(read: _Reader, told: set[str]) -> int:
    year, century = read.get("year"), read.get("century") * (-1 if read.get("is_bc") else 1)
    if not year and not century:
        return 0
    told.add("year")
    if not year:
        return (century - 1) * 100 + 1 if century >= 0 else century * 100 + 1
    if century and read.year_width <= 2:
        short = year % 100
        if not short:
            return century * 100 + (century < 0)
        return (century - 1) * 100 + short if century >= 0 else (century + 1) * 100 - short + 1
    year = -year if read.get("is_bc") else year
    return year + (year < 0)


def _by_day_of_year(is_iso: bool, year: int, month: int, day: int, day_of_year: int) -> tuple[int, int, int]:
    if is_iso:
        return of_julian(iso_start(year) + day_of_year - 1)
    ends = [julian(year, number + 1, 1) - julian(year, 1, 1) for number in range(12)] + [365 + _is_leap(year)]
    found = next((number for number in range(1, 13) if day_of_year <= ends[number]), 13)
    return year, found if month <= 1 else month, day_of_year - ends[found - 1] if day <= 1 else day


def _is_leap(year: int) -> bool:
    return year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)


def _is_day(told: set[str], year: int, month: int, day: int) -> bool:
    """Return whether the fields that have been told are in their ranges (ValidateDate)."""
    if ("month" in told and not 1 <= month <= 12) or ("day" in told and not 1 <= day <= 31):
        return False
    days = (31, 28 + _is_leap(year), 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)
    return len(told) < 3 or day <= days[month - 1]


def _offset(read: _Reader, text: str) -> int | None:
    if not read.zone_sign:
        return None
    hours, minutes = read.get("zone_hours"), read.get("zone_minutes")
    if not (0 <= hours <= 15 and 0 <= minutes < 60):
        message = f'time zone displacement out of range: "{text}"'
        raise Error(message, INVALID_TIME_ZONE_DISPLACEMENT_VALUE)
    return read.zone_sign * (hours * 3600 + minutes * 60)
