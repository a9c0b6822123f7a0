"""Conditions about texts find all rows, although DuckLake does not know the bounds of long ones."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from servers import Server, rows
from test_retention import opened, run

from sparkwave.catalog.names import METADATA
from sparkwave.server.context import Context
from sparkwave.server.dispatch import Client

# With more than 256 bytes of other characters than ASCII.
LONG = "é" * 300
COUNTED = "SELECT count(*) FROM t WHERE s = 'a'", "SELECT count(*) FROM t WHERE (c).s = 'a'"
FILLED = f"(CASE WHEN i % 2 = 0 THEN '{LONG}' ELSE 'a' END)"


def fill(client: Client, first: int, text: str, count: int = 40) -> None:
    series = f"generate_series({first}, {first + count - 1}) AS g(i)"
    run(client, f"INSERT INTO t SELECT i, {text}, ROW({text})::struct<s varchar> FROM {series}")


def compact(context: Context) -> None:
    cursor = context.lake.cursor()
    for function in ("flush_inlined_data", "merge_adjacent_files"):
        with context.lake.transaction(cursor):
            cursor.execute(f"CALL ducklake_{function}('lake')")


@pytest.mark.parametrize("first", [lambda client: fill(client, 1, FILLED), lambda client: few(client)])
def test_texts_beside_long_ones_are_found(tmp_path: Path, first: Callable[[Client], None]) -> None:
    """Also by views that are filled later, and after a restart."""
    with opened(tmp_path) as (context, client):
        run(client, "CREATE TABLE t (id int PRIMARY KEY, s varchar, c struct<s varchar>)")
        first(client)
        compact(context)
        for start in (1000, 2000):
            fill(client, start, "'z'")
            compact(context)
            assert [run(client, query) for query in COUNTED] == [[(20,)], [(20,)]]
        run(client, f"CREATE MATERIALIZED VIEW v AS {COUNTED[0]}", f"CREATE MATERIALIZED VIEW w AS {COUNTED[1]}")
        assert run(client, "SELECT * FROM v, w") == [(20, 20)]
        assert run(client, f"SELECT count(*) > 0 FROM t WHERE s = '{LONG}'") == [(True,)]
    with opened(tmp_path) as (_, client):
        assert [run(client, query) for query in COUNTED] == [[(20,)], [(20,)]]


def few(client: Client) -> None:
    """Rows that are in the catalog first."""
    for start in (1, 31):
        fill(client, start, "'a'", 10)
        run(client, f"INSERT INTO t VALUES ({start + 20}, '{LONG}', ROW('{LONG}')::struct<s varchar>)")


def test_a_directory_with_wrong_bounds_is_mended(tmp_path: Path) -> None:
    with opened(tmp_path) as (context, client):
        run(client, "CREATE TABLE t (id int PRIMARY KEY, s varchar, c struct<s varchar>)")
        fill(client, 1, FILLED)
        fill(client, 1000, "'z'")
        wrong = "min_value = 'z', max_value = 'z' WHERE min_value = ''"
        context.lake.cursor().execute(f"UPDATE {METADATA}.ducklake_table_column_stats SET {wrong}")
    with opened(tmp_path) as (_, client):
        assert [run(client, query) for query in COUNTED] == [[(20,)], [(20,)]]


def test_a_view_with_long_texts_is_read_by_others(server: Server) -> None:
    """Its rows are files of Spark, or the checkpoint's."""
    with server.connect() as connection:
        connection.execute("CREATE TABLE t (id int PRIMARY KEY, s varchar)")
        connection.execute(f"INSERT INTO t SELECT i, {FILLED} FROM generate_series(1, 200) AS g(i)")
        connection.execute("CREATE MATERIALIZED VIEW v AS SELECT id, s || '' AS s FROM t")
        connection.execute("INSERT INTO t SELECT i, 'z' FROM generate_series(1000, 1200) AS g(i)")
        connection.execute("FLUSH")
        connection.execute("CREATE MATERIALIZED VIEW w AS SELECT count(*) AS n FROM v WHERE s = 'a'")
        assert rows(connection, "SELECT n FROM w") == [(100,)]
        assert rows(connection, "SELECT count(*) FROM v WHERE s = 'a'") == [(100,)]


def test_bytes_are_found(tmp_path: Path) -> None:
    """Few values that repeat, for which files have Bloom filters."""
    with opened(tmp_path) as (_context, client):
        run(
            client,
            "CREATE TABLE b (k bytea, n int, m int, PRIMARY KEY (k, n))",
            "CREATE TABLE other (k bytea, i int)",
            "CREATE MATERIALIZED VIEW joined AS SELECT n FROM b JOIN other ON b.k = other.k",
            "INSERT INTO b SELECT CASE WHEN i % 2 = 0 THEN '\\xfffe' ELSE '\\x61'::bytea END, i, 0 "
            "FROM generate_series(1, 100) AS g(i)",
        )
        run(client, "CREATE MATERIALIZED VIEW v AS SELECT count(*) FROM b WHERE k = '\\xfffe'")
        assert run(client, "SELECT * FROM v") == [(50,)]
        assert run(client, "SELECT count(*) FROM b WHERE k = '\\xfffe'") == [(50,)]
        run(client, "INSERT INTO other VALUES ('\\xfffe', 1)", "FLUSH")
        assert run(client, "SELECT count(*) FROM joined") == [(50,)]
        assert run(client, "SELECT count(*) FROM b JOIN other ON b.k = other.k") == [(50,)]
        run(client, "INSERT INTO b VALUES ('\\xfffe', 2, 7)", "UPDATE b SET m = 8 WHERE k = '\\xfffe' AND n = 4")
        run(client, "DELETE FROM b WHERE k = '\\xfffe' AND n = 6", "FLUSH")
        assert run(client, "SELECT count(*), sum(m) FROM b") == [(99, 15)]
        assert run(client, "SELECT * FROM v") == [(49,)]
