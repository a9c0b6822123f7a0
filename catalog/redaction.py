"""Removes secrets from texts that other people than their author may read: logs, events, statements of sessions.

The words around a value determine whether it is secret, so the text need not be valid SQL. In doubt a value is removed.
The time is linear in the length of any text.
"""

from __future__ import annotations

import re

from sparkwave.catalog.source_model import MASK, SECRET_OPTIONS

# A literal in any of PostgreSQL's forms; the second form is a literal within another. Without an end, it ends with the
# text.
_LITERAL = re.compile(
    r"""
    [eE]'(?:[^'\\]|''|\\(?:.|\Z))*+(?:'|\Z)
    | ''(?=[^',;)\s])[^']*+''
    | (?:[uU]&)?'(?:[^']|'')*+(?:'|\Z)
    | \$(?P<tag>\w*+)\$.*?(?:\$(?P=tag)\$|\Z)
    """,
    re.VERBOSE | re.DOTALL,
)
_QUOTED = re.compile(r'"(?:[^"\\]|\\.)*+"?', re.DOTALL)
_BARE = re.compile(r"""(?![\s$'"({]|secret\s)[^\s,;)'"&}]++""", re.IGNORECASE)
_EQUALS = re.compile(r"=>?|:")
_BLANK = re.compile(r"\s*+")
_COMMENT_MARK = re.compile(r"/\*|\*/")

# An option's name may contain dashes, but a comment may follow it.
_CHARACTER = r"(?:[\w.]|-(?!-))"
_WORDS = "|".join(re.escape(word) for word in (*SECRET_OPTIONS, "passwd", "pwd", "access.key", "access_key"))
# The words before a secret, matched at their beginning, and the marks that end a CREATE SECRET.
_SIGN = re.compile(
    rf"""
    (?:(?<![\w.-])|(?<=--)) (?: (?P<option>(?={_CHARACTER}*?(?:{_WORDS})){_CHARACTER}++) | (?P<as>as)(?!{_CHARACTER}) )
    | (?P<url>://[^\s/:@'"]*+:)[^\s@/'"]++(?=@)
    | (?P<mark>[;'()])
    """,
    re.IGNORECASE | re.VERBOSE,
)
_SECRET = re.compile(r"\bsecret\b", re.IGNORECASE)
_PASSWORD = re.compile(r"\bpassword\Z", re.IGNORECASE)


def redact(text: str) -> str:
    """Return the text without passwords, secrets, tokens and keys.

    These are literals after PASSWORD, values of options with such names, and the part between user and host of a
    URL.
    """
    return _Redaction(text).run()


class _Redaction:
    """One pass over a text."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._done: list[str] = []  # the output for the text up to `_at`
        self._at = 0
        self._skipped: dict[int, int] = {}
        self._line_end = (0, -1)  # a position, and the next end of a line from there on
        self._comments: dict[int, int] | None = None  # the end of each comment by its beginning, once they are known
        self._in_secret = False  # after SECRET and before its literal
        self._in_parentheses = False

    def run(self) -> str:
        place = 0
        while (sign := _SIGN.search(self._text, place)) is not None:
            place = self._after(sign)
        return "".join(self._done) + self._text[self._at :]

    def _after(self, sign: re.Match[str]) -> int:
        """Mask the text after a sign if it is secret. Returns the position to go on at."""
        kind, end = sign.lastgroup, sign.end()
        if kind == "url":
            self._mask(sign.end("url"), end)
        elif kind == "mark":
            self._pass(sign[0])
        elif kind == "as":
            return (self._in_secret and self._mask_literal(end)) or end
        else:
            self._in_secret |= _SECRET.search(sign[0]) is not None
            is_password = _PASSWORD.search(sign[0]) is not None
            return (is_password and self._mask_literal(end)) or self._mask_value(end) or end
        return end

    def _pass(self, mark: str) -> None:
        if mark in "()":
            self._in_parentheses = mark == "("
        elif not self._in_parentheses:
            self._in_secret = False

    def _mask_literal(self, word_end: int) -> int | None:
        """Mask the literal that follows a word. Returns its end, None if no literal follows."""
        start = self._skip(word_end)
        literal = _LITERAL.match(self._text, start) if start > word_end else None
        return self._mask(start, literal.end(), "'") if literal else None

    def _mask_value(self, word_end: int) -> int | None:
        """Mask the value of an option. Returns its end, None if the option has none."""
        is_quoted = self._text[word_end : word_end + 1] in ("'", '"')
        equals = _EQUALS.match(self._text, self._skip(word_end + is_quoted))
        if equals is None:
            return None
        for start in (self._skip(equals.end()), equals.end()):  # an apparent comment may be the value
            literal = _LITERAL.match(self._text, start)
            if literal is not None:
                return self._mask(start, literal.end(), "'")
            bare = _QUOTED.match(self._text, start) or _BARE.match(self._text, start)
            if bare is not None:
                return self._mask(start, bare.end())
        return None

    def _mask(self, start: int, end: int, quote: str = "") -> int:
        self._done += [self._text[self._at : start], quote, MASK, quote]
        self._at = end
        self._in_secret = False
        return end

    def _skip(self, place: int) -> int:
        """The position after white space and comments. Known positions are kept, so that no part is skipped twice."""
        passed = []
        while (known := self._skipped.get(place)) is None:
            passed.append(place)
            blank = _BLANK.match(self._text, place)
            assert blank is not None
            place = blank.end()
            end = self._comment_end(place)
            if end is None:
                known = place
                break
            place = end
        self._skipped |= dict.fromkeys(passed, known)
        return known

    def _comment_end(self, start: int) -> int | None:
        """The end of the comment that begins here; None if none begins, or if it has no end."""
        if self._text.startswith("/*", start):
            if self._comments is None:
                self._comments = _comments(self._text)
            return self._comments.get(start)
        if not self._text.startswith("--", start):
            return None
        asked, place = self._line_end
        if not asked <= start <= place:
            place = self._text.find("\n", start + 2)
            place = len(self._text) if place < 0 else place
            self._line_end = start, place
        return place + 1 if place < len(self._text) else None


def _comments(text: str) -> dict[int, int]:
    """The end of each comment that has one, by its beginning; comments contain comments, as in PostgreSQL."""
    ends: dict[int, int] = {}
    begun: list[int] = []
    for mark in _COMMENT_MARK.finditer(text):
        if mark[0] == "/*":
            begun.append(mark.start())
        elif begun:
            ends[begun.pop()] = mark.end()
    return ends
