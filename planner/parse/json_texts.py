"""Texts of json and jsonb are read by PostgreSQL's grammar, and what is wrong in one is told in its words."""

from __future__ import annotations

import json
import re

from sparkwave.catalog.errors import (
    INVALID_TEXT_REPRESENTATION,
    STATEMENT_TOO_COMPLEX,
    UNTRANSLATABLE_CHARACTER,
    Error,
)

_SPACE = " \t\n\r"
_WORD = re.compile(r"[\w\x80-\U0010ffff]*", re.ASCII)
_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][-+]?[0-9]+)?")
_LIKE_NUMBER = re.compile(
    r"-?[0-9](?:(?<!0)[0-9]+)?(?:\.[0-9]*)?(?:[eE][-+]?[0-9]*)?|-(?:\.[0-9]*)?(?:[eE][-+]?[0-9]*)?"
)
_PLAIN = re.compile(r'[^"\\\x00-\x1f]*')
_HEX = re.compile(r"[0-9a-fA-F]{0,4}")
_HALF_OR_ZERO = re.compile(r"\\u(?:0000|[dD][89a-fA-F])")


def check_json(text: str, is_read: bool) -> None:
    """Raise Error for a text that is no json, with the detail that PostgreSQL tells: 22P02, or 22P05 for `\\u0000`.

    `is_read` says that escapes have to be characters, as jsonb needs them, which has none for some.
    """
    try:
        json.loads(text, parse_constant=_no_number, parse_int=len, parse_float=len)
    except (ValueError, RecursionError):
        pass
    else:
        if not is_read or _HALF_OR_ZERO.search(text) is None:
            return
    try:
        _Reader(text, is_read).read()
    except RecursionError:
        raise Error("stack depth limit exceeded", STATEMENT_TOO_COMPLEX) from None


def is_json(text: str) -> bool:
    """Return whether a text is a document of jsonb."""
    try:
        check_json(text, is_read=True)
    except Error:
        return False
    return True


def _no_number(word: str) -> None:
    raise ValueError(word)


def _wrong(detail: str) -> Error:
    return Error("invalid input syntax for type json", INVALID_TEXT_REPRESENTATION, detail=detail)


class _Reader:
    """Reads a text token by token, as json_lex and pg_parse_json of PostgreSQL do."""

    def __init__(self, text: str, is_read: bool) -> None:
        self.text = text
        self.is_read = is_read
        self.at = 0
        self.token = ""  # an empty one is the end

    def read(self) -> None:
        self._next()
        self._value()
        if self.token:
            raise self._expected("end of input")

    def _value(self) -> None:
        if self.token == "{":
            self._members()
        elif self.token == "[":
            self._items()
        elif self.token in ("", "}", "]", ":", ","):
            raise self._expected("JSON value")
        else:
            self._next()

    def _items(self) -> None:
        self._next()
        if self.token != "]":
            self._value()
            while self.token == ",":
                self._next()
                self._value()
        self._close("]")

    def _members(self) -> None:
        self._next()
        if self.token.startswith('"'):
            self._member()
            while self.token == ",":
                self._next()
                if not self.token.startswith('"'):
                    raise self._expected("string")
                self._member()
        elif self.token != "}":
            raise self._expected('string or "}"')
        self._close("}")

    def _member(self) -> None:
        self._next()
        if self.token != ":":
            raise self._expected('":"')
        self._next()
        self._value()

    def _close(self, mark: str) -> None:
        if self.token != mark:
            raise self._expected(f'"," or "{mark}"')
        self._next()

    def _expected(self, what: str) -> Error:
        if not self.token:
            return _wrong("The input string ended unexpectedly.")
        return _wrong(f'Expected {what}, but found "{self.token}".')

    def _next(self) -> None:
        text, start = self.text, self.at
        while start < len(text) and text[start] in _SPACE:
            start += 1
        first = text[start : start + 1]
        if first == '"':
            end = self._end_of_string(start)
        elif first in ("", *"{}[],:"):
            end = start + len(first)
        else:
            end = self._end_of_word(start)
        self.at, self.token = end, text[start:end]

    def _end_of_word(self, start: int) -> int:
        end = _end(_WORD, self.text, _end(_LIKE_NUMBER, self.text, start))
        word = self.text[start:end]
        if _NUMBER.fullmatch(word) is None and word not in ("true", "false", "null"):
            raise _wrong(f'Token "{word or self.text[start]}" is invalid.')
        return end

    def _end_of_string(self, start: int) -> int:
        text, place, high = self.text, start + 1, False
        while True:
            plain = _end(_PLAIN, text, place)
            mark = text[plain : plain + 1]
            if high and (plain > place or mark != "\\" or text[plain + 1 : plain + 2] != "u"):
                raise _wrong("Unicode low surrogate must follow a high surrogate.")
            if mark == '"':
                return plain + 1
            if mark == "":
                raise _wrong(f'Token "{text[start:]}" is invalid.')
            if mark != "\\":
                raise _wrong(f"Character with value 0x{ord(mark):02x} must be escaped.")
            escaped = text[plain + 1 : plain + 2]
            if escaped == "":
                raise _wrong(f'Token "{text[start:]}" is invalid.')
            place = plain + 2
            if escaped == "u":
                high, place = self._unicode(place, high), place + 4
            elif escaped not in '"\\/bfnrt':
                raise _wrong(f'Escape sequence "\\{escaped}" is invalid.')

    def _unicode(self, place: int, after_high: bool) -> bool:
        """Check the four digits at a place; returns whether they are the first half of a character."""
        digits = self.text[place : _end(_HEX, self.text, place)]
        if len(digits) < 4:
            raise _wrong('"\\u" must be followed by four hexadecimal digits.')
        if not self.is_read:
            return False
        code = int(digits, 16)
        is_high, is_low = 0xD800 <= code <= 0xDBFF, 0xDC00 <= code <= 0xDFFF
        if is_high and after_high:
            raise _wrong("Unicode high surrogate must not follow a high surrogate.")
        if is_low != after_high:
            raise _wrong("Unicode low surrogate must follow a high surrogate.")
        if code == 0:
            raise Error(
                "unsupported Unicode escape sequence",
                UNTRANSLATABLE_CHARACTER,
                detail="\\u0000 cannot be converted to text.",
            )
        return is_high


def _end(pattern: re.Pattern[str], text: str, start: int) -> int:
    found = pattern.match(text, start)
    return start if found is None else found.end()
