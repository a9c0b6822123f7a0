"""Messages of OpenPGP (RFC 4880) that are encrypted with a password, as pgcrypto's pgp_sym_encrypt writes them.

This module is sent to Spark's executors (`executor.spark.kernel`), so it imports nothing of this package but what is
sent with it.
"""

from __future__ import annotations

import hashlib
import os
import struct
import time
import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from sparkwave.catalog.ciphers import feedback
from sparkwave.catalog.errors import EXTERNAL_ROUTINE_INVOCATION_EXCEPTION, Error

_SESSION_KEY, _ENCRYPTED, _COMPRESSED, _LITERAL, _PROTECTED, _MDC = 3, 9, 8, 11, 18, 19


@dataclass(frozen=True)
class _Algorithm:
    """A cipher by its number in messages; lengths in bytes."""

    number: int
    name: str
    key: int
    block: int


_CIPHERS = {
    "aes": _Algorithm(7, "aes", 16, 16),
    "aes128": _Algorithm(7, "aes", 16, 16),
    "aes192": _Algorithm(8, "aes", 24, 16),
    "aes256": _Algorithm(9, "aes", 32, 16),
    "3des": _Algorithm(2, "3des", 24, 8),
    "cast5": _Algorithm(3, "cast5", 16, 8),
    "bf": _Algorithm(4, "bf", 16, 8),
    "blowfish": _Algorithm(4, "bf", 16, 8),
}
_BY_NUMBER = {cipher.number: cipher for cipher in _CIPHERS.values()}
_DIGESTS = {"md5": 1, "sha1": 2, "sha256": 8, "sha384": 9, "sha512": 10}
_BY_DIGEST = {number: name for name, number in _DIGESTS.items()}
_COUNTS = tuple((16 + (byte & 15)) << ((byte >> 4) + 6) for byte in range(256))


def _failed(message: str, hint: str | None = None) -> Error:
    return Error(message, EXTERNAL_ROUTINE_INVOCATION_EXCEPTION, hint=hint)


def _corrupt() -> Error:
    return _failed("Wrong key or corrupt data")


def _number(least: int, most: int) -> Callable[[str], int]:
    def read(text: str) -> int:
        if not text.isdecimal() or not least <= int(text) <= most:
            raise ValueError("must be 0 or 1" if (least, most) == (0, 1) else f"must be from {least} to {most}")
        return int(text)

    return read


def _one_of(names: dict[str, object]) -> Callable[[str], str]:
    def read(text: str) -> str:
        if text.lower() not in names:
            raise ValueError(f"must be one of {', '.join(names)}")
        return text.lower()

    return read


def _mode(text: str) -> int:
    if text not in ("0", "1", "3"):
        raise ValueError("must be 0, 1 or 3")
    return int(text)


# The options, each with its default and the reader of its text.
_OPTIONS: dict[str, tuple[object, Callable[[str], object]]] = {
    "cipher-algo": ("aes128", _one_of(dict(_CIPHERS))),
    "compress-algo": (0, _number(0, 2)),
    "compress-level": (6, _number(0, 9)),
    "convert-crlf": (0, _number(0, 1)),
    "disable-mdc": (0, _number(0, 1)),
    "sess-key": (0, _number(0, 1)),
    "s2k-mode": (3, _mode),
    "s2k-count": (0, _number(1024, 65011712)),
    "s2k-digest-algo": ("sha1", _one_of(dict(_DIGESTS))),
    "s2k-cipher-algo": ("", _one_of(dict(_CIPHERS))),
    "unicode-mode": (0, _number(0, 1)),
}


def _options(text: str) -> dict[str, object]:
    """Return the options of a text such as `cipher-algo=aes256, compress-algo=1`. Raises Error 39000."""
    found = {name: default for name, (default, _) in _OPTIONS.items()}
    for part in text.split(",") if text.strip() else ():
        name, separator, value = (piece.strip() for piece in part.partition("="))
        if not separator or name not in _OPTIONS:
            raise _failed("Illegal argument to function", f"Invalid parameter {name}.")
        try:
            found[name] = _OPTIONS[name][1](value)
        except ValueError as error:
            is_cipher = name.endswith("cipher-algo")
            message = "Unsupported cipher algorithm" if is_cipher else "Illegal argument to function"
            raise _failed(message, f"Invalid parameter {name}: it {error}.") from None
    return found


def of_message(name: str, texts: Sequence[str | None]) -> str | None:
    """Return pgp_sym_encrypt, pgp_sym_decrypt, or those of bytes, of data, a password and options; NULL for NULL.

    Bytes are hexadecimal digits.
    """
    given = [text for text in texts if text is not None]
    if len(given) < len(texts):
        return None
    data, password, options = bytes.fromhex(given[0]), given[1].encode(), given[2]
    is_text = not name.endswith("_bytea")
    made = encrypted_message if name.startswith("pgp_sym_encrypt") else decrypted_message
    return made(data, password, options, is_text).hex()


def encrypted_message(data: bytes, password: bytes, options: str, is_text: bool) -> bytes:
    """Return a message with the data. Raises Error 39000 for invalid options."""
    chosen = _options(options)
    cipher = _CIPHERS[str(chosen["cipher-algo"])]
    if is_text and chosen["convert-crlf"]:
        data = data.replace(b"\r\n", b"\n").replace(b"\n", b"\r\n")
    kind = b"b" if not is_text else b"u" if chosen["unicode-mode"] else b"t"
    inner = _packet(_LITERAL, kind + b"\0" + struct.pack(">I", int(time.time()) & 0xFFFFFFFF) + data)
    if chosen["compress-algo"]:
        number = int(str(chosen["compress-algo"]))
        compressor = zlib.compressobj(int(str(chosen["compress-level"])), wbits=-15 if number == 1 else 15)
        inner = _packet(_COMPRESSED, bytes([number]) + compressor.compress(inner) + compressor.flush())
    key_packet, key = _key_packet(chosen, password, cipher)
    start = os.urandom(cipher.block)
    start += start[-2:]
    if chosen["disable-mdc"]:
        return key_packet + _packet(_ENCRYPTED, _resynchronized(cipher, key, start, inner))
    whole = start + inner + bytes([0xC0 | _MDC, 20])
    sealed = whole + hashlib.sha1(whole).digest()
    return key_packet + _packet(_PROTECTED, b"\x01" + _cfb(cipher, key, bytes(cipher.block), sealed, encrypts=True))


def _key_packet(chosen: dict[str, object], password: bytes, cipher: _Algorithm) -> tuple[bytes, bytes]:
    """Return the packet from which the password gives the key of the data, and this key."""
    mode, digest = int(str(chosen["s2k-mode"])), str(chosen["s2k-digest-algo"])
    salt = os.urandom(8) if mode else b""
    wanted = int(str(chosen["s2k-count"])) or 65536 + int.from_bytes(os.urandom(2)) * 2
    place = next(place for place, count in enumerate(_COUNTS) if count >= wanted)
    told = bytes([mode, _DIGESTS[digest]]) + salt + (bytes([place]) if mode == 3 else b"")
    count = _COUNTS[place] if mode == 3 else 0
    if not chosen["sess-key"]:
        key = _key(password, salt, count, digest, cipher.key)
        return _packet(_SESSION_KEY, bytes([4, cipher.number]) + told), key
    outer = _CIPHERS[str(chosen["s2k-cipher-algo"] or chosen["cipher-algo"])]
    key = os.urandom(cipher.key)
    secret = bytes([cipher.number]) + key
    hidden = _cfb(outer, _key(password, salt, count, digest, outer.key), bytes(outer.block), secret, encrypts=True)
    return _packet(_SESSION_KEY, bytes([4, outer.number]) + told + hidden), key


def _key(password: bytes, salt: bytes, count: int, digest: str, length: int) -> bytes:
    """Return the key that a password gives (RFC 4880, 3.7.1). Raises Error 39000 for an empty one."""
    if not password:
        raise _failed("Illegal argument to function", "A password is not empty.")
    unit = salt + password
    total = max(count, len(unit))
    times, rest = divmod(total, len(unit)) if unit else (0, 0)
    key = b""
    number = 0
    while len(key) < length:
        key += hashlib.new(digest, bytes(number) + unit * times + unit[:rest]).digest()
        number += 1
    return key[:length]


def _cfb(cipher: _Algorithm, key: bytes, start: bytes, data: bytes, encrypts: bool) -> bytes:
    return feedback(cipher.name, key, start, data, encrypts)


def _resynchronized(cipher: _Algorithm, key: bytes, start: bytes, data: bytes) -> bytes:
    """Return data encrypted without a digest: behind its start the mode begins anew (RFC 4880, 13.9)."""
    first = _cfb(cipher, key, bytes(cipher.block), start, encrypts=True)
    return first + _cfb(cipher, key, first[2:], data, encrypts=True)


def _packet(tag: int, body: bytes) -> bytes:
    size = len(body)
    if size < 192:
        length = bytes([size])
    elif size < 8384:
        length = bytes([192 + ((size - 192) >> 8), (size - 192) & 0xFF])
    else:
        length = b"\xff" + struct.pack(">I", size)
    return bytes([0xC0 | tag]) + length + body


def decrypted_message(data: bytes, password: bytes, options: str, is_text: bool) -> bytes:
    """Return the data in a message. Raises Error 39000 for a wrong password, or bytes where text is wanted."""
    chosen = _options(options)
    try:
        return _content(data, password, is_text, bool(chosen["convert-crlf"]))
    except (IndexError, ValueError, KeyError, zlib.error, struct.error):
        raise _corrupt() from None


def _content(data: bytes, password: bytes, is_text: bool, converts: bool) -> bytes:
    found: tuple[_Algorithm, bytes] | None = None
    for tag, body in _packets(data):
        if tag == _SESSION_KEY:
            found = _session_key(body, password)
        elif tag in (_ENCRYPTED, _PROTECTED) and found is not None:
            inner = (_opened if tag == _PROTECTED else _opened_unprotected)(*found, body)
            return _literal(inner, is_text, converts)
    raise _corrupt()


def _session_key(body: bytes, password: bytes) -> tuple[_Algorithm, bytes]:
    if body[0] != 4:
        raise _corrupt()
    cipher, mode, digest = _BY_NUMBER[body[1]], body[2], _BY_DIGEST[body[3]]
    if mode not in (0, 1, 3):
        raise _corrupt()
    salt, rest = (body[4:12], body[12:]) if mode else (b"", body[4:])
    count, rest = (_COUNTS[rest[0]], rest[1:]) if mode == 3 else (0, rest)
    key = _key(password, salt, count, digest, cipher.key)
    if not rest:
        return cipher, key
    secret = _cfb(cipher, key, bytes(cipher.block), rest, encrypts=False)
    return _BY_NUMBER[secret[0]], secret[1:]


def _opened(cipher: _Algorithm, key: bytes, body: bytes) -> bytes:
    whole = _cfb(cipher, key, bytes(cipher.block), body[1:], encrypts=False)
    inner, digest = whole[:-20], whole[-20:]
    if body[0] != 1 or hashlib.sha1(inner).digest() != digest or inner[-2:] != bytes([0xC0 | _MDC, 20]):
        raise _corrupt()
    return inner[cipher.block + 2 : -2]


def _opened_unprotected(cipher: _Algorithm, key: bytes, body: bytes) -> bytes:
    first, rest = body[: cipher.block + 2], body[cipher.block + 2 :]
    start = _cfb(cipher, key, bytes(cipher.block), first, encrypts=False)
    if start[-2:] != start[-4:-2]:
        raise _corrupt()
    return _cfb(cipher, key, first[2:], rest, encrypts=False)


def _literal(data: bytes, is_text: bool, converts: bool) -> bytes:
    """Return the data of the literal packet, which may be compressed."""
    for tag, body in _packets(data):
        if tag == _COMPRESSED:
            if body[0] not in (0, 1, 2):
                raise _failed("Unsupported compression algorithm")
            plain = body[1:] if not body[0] else zlib.decompress(body[1:], wbits=-15 if body[0] == 1 else 15)
            return _literal(plain, is_text, converts)
        if tag == _LITERAL:
            if is_text and body[:1] not in (b"t", b"u"):
                raise _failed("Not text data")
            content = body[6 + body[1] :]
            return content.replace(b"\r\n", b"\n") if is_text and converts else content
    raise _corrupt()


def _packets(data: bytes) -> Iterator[tuple[int, bytes]]:
    """The packets of a message, each with its tag, in both formats of their lengths."""
    at = 0
    while at < len(data):
        head, at = data[at], at + 1
        if not head & 0x80:
            raise _corrupt()
        if head & 0x40:
            body, at = _new_body(data, at)
            yield head & 0x3F, body
            continue
        size = (1, 2, 4, 0)[head & 3]
        length = int.from_bytes(data[at : at + size]) if size else len(data) - at
        yield (head >> 2) & 15, data[at + size : at + size + length]
        at += size + length


def _new_body(data: bytes, at: int) -> tuple[bytes, int]:
    """Return the body of a packet whose length begins at a place, which may be in parts, and the place behind it."""
    body = b""
    while True:
        first, at = data[at], at + 1
        is_part = 224 <= first < 255
        if first < 192:
            length = first
        elif first < 224:
            length, at = ((first - 192) << 8) + data[at] + 192, at + 1
        elif is_part:
            length = 1 << (first & 0x1F)
        else:
            length, at = int.from_bytes(data[at : at + 4]), at + 4
        if at + length > len(data):
            raise _corrupt()
        body, at = body + data[at : at + length], at + length
        if not is_part:
            return body, at
