"""Answers a client's messages after startup: queries, prepared statements, portals and COPY.

A `Channel` carries the bytes, the session runs the SQL. The behavior is that of the PostgreSQL docs, "Message Flow".
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Protocol

from sparkwave.catalog.counters import count_error, statement_seconds
from sparkwave.catalog.errors import (
    ADMIN_SHUTDOWN,
    FEATURE_NOT_SUPPORTED,
    IN_FAILED_TRANSACTION,
    NOT_IN_PREREQUISITE_STATE,
    PROTOCOL_VIOLATION,
    QUERY_CANCELED,
    STATEMENT_TOO_COMPLEX,
    Error,
)
from sparkwave.catalog.lake.translation import DuckDBError, translate
from sparkwave.planner.parse.tokens import position_of_input
from sparkwave.server.operations.memory_release import MEMORY
from sparkwave.server.session.portal import Portal, Rows, Statement
from sparkwave.server.wire import messages as m
from sparkwave.server.wire.byte_stream import Disconnected
from sparkwave.server.wire.client_encoding import UTF8, Encoding
from sparkwave.server.wire.client_session import ClientSession
from sparkwave.server.wire.copy_binary import BinaryCopyParser, binary_rows
from sparkwave.server.wire.copy_text import CopyParser, copy_rows
from sparkwave.server.wire.result import BadValue, CopySink, Notice, Result, ResultColumn
from sparkwave.server.wire.row_messages import data_rows
from sparkwave.server.wire.text_style import UNREPORTED, TextStyle, style_of

logger = logging.getLogger(__name__)

MOST_DESCRIBED = 64  # the most RowDescriptions that are kept
_READY = {status: m.frame(m.READY_FOR_QUERY, status) for status in (b"I", b"T", b"E")}
_FAILED = b"E"
_BOUND = m.frame(m.BIND_COMPLETE)


class Fatal(Exception):
    """An error that ends the connection after the client has got it."""

    def __init__(self, error: Error) -> None:
        super().__init__(error.message)
        self.error = error


class Channel(Protocol):
    """Sends and receives one client's messages. All methods raise Disconnected when the client has gone.

    `terminating` tells that the server ends the connection.
    """

    terminating: bool

    def read_message(self) -> tuple[bytes, bytes]:
        """Return the type byte and body of the next message. Raises Fatal for an impossible length."""

    def next_is(self, code: bytes) -> bool:
        """Return whether the next message has arrived and has this type byte."""

    def write(self, data: bytes | memoryview) -> None:
        """Add whole messages to the output; they may wait for `flush`."""

    def flush(self) -> None: ...


def as_error(error: Exception) -> Error:
    """Return the error that the client gets for an exception.

    Any exception but Error, an error of DuckDB and too deep a nesting is a bug of the server and is logged. An error of
    DuckDB may arise outside a statement, for example in an interrupted COMMIT.
    """
    if isinstance(error, DuckDBError):
        error = translate(error)
    if isinstance(error, Error):
        return error
    if isinstance(error, RecursionError):
        hint = "The statement nests too deeply, or has too many operators in a row."
        return Error("stack depth limit exceeded", STATEMENT_TOO_COMPLEX, hint=hint)
    # A message of DuckDB that is no UTF-8 arrives as this error, and tells more.
    text = error.object.decode(errors="replace") if isinstance(error, UnicodeDecodeError) else str(error)
    logger.error("internal error: %s", text, exc_info=error)
    return Error(f"internal error: {type(error).__name__}: {text}")


_TEXTS = (m.QUERY, m.PARSE)  # the messages that contain SQL


def _check_columns(statement: Statement, result: Result) -> None:
    """Raise Error 0A000 if a change of a table gave a query other columns than the RowDescription that was sent."""
    if not statement.described or result.columns is None or statement.prepared.kind != "select":
        return
    [told] = statement.described
    if result.columns is not told and [c.type.oid for c in result.columns] != [c.type.oid for c in told]:
        raise Error(m.CHANGED_COLUMNS, FEATURE_NOT_SUPPORTED)


class Conversation:
    """Holds one client's statements and portals, and answers each message."""

    def __init__(self, session: ClientSession, channel: Channel) -> None:
        self._session = session
        self._channel = channel
        session.notify = self._notify
        self._skipping = False  # whether messages up to Sync are dropped, after an error
        self.is_ready = False  # the client has got ReadyForQuery and sent nothing since, so that idle limits apply
        self._names = session.names
        self._reported: dict[str, str] = {}
        self._described: dict[tuple[int, tuple[int, ...], str], tuple[tuple[ResultColumn, ...], bytes]] = {}

    def handle(self, code: bytes, body: bytes) -> None:
        """Act on one message.

        Raises Fatal for a message that ends the connection, Disconnected when the client has gone.
        """
        self.is_ready = False
        handler = _HANDLERS.get(code)
        if handler is None:
            raise Fatal(Error(f"invalid frontend message type {code[0]}", PROTOCOL_VIOLATION))
        if self._skipping and code != m.SYNC:
            return
        try:
            handler(self, body)
        except (Disconnected, Fatal):
            raise
        except Exception as error:
            self._report(error)
            self._skipping = True
        finally:
            if code in _TEXTS:
                MEMORY.sent(len(body))

    def close(self) -> None:
        """Release the open portals and the session."""
        self._names.close_portals()
        self._session.close()

    def ready(self) -> None:
        """Send ReadyForQuery and everything that waits in the output."""
        self._channel.write(_READY[self._session.transaction_status()])
        self._channel.flush()
        self.is_ready = True

    def report_parameters(self) -> None:
        """Send ParameterStatus for parameters that have changed since they were last sent."""
        current = self._session.parameters()
        if current is self._reported:
            return
        for name, value in current.items():
            if self._reported.get(name) != value and name not in UNREPORTED:
                self._send(m.PARAMETER_STATUS, m.cstring(name) + m.cstring(value, self._encoding))
        self._reported = current

    def _report(self, error: Exception) -> None:
        error = as_error(error)
        self._session.explain(error)
        self._session.fail()
        if error.sqlstate == QUERY_CANCELED and self._channel.terminating:
            error = Error("terminating connection due to administrator command", ADMIN_SHUTDOWN)
        if error.sqlstate == ADMIN_SHUTDOWN:
            raise Fatal(error)
        count_error(error)
        self._send(m.ERROR_RESPONSE, m.error_fields(error, "ERROR", self._encoding))
        self._channel.flush()

    def _send(self, code: bytes, body: bytes = b"") -> None:
        self._channel.write(m.frame(code, body))

    def _style(self) -> TextStyle:
        return style_of(self._session.parameters())

    @property
    def _encoding(self) -> Encoding:
        return self._style().encoding

    # Simple query

    def _on_query(self, body: bytes) -> None:
        self._names.statements.pop("", None)
        self._names.close_portal("")
        try:
            self._run_script(m.read_query(body, self._encoding))
        except (Disconnected, Fatal):
            raise
        except Exception as error:
            self._report(error)
        self._on_sync(b"")

    def _run_script(self, sql: str) -> None:
        statements = tuple(self._session.split(sql))
        for text, offset in statements:
            if len(statements) > 1:
                self._session.begin_implicit()
            try:
                self._run_statement(text)
            except Error as error:
                if error.position is not None:
                    error.position += offset
                raise
        if not statements:
            self._send(m.EMPTY_QUERY_RESPONSE)

    def _run_statement(self, sql: str) -> None:
        prepared = self._session.prepare(sql, ())
        if "$" in sql and prepared.parameters:  # `$` first: to infer the parameters takes time
            raise Error("there is no parameter $1", "42P02")
        portal = Portal(Statement(prepared))
        try:
            self._execute(portal, 0, describe=True)
        finally:
            portal.close()

    # Extended query

    def _on_parse(self, body: bytes) -> None:
        parse = m.read_parse(body, self._encoding)
        self._names.add_statement(
            parse.name, lambda: Statement(self._session.prepare(parse.sql, parse.oids), parse.oids)
        )
        self._send(m.PARSE_COMPLETE)

    def _on_bind(self, body: bytes) -> None:
        style = self._style()
        bind = m.read_bind(body, style.encoding)
        statement = self._names.statement(bind.statement)
        self._names.free_portal(bind.portal)
        portal = Portal(statement, statement.decode(bind, style.encoding, style.order), bind.result_formats)
        if len(bind.result_formats) > 1:  # one code fits any columns, so they need not be inferred yet
            portal.formats(statement.prepared.columns or ())
        self._names.portals[bind.portal] = portal
        self._channel.write(_BOUND)

    def _on_describe(self, body: bytes) -> None:
        kind, name = m.read_target(body, self._encoding)
        if kind == "S":
            statement = self._names.statement(name)
            self._send(m.PARAMETER_DESCRIPTION, m.parameter_description(statement.parameter_oids))
            columns = statement.prepared.columns
            self._describe(Portal(statement), columns)
            statement.described[:] = [columns] if columns is not None else []
        else:
            portal = self._names.portal(name)
            self._describe(portal, portal.columns)

    def _describe(self, portal: Portal, columns: tuple[ResultColumn, ...] | None) -> None:
        if columns is None:
            self._send(m.NO_DATA)
            return
        key = id(columns), portal.format_codes, self._encoding.name  # a plan's columns are one object at each execution
        found = self._described.get(key)
        if found is None or found[0] is not columns:
            message = m.frame(m.ROW_DESCRIPTION, m.row_description(columns, portal.formats(columns), self._encoding))
            if len(self._described) >= MOST_DESCRIBED:
                self._described.clear()
            found = self._described[key] = columns, message
        self._channel.write(found[1])

    def _on_execute(self, body: bytes) -> None:
        name, limit = m.read_execute(body, self._encoding)
        if name not in self._names.portals and self._session.transaction_status() == _FAILED:
            message = "current transaction is aborted, commands ignored until end of transaction block"
            raise Error(message, IN_FAILED_TRANSACTION)  # the error has closed the portal
        portal = self._names.portal(name)
        if portal.finished and portal.rows is None:
            raise Error(f'portal "{name}" cannot be run', NOT_IN_PREREQUISITE_STATE)
        try:
            if self._session.begins_pipeline(portal.statement.prepared) and not self._channel.next_is(m.SYNC):
                self._session.begin_implicit()
            self._execute(portal, limit)
        except BaseException:
            self._names.close_portal(name)
            raise

    def _on_close(self, body: bytes) -> None:
        kind, name = m.read_target(body, self._encoding)
        if kind == "S":
            self._names.statements.pop(name, None)
        else:
            self._names.close_portal(name)
        self._send(m.CLOSE_COMPLETE)

    def _on_sync(self, _body: bytes) -> None:
        """End the transaction of the messages before. An error of the commit is sent after their answers."""
        self._skipping = False
        try:
            self._session.end_implicit()
        except (Disconnected, Fatal):
            raise
        except Exception as error:
            self._report(error)
        self._names.sync()
        self.ready()

    def _on_flush(self, _body: bytes) -> None:
        self._channel.flush()

    def _on_function_call(self, _body: bytes) -> None:
        self._report(Error("function calls through the protocol are not supported", FEATURE_NOT_SUPPORTED))
        self.ready()

    def _on_late_copy_data(self, _body: bytes) -> None:
        """Drop COPY's messages that the client sent before it saw the COPY fail, as the protocol demands."""

    # Execution

    def _execute(self, portal: Portal, limit: int, describe: bool = False) -> None:
        if portal.statement.prepared.is_empty:
            self._send(m.EMPTY_QUERY_RESPONSE)
            return
        started = time.perf_counter()
        try:
            if portal.result is None:
                portal.result = self._session.execute(portal.statement.prepared, portal.values)
                _check_columns(portal.statement, portal.result)
                if describe and portal.result.columns is not None and portal.result.copy_out is None:
                    portal.format_codes = (int(portal.result.is_binary),)
                    self._describe(portal, portal.result.columns)
            self._advance(portal, portal.result, limit)
        except Error as error:
            error.position = error.position or position_of_input(portal.statement.prepared.text, error.message)
            raise
        finally:
            statement_seconds(portal.statement.prepared.kind).observe(time.perf_counter() - started)

    def _advance(self, portal: Portal, result: Result, limit: int) -> None:
        if result.copy_in is not None:
            self._complete(result, f"COPY {self._copy_in(result.copy_in)}")
        elif result.copy_out is not None:
            self._complete(result, f"COPY {self._copy_out(result)}")
        elif result.columns is not None:
            portal.rows = portal.rows or Rows(result.batches)
            sent = 0 if portal.finished else self._send_rows(portal, result.columns, limit)
            if limit and sent == limit:
                self._send(m.PORTAL_SUSPENDED)
                return
            self._complete(result, f"{result.tag} {sent}" if result.counts_rows else result.tag)
        else:
            self._complete(result, result.tag)
        portal.close()

    def _send_rows(self, portal: Portal, columns: tuple[ResultColumn, ...], limit: int) -> int:
        assert portal.rows is not None
        types, formats, style = [column.type for column in columns], portal.formats(columns), self._style()
        sent = 0
        for batch in portal.rows.take(limit):
            self._channel.write(data_rows(batch, types, formats, style))
            sent += batch.num_rows
        return sent

    def _complete(self, result: Result, tag: str) -> None:
        for notice in result.notices:
            self._send_notice(notice)
        result.notices = []
        self._send(m.COMMAND_COMPLETE, m.cstring(tag))
        self.report_parameters()

    def _send_notice(self, notice: Notice) -> None:
        error = Error(notice.message, notice.sqlstate, detail=notice.detail)
        self._send(m.NOTICE_RESPONSE, m.error_fields(error, notice.severity, self._encoding))

    def _notify(self, notice: Notice) -> None:
        self._send_notice(notice)
        self._channel.flush()

    # COPY

    def _copy_in(self, sink: CopySink) -> int:
        """Store the client's rows and return their number.

        On any failure, a lost client included, staged rows are dropped.
        """
        encoding = sink.options.encoding or self._encoding
        self._send(m.COPY_IN_RESPONSE, m.copy_response(len(sink.columns), int(sink.options.is_binary)))
        self._channel.flush()
        parser: BinaryCopyParser | CopyParser
        if sink.options.is_binary:
            parser = BinaryCopyParser(sink.columns, encoding)
        else:
            parser = CopyParser([column.name for column in sink.columns], sink.options)
        try:
            for data in self._copied(UTF8 if sink.options.is_binary else encoding):
                for batch in parser.feed(data):
                    sink.write(batch)
            for batch in parser.finish():
                sink.write(batch)
            return sink.finish()
        except BaseException as error:
            sink.abort()
            if isinstance(error, Error) and error.staged is not None:
                row, value = error.staged
                place = parser.place_of(row) if isinstance(parser, CopyParser) else f"line {row + 1}"
                places = (place.partition(":")[0], value) if value else (place,)
                error.context = ", ".join((f"COPY {sink.table}", *filter(None, places)))
            elif isinstance(error, Error) and error.context is not None:
                place = ""
                if isinstance(error, BadValue) and isinstance(parser, CopyParser):
                    place = f"line {parser.line_of(error.row)}, "
                error.context = f"COPY {sink.table}, {place}{error.context}"
            raise

    def _copied(self, encoding: Encoding) -> Iterator[bytes]:
        """Yield the client's CopyData, converted from an encoding to UTF-8."""
        decoder = None if encoding.is_utf8 else encoding.stream()
        while (data := self._next_copy_data()) is not None:
            yield data if decoder is None else encoding.decode_piece(decoder, data)
        if decoder is not None:
            yield encoding.decode_piece(decoder, b"", last=True)

    def _next_copy_data(self) -> bytes | None:
        """Return the next CopyData, None at CopyDone. Flush and Sync in between are ignored."""
        while True:
            code, body = self._channel.read_message()
            if code == m.COPY_DATA:
                return body
            if code == m.COPY_DONE:
                return None
            if code == m.COPY_FAIL:
                raise Error(f"COPY from stdin failed: {m.read_query(body)}", QUERY_CANCELED)
            if code not in (m.FLUSH, m.SYNC):
                raise Fatal(
                    Error(f"unexpected message type 0x{code[0]:02X} during COPY from stdin", PROTOCOL_VIOLATION)
                )

    def _copy_out(self, result: Result) -> int:
        assert result.copy_out is not None and result.columns is not None
        self._send(m.COPY_OUT_RESPONSE, m.copy_response(len(result.columns), int(result.copy_out.is_binary)))
        sent, style = 0, self._style()
        style = replace(style, encoding=result.copy_out.encoding or style.encoding)
        rows = Rows(result.batches).take()
        if result.copy_out.is_binary:
            pieces = binary_rows(rows, result.columns, style)
        else:
            pieces = copy_rows(rows, result.columns, result.copy_out, style)
        for count, data in pieces:
            self._channel.write(data)
            sent += count
        self._send(m.COPY_DONE)
        return sent


_HANDLERS: dict[bytes, Callable[[Conversation, bytes], None]] = {
    m.QUERY: Conversation._on_query,
    m.PARSE: Conversation._on_parse,
    m.BIND: Conversation._on_bind,
    m.DESCRIBE: Conversation._on_describe,
    m.EXECUTE: Conversation._on_execute,
    m.CLOSE: Conversation._on_close,
    m.SYNC: Conversation._on_sync,
    m.FLUSH: Conversation._on_flush,
    m.FUNCTION_CALL: Conversation._on_function_call,
    m.COPY_DATA: Conversation._on_late_copy_data,
    m.COPY_DONE: Conversation._on_late_copy_data,
    m.COPY_FAIL: Conversation._on_late_copy_data,
}
