"""Conditions find all rows, although bounds and Bloom filters of files do not tell the truth of all values."""

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


# A type, its value in files of few values, which have Bloom filters, an equal value, and another one.
EQUAL = [
    ("bytea", "'\\xfffe'::bytea", "'\\xfffe'", "'\\x61'"),
    ("double precision", "'-0'::float8", "0", "1.5"),
    ("real", "'-0'::real", "0", "1.5"),
    ("double precision", "'Infinity'::float8 - 'Infinity'", "'NaN'", "1.5"),
]


def test_equal_values_are_found(tmp_path: Path) -> None:
    """DuckDB looks for another form of them in the Bloom filters of files."""
    values = "SELECT CASE WHEN i % 2 = 0 THEN {stored} ELSE {other} END, i, 0 FROM generate_series(1, 100) AS g(i)"
    cases = [
        dict(zip(("n", "type", "stored", "equal", "other"), (str(number), *case), strict=True))
        for number, case in enumerate(EQUAL)
    ]

    def of_each(*statements: str) -> list[str]:
        return [statement.format(**case) for case in cases for statement in statements]

    def counts(query: str) -> list[tuple[object, ...]]:
        return [run(client, query.format(**case))[0] for case in cases]

    with opened(tmp_path) as (_context, client):
        run(
            client,
            *of_each(
                "CREATE TABLE b{n} (k {type}, n int, m int, PRIMARY KEY (k, n))",
                "CREATE TABLE other{n} (k {type}, i int)",
                "CREATE INDEX by_k{n} ON b{n} (k, m)",
                "CREATE MATERIALIZED VIEW joined{n} AS SELECT n FROM b{n} JOIN other{n} ON b{n}.k = other{n}.k",
                "CREATE MATERIALIZED VIEW grouped{n} AS SELECT k, n % 50 AS r, sum(m) AS m FROM b{n} GROUP BY 1, 2",
                f"INSERT INTO b{{n}} {values}",
            ),
            "FLUSH",
        )
        run(client, *of_each("CREATE MATERIALIZED VIEW v{n} AS SELECT count(*) FROM b{n} WHERE k = {equal}"))
        assert counts("SELECT * FROM v{n}") == [(50,)] * 4
        assert counts("SELECT count(*) FROM b{n} WHERE k = {equal}") == [(50,)] * 4
        assert counts("SELECT count(*) FROM b{n} WHERE k = {equal}::{type} AND m = 0") == [(50,)] * 4
        run(client, *of_each("INSERT INTO other{n} VALUES ({equal}, 1)"), "FLUSH")
        assert counts("SELECT count(*) FROM joined{n}") == [(50,)] * 4
        assert counts("SELECT count(*) FROM b{n} JOIN other{n} ON b{n}.k = other{n}.k") == [(50,)] * 4
    with opened(tmp_path) as (_context, client):  # without copies in memory
        run(client, *of_each("INSERT INTO b{n} VALUES ({equal}, 2, 7)",
                             "UPDATE b{n} SET m = 8 WHERE k = {equal} AND n = 4",
                             "DELETE FROM b{n} WHERE k = {equal} AND n = 6"), "FLUSH")  # fmt: skip
    with opened(tmp_path) as (_context, client):
        run(client, *of_each("UPDATE b{n} SET m = m + 1 WHERE k = {equal} AND n = 4"), "FLUSH")
        assert counts("SELECT count(*), sum(m) FROM b{n}") == [(99, 16)] * 4
        assert counts("SELECT * FROM v{n}") == [(49,)] * 4
        assert counts("SELECT count(*), sum(m) FROM grouped{n}") == [(50, 16)] * 4
        run(client, *of_each("DELETE FROM b{n} WHERE k = {equal}"), "FLUSH")
        assert counts("SELECT count(*) FROM b{n}") == [(50,)] * 4


def test_zeros_keep_their_signs(tmp_path: Path) -> None:
    """A file, the catalog and a copy in memory have them."""
    with opened(tmp_path) as (_context, client):
        run(client, "CREATE TABLE z (n int PRIMARY KEY, d float8, r real)")
        run(client, "INSERT INTO z SELECT i, '-0', '-0' FROM generate_series(1, 100) AS g(i)")
        run(client, "INSERT INTO z VALUES (101, '-0', '-0')")
        assert run(client, "SELECT d::text, r::text, count(*) FROM z GROUP BY 1, 2") == [("-0", "-0", 101)]
