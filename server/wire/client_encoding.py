"""client_encoding: converts texts between a client's encoding and UTF-8, in which everything is stored.

Encodings have PostgreSQL's names (its docs, "Character Set Support"). EUC_TW and MULE_INTERNAL are missing, since
Python has no codec for them.
"""

from __future__ import annotations

import codecs
import re
from dataclasses import dataclass

import pyarrow as pa

from sparkwave.catalog.errors import CHARACTER_NOT_IN_REPERTOIRE, FEATURE_NOT_SUPPORTED, UNTRANSLATABLE_CHARACTER, Error
from sparkwave.catalog.types import Type


@dataclass(frozen=True)
class Encoding:
    """An encoding by PostgreSQL's name, with Python's codec for it. `is_utf8`: texts need no conversion."""

    name: str
    codec: str = "utf-8"

    @property
    def is_utf8(self) -> bool:
        return self.codec == "utf-8"

    def concerns(self, type: Type) -> bool:
        """Return whether the binary format of a type is text that has to be converted.

        Raises Error 0A000 for an array or a row, unless the encoding is UTF-8.
        """
        if self.is_utf8:
            return False
        if type.dimensions or type.is_struct:
            raise Error(f"binary format of {type} in encoding {self.name} is not supported", FEATURE_NOT_SUPPORTED)
        return type.is_text or type.name in ("json", "jsonb", "enum")

    def decode(self, data: bytes) -> str:
        """Return the text of `data`.

        Raises Error 22021 for bytes that are no text in the encoding, and for a zero byte, which is in no text; 22P05
        for a character that UTF-8 does not have.
        """
        if b"\0" in data:
            raise Error(f'invalid byte sequence for encoding "{self.name}": 0x00', CHARACTER_NOT_IN_REPERTOIRE)
        try:
            return data.decode(self.codec)
        except UnicodeDecodeError as error:
            raise self._malformed(error) from None

    def to_utf8(self, data: bytes) -> bytes:
        """Convert `data` from this encoding to UTF-8. Raises the errors of `decode`."""
        return data if self.is_utf8 else self.decode(data).encode()

    def encode_array(self, array: pa.Array) -> pa.Array:
        """Convert a `binary` array of UTF-8 texts to this encoding.

        Raises Error 22P05 for a character that this encoding does not have.
        """
        if self.is_utf8:
            return array
        return pa.array([None if value is None else self.from_utf8(value) for value in array.to_pylist()], pa.binary())

    def from_utf8(self, data: bytes) -> bytes:
        """Convert UTF-8 to this encoding. Raises Error 22P05 for a character that the encoding does not have."""
        try:
            return data if self.is_utf8 else data.decode().encode(self.codec)
        except UnicodeEncodeError as error:
            raise _untranslatable(error.object[error.start].encode(), "UTF8", self.name) from None

    def stream(self) -> codecs.IncrementalDecoder:
        """Return a decoder for a text that arrives in pieces, cut at any byte."""
        return codecs.getincrementaldecoder(self.codec)()

    def decode_piece(self, decoder: codecs.IncrementalDecoder, data: bytes, last: bool = False) -> bytes:
        """Return the next piece of the text of a `stream` decoder, in UTF-8. Raises the errors of `decode`."""
        try:
            return decoder.decode(data, last).encode()
        except UnicodeDecodeError as error:
            raise self._malformed(error) from None

    def _width(self, first: int) -> int:
        """Return the number of bytes of a character, guessed from its first byte."""
        if not self.is_utf8:
            return 1 if first < 0x80 else 2
        return next((width for low, width in _UTF8_WIDTHS if low <= first < 0xF8), 1)

    def _malformed(self, error: UnicodeDecodeError) -> Error:
        bad = error.object[error.start : error.start + self._width(error.object[error.start])]
        if _is_single_byte(self.codec):
            return _untranslatable(bad[:1], self.name, "UTF8")
        return Error(f'invalid byte sequence for encoding "{self.name}": {_bytes(bad)}', CHARACTER_NOT_IN_REPERTOIRE)


_UTF8_WIDTHS = ((0xF0, 4), (0xE0, 3), (0xC0, 2))


def _untranslatable(bad: bytes, own: str, other: str) -> Error:
    message = f'character with byte sequence {_bytes(bad)} in encoding "{own}" has no equivalent in encoding "{other}"'
    return Error(message, UNTRANSLATABLE_CHARACTER)


def _bytes(data: bytes) -> str:
    return " ".join(f"0x{byte:02x}" for byte in data)


def _is_single_byte(codec: str) -> bool:
    return re.match(r"iso8859|cp125|cp866|cp874|koi8", codec) is not None


UTF8 = Encoding("UTF8")

_ISO = {1: "LATIN1", 2: "LATIN2", 3: "LATIN3", 4: "LATIN4", 9: "LATIN5", 10: "LATIN6", 13: "LATIN7", 14: "LATIN8"}
_ISO |= {15: "LATIN9", 16: "LATIN10"} | {number: f"ISO_8859_{number}" for number in (5, 6, 7, 8)}
ENCODINGS: dict[str, Encoding] = {
    encoding.name: encoding
    for encoding in (
        UTF8,
        Encoding("SQL_ASCII"),  # PostgreSQL converts nothing: the client gets UTF-8
        *(Encoding(name, f"iso8859-{number}") for number, name in _ISO.items()),
        *(Encoding(f"WIN{number}", f"cp{number}") for number in (866, 874, *range(1250, 1259))),
        Encoding("KOI8R", "koi8-r"),
        Encoding("KOI8U", "koi8-u"),
        Encoding("EUC_CN", "gb2312"),
        Encoding("EUC_JP", "euc_jp"),
        Encoding("EUC_JIS_2004", "euc_jis_2004"),
        Encoding("EUC_KR", "euc_kr"),
        Encoding("JOHAB", "johab"),
        Encoding("SJIS", "cp932"),
        Encoding("SHIFT_JIS_2004", "shift_jis_2004"),
        Encoding("BIG5", "cp950"),
        Encoding("GBK", "cp936"),
        Encoding("GB18030", "gb18030"),
        Encoding("UHC", "cp949"),
    )
}

# PostgreSQL's other spellings (src/common/encnames.c), reduced to lower-case letters and digits.
_SPELLINGS = {re.sub("_", "", name).lower(): name for name in ENCODINGS}
_SPELLINGS |= {f"iso8859{number}": name for number, name in _ISO.items()}
_SPELLINGS |= {f"windows{number}": f"WIN{number}" for number in (866, 874, *range(1250, 1259))}
_SPELLINGS |= {"windows932": "SJIS", "windows936": "GBK", "windows949": "UHC", "windows950": "BIG5"}
_SPELLINGS |= {"unicode": "UTF8", "koi8": "KOI8R", "shiftjis": "SJIS", "mskanji": "SJIS", "win932": "SJIS"}
_SPELLINGS |= {"win936": "GBK", "win949": "UHC", "win950": "BIG5", "alt": "WIN866", "win": "WIN1251"}
_SPELLINGS |= dict.fromkeys(("abc", "tcvn", "tcvn5712", "vscii"), "WIN1258")


def encoding_name(text: str) -> str:
    """Return PostgreSQL's name of an encoding, for any spelling. Raises ValueError for an unknown encoding."""
    name = _SPELLINGS.get(re.sub(r"[^a-z0-9]", "", text.lower()))
    if name is None:
        raise ValueError(f"one of {', '.join(sorted(ENCODINGS))} expected")
    return name
