"""Secrets: values that are never shown, stored sealed with a key that is not in the lake.

The key is in a separate file, made at the first start and readable by the server's user only; without the key no sealed
value can be opened. Values of CREATE SECRET and secret options of connectors are sealed in the same way.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Mapping
from pathlib import Path

from cryptography.fernet import Fernet, InvalidToken

from sparkwave.catalog import errors
from sparkwave.catalog.errors import Error
from sparkwave.catalog.lake.ducklake import Cursor
from sparkwave.catalog.model import Secret
from sparkwave.catalog.names import system_table
from sparkwave.catalog.source_model import is_secret

KEY_FILE = "secret.key"
# The prefix of sealed values: options stored before the key existed are in plain text.
_SEALED = "sealed:"
_TABLE = system_table("secrets")


class Cipher:
    """Seals texts with a key, and opens them."""

    def __init__(self, key: bytes) -> None:
        self._fernet = Fernet(key)

    def seal(self, text: str) -> str:
        return _SEALED + self._fernet.encrypt(text.encode()).decode()

    def open(self, sealed: str) -> str:
        """Return the text of a sealed value. Raises Error XX001 for a value sealed with another key."""
        try:
            return self._fernet.decrypt(sealed.removeprefix(_SEALED)).decode()
        except InvalidToken as error:
            raise Error(
                "a secret cannot be read: it was stored with another key",
                errors.DATA_CORRUPTED,
                hint=f"The key is in {KEY_FILE} of the data directory, or in the file of --secret-key-file.",
            ) from error


def open_cipher(file: Path) -> Cipher:
    """Return the cipher with the key in a file, which is created if it is missing.

    Raises Error F0000 for a file that others may read, or without a key. As with PostgreSQL's ssl_key_file, root's file
    may be readable by a group: Kubernetes passes secrets in this way to servers that do not run as root.
    """
    if not file.exists():
        _make_key(file)
    try:
        status = file.stat()
        forbidden = 0o037 if status.st_uid == 0 != os.geteuid() else 0o077
        if status.st_mode & forbidden:
            message = f"{file} may be read by others than its owner"
            raise Error(message, errors.CONFIG_FILE_ERROR, hint=f"chmod 600 {file}")
        return Cipher(file.read_bytes().strip())
    except OSError as error:
        raise Error(f"cannot read {file}: {error.strerror}", errors.CONFIG_FILE_ERROR) from error
    except ValueError as error:
        raise Error(f"{file} is no key: {error}", errors.CONFIG_FILE_ERROR) from error


def _make_key(file: Path) -> None:
    written = file.with_name(f".{file.name}.{os.getpid()}")
    written.unlink(missing_ok=True)
    try:
        descriptor = os.open(written, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with open(descriptor, "wb") as opened:
            opened.write(Fernet.generate_key() + b"\n")
            opened.flush()
            os.fsync(descriptor)
        with contextlib.suppress(FileExistsError):  # another server was faster
            os.link(written, file)
        written.unlink()
    except OSError as error:
        raise errors.cannot_write(file, error, errors.CONFIG_FILE_ERROR) from error


def sealed(options: Mapping[str, str], cipher: Cipher) -> dict[str, str]:
    """Return the options with the values of secret options sealed."""
    return {name: cipher.seal(value) if is_secret(name) else value for name, value in options.items()}


def named(by_option: Mapping[str, int], secrets: Mapping[int, Secret]) -> tuple[Secret, ...]:
    """Return the secrets that a connector's options refer to by id, as far as they exist."""
    return tuple(secrets[id_] for id_ in by_option.values() if id_ in secrets)


def opened(
    options: Mapping[str, str], named: Mapping[str, int], secrets: Mapping[int, Secret], cipher: Cipher
) -> dict[str, str]:
    """Return the options for a connector: sealed values opened, and values of `named` secrets added.

    Raises Error 42704 for a dropped secret, XX001.
    """
    found = {
        name: cipher.open(value) if is_secret(name) and value.startswith(_SEALED) else value
        for name, value in options.items()
    }
    for name, id_ in named.items():
        if id_ not in secrets:
            raise Error(f'the secret of option "{name}" does not exist any more', errors.UNDEFINED_OBJECT)
        found[name] = cipher.open(secrets[id_].sealed)
    return found


# Only these functions read and write the relation `secrets`; writers take the cursor of an open lake transaction.


def load_secrets(cursor: Cursor, stored: str) -> dict[int, Secret]:
    """Return all secrets by id, from SQL of the relation `secrets`."""
    rows = cursor.execute(f"SELECT id, schema_id, name, owner, value FROM {stored} ORDER BY id").fetchall()
    return {row[0]: Secret(*row) for row in rows}


def add_secret(cursor: Cursor, secret: Secret) -> None:
    cursor.execute(
        f"INSERT INTO {_TABLE} VALUES (?, ?, ?, ?, ?)",
        [secret.id, secret.schema_id, secret.name, secret.owner, secret.sealed],
    )


def set_secret(cursor: Cursor, secret_id: int, sealed: str) -> None:
    cursor.execute(f"UPDATE {_TABLE} SET value = ? WHERE id = ?", [sealed, secret_id])


def drop_secret(cursor: Cursor, secret: Secret) -> None:
    cursor.execute(f"DELETE FROM {_TABLE} WHERE id = ?", [secret.id])
