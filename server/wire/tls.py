"""Makes the TLS context that wraps clients' connections."""

from __future__ import annotations

import ssl
from pathlib import Path

from sparkwave.catalog import errors
from sparkwave.catalog.errors import Error

ALPN = "postgresql"  # named by clients that start TLS without asking (PostgreSQL docs, "SSL Session Encryption")


def server_context(certificate: Path, key: Path | None) -> ssl.SSLContext:
    """Return a context for TLS 1.2 or newer with a PEM certificate (chain) and its key, which may be in the same file.

    Raises Error F0000 when they cannot be read or do not fit each other.
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    # A server that stops ends a client's read: the client must still get its last message.
    context.options |= ssl.OP_IGNORE_UNEXPECTED_EOF
    context.set_alpn_protocols([ALPN])
    try:
        context.load_cert_chain(certificate, key, password=_no_password)
    except OSError as error:
        files = " and ".join(str(file) for file in (certificate, key) if file)
        reason = getattr(error, "reason", None) or error.strerror or error
        raise Error(f"cannot use {files} for TLS: {reason}", errors.CONFIG_FILE_ERROR) from error
    return context


def _no_password() -> str:
    """Raise, since OpenSSL would ask for the key's password on the terminal."""
    raise Error("the key of the TLS certificate is encrypted", errors.CONFIG_FILE_ERROR)
