"""Floats are stored as they are (`catalog.lake.inlining`), and compared with numbers as floats."""

from __future__ import annotations

import random
from pathlib import Path

import duckdb
import pytest
from test_retention import forget, opened, run

from sparkwave.catalog.lake.extensions import load_extension
from sparkwave.catalog.names import METADATA
from sparkwave.server.dispatch import Client

CHANCE = random.Random(7)
FLOATS = [CHANCE.uniform(-1, 1) * 10 ** CHANCE.randint(-6, 6) for _ in range(400)]


def test_ducklake_rounds_inlined_floats(tmp_path: Path) -> None:
    """When this fails, tables with floats may be inlined."""
    with duckdb.connect() as connection:
        load_extension(connection, "ducklake")
        options = f"DATA_PATH '{tmp_path}/data', DATA_INLINING_ROW_LIMIT 100"
        connection.execute(f"ATTACH 'ducklake:{tmp_path}/catalog' AS lake ({options})")
        connection.execute("CREATE TABLE lake.t (f double)")
        for start in range(0, len(FLOATS), 50):
            listed = ", ".join(f"('{value!r}'::double)" for value in FLOATS[start : start + 50])
            connection.execute(f"INSERT INTO lake.t VALUES {listed}")
        found = {value for (value,) in connection.execute("FROM lake.t").fetchall()}
        assert found != {*FLOATS} and len(found & {*FLOATS}) > 0.8 * len(FLOATS)


def values(numbers: list[float]) -> str:
    return ", ".join(f"({place}, '{value!r}'::float8)" for place, value in enumerate(numbers))


def same(client: Client, query: str) -> bool:
    found = dict(run(client, query))
    return len(found) == 20 and all(FLOATS[int(str(id_))] == value for id_, value in found.items())


@pytest.mark.parametrize("starts_again", [False, True])
def test_floats_are_stored_as_they_are(tmp_path: Path, starts_again: bool) -> None:
    few, any_of = values(FLOATS[:20]), " OR ".join(f"f = {value!r}" for value in FLOATS[:20])
    with opened(tmp_path) as (_, client):
        run(
            client,
            f"CREATE TABLE as_made AS SELECT id, f FROM (VALUES {few}) AS v (id, f)",
            "CREATE TABLE t (id int PRIMARY KEY, f float8, r real, a float8[])",
            "CREATE MATERIALIZED VIEW early AS SELECT f, min(id) AS id FROM t GROUP BY f",
            f"INSERT INTO t SELECT id, f, f, ARRAY[f] FROM (VALUES {few}) AS v (id, f)",
            "CREATE TABLE u (id int PRIMARY KEY, f float8)",
            "INSERT INTO u SELECT id, 0 FROM t",
            f"CREATE MATERIALIZED VIEW beside AS SELECT id FROM t WHERE {any_of}",
            "CREATE MATERIALIZED VIEW late AS SELECT id, f, sum(f) AS s FROM t GROUP BY id, f",
        )
        for place, value in enumerate(FLOATS[:20]):
            run(client, f"UPDATE u SET f = '{value!r}' WHERE id = {place}")
        run(client, "FLUSH")
        if not starts_again:
            check(client)
    if starts_again:  # views' rows come from the lake
        with opened(tmp_path) as (_, client):
            check(client)


def check(client: Client) -> None:
    for query in ("as_made", "t", "u", "early", "late"):
        assert same(client, f"SELECT id, f FROM {query}"), query
    assert same(client, "SELECT id, s FROM late") and same(client, "SELECT id, a[1] FROM t")
    for place, value in enumerate(FLOATS[:20]):  # numbers, which DuckDB would round twice, too
        found = run(client, f"SELECT id FROM t WHERE f = {value!r} AND f IN ({value!r}, 0) AND f - {value!r} = 0")
        assert found == [(place,)], value
    [(wrong,)] = run(client, "SELECT count(*) FROM t WHERE r <> f::real OR f NOT IN (SELECT f FROM early)")
    assert wrong == 0 and run(client, "SELECT count(*) FROM beside") == [(20,)]


def test_limits_of_dropped_tables_go(tmp_path: Path) -> None:
    """DuckLake keeps them as long as the lake lives."""
    with opened(tmp_path) as (context, client):
        limited = f"SELECT count(*) FROM {METADATA}.ducklake_metadata WHERE scope = 'table'"

        def count() -> object:
            return context.lake.cursor().execute(limited).fetchall()[0][0]

        run(client, "CREATE TABLE a (f float8)", "CREATE TABLE b (f STRUCT<x real[]>)", "CREATE TABLE c (n int)")
        assert count() == 2
        run(client, "ALTER TABLE c ADD COLUMN f float8", "DROP TABLE a", "INSERT INTO c VALUES (1, 2)")
        assert count() == 3
        forget(context)
        assert count() == 2
