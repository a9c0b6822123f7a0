"""The two engines agree: Spark reads lake tables as DuckDB does, and portable expressions give equal results."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import pytest

from catalog.lake import Cursor
from catalog.model import ROW_ID, Column, Relation, row_id_column
from catalog.types import INTEGER, VARCHAR
from executor.groups import Group, Groups, Size
from executor.spark_engine import RowIds, SparkEngine, spark_engine
from planner.emit import DUCKDB, SPARK, to_sql
from planner.nodes import Scan
from planner.portable import PORTABLE
from planner.trees import parse_tree
from server.config import Config
from server.context import open_context

pytestmark = pytest.mark.spark

T = Relation(
    1, "dev", "public", "t", "table", (Column("a", INTEGER), Column("s", VARCHAR), row_id_column()), (ROW_ID,), "", True
)


@pytest.fixture(scope="module")
def opened(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Cursor, SparkEngine]]:
    directory = tmp_path_factory.mktemp("engines") / "data"
    context = open_context(Config(data=directory, spark_start="on_demand"), {})
    groups: Groups = context.groups
    group: Group = groups.provision(Size(2, 1024), lambda: False)
    try:
        with spark_engine(group, context.lake, "test") as engine:
            yield context.lake.cursor(), engine
    finally:
        groups.destroy(group)
        context.close()


def test_spark_reads_what_duckdb_reads(opened: tuple[Cursor, SparkEngine]) -> None:
    """Inlined rows, delete files, inlined deletes, updates, flushed and merged files; at every snapshot."""
    cursor, engine = opened
    cursor.execute('CREATE TABLE lake."dev.public".t (a INTEGER, s VARCHAR)')
    snapshots = []
    for statement in (
        "INSERT INTO {t} SELECT i, 'x' || i FROM range(3000) r(i)",
        "INSERT INTO {t} VALUES (-1, NULL), (NULL, '')",
        "INSERT INTO {t} SELECT i, 'y' FROM range(5000, 6000) r(i)",
        "UPDATE {t} SET s = 'updated' WHERE a IN (5, 5005, -1)",
        "DELETE FROM {t} WHERE a IN (6, 5006)",
        "DELETE FROM {t} WHERE a BETWEEN 100 AND 900",
        "UPDATE {t} SET a = a + 10000 WHERE a BETWEEN 1000 AND 2000",
        "CALL ducklake_flush_inlined_data('lake')",
        "DELETE FROM {t} WHERE s = 'updated'",
        "INSERT INTO {t} VALUES (7, 'late')",
        "CALL ducklake_merge_adjacent_files('lake')",
        "DELETE FROM {t} WHERE a > 11900",
    ):
        cursor.execute(statement.format(t='lake."dev.public".t'))
        row = cursor.execute("FROM ducklake_current_snapshot('lake')").fetchone()
        assert row is not None
        snapshots.append(row[0])
    scan = Scan("i0", T, "t", ("a", "s", ROW_ID))
    for snapshot in snapshots:
        for rows in (None, RowIds(0, 3001), RowIds(3001, None)):
            expected = duckdb_rows(cursor, snapshot, rows)
            frame = engine._read_files(cursor, scan, snapshot, rows)
            assert Counter(tuple(row) for row in frame.collect()) == expected, (snapshot, rows)


def duckdb_rows(cursor: Cursor, snapshot: int, rows: RowIds | None) -> Counter[tuple[object, ...]]:
    where = "" if rows is None else f" WHERE {rows.condition().replace(ROW_ID, 'rowid')}"
    return Counter(
        cursor.execute(f'SELECT a, s, rowid FROM lake."dev.public".t AT (VERSION => {snapshot}){where}').fetchall()
    )


EXPRESSIONS = (
    "a + b", "a - b", "a * b", "-a", "(a)", "a = b", "a <> b", "a < b", "a <= b", "a > b", "a >= b",
    "a IS NULL", "a IS NOT NULL", "NOT a > b", "a > 0 AND b > 0", "a > 0 OR b > 0", "a IS NOT DISTINCT FROM b",
    "a BETWEEN b AND 3", "a IN (1, 2, NULL)", "a NOT IN (1, 2)", "CASE WHEN a > b THEN a ELSE b END",
    "CASE a WHEN 1 THEN 'one' WHEN b THEN 'b' END", "coalesce(a, b, 0)", "nullif(a, b)", "abs(a)", "abs(d)",
    "upper(s)", "lower(s)", "s = t", "s < t", "s > ''", "d + a", "d * d", "d = a", "d > 1.5", "true", "NULL = a",
    "d IS NOT DISTINCT FROM d", "s IN ('a', '')", "coalesce(s, t)", "a > 1 IS NULL",
)  # fmt: skip

ROWS = """SELECT * FROM (VALUES (1, 1, 1, 'a', 'A', CAST(0.5 AS DOUBLE)), (2, 2, NULL, '', 'b', CAST(-1.25 AS DOUBLE)),
(3, NULL, NULL, NULL, NULL, NULL), (4, -3, 4, 'żółw', 'Ω', CAST(0 AS DOUBLE)), (5, 2147483, 100, ' a', 'a ',
CAST(1e300 AS DOUBLE)),
(6, 0, -1, 'É', 'é', CAST(1e-300 AS DOUBLE))) AS r(n, a, b, s, t, d)"""


def test_portable_expressions(opened: tuple[Cursor, SparkEngine]) -> None:
    cursor, engine = opened
    listed = ", ".join(f"{expression} AS e{number}" for number, expression in enumerate(EXPRESSIONS))
    tree = parse_tree(f"SELECT {listed} FROM rows ORDER BY n")
    cursor.execute(f"CREATE OR REPLACE TEMPORARY TABLE rows AS {ROWS}")
    engine.bind_query(cursor, "rows", "FROM rows")
    on_duckdb = cursor.execute(to_sql(tree, DUCKDB)).fetchall()
    on_spark = engine.session.sql(to_sql(tree, SPARK)).collect()
    for number, expression in enumerate(EXPRESSIONS):
        assert [row[number] for row in on_duckdb] == [row[number] for row in on_spark], expression


def test_every_portable_expression_is_tried() -> None:
    tried = {type(node) for expression in EXPRESSIONS for node in parse_tree(f"SELECT {expression}").walk()}
    assert set(PORTABLE) <= tried
