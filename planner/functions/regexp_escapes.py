"""PostgreSQL's escapes in constant regular expressions, as RE2 has them (documentation, 9.7.3.3).

RE2 has no beginnings and ends of words apart: `\\m` is `\\b` where a letter follows, `\\M` where one is before.
"""

from __future__ import annotations

import re

from sqlglot import exp

from sparkwave.catalog import errors
from sparkwave.catalog.errors import Error

_TOKEN = re.compile(
    r"\[\[:[<>]:\]\]|\\u[0-9a-fA-F]{4}|\\U[0-9a-fA-F]{8}|\\.|\[\^?\]?(?:\[[:.=].*?[:.=]\]|[^\]])*\]"
    r"|\((?:\?[^:()]*:)?|.",
    re.DOTALL,
)
_SAME = {r"\Z": r"\z", r"\y": r"\b", r"\Y": r"\B", r"\B": r"\\"}
_STARTS, _ENDS = (r"\m", "[[:<:]]"), (r"\M", "[[:>:]]")
_GROUPS = frozenset("123456789")
_AROUND = ("?=", "?!", "?<=", "?<!")  # behind a parenthesis
_LITERAL, _PLAIN = "***=", "***:"
PATTERNS = frozenset(
    {"regexp_like", "regexp_ilike", "regexp_replace", "regexp_match", "regexp_all_matches", "regexp_count",
     "regexp_substr", "regexp_instr", "regexp_split_to_array"}
)  # fmt: skip


def with_escapes(name: str, arguments: list[exp.Expr]) -> list[exp.Expr]:
    """Return the arguments of a call with a constant pattern in RE2's form. Raises Error 0A000."""
    if name not in PATTERNS or len(arguments) < 2 or not arguments[1].is_string:
        return arguments
    pattern = in_re2(arguments[1].name)
    if pattern == arguments[1].name:
        return arguments
    return [arguments[0], exp.Literal.string(pattern), *arguments[2:]]


def in_re2(pattern: str) -> str:
    """Return a pattern in RE2's form. Raises Error 0A000 for the edge of a word beside what may be no word."""
    if pattern.startswith(_LITERAL):
        return re.escape(pattern.removeprefix(_LITERAL))
    tokens = _TOKEN.findall(pattern.removeprefix(_PLAIN))
    return "".join(_translated(tokens, place) for place in range(len(tokens)))


def is_beyond_re2(pattern: str) -> bool:
    """Return whether a pattern has back references or look-around."""
    if pattern.startswith(_LITERAL):
        return False
    tokens = _TOKEN.findall(pattern)
    has_back = any(token[0] == "\\" and token[1:] in _GROUPS for token in tokens)
    behind = ("".join(tokens[place : place + 3]) for place, token in enumerate(tokens, start=1) if token == "(")
    return has_back or any(text.startswith(_AROUND) for text in behind)


def _translated(tokens: list[str], place: int) -> str:
    token = tokens[place]
    if token in _STARTS or token in _ENDS:
        is_sure = _begins(tokens[place + 1 :]) if token in _STARTS else _ends(tokens[:place])
        if not is_sure:
            message = f"{token} in a regular expression beside what may be no letter is not supported"
            raise Error(message, errors.FEATURE_NOT_SUPPORTED)
        return r"\b"
    if token[:2] in (r"\u", r"\U") and len(token) > 2:
        return rf"\x{{{token[2:]}}}"
    return _SAME.get(token, token)


def _is_of_word(token: str) -> bool:
    return token in (r"\w", r"\d") or (len(token) == 1 and token.isascii() and (token.isalnum() or token == "_"))


def _begins(tokens: list[str]) -> bool:
    """Return whether what matches tokens begins with a character of a word."""
    if not tokens:
        return False
    end = 1
    if tokens[0].startswith("("):
        end = _closing(tokens)
        if not end or not all(map(_begins, _alternatives(tokens[1 : end - 1]))):
            return False
    elif not _is_of_word(tokens[0]):
        return False
    return tokens[end : end + 1] not in (["*"], ["?"], ["{"])


def _ends(tokens: list[str]) -> bool:
    """Return whether what matches tokens ends with a character of a word."""
    while tokens and tokens[-1] == "+":
        tokens = tokens[:-1]
    if not tokens:
        return False
    if tokens[-1] != ")":
        return _is_of_word(tokens[-1])
    start = next(
        (n for n in range(len(tokens)) if tokens[n].startswith("(") and _closing(tokens[n:]) == len(tokens) - n), None
    )
    return start is not None and all(map(_ends, _alternatives(tokens[start + 1 : -1])))


def _closing(tokens: list[str]) -> int:
    """Return the place behind the group that begins the tokens, 0 without an end."""
    depth = 0
    for place, token in enumerate(tokens):
        depth += token.startswith("(") - (token == ")")
        if not depth:
            return place + 1
    return 0


def _alternatives(tokens: list[str]) -> list[list[str]]:
    found: list[list[str]] = [[]]
    depth = 0
    for token in tokens:
        depth += token.startswith("(") - (token == ")")
        if token == "|" and not depth:
            found.append([])
        else:
            found[-1].append(token)
    return found


def without_groups(pattern: str) -> str:
    """Return a pattern whose groups capture nothing."""
    return "".join("(?:" if token == "(" else token for token in _TOKEN.findall(pattern))
