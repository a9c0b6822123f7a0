"""Sessions end when their clients have gone, and the server when it is told to, whatever runs."""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from typing import Any

import psycopg
import pytest
from servers import Server, rows, wait_until

from sparkwave.server.session import presence

Connection = psycopg.Connection[Any]
LONG = b"SELECT count(*) FROM range(100000000) a, range(100000) b WHERE a.range + b.range = -1"
MANY = b"SELECT i, repeat('x', 200) FROM generate_series(1, 20000000) AS s (i)"


@pytest.fixture(scope="module")
def module_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server that looks for clients that have gone ten times as often as usual."""
    often = f"from sparkwave.server.session import presence; presence.CHECK_SECONDS = {presence.CHECK_SECONDS / 10}"
    started = Server(tmp_path_factory.mktemp("presence") / "data", patch=often)
    yield started
    started.kill()


def hang_up(client: Connection) -> None:
    """Close a connection as the end of a process does, without a word."""
    with socket.socket(fileno=os.dup(client.fileno())) as connection:
        connection.shutdown(socket.SHUT_RDWR)


def is_there(connection: Connection, client: Connection) -> bool:
    query = "SELECT 1 FROM pg_stat_activity WHERE pid = %s"
    return bool(rows(connection, query, (client.info.backend_pid,)))


@pytest.mark.parametrize(
    "statements", [[], ["BEGIN"], ["SET atomic_transactions = on", "BEGIN", "INSERT INTO kept VALUES (1)"]]
)
def test_an_idle_client_hangs_up(module_server: Server, connection: Connection, statements: list[str]) -> None:
    connection.execute("CREATE TABLE IF NOT EXISTS kept (a int)")
    with closing(module_server.connect()) as client:
        for statement in statements:
            client.execute(statement)
        assert is_there(connection, client)
        hang_up(client)
        assert wait_until(lambda: not is_there(connection, client), 60)
    assert rows(connection, "SELECT a FROM kept") == []


@pytest.mark.parametrize("statement", [LONG, b"SELECT pg_sleep(600)", b"WAIT", b"SELECT 1; SELECT pg_sleep(600)"])
def test_a_client_hangs_up_while_its_statement_runs(
    module_server: Server, connection: Connection, statement: bytes
) -> None:
    with closing(module_server.connect()) as client:
        client.pgconn.send_query(statement)
        time.sleep(0.5)
        hang_up(client)
        assert wait_until(lambda: not is_there(connection, client), 60)


def end_output(client: Connection, _other: Connection) -> None:
    """Close one direction: the client sends nothing more, and might still read."""
    with socket.socket(fileno=os.dup(client.fileno())) as connection:
        connection.shutdown(socket.SHUT_WR)


def end_session(client: Connection, other: Connection) -> None:
    other.execute("SELECT pg_terminate_backend(%s)", (client.info.backend_pid,))


@pytest.mark.parametrize("end", [end_output, end_session])
def test_a_client_does_not_read(
    module_server: Server, connection: Connection, end: Callable[[Connection, Connection], None]
) -> None:
    """The thread that serves it waits for room in the connection."""
    with closing(module_server.connect()) as client:
        client.pgconn.send_query(MANY)
        time.sleep(1)
        end(client, connection)
        assert wait_until(lambda: not is_there(connection, client), 60)


def test_a_client_that_only_waits_stays(module_server: Server, connection: Connection) -> None:
    with closing(module_server.connect()) as client:
        started = time.monotonic()
        client.execute("SELECT pg_sleep(1)")
        assert time.monotonic() - started >= 1  # several checks
        assert is_there(connection, client)


def test_the_server_stops_whatever_runs(stuck_server: Server) -> None:
    """A query, a COPY that waits for its client, a transaction and a backfill whose engine does not start."""
    clients = [stuck_server.connect() for _ in range(5)]
    querying, copying, open_, creating, sleeping = clients
    querying.execute("CREATE TABLE t (a int)")
    querying.execute("INSERT INTO t VALUES (1)")
    querying.pgconn.send_query(LONG)
    copying.pgconn.send_query(b"COPY t FROM STDIN")
    open_.execute("SET atomic_transactions = on")
    open_.execute("BEGIN")
    open_.execute("INSERT INTO t VALUES (2)")
    creating.pgconn.send_query(b"CREATE MATERIALIZED VIEW v AS SELECT count(*) FROM t")
    sleeping.pgconn.send_query(b"SELECT pg_sleep(600)")
    time.sleep(1)
    started = time.monotonic()
    assert stuck_server.stop(30) == 0
    assert time.monotonic() - started < 15
    for client in clients:
        client.close()


@pytest.mark.parametrize("closed", (presence._CLOSED, 0))
def test_a_closed_connection_is_seen(closed: int) -> None:
    """Without an event for it, too, once what the client has sent is read."""
    ours, theirs = socket.socketpair()
    with ours:
        assert not presence.has_gone(ours, closed)
        theirs.send(b"x")
        assert not presence.has_gone(ours, closed)
        ours.recv(1)
        theirs.close()
        assert presence.has_gone(ours, closed)
    assert not presence.has_gone(ours, closed)
