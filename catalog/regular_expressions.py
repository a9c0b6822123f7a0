"""PostgreSQL's advanced regular expressions with back references, look-around and edges of words, which RE2 has not.

They are those of the library `regex` in another spelling (PostgreSQL's documentation, 9.7.3). It takes the longest of
the matches from the first place, or goes by the quantifiers alone where the first of them is not greedy.

This module is sent to Spark's executors (`executor.spark.kernel`), so it imports nothing of this package but what is
sent with it.
"""

from __future__ import annotations

import string
from collections.abc import Iterator
from dataclasses import dataclass, replace

import regex

from sparkwave.catalog.errors import INVALID_PARAMETER_VALUE, INVALID_REGULAR_EXPRESSION, Error

_MOST_TIMES = 255  # of a repetition (src/include/regex/regex.h)
# The longest processor time for a text, and more for each of its characters: back references can take exponential time.
_MOST_S, _MORE_S = 0.2, 1e-6


class PatternError(Error):
    """Error 2201B."""

    def __init__(self, fault: str) -> None:
        super().__init__(f"invalid regular expression: {fault}", INVALID_REGULAR_EXPRESSION)


@dataclass(frozen=True)
class Flags:
    """How a pattern is read; `by_lines` is about `^` and `$`, `dot_excludes_lines` also about `[^a]`."""

    ignores_case: bool = False
    dot_excludes_lines: bool = False
    by_lines: bool = False
    is_expanded: bool = False
    is_literal: bool = False
    is_all: bool = False

    def with_letters(self, letters: str) -> Flags:
        """Return the flags after letters as functions have them. Raises Error 22023."""
        made = self
        for letter in letters:
            if letter not in _LETTERS:
                message = f'invalid regular expression option: "{letter}"'
                raise Error(message, INVALID_PARAMETER_VALUE)
            made = replace(made, **_LETTERS[letter])
        return made


_LETTERS: dict[str, dict[str, bool]] = {
    "g": {"is_all": True}, "i": {"ignores_case": True}, "c": {"ignores_case": False}, "x": {"is_expanded": True},
    "t": {"is_expanded": False}, "q": {"is_literal": True}, "e": {"is_literal": False},
    "s": {"dot_excludes_lines": False, "by_lines": False}, "n": {"dot_excludes_lines": True, "by_lines": True},
    "m": {"dot_excludes_lines": True, "by_lines": True}, "p": {"dot_excludes_lines": True, "by_lines": False},
    "w": {"dot_excludes_lines": False, "by_lines": True},
}  # fmt: skip
_CLASSES = (
    "alnum", "alpha", "blank", "cntrl", "digit", "graph", "lower", "print", "punct", "space", "upper", "word", "xdigit",
)  # fmt: skip
_CODES = {"a": "\x07", "b": "\b", "B": "\\", "e": "\x1b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}
_EDGES = {"A": r"\A", "Z": r"\Z", "m": r"\m", "M": r"\M", "y": r"\b", "Y": r"\B"}
_LOOKS = ("(?=", "(?!", "(?<=", "(?<!")


class _Reader:
    """Reads a pattern, and writes it for `regex`."""

    def __init__(self, pattern: str, flags: Flags) -> None:
        self.flags, self.text, self.at = flags, pattern, 0
        self.is_longest: bool | None = None  # None before the first quantifier
        self._groups, self._closed_groups, self._looks = 0, set[int](), 0
        self._director()

    def _director(self) -> None:
        """Read what a pattern may begin with: `***:`, `***=` and `(?flags)`."""
        if self.text.startswith("***="):
            self.flags, self.at = replace(self.flags, is_literal=True), 4
        elif self.text.startswith("***:"):
            self.at = 4
        elif self.text.startswith("***"):
            raise PatternError("invalid regular expression")
        end = self.text.find(")", self.at)
        letters = self.text[self.at + 2 : end]
        if not self.flags.is_literal and self.text.startswith("(?", self.at) and end > 0 and letters.isalpha():
            if any(letter not in _LETTERS or letter == "g" for letter in letters):
                raise PatternError("invalid embedded option")
            self.flags, self.at = self.flags.with_letters(letters), end + 1

    def whole(self) -> str:
        if self.flags.is_literal:
            return regex.escape(self.text[self.at :])
        found = self._alternatives()
        if self.at < len(self.text):
            raise PatternError("parentheses () not balanced")
        return found

    def _alternatives(self) -> str:
        branches = [self._branch()]
        while self._accept("|"):
            branches.append(self._branch())
        if len(branches) > 1 and self.is_longest is None:
            self.is_longest = True
        return "|".join(branches)

    def _branch(self) -> str:
        parts = []
        while self._skip() and self.text[self.at] not in "|)":
            parts.append(self._quantified())
        return _BREAK.join("".join(parts[first : first + _MOST_PARTS]) for first in range(0, len(parts), _MOST_PARTS))

    def _skip(self) -> bool:
        """Pass comments, and blanks of an expanded pattern; return whether anything is left."""
        while self.at < len(self.text):
            if self.text.startswith("(?#", self.at):
                self._until(")", "parentheses () not balanced")
            elif self.flags.is_expanded and self.text[self.at].isspace():
                self.at += 1
            elif self.flags.is_expanded and self.text[self.at] == "#":
                end = self.text.find("\n", self.at)
                self.at = len(self.text) if end < 0 else end
            else:
                break
        return self.at < len(self.text)

    def _accept(self, text: str) -> bool:
        is_there = self.text.startswith(text, self.at)
        self.at += len(text) if is_there else 0
        return is_there

    def _take(self) -> str:
        self.at += 1
        return self.text[self.at - 1]

    def _until(self, closing: str, fault: str) -> str:
        end = self.text.find(closing, self.at)
        if end < 0:
            raise PatternError(fault)
        found, self.at = self.text[self.at : end], end + len(closing)
        return found

    def _quantified(self) -> str:
        atom, is_place = self._atom()
        times = self._times() if self._skip() else None
        if times is None:
            return atom
        is_greedy = not self._accept("?")
        if is_place or (self._skip() and self._times() is not None):
            raise PatternError("quantifier operand invalid")
        if self.is_longest is None and (times[0] != "{" or "," in times):
            self.is_longest = is_greedy
        # Where the shortest match is wanted, all parts are as short as they can be.
        is_short = not is_greedy or self.is_longest is False
        return f"{atom if len(atom) == 1 else f'(?:{atom})'}{times}{'?' if is_short else ''}"

    def _times(self) -> str | None:
        """Read how often an atom may be there, None without a quantifier."""
        for sign in "*+?":
            if self._accept(sign):
                return sign
        if not self.text.startswith("{", self.at) or not self.text[self.at + 1 : self.at + 2].isdigit():
            return None
        found = regex.compile(r"\{(\d+)(,?)(\d*)\}").match(self.text, self.at)
        if found is None:
            is_open = "}" not in self.text[self.at :]
            raise PatternError("braces {} not balanced" if is_open else "invalid repetition count(s)")
        least, most = int(found[1]), int(found[3]) if found[3] else None
        if max(least, most or 0) > _MOST_TIMES or (most is not None and most < least):
            raise PatternError("invalid repetition count(s)")
        self.at = found.end()
        return found[0] if least != most else f"{{{least}}}"

    def _atom(self) -> tuple[str, bool]:
        """Read an atom; also return whether it is a condition on a place."""
        for mark, edge in (("[[:<:]]", r"\m"), ("[[:>:]]", r"\M")):
            if self._accept(mark):
                return edge, True
        for mark in _LOOKS:
            if self._accept(mark):
                before, self._looks = self.is_longest, self._looks + 1
                inner = self._closed()
                self.is_longest, self._looks = before, self._looks - 1
                return f"{mark}{inner})", True
        character = self._take()
        if character == "^":
            return "^" if self.flags.by_lines else r"\A", True
        if character == "$":
            return "$" if self.flags.by_lines else r"\Z", True
        if character == "\\" and self.text[self.at : self.at + 1] in _EDGES:
            return _EDGES[self._take()], True
        if character in "*+?" or (character == "{" and self.text[self.at : self.at + 1].isdigit()):
            raise PatternError("quantifier operand invalid")
        read = {"(": self._parenthesis, "[": self._bracket, "\\": self._escape}.get(character)
        return read() if read is not None else "." if character == "." else regex.escape(character), False

    def _parenthesis(self) -> str:
        if self._accept("?:") or self._looks:
            return f"(?:{self._closed()})"
        if self.text.startswith("?", self.at):
            raise PatternError("quantifier operand invalid")
        self._groups += 1
        number = self._groups
        inner = self._closed()
        self._closed_groups.add(number)
        return f"({inner})"

    def _closed(self) -> str:
        inner = self._alternatives()
        if not self._accept(")"):
            raise PatternError("parentheses () not balanced")
        return inner

    def _escape(self) -> str:
        letter = self.text[self.at : self.at + 1]
        if letter and letter in "dswDSW":
            self.at += 1
            is_line_excluded = letter.isupper() and self.flags.dot_excludes_lines
            return f"[^\\{letter.lower()}\\n]" if is_line_excluded else f"\\{letter}"
        if letter and letter in "123456789":
            digits = letter
            while (more := digits + self.text[self.at + len(digits) : self.at + len(digits) + 1]) != digits:
                if not more.isdigit() or int(more) > self._groups:
                    break
                digits = more
            self.at += len(digits)
            if int(digits) not in self._closed_groups or self._looks:
                raise PatternError("invalid backreference number")
            return f"(?:\\{digits})"
        return regex.escape(self._code())

    def _code(self) -> str:
        """Return the character of an escape, behind its backslash."""
        letter = self._take() if self.at < len(self.text) else ""
        if letter in _CODES:
            return _CODES[letter]
        if letter == "c" and self.at < len(self.text):
            return chr(ord(self._take()) & 0x1F)
        if letter and letter in "uUx":
            most = {"u": 4, "U": 8, "x": 255}[letter]
            digits = self._digits(string.hexdigits, most)
            if digits and (letter == "x" or len(digits) == most) and int(digits, 16) <= 0x10FFFF:
                return chr(int(digits, 16))
        elif letter == "0":
            return chr(int("0" + self._digits("01234567", 2), 8))
        elif letter and not letter.isalnum():
            return letter
        raise PatternError("invalid escape \\ sequence")

    def _digits(self, allowed: str, most: int) -> str:
        start = self.at
        while self.at < len(self.text) and self.text[self.at] in allowed and self.at - start < most:
            self.at += 1
        return self.text[start : self.at]

    def _bracket(self) -> str:
        is_negative, items = self._accept("^"), list[str]()
        while not items or not self.text.startswith("]", self.at):
            items.append(self._item())
        self.at += 1
        lines = "\\n" if is_negative and self.flags.dot_excludes_lines else ""
        return f"[{'^' if is_negative else ''}{''.join(items)}{lines}]"

    def _item(self) -> str:
        """Read a character, class or range of a bracket expression."""
        if self._accept("[:"):
            name = self._until(":]", "brackets [] not balanced")
            if name not in _CLASSES:
                raise PatternError("invalid character class")
            return f"[:{name}:]"
        if (
            self.text.startswith("\\", self.at)
            and (letter := self.text[self.at + 1 : self.at + 2])
            and letter in "dswDSW"
        ):
            self.at += 2
            return f"\\{letter}"
        first = self._bracket_character()
        if not self.text.startswith("-", self.at) or self.text.startswith("-]", self.at):
            return regex.escape(first)
        self.at += 1
        last = self._bracket_character()
        if first > last:
            raise PatternError("invalid character range")
        return f"{regex.escape(first)}-{regex.escape(last)}"

    def _bracket_character(self) -> str:
        for opening, closing in (("[.", ".]"), ("[=", "=]")):
            if self._accept(opening):
                found = self._until(closing, "brackets [] not balanced")
                if len(found) != 1:
                    raise PatternError("invalid collating element")
                return found
        if self.at >= len(self.text):
            raise PatternError("brackets [] not balanced")
        character = self._take()
        return self._code() if character == "\\" else character


# Before its first search the library makes tables for the longest fixed text of a pattern, which takes 0.35 s for 1000
# characters `x`, eight times as long for 2000, and minds no limit of time. A part that is always true ends such a text.
_MOST_PARTS = 100
_BREAK = "(?!(?!))"

# Patterns as they were read: a cache of functools would not be sent to executors.
_READ: dict[tuple[str, str], regex.Pattern[str]] = {}
_MOST_READ = 1000


def compiled(pattern: str, letters: str) -> regex.Pattern[str]:
    """Return a pattern of the library. Raises Error 2201B, 22023."""
    made = _READ.get((pattern, letters))
    if made is None:
        if len(_READ) >= _MOST_READ:
            _READ.clear()
        reader = _Reader(pattern, Flags().with_letters(letters))
        try:
            text, flags = reader.whole(), reader.flags
            options = regex.VERSION0 | regex.POSIX * (reader.is_longest is not False)
            options |= regex.IGNORECASE * flags.ignores_case | regex.MULTILINE * flags.by_lines
            made = regex.compile(text, options | regex.DOTALL * (not flags.dot_excludes_lines))
        except (RecursionError, regex.error):
            raise PatternError("regular expression is too complex") from None
        _READ[pattern, letters] = made
    return made


def matches(text: str, pattern: str, letters: str, start: int = 0) -> Iterator[tuple[int, ...]]:
    """Yield where each match of a pattern and its groups begin and end, -1 for groups without one."""
    made, limit_s = compiled(pattern, letters), _MOST_S + len(text) * _MORE_S
    try:
        for match in () if start > len(text) else made.finditer(text, start, timeout=limit_s):
            yield tuple(place for group in range(made.groups + 1) for place in match.span(group))
    except TimeoutError:
        message = "regular expression failed: regular expression is too complex"
        raise Error(message, INVALID_REGULAR_EXPRESSION) from None
