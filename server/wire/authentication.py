"""Authenticates a client: with SCRAM-SHA-256 (RFC 5802, RFC 7677), or without a password where none is needed.

The messages are those of PostgreSQL's docs, "SASL Authentication". A user with a password has to prove that the client
knows the password; an expired password counts as a wrong one. A user without a password may connect from this machine
only. As long as no user has a password, connections from other machines are refused. An unknown user goes through the
same messages as a known one, so that a client cannot find out which users exist.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import ipaddress
import secrets
import stringprep
import struct
import unicodedata
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime

from sparkwave.catalog.errors import (
    FEATURE_NOT_SUPPORTED,
    INVALID_AUTHORIZATION,
    INVALID_PASSWORD,
    PROTOCOL_VIOLATION,
    Error,
)
from sparkwave.catalog.users import User
from sparkwave.server.wire import messages as m
from sparkwave.server.wire.conversation import Channel

MECHANISM = "SCRAM-SHA-256"
ITERATIONS = 4096  # Postgres' scram_iterations, and the minimum of RFC 7677
MOCK_SECRET = secrets.token_bytes(32)  # makes the salts of users without a password

_SASL, _SASL_CONTINUE, _SASL_FINAL = 10, 11, 12  # kinds of Authentication messages


@dataclass(frozen=True)
class Verifier:
    """The stored form of a password, from which the password cannot be read."""

    iterations: int
    salt: bytes
    stored_key: bytes
    server_key: bytes

    def __str__(self) -> str:
        """The verifier in Postgres' form: `SCRAM-SHA-256$<iterations>:<salt>$<StoredKey>:<ServerKey>`."""
        salt, stored_key, server_key = (_base64(part) for part in (self.salt, self.stored_key, self.server_key))
        return f"{MECHANISM}${self.iterations}:{salt}${stored_key}:{server_key}"


def read_verifier(text: str) -> Verifier | None:
    """Return the verifier that a text holds; None for any other text, such as a password."""
    try:
        mechanism, parameters, keys = text.split("$")
        iterations, salt = parameters.split(":")
        stored_key, server_key = (base64.b64decode(key, validate=True) for key in keys.split(":"))
        found = Verifier(int(iterations), base64.b64decode(salt, validate=True), stored_key, server_key)
    except ValueError:
        return None
    fits = mechanism == MECHANISM and found.iterations > 0 and found.salt
    return found if fits and len(stored_key) == len(server_key) == hashlib.sha256().digest_size else None


def make_verifier(password: str, salt: bytes | None = None, iterations: int = ITERATIONS) -> Verifier:
    """Return the verifier of a password. Without `salt`, the salt is random."""
    salt = secrets.token_bytes(16) if salt is None else salt
    salted = hashlib.pbkdf2_hmac("sha256", saslprep(password).encode(), salt, iterations)
    stored_key = hashlib.sha256(_hmac(salted, b"Client Key")).digest()
    return Verifier(iterations, salt, stored_key, _hmac(salted, b"Server Key"))


_PROHIBITED = (
    stringprep.in_table_c12,
    stringprep.in_table_c21_c22,
    stringprep.in_table_c3,
    stringprep.in_table_c4,
    stringprep.in_table_c5,
    stringprep.in_table_c6,
    stringprep.in_table_c7,
    stringprep.in_table_c8,
    stringprep.in_table_c9,
    stringprep.in_table_a1,
)


def saslprep(password: str) -> str:
    """Prepare a password by RFC 4013. As in Postgres, a password that RFC 4013 prohibits is returned unchanged."""
    spaced = (" " if stringprep.in_table_c12(c) else c for c in password if not stringprep.in_table_b1(c))
    prepared = unicodedata.normalize("NFKC", "".join(spaced))
    right_to_left = [stringprep.in_table_d1(c) for c in prepared]
    is_mixed = any(right_to_left) and (
        any(map(stringprep.in_table_d2, prepared)) or not (right_to_left[0] and right_to_left[-1])
    )
    is_prohibited = any(check(c) for c in prepared for check in _PROHIBITED)
    return password if not prepared or is_mixed or is_prohibited else prepared


@dataclass(frozen=True)
class Challenge:
    """The server's side of one exchange, after the client's first message."""

    verifier: Verifier
    header: str  # the client's statement on channel binding
    client_first: str  # the client's first message without that header
    nonce: str  # the client's nonce followed by the server's

    @property
    def server_first(self) -> str:
        return f"r={self.nonce},s={_base64(self.verifier.salt)},i={self.verifier.iterations}"

    def answer(self, client_final: bytes) -> str | None:
        """Return the server's last message; None when the client does not know the password. Raises Error 08P01."""
        text = _text(client_final)
        without_proof, comma, proof = text.rpartition(",p=")
        binding, nonce = _attributes(without_proof, "cr")
        if not comma or _decoded(binding) != self.header.encode():
            raise _malformed("its channel binding is another than in its first message")
        if nonce != self.nonce:
            raise _malformed("its nonce is not that of the exchange")
        message = f"{self.client_first},{self.server_first},{without_proof}".encode()
        signature = _hmac(self.verifier.stored_key, message)
        given = _decoded(proof)
        if len(given) != len(signature):
            raise _malformed("its proof has a wrong length")
        client_key = bytes(a ^ b for a, b in zip(given, signature, strict=True))
        if not hmac.compare_digest(hashlib.sha256(client_key).digest(), self.verifier.stored_key):
            return None
        return f"v={_base64(_hmac(self.verifier.server_key, message))}"


def challenge(client_first: bytes, verifier: Verifier, nonce: str) -> Challenge:
    """Start the exchange that a client's first message asks for; `nonce` is the server's part.

    Raises Error 08P01 or 0A000.
    """
    flag, identity, bare = [*_text(client_first).split(",", 2), "", ""][:3]
    if flag not in ("n", "y"):
        raise _malformed("it wants channel binding, which was not offered")
    if identity:
        raise Error("client uses authorization identity, but it is not supported", FEATURE_NOT_SUPPORTED)
    _, client_nonce = _attributes(bare, "nr")
    if not client_nonce or not all("!" <= c <= "~" for c in client_nonce):
        raise _malformed("its nonce has characters that are not printable")
    return Challenge(verifier, f"{flag},,", bare, client_nonce + nonce)


def authenticate(channel: Channel, name: str, users: Mapping[str, User], is_local: bool) -> None:
    """Check by an exchange of messages that the client is the user whose name it gives.

    Raises Error 28P01 for a wrong password, 28000 for a user who may not connect (from the client's machine).
    """
    _admit(name, users, is_local, lambda stored: _exchange(channel, name, stored))


def check_password(name: str, password: str, users: Mapping[str, User], is_local: bool) -> User:
    """Check a password that the client sends in plain text and return the user.

    Raises the errors of `authenticate`.
    """
    return _admit(name, users, is_local, lambda stored: _compare(name, password, stored))


def _admit(name: str, users: Mapping[str, User], is_local: bool, prove: Callable[[str | None], None]) -> User:
    """Return the user, after `prove` has checked the password where one is needed, also for an unknown user."""
    user = users.get(name)
    if not has_passwords(users):
        if not is_local:
            raise Error(
                "connections from other machines are not allowed before a user has a password",
                INVALID_AUTHORIZATION,
                hint="On the server's machine: ALTER USER root PASSWORD '…'",
            )
        if user is None:
            raise Error(f'role "{name}" does not exist', INVALID_AUTHORIZATION)
    elif user is None or user.verifier or not is_local:
        prove(user.verifier if user and not has_expired(user) else None)
    assert user is not None
    if not user.can_login:
        raise Error(f'role "{name}" is not permitted to log in', INVALID_AUTHORIZATION)
    return user


def is_this_machine(address: str) -> bool:
    """Return whether an IP address is a loopback address, so that its client runs on this machine."""
    parsed = ipaddress.ip_address(address)
    return (getattr(parsed, "ipv4_mapped", None) or parsed).is_loopback


def has_passwords(users: Mapping[str, User]) -> bool:
    """Return whether any user has a password."""
    return any(user.verifier for user in users.values())


def has_expired(user: User) -> bool:
    """Return whether the user's password has expired."""
    return user.valid_until is not None and user.valid_until < datetime.now(UTC)


def _compare(name: str, password: str, stored: str | None) -> None:
    """Raise Error 28P01 unless the password is right, after the same work for an unknown user."""
    verifier = read_verifier(stored) if stored else _mock(name)
    assert verifier is not None
    given = make_verifier(password, verifier.salt, verifier.iterations)
    if not hmac.compare_digest(given.stored_key, verifier.stored_key) or not stored:
        raise _wrong_password(name)


def _wrong_password(name: str) -> Error:
    return Error(f'password authentication failed for user "{name}"', INVALID_PASSWORD)


def _exchange(channel: Channel, name: str, stored: str | None) -> None:
    """Ask for the password by SCRAM messages; without a stored verifier every answer is wrong. Raises Error 28P01."""
    verifier = read_verifier(stored) if stored else _mock(name)
    assert verifier is not None
    _send(channel, _SASL, m.cstring(MECHANISM) + b"\0")
    reader = m.Reader(_read(channel))
    mechanism = reader.string()
    if mechanism != MECHANISM:
        raise Error("client selected an invalid SASL authentication mechanism", PROTOCOL_VIOLATION)
    first = challenge(reader.value() or b"", verifier, _base64(secrets.token_bytes(18)))
    _send(channel, _SASL_CONTINUE, first.server_first.encode())
    answer = first.answer(_read(channel))
    if answer is None or not stored:
        raise _wrong_password(name)
    _send(channel, _SASL_FINAL, answer.encode())


def _mock(name: str) -> Verifier:
    """Return a verifier that no password matches. A user's salt is the same at each try, as if the user existed."""
    salt = _hmac(MOCK_SECRET, name.encode())[:16]
    return Verifier(ITERATIONS, salt, secrets.token_bytes(32), secrets.token_bytes(32))


def _send(channel: Channel, kind: int, data: bytes) -> None:
    channel.write(m.frame(m.AUTHENTICATION, struct.pack("!i", kind) + data))
    if kind != _SASL_FINAL:
        channel.flush()


def _read(channel: Channel) -> bytes:
    code, body = channel.read_message()
    if code != m.PASSWORD:
        raise Error(f"expected SASL response, got message type {code[0]}", PROTOCOL_VIOLATION)
    return body


def _attributes(text: str, names: str) -> list[str]:
    """Return the values of the first attributes of a message, which have these names. Raises Error 08P01."""
    parts = text.split(",")
    if len(parts) < len(names) or any(part[:2] != f"{n}=" for n, part in zip(names, parts, strict=False)):
        raise _malformed(f"the attributes {', '.join(names)} are expected")
    return [part[2:] for part in parts[: len(names)]]


def _text(data: bytes) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        raise _malformed("it is not UTF-8") from error


def _decoded(text: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError) as error:
        raise _malformed("it is not base64") from error


def _malformed(reason: str) -> Error:
    return Error("malformed SCRAM message", PROTOCOL_VIOLATION, detail=f"{reason[0].upper()}{reason[1:]}.")


def _hmac(key: bytes, message: bytes) -> bytes:
    return hmac.digest(key, message, "sha256")


def _base64(data: bytes) -> str:
    return base64.b64encode(data).decode()
