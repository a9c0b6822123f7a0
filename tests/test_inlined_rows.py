"""Rows, maps and nested arrays with a catalog in a PostgreSQL are stored as they are (`catalog.lake.inlining`)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import duckdb
import psycopg
from postgres import Postgres
from servers import Server

from sparkwave.catalog.lake.extensions import load_extension

TEXTS = ["it's", "a\\b", '"', "", "NULL", "null", " x ", "''", "{}=,:", "]", "é\n", "\\'", ""]
READ = "SELECT k, (r).x, s[1], m[1], n[1][1], (q[1]).x FROM {} ORDER BY k"


def test_ducklake_changes_inlined_rows(tmp_path: Path) -> None:
    """When this fails, such tables may be inlined."""
    postgres = Postgres()
    try:
        with duckdb.connect() as connection:
            load_extension(connection, "ducklake")
            load_extension(connection, "postgres_scanner")
            target = f"ducklake:postgres:{postgres.conninfo()}"
            connection.execute(f"ATTACH '{target}' AS lake (DATA_PATH '{tmp_path}', DATA_INLINING_ROW_LIMIT 10)")
            connection.execute("CREATE TABLE lake.t (r struct(x varchar))")
            connection.execute("INSERT INTO lake.t VALUES (row('it''s'))")
            assert connection.execute("SELECT r.x FROM lake.t").fetchall() == [("its",)]
    finally:
        postgres.stop()


def test_rows_are_stored_as_they_are(tmp_path: Path) -> None:
    postgres = Postgres()
    place: dict[str, Any] = {"catalog": postgres.conninfo(), "shared": tmp_path / "shared"}
    server = Server(tmp_path / "data", **place)
    try:
        with server.connect() as connection:
            fill(connection)
            check(connection)
        server.stop()
        server = Server(tmp_path / "data", **place)  # views' rows come from the lake
        with server.connect() as connection:
            check(connection)
    finally:
        server.kill()
        postgres.stop()


def fill(connection: psycopg.Connection[Any]) -> None:
    """Rows of each statement that writes a few, into tables and views."""
    connection.execute("CREATE TABLE one (k int PRIMARY KEY, v varchar)")
    for number, text in enumerate(TEXTS):
        connection.execute("INSERT INTO one VALUES (%s, %s)", [number, text])
    wide = (
        "SELECT k, ROW(v)::STRUCT<x varchar> AS r, ARRAY[v] AS s, map_from_key_values(ARRAY[1], ARRAY[v]) AS m, "
        "ARRAY[ARRAY[v]] AS n, ARRAY[ROW(v)::STRUCT<x varchar>] AS q FROM one"
    )
    connection.execute(f"CREATE TABLE made AS {wide}")
    connection.execute(
        "CREATE TABLE inserted (k int PRIMARY KEY, r STRUCT<x varchar>, s varchar[], m map(int, varchar), "
        "n varchar[][], q STRUCT<x varchar>[])"
    )
    connection.execute("CREATE MATERIALIZED VIEW early AS SELECT * FROM inserted")
    connection.execute(f"INSERT INTO inserted {wide} WHERE k < 3")
    connection.execute(f"CREATE MATERIALIZED VIEW late AS {wide}")
    connection.execute("CREATE TABLE added (k int PRIMARY KEY)")
    connection.execute("INSERT INTO added SELECT k FROM one")
    for column in (
        "r STRUCT<x varchar>",
        "s varchar[]",
        "m map(int, varchar)",
        "n varchar[][]",
        "q STRUCT<x varchar>[]",
    ):
        connection.execute(f"ALTER TABLE added ADD COLUMN {column}")
    for number in range(len(TEXTS)):
        connection.execute(f"INSERT INTO inserted {wide} WHERE k = {number} AND k >= 3")
        connection.execute(f"INSERT INTO added {wide} WHERE k = {number}")
    connection.execute("FLUSH")


def check(connection: psycopg.Connection[Any]) -> None:
    expected = [(number, *[text] * 5) for number, text in enumerate(TEXTS)]
    for name in ("made", "inserted", "early", "late", "added"):
        assert connection.execute(READ.format(name)).fetchall() == expected, name
