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


def measured(server: Server, targets: list[str], meanwhile: Callable[[], object]) -> list[dict[str, int | None]]:
    """The rows of the operators of each target while something happens, by the name without the lines of the tree."""
    found: dict[str, list[tuple[Any, ...]]] = {}

    def measure(target: str) -> None:
        with server.connect() as own:
            found[target] = rows(own, f"EXPLAIN ANALYZE (duration_secs {SECONDS}) {target}")

    threads = [threading.Thread(target=measure, args=(target,)) for target in targets]
    for thread in threads:
        thread.start()
    time.sleep(0.5)
    meanwhile()
    for thread in threads:
        thread.join(60)
    assert all(blocked is None for each in found.values() for *_, blocked in each)
    # It measures a little longer than it was told to.
    return [
        {identity.lstrip("└├─│ "): rate and round(float(rate) * SECONDS) for identity, _, rate, _ in found[target]}
        for target in targets
    ]


def test_rows_of_operators(session: Connection, in_process_server: Server) -> None:
    session.execute("CREATE TABLE hits (id int PRIMARY KEY, page int)")
    session.execute("CREATE MATERIALIZED VIEW per_page AS SELECT page, count(*) AS n FROM hits GROUP BY page")
    session.execute("CREATE SINK nowhere FROM per_page WITH (connector = 'blackhole')")
    session.execute("INSERT INTO hits SELECT i, i FROM generate_series(0, 9) AS g(i)")
    session.execute("FLUSH")

    def insert() -> None:
        session.execute("INSERT INTO hits SELECT i, i % 40 FROM generate_series(100, 899) AS g(i)")
        session.execute("FLUSH")

    view, table, sink = measured(
        in_process_server, ["MATERIALIZED VIEW per_page", "TABLE hits", "SINK nowhere"], insert
    )
    assert [*view] == ["StreamMaterialize", "StreamHashAgg", "StreamTableScan"]
    assert 40 <= (view["StreamMaterialize"] or 0) <= 50  # 30 new groups, and 10 before and after
    assert view["StreamHashAgg"] is None
    assert 640 <= (view["StreamTableScan"] or 0) <= 800
    assert 640 <= (table["StreamMaterialize"] or 0) <= 800
    assert table["StreamDml"] is None
    assert [*sink] == ["StreamSink", "StreamTableScan"]
    assert 40 <= (sink["StreamTableScan"] or 0) <= 50


def test_nothing_happens(session: Connection) -> None:
    session.execute("CREATE TABLE idle_rows (id int)")
    session.execute("CREATE MATERIALIZED VIEW idle AS SELECT count(*) AS n FROM idle_rows")
    id_ = rows(session, "SELECT 'idle'::regclass::oid")[0][0]
    rates = [row[2] for row in rows(session, f"EXPLAIN ANALYZE (duration_secs 0) ID {id_}")]
    assert (rates[0], rates[-1]) == ("0", "0")


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
