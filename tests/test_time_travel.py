"""FOR SYSTEM_TIME AS OF and FOR SYSTEM_VERSION AS OF: what there was at a time, by commits, within what is kept."""

from __future__ import annotations

import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import psycopg
import pytest
from servers import Server, refused, rows
from test_retention import forget, opened, run

from sparkwave.catalog.commit_times import TIMES

Connection = psycopg.Connection[Any]


@pytest.fixture(scope="module")
def moments(in_process_server: Server) -> Iterator[tuple[Connection, list[float]]]:
    """A table `t`, a view `v` and a materialized view `m` over it, and times between its versions, in seconds."""
    times = []
    with in_process_server.connect() as own:
        own.execute("CREATE TABLE t (k int PRIMARY KEY, n int)")
        own.execute("CREATE MATERIALIZED VIEW m AS SELECT count(*) AS rows, sum(n) AS total FROM t")
        own.execute("CREATE VIEW v AS SELECT k, n * 10 AS tenfold FROM t")
        for number in range(3):
            own.execute(f"INSERT INTO t VALUES ({number}, {number}) , (9, {number})")
            own.execute("FLUSH")
            own.execute("SELECT rows FROM m FOR SYSTEM_TIME AS OF NOW()")  # a checkpoint, of which the past of views is
            times.append(time.time())
            time.sleep(0.02)
        own.execute("DELETE FROM t WHERE k < 9")
        own.execute("FLUSH")
        yield own, times


Moments = tuple[Connection, list[float]]
VERSIONS = [[(0, 0), (9, 0)], [(0, 0), (1, 1), (9, 1)], [(0, 0), (1, 1), (2, 2), (9, 2)]]


def text(moment: float) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(moment)) + f"{moment % 1:.6f}"[1:] + "Z"


def test_each_way_to_say_when(moments: Moments) -> None:
    own, times = moments
    for moment, expected in zip(times, VERSIONS, strict=True):
        for point in (f"{moment:.6f}", f"'{text(moment)}'"):
            assert sorted(rows(own, f"SELECT * FROM t FOR SYSTEM_TIME AS OF {point}")) == expected
        assert sorted(rows(own, f"SELECT x.k, x.n FROM t FOR SYSTEM_TIME AS OF {moment:.6f} AS x")) == expected
    for point in (
        "NOW()",
        "NOW() - INTERVAL '1 microsecond'",
        "now() - '1' microseconds",
        "'2130-02-10T12:13:14-08:30'",
    ):
        assert rows(own, f"SELECT k FROM t FOR SYSTEM_TIME AS OF {point} AS x") == [(9,)]


def test_views_and_joins(moments: Moments) -> None:
    own, times = moments
    first, last = (f"FOR SYSTEM_TIME AS OF {moment:.6f}" for moment in (times[0], times[2]))
    assert rows(own, f"SELECT * FROM m {first}") == [(2, 0)]
    assert rows(own, f"SELECT * FROM m {last}") == [(4, 5)]
    assert rows(own, "SELECT * FROM m") == [(1, 2)]
    assert sorted(rows(own, f"SELECT tenfold FROM v {last} AS w WHERE w.k < 9")) == [(0,), (10,), (20,)]
    joined = f"SELECT a.n, b.n, t.n FROM t {first} a JOIN t {last} b ON a.k = b.k JOIN t ON t.k = b.k"
    assert rows(own, joined) == [(0, 2, 2)]
    inner = f"SELECT (SELECT count(*) FROM t {first}), (SELECT count(*) FROM v {last}), count(*) FROM t"
    assert rows(own, inner) == [(2, 4, 1)]
    with_ = f"WITH old AS (SELECT * FROM t {first}) SELECT count(*) FROM old JOIN t {last} USING (k)"
    assert rows(own, with_) == [(2,)]


def test_snapshots_by_number(moments: Moments, in_process_server: Server) -> None:
    own, times = moments
    expected = rows(own, f"SELECT count(*) FROM t FOR SYSTEM_TIME AS OF {times[1]:.6f}")
    found = set()
    for version in range(1, 10_000):
        try:
            found.add(rows(own, f"SELECT count(*) FROM t FOR SYSTEM_VERSION AS OF {version}")[0][0])
        except psycopg.DatabaseError as error:
            if error.sqlstate == "22023":
                break
            assert error.sqlstate == "42P01"  # before it was made
    assert expected[0][0] in found
    assert found >= {0, 2, 3, 4, 1}


def test_cursors_inserts_and_prepared_statements(moments: Moments) -> None:
    own, times = moments
    point = f"FOR SYSTEM_TIME AS OF {times[1]:.6f}"
    own.execute(f"DECLARE c CURSOR FOR SELECT * FROM t {point} ORDER BY k")
    assert rows(own, "FETCH ALL FROM c") == VERSIONS[1]
    own.execute("CLOSE c")
    own.execute("CREATE TABLE restored (k int PRIMARY KEY, n int)")
    own.execute(f"INSERT INTO restored SELECT * FROM t {point}")
    assert sorted(rows(own, "SELECT * FROM restored")) == VERSIONS[1]
    query = f"SELECT n FROM t {point} WHERE k = %s"
    assert own.execute(query, (1,), prepare=True).fetchall() == [(1,)]
    assert own.execute(query, (9,), prepare=True).fetchall() == [(1,)]
    with own.transaction():
        own.execute("SET TRANSACTION READ ONLY")
        assert rows(own, f"SELECT count(*) FROM t {point}") == [(3,)]


def test_now_moves_on(moments: Moments) -> None:
    """A plan that is kept does not keep its time."""
    own, _ = moments
    own.execute("CREATE TABLE moving (k int)")
    query = "SELECT count(*) FROM moving FOR SYSTEM_TIME AS OF NOW()"
    for number in range(3):
        assert rows(own, query) == [(number,)]
        own.execute("INSERT INTO moving VALUES (1)")


@pytest.mark.parametrize(
    ("sql", "sqlstate", "text"),
    [
        ("SELECT * FROM t FOR SYSTEM_TIME AS OF 963716300", "72000", "Time-travel version expired"),
        (
            "SELECT * FROM t FOR SYSTEM_TIME AS OF '2000-02-20T12:13:14-08:30'",
            "72000",
            "oldest version that is left is",
        ),
        ("SELECT * FROM t FOR SYSTEM_TIME AS OF NOW() - '100' YEAR", "72000", "Time-travel version expired"),
        ("SELECT * FROM t FOR SYSTEM_VERSION AS OF 99999999", "22023", "snapshot 99999999 does not exist"),
        ("SELECT * FROM t FOR SYSTEM_VERSION AS OF NOW()", "22023", "takes the number of a snapshot"),
        ("SELECT * FROM t FOR SYSTEM_TIME AS OF k", "22023", "takes a constant time"),
        ("SELECT * FROM t FOR SYSTEM_TIME AS OF 'soon'", "22007", "soon"),
        ("SELECT * FROM t a JOIN t FOR SYSTEM_TIME AS OF PROCTIME() b ON a.k = b.k", "0A000", "temporal join"),
        ("CREATE MATERIALIZED VIEW x AS SELECT * FROM t FOR SYSTEM_TIME AS OF NOW()", "0A000", "the present"),
        ("CREATE VIEW x AS SELECT * FROM t FOR SYSTEM_TIME AS OF NOW()", "0A000", "not supported in this statement"),
        ("SELECT * FROM nothing FOR SYSTEM_TIME AS OF NOW()", "42P01", "nothing"),
    ],
)
def test_what_is_refused(moments: Moments, sql: str, sqlstate: str, text: str) -> None:
    error = refused(moments[0], sql)
    assert (error.sqlstate, text in str(error)) == (sqlstate, True), str(error)


def test_a_table_that_was_not_there(moments: Moments) -> None:
    own, times = moments
    own.execute("CREATE TABLE young (k int)")
    error = refused(own, f"SELECT * FROM young FOR SYSTEM_TIME AS OF {times[0]:.6f}")
    assert (error.sqlstate, error.diag.message_hint) == (
        "42P01", "It may not have been there at the time that is asked for."
    )  # fmt: skip


def test_query_epoch(moments: Moments) -> None:
    """RisingWave's epochs are milliseconds since April 2021, with 16 bits more."""
    own, times = moments
    for moment, expected in zip(times, VERSIONS, strict=True):
        own.execute(f"SET query_epoch = {(int(moment * 1000) - 1_617_235_200_000 + 1) << 16}")
        assert sorted(rows(own, "SELECT * FROM t")) == expected
        assert rows(own, f"SELECT count(*) FROM t FOR SYSTEM_TIME AS OF {times[0]:.6f}") == [(2,)]
    own.execute("SET query_epoch = 65536")
    assert refused(own, "SELECT * FROM t").sqlstate == "72000"
    own.execute("SET query_epoch = 0")
    assert rows(own, "SELECT k FROM t") == [(9,)]


def test_explain(moments: Moments) -> None:
    own, times = moments
    assert rows(own, f"EXPLAIN SELECT * FROM t FOR SYSTEM_TIME AS OF {times[0]:.6f}")


def test_a_commit_counts_from_when_it_was_committed(tmp_path: Path) -> None:
    """A transaction that began earlier and ends later than another is newer than that one, at any time."""
    with opened(tmp_path) as (context, client):
        run(client, "CREATE TABLE a (k int)", "CREATE TABLE b (k int)")
        by_name = {relation.name: relation.lake_table for relation in context.store.catalog.relations}
        long = context.lake.cursor()
        with context.lake.table_transaction(long, by_name["a"]):
            long.execute(f"INSERT INTO {by_name['a'].sql} VALUES (1)")
            time.sleep(0.05)
            with ThreadPoolExecutor(1) as other:  # a thread that holds a table's lock waits for nobody
                other.submit(run, client, "INSERT INTO b VALUES (1)").result()
            between = time.time()
            time.sleep(0.05)
        counts = (
            "(SELECT count(*) FROM a FOR SYSTEM_TIME AS OF {0}), (SELECT count(*) FROM b FOR SYSTEM_TIME AS OF {0})"
        )
        assert run(client, f"SELECT {counts.format(f'{between:.6f}')}") == [(0, 1)]
        assert run(client, f"SELECT {counts.format('NOW()')}") == [(1, 1)]


def test_times_of_commits_grow(tmp_path: Path) -> None:
    """No two are in one millisecond, also when the clock is set back."""
    with opened(tmp_path) as (context, client):
        run(client, "CREATE TABLE t (k int)")
        context.lake.commit_time_us += 5_000_000  # as if a second server's clock had been ahead
        for number in range(20):
            run(client, f"INSERT INTO t VALUES ({number})")
        times = [
            time_us
            for (time_us,) in context.lake.cursor()
            .execute(f"SELECT time_us FROM ({TIMES}) ORDER BY snapshot_id DESC LIMIT 20")
            .fetchall()
        ]
        assert [t // 1000 for t in times] == sorted({t // 1000 for t in times}, reverse=True)
        newest = context.lake.commit_time_us
    with opened(tmp_path) as (context, client):
        assert context.lake.commit_time_us >= newest
        run(client, "INSERT INTO t VALUES (20)")
        assert context.lake.commit_time_us > newest


def test_until_it_is_forgotten(tmp_path: Path) -> None:
    with opened(tmp_path) as (context, client):
        run(client, "CREATE TABLE t (k int)", "INSERT INTO t VALUES (1)", "FLUSH")
        moment = time.time()
        time.sleep(0.01)
        run(client, "INSERT INTO t VALUES (2)", "FLUSH")
        query = f"SELECT count(*) FROM t FOR SYSTEM_TIME AS OF {moment:.6f}"
        forget(context, milliseconds=60_000)
        assert run(client, query) == [(1,)]
        time.sleep(0.01)
        forget(context)
        with pytest.raises(Exception, match="Time-travel version expired"):
            run(client, query)
