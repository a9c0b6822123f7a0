"""Encryption by ciphers, as of PostgreSQL's pgcrypto: encrypt and decrypt, as functions of texts.

Bytes are hexadecimal digits. This module is sent to Spark's executors (`executor.spark.kernel`), so it imports nothing
of this package but what is sent with it, and the library of the ciphers only where one is used.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

from sparkwave.catalog.errors import EXTERNAL_ROUTINE_INVOCATION_EXCEPTION, INVALID_PARAMETER_VALUE, Error

# The lengths of keys in bytes by pgcrypto's names of algorithms; keys between them are filled up with zeros, longer
# ones are cut off.
_LENGTHS = {"aes": (16, 24, 32), "bf": tuple(range(4, 57)), "3des": (24,), "cast5": tuple(range(5, 17))}
_SHORTEST = {"bf": 4, "cast5": 5}  # bytes of a key
_TYPE = re.compile(r"([a-z0-9]+?)(?:-(cbc|ecb))?(?:/([a-z]+):([a-z]+))?")


def _algorithm(name: str) -> Callable[[bytes], Any]:
    from cryptography.hazmat.decrepit.ciphers.algorithms import CAST5, Blowfish, TripleDES
    from cryptography.hazmat.primitives.ciphers.algorithms import AES

    algorithms: dict[str, Callable[[bytes], Any]] = {"aes": AES, "bf": Blowfish, "3des": TripleDES, "cast5": CAST5}
    return algorithms[name]


def _cipher(name: str, key: bytes, start: bytes) -> tuple[Any, int, bool]:
    """Return a cipher by its name, such as `aes-cbc/pad:none`, the bytes of its blocks, and whether it pads them.

    Raises Error 22023.
    """
    from cryptography.hazmat.primitives.ciphers import Cipher
    from cryptography.hazmat.primitives.ciphers.modes import CBC, ECB

    found = _TYPE.fullmatch(name.lower())
    if found is None or found[1] not in _LENGTHS or (found[3] == "pad" and found[4] not in ("pkcs", "none")):
        raise Error(f'Cannot use "{name}": No such cipher algorithm', INVALID_PARAMETER_VALUE)
    if found[3] not in (None, "pad"):
        raise Error(f'Cannot use "{name}": Unknown option', INVALID_PARAMETER_VALUE)
    lengths = _LENGTHS[found[1]]
    if len(key) < _SHORTEST.get(found[1], 0):
        message = f"a key of {found[1]} has {lengths[0]} bytes at least"
        raise Error(message, EXTERNAL_ROUTINE_INVOCATION_EXCEPTION)
    length = next((length for length in lengths if length >= len(key)), lengths[-1])
    algorithm = _algorithm(found[1])(key[:length].ljust(length, b"\0"))
    size: int = algorithm.block_size // 8
    mode = ECB() if found[2] == "ecb" else CBC(start[:size].ljust(size, b"\0"))
    return Cipher(algorithm, mode), size, found[4] != "none"


def encrypted(data: bytes, key: bytes, start: bytes, name: str) -> bytes:
    """Return encrypt() of bytes, or encrypt_iv() from an initialization vector. Raises Error 22023 or 39000."""
    from cryptography.hazmat.primitives.padding import PKCS7

    cipher, size, is_padded = _cipher(name, key, start)
    try:
        if is_padded:
            padder = PKCS7(size * 8).padder()
            data = padder.update(data) + padder.finalize()
        encryptor = cipher.encryptor()
        made: bytes = encryptor.update(data) + encryptor.finalize()
    except ValueError:
        raise Error("encrypt error: Encryption failed", EXTERNAL_ROUTINE_INVOCATION_EXCEPTION) from None
    return made


def decrypted(data: bytes, key: bytes, start: bytes, name: str) -> bytes:
    """Return decrypt() of bytes, or decrypt_iv() from an initialization vector. Raises Error 22023 or 39000."""
    from cryptography.hazmat.primitives.padding import PKCS7

    cipher, size, is_padded = _cipher(name, key, start)
    try:
        decryptor = cipher.decryptor()
        found: bytes = decryptor.update(data) + decryptor.finalize()
        if not is_padded:
            return found
        padder = PKCS7(size * 8).unpadder()
        return padder.update(found) + padder.finalize()
    except ValueError:
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
    from cryptography.hazmat.decrepit.ciphers.modes import CFB
    from cryptography.hazmat.primitives.ciphers import Cipher

    cipher: Cipher[Any] = Cipher(_algorithm(name)(key), CFB(start))
    context = cipher.encryptor() if encrypts else cipher.decryptor()
    return context.update(data) + context.finalize()
