"""PostgreSQL's flags of regular expressions, as DuckDB's options and flags within the pattern.

(PostgreSQL's documentation, table 9.24 "ARE Embedded-Option Letters".)
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from sqlglot import exp

from sparkwave.catalog import errors
from sparkwave.catalog.errors import Error

# Where functions have their flags: by the number of arguments, the place of the last.
_PLACES: dict[str, dict[int, int]] = {
    "regexp_replace": {4: 3, 5: 4, 6: 5}, "regexp_match": {3: 2}, "regexp_all_matches": {3: 2}, "regexp_like": {3: 2},
    "regexp_count": {4: 3}, "regexp_substr": {5: 4, 6: 4}, "regexp_instr": {6: 5, 7: 5},
    "regexp_split_to_array": {3: 2},
}  # fmt: skip
_WHERE_G = frozenset({"regexp_replace", "regexp_all_matches"})
# Flags that DuckDB reads as PostgreSQL does.
_SAME = frozenset("gics")
# Whether a dot matches the end of a line, and whether ^ and $ match at lines.
_LINES = {"n": (False, True), "m": (False, True), "p": (False, False), "w": (True, True), "s": (True, False)}


@dataclass(frozen=True)
class Flags:
    """The flags of a call. `dot_matches_all` and `by_lines` are about ends of lines."""

    is_all: bool = False
    ignores_case: bool = False
    dot_matches_all: bool = True
    by_lines: bool = False
    is_expanded: bool = False
    is_literal: bool = False

    @property
    def opening(self) -> str:
        """What is before a pattern, with a parenthesis behind it; nothing where all is usual."""
        marks = ("i" if self.ignores_case else "") + ("m" if self.by_lines else "")
        return f"(?{marks}{'' if self.dot_matches_all else '-s'}:" if marks or not self.dot_matches_all else ""


def flags_of(name: str, count: int) -> int | None:
    """Return the place of the flags among so many arguments of a function, None without flags."""
    return _PLACES.get(name, {}).get(count)


def read_flags(name: str, text: str) -> Flags:
    """Return the flags of a call by their letters. Raises Error 22023 for others, 0A000 for basic expressions."""
    found: dict[str, bool] = {}
    for letter in text:
        if letter == "g":
            found["is_all"] = True
        elif letter in "ic":
            found["ignores_case"] = letter == "i"
        elif letter in _LINES:
            found["dot_matches_all"], found["by_lines"] = _LINES[letter]
        elif letter == "x":
            found["is_expanded"] = True
        elif letter == "t":
            found["is_expanded"] = False
        elif letter in "eq":
            found["is_literal"] = letter == "q"
        elif letter == "b":
            raise Error("basic regular expressions are not supported", errors.FEATURE_NOT_SUPPORTED)
        else:
            raise Error(f'invalid regular expression option: "{letter}"', errors.INVALID_PARAMETER_VALUE)
    if found.get("is_all") and name not in _WHERE_G:
        hint = "Use the regexp_matches function instead." if name == "regexp_match" else None
        message = f'{name}() does not support the "global" option'
        raise Error(message, errors.INVALID_PARAMETER_VALUE, hint=hint)
    return Flags(**found)


def with_flags(name: str, arguments: list[exp.Expr]) -> list[exp.Expr]:
    """Return the arguments of a call whose constant flags DuckDB reads; unchanged where it reads them as they are.

    Raises the errors of `read_flags`, and 0A000 for flags that need a constant pattern.
    """
    place = flags_of(name, len(arguments))
    flags = arguments[place].unnest() if place is not None else None
    if place is None or flags is None or not flags.is_string:
        return arguments
    read = read_flags(name, flags.name)
    if set(flags.name) <= _SAME and name != "regexp_split_to_array":
        return arguments
    pattern = arguments[1].unnest()
    if (read.is_expanded or read.is_literal) and not pattern.is_string:
        message = "the flags x and q with a pattern that is not a constant are not supported"
        raise Error(message, errors.FEATURE_NOT_SUPPORTED)
    if pattern.is_string:
        text = re.escape(pattern.name) if read.is_literal else pattern.name
        text = _plain(text) if read.is_expanded else text
        pattern = exp.Literal.string(f"{read.opening}{text})" if read.opening else text)
    elif read.opening:
        opened = exp.DPipe(this=exp.Literal.string(read.opening), expression=arguments[1])
        pattern = exp.paren(exp.DPipe(this=opened, expression=exp.Literal.string(")")))
    made = list(arguments)
    made[1], made[place] = pattern, exp.Literal.string("g" if read.is_all else "")
    return made[:place] if name == "regexp_split_to_array" else made


_EXPANDED = re.compile(r"(\\.|\[\^?\]?(?:\[[:.=].*?[:.=]\]|[^\]])*\])|\s+|#[^\n]*", re.DOTALL)


def _plain(pattern: str) -> str:
    """Return an expanded pattern without its blanks and comments."""
    return _EXPANDED.sub(lambda match: match[1] or "", pattern)
