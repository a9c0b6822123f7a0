"""Reads durations in options: '1D', '2 hours 30 min', '00:00:10'."""

from __future__ import annotations

import re

_SECONDS = {
    "us": 1e-6,
    "ms": 1e-3,
    "s": 1,
    "m": 60,
    "h": 3600,
    "d": 86_400,
    "w": 604_800,
    "mon": 2_592_000,
    "y": 31_536_000,
}
_UNITS = {
    "us": ("us", "usec", "usecs", "microsecond", "microseconds"),
    "ms": ("ms", "msec", "msecs", "millisecond", "milliseconds"),
    "s": ("s", "sec", "secs", "second", "seconds"),
    "m": ("m", "min", "mins", "minute", "minutes"),
    "h": ("h", "hr", "hrs", "hour", "hours"),
    "d": ("d", "day", "days"),
    "w": ("w", "week", "weeks"),
    "mon": ("mon", "mons", "month", "months"),
    "y": ("y", "yr", "yrs", "year", "years"),
}
_UNIT = {word: _SECONDS[unit] for unit, words in _UNITS.items() for word in words}
_PART = re.compile(r"\s*(?:(\d+):(\d\d)(?::(\d\d(?:\.\d+)?))?|(\d+(?:\.\d+)?)\s*([a-zA-Z]+))\s*")


def duration(text: str) -> float:
    """Return the seconds of an interval without a sign; a month counts 30 days. Raises ValueError with the reason."""
    total, place = 0.0, 0
    while place < len(text):
        found = _PART.match(text, place)
        if found is None or (found[5] and found[5].lower() not in _UNIT):
            break
        if found[5]:
            total += float(found[4]) * _UNIT[found[5].lower()]
        else:
            total += int(found[1]) * 3600 + int(found[2]) * 60 + float(found[3] or 0)
        place = found.end()
    else:
        if text.strip():
            return total
    raise ValueError("It is an interval such as '1 day' or '10s'.")
