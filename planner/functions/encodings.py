"""Texts in encodings of one byte a character, for `convert_to` and `convert_from`.

An encoding is the text of its 256 characters, which the macros of `catalog/system/scalar.sql` look bytes up in.
"""

from __future__ import annotations

import re
from functools import lru_cache

from sqlglot import exp

from sparkwave.catalog import errors
from sparkwave.catalog.errors import Error
from sparkwave.planner.functions.scalar_functions import ours

# PostgreSQL's names without what is no letter or digit, each with its name in messages and Python's codec.
_CODECS: dict[str, tuple[str, str]] = {
    **{
        alias: (f"LATIN{number}", f"iso8859-{part}")
        for number, part in ((1, 1), (2, 2), (3, 3), (4, 4), (5, 9), (6, 10), (7, 13), (8, 14), (9, 15), (10, 16))
        for alias in (f"latin{number}", f"iso8859{part}")
    },
    **{f"iso8859{part}": (f"ISO_8859_{part}", f"iso8859-{part}") for part in (5, 6, 7, 8)},
    **{
        alias: (f"WIN{page}", f"cp{page}")
        for page in (866, 874, 1250, 1251, 1252, 1253, 1254, 1255, 1256, 1257, 1258)
        for alias in (f"win{page}", f"windows{page}")
    },
    "koi8": ("KOI8R", "koi8-r"), "koi8r": ("KOI8R", "koi8-r"), "koi8u": ("KOI8U", "koi8-u"),
    "win": ("WIN1251", "cp1251"), "alt": ("WIN866", "cp866"),
}  # fmt: skip
_UTF8 = frozenset({"utf8", "unicode", "sqlascii"})
# PostgreSQL's encodings with several bytes a character, which are not read here.
_WIDE = frozenset(
    {"big5", "win950", "windows950", "euccn", "eucjis2004", "eucjp", "euckr", "euctw", "gb18030", "gbk", "win936",
     "windows936", "johab", "muleinternal", "shiftjis", "sjis", "mskanji", "win932", "windows932", "shiftjis2004",
     "uhc", "win949", "windows949"}
)  # fmt: skip
# A character that stands for bytes that are none.
_NONE = chr(0x10FFFD)


def convert_to(arguments: list[exp.Expr]) -> exp.Expr:
    """Return convert_to of a text. Raises Error 22023 for an unknown encoding, 0A000 for one that is not read."""
    return _converted("convert_to", "_encoded_by", "destination", arguments)


def convert_from(arguments: list[exp.Expr]) -> exp.Expr:
    """Return convert_from of bytes; raises as `convert_to`."""
    return _converted("convert_from", "_decoded_by", "source", arguments)


def convert(arguments: list[exp.Expr]) -> exp.Expr:
    """Return convert of bytes from one encoding to another; raises as `convert_to`."""
    value, source, destination = arguments
    return convert_to([convert_from([value, source]), destination])


def _converted(name: str, macro: str, what: str, arguments: list[exp.Expr]) -> exp.Expr:
    value, encoding = arguments
    encoding = encoding.unnest()
    if not encoding.is_string:
        return ours(name, value, encoding)
    key = re.sub("[^a-z0-9]", "", encoding.name.lower())
    if key in _UTF8:
        return ours(name, value, encoding if key == "utf8" else exp.Literal.string("UTF8"))
    if key in _WIDE:
        message = f'conversion of encoding "{encoding.name}" is not supported'
        raise Error(message, errors.FEATURE_NOT_SUPPORTED)
    if key not in _CODECS:
        raise Error(f'invalid {what} encoding name "{encoding.name}"', errors.INVALID_PARAMETER_VALUE)
    shown, codec = _CODECS[key]
    return ours(macro, value, exp.Literal.string(_characters(codec)), exp.Literal.string(shown))


@lru_cache
def _characters(codec: str) -> str:
    """Return the characters of an encoding's bytes, the byte 0 being none."""
    return _NONE + "".join(bytes((byte,)).decode(codec, "replace").replace("�", _NONE) for byte in range(1, 256))
