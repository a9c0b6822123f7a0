"""Reads patterns of to_char and to_number: their parts, and PostgreSQL's endings of ordinals.

PostgreSQL 15: src/backend/utils/adt/formatting.c, parse_format. This module is sent to Spark's executors
(`executor.spark.kernel`), so it imports nothing of this package but what is sent with it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sparkwave.catalog.errors import INVALID_TEXT_REPRESENTATION, Error


@dataclass(frozen=True)
class Part:
    """A part of a pattern: a keyword with the words before and behind it (FM, TH, ..), or a character of its own."""

    word: str = ""
    affixes: frozenset[str] = frozenset()
    text: str = ""
    is_quoted: bool = False


# The parts of patterns, by the arguments of `parts_of`, since they are wanted for each row. A cache of functools would
# not be sent to executors.
_READ: dict[tuple[object, ...], tuple[Part, ...]] = {}
_MOST_READ = 1000


def parts_of(
    pattern: str, words: tuple[str, ...], prefixes: tuple[str, ...] = (), suffixes: tuple[str, ...] = ()
) -> tuple[Part, ...]:
    """Return the parts of a pattern; of `words`, longer ones come first."""
    key = pattern, words, prefixes, suffixes
    parts = _READ.get(key)
    if parts is None:
        if len(_READ) >= _MOST_READ:
            _READ.clear()
        parts = _READ[key] = _read(pattern, words, prefixes, suffixes)
    return parts


def _read(
    pattern: str, words: tuple[str, ...], prefixes: tuple[str, ...], suffixes: tuple[str, ...]
) -> tuple[Part, ...]:
    found: list[Part] = []
    at, end = 0, len(pattern)
    while at < end:
        prefix = _first(pattern, at, prefixes)
        at += len(prefix)
        word = _first(pattern, at, words)
        if word:
            at += len(word)
            suffix = _first(pattern, at, suffixes)
            at += len(suffix)
            found.append(Part(word, frozenset(filter(None, (prefix, suffix)))))
        elif pattern[at : at + 1] == '"':
            quoted, at = _quoted(pattern, at + 1)
            found += [Part(text=character, is_quoted=True) for character in quoted]
        elif at < end:
            at += pattern.startswith('\\"', at)
            found.append(Part(text=pattern[at]))
            at += 1
    return tuple(found)


def _first(pattern: str, at: int, words: Sequence[str]) -> str:
    return next((word for word in words if pattern.startswith(word, at)), "")


def _quoted(pattern: str, at: int) -> tuple[str, int]:
    """Return the text in quotes from a place on, and the place behind it; a backslash is before a character of it."""
    text = ""
    while at < len(pattern):
        if pattern[at] == '"':
            return text, at + 1
        at += pattern[at] == "\\" and at + 1 < len(pattern)
        text += pattern[at]
        at += 1
    return text, at


def ending(number: str) -> str:
    """Return the ending of an ordinal, such as `nd` of 22. Raises Error 22P02 for what ends in no digit."""
    if not number[-1:].isdigit():
        raise Error(f'"{number}" is not a number', INVALID_TEXT_REPRESENTATION)
    is_teen = number[-2:-1] == "1"
    return "th" if is_teen else {"1": "st", "2": "nd", "3": "rd"}.get(number[-1], "th")
