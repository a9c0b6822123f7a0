"""Functions of texts in Python, for DuckDB's databases: digests, escapes, normal forms, json, and format.

This module is sent to Spark's executors (`executor.spark.kernel`), so it imports nothing of this package but what is
sent with it.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import re
import unicodedata
from collections.abc import Callable, Sequence

from sparkwave.catalog.errors import (
    INVALID_PARAMETER_VALUE,
    INVALID_TEXT_REPRESENTATION,
    NULL_VALUE_NOT_ALLOWED,
    SYNTAX_ERROR,
    Error,
)

_ESCAPE = re.compile(
    r"\\(?:(\\)|([0-9a-fA-F]{4})|u([0-9a-fA-F]{4})|\+([0-9a-fA-F]{6})|U([0-9a-fA-F]{8})|(.|$))", re.DOTALL
)
_SPECIFIER = re.compile(r"%(?:(%)|(?:(\d+)\$)?(-)?(?:(\d+)|(\*)(?:(\d+)\$)?)?(.|$))", re.DOTALL)
_PLAIN_NAME = re.compile(r"[a-z_][a-z0-9_]*")
# The words that PostgreSQL puts between quotes as names: all of `pg_get_keywords` that are not unreserved.
_WORDS = (
    "all analyse analyze and any array as asc asymmetric authorization between bigint binary bit boolean both "
    "case cast char character check coalesce collate collation column concurrently constraint create cross "
    "current_catalog current_date current_role current_schema current_time current_timestamp current_user dec "
    "decimal default deferrable desc distinct do else end except exists extract false fetch float for foreign "
    "freeze from full grant greatest group grouping having ilike in initially inner inout int integer "
    "intersect interval into is isnull join lateral leading least left like limit localtime localtimestamp "
    "national natural nchar none normalize not notnull null nullif numeric offset on only or order out outer "
    "overlaps overlay placing position precision primary real references returning right row select "
    "session_user setof similar smallint some substring symmetric table tablesample then time timestamp to "
    "trailing treat trim true union unique user using values varchar variadic verbose when where window with "
    "xmlattributes xmlconcat xmlelement xmlexists xmlforest xmlnamespaces xmlparse xmlpi xmlroot xmlserialize "
    "xmltable"
)
QUOTED_WORDS = frozenset(_WORDS.split())
_FORMS = ("NFC", "NFD", "NFKC", "NFKD")


def digest(content: str, name: str) -> str:
    """Return the digest of bytes, both as hexadecimal digits."""
    return hashlib.new(name, bytes.fromhex(content)).hexdigest()


def keyed_digest(secret_and_content: str, name: str) -> str:
    """Return the digest of bytes with a secret (hmac); both are hexadecimal digits, with a colon between them."""
    secret, _, content = secret_and_content.partition(":")
    try:
        return hmac.new(bytes.fromhex(secret), bytes.fromhex(content), name.lower()).hexdigest()
    except ValueError:
        raise Error(f'Cannot use "{name}": No such hash algorithm', INVALID_PARAMETER_VALUE) from None


def unescaped(text: str, _: str) -> str:
    """Return a text without Unicode escapes (unistr). Raises Error 42601."""
    found = _ESCAPE.sub(_character, text)
    try:
        return found.encode("utf-16", "surrogatepass").decode("utf-16")
    except UnicodeDecodeError:
        raise Error("invalid Unicode surrogate pair", SYNTAX_ERROR) from None


def _character(match: re.Match[str]) -> str:
    if match[1]:
        return "\\"
    digits = match[2] or match[3] or match[4] or match[5]
    if digits is None:
        hint = "Unicode escapes must be \\XXXX, \\+XXXXXX, \\uXXXX, or \\UXXXXXXXX."
        raise Error("invalid Unicode escape", SYNTAX_ERROR, hint=hint)
    if not 0 < int(digits, 16) <= 0x10FFFF:
        raise Error("invalid Unicode code point", SYNTAX_ERROR)
    return chr(int(digits, 16))


def normalized(text: str, form: str) -> str:
    return unicodedata.normalize(_form(form), text)  # type: ignore[arg-type]


def is_normalized(text: str, form: str) -> str:
    return str(unicodedata.is_normalized(_form(form), text)).lower()  # type: ignore[arg-type]


def is_json(text: str, wanted: str) -> str:
    """Return whether a text is json of a kind: `value`, `object`, `array` or `scalar`, perhaps `… unique`."""
    kind, _, unique = wanted.partition(" ")
    made = dict if not unique else _of_unique_keys
    try:
        found = json.loads(text, parse_float=str, parse_int=str, parse_constant=_no_number, object_pairs_hook=made)
    except (ValueError, RecursionError):
        return "false"
    own = "object" if isinstance(found, dict) else "array" if isinstance(found, list) else "scalar"
    return str(kind in ("value", own)).lower()


def _no_number(text: str) -> None:
    raise ValueError(text)  # NaN and Infinity, which Python reads


def _of_unique_keys(pairs: list[tuple[str, object]]) -> dict[str, object]:
    made = dict(pairs)
    if len(made) < len(pairs):
        raise ValueError("a key is there twice")
    return made


def _form(form: str) -> str:
    if form.upper() not in _FORMS:
        raise Error(f"invalid normalization form: {form}", INVALID_PARAMETER_VALUE)
    return form.upper()


BY_NAME: dict[str, Callable[[str, str], str]] = {
    "sparkwave_digest": digest,
    "sparkwave_hmac": keyed_digest,
    "sparkwave_is_json": is_json,
    "sparkwave_unistr": unescaped,
    "sparkwave_normalize": normalized,
    "sparkwave_is_normalized": is_normalized,
}


def formatted(template: str, values: Sequence[str | None]) -> str:
    """Return format() of values, given as texts. Raises Error 22023, 22004, 22P02."""
    pieces: list[str] = []
    at = end = 0

    def value(position: str | None) -> str | None:
        nonlocal at
        if position is not None and int(position) == 0:
            message = "format specifies argument 0, but arguments are numbered from 1"
            raise Error(message, INVALID_PARAMETER_VALUE)
        at = int(position) if position is not None else at + 1
        if at > len(values):
            raise Error("too few arguments for format()", INVALID_PARAMETER_VALUE)
        return values[at - 1]

    for found in _SPECIFIER.finditer(template):
        percent, position, minus, digits, star, width_position, kind = found.groups()
        pieces.append(template[end : found.start()])
        end = found.end()
        if percent:
            pieces.append("%")
            continue
        width = int(digits or 0)
        if star:
            width = _width(value(width_position))
        if kind not in ("s", "I", "L"):
            raise _wrong_specifier(kind)
        text = _specified(value(position), kind)
        pieces.append(text.ljust(abs(width)) if minus or width < 0 else text.rjust(width))
    return "".join([*pieces, template[end:]])


def _wrong_specifier(kind: str) -> Error:
    what = f'unrecognized format() type specifier "{kind}"' if kind else "unterminated format() type specifier"
    return Error(what, INVALID_PARAMETER_VALUE, hint='For a single "%" use "%%".')


def _width(text: str | None) -> int:
    try:
        return int(text or 0)
    except ValueError:
        raise Error(f'invalid input syntax for type integer: "{text}"', INVALID_TEXT_REPRESENTATION) from None


def _specified(text: str | None, kind: str) -> str:
    if kind == "I":
        if text is None:
            raise Error("null values cannot be formatted as an SQL identifier", NULL_VALUE_NOT_ALLOWED)
        is_plain = _PLAIN_NAME.fullmatch(text) is not None and text not in QUOTED_WORDS
        return text if is_plain else '"' + text.replace('"', '""') + '"'
    if kind == "s":
        return text or ""
    if text is None:
        return "NULL"
    mark = "E" if "\\" in text else ""
    return f"{mark}'" + text.replace("'", "''").replace("\\", "\\\\") + "'"
