"""Reads the text of composite values like PostgreSQL's `record_in` (documentation 8.16.6)."""

from __future__ import annotations

import re

from sparkwave.catalog import errors
from sparkwave.catalog.errors import Error

# A field is any mix of quoted parts, escaped characters and plain ones; a doubled quote in a quoted part is a quote.
_FIELD = re.compile(r'((?:"(?:[^"\\]|""|\\.)*"|\\.|[^",)\\])*)([,)])', re.DOTALL)
_PART = re.compile(r'"((?:[^"\\]|""|\\.)*)"|\\(.)|([^"\\]+)', re.DOTALL)


def split_record(text: str) -> list[str | None]:
    """Return the fields of `(1,"a b",)`; an empty field is NULL. Raises Error 22P02 for malformed text."""
    body = text.strip()
    at, fields, end = 1, [], ","
    if not body.startswith("("):
        raise _malformed(text, "Missing left parenthesis.")
    while end == ",":
        found = _FIELD.match(body, at)
        if found is None:
            raise _malformed(text, "Unexpected end of input.")
        fields.append(_value(found[1]) if found[1] else None)
        at, end = found.end(), found[2]
    if at != len(body):
        raise _malformed(text, "Junk after right parenthesis.")
    return fields


def _value(written: str) -> str:
    return "".join(
        re.sub(r'\\(.)|""', lambda m: m[1] or '"', quoted, flags=re.DOTALL)
        if not (escaped or plain)
        else escaped or plain
        for quoted, escaped, plain in _PART.findall(written)
    )


def _malformed(text: str, detail: str) -> Error:
    return Error(f'malformed record literal: "{text}"', errors.INVALID_TEXT_REPRESENTATION, detail=detail)
