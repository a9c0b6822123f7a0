"""Hostile input against a real server: broken statements, broken messages, slow clients and very many of them.

Whatever comes, each client gets an answer or the end of its connection within a limit, nothing is an internal error,
others go on, and the server keeps no memory and no descriptors. FUZZ_ROUNDS and FUZZ_SEED make the long run longer
or another one.
"""

from __future__ import annotations

import contextlib
import os
import random
import re
import socket
import struct
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import psycopg
import pytest
import sql_scripts
from mutations import broken, mutated
from raw_client import (
    COPY_DONE,
    FLUSH,
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
    startup,
)  # fmt: skip
from servers import PATIENCE_SECONDS, Server, refused, rows, wait_until

LIMIT_SECONDS = PATIENCE_SECONDS  # for an answer: a hang is for ever
STATEMENT_TIMEOUT = "3s"
MOST_GROWTH = 700 << 20  # of the server's memory
ROUNDS, SEED = int(os.environ.get("FUZZ_ROUNDS", "3")), int(os.environ.get("FUZZ_SEED", "1"))

# What would start Spark, end others' sessions, or lock everybody out, as it should.
_LEFT_OUT = re.compile(r"\b(system|user|role|kill|recover|grant|revoke|database|engine)\b", re.IGNORECASE)

START = startup(user="root", database="dev")
SESSIONS: tuple[list[bytes], ...] = (
    [START, query("SELECT 1; SELECT 'two'"), query("SELECT a FROM steady"), message(b"X")],
    [
        START, parse("SELECT $1::int + 1, $2::text", "s", (23, 25)), describe("S", "s"),
        bind("p", "s", (b"41", "é".encode()), (), (1, 0)), describe("P", "p"), execute("p", 1), close("P", "p"), SYNC,
        bind("", "s", (struct.pack("!i", 7), None), (1, 0)), execute(), FLUSH, SYNC, close("S", "s"), SYNC,
    ],
    [
        START, query("COPY fuzz_rows FROM STDIN"),
        message(b"d", b"1\tone\n2\t\\N\n"), message(b"d", b"3\tthree"), COPY_DONE,
    ],
    [
        START, query("COPY fuzz_rows FROM STDIN (FORMAT binary)"),
        message(b"d", b"PGCOPY\n\xff\r\n\0" + struct.pack("!iihiiih", 0, 0, 2, 4, 9, -1, -1)), COPY_DONE,
    ],
    [START, query("COPY (SELECT a FROM steady) TO STDOUT WITH (FORMAT binary)"), query("COPY steady TO STDOUT")],
    [
        START, query("BEGIN"), query("DECLARE c CURSOR FOR SELECT a FROM steady"), query("FETCH 1 FROM c"),
        parse("FETCH ALL FROM c"), bind(), execute(), SYNC, query("COMMIT"),
    ],
    [
        START, parse("INSERT INTO fuzz_rows VALUES ($1, $2)", "i"), bind("", "i", (b"5", b"five")), execute(),
        bind("", "i", (b"x", b"none")), execute(), SYNC, query("DELETE FROM fuzz_rows WHERE a = 5"),
    ],
    [struct.pack("!ii", 8, SSL), START, query("SELECT now()")],
    [struct.pack("!iiii", 16, 80877102, 1, 2)],
    [startup(user="root", database="dev", options="-c statement_timeout=1s -c x=", application_name="é\x01"), FLUSH],
)  # fmt: skip


@pytest.fixture(scope="module")
def target(module_server: Server) -> Iterator[Server]:
    """A server with a table and a view, and a session that asks for them all the time while others attack."""
    with module_server.connect() as own:
        own.execute("ALTER SYSTEM SET backfill_engine = auto")
        own.execute("CREATE TABLE steady (a int PRIMARY KEY)")
        own.execute("INSERT INTO steady SELECT i FROM range(1000) AS r(i)")
        own.execute("CREATE MATERIALIZED VIEW steady_sum AS SELECT count(*) AS n, sum(a) AS s FROM steady")
        own.execute("CREATE TABLE fuzz_rows (a int, s varchar)")
    yield module_server


@contextlib.contextmanager
def unharmed(server: Server) -> Iterator[None]:
    """Others get their answers meanwhile, and afterwards the server is as it was."""
    done, waits = threading.Event(), [0.0]
    with server.connect() as bystander:
        memory, descriptors, logged = _memory(server), _descriptors(server), len(server.log())

        def ask() -> None:
            while not done.wait(0.05):
                started = time.monotonic()
                assert rows(bystander, "SELECT n, s FROM steady_sum") == [(1000, 499500)]
                waits.append(time.monotonic() - started)

        with ThreadPoolExecutor(1) as pool:
            asking = pool.submit(ask)
            try:
                yield
            finally:
                done.set()
            asking.result(LIMIT_SECONDS)
        assert server.process.poll() is None
        assert wait_until(lambda: _descriptors(server) <= descriptors + 40, LIMIT_SECONDS), "descriptors are left"
        grown = _memory(server) - memory
        print(f"bystander waited {max(waits):.2f} s at most, memory grew by {grown >> 20} MiB")
        assert max(waits) < LIMIT_SECONDS and grown < MOST_GROWTH
        faults = re.findall(r"internal error|Traceback|connection from .*", server.log()[logged:])
        assert not faults, server.log()[logged:][-5000:]


def _memory(server: Server) -> int:
    return int(Path(f"/proc/{server.process.pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def _descriptors(server: Server) -> int:
    return len(list(Path(f"/proc/{server.process.pid}/fd").iterdir()))


# Statements


def attack_with_statements(server: Server, seed: int, count: int) -> list[str]:
    """Play a script's statements, each after broken copies of it. Returns the faults."""
    chance = random.Random(seed)
    path = sql_scripts.SCRIPTS[seed % len(sql_scripts.SCRIPTS)]
    sound = [record.sql for feature in sql_scripts.read(path).features for record in feature.records]
    start = chance.randrange(max(len(sound) - count // 3, 1))
    schema = f"fuzz_{seed}"
    faults = []
    session = _session(server)
    _answer(session, f"CREATE SCHEMA {schema}")
    for sql in sound[start : start + count // 3]:
        for text in (mutated(chance, sql), mutated(chance), sql):
            if _LEFT_OUT.search(text):
                continue
            started = time.monotonic()
            try:
                codes = _answer(session, f"SET search_path = {schema}") + _answer(session, text)
            except (TimeoutError, struct.error, ConnectionError) as error:
                codes = [f"{error!r}"]
                session = _session(server)
            bad = [code for code in codes if not re.fullmatch(r"ERROR (?!XX000)\w{5} .*", code, re.DOTALL)]
            seconds = time.monotonic() - started
            if bad:
                faults.append(f"seed {seed}, {path.name}, {seconds:.1f} s: {bad}\n{text[:2000]!r}")
    _answer(session, "ROLLBACK")
    _answer(session, "RESET ALL")
    _answer(session, f"DROP SCHEMA IF EXISTS {schema} CASCADE")
    session.socket.close()
    return faults


def _session(server: Server) -> Raw:
    raw = Raw(server.port, start=False)
    raw.socket.settimeout(LIMIT_SECONDS)
    raw.send(startup(user="root", database="dev", options=f"-c statement_timeout={STATEMENT_TIMEOUT}"))
    raw.until("Z")
    return raw


def _answer(session: Raw, sql: str) -> list[str]:
    """The errors that a text is answered with."""
    session.send(query(sql))
    found = []
    while True:
        code, body = session.read()
        if code == "Z":
            return found
        if code == "E":
            found.append(str(body))
        elif code == "G":
            session.send(message(b"f", b"no\0"))


@pytest.mark.parametrize("seed", range(2))
def test_broken_statements(target: Server, seed: int) -> None:
    with unharmed(target):
        assert not attack_with_statements(target, seed, 30)


@pytest.mark.long
def test_many_broken_statements(target: Server) -> None:
    with unharmed(target), ThreadPoolExecutor(3) as pool:
        seeds = range(SEED * 1000, SEED * 1000 + ROUNDS * 4)
        attacks = pool.map(lambda seed: attack_with_statements(target, seed, 200), seeds)
        faults = [fault for found in attacks for fault in found]
    assert not faults, "\n\n".join(faults)


# Messages


def attack_with_messages(server: Server, seed: int, count: int) -> None:
    """Sessions of broken messages, in pieces. Each has to be answered in whole messages and ended."""
    chance = random.Random(seed)
    for _ in range(count):
        sent = broken(chance, chance.choice(SESSIONS))
        try:
            answered, is_whole = _converse(server, sent, chance)
        except TimeoutError:
            pytest.fail(f"seed {seed}: no end after {sent!r}")
        errors = _errors(answered, is_whole)
        assert b"XX000" not in errors, f"seed {seed}: {sent!r}\n{answered!r}"


def _converse(server: Server, sent: bytes, chance: random.Random) -> tuple[bytes, bool]:
    """All that is answered until the end, and whether the end was in order."""
    with socket.create_connection(("127.0.0.1", server.port), timeout=LIMIT_SECONDS) as client:
        answered = b""
        try:
            while sent:
                size = chance.choice((1, 5, 50, 5000))
                client.sendall(sent[:size])
                sent = sent[size:]
            client.shutdown(socket.SHUT_WR)
            while piece := client.recv(1 << 16):
                answered += piece
        except TimeoutError:
            raise
        except OSError:  # reset, or no longer connected when it says that no more comes
            return answered, False
        return answered, True


def _errors(answered: bytes, is_whole: bool) -> list[bytes]:
    """The SQLSTATEs in an answer. Raises AssertionError if it is not made of messages."""
    found = []
    data = answered.lstrip(b"N")  # refusals of encryption
    while data:
        if len(data) < 5 or len(data) < 1 + struct.unpack("!I", data[1:5])[0]:
            assert not is_whole, answered
            break
        length = 1 + struct.unpack("!I", data[1:5])[0]
        assert data[:1] in b"RKSZTDCINE123sntGHcdv", answered
        if data[:1] == b"E":
            found += [field[1:] for field in data[5:length].split(b"\0") if field[:1] == b"C"]
        data = data[length:]
    return found


@pytest.mark.parametrize("seed", range(2))
def test_broken_messages(target: Server, seed: int) -> None:
    with unharmed(target):
        attack_with_messages(target, seed, 30)


@pytest.mark.long
def test_many_broken_messages(target: Server) -> None:
    with unharmed(target), ThreadPoolExecutor(8) as pool:
        seeds = range(SEED * 1000, SEED * 1000 + ROUNDS * 8)
        list(pool.map(lambda seed: attack_with_messages(target, seed, 100), seeds))


# Clients


@pytest.mark.parametrize("count", [60, pytest.param(1000, marks=pytest.mark.long)])
def test_very_many_clients(target: Server, count: int) -> None:
    """Some of them say half of something, some ask for much and never read; each of the others is answered."""
    halves = (
        START[:6],
        START,
        START + query("SELECT 1")[:8],
        START + message(b"d", b"x")[:5],
        b"Q\x7f\xff\xff\xff",
        b"",
    )
    much = START + query("SELECT repeat('x', 1000) FROM range(100000)")
    with unharmed(target), contextlib.ExitStack() as stack:
        for sent in [much] * 5 + [halves[number % len(halves)] for number in range(count // 2)]:
            client = stack.enter_context(socket.create_connection(("127.0.0.1", target.port), LIMIT_SECONDS))
            client.sendall(sent)
        asking = [stack.enter_context(contextlib.closing(_session(target).socket)) for _ in range(count // 2 - 5)]
        for client in asking:
            client.sendall(query("SELECT sum(a) FROM steady"))
        for client in asking:
            assert b"499500" in client.recv(1 << 16)


# What was found


@pytest.mark.parametrize(
    ("sql", "sqlstate", "words"),
    [
        ("SELECT " + "abs(" * 2000 + "1" + ")" * 2000, "54001", "stack depth limit exceeded"),
        ("SELECT " + "- " * 20000 + "1", "54001", "stack depth limit exceeded"),
        ("SELECT 1" + "[1]" * 2000, "54000", "number of subscripts"),
        ("DELETE FROMt", "42601", 'syntax error at or near "FROMt"'),
        ("WITH c AS (SELECT 1) DELETE FROMt", "42601", "name of a table is missing"),
        ("SET dml_rate_limit = -", "42601", "syntax error at end of input"),
        ("CREATE TABLE bad (v int, w int AS )", "42601", 'column "w" has no expression'),
    ],
    ids=lambda value: value[:20],
)
def test_it_is_refused(connection: psycopg.Connection, sql: str, sqlstate: str, words: str) -> None:
    error = refused(connection, sql)
    assert error.sqlstate == sqlstate and words in str(error)


def test_arrays_in_arrays_take_no_time_to_read(connection: psycopg.Connection) -> None:
    connection.execute("SET statement_timeout = '20s'")
    assert rows(connection, f"SELECT cardinality({'ARRAY[' * 20}1{']' * 20})") == [(1,)]
