"""EXPLAIN ANALYZE of running jobs: what it measures is what happens, and it can be stopped."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any

import psycopg
import pytest
from servers import Server, refused, rows

Connection = psycopg.Connection[Any]
SECONDS = 2


@pytest.fixture
def session(in_process_server: Server) -> Any:
    with in_process_server.connect() as opened:
        yield opened


def measured(server: Server, target: str, meanwhile: Callable[[], object]) -> dict[str, list[int | None]]:
    """The rows of each operator while something happens, by its name without the lines of the tree."""
    found: list[tuple[Any, ...]] = []

    def measure() -> None:
        with server.connect() as own:
            found.extend(rows(own, f"EXPLAIN ANALYZE (duration_secs {SECONDS}) {target}"))

    thread = threading.Thread(target=measure)
    thread.start()
    time.sleep(0.5)
    meanwhile()
    thread.join(60)
    counts: dict[str, list[int | None]] = {}
    for identity, _, rate, blocked in found:
        assert blocked is None
        # It measures a little longer than it was told to.
        counts.setdefault(identity.lstrip("└├─│ "), []).append(None if rate is None else round(float(rate) * SECONDS))
    return counts


def test_rows_of_operators(session: Connection, in_process_server: Server) -> None:
    session.execute("CREATE TABLE hits (id int PRIMARY KEY, page int)")
    session.execute("CREATE MATERIALIZED VIEW per_page AS SELECT page, count(*) AS n FROM hits GROUP BY page")
    session.execute("CREATE SINK nowhere FROM per_page WITH (connector = 'blackhole')")

    def insert(first: int) -> Callable[[], None]:
        def run() -> None:
            session.execute(f"INSERT INTO hits SELECT i, i % 40 FROM generate_series({first}, {first + 799}) AS g(i)")
            session.execute("FLUSH")

        return run

    found = measured(in_process_server, "MATERIALIZED VIEW per_page", insert(0))
    assert [*found] == ["StreamMaterialize", "StreamHashAgg", "StreamTableScan"]
    assert 30 <= (found["StreamMaterialize"][0] or 0) <= 40  # 40 new groups
    assert found["StreamHashAgg"] == [None]
    assert 600 <= (found["StreamTableScan"][0] or 0) <= 800
    found = measured(in_process_server, "TABLE hits", insert(1000))
    assert 600 <= (found["StreamMaterialize"][0] or 0) <= 800
    assert found["StreamDml"] == [None]
    found = measured(in_process_server, "SINK nowhere", insert(2000))
    assert [*found] == ["StreamSink", "StreamTableScan"]
    assert 60 <= (found["StreamTableScan"][0] or 0) <= 80  # 40 groups before and after
    id_ = rows(session, "SELECT 'per_page'::regclass::oid")[0][0]
    assert measured(in_process_server, f"ID {id_}", lambda: None)["StreamMaterialize"] == [0]


def test_actors(session: Connection) -> None:
    session.execute("CREATE TABLE acted (id int)")
    [(id_,)] = rows(session, "SELECT 'acted'::regclass::oid")
    listed = (
        "SELECT string_agg(actor_id::varchar, ',' ORDER BY actor_id) FROM rw_catalog.rw_actors WHERE fragment_id = %s"
    )
    actors = session.execute(listed, (id_,)).fetchall()[0][0]
    assert {row[1] for row in rows(session, "EXPLAIN (ANALYZE, DURATION_SECS 0) TABLE acted")} == {actors}


def test_it_can_be_stopped(session: Connection) -> None:
    session.execute("CREATE TABLE stopped (id int)")
    began = time.monotonic()
    threading.Timer(0.5, session.cancel).start()
    assert refused(session, "EXPLAIN ANALYZE TABLE stopped").sqlstate == "57014"
    session.execute("SET statement_timeout = 300")
    assert refused(session, "EXPLAIN ANALYZE TABLE stopped").sqlstate == "57014"
    assert time.monotonic() - began < 8


@pytest.mark.parametrize(
    ("sql", "sqlstate", "message"),
    [
        ("EXPLAIN ANALYZE TABLE none_such", "42P01", 'relation "none_such" does not exist'),
        ("EXPLAIN ANALYZE SINK rw_catalog.none_such", "42704", 'sink "rw_catalog.none_such" does not exist'),
        ("EXPLAIN ANALYZE ID 7", "42704", 'job "7" does not exist'),
        ("EXPLAIN ANALYZE (duration_secs 0) INDEX plain", "42809", '"plain" is not an index'),
        ("EXPLAIN ANALYZE (duration_secs 0) TABLE seen", "42809", 'view "seen" is no job'),
        ("EXPLAIN ANALYZE ID seven", "42601", 'syntax error at or near "seven"'),
        ("EXPLAIN ANALYZE TABLE plain x", "42601", 'syntax error at or near "x"'),
    ],
)
def test_errors(session: Connection, sql: str, sqlstate: str, message: str) -> None:
    session.execute("DROP VIEW IF EXISTS seen")
    session.execute("DROP TABLE IF EXISTS plain")
    session.execute("CREATE TABLE plain (id int)")
    session.execute("CREATE VIEW seen AS SELECT 1 AS one")
    error = refused(session, sql)
    assert (error.sqlstate, error.diag.message_primary) == (sqlstate, message)


def test_who_may(session: Connection) -> None:
    session.execute("CREATE TABLE hidden_rows (id int)")
    session.execute("CREATE USER profiler")
    session.execute("SET ROLE profiler")
    assert refused(session, "EXPLAIN ANALYZE (duration_secs 0) TABLE hidden_rows").sqlstate == "42501"
    session.execute("RESET ROLE")
    session.execute("GRANT SELECT ON hidden_rows TO profiler")
    session.execute("SET ROLE profiler")
    assert len(rows(session, "EXPLAIN ANALYZE (duration_secs 0) TABLE hidden_rows")) > 1
    session.execute("RESET ROLE")
    session.execute("DROP TABLE hidden_rows")
    session.execute("DROP USER profiler")
