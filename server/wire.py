"""Postgres connections over TCP: the listener, a thread per client, startup, cancel and the end.

The only importer of buenavista. Of it we use the threading server, the startup sends and the handler's life cycle; its
query handling is replaced by `server.conversation`, since it loses SQLSTATEs, executes on Describe, never sends NoData
and misreads NULL parameters. Only a client's own thread writes to its socket.
"""

from __future__ import annotations

import ipaddress
import itertools
import logging
import secrets
import socket
import struct
import time
from collections.abc import Callable
from contextlib import suppress

from buenavista.postgres import BuenaVistaHandler, BuenaVistaServer

from catalog.errors import ADMIN_SHUTDOWN, FEATURE_NOT_SUPPORTED, PROTOCOL_VIOLATION, Error
from server import messages as m
from server.conversation import Conversation, Disconnected, Fatal, as_error
from server.result import ClientSession

logger = logging.getLogger(__name__)

FLUSH_AT = 64 << 10
READ_AT_ONCE = 1 << 20
STARTUP_SECONDS = 60  # Postgres' authentication_timeout
MAX_STARTUP_BYTES = 10_000  # Postgres' MAX_STARTUP_PACKET_LENGTH
LINGER_SECONDS = 2.0


class Output:
    """Collects bytes for the client and sends them from 64 KiB on, or when flushed."""

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


class WireHandler(BuenaVistaHandler):
    """One client: a channel for its conversation, and what comes before and after."""

    server: WireServer
    disable_nagle_algorithm = True
    rbufsize = FLUSH_AT

    def setup(self) -> None:
        super().setup()
        self.wfile = Output(self.connection)
        # Both positive in 31 bits: some clients read them as signed.
        self.process_id, self.secret_key = next(self.server.process_ids), 1 + secrets.randbelow(2**31 - 1)
        self.terminating = False
        self.session: ClientSession | None = None

    def handle(self) -> None:
        try:
            self.connection.settimeout(STARTUP_SECONDS)
            self.handle_startup()
        except Disconnected:
            if self.terminating:
                self._say_goodbye(Error("terminating connection due to administrator command", ADMIN_SHUTDOWN))
        except Fatal as fatal:
            self._say_goodbye(fatal.error)

    def finish(self) -> None:
        self.rfile.close()

    # Startup

    def handle_startup(self) -> None:
        """Answer encryption requests, then a cancel request or the whole life of a session."""
        length, code = struct.unpack("!ii", self._read(8))
        while code in (m.SSL_REQUEST, m.GSSENC_REQUEST):
            self.write(b"N")
            self.flush()
            length, code = struct.unpack("!ii", self._read(8))
        if not 8 <= length <= MAX_STARTUP_BYTES:
            raise Disconnected  # some other protocol: Postgres does not answer either
        body = self._read(length - 8)
        if code == m.CANCEL_REQUEST:
            self._cancel_other(body)
        elif code >> 16 == m.PROTOCOL_3 >> 16:
            self._serve(self._start_session(code, body))
        else:
            wanted = f"unsupported frontend protocol {code >> 16}.{code & 0xFFFF}"
            raise Fatal(Error(f"{wanted}: server supports 3.0 to 3.0", FEATURE_NOT_SUPPORTED))

    def _start_session(self, version: int, body: bytes) -> ClientSession:
        try:
            parameters = m.read_startup(body)
            unknown = [name for name in parameters if name.startswith("_pq_.")]
            if version > m.PROTOCOL_3 or unknown:
                self.write(m.frame(m.NEGOTIATE_PROTOCOL_VERSION, m.negotiate_version(unknown)))
            known = {name: value for name, value in parameters.items() if name not in unknown}
            return self.server.new_session(m.merge_options(known))
        except Exception as error:
            raise Fatal(as_error(error)) from error

    def _serve(self, session: ClientSession) -> None:
        self.session = session
        conversation = Conversation(session, self)
        self.server.handlers[self.process_id] = self
        try:
            self.send_authentication_ok()
            conversation.report_parameters()
            self.send_backend_key_data(self)
            conversation.ready()
            self.connection.settimeout(None)
            self._converse(conversation)
        finally:
            del self.server.handlers[self.process_id]
            try:
                conversation.close()
            except Exception:
                logger.exception("closing the session of client %s", self.process_id)

    def _converse(self, conversation: Conversation) -> None:
        while not self.terminating:
            code, body = self.read_message()
            if code == m.TERMINATE:
                return
            conversation.handle(code, body)
        raise Disconnected

    def _cancel_other(self, body: bytes) -> None:
        """Cancel the statement of the client whose BackendKeyData this is; there is no answer either way."""
        process_id, secret = struct.unpack("!ii", body) if len(body) == 8 else (0, 0)
        target = self.server.handlers.get(process_id)
        if target is not None and target.secret_key == secret:
            target.cancel()

    # Called from other threads

    def cancel(self) -> None:
        """Stop the running statement of this client."""
        try:
            if self.session is not None:
                self.session.cancel()
        except Exception:
            logger.exception("cancelling the statement of client %s", self.process_id)

    def terminate(self) -> None:
        """Ask this client's thread to end: its statement is cancelled, a wait for a message ends at once."""
        self.terminating = True
        self.cancel()
        with suppress(OSError):
            self.connection.shutdown(socket.SHUT_RD)

    # The channel

    def read_message(self) -> tuple[bytes, bytes]:
        code = self._read(1)
        (length,) = struct.unpack("!I", self._read(4))
        if length < 4:
            raise Fatal(Error(f"invalid message length {length}", PROTOCOL_VIOLATION))
        if length > self.server.max_message_bytes:
            limit = self.server.max_message_bytes
            raise Fatal(Error(f"message length {length} exceeds the limit of {limit} bytes", PROTOCOL_VIOLATION))
        return code, self._read(length - 4)

    def write(self, data: bytes | memoryview) -> None:
        self.wfile.write(data)

    def flush(self) -> None:
        self.wfile.flush()

    def _read(self, count: int) -> bytes:
        """Exactly `count` bytes, in pieces so that memory is taken only for what arrives."""
        pieces = []
        while count:
            try:
                piece = self.rfile.read(min(count, READ_AT_ONCE))
            except OSError as error:
                raise Disconnected from error
            if not piece:
                raise Disconnected
            pieces.append(piece)
            count -= len(piece)
        return pieces[0] if len(pieces) == 1 else b"".join(pieces)

    def _say_goodbye(self, error: Error) -> None:
        """Send FATAL, and read on a little: closing with unread input resets the connection before it arrives."""
        with suppress(Disconnected, OSError):
            self.write(m.frame(m.ERROR_RESPONSE, m.error_fields(error, "FATAL")))
            self.flush()
            self.connection.shutdown(socket.SHUT_WR)
            self.connection.settimeout(LINGER_SECONDS)
            until = time.monotonic() + LINGER_SECONDS
            while time.monotonic() < until and self.connection.recv(FLUSH_AT):
                pass


class WireServer(BuenaVistaServer):
    """Listens at `address` and serves each client with a session of its own.

    `new_session` gets the startup parameters, those inside `options` as entries of their own; an Error it raises
    is sent as FATAL. A port in use raises OSError here. Only loopback addresses may connect: there are no users yet.
    """

    daemon_threads = True
    request_queue_size = 128

    def __init__(
        self,
        address: tuple[str, int],
        new_session: Callable[[dict[str, str]], ClientSession],
        max_message_bytes: int = 1 << 30,
    ) -> None:
        self.address_family = socket.AF_INET6 if ":" in address[0] else socket.AF_INET
        super().__init__(address, conn=None)
        self.RequestHandlerClass = WireHandler
        self.new_session = new_session
        self.max_message_bytes = max_message_bytes
        self.handlers: dict[int, WireHandler] = {}
        self.process_ids = itertools.count(1)

    def verify_request(self, _request: socket.socket, client_address: tuple) -> bool:
        address = ipaddress.ip_address(client_address[0])
        return (getattr(address, "ipv4_mapped", None) or address).is_loopback

    def handle_error(self, _request: socket.socket, client_address: tuple) -> None:
        logger.exception("connection from %s", client_address)

    def close_sessions(self, timeout: float = 5.0) -> None:
        """End the open connections with FATAL 57P01; those that do not take it within `timeout` seconds are cut."""
        for handler in list(self.handlers.values()):
            handler.terminate()
        until = time.monotonic() + timeout
        while self.handlers and time.monotonic() < until:
            time.sleep(0.01)
        for handler in list(self.handlers.values()):
            with suppress(OSError):
                handler.connection.shutdown(socket.SHUT_RDWR)
