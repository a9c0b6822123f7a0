"""Encryption by ciphers, as of PostgreSQL's pgcrypto: encrypt and decrypt, as functions of texts.

Bytes are hexadecimal digits. This module is sent to Spark's executors (`executor.spark.kernel`), so it imports nothing
of this package but what is sent with it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.decrepit.ciphers.algorithms import CAST5, Blowfish, TripleDES
from cryptography.hazmat.decrepit.ciphers.modes import CFB
from cryptography.hazmat.primitives.ciphers import Cipher, CipherAlgorithm
from cryptography.hazmat.primitives.ciphers.algorithms import AES
from cryptography.hazmat.primitives.ciphers.modes import CBC, ECB
from cryptography.hazmat.primitives.padding import PKCS7

from sparkwave.catalog.errors import EXTERNAL_ROUTINE_INVOCATION_EXCEPTION, INVALID_PARAMETER_VALUE, Error

# The algorithms by pgcrypto's names, with the lengths of keys in bytes; shorter keys are filled up with zeros.
_ALGORITHMS: dict[str, tuple[Callable[[bytes], CipherAlgorithm], tuple[int, ...]]] = {
    "aes": (AES, (16, 24, 32)),
    "bf": (Blowfish, tuple(range(4, 57))),
    "3des": (TripleDES, (24,)),
    "cast5": (CAST5, (16,)),
}
_TYPE = re.compile(r"([a-z0-9]+?)(?:-(cbc|ecb))?(?:/([a-z]+):([a-z]+))?")


def _cipher(name: str, key: bytes, start: bytes) -> tuple[Cipher[Any], int, bool]:
    """Return a cipher by its name, such as `aes-cbc/pad:none`, the bytes of its blocks, and whether it pads them.

    Raises Error 22023.
    """
    found = _TYPE.fullmatch(name.lower())
    if found is None or found[1] not in _ALGORITHMS or (found[3] == "pad" and found[4] not in ("pkcs", "none")):
        raise Error(f'Cannot use "{name}": No such cipher algorithm', INVALID_PARAMETER_VALUE)
    if found[3] not in (None, "pad"):
        raise Error(f'Cannot use "{name}": Unknown option', INVALID_PARAMETER_VALUE)
    made, lengths = _ALGORITHMS[found[1]]
    length = next((length for length in lengths if length >= len(key)), lengths[-1])
    algorithm = made(key[:length].ljust(length, b"\0"))
    size: int = algorithm.block_size // 8  # type: ignore[attr-defined]
    mode = ECB() if found[2] == "ecb" else CBC(start[:size].ljust(size, b"\0"))
    return Cipher(algorithm, mode), size, found[4] != "none"


def encrypted(data: bytes, key: bytes, start: bytes, name: str) -> bytes:
    """Return encrypt() of bytes, or encrypt_iv() from an initialization vector. Raises Error 22023 or 39000."""
    try:
        cipher, size, is_padded = _cipher(name, key, start)
        if is_padded:
            padder = PKCS7(size * 8).padder()
            data = padder.update(data) + padder.finalize()
        encryptor = cipher.encryptor()
        return encryptor.update(data) + encryptor.finalize()
    except (ValueError, UnsupportedAlgorithm):
        raise Error("encrypt error: Encryption failed", EXTERNAL_ROUTINE_INVOCATION_EXCEPTION) from None


def decrypted(data: bytes, key: bytes, start: bytes, name: str) -> bytes:
    """Return decrypt() of bytes, or decrypt_iv() from an initialization vector. Raises Error 22023 or 39000."""
    try:
        cipher, size, is_padded = _cipher(name, key, start)
        decryptor = cipher.decryptor()
        found = decryptor.update(data) + decryptor.finalize()
        if not is_padded:
            return found
        padder = PKCS7(size * 8).unpadder()
        return padder.update(found) + padder.finalize()
    except (ValueError, UnsupportedAlgorithm):
        raise Error("decrypt error: Decryption failed", EXTERNAL_ROUTINE_INVOCATION_EXCEPTION) from None


def of_cipher(name: str, texts: Sequence[str | None]) -> str | None:
    """Return encrypt or decrypt of data, key, initialization vector and the cipher's name; NULL where one is NULL."""
    given = [text for text in texts if text is not None]
    if len(given) < len(texts):
        return None
    data, key, start = map(bytes.fromhex, given[:3])
    return (encrypted if name == "encrypt" else decrypted)(data, key, start, given[3]).hex()


def feedback(name: str, key: bytes, start: bytes, data: bytes, encrypts: bool) -> bytes:
    """Return data encrypted, or decrypted, in the mode CFB by an algorithm with a key of its length."""
    cipher: Cipher[Any] = Cipher(_ALGORITHMS[name][0](key), CFB(start))
    context = cipher.encryptor() if encrypts else cipher.decryptor()
    return context.update(data) + context.finalize()
