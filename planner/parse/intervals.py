"""Converts texts of intervals into a form that the engines read correctly."""

from __future__ import annotations

import math
import re

_NUMBER = r"[+-]?(?:\d+(?:\.\d*)?|\.\d+)"
_ISO = re.compile(
    rf"\s*P(?=.)(?:({_NUMBER})Y)?(?:({_NUMBER})M)?(?:({_NUMBER})W)?(?:({_NUMBER})D)?"
    rf"(?:T(?:({_NUMBER})H)?(?:({_NUMBER})M)?(?:({_NUMBER})S)?)?\s*"
)
_ISO_UNITS = ("years", "months", "weeks", "days", "hours", "minutes", "seconds")
_YEARS = re.compile(r"^\s*([+-]?)(\d+)-(\d+)(?=\s|$)")
_PLUS = re.compile(r"\+(?=[\d.])")
_AGO = re.compile(r"(?<!\s)\s++ago\s*+$", re.IGNORECASE)
# A number or a clock time, whose sign `ago` reverses.
_SIGNED = re.compile(r"([+-]?)(?<![\d.:])((?:\d|\.\d)[\d.:]*)")
# Seconds with more digits than are kept, which the engines would truncate.
_FINE = re.compile(r"(?<!\d)(\d{0,18}+)(\.\d{7,}+)(?=\s*+(?:s|secs?|seconds?)\b|\s*+$|\s++[+-]?\d)", re.IGNORECASE)


def interval_text(text: str) -> str:
    """Return an interval without syntax that engines misread: ISO 8601, years-months, `+`, `ago` and nanoseconds."""
    return _FINE.sub(lambda match: _to_micros(match[1], match[2]), _in_units(text))


def _to_micros(whole: str, fraction: str) -> str:
    """Return seconds with six digits, half a digit rounded down.

    PostgreSQL: src/backend/utils/adt/datetime.c, AdjustFractMicroseconds.
    """
    micros = int(whole or 0) * 1_000_000 + math.ceil(float(fraction) * 1_000_000 - 0.5)
    return f"{micros // 1_000_000}.{micros % 1_000_000:06}"


def _in_units(text: str) -> str:
    iso = _ISO.fullmatch(text)
    if iso is not None:
        return " ".join(f"{n} {unit}" for n, unit in zip(iso.groups(), _ISO_UNITS, strict=True) if n) or text
    text = _YEARS.sub(r"\1\2 years \1\3 months", text)
    past = _AGO.sub("", text)
    if past == text:
        return _PLUS.sub("", text)
    return _SIGNED.sub(lambda match: f"{'' if match[1] == '-' else '-'}{match[2]}", past)


def is_plain_interval(text: str) -> bool:
    """Return whether sqlglot reads the whole text of an interval: numbers with units that DuckDB knows."""
    words = re.findall(r"[A-Za-z]+", text)
    return ":" not in text and interval_text(text) == text and all(word.lower() in _UNITS for word in words)


_UNITS = frozenset(
    name + plural
    for name in ("year", "month", "week", "day", "hour", "minute", "second", "millisecond", "microsecond", "decade",
                 "century", "millennium", "quarter")
    for plural in ("", "s")
)  # fmt: skip


# Units of fixed length, in µs.
UNITS_US = {
    "microsecond": 1, "millisecond": 1_000, "second": 1_000_000, "minute": 60_000_000, "hour": 3_600_000_000,
    "day": 86_400_000_000, "week": 604_800_000_000,
}  # fmt: skip
_ABBREVIATIONS = {
    "us": "microsecond", "usec": "microsecond", "ms": "millisecond", "msec": "millisecond", "s": "second",
    "sec": "second", "m": "minute", "min": "minute", "h": "hour", "hr": "hour", "d": "day", "w": "week",
}  # fmt: skip
_PART = re.compile(
    r"\s*(?:([+-]?[0-9]*[.]?[0-9]+)\s*([a-z]+)|([+-]?)([0-9]+):([0-9]{2})(?::([0-9]{2}(?:[.][0-9]+)?))?)\s*"
)


def fixed_length_us(text: str) -> int | None:
    """Return the length in µs of an interval's text; None for months and years, and for what is no interval."""
    total, place = 0.0, 0
    text = interval_text(text.strip()).lower()
    while place < len(text):
        part = _PART.match(text, place)
        if part is None:
            return None
        if part[2] is not None:
            unit = _ABBREVIATIONS.get(part[2]) or _ABBREVIATIONS.get(part[2].removesuffix("s"))
            length = UNITS_US.get(unit or part[2].removesuffix("s"))
            if length is None:
                return None
            total += float(part[1]) * length
        else:
            time = int(part[4]) * UNITS_US["hour"] + int(part[5]) * UNITS_US["minute"]
            time += round(float(part[6] or 0) * UNITS_US["second"])
            total += -time if part[3] == "-" else time
        place = part.end()
    return round(total) if text else None
