"""PostgreSQL's advanced regular expressions with back references, look-around and edges of words, which RE2 has not.

A pattern becomes a program of steps (`_Step`), which is run from a place of a text by trying one way after the other; a
way that reaches a step at a place where another has been gives up, so that the time is bounded by places and steps, and
by what back references have matched. Of the matches from the first place the longest is taken, or the shortest, as
PostgreSQL says by the first quantifier (documentation 9.7.3.5). Its groups are those of the first way to it.

This module is sent to Spark's executors (`executor.spark.kernel`), so it imports nothing of this package but what is
sent with it.
"""

from __future__ import annotations

import string
import unicodedata
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from sparkwave.catalog.errors import INVALID_PARAMETER_VALUE, INVALID_REGULAR_EXPRESSION, Error

_MOST_TIMES = 255  # of a repetition (src/include/regex/regex.h)
_MOST_STEPS = 20_000  # of a program
_MOST_TRIED = 1_000_000  # steps for one text, about a second


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

_Test = Callable[[str], bool]
_Edge = Callable[[str, int], bool]

# Parts of a pattern.


@dataclass(frozen=True)
class _One:
    """A character."""

    test: _Test


@dataclass(frozen=True)
class _Place:
    """A condition on a place of the text."""

    holds: _Edge


@dataclass(frozen=True)
class _Back:
    """What a group has matched."""

    group: int


@dataclass(frozen=True)
class _Group:
    """A part in parentheses; `number` is None where it captures nothing."""

    part: _Part
    number: int | None = None


@dataclass(frozen=True)
class _Look:
    part: _Part
    is_behind: bool
    is_negative: bool


@dataclass(frozen=True)
class _Row:
    parts: tuple[_Part, ...]


@dataclass(frozen=True)
class _Either:
    parts: tuple[_Part, ...]


@dataclass(frozen=True)
class _Times:
    part: _Part
    least: int
    most: int | None
    is_greedy: bool


_Part = _One | _Place | _Back | _Group | _Look | _Row | _Either | _Times


def _preference(part: _Part) -> bool | None:
    """Return whether a part prefers the longest match, False for the shortest, None without a preference."""
    match part:
        case _Group():
            return _preference(part.part)
        case _Either():
            return True
        case _Row():
            return next((found for each in part.parts if (found := _preference(each)) is not None), None)
        case _Times():
            is_fixed = part.least == part.most
            return _preference(part.part) if is_fixed else part.is_greedy
    return None


# Characters.


def _is_word(character: str) -> bool:
    return character.isalnum() or character == "_"


_CLASSES: dict[str, _Test] = {
    "alnum": str.isalnum, "alpha": str.isalpha, "blank": lambda c: c in " \t", "digit": lambda c: c in string.digits,
    "cntrl": lambda c: unicodedata.category(c) == "Cc", "lower": str.islower, "upper": str.isupper,
    "space": str.isspace, "xdigit": lambda c: c in string.hexdigits, "print": str.isprintable,
    "graph": lambda c: c.isprintable() and not c.isspace(), "word": _is_word,
    "punct": lambda c: unicodedata.category(c)[0] in "PS",
}  # fmt: skip
_SHORT = {"d": "digit", "w": "word", "s": "space"}
_CODES = {"a": "\x07", "b": "\b", "B": "\\", "e": "\x1b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}


def _not(test: _Test) -> _Test:
    return lambda character: not test(character)


def _either_case(test: _Test) -> _Test:
    return lambda c: test(c) or test(c.lower()) or test(c.upper())


def _word_at(text: str, place: int) -> bool:
    return 0 <= place < len(text) and _is_word(text[place])


_EDGES: dict[str, _Edge] = {
    "A": lambda text, at: at == 0,
    "Z": lambda text, at: at == len(text),
    "m": lambda text, at: _word_at(text, at) and not _word_at(text, at - 1),
    "M": lambda text, at: not _word_at(text, at) and _word_at(text, at - 1),
    "y": lambda text, at: _word_at(text, at) != _word_at(text, at - 1),
    "Y": lambda text, at: _word_at(text, at) == _word_at(text, at - 1),
}
_LINE_START: _Edge = lambda text, at: at == 0 or text[at - 1] == "\n"  # noqa: E731
_LINE_END: _Edge = lambda text, at: at == len(text) or text[at] == "\n"  # noqa: E731


class _Reader:
    """Reads the parts of a pattern."""

    def __init__(self, pattern: str, flags: Flags) -> None:
        self.flags, self.text, self.at, self.groups, self.closed = flags, pattern, 0, 0, set[int]()
        self._is_in_look = False
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
            unknown = next((letter for letter in letters if letter not in _LETTERS or letter == "g"), None)
            if unknown is not None:
                raise PatternError("invalid embedded option")
            self.flags, self.at = self.flags.with_letters(letters), end + 1

    def whole(self) -> _Part:
        if self.flags.is_literal:
            return _Row(tuple(map(self._character, self.text[self.at :])))
        found = self._alternatives()
        if self.at < len(self.text):
            raise PatternError("parentheses () not balanced")
        return found

    def _alternatives(self) -> _Part:
        branches = [self._branch()]
        while self._accept("|"):
            branches.append(self._branch())
        return branches[0] if len(branches) == 1 else _Either(tuple(branches))

    def _branch(self) -> _Part:
        parts: list[_Part] = []
        while self._skip() and self.text[self.at] not in "|)":
            parts.append(self._quantified(self._atom()))
        return _Row(tuple(parts))

    def _skip(self) -> bool:
        """Pass comments, and blanks of an expanded pattern; return whether anything is left."""
        while self.at < len(self.text):
            if self.text.startswith("(?#", self.at):
                end = self.text.find(")", self.at)
                if end < 0:
                    raise PatternError("parentheses () not balanced")
                self.at = end + 1
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

    def _atom(self) -> _Part:
        if self._accept("[[:<:]]"):
            return _Place(_EDGES["m"])
        if self._accept("[[:>:]]"):
            return _Place(_EDGES["M"])
        character = self._take()
        if character == "(":
            return self._parenthesis()
        if character == "[":
            return self._bracket()
        if character == "\\":
            return self._escape()
        if character == ".":
            return _One((lambda c: c != "\n") if self.flags.dot_excludes_lines else (lambda c: True))
        if character == "^":
            return _Place(_LINE_START if self.flags.by_lines else _EDGES["A"])
        if character == "$":
            return _Place(_LINE_END if self.flags.by_lines else _EDGES["Z"])
        if character in "*+?" or (character == "{" and self.text[self.at : self.at + 1].isdigit()):
            raise PatternError("quantifier operand invalid")
        return self._character(character)

    def _character(self, character: str) -> _One:
        if self.flags.ignores_case and character.lower() != character.upper():
            both = frozenset((character, character.lower(), character.upper()))
            return _One(lambda c: c in both)
        return _One(lambda c: c == character)

    def _parenthesis(self) -> _Part:
        for mark, is_behind, is_negative in (
            ("?=", False, False), ("?!", False, True), ("?<=", True, False), ("?<!", True, True),
        ):  # fmt: skip
            if self._accept(mark):
                before, self._is_in_look = self._is_in_look, True
                part = self._closed()
                self._is_in_look = before
                return _Look(part, is_behind, is_negative)
        if self._accept("?:") or self._is_in_look:
            return _Group(self._closed())
        if self.text.startswith("?", self.at):
            raise PatternError("quantifier operand invalid")
        self.groups += 1
        number = self.groups
        part = self._closed()
        self.closed.add(number)
        return _Group(part, number)

    def _closed(self) -> _Part:
        part = self._alternatives()
        if not self._accept(")"):
            raise PatternError("parentheses () not balanced")
        return part

    def _escape(self) -> _Part:
        if self.at == len(self.text):
            raise PatternError("invalid escape \\ sequence")
        letter = self.text[self.at]
        if letter in _EDGES:
            self.at += 1
            return _Place(_EDGES[letter])
        if letter.lower() in _SHORT:
            self.at += 1
            test = _CLASSES[_SHORT[letter.lower()]]
            return _One(test if letter.islower() else self._negated(test))
        if letter in "123456789":
            digits = letter
            while (more := digits + self.text[self.at + len(digits) : self.at + len(digits) + 1]) != digits:
                if not more.isdigit() or int(more) > self.groups:
                    break
                digits = more
            self.at += len(digits)
            if int(digits) not in self.closed or self._is_in_look:
                raise PatternError("invalid backreference number")
            return _Back(int(digits))
        return self._character(self._code())

    def _negated(self, test: _Test) -> _Test:
        if self.flags.dot_excludes_lines:
            return lambda c: c != "\n" and not test(c)
        return _not(test)

    def _code(self) -> str:
        """Return the character of an escape, behind its backslash."""
        letter = self._take()
        if letter in _CODES:
            return _CODES[letter]
        if letter == "c" and self.at < len(self.text):
            return chr(ord(self._take()) & 0x1F)
        if letter in "uUx":
            most = {"u": 4, "U": 8, "x": 255}[letter]
            digits = self._digits(string.hexdigits, most)
            if (letter != "x" and len(digits) != most) or not digits or int(digits, 16) > 0x10FFFF:
                raise PatternError("invalid escape \\ sequence")
            return chr(int(digits, 16))
        if letter == "0":
            return chr(int("0" + self._digits("01234567", 2), 8))
        if letter.isalnum():
            raise PatternError("invalid escape \\ sequence")
        return letter

    def _digits(self, allowed: str, most: int) -> str:
        start = self.at
        while self.at < len(self.text) and self.text[self.at] in allowed and self.at - start < most:
            self.at += 1
        return self.text[start : self.at]

    def _bracket(self) -> _Part:
        is_negative, tests = self._accept("^"), list[_Test]()
        is_first = True
        while is_first or not self.text.startswith("]", self.at):
            is_first = False
            tests.append(self._item())
        self.at += 1

        def found(character: str) -> bool:
            return any(test(character) for test in tests)

        test = _either_case(found) if self.flags.ignores_case else found
        return _One(self._negated(test) if is_negative else test)

    def _item(self) -> _Test:
        """Read a character, class or range of a bracket expression."""
        if self._accept("[:"):
            name = self._until(":]")
            if name not in _CLASSES:
                raise PatternError("invalid character class")
            return _CLASSES[name]
        if self.text.startswith("\\", self.at) and self.text[self.at + 1 : self.at + 2].lower() in _SHORT:
            letter = self.text[self.at + 1]
            self.at += 2
            test = _CLASSES[_SHORT[letter.lower()]]
            return test if letter.islower() else _not(test)
        first = self._bracket_character()
        if not self.text.startswith("-", self.at) or self.text.startswith("-]", self.at):
            return lambda c: c == first
        self.at += 1
        last = self._bracket_character()
        if first > last:
            raise PatternError("invalid character range")
        return lambda c: first <= c <= last

    def _bracket_character(self) -> str:
        for opening, closing in (("[.", ".]"), ("[=", "=]")):
            if self._accept(opening):
                found = self._until(closing)
                if len(found) != 1:
                    raise PatternError("invalid collating element")
                return found
        if self.at >= len(self.text):
            raise PatternError("brackets [] not balanced")
        character = self._take()
        if character != "\\":
            return character
        if self.at >= len(self.text):
            raise PatternError("invalid escape \\ sequence")
        return self._code()

    def _until(self, closing: str) -> str:
        end = self.text.find(closing, self.at)
        if end < 0:
            raise PatternError("brackets [] not balanced")
        found, self.at = self.text[self.at : end], end + len(closing)
        return found

    def _quantified(self, part: _Part) -> _Part:
        if not self._skip():
            return part
        times = self._times()
        if times is None:
            return part
        if isinstance(part, _Place | _Look):
            raise PatternError("quantifier operand invalid")
        is_greedy = not self._accept("?")
        if self._skip() and self._times() is not None:
            raise PatternError("quantifier operand invalid")
        return _Times(part, *times, is_greedy)

    def _times(self) -> tuple[int, int | None] | None:
        """Read how often an atom may be there, None without a quantifier."""
        for sign, times in (("*", (0, None)), ("+", (1, None)), ("?", (0, 1))):
            if self._accept(sign):
                return times
        if not self.text.startswith("{", self.at) or not self.text[self.at + 1 : self.at + 2].isdigit():
            return None
        self.at += 1
        least = int(self._digits(string.digits, 9))
        most: int | None = least
        if self._accept(","):
            digits = self._digits(string.digits, 9)
            most = int(digits) if digits else None
        if not self._accept("}"):
            raise PatternError("braces {} not balanced" if self.at >= len(self.text) else "invalid repetition count(s)")
        if max(least, most or 0) > _MOST_TIMES or (most is not None and most < least):
            raise PatternError("invalid repetition count(s)")
        return least, most


def _groups(part: _Part) -> Iterator[int]:
    match part:
        case _Group():
            if part.number is not None:
                yield part.number
            yield from _groups(part.part)
        case _Times():
            yield from _groups(part.part)
        case _Row() | _Either():
            for each in part.parts:
                yield from _groups(each)


# Programs: each step is a tuple of its kind and what it needs.
_ONE, _HOLDS, _BACK, _SAVE, _FORGET, _JUMP, _SPLIT, _LOOK, _END = range(9)
_Step = tuple[int, Any, Any]


class _Writer:
    def __init__(self) -> None:
        self.steps: list[_Step] = []

    def add(self, kind: int = -1, first: Any = None, second: Any = None) -> int:
        if len(self.steps) >= _MOST_STEPS:
            raise PatternError("regular expression is too complex")
        self.steps.append((kind, first, second))
        return len(self.steps) - 1

    def write(self, part: _Part) -> None:
        match part:
            case _One():
                self.add(_ONE, part.test)
            case _Place():
                self.add(_HOLDS, part.holds)
            case _Back():
                self.add(_BACK, part.group)
            case _Look():
                self.add(_LOOK, program_of(part.part), part)
            case _Row():
                for each in part.parts:
                    self.write(each)
            case _Group():
                if part.number is not None:
                    self.add(_SAVE, 2 * part.number)
                self.write(part.part)
                if part.number is not None:
                    self.add(_SAVE, 2 * part.number + 1)
            case _Either():
                self._either(part.parts)
            case _Times():
                self._times(part)

    def _either(self, parts: Sequence[_Part]) -> None:
        jumps = []
        for each in parts[:-1]:
            split = self.add()
            self.write(each)
            jumps.append(self.add())
            self.steps[split] = (_SPLIT, split + 1, len(self.steps))
        self.write(parts[-1])
        for jump in jumps:
            self.steps[jump] = (_JUMP, len(self.steps), None)

    def _times(self, times: _Times) -> None:
        for _ in range(times.least):
            self._one_time(times.part)
        if times.most is None:
            split = self.add()
            self._one_time(times.part)
            self.add(_JUMP, split)
            self._split(split, times.is_greedy)
            return
        splits = []
        for _ in range(times.most - times.least):
            splits.append(self.add())
            self._one_time(times.part)
        for split in splits:
            self._split(split, times.is_greedy)

    def _one_time(self, part: _Part) -> None:
        """Write a part that is repeated: each time its groups begin without a match."""
        numbers = list(_groups(part))
        if numbers:
            self.add(_FORGET, 2 * min(numbers), 2 * max(numbers) + 2)
        self.write(part)

    def _split(self, split: int, is_greedy: bool) -> None:
        """Let a step go on to the next, or behind all of them."""
        on, behind = split + 1, len(self.steps)
        self.steps[split] = (_SPLIT, on, behind) if is_greedy else (_SPLIT, behind, on)


@dataclass(frozen=True)
class Program:
    """`read` are the groups that back references read."""

    steps: tuple[_Step, ...]
    groups: int
    read: tuple[int, ...]
    is_longest: bool
    flags: Flags


def program_of(part: _Part, groups: int = 0, flags: Flags = Flags()) -> Program:
    writer = _Writer()
    writer.write(part)
    writer.add(_END)
    read = {step[1] for step in writer.steps if step[0] == _BACK}
    places = tuple(place for group in sorted(read) for place in (2 * group, 2 * group + 1))
    return Program(tuple(writer.steps), groups, places, _preference(part) is not False, flags)


# Programs by pattern and flags: a cache of functools would not be sent to executors.
_READ: dict[tuple[str, str], Program] = {}
_MOST_READ = 1000


def program(pattern: str, letters: str) -> Program:
    """Return the program of a pattern. Raises Error 2201B, 22023."""
    made = _READ.get((pattern, letters))
    if made is None:
        if len(_READ) >= _MOST_READ:
            _READ.clear()
        reader = _Reader(pattern, Flags().with_letters(letters))
        try:
            part = reader.whole()
            made = program_of(part, reader.groups, reader.flags)
        except RecursionError:
            raise PatternError("regular expression is too complex") from None
        _READ[pattern, letters] = made
    return made


class _Run:
    """A program over a text, with the number of steps that it may still try."""

    def __init__(self, made: Program, text: str) -> None:
        self.program, self.text, self.left = made, text, _MOST_TRIED

    def first(self, start: int) -> tuple[int, ...] | None:
        """Return where the first match from a place on, and its groups, begin and end, -1 for groups without one."""
        for place in range(start, len(self.text) + 1):
            found = self._match(self.program, place, None)
            if found is not None:
                return found
        return None

    def _match(self, made: Program, start: int, wanted: int | None) -> tuple[int, ...] | None:
        """Return the match from a place, to `wanted` if it is given; a look-around wants any."""
        steps, text, length, read = made.steps, self.text, len(self.text), made.read
        stack: list[tuple[int, int, tuple[int, ...]]] = [(0, start, (start, -1) + (-1, -1) * made.groups)]
        seen: set[tuple[object, ...]] = set()
        best: tuple[int, ...] | None = None
        while stack:
            step, at, places = stack.pop()
            while True:
                self.left -= 1
                if self.left < 0:
                    message = "regular expression failed: regular expression is too complex"
                    raise Error(message, INVALID_REGULAR_EXPRESSION)
                kind, first, second = steps[step]
                step += 1
                if kind == _ONE:
                    if at == length or not first(text[at]):
                        break
                    at += 1
                elif kind == _SPLIT:
                    key = (step, at, *(places[place] for place in read))
                    if key in seen:
                        break
                    seen.add(key)
                    step = first
                    stack.append((second, at, places))
                elif kind == _JUMP:
                    step = first
                elif kind == _SAVE:
                    places = (*places[:first], at, *places[first + 1 :])
                elif kind == _FORGET:
                    places = (*places[:first], *(-1,) * (second - first), *places[second:])
                elif kind == _HOLDS:
                    if not first(text, at):
                        break
                elif kind == _BACK:
                    end = self._behind_again(places, first, at)
                    if end is None:
                        break
                    at = end
                elif kind == _LOOK:
                    if self._looks(first, at, second.is_behind) == second.is_negative:
                        break
                else:
                    if wanted is None or at == wanted:
                        is_better = best is None or (at > best[1] if made.is_longest else at < best[1])
                        if is_better:
                            best = (start, at, *places[2:])
                        if at == (length if made.is_longest else start) or wanted is not None:
                            return best
                    break
        return best

    def _behind_again(self, places: tuple[int, ...], group: int, at: int) -> int | None:
        """Return the place behind what a group has matched, if it is there again."""
        start, end = places[2 * group], places[2 * group + 1]
        if start < 0 or end < 0:
            return None
        old, new = self.text[start:end], self.text[at : at + end - start]
        is_same = old.lower() == new.lower() if self.program.flags.ignores_case else old == new
        return at + end - start if is_same else None

    def _looks(self, made: Program, at: int, is_behind: bool) -> bool:
        if not is_behind:
            return self._match(made, at, None) is not None
        return any(self._match(made, place, at) is not None for place in range(at, -1, -1))


def matches(text: str, pattern: str, letters: str, start: int = 0) -> Iterator[tuple[int, ...]]:
    """Yield the matches of a pattern in a text, as `_Run.first` does, as often as there are."""
    run = _Run(program(pattern, letters), text)
    while start <= len(text):
        found = run.first(start)
        if found is None:
            return
        yield found
        start = found[1] + (found[0] == found[1])
