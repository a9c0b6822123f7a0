"""Prepared statements: what DuckDB's do that they must not, and that those of epochs do not."""

from __future__ import annotations

import threading

import duckdb
import pytest

from sparkwave.catalog.lake.ducklake import SETTINGS, Cursor
from sparkwave.catalog.lake.prepared_statements import define_shared, prepare_due
from sparkwave.catalog.lake.prepared_statements import run as run_unprepared

QUERIES = {
    "a filter beyond all values": "SELECT count(*) FROM buffer.deltas.t WHERE x > 100",
    "a filter for NULL": "SELECT count(*) FROM buffer.deltas.t WHERE x IS NULL",
    "groups of a narrow range": "SELECT x, count(*) FROM buffer.deltas.t GROUP BY ALL ORDER BY ALL",
    "the least and the greatest": "SELECT min(x), max(x), count(*) FROM buffer.deltas.t",
    "a sum": "SELECT sum(x)::BIGINT FROM buffer.deltas.t",
    "a join": "SELECT count(*) FROM buffer.deltas.t AS a JOIN buffer.deltas.t AS b ON a.x = b.x",
    "a join with others": "SELECT count(*) FROM buffer.deltas.t AS a JOIN buffer.deltas.s AS b ON a.x = b.x",
    "rows in order": "SELECT x, ascii(y) FROM (SELECT x, y FROM buffer.deltas.t ORDER BY ALL)",
    "distinct rows": "SELECT ascii(y) FROM (SELECT DISTINCT y FROM buffer.deltas.t ORDER BY ALL)",
}


@pytest.fixture
def cursor() -> Cursor:
    connection = duckdb.connect()
    connection.execute(SETTINGS)
    connection.execute("ATTACH ':memory:' AS buffer; CREATE SCHEMA buffer.epochs; CREATE SCHEMA buffer.deltas")
    connection.execute("CREATE TABLE buffer.deltas.t AS SELECT i::INTEGER AS x, 'a' AS y FROM range(5) AS r(i)")
    connection.execute("CREATE TABLE buffer.deltas.s AS FROM (VALUES (200), (201)) AS v(x)")
    return connection


def run(cursor: Cursor, query: str) -> Cursor:
    """Prepare what is due, then run a statement."""
    prepare_due(cursor)
    return run_unprepared(cursor, query)


LATER = "INSERT INTO buffer.deltas.t VALUES (200, 'b'), (NULL, NULL), (2000000, 'c')"


def answer(cursor: Cursor, query: str) -> object:
    try:
        return cursor.execute(query).fetchall()
    except duckdb.Error as error:
        return str(error)


@pytest.mark.parametrize("query", QUERIES.values(), ids=QUERIES.keys())
def test_a_statement_sees_rows_that_come_later(cursor: Cursor, query: str) -> None:
    for _ in range(3):
        assert run(cursor, query).fetchall() == cursor.execute(query).fetchall()
    cursor.execute(LATER)
    for _ in range(2):
        assert run(cursor, query).fetchall() == cursor.execute(query).fetchall()


def test_a_statement_that_duckdb_prepares_does_not(cursor: Cursor) -> None:
    """Otherwise planning without statistics would be of no use."""
    for number, query in enumerate(QUERIES.values()):
        cursor.execute(f"PREPARE q{number} AS {query}")
    cursor.execute(LATER)
    wrong = [
        name
        for number, (name, query) in enumerate(QUERIES.items())
        if answer(cursor, f"EXECUTE q{number}") != answer(cursor, query)
    ]
    assert {"a filter beyond all values", "a filter for NULL", "groups of a narrow range", "a join"} <= {*wrong}


def test_statistics_are_used_by_all_others(cursor: Cursor) -> None:
    before = cursor.execute("SELECT current_setting('disabled_optimizers')").fetchall()
    for _ in range(3):
        run(cursor, "SELECT count(*) FROM buffer.deltas.t")
    assert cursor.execute("SELECT current_setting('disabled_optimizers')").fetchall() == before


@pytest.mark.parametrize("query", QUERIES.values(), ids=QUERIES.keys())
def test_so_it_does_after_a_definition_that_nobody_told(cursor: Cursor, query: str) -> None:
    for _ in range(3):
        run(cursor, query)
    cursor.execute("CREATE TABLE buffer.deltas.another (x INTEGER)")
    run(cursor, query)
    cursor.execute(LATER)
    for _ in range(2):
        assert run(cursor, query).fetchall() == cursor.execute(query).fetchall()


def prepared(cursor: Cursor) -> list[str]:
    return [name for (name,) in cursor.execute("SELECT name FROM duckdb_prepared_statements() ORDER BY 1").fetchall()]


def test_what_runs_once_is_not_prepared(cursor: Cursor) -> None:
    run(cursor, "SELECT 1")
    assert prepared(cursor) == []
    run(cursor, "SELECT 1")
    run(cursor, "SELECT 1")
    assert len(prepared(cursor)) == 1


def test_a_statement_is_planned_again_after_a_definition(cursor: Cursor) -> None:
    for text in ("SELECT 1", "SELECT 2"):
        for _ in range(2):
            run(cursor, text)
    define_shared(cursor, "CREATE OR REPLACE TABLE buffer.deltas.other AS SELECT 7 AS x")
    for _ in range(3):
        assert run(cursor, "SELECT 2").fetchall() == [(2,)]
        assert run(cursor, "FROM buffer.deltas.other").fetchall() == [(7,)]
        assert run(cursor, "SELECT 1").fetchall() == [(1,)]


def define_another(cursor: Cursor) -> None:
    define_shared(cursor, "CREATE OR REPLACE TABLE buffer.deltas.another AS SELECT 1 AS one")


def test_plans_are_made_anew_at_once_as_long_as_they_run(cursor: Cursor) -> None:
    for _ in range(4):
        run(cursor, "SELECT 1")
    first = prepared(cursor)
    for _ in range(10):
        define_another(cursor)
        run(cursor, "SELECT 1")
        run(cursor, "SELECT 1")
    assert len(first) == 1 and prepared(cursor) == first
    for _ in range(10):
        define_another(cursor)
        prepare_due(cursor)
    cursor.execute(f"DEALLOCATE {first[0]}")
    run(cursor, "SELECT 1")
    assert prepared(cursor) == []
    run(cursor, "SELECT 1")
    assert run(cursor, "SELECT 1").fetchall() == [(1,)]
    assert prepared(cursor) == first


def test_a_statement_that_cannot_be_prepared_fails_each_time_and_then_not(cursor: Cursor) -> None:
    for _ in range(3):
        with pytest.raises(duckdb.Error, match="absent"):
            run(cursor, "FROM absent")
    cursor.execute("CREATE TABLE absent (x INTEGER)")
    for _ in range(3):
        assert run(cursor, "FROM absent").fetchall() == []


def test_cursors_have_statements_of_their_own(cursor: Cursor) -> None:
    for one in (cursor, cursor.cursor()):
        for _ in range(3):
            assert run(one, "SELECT 3").fetchall() == [(3,)]


def test_a_transaction_goes_on_after_what_cannot_be_prepared(cursor: Cursor) -> None:
    cursor.execute("BEGIN")
    for _ in range(3):
        with pytest.raises(duckdb.Error, match="absent"):
            run_unprepared(cursor, "FROM absent")
        assert run_unprepared(cursor, "SELECT 1").fetchall() == [(1,)]
    cursor.execute("COMMIT")


def test_rows_of_the_buffer_are_not_known_either(cursor: Cursor) -> None:
    define_shared(cursor, "CREATE TABLE buffer.epochs.copy_1 AS FROM buffer.deltas.t")
    cursor.execute("CREATE SEQUENCE buffer.epochs.numbers")
    removal = (
        "DELETE FROM buffer.epochs.copy_1 AS c USING (SELECT x FROM buffer.deltas.t WHERE y = 'b') AS r WHERE c.x = r.x"
    )
    added = "SELECT nextval('buffer.epochs.numbers') + 300, y FROM buffer.deltas.t WHERE x > 100"
    addition = f"INSERT INTO buffer.epochs.copy_1 {added}"
    for _ in range(3):
        for statement in (removal, addition):
            run(cursor, statement)
    assert len(prepared(cursor)) == 2
    cursor.execute(LATER)
    assert run(cursor, addition).fetchall() == [(2,)]
    assert run(cursor, "SELECT max(x) - min(x) FROM buffer.epochs.copy_1").fetchall() == [(302,)]
    cursor.execute("INSERT INTO buffer.epochs.copy_1 VALUES (200, 'old')")
    assert run(cursor, removal).fetchall() == [(1,)]


def test_other_threads_may_plan_meanwhile(cursor: Cursor) -> None:
    """DuckDB crashes when `disabled_optimizers` changes while a statement is planned."""
    over = threading.Event()

    def plan() -> None:
        own = cursor.cursor()
        while not over.is_set():
            own.execute("SELECT 1 FROM range(3) AS a (i) JOIN range(4) AS b (i) USING (i) WHERE i > 1").fetchall()

    threads = [threading.Thread(target=plan) for _ in range(3)]
    for thread in threads:
        thread.start()
    for number in range(300):
        for _ in range(3):
            run(cursor, f"SELECT {number} + x FROM buffer.deltas.t")
    over.set()
    for thread in threads:
        thread.join()
    assert len(prepared(cursor)) == 300
