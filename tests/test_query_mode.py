"""Visibility and where queries run: implicit_flush, query_mode, and queries larger than memory."""

from __future__ import annotations

import re
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest
from servers import Server, refused, rows

Connection = psycopg.Connection[Any]


@pytest.mark.long
def test_rows_are_in_the_views_when_a_write_returns(in_process_server: Server) -> None:
    with in_process_server.connect() as own:
        own.execute("CREATE TABLE seen (k int PRIMARY KEY, v int)")
        own.execute("CREATE MATERIALIZED VIEW seen_sum AS SELECT sum(v) AS total FROM seen")
        own.execute("SET rw_implicit_flush = true")
        for mode in ("default", "all", "checkpoint"):
            own.execute(f"SET visibility_mode = {mode}")
            for number in range(3):
                own.execute(f"INSERT INTO seen VALUES (1, {number}), (2, 1)")
                assert rows(own, "SELECT total FROM seen_sum") == [(number + 1,)]
        own.execute("DELETE FROM seen")
        assert rows(own, "SELECT total FROM seen_sum") == [(None,)]


@pytest.fixture(scope="module")
def small_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server with little memory."""
    started = Server(tmp_path_factory.mktemp("small") / "data", duckdb_memory="200MB")
    with started.connect() as own:
        own.execute("CREATE TABLE big (k bigint, v varchar)")
        own.execute("INSERT INTO big SELECT i, repeat(md5(i::varchar), 4) FROM range(1500000) AS r (i)")
    yield started
    started.kill()


@pytest.mark.long
def test_a_query_larger_than_memory_spills(small_server: Server) -> None:
    """The hash table of a join of 200 MB of text, and more, in less memory than that."""
    spilled, is_over = [0], threading.Event()

    def watch() -> None:
        while not is_over.wait(0.02):
            files = list((small_server.data / "spill").rglob("*"))
            spilled.append(sum(file.stat().st_size for file in files if file.exists()))

    watcher = threading.Thread(target=watch)
    watcher.start()
    with small_server.connect() as own:
        assert rows(own, "SELECT count(*) FROM big a JOIN big b ON a.v = b.v") == [(1_500_000,)]
    is_over.set()
    watcher.join()
    assert max(spilled) > 10_000_000


@pytest.mark.long
def test_so_does_an_aggregate(small_server: Server) -> None:
    with small_server.connect() as own:
        query = "SELECT count(*), max(n) FROM (SELECT v, count(*) AS n FROM big GROUP BY v) AS g"
        assert rows(own, query) == [(1_500_000, 1)]


@pytest.mark.long
def test_so_does_a_sort(tmp_path: Path) -> None:
    """Of 640 MB in 400, of which DuckDB's sort needs half at least."""
    server = Server(tmp_path / "data", duckdb_memory="400MB")
    try:
        with server.connect() as own:
            own.execute("CREATE TABLE larger (v varchar)")
            own.execute("INSERT INTO larger SELECT repeat(md5(i::varchar), 4) FROM range(5000000) AS r (i)")
            before = peak_mib(server)
            assert rows(own, "SELECT count(*) FROM (SELECT v FROM larger ORDER BY v OFFSET 1000) AS s") == [
                (4_999_000,)
            ]
            (last,) = rows(own, "SELECT v FROM larger ORDER BY v OFFSET 4999999")
            assert [last] == rows(own, "SELECT max(v) FROM larger")
            assert peak_mib(server) - before < 400
    finally:
        server.kill()


def peak_mib(server: Server) -> int:
    """The most memory that a server has had."""
    status = Path(f"/proc/{server.process.pid}/status").read_text()
    return int(status.partition("VmHWM:")[2].split()[0]) // 1024


@pytest.mark.long
def test_a_query_beyond_that_fails_and_the_server_lives(small_server: Server) -> None:
    with small_server.connect() as own:
        error = refused(own, "SELECT string_agg(v || v, ',') = '' FROM big")  # one value cannot be spilled
        assert error.sqlstate == "53200", str(error)
        assert "--duckdb-memory" in (error.diag.message_hint or "")
        assert rows(own, "SELECT count(*) FROM big WHERE k < 10") == [(10,)]


@pytest.fixture(scope="module")
def tight_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server with little memory, and little disk for what does not fit."""
    limits = {"duckdb_memory": "200MB", "duckdb_spill": "8MB", "spark_cores": 2, "spark_memory_mib": 1024}
    started = Server(tmp_path_factory.mktemp("tight") / "data", **limits)
    with started.connect() as own:
        own.execute("CREATE TABLE wide (k bigint, v varchar)")
        for start in range(0, 1_200_000, 100_000):  # a write has no more memory than a query
            rows_from = f"range({start}, {start + 100_000}) AS r (i)"
            own.execute(f"INSERT INTO wide SELECT i, repeat(md5(i::varchar), 6) FROM {rows_from}")
    yield started
    started.kill()


JOIN = "SELECT count(*) AS n FROM wide a JOIN wide b ON a.v = b.v"


@pytest.mark.long
def test_the_spilled_has_a_limit(tight_server: Server) -> None:
    with tight_server.connect() as own:
        own.execute("SET query_mode = local")
        assert refused(own, JOIN).sqlstate == "53200"
        assert rows(own, "SELECT count(*) FROM wide WHERE k < 10") == [(10,)]


@pytest.mark.spark
@pytest.mark.long
def test_what_the_server_has_no_memory_for_goes_to_spark(tight_server: Server) -> None:
    notices: list[str | None] = []
    with tight_server.connect() as own:
        own.add_notice_handler(lambda notice: notices.append(notice.message_primary))
        assert rows(own, JOIN) == [(1_200_000,)]
        assert notices == ["the query needs more memory than the server has for it: it runs on Spark"]


@pytest.fixture(scope="module")
def spark(shared_server: Server) -> Iterator[Connection]:
    """A session whose queries run on Spark."""
    with shared_server.connect() as own:
        own.execute("CREATE TABLE far (k int PRIMARY KEY, g int, n bigint, at timestamp)")
        own.execute(
            "INSERT INTO far SELECT i, i % 7, i * 10, TIMESTAMP '2026-01-01 00:00:00' + INTERVAL '1 minute' * i "
            "FROM range(1000) AS r (i)"
        )
        own.execute("DELETE FROM far WHERE k = 500")
        own.execute("CREATE VIEW far_view AS SELECT g, n FROM far WHERE k > 10")
        yield own
        own.execute("DROP VIEW far_view")
        own.execute("DROP TABLE far")


QUERIES = [
    "SELECT g, max(k::varchar) AS t, min(at::varchar) AS a FROM far GROUP BY g ORDER BY g",
    "SELECT count(*), sum(n), min(at), max(k) FROM far",
    "SELECT g, count(*) AS c, sum(n) AS s FROM far WHERE k % 3 <> 1 GROUP BY g HAVING count(*) > 10 ORDER BY g DESC",
    "SELECT k, n + 1 AS m FROM far ORDER BY m DESC LIMIT 5 OFFSET 2",
    "SELECT a.k, b.n FROM far a JOIN far b ON a.k = b.g WHERE b.k < 40 ORDER BY 1, 2",
    "SELECT a.k, b.k AS other FROM far a LEFT JOIN far b ON b.k = a.k + 998 WHERE a.k < 4 ORDER BY 1, 2 NULLS FIRST",
    "SELECT DISTINCT g FROM far_view ORDER BY g",
    "SELECT k FROM far WHERE k > 2000",
    "SELECT k FROM far WHERE at::varchar ~ '1:00$' AND k < 200 ORDER BY k",
    "SELECT CASE WHEN k < 3 THEN NULL ELSE k END / nullif(k % 3, 0) AS q FROM far ORDER BY 1 LIMIT 20",
    "SELECT g, k, row_number() OVER (PARTITION BY g ORDER BY k DESC) AS place FROM far WHERE k < 20 ORDER BY g, place",
    "SELECT a.k, b.k FROM far a JOIN far b ON a.k = b.g WHERE a.k < 3 ORDER BY b.k LIMIT 5",
    "WITH few AS (SELECT * FROM far WHERE k < 3) SELECT k FROM few UNION ALL SELECT n FROM far WHERE k = 9 ORDER BY k",
]


@pytest.mark.spark
@pytest.mark.long
def test_spark_answers_as_the_server_does(spark: Connection) -> None:
    for query in QUERIES:
        spark.execute("SET query_mode = local")
        expected = spark.execute(query)
        wanted, types = expected.fetchall(), [(c.name, c.type_code) for c in expected.description or ()]
        spark.execute("SET query_mode = distributed")
        found = spark.execute(query)
        assert (found.fetchall(), [(c.name, c.type_code) for c in found.description or ()]) == (wanted, types), query
    assert rows(spark, "EXPLAIN SELECT count(*) FROM far")[0] == (
        "Distributed { engine: Spark, resource_group: default }",
    )
    # What is no business of Spark's runs in the server.
    assert rows(spark, "SELECT 1") == [(1,)]
    assert rows(spark, "SELECT relname FROM pg_class WHERE relname = 'far'") == [("far",)]


@pytest.mark.spark
@pytest.mark.parametrize(
    ("query", "sqlstate"),
    [
        ("SELECT 1 / (k - 1) FROM far", "22012"),
        ("SELECT k * 2000000000 FROM far", "22003"),
        ("SELECT CAST(n * 1000000 AS int) FROM far", "22003"),
        ("SELECT n % (k - 1) FROM far", "22012"),
        ("SELECT g, 1 / (count(*) - count(*)) AS c FROM far GROUP BY g", "22012"),
        ("SELECT CAST('a' || k AS int) AS i FROM far", "22P02"),
        ("SELECT k FROM far ORDER BY n % 3", "0A000"),
        ("SELECT a.k FROM far a LEFT JOIN far b ON a.k < b.k", "0A000"),
        ("SELECT k FROM far FOR SYSTEM_TIME AS OF NOW()", "0A000"),
        ("SELECT nothing FROM far", "42703"),
    ],
)
def test_errors_of_distributed_queries(spark: Connection, query: str, sqlstate: str) -> None:
    spark.execute("SET query_mode = distributed")
    error = refused(spark, query)
    assert error.sqlstate == sqlstate, str(error)
    spark.execute("SET query_mode = local")
    if sqlstate[:2] == "22":  # DuckDB's words are PostgreSQL's here too
        local = refused(spark, query)
        assert error.diag.message_primary == local.diag.message_primary
        assert not re.search(r"[Jj]ava|Spark|Traceback|\n", str(error.diag.message_primary))


@pytest.mark.long
@pytest.mark.spark
def test_a_distributed_query_can_be_stopped(spark: Connection, tmp_path: Path) -> None:
    spark.execute("SET query_mode = distributed")
    joined = " ".join(f"JOIN far {name} USING (g)" for name in "bcde")
    long = f"SELECT count(*) FROM far a {joined}"
    timer = threading.Timer(2, spark.cancel)
    timer.start()
    assert refused(spark, long).sqlstate == "57014"
    timer.join()
    spark.execute("SET statement_timeout = '1500ms'")
    assert refused(spark, long).sqlstate == "57014"
    spark.execute("SET statement_timeout TO DEFAULT")
    assert rows(spark, "SELECT count(*) FROM far") == [(999,)]
