"""Postgres connections over TCP: listens, and runs a thread for each client from startup to the end.

This is the only module that imports buenavista. It uses buenavista's threading server, startup messages and handler
life cycle. `server.wire.conversation` replaces its query handling, which loses SQLSTATEs, executes on Describe, never
sends NoData and misreads NULL parameters. Only a client's own thread writes to its socket.
"""

from __future__ import annotations

import itertools
import logging
import secrets
import socket
import ssl
import struct
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress

from buenavista.postgres import BuenaVistaHandler, BuenaVistaServer

from sparkwave.catalog.counters import CONNECTIONS, count_error
from sparkwave.catalog.errors import (
    ADMIN_SHUTDOWN,
    FEATURE_NOT_SUPPORTED,
    INVALID_AUTHORIZATION,
    PROTOCOL_VIOLATION,
    Error,
)
from sparkwave.catalog.log_context import logged
from sparkwave.catalog.users import ROOT, User
from sparkwave.server.session import presence
from sparkwave.server.wire import messages as m
from sparkwave.server.wire.authentication import authenticate, is_this_machine
from sparkwave.server.wire.byte_stream import FLUSH_AT, Disconnected, Input, Output
from sparkwave.server.wire.client_session import ClientSession
from sparkwave.server.wire.conversation import Conversation, Fatal, as_error
from sparkwave.server.wire.tls import ALPN

logger = logging.getLogger(__name__)

HEADER = struct.Struct("!cI")  # of a message: its type byte and its length
STARTUP_SECONDS = 60  # Postgres' authentication_timeout
MAX_STARTUP_BYTES = 10_000  # Postgres' MAX_STARTUP_PACKET_LENGTH
LINGER_SECONDS = 2.0
TLS_HANDSHAKE = b"\x16"  # the first byte of a connection that starts with TLS


class WireHandler(BuenaVistaHandler):
    """One client's connection: its startup, the channel of its `Conversation`, and its end."""

    server: WireServer
    connection: socket.socket
    rfile: Input
    disable_nagle_algorithm = True

    def setup(self) -> None:
        super().setup()
        presence.probe(self.connection)
        # Input reads no byte ahead here: bytes after a request for encryption may be read only once TLS has begun.
        self.rfile, self.wfile = Input(self.connection), Output(self.connection)
        # Both are positive 31-bit numbers, since some clients read them as signed.
        self.process_id, self.secret_key = next(self.server.process_ids), 1 + secrets.randbelow(2**31 - 1)
        self.terminating = False
        self.message_limit = MAX_STARTUP_BYTES  # until the client is authenticated
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
        if self.is_encrypted:  # the server would close the plain socket, which is no longer the connection's
            self._end_output()
            self.connection.close()

    # Startup

    def handle_startup(self) -> None:
        """Answer requests for encryption, then serve a cancel request or a whole session."""
        if self.server.tls is not None and self._first_byte() == TLS_HANDSHAKE:
            self._encrypt(self.server.tls, ALPN)
        length, code = struct.unpack("!ii", self.rfile.take(8))
        while code in (m.SSL_REQUEST, m.GSSENC_REQUEST):
            tls = None if code == m.GSSENC_REQUEST or self.is_encrypted else self.server.tls
            self.write(b"N" if tls is None else b"S")
            self.flush()
            if tls is not None:
                self._encrypt(tls)
            length, code = struct.unpack("!ii", self.rfile.take(8))
        self.rfile = Input(self.connection, ahead=FLUSH_AT)
        if not 8 <= length <= MAX_STARTUP_BYTES:
            with suppress(OSError):  # closing with unread input would reset the connection
                socket.socket.recv(self.connection, MAX_STARTUP_BYTES, socket.MSG_DONTWAIT)
            raise Disconnected  # another protocol: Postgres does not answer it either
        body = self.rfile.take(length - 8)
        if code == m.CANCEL_REQUEST:
            self._cancel_other(body)
        elif code >> 16 == m.PROTOCOL_3 >> 16:
            self._serve(self._start_session(code, body))
        else:
            wanted = f"unsupported frontend protocol {code >> 16}.{code & 0xFFFF}"
            raise Fatal(Error(f"{wanted}: server supports 3.0 to 3.0", FEATURE_NOT_SUPPORTED))

    @property
    def is_encrypted(self) -> bool:
        return isinstance(self.connection, ssl.SSLSocket)

    @property
    def is_local(self) -> bool:
        """Whether the client runs on this machine."""
        return is_this_machine(self.client_address[0])

    def _first_byte(self) -> bytes:
        try:
            return self.connection.recv(1, socket.MSG_PEEK)
        except OSError as error:
            raise Disconnected from error

    def _encrypt(self, tls: ssl.SSLContext, protocol: str | None = None) -> None:
        """Go on with TLS.

        With `protocol`, the client has to name that protocol by ALPN, since it did not ask for TLS first.
        """
        try:
            self.connection = encrypted = tls.wrap_socket(self.connection, server_side=True)
        except OSError as error:  # e.g. the client does not trust the certificate, or speaks no common TLS version
            logger.info("TLS with %s fails: %s", self.client_address, error)
            raise Disconnected from error
        self.rfile, self.wfile = Input(self.connection), Output(self.connection)
        if protocol is not None and encrypted.selected_alpn_protocol() != protocol:
            raise Disconnected

    def _start_session(self, version: int, body: bytes) -> ClientSession:
        try:
            parameters = m.read_startup(body)
            unknown = [name for name in parameters if name.startswith("_pq_.")]
            if version > m.PROTOCOL_3 or unknown:
                self.write(m.frame(m.NEGOTIATE_PROTOCOL_VERSION, m.negotiate_version(unknown)))
            known = {name: value for name, value in parameters.items() if name not in unknown}
            if self.server.tls_required and not self.is_encrypted:
                message = "connections without TLS are not allowed"
                raise Error(message, INVALID_AUTHORIZATION, hint="Connect with sslmode=require.")
            authenticate(self, known.get("user", ROOT), self.server.users(), self.is_local)
            self.message_limit = self.server.max_message_bytes
            return self.server.new_session(m.merge_options(known))
        except (Disconnected, Fatal):
            raise
        except Exception as error:
            raise Fatal(as_error(error)) from error

    def _serve(self, session: ClientSession) -> None:
        with logged(session=self.process_id):
            self._serve_session(session)

    def _serve_session(self, session: ClientSession) -> None:
        self.session = session
        CONNECTIONS.inc()
        session.attach(self.process_id, self.client_address[:2], self.terminate)
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
                logger.exception("the session of client %s cannot be closed", self.process_id)

    def _converse(self, conversation: Conversation) -> None:
        while not self.terminating:
            code, body = self._next_command() if conversation.is_ready else self.read_message()
            if code == m.TERMINATE:
                return
            conversation.handle(code, body)
        raise Disconnected

    def _next_command(self) -> tuple[bytes, bytes]:
        """Return the first message after ReadyForQuery. Raises Fatal for a client that is idle beyond its limit."""
        assert self.session is not None
        limit = self.session.idle_limit()
        if limit is None:
            return self.read_message()
        seconds, error = limit
        self.connection.settimeout(seconds)
        try:
            header = self.rfile.take(HEADER.size)
        except Disconnected as gone:
            if isinstance(gone.__cause__, TimeoutError) and not self.terminating:
                raise Fatal(error) from gone
            raise
        finally:
            with suppress(OSError):
                self.connection.settimeout(None)
        return self._read_body(header)

    def _cancel_other(self, body: bytes) -> None:
        """Cancel the statement of the client with this BackendKeyData.

        The protocol has no answer for success or failure.
        """
        process_id, secret = struct.unpack("!ii", body) if len(body) == 8 else (0, 0)
        target = self.server.handlers.get(process_id)
        if target is not None and target.secret_key == secret:
            target.cancel()

    # Called from other threads

    def cancel(self) -> None:
        """Stop this client's running statement."""
        try:
            if self.session is not None:
                self.session.cancel()
        except Exception:
            logger.exception("the statement of client %s cannot be cancelled", self.process_id)

    def terminate(self) -> None:
        """Ask this client's thread to end: its statement is cancelled, a wait for a message ends at once."""
        self.terminating = True
        self.cancel()
        shut_down(self.connection, socket.SHUT_RD)

    def cut(self) -> None:
        """End the connection: a thread that waits for the client to read goes on."""
        shut_down(self.connection, socket.SHUT_RDWR)

    # The channel

    def read_message(self) -> tuple[bytes, bytes]:
        return self._read_body(self.rfile.take(HEADER.size))

    def _read_body(self, header: bytes) -> tuple[bytes, bytes]:
        code, length = HEADER.unpack(header)
        if length < 4:
            raise Fatal(Error(f"invalid message length {length}", PROTOCOL_VIOLATION))
        if length > self.message_limit:
            message = f"message length {length} exceeds the limit of {self.message_limit} bytes"
            raise Fatal(Error(message, PROTOCOL_VIOLATION))
        return code, self.rfile.take(length - 4) if length > 4 else b""

    def next_is(self, code: bytes) -> bool:
        return self.rfile.next_is(code)

    def write(self, data: bytes | memoryview) -> None:
        self.wfile.write(data)

    def flush(self) -> None:
        self.wfile.flush()

    def _say_goodbye(self, error: Error) -> None:
        """Send FATAL, then drop input for a while: closing a socket with unread input would lose the message."""
        count_error(error)
        with suppress(Disconnected, OSError):
            self.write(m.frame(m.ERROR_RESPONSE, m.error_fields(error, "FATAL")))
            self.flush()
            self._end_output()
            self.connection.settimeout(LINGER_SECONDS)
            until = time.monotonic() + LINGER_SECONDS
            while time.monotonic() < until and socket.socket.recv(self.connection, FLUSH_AT):
                pass

    def _end_output(self) -> None:
        """End the output. TLS needs its own end first, or clients report a broken connection."""
        if isinstance(self.connection, ssl.SSLSocket):
            self.connection.settimeout(0)  # send the end of TLS without a wait for the client's
            with suppress(OSError, ValueError):
                self.connection.unwrap()
        shut_down(self.connection, socket.SHUT_WR)


class WireServer(BuenaVistaServer):
    """Listens at `address` and serves each client with its own session.

    `new_session` gets the startup parameters, with the settings inside `options` as separate entries; an Error that it
    raises is sent as FATAL. `users` returns the users who may connect, by name. `tls` serves clients that ask for TLS;
    with `tls_required` all have to ask. The constructor raises OSError when the port is in use.
    """

    daemon_threads = True
    request_queue_size = 128

    def __init__(
        self,
        address: tuple[str, int],
        new_session: Callable[[dict[str, str]], ClientSession],
        users: Callable[[], Mapping[str, User]],
        max_message_bytes: int = 1 << 30,
        tls: ssl.SSLContext | None = None,
        tls_required: bool = False,
    ) -> None:
        self.address_family = socket.AF_INET6 if ":" in address[0] else socket.AF_INET
        super().__init__(address, conn=None)
        self.RequestHandlerClass = WireHandler
        self.new_session = new_session
        self.users = users
        self.tls, self.tls_required = tls, tls_required
        self.max_message_bytes = max_message_bytes
        self.handlers: dict[int, WireHandler] = {}
        self.process_ids = itertools.count(1)
        self._stopping = threading.Event()
        watched = (lambda: list(self.handlers.values()), self._stopping)
        threading.Thread(target=presence.watch, args=watched, name="presence", daemon=True).start()

    def verify_request(self, _request: socket.socket, _client_address: tuple) -> bool:
        return True  # refusing is left to the handler, which tells the client the reason

    def handle_error(self, _request: socket.socket, client_address: tuple) -> None:
        logger.exception("the connection from %s has failed", client_address)

    def close_sessions(self, timeout: float = 5.0) -> None:
        """End the connections with FATAL 57P01, and cut connections that are still open after `timeout` seconds."""
        self._stopping.set()
        for handler in list(self.handlers.values()):
            handler.terminate()
        until = time.monotonic() + timeout
        while self.handlers and time.monotonic() < until:
            time.sleep(0.01)
        for handler in list(self.handlers.values()):
            handler.cut()


def shut_down(connection: socket.socket, how: int) -> None:
    """Shut down one or both directions of a socket.

    An SSLSocket's own method would drop TLS and go on in plain text.
    """
    with suppress(OSError):
        socket.socket.shutdown(connection, how)
