"""`WITH c AS changelog FROM t`: replayed it is the table, and a view over it is its query over the logged changes."""

from __future__ import annotations

import random
from collections import Counter
from pathlib import Path
from typing import Any

import psycopg
import pytest
from servers import Server, refused, rows
from test_law import check, opened, run

from sparkwave.server.dispatch import Client

OTHER = "CREATE TABLE u (a int, n int)"
# With a key that the user chose, and with the lake's row ids.
TABLES = {"keyed": "CREATE TABLE t (k int PRIMARY KEY, a int, b int)", "rows": "CREATE TABLE t (k int, a int, b int)"}
LOG = "WITH c AS changelog FROM t SELECT k, a, b, changelog_op AS op, _changelog_row_id AS at FROM c"
# Operators over a log: linear ones, and those that look it up again.
VIEWS = {
    "filtered": ("k, b, changelog_op AS op FROM c WHERE a > 3", "k, b, op FROM log WHERE a > 3"),
    "grouped": (
        "a, count(*) AS n, sum(b) AS s, max(b) AS m FROM c GROUP BY a",
        "a, count(*) AS n, sum(b) AS s, max(b) AS m FROM log GROUP BY a",
    ),
    "listed": (
        "a, array_agg(b ORDER BY b, k) AS bs FROM c GROUP BY a",
        "a, array_agg(b ORDER BY b, k) FROM log GROUP BY a",
    ),
    "joined": ("c.k, c.b, n FROM c LEFT JOIN u ON c.a = u.a", "log.k, log.b, n FROM log LEFT JOIN u ON log.a = u.a"),
    "self": (
        "c.k, count(*) AS n FROM c JOIN c AS d ON c.k = d.k AND c.changelog_op <> d.changelog_op GROUP BY c.k",
        "c.k, count(*) AS n FROM log c JOIN log d ON c.k = d.k AND c.op <> d.op GROUP BY c.k",
    ),
    "first": (
        "k, b FROM (SELECT k, b, rank() OVER (PARTITION BY a ORDER BY b) AS r FROM c) s WHERE r <= 2",
        "k, b FROM (SELECT k, b, rank() OVER (PARTITION BY a ORDER BY b) AS r FROM log) s WHERE r <= 2",
    ),
    "outdated": ("k FROM c WHERE changelog_op IN (2, 4)", "k FROM log WHERE op IN (2, 4)"),
}


def change(chance: random.Random, is_keyed: bool) -> str:
    k, a, b = (chance.randint(0, 9) for _ in range(3))
    insert = f"INSERT INTO t VALUES ({k}, {a}, {b})" + (f", ({k + 20}, {a}, {b})" if chance.random() < 0.5 else "")
    key = "" if is_keyed else f", k = {k}"
    return chance.choice(
        (
            insert,
            insert,
            f"UPDATE t SET b = {b}{key} WHERE a = {a}",
            f"UPDATE t SET a = a + 1 WHERE k = {k}",
            f"DELETE FROM t WHERE k = {k} OR b = {b}",
            f"INSERT INTO u VALUES ({a}, {b})",
            f"DELETE FROM u WHERE a = {a}",
        )
    )


def replayed(client: Client) -> Counter[tuple[object, ...]]:
    """The rows that the logged changes leave."""
    found: Counter[tuple[object, ...]] = Counter()
    for k, a, b, op, _ in run(client, "SELECT * FROM log"):
        found[k, a, b] += 1 if op in (1, 3) else -1
    return +found


@pytest.mark.parametrize("engine", ["duckdb", pytest.param("spark", marks=pytest.mark.long)])
@pytest.mark.parametrize("table", ["keyed", pytest.param("rows", marks=pytest.mark.long)])
def test_a_log_is_replayed_and_views_over_it_hold(tmp_path: Path, table: str, engine: str) -> None:
    chance = random.Random(table)
    with opened(tmp_path / "lake", streaming_engine=engine) as (context, client):
        run(client, TABLES[table])
        run(client, OTHER)
        for _ in range(12):
            run(client, change(chance, table == "keyed"))
        run(client, f"CREATE MATERIALIZED VIEW log AS {LOG}")
        for name, (made, _) in VIEWS.items():
            run(client, f"CREATE MATERIALIZED VIEW {name} AS WITH c AS changelog FROM t SELECT {made}")
        for epoch in range(4 if engine == "duckdb" else 2):
            context.coordinator.flush(lambda: False)
            assert replayed(client) == Counter(run(client, "SELECT k, a, b FROM t")), f"epoch {epoch}"
            check(client, {name: f"SELECT {query}" for name, (_, query) in VIEWS.items()}, f"epoch {epoch}")
            for _ in range(5):
                run(client, change(chance, table == "keyed"))
        codes = {op for (op,) in run(client, "SELECT DISTINCT op FROM log")}
        assert codes == {1, 2, 3, 4} or engine == "spark"
        [(_, result, _, _, _, _, detail)] = run(client, "AUDIT MATERIALIZED VIEW log")
        assert (result, detail) == ("SKIPPED", "the rows of a change log depend on when its changes came")


@pytest.mark.parametrize("strategy", ["snapshot", "arrangement"])
def test_strategies(tmp_path: Path, strategy: str) -> None:
    with opened(tmp_path / "lake") as (context, client):
        run(client, TABLES["keyed"])
        run(client, "INSERT INTO t SELECT i, i % 5, i FROM generate_series(1, 500) AS g(i)")
        run(client, "CREATE MATERIALIZED VIEW above AS SELECT k, a, b FROM t WHERE a > 0")
        options = f"WITH (backfill_strategy = '{strategy}')"
        run(client, f"CREATE MATERIALIZED VIEW log {options} AS {LOG.replace('FROM t', 'FROM above')}")
        assert run(client, "SELECT op, count(*), min(at), max(at) FROM log GROUP BY op") == [(1, 400, 0, 0)]
        run(client, "UPDATE t SET a = 0 WHERE k = 1")
        run(client, "UPDATE t SET b = 0 WHERE k = 2")
        context.coordinator.flush(lambda: False)
        assert sorted(run(client, "SELECT k, b, op FROM log WHERE at > 0")) == [(1, 1, 2), (2, 0, 3), (2, 2, 4)]


@pytest.mark.long
def test_after_a_restart(tmp_path: Path) -> None:
    server = Server(tmp_path / "data")
    with server.connect() as own:
        own.execute(TABLES["keyed"])
        own.execute(f"CREATE MATERIALIZED VIEW log AS {LOG}")
        own.execute("CREATE MATERIALIZED VIEW n AS WITH c AS changelog FROM t SELECT max(b) AS m, count(*) AS n FROM c")
        own.execute("INSERT INTO t VALUES (1, 1, 1), (2, 2, 9)")
        own.execute("FLUSH")
        own.execute("DELETE FROM t WHERE k = 2")
        own.execute("ALTER TABLE t RENAME TO renamed")
        own.execute("FLUSH")
    server.stop()
    server = Server(tmp_path / "data")
    with server.connect() as own:
        own.execute("UPDATE renamed SET a = 3")
        own.execute("FLUSH")
        found: list[Any] = rows(own, "SELECT k, a, op FROM log ORDER BY at, op")
        assert found == [(1, 1, 1), (2, 2, 1), (2, 2, 2), (1, 3, 3), (1, 1, 4)]
        assert rows(own, "SELECT * FROM n") == [(9, 5)]
    server.stop()


def test_what_is_refused(tmp_path: Path) -> None:
    server = Server(tmp_path / "data")
    with server.connect() as own:
        own.execute(TABLES["keyed"])
        _check(refused(own, LOG), "0A000", "changelog FROM is not supported in a query")
        _check(refused(own, "CREATE MATERIALIZED VIEW v AS WITH c AS changelog FROM x SELECT * FROM c"), "42P01", "x")
        _check(
            refused(own, "CREATE MATERIALIZED VIEW v AS WITH c AS changelog t SELECT * FROM c"), "42601", "changelog"
        )
    server.stop()


def _check(error: psycopg.Error, sqlstate: str, message: str) -> None:
    assert error.sqlstate == sqlstate
    assert message in str(error)
