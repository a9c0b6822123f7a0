"""The two engines agree: Spark reads lake tables as DuckDB does, and portable expressions give equal results."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import islice

import pytest
from sqlglot import exp
from test_functions import GOLDEN, H, create_table_h, in_view, same_value

from catalog.lake import Cursor
from catalog.model import ROW_ID, Catalog, Column, Relation, row_id_column
from catalog.row_ids import ALL, RowIds
from catalog.types import INTEGER, VARCHAR
from executor.spark_engine import SparkEngine, spark_engine
from planner.bind import BoundQuery, Scope, bind, type_of
from planner.functions.emit import SPARK, to_sql
from planner.functions.functions import FUNCTIONS
from planner.functions.operators import as_call
from planner.functions.portable import PORTABLE, unproven_part
from planner.functions.spark_case import LOWER, UPPER
from planner.functions.spark_spelling import fill
from planner.nodes import Scan
from planner.parse.trees import parse_tree
from server.config import Config
from server.context import open_context
from server.text_format import text_array

pytestmark = pytest.mark.spark

T = Relation(
    1, "dev", "public", "t", "table", (Column("a", INTEGER), Column("s", VARCHAR), row_id_column()), (ROW_ID,), "", True
)


@pytest.fixture(scope="module")
def opened(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Cursor, SparkEngine]]:
    directory = tmp_path_factory.mktemp("engines") / "data"
    context = open_context(Config(data=directory, spark_start="on_demand", spark_cores=2, spark_memory_mib=1024), {})
    try:
        with spark_engine(context.groups.get(), context.lake, "test") as engine:
            yield context.lake.cursor(), engine
    finally:
        context.close()


@pytest.mark.long
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
        for rows in (ALL, RowIds(((0, 3001),)), RowIds(((3001, None),)), RowIds(((10, 20), (4000, 5003)))):
            expected = duckdb_rows(cursor, snapshot, rows)
            frame = engine._read_files(cursor, scan, snapshot, rows)
            assert Counter(tuple(row) for row in frame.collect()) == expected, (snapshot, rows)
            without_id = engine._read_files(cursor, replace(scan, columns=("s", "a")), snapshot, rows)
            assert Counter((a, s) for s, a in without_id.collect()) == Counter(
                (a, s) for a, s, _ in expected.elements()
            )


def duckdb_rows(cursor: Cursor, snapshot: int, rows: RowIds) -> Counter[tuple[object, ...]]:
    where = f" WHERE {rows.condition('rowid')}"
    return Counter(
        cursor.execute(f'SELECT a, s, rowid FROM lake."dev.public".t AT (VERSION => {snapshot}){where}').fetchall()
    )


def bound(expression: str) -> BoundQuery:
    return bind(parse_tree(f"SELECT {expression} AS x FROM h ORDER BY n"), Catalog((H,)), Scope("dev"))


# Functions that PostgreSQL does not have: what TUMBLE and HOP are made of.
OWN = ("tumble_start(ts, 90000000)", "shift_time(ts, -1500000)", "shift_time(ts, i * 60000000)")
# Expressions of one query on Spark: each query is a job of its own.
AT_ONCE = 40


def proven() -> dict[str, BoundQuery]:
    """The cases of `golden/functions.txt` that are portable and give no error for all rows, bound; and our own."""
    queries = {e: bound(e) for e in (*(e for e, (kind, _) in GOLDEN.items() if kind != "?"), *OWN)}
    return {e: query for e, query in queries.items() if unproven_part(query.tree.selects[0].this) is None}


@pytest.mark.long
def test_portable_expressions(opened: tuple[Cursor, SparkEngine]) -> None:
    """Spark gives what DuckDB gives, in the same type; numerics may have other scales, which storing them ends."""
    cursor, engine = opened
    create_table_h(cursor)
    cursor.execute("CREATE OR REPLACE TEMPORARY VIEW r1 AS FROM h")
    engine.bind_query(cursor, "r1", "SELECT * EXCLUDE (iv) FROM h")
    queries = proven()
    for some in batched(queries.items(), AT_ONCE):
        tree = some[0][1].tree.copy()
        items = (exp.alias_(query.tree.selects[0].this.copy(), f"x{n}") for n, (_, query) in enumerate(some))
        tree.set("expressions", list(items))
        frame = engine.query(to_sql(tree, SPARK))
        table = frame.toArrow()
        for place, (expression, query) in enumerate(some):
            type_ = type_of(query.tree.selects[0])
            on_spark = text_array(table.column(place).combine_chunks(), type_).to_pylist()
            on_duckdb = in_view(cursor, expression)[1]
            kind = "numeric" if type_.name == "numeric" else "exact"
            pairs = zip(on_spark, on_duckdb, strict=True)
            assert all(same_value(left, right, kind) for left, right in pairs), (expression, on_spark, on_duckdb)
            spark_type = frame.schema[place].dataType.simpleString().upper()
            assert spark_type == type_.spark() or (kind == "numeric" and spark_type.startswith("DECIMAL")), expression
    assert len(queries) > 300


def batched(items: Iterable[tuple[str, BoundQuery]], size: int) -> Iterator[list[tuple[str, BoundQuery]]]:
    remaining = iter(items)
    while some := list(islice(remaining, size)):
        yield some


def test_every_portable_expression_is_tried() -> None:
    nodes = [node for query in proven().values() for node in query.tree.selects[0].walk()]
    assert set(PORTABLE) <= {type(node) for node in nodes}
    calls = {call[0] for node in nodes if (call := as_call(node)) is not None}
    assert {name for name, function in FUNCTIONS.items() if function.spark} <= calls


@pytest.mark.long
def test_letters_have_the_same_case(opened: tuple[Cursor, SparkEngine]) -> None:
    """Every code point, alone and where its neighbours could matter; those that stand for letters aside."""
    cursor, engine = opened
    points = "SELECT chr(i::INTEGER) AS c FROM range(1, 983040) r(i) WHERE i NOT BETWEEN 55296 AND 57343"
    engine.bind_query(cursor, "points", points)
    spelled = [fill(form, [exp.column("c")]).sql("spark") for form in (UPPER, LOWER)]
    mixed = [fill(form, [exp.func("concat", "'x'", "c")]).sql("spark") for form in (UPPER, LOWER)]
    frame = engine.query(f"SELECT c, {', '.join(spelled + mixed)} FROM points ORDER BY c")
    table = frame.toArrow().rename_columns(["c", "u", "l", "xu", "xl"])
    cursor.register("spark_letters", table)
    wrong = """SELECT c, u, l FROM spark_letters
        WHERE u <> memory.pg.upper(c) OR l <> lower(c) OR xu <> 'X' || u OR xl <> 'x' || l"""
    assert cursor.execute(wrong).fetchall() == []
