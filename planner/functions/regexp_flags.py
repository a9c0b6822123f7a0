"""PostgreSQL's flags of regular expressions, as DuckDB's options and flags within the pattern.

(PostgreSQL's documentation, table 9.24 "ARE Embedded-Option Letters".)
"""

from __future__ import annotations

import re

from sqlglot import exp

from sparkwave.catalog import errors
from sparkwave.catalog.errors import Error
from sparkwave.catalog.regular_expressions import Flags

# Where functions have their flags: by the number of arguments, the place of the last.
_PLACES: dict[str, dict[int, int]] = {
    "regexp_replace": {4: 3, 5: 4, 6: 5}, "regexp_match": {3: 2}, "regexp_all_matches": {3: 2}, "regexp_like": {3: 2},
    "regexp_count": {4: 3}, "regexp_substr": {5: 4, 6: 4}, "regexp_instr": {6: 5, 7: 5},
    "regexp_split_to_array": {3: 2},
}  # fmt: skip
_WHERE_G = frozenset({"regexp_replace", "regexp_all_matches"})
# Flags that DuckDB reads as PostgreSQL does.
_SAME = frozenset("gics")


def _opening(flags: Flags) -> str:
    """Return what is before a pattern, with a parenthesis behind it; nothing where all is usual."""
    marks = ("i" if flags.ignores_case else "") + ("m" if flags.by_lines else "")
    marks += "-s" if flags.dot_excludes_lines else ""
    return f"(?{marks}:" if marks else ""


def flags_of(name: str, count: int) -> int | None:
    """Return the place of the flags among so many arguments of a function, None without flags."""
    return _PLACES.get(name, {}).get(count)


def read_flags(name: str, text: str) -> Flags:
    """Return the flags of a call by their letters. Raises Error 22023 for others, 0A000 for basic expressions."""
    letters, basic, _ = text.partition("b")
    found = Flags().with_letters(letters)
    if basic:
        raise Error("basic regular expressions are not supported", errors.FEATURE_NOT_SUPPORTED)
    if found.is_all and name not in _WHERE_G:
        hint = "Use the regexp_matches function instead." if name == "regexp_match" else None
        message = f'{name}() does not support the "global" option'
        raise Error(message, errors.INVALID_PARAMETER_VALUE, hint=hint)
    return found


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
    pattern, opening = arguments[1].unnest(), _opening(read)
    if (read.is_expanded or read.is_literal) and not pattern.is_string:
        message = "the flags x and q with a pattern that is not a constant are not supported"
        raise Error(message, errors.FEATURE_NOT_SUPPORTED)
    if pattern.is_string:
        text = re.escape(pattern.name) if read.is_literal else pattern.name
        text = _plain(text) if read.is_expanded else text
        pattern = exp.Literal.string(f"{opening}{text})" if opening else text)
    elif opening:
        opened = exp.DPipe(this=exp.Literal.string(opening), expression=arguments[1])
        pattern = exp.paren(exp.DPipe(this=opened, expression=exp.Literal.string(")")))
    made = list(arguments)
    made[1], made[place] = pattern, exp.Literal.string("g" if read.is_all else "")
    return made[:place] if name == "regexp_split_to_array" else made


_EXPANDED = re.compile(r"(\\.|\[\^?\]?(?:\[[:.=].*?[:.=]\]|[^\]])*\])|\s+|#[^\n]*", re.DOTALL)


def _plain(pattern: str) -> str:
    """Return an expanded pattern without its blanks and comments."""
    return _EXPANDED.sub(lambda match: match[1] or "", pattern)
