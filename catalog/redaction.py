"""Takes secrets out of texts that somebody else than their author may read: logs, events, what sessions run.

What is secret is told by the words around it, so the text need not be valid SQL. When in doubt more is taken out.
However a text is made, it is gone through once.
"""

from __future__ import annotations

import re

from sparkwave.catalog.source_model import MASK, SECRET_OPTIONS

# A literal in any of PostgreSQL's forms, the second being one within another; without its end, to the end of the text.
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

# One may have dashes in it, but a comment may follow it.
_CHARACTER = r"(?:[\w.]|-(?!-))"
_WORDS = "|".join(re.escape(word) for word in (*SECRET_OPTIONS, "passwd", "pwd", "access.key", "access_key"))
# What secrets may follow, each where it begins, and what ends a CREATE SECRET.
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
    """The text without passwords, secrets, tokens and keys: literals after PASSWORD, values of options that are named
    so, and what is between the user and the host of a URL."""
    return _Redaction(text).run()


class _Redaction:
    """One going through a text."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._done: list[str] = []  # what has been gone through, up to `_at`
        self._at = 0
        self._skipped: dict[int, int] = {}
        self._ends = {"*/": (0, -1), "\n": (0, -1)}  # a place, and where the next of each is from there on
        self._in_secret = False  # after SECRET, before its literal
        self._in_parentheses = False

    def run(self) -> str:
        place = 0
        while (sign := _SIGN.search(self._text, place)) is not None:
            place = self._after(sign)
        return "".join(self._done) + self._text[self._at :]

    def _after(self, sign: re.Match[str]) -> int:
        """Mask what follows if it is secret. Returns where to go on."""
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
        """Mask the literal that follows a word. Returns its end, None if there is none."""
        start = self._skip(word_end)
        literal = _LITERAL.match(self._text, start) if start > word_end else None
        return self._mask(start, literal.end(), "'") if literal else None

    def _mask_value(self, word_end: int) -> int | None:
        """Mask the value that an option is given. Returns its end, None if there is none."""
        is_quoted = self._text[word_end : word_end + 1] in ("'", '"')
        equals = _EQUALS.match(self._text, self._skip(word_end + is_quoted))
        if equals is None:
            return None
        for start in (self._skip(equals.end()), equals.end()):  # what looks like a comment may be the value
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
        """Past white space and comments. What was passed once, from another word, is not passed again."""
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
        """Where the comment ends that begins here; None if there is none, or none that ends."""
        end = {"/*": "*/", "--": "\n"}.get(self._text[start : start + 2])
        if end is None:
            return None
        asked, place = self._ends[end]
        if not asked <= start <= place:
            place = self._text.find(end, start + 2)
            place = len(self._text) if place < 0 else place
            self._ends[end] = start, place
        return place + len(end) if place < len(self._text) else None
