"""The protocol by psycopg and by hand, against a session whose statements are written down here.

Answers to the byte cases are those PostgreSQL 15.18 gives.
"""

from __future__ import annotations

import socket
import struct
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

import psycopg
import pyarrow as pa
import pytest
from psycopg.types.json import Jsonb
from raw_client import (
    CANCEL,
    COPY_DONE,
    FLUSH,
    GSSENC,
    PROTOCOL_3,
    SSL,
    SYNC,
    Raw,
    bind,
    close,
    describe,
    execute,
    message,
    parse,
    query,
    row,
    startup,
)  # fmt: skip

from sparkwave.catalog.errors import INVALID_CATALOG_NAME, QUERY_CANCELED, SYNTAX_ERROR, Error
from sparkwave.catalog.types import INTEGER, TEXT, Type, type_of_oid
from sparkwave.catalog.users import User
from sparkwave.server.session.portal import Names
from sparkwave.server.wire.connections import WireServer
from sparkwave.server.wire.copy_text import csv_copy, text_copy
from sparkwave.server.wire.result import CopyOptions, Notice, Prepared, Result, ResultColumn

# The session


@dataclass(frozen=True)
class FakePrepared:
    parameters: tuple[Type, ...]
    columns: tuple[ResultColumn, ...] | None
    words: list[str]
    kind: str = "select"
    text: str = ""

    @property
    def is_empty(self) -> bool:
        return not self.words


class Sink:
    """Keeps its rows in the session; the value "bad" in the second column is an error of `write`."""

    columns = (ResultColumn("a", TEXT), ResultColumn("b", TEXT))
    table = "t"

    def __init__(self, session: FakeSession, options: CopyOptions) -> None:
        self.session, self.options = session, options
        self.staged: list[tuple] = []

    def write(self, batch: pa.RecordBatch) -> None:
        self.staged += zip(*(column.to_pylist() for column in batch.columns), strict=True)
        if ("x", "bad") in self.staged:
            raise Error("bad value", "22P02")

    def finish(self) -> int:
        self.session.stored += self.staged
        return len(self.staged)

    def abort(self) -> None:
        self.session.aborted += 1


class FakeSession:
    """Statements: `rows n`, `echo $1`, `nothing`, `notice`, `set k v`, `wait`, `fail`, `crash`, `copy in|out f`."""

    def __init__(self, startup: dict[str, str]) -> None:
        if startup.get("database") == "missing":
            raise Error('database "missing" does not exist', INVALID_CATALOG_NAME)
        self.startup = startup
        self.settings = {"server_version": "13.14.0", "client_encoding": "UTF8", "TimeZone": "UTC"} | {
            "standard_conforming_strings": "on"
        }
        self.names = Names()
        self.cancelled = threading.Event()
        self.running = threading.Event()
        self.closed = threading.Event()
        self.open_results = 0
        self.cancels = 0
        self.aborted = 0
        self.stored: list[tuple] = []
        self.values: tuple = ()

    def attach(self, process_id: int, address: tuple[str, int], terminate: Callable[[], None]) -> None:
        """Nobody asks who is there."""

    def split(self, sql: str) -> Iterable[tuple[str, int]]:
        offset = 0
        for text in sql.split(";"):
            if text.strip():
                yield text, offset
            offset += len(text) + 1

    def prepare(self, sql: str, parameter_oids: tuple[int, ...]) -> Prepared:
        words = sql.split()
        if not words:
            return FakePrepared((), None, words)
        if words[0] == "syntax":
            raise Error("syntax error", SYNTAX_ERROR, position=sql.index("syntax") + 1)
        if words[0] == "echo":
            types = tuple(type_of_oid(oid) or TEXT for oid in parameter_oids or (0,))
            return FakePrepared(types, tuple(ResultColumn("v", type) for type in types), words)
        columns = (ResultColumn("n", INTEGER),) if words[0] in ("rows", "failing_rows") else None
        return FakePrepared((), columns, words)

    def execute(self, prepared: Prepared, values: tuple[object, ...]) -> Result:
        assert isinstance(prepared, FakePrepared)
        self.values = values
        return getattr(self, "run_" + prepared.words[0])(prepared, *prepared.words[1:])

    def begin_implicit(self) -> None:
        """Each statement is its own transaction."""

    def begins_pipeline(self, prepared: Prepared) -> bool:
        return False

    def end_implicit(self) -> None:
        """As there is none."""

    def explain(self, error: Error) -> None:
        """As nothing is known."""

    def fail(self) -> None:
        """As there is none."""

    def transaction_status(self) -> bytes:
        return b"T" if self.names.in_block else b"I"

    def idle_limit(self) -> tuple[float, Error] | None:
        return None

    def parameters(self) -> dict[str, str]:
        return self.settings

    def cancel(self) -> None:
        self.cancels += 1
        self.cancelled.set()

    def close(self) -> None:
        self.closed.set()

    def batches(self, values: Iterable[int], fail: bool = False) -> Iterator[pa.RecordBatch]:
        self.open_results += 1
        try:
            for value in values:
                yield pa.record_batch({"n": pa.array([value, value + 1], pa.int32())})
            if fail:
                raise Error("division by zero", "22012")
        finally:
            self.open_results -= 1

    def run_rows(self, prepared: Prepared, count: str) -> Result:
        return Result("SELECT", prepared.columns, self.batches(range(0, int(count), 2)), counts_rows=True)

    def run_failing_rows(self, prepared: Prepared) -> Result:
        return Result("SELECT", prepared.columns, self.batches([0], fail=True), counts_rows=True)

    def run_echo(self, prepared: Prepared, *_: str) -> Result:
        texts = [pa.array([None if value is None else str(value)]) for value in self.values]
        columns = tuple(ResultColumn("v", TEXT) for _ in self.values)
        batch = pa.RecordBatch.from_arrays(texts, names=[f"v{i}" for i in range(len(texts))])
        return Result("SELECT", columns, iter([batch]), counts_rows=True)

    def run_nothing(self, _: Prepared) -> Result:
        return Result("INSERT 0 0")

    def run_notice(self, _: Prepared) -> Result:
        return Result("CREATE_TABLE", notices=[Notice("relation exists, skipping")])

    def run_set(self, _: Prepared, name: str, value: str) -> Result:
        self.settings = self.settings | {name: value}
        return Result("SET")

    def run_begin(self, _: Prepared) -> Result:
        self.names.in_block = True
        return Result("BEGIN")

    def run_deallocate_all(self, _: Prepared) -> Result:
        self.names.statements.clear()
        return Result("DEALLOCATE ALL")

    def run_wait(self, _: Prepared) -> Result:
        self.running.set()
        if self.cancelled.wait(10):
            self.cancelled.clear()
            raise Error("canceling statement due to user request", QUERY_CANCELED)
        return Result("WAIT")

    def run_fail(self, _: Prepared) -> Result:
        raise Error("no such thing", "42P01", detail="some detail", hint="a hint", position=3)

    def run_crash(self, _: Prepared) -> Result:
        raise OSError("disk on fire")

    def run_copy(self, _: Prepared, direction: str, format: str) -> Result:
        options = csv_copy() if format == "csv" else text_copy()
        if direction == "in":
            return Result("COPY", copy_in=Sink(self, options))
        batch = pa.record_batch({"a": ["1", None], "b": ["x\ty", "z"]})
        return Result("COPY", Sink.columns, iter([batch]), copy_out=options)


def everybody() -> dict[str, User]:
    return {name: User(number, name) for number, name in enumerate(("me", "root"))}


@pytest.fixture
def sessions() -> list[FakeSession]:
    return []


@pytest.fixture
def server(sessions: list[FakeSession]) -> Iterator[WireServer]:
    def new_session(startup: dict[str, str]) -> FakeSession:
        sessions.append(FakeSession(startup))
        return sessions[-1]

    server = WireServer(("127.0.0.1", 0), new_session, everybody, max_message_bytes=1 << 20)
    threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
    yield server
    server.close_sessions()
    server.shutdown()
    server.server_close()


@pytest.fixture
def connection(server: WireServer) -> Iterator[psycopg.Connection]:
    with psycopg.connect(dsn(server), autocommit=True) as connection:
        yield connection


def dsn(server: WireServer, more: str = "") -> str:
    return f"host=127.0.0.1 port={server.server_address[1]} user=me dbname=dev {more}"


def wait_for(condition: Callable[[], bool]) -> None:
    until = time.monotonic() + 5
    while not condition():
        assert time.monotonic() < until, "did not happen within 5 seconds"
        time.sleep(0.005)


@pytest.fixture
def raw(server: WireServer) -> Raw:
    return Raw(server.server_address[1])


# Connecting


@pytest.mark.parametrize("code", [SSL, GSSENC])
def test_encryption_is_declined_and_the_connection_goes_on(server: WireServer, code: int) -> None:
    raw = Raw(server.server_address[1], start=False)
    raw.send(struct.pack("!ii", 8, code))
    assert raw.file.read(1) == b"N"
    raw.send(startup(user="me"))
    assert raw.until("Z")[0] == ("R", b"\0\0\0\0")


def test_startup_parameters_and_options(server: WireServer, sessions: list[FakeSession]) -> None:
    options = r"-c search_path=a\ b --statement-timeout=5 -cTimeZone=UTC -c user=you"
    Raw(server.server_address[1], start=False).send(startup(user="me", options=options, application_name="x"))
    wait_for(lambda: bool(sessions))
    assert sessions[0].startup == {
        "search_path": "a b",
        "statement_timeout": "5",
        "TimeZone": "UTC",
        "user": "me",
        "application_name": "x",
    }


def test_a_refused_session_is_fatal(server: WireServer) -> None:
    with pytest.raises(psycopg.OperationalError, match='FATAL:  database "missing" does not exist'):
        psycopg.connect(dsn(server, "dbname=missing"))


def test_newer_minor_versions_are_negotiated(server: WireServer) -> None:
    raw = Raw(server.server_address[1], start=False)
    raw.send(startup(PROTOCOL_3 + 2, user="me", **{"_pq_.x": "1"}))
    assert raw.until("Z")[0] == ("v", struct.pack("!ii", PROTOCOL_3, 1) + b"_pq_.x\0")


def test_older_protocols_are_refused(server: WireServer) -> None:
    raw = Raw(server.server_address[1], start=False)
    raw.send(startup(2 << 16, user="me"))
    assert raw.read() == ("E", "FATAL 0A000 unsupported frontend protocol 2.0: server supports 3.0 to 3.0")


@pytest.mark.parametrize("first", [b"", b"\0", b"GET / HTTP/1.1\r\n\r\n"])
def test_probes_do_no_harm(server: WireServer, first: bytes, caplog: pytest.LogCaptureFixture) -> None:
    probe = Raw(server.server_address[1], start=False)
    probe.send(first)
    probe.socket.shutdown(socket.SHUT_WR)
    assert probe.is_closed()
    assert Raw(server.server_address[1]).codes(query("rows 2")) == "TDDC"
    assert not caplog.records


def test_a_port_in_use_is_an_error(server: WireServer) -> None:
    with pytest.raises(OSError, match="in use"):
        WireServer(server.server_address[:2], FakeSession, everybody)


def test_byte_by_byte(server: WireServer) -> None:
    raw = Raw(server.server_address[1], start=False)
    sent = startup(user="me") + query("rows 2") + parse("echo") + bind(values=(b"1",)) + execute() + SYNC
    for position in range(len(sent)):
        raw.send(sent[position : position + 1])
    raw.until("Z")
    assert "".join(code for code, _ in raw.until("Z")) == "TDDCZ"
    assert "".join(code for code, _ in raw.until("Z")) == "12DCZ"


@pytest.mark.parametrize(
    ("sent", "said"),
    [
        (b"Q" + struct.pack("!i", 1 << 30), "message length 1073741824 exceeds the limit of 1048576 bytes"),
        (b"Q" + struct.pack("!i", -1), "message length 4294967295 exceeds the limit of 1048576 bytes"),
        (b"Q" + struct.pack("!i", 3), "invalid message length 3"),
        (message(b"y"), "invalid frontend message type 121"),
    ],
)
def test_broken_framing_is_fatal(raw: Raw, sessions: list[FakeSession], sent: bytes, said: str) -> None:
    raw.send(sent)
    assert raw.read() == ("E", f"FATAL 08P01 {said}")
    assert raw.is_closed()
    raw.socket.close()
    assert sessions[0].closed.wait(5)


def test_terminate_and_disconnect_close_the_session(server: WireServer, sessions: list[FakeSession]) -> None:
    Raw(server.server_address[1]).send(message(b"X"))
    assert sessions[0].closed.wait(5)
    gone = Raw(server.server_address[1])
    gone.file.close()
    gone.socket.close()
    assert sessions[1].closed.wait(5)
    wait_for(lambda: not server.handlers)


def test_cancel(server: WireServer, sessions: list[FakeSession]) -> None:
    raw = Raw(server.server_address[1])
    raw.send(query("wait"))
    assert sessions[0].running.wait(5)
    wrong, right = Raw(server.server_address[1], start=False), Raw(server.server_address[1], start=False)
    wrong.send(struct.pack("!ii", 16, CANCEL) + raw.key[:4] + bytes(4))
    assert wrong.is_closed()
    assert sessions[0].cancels == 0
    right.send(struct.pack("!ii", 16, CANCEL) + raw.key)
    assert right.is_closed()
    assert raw.until("Z")[0] == ("E", "ERROR 57014 canceling statement due to user request")
    assert raw.codes(query("rows 2")) == "TDDC"


@pytest.mark.parametrize("statement", [None, "wait", "copy in text"])
def test_close_sessions(server: WireServer, sessions: list[FakeSession], statement: str | None) -> None:
    raw = Raw(server.server_address[1])
    if statement:
        raw.send(query(statement))
        wait_for(lambda: statement != "wait" or sessions[0].running.is_set())
    if statement == "copy in text":
        assert raw.read()[0] == "G"
    server.close_sessions()
    until_fatal = raw.until_text("FATAL")
    assert until_fatal == "FATAL 57P01 terminating connection due to administrator command"
    assert sessions[0].closed.is_set()
    assert sessions[0].aborted == (statement == "copy in text")


# Simple queries


def test_simple_query(raw: Raw) -> None:
    description, *rows, complete = raw.ask(query("rows 3"))
    assert description == ("T", b"\0\1n\0" + struct.pack("!ihihih", 0, 0, 23, 4, -1, 0))
    assert rows == [row(b"0"), row(b"1"), row(b"2"), row(b"3")]
    assert complete == ("C", b"SELECT 4\0")


def test_several_statements_stop_at_the_first_error(raw: Raw) -> None:
    assert raw.codes(query("rows 2; nothing; fail; rows 2")) == "TDDCCE"
    assert raw.codes(query("rows 2")) == "TDDC"


@pytest.mark.parametrize("text", ["", " ; ;", "\n"])
def test_empty_query(raw: Raw, text: str) -> None:
    assert raw.ask(query(text)) == [("I", b"")]


def test_error_fields_and_position_in_the_whole_text(connection: psycopg.Connection) -> None:
    with pytest.raises(psycopg.errors.UndefinedTable) as caught:
        connection.execute("rows 2; fail")
    diagnosis = caught.value.diag
    assert (diagnosis.severity, diagnosis.severity_nonlocalized) == ("ERROR", "ERROR")
    assert (diagnosis.message_primary, diagnosis.message_detail) == ("no such thing", "some detail")
    assert (diagnosis.message_hint, diagnosis.statement_position) == ("a hint", "10")
    with pytest.raises(psycopg.errors.SyntaxError) as syntax:
        connection.execute("rows 2; syntax")
    assert syntax.value.diag.statement_position == "9"


def test_our_own_faults_are_logged_and_survived(raw: Raw, caplog: pytest.LogCaptureFixture) -> None:
    assert raw.ask(query("crash")) == [("E", "ERROR XX000 internal error: OSError: disk on fire")]
    assert caplog.records[0].exc_info
    assert raw.codes(query("rows 2")) == "TDDC"


def test_an_error_between_rows_releases_the_result(raw: Raw, sessions: list[FakeSession]) -> None:
    assert raw.codes(query("failing_rows")) == "TDDE"
    assert sessions[0].open_results == 0


def test_notices_come_before_the_tag(raw: Raw) -> None:
    assert raw.ask(query("notice")) == [("N", "NOTICE 00000 relation exists, skipping"), ("C", b"CREATE_TABLE\0")]


def test_changed_parameters_are_reported_once(raw: Raw) -> None:
    assert raw.ask(query("set TimeZone Asia/Tokyo")) == [("C", b"SET\0"), ("S", b"TimeZone\0Asia/Tokyo\0")]
    assert raw.ask(query("nothing")) == [("C", b"INSERT 0 0\0")]


def test_many_rows(connection: psycopg.Connection) -> None:
    assert connection.execute("rows 4000").fetchall() == [(n,) for n in range(4000)]


# Extended queries


@pytest.mark.parametrize("binary", [False, True])
@pytest.mark.parametrize("value", [-1, 2**40, -(2**62), 1.5, "{}", "2020-01-01", b"\0\xff", True, None])
def test_parameters(connection: psycopg.Connection, sessions: list[FakeSession], value: object, binary: bool) -> None:
    connection.execute("echo %b" if binary else "echo %t", (value,))
    assert sessions[0].values == (value,)


def test_typed_nulls_and_json(connection: psycopg.Connection, sessions: list[FakeSession]) -> None:
    connection.execute("echo %b %b %t", (Jsonb({"a": 1}), None, [1, None]))
    assert sessions[0].values[0] == '{"a": 1}'
    assert sessions[0].values[1:] == (None, [1, None])


def test_prepared_statements_and_binary_rows(connection: psycopg.Connection) -> None:
    for _ in range(7):
        assert connection.execute("rows 4", prepare=True, binary=True).fetchall() == [(0,), (1,), (2,), (3,)]


def test_a_pipeline(connection: psycopg.Connection) -> None:
    with connection.pipeline():
        cursors = [connection.execute("echo %s", (n,)) for n in range(5)]
        assert [cursor.fetchone() for cursor in cursors] == [(n,) for n in range(5)]


def test_describe_does_not_execute(raw: Raw, sessions: list[FakeSession]) -> None:
    bound = bind("p", "s", (b"1",), (), (1,))
    answer = raw.ask(parse("echo", "s", (20,)), describe("S", "s"), bound, describe("P", "p"), SYNC)
    field = b"\0\1v\0" + struct.pack("!ihihi", 0, 0, 20, 8, -1)
    assert answer == [
        ("1", b""),
        ("t", struct.pack("!hi", 1, 20)),
        ("T", field + b"\0\0"),
        ("2", b""),
        ("T", field + b"\0\1"),
    ]
    assert sessions[0].values == ()


def test_flush_answers_without_sync(raw: Raw) -> None:
    raw.send(parse("nothing"), describe("S"), FLUSH)
    assert "".join(code for code, _ in raw.until("n")) == "1tn"


def test_a_portal_is_read_in_parts(raw: Raw, sessions: list[FakeSession]) -> None:
    raw.send(parse("rows 6"), bind("p"), execute("p", 3), FLUSH)
    assert raw.until("s") == [("1", b""), ("2", b""), row(b"0"), row(b"1"), row(b"2"), ("s", b"")]
    assert sessions[0].open_results == 1
    assert raw.ask(execute("p", 2), execute("p", 1), execute("p", 5), execute("p"), SYNC) == [
        *(row(b"3"), row(b"4"), ("s", b"")),
        *(row(b"5"), ("s", b"")),
        ("C", b"SELECT 0\0"),
        ("C", b"SELECT 0\0"),
    ]
    assert sessions[0].open_results == 0


def test_portals_die_at_sync_unless_in_a_transaction(raw: Raw, sessions: list[FakeSession]) -> None:
    assert raw.codes(parse("rows 4"), bind("p"), execute("p", 1), SYNC) == "12Ds"
    assert sessions[0].open_results == 0
    assert raw.ask(execute("p"), SYNC) == [("E", 'ERROR 34000 portal "p" does not exist')]
    raw.ask(query("begin"))
    assert raw.codes(parse("rows 4"), bind("p"), execute("p", 1), SYNC) == "12Ds"
    assert raw.codes(execute("p"), close("P", "p"), SYNC) == "DDDC3"


def test_closing_a_portal_releases_its_result(raw: Raw, sessions: list[FakeSession]) -> None:
    raw.send(parse("rows 4"), bind("p"), execute("p", 1), close("P", "p"), FLUSH)
    raw.until("3")
    assert sessions[0].open_results == 0


def test_disconnecting_releases_results(raw: Raw, sessions: list[FakeSession]) -> None:
    raw.send(parse("rows 4"), bind("p"), execute("p", 1), FLUSH)
    raw.until("s")
    raw.send(message(b"X"))
    assert sessions[0].closed.wait(5)
    assert sessions[0].open_results == 0


def test_an_error_skips_to_sync(raw: Raw) -> None:
    assert raw.codes(parse("syntax"), bind(), execute(), query("rows 2"), parse("nothing"), SYNC) == "E"
    assert raw.codes(parse("nothing"), bind(), execute(), SYNC) == "12C"


@pytest.mark.parametrize(
    ("messages", "answer"),
    [
        ([parse("nothing"), bind(), execute(), execute()], 'ERROR 55000 portal "" cannot be run'),
        ([parse("nothing", "a"), parse("nothing", "a")], 'ERROR 42P05 prepared statement "a" already exists'),
        ([bind("", "nope")], 'ERROR 26000 prepared statement "nope" does not exist'),
        ([bind()], "ERROR 26000 unnamed prepared statement does not exist"),
        ([describe("P", "nope")], 'ERROR 34000 portal "nope" does not exist'),
        ([parse("nothing"), bind("p"), bind("p")], 'ERROR 42P03 cursor "p" already exists'),
        (
            [parse("echo"), bind()],
            'ERROR 08P01 bind message supplies 0 parameters, but prepared statement "" requires 1',
        ),
        (
            [parse("echo"), bind(values=(b"1",), formats=(0, 0))],
            "ERROR 08P01 bind message has 2 parameter formats but 1 parameters",
        ),
        (
            [parse("rows 2"), bind(results=(1, 1))],
            "ERROR 08P01 bind message has 2 result formats but query has 1 columns",
        ),
        ([parse("rows 2"), bind(results=(2,))], "ERROR 22023 unsupported format code: 2"),
        ([parse("echo", oids=(23,)), bind(values=(b"x",))], 'ERROR 22P02 invalid input syntax for type integer: "x"'),
        (
            [parse("echo", oids=(23,)), bind(values=(b"xyz",), formats=(1,))],
            "ERROR 22P03 incorrect binary data format for type integer",
        ),
        ([message(b"B", b"\0\0\0")], "ERROR 08P01 insufficient data left in message"),
    ],
)
def test_mistakes(raw: Raw, messages: list[bytes], answer: str) -> None:
    assert raw.ask(*messages, SYNC)[-1] == ("E", answer)
    assert raw.codes(query("rows 2")) == "TDDC"


def test_close_of_unknown_names_is_fine(raw: Raw) -> None:
    assert raw.codes(close("S", "nope"), close("P", "nope"), SYNC) == "33"


def test_close_frees_a_name(raw: Raw) -> None:
    assert raw.codes(parse("nothing", "a"), close("S", "a"), parse("nothing", "a"), SYNC) == "131"
    assert raw.codes(query("deallocate_all"), parse("nothing", "a"), SYNC) == "C"
    assert raw.until("Z")[0] == ("1", b"")


def test_empty_statement(raw: Raw) -> None:
    assert raw.codes(parse(""), describe("S"), bind(), describe("P"), execute(), SYNC) == "1tn2nI"


def test_function_calls_are_refused(raw: Raw) -> None:
    assert raw.codes(message(b"F", bytes(4))) == "E"


# COPY


@pytest.mark.parametrize("format", ["text", "csv"])
def test_copy_in(connection: psycopg.Connection, sessions: list[FakeSession], format: str) -> None:
    with connection.cursor() as cursor:
        with cursor.copy(f"copy in {format}") as copy:
            copy.write("1\tx\n2\t" if format == "text" else '1,x\n2,"')
            copy.write("\\N\n" if format == "text" else '"\n')
        assert cursor.statusmessage == "COPY 2"
    assert sessions[0].stored == [("1", "x"), ("2", None if format == "text" else "")]


def test_copy_in_is_announced_and_works_extended(raw: Raw, sessions: list[FakeSession]) -> None:
    raw.send(parse("copy in text"), bind(), execute(), FLUSH)
    assert raw.until("G")[-1] == ("G", b"\0\0\2\0\0\0\0")
    assert raw.ask(message(b"d", b"1\tx\n"), FLUSH, SYNC, message(b"d", b"2\ty\n"), COPY_DONE, SYNC) == [
        ("C", b"COPY 2\0")
    ]
    assert sessions[0].stored == [("1", "x"), ("2", "y")]


def test_copy_fail(raw: Raw, sessions: list[FakeSession]) -> None:
    raw.send(query("copy in text; rows 2"))
    assert raw.read()[0] == "G"
    assert raw.ask(message(b"d", b"1\tx\n"), message(b"f", b"because\0")) == [
        ("E", "ERROR 57014 COPY from stdin failed: because")
    ]
    assert (sessions[0].aborted, sessions[0].stored) == (1, [])


@pytest.mark.parametrize(
    ("line", "said"), [(b"oops\n", '22P04 missing data for column "b"'), (b"x\tbad\n", "22P02 bad value")]
)
@pytest.mark.parametrize("extended", [False, True])
def test_a_bad_line(raw: Raw, sessions: list[FakeSession], line: bytes, said: str, extended: bool) -> None:
    """What is still under way after the error is dropped, and the connection goes on."""
    start = [parse("copy in text"), bind(), execute()] if extended else [query("copy in text")]
    large = b"1\tx\n" * 200_000
    pieces = [message(b"d", large[at : at + 100_000]) for at in range(0, len(large), 100_000)]
    raw.send(*start, FLUSH)
    raw.until("G")
    errors = raw.ask(message(b"d", b"1\tx\n" + line), *pieces, COPY_DONE, *([SYNC] if extended else []))
    assert errors == [("E", f"ERROR {said}")]
    assert (sessions[0].aborted, sessions[0].stored) == (1, [])
    assert raw.codes(query("rows 2")) == "TDDC"


def test_a_bad_line_through_psycopg(connection: psycopg.Connection) -> None:
    with (
        pytest.raises(psycopg.errors.BadCopyFileFormat) as caught,
        connection.cursor() as cursor,
        cursor.copy("copy in csv") as copy,
    ):
        copy.write("1,x\n" * 1000 + "oops\n" + "1,x\n" * 1_000_000)
    assert caught.value.diag.context == 'COPY t, line 1001: "oops"'
    assert connection.execute("rows 2").fetchall() == [(0,), (1,)]


def test_disconnecting_aborts_a_copy(raw: Raw, sessions: list[FakeSession]) -> None:
    raw.send(query("copy in text"), message(b"d", b"1\tx\n"))
    raw.read()
    raw.file.close()
    raw.socket.close()
    assert sessions[0].closed.wait(5)
    assert (sessions[0].aborted, sessions[0].stored) == (1, [])


def test_a_query_inside_a_copy_is_fatal(raw: Raw) -> None:
    raw.send(query("copy in text"), query("rows 2"))
    assert raw.until_text("FATAL") == "FATAL 08P01 unexpected message type 0x51 during COPY from stdin"


def test_copy_out(raw: Raw) -> None:
    assert raw.ask(query("copy out text")) == [
        ("H", b"\0\0\2\0\0\0\0"),
        ("d", b"1\tx\\ty\n"),
        ("d", b"\\N\tz\n"),
        ("c", b""),
        ("C", b"COPY 2\0"),
    ]
    assert raw.codes(parse("copy out csv"), bind(), describe("P"), execute(), SYNC) == "12nHddcC"


def test_copy_out_through_psycopg(connection: psycopg.Connection) -> None:
    with connection.cursor() as cursor, cursor.copy("copy out text") as copy:
        assert list(copy.rows()) == [("1", "x\ty"), (None, "z")]
