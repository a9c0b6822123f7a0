"""Buffers the bytes of a client's socket, in both directions."""

from __future__ import annotations

import socket

FLUSH_AT = 64 << 10
READ_AT_ONCE = 1 << 20


class Disconnected(Exception):
    """The client has closed the connection, or never spoke Postgres."""


class Output:
    """Collects bytes for the client; sends them when 64 KiB are collected, or on `flush`."""

    closed = False

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection
        self._parts: list[bytes | memoryview] = []
        self._size = 0

    def write(self, data: bytes | memoryview) -> None:
        self._parts.append(data)
        self._size += len(data)
        if self._size >= FLUSH_AT:
            self.flush()

    def flush(self) -> None:
        parts, self._parts, self._size = self._parts, [], 0
        try:
            self._connection.sendall(parts[0] if len(parts) == 1 else b"".join(parts))
        except OSError as error:
            raise Disconnected from error


class Input:
    """Reads the client's bytes.

    Methods raise Disconnected when the client has gone or a time limit of the socket passes.
    """

    closed = False

    def __init__(self, connection: socket.socket, ahead: int = 0) -> None:
        """A read may take up to `ahead` bytes more than asked for, for the next call."""
        self._connection = connection
        self._ahead = ahead
        self._data = b""
        self._at = 0  # bytes of `_data` already taken

    def take(self, count: int) -> bytes:
        """Return exactly `count` bytes. They are read in pieces, so that memory is used only for bytes that arrive."""
        start, self._at = self._at, self._at + count
        if self._at <= len(self._data):
            return self._data[start : self._at]
        pieces = [self._data[start:]]
        missing = count - len(pieces[0])
        self._data, self._at = b"", 0
        while missing:
            piece = self._receive(min(max(missing, self._ahead), READ_AT_ONCE))
            pieces.append(piece[:missing])
            if len(piece) > missing:
                self._data, self._at = piece, missing
            missing -= len(pieces[-1])
        return b"".join(pieces)

    def next_is(self, code: bytes) -> bool:
        """Return whether the next byte has arrived and equals `code`. Does not wait and does not take the byte."""
        if self._at == len(self._data):
            before = self._connection.gettimeout()
            try:
                self._connection.settimeout(0)
                self._data, self._at = self._connection.recv(self._ahead), 0
            except OSError:  # nothing has arrived
                return False
            finally:
                self._connection.settimeout(before)
        return self._data[self._at : self._at + 1] == code

    def _receive(self, count: int) -> bytes:
        try:
            piece = self._connection.recv(count)
        except OSError as error:
            raise Disconnected from error
        if not piece:
            raise Disconnected
        return piece

    def close(self) -> None:
        """Do nothing: the handler closes the connection."""
