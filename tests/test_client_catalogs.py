"""Every catalog query that real clients were seen to send, as they sent it, to a real server."""

from __future__ import annotations

from collections.abc import Iterator

import psycopg
import pytest
from recorded import Recorded, arguments, execute, recorded
from servers import Server

SCHEMA = (
    "CREATE TABLE t (id INT PRIMARY KEY, name VARCHAR, amt NUMERIC(10,2), ts TIMESTAMP, arr INT[])",
    "CREATE TABLE c (id INT, t_id INT, PRIMARY KEY (t_id, id))",
    "CREATE VIEW v AS SELECT id, name FROM t",
)

# What fails on PostgreSQL too.
REFUSED = {
    "jdbc@27": "42601",  # cut in the recording
    "jdbc@76": "42601",
    "psql@88": "42883",  # names a function that does not exist
}


@pytest.fixture(scope="module")
def session(module_server: Server) -> Iterator[psycopg.Connection]:
    with module_server.connect() as opened:
        for statement in SCHEMA:
            opened.execute(statement)
        yield opened


@pytest.mark.parametrize("client", sorted({statement.client for statement in recorded()}))
def test_every_recorded_catalog_query_runs(session: psycopg.Connection, client: str) -> None:
    row = session.execute("SELECT 't'::regclass::oid").fetchone()
    assert row is not None
    failed = {}
    for statement in recorded(client):
        if statement.is_catalog_query:
            error = _error(session, statement, {"t": row[0]})
            if error is not None:
                failed[statement.id] = error.sqlstate if statement.id in REFUSED else str(error)
    assert failed == {id_: sqlstate for id_, sqlstate in REFUSED.items() if id_.partition("@")[0] == client}


def _error(session: psycopg.Connection, statement: Recorded, oids: dict[str, int]) -> psycopg.Error | None:
    try:
        execute(session.pgconn, statement, statement.sql, arguments(statement, oids))
    except psycopg.Error as error:
        return error
    return None


def test_the_recordings_are_read_whole() -> None:
    """A pattern that finds nothing would let everything pass."""
    found = list(recorded())
    assert len({statement.client for statement in found}) == 17
    assert len(found) > 880
    assert sum(statement.is_catalog_query for statement in found) > 300
