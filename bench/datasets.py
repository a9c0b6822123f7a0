"""TPC-H and Nexmark as files that every server loads by COPY, and the changes that come after."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb
import psycopg

QUERIES = Path(__file__).parent.parent / "tests" / "queries"
TPCH_TABLES = ("region", "nation", "supplier", "customer", "part", "partsupp", "orders", "lineitem")
# Foreign keys, which PostgreSQL needs for the subqueries that refer to an outer row.
TPCH_INDEXES = ("lineitem (l_partkey, l_suppkey)", "orders (o_custkey)", "partsupp (ps_suppkey)")
NEXMARK_INDEXES = ("bid (auction)", "auction (id)", "person (id)")
# Only RisingWave has these.
_NOT_PORTABLE = ("TUMBLE(", "HOP(", "PROCTIME(", "SESSION WITH GAP")

# Of 50 events one is a person, three are auctions and 46 are bids, half of those on a hot auction. `rnd` is a number
# between 0 and 1 that depends on the event and a salt alone.
_NEXMARK = {
    "person": """SELECT 1000 + i // 50 AS id, 'person ' || (i // 50) % 97, 'p' || i || '@example.com',
        '1234 5678 9012 3456', ['Phoenix', 'Palo Alto', 'Boise', 'Portland', 'Bend'][1 + (5 * rnd(i, 1))::int % 5],
        ['or', 'id', 'ca', 'wa', 'az', 'wy'][1 + (6 * rnd(i, 2))::int % 6], moment(i), 'extra'
        FROM events WHERE i % 50 = 0""",
    "auction": """SELECT 1000 + 3 * (i // 50) + i % 50 - 1 AS id, 'item ' || i, 'd', (100 + 10000 * rnd(i, 1))::bigint,
        (10100 + 10000 * rnd(i, 2))::bigint, moment(i), moment(i) + to_seconds(1 + (59 * rnd(i, 3))::int),
        1000 + greatest(i // 50 - (10 * rnd(i, 4))::bigint, 0), 10 + (5 * rnd(i, 5))::bigint % 5, 'extra'
        FROM events WHERE i % 50 BETWEEN 1 AND 3""",
    "bid": """SELECT 1000 + CASE WHEN rnd(i, 1) < 0.5 THEN 3 * (i // 50) // 20 * 20
            ELSE greatest(3 * (i // 50) - (60 * rnd(i, 2))::bigint, 0) END,
        1000 + greatest(i // 50 - (30 * rnd(i, 3))::bigint, 0), (10 ** (2 + 6 * rnd(i, 4)))::bigint,
        ['apple', 'Google', 'Facebook', 'baidu', 'channel-1', 'channel-2'][1 + (6 * rnd(i, 5))::int % 6],
        'https://www.nexmark.com/bend/' || (9 * rnd(i, 6))::int || '/item.htm?query=1&channel_id=' || i % 1000,
        moment(i), moment(i) + INTERVAL 100 MILLISECOND, 'extra' FROM events WHERE i % 50 >= 4""",
}
_NEXMARK_MACROS = """
    CREATE OR REPLACE TEMP MACRO rnd(i, salt) AS (hash(i * 16 + salt) % 1000003) / 1000003.0;
    CREATE OR REPLACE TEMP MACRO moment(i) AS TIMESTAMP '2024-03-31 06:00:00' + to_milliseconds(100 * i);"""


@dataclass(frozen=True)
class Change:
    """Rows that come, as CSV files by table, then statements; `rows` added or removed, a `fraction` of all."""

    fraction: float
    rows: int
    copies: dict[str, Path]
    statements: tuple[str, ...] = ()

    def apply(self, connection: psycopg.Connection[Any]) -> None:
        for table, file in self.copies.items():
            copy(connection, table, file)
        for statement in self.statements:
            connection.execute(statement)


@dataclass(frozen=True)
class Dataset:
    """Tables as CSV files and, for those who read no CSV here, as Parquet files; with the queries over them.

    `rows` are of its large tables, which are `counted`.
    """

    create: tuple[str, ...]
    queries: dict[str, str]
    csv: dict[str, Path]
    parquet: dict[str, Path]
    changes: tuple[Change, ...]
    rows: int
    counted: str
    indexes: tuple[str, ...]

    def load(self, connection: psycopg.Connection[Any], is_postgres: bool = False) -> None:
        """Make and fill the tables; PostgreSQL gets indexes and statistics."""
        for statement in self.create:
            connection.execute(statement)
        for table, file in self.csv.items():
            copy(connection, table, file)
        for index in self.indexes if is_postgres else ():
            connection.execute(f"CREATE INDEX ON {index}")
        if is_postgres:
            connection.execute("VACUUM ANALYZE")


def copy(connection: psycopg.Connection[Any], table: str, file: Path) -> None:
    """COPY a CSV file into a table."""
    with (
        open(file, "rb") as source,
        connection.cursor() as cursor,
        cursor.copy(f"COPY {table} FROM STDIN (FORMAT csv)") as sink,
    ):
        while data := source.read(2**18):
            sink.write(data)


def tpch(directory: Path, scale: float, fractions: Sequence[float] = ()) -> Dataset:
    """The newest orders are kept back for the changes. Half of one are new orders, half old ones that go."""
    tool = Path(sys.executable).with_name("tpchgen-cli")
    generated = directory / "generated"
    command = [str(tool), "parquet", "--quiet", "--scale-factor", str(scale), "--output-dir", str(generated)]
    subprocess.run(command, check=True, capture_output=True)
    with duckdb.connect() as duck:
        for table in TPCH_TABLES:
            duck.execute(f"CREATE VIEW {table} AS FROM '{generated}/{table}.parquet'")
        keys = [key for (key,) in duck.execute("SELECT o_orderkey FROM orders ORDER BY 1").fetchall()]
        rows = sum(duck.table(table).count("*").fetchall()[0][0] for table in ("orders", "lineitem"))
        counts = [max(round(len(keys) * fraction / 2), 1) for fraction in fractions]
        first = len(keys) - sum(counts)
        csv, parquet = _written(duck, directory, TPCH_TABLES, {
            table: f"SELECT * FROM {table} WHERE {table[0]}_orderkey < {keys[first] if counts else keys[-1] + 1}"
            for table in ("orders", "lineitem")
        })  # fmt: skip
        changes, oldest = [], 0
        for number, (fraction, count) in enumerate(zip(fractions, counts, strict=True)):
            ends = f"BETWEEN {keys[first]} AND {keys[first + count - 1]}"
            gone = f"BETWEEN {keys[oldest]} AND {keys[oldest + count - 1]}"
            files, changed = {}, 0
            for table in ("orders", "lineitem"):
                key = f"{table[0]}_orderkey"
                files[table] = directory / f"{table}.{number}.csv"
                duck.execute(f"COPY (FROM {table} WHERE {key} {ends}) TO '{files[table]}' (FORMAT csv, HEADER false)")
                changed += duck.execute(f"SELECT count(*) FROM {table} WHERE {key} {ends} OR {key} {gone}").fetchall()[
                    0
                ][0]
            deletes = (f"DELETE FROM lineitem WHERE l_orderkey {gone}", f"DELETE FROM orders WHERE o_orderkey {gone}")
            changes.append(Change(fraction, changed, files, deletes))
            first, oldest = first + count, oldest + count
    return Dataset(
        _tables("tpch"), _queries("tpch"), csv, parquet, tuple(changes), rows, "orders and lines", TPCH_INDEXES
    )


def nexmark(directory: Path, events: int, fractions: Sequence[float] = ()) -> Dataset:
    """So many events, ten a second; a change is the events that come next."""
    with duckdb.connect() as duck:
        duck.execute(_NEXMARK_MACROS)
        _events(duck, 0, events)
        for statement in _tables("nexmark"):
            duck.execute(statement)
        for table, query in _NEXMARK.items():
            duck.execute(f"INSERT INTO {table} {query}")
        csv, parquet = _written(duck, directory, tuple(_NEXMARK), {})
        changes, start = [], events
        for number, fraction in enumerate(fractions):
            end = start + max(round(events * fraction), 1)
            _events(duck, start, end)
            files = {table: directory / f"{table}.{number}.csv" for table in _NEXMARK}
            for table, query in _NEXMARK.items():
                duck.execute(f"COPY ({query}) TO '{files[table]}' (FORMAT csv, HEADER false)")
            changes.append(Change(fraction, end - start, files))
            start = end
    queries = {
        name: query for name, query in _queries("nexmark").items() if not any(word in query for word in _NOT_PORTABLE)
    }
    return Dataset(_tables("nexmark"), queries, csv, parquet, tuple(changes), events, "events", NEXMARK_INDEXES)


@dataclass(frozen=True)
class Workload:
    """A dataset of any size, with its queries. `make` is given a directory, the size, and the fractions that change;
    `warm_up` is a small query."""

    name: str
    title: Callable[[float], str]
    make: Callable[..., Dataset]
    warm_up: str


TPCH = Workload(
    "tpch",
    "TPC-H at scale factor {:g}".format,
    tpch,
    "SELECT o_orderpriority, count(*) AS n FROM orders GROUP BY o_orderpriority",
)
NEXMARK = Workload(
    "nexmark", "Nexmark, {:,} events".format, nexmark, "SELECT category, count(*) AS n FROM auction GROUP BY category"
)


def _events(duck: duckdb.DuckDBPyConnection, start: int, end: int) -> None:
    duck.execute(f"CREATE OR REPLACE TEMP VIEW events AS SELECT range AS i FROM range({start}, {end})")


def _written(
    duck: duckdb.DuckDBPyConnection, directory: Path, tables: Sequence[str], queries: dict[str, str]
) -> tuple[dict[str, Path], dict[str, Path]]:
    """The CSV and Parquet files of some tables, or of queries in their place."""
    csv = {table: directory / f"{table}.csv" for table in tables}
    parquet = {table: directory / f"{table}.parquet" for table in tables}
    for table in tables:
        query = queries.get(table, f"FROM {table}")
        duck.execute(f"COPY ({query}) TO '{csv[table]}' (FORMAT csv, HEADER false)")
        duck.execute(f"COPY ({query}) TO '{parquet[table]}' (FORMAT parquet)")
    return csv, parquet


def _queries(folder: str) -> dict[str, str]:
    files = sorted((QUERIES / folder).glob("q*.sql"), key=lambda file: int(file.stem[1:]))
    return {file.stem: file.read_text() for file in files}


def _tables(folder: str) -> tuple[str, ...]:
    return tuple(part for part in (QUERIES / folder / "tables.sql").read_text().split(";") if part.strip())
