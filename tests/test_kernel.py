"""DuckDB in a task gives what it gives in the server: the lake's rows over its files, and every function."""

from __future__ import annotations

import contextlib
import json
import os
import pickle
import subprocess
import sys
import traceback
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb
import pytest
from postgres import Postgres
from pyspark import cloudpickle
from servers import with_lake
from test_functions import GOLDEN, ask, create_table_h, in_view, query_in_view
from view_functions import create_functions

from sparkwave.catalog.database_functions import define_functions
from sparkwave.catalog.lake.ducklake import ENGINE_VERSION, Cursor, Lake
from sparkwave.catalog.lake.places import remove_tree
from sparkwave.catalog.lake.row_ids import ALL, RowIds
from sparkwave.catalog.lake.storage import Storage
from sparkwave.catalog.model import ROW_ID, Column, Relation, row_id_column
from sparkwave.catalog.system.system_views import needed_functions, scalar_functions
from sparkwave.catalog.types import INTEGER, VARCHAR, parse_type
from sparkwave.executor.spark import kernel, lake_rows, spark_engine
from sparkwave.executor.spark.kernel import Setup, Step, Task, read_answers
from sparkwave.executor.spark.lake_files import table_files
from sparkwave.executor.spark.lake_rows import table_rows
from sparkwave.executor.spark.spark_engine import TASK_SCRIPT
from sparkwave.planner.functions.emit import Sql

A, S, B = Column("a", INTEGER), Column("s", VARCHAR), Column("b", INTEGER)
T = Relation(1, "dev", "public", "t", "table", (A, S, row_id_column()), (ROW_ID,), "", True)
SETUP = Setup(ENGINE_VERSION, 1, 256, (), TASK_SCRIPT)


@pytest.fixture
def cursor(tmp_path: Path) -> Iterator[Cursor]:
    lake = Lake(Storage(with_lake(tmp_path / "lake")))
    yield lake.cursor()
    lake.close()


def made(directory: Path) -> str:
    """A directory for files of a task, which whoever runs it makes."""
    directory.mkdir()
    return str(directory)


def snapshot_of(cursor: Cursor) -> int:
    row = cursor.execute("FROM ducklake_current_snapshot('lake')").fetchone()
    assert row is not None
    return int(row[0])


@pytest.mark.parametrize(("most_listed", "most_alone"), [(1000, 8), (1000, 0), (0, 0)])
def test_rows_over_files(
    cursor: Cursor, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, most_listed: int, most_alone: int
) -> None:
    """Inlined rows, delete files, inlined deletes, updates, flushed and merged files; at every snapshot."""
    monkeypatch.setattr(lake_rows, "MOST_LISTED", most_listed)
    monkeypatch.setattr(lake_rows, "MOST_ALONE", most_alone)
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
        snapshots.append(snapshot_of(cursor))
    with duckdb.connect() as other:
        for number, snapshot in enumerate(snapshots):
            table = table_files(cursor, T, snapshot, tmp_path / str(number))
            for rows in (ALL, RowIds(((0, 3001),)), RowIds(((3001, None),)), RowIds(((10, 20), (4000, 5003)))):
                where = f" WHERE {rows.condition('rowid')}"
                expected = cursor.execute(
                    f'SELECT a, s, rowid FROM lake."dev.public".t AT (VERSION => {snapshot}){where}'
                ).fetchall()
                found = other.execute(table_rows(table, T, ("a", "s", ROW_ID), rows)).fetchall()
                assert Counter(found) == Counter(expected), (snapshot, rows)
                swapped = other.execute(table_rows(table, T, ("s", "a"), rows)).fetchall()
                assert Counter(swapped) == Counter((s, a) for a, s, _ in expected)
                counted = other.execute(f"SELECT count(*) FROM ({table_rows(table, T, (), rows)})").fetchone()
                assert counted == (len(expected),)


def test_row_ids_of_a_table_with_a_column_file_index(
    cursor: Cursor, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What DuckDB calls a file's place among others may be the name of a column."""
    monkeypatch.setattr(lake_rows, "MOST_ALONE", 0)
    relation = Relation(
        1, "dev", "public", "t", "table", (Column("file_index", INTEGER), row_id_column()), (ROW_ID,), "", True
    )
    cursor.execute('CREATE TABLE lake."dev.public".t (file_index INTEGER)')
    for start in (7, 5000):
        cursor.execute(f'INSERT INTO lake."dev.public".t SELECT i FROM range({start}, {start + 100}) r(i)')
    table = table_files(cursor, relation, snapshot_of(cursor), tmp_path / "scratch")
    assert len(table.files) == 2
    expected = cursor.execute('SELECT file_index, rowid FROM lake."dev.public".t').fetchall()
    with duckdb.connect() as other:
        found = other.execute(table_rows(table, relation, ("file_index", ROW_ID))).fetchall()
    assert Counter(found) == Counter(expected)


def test_what_few_files_say_of_their_columns_is_used(cursor: Cursor, tmp_path: Path) -> None:
    """Of columns without a NULL nothing is counted: their counts are that of the rows."""
    cursor.execute('CREATE TABLE lake."dev.public".t (a INTEGER, s VARCHAR, b INTEGER)')
    for start in (0, 5000):
        cursor.execute(
            f"INSERT INTO lake.\"dev.public\".t SELECT i, 'x', nullif(i, 5050) FROM range({start}, {start + 100}) r(i)"
        )
    relation = Relation(1, "dev", "public", "t", "table", (A, S, B, row_id_column()), (ROW_ID,), "", True)
    table = table_files(cursor, relation, snapshot_of(cursor), tmp_path / "scratch")
    assert len(table.files) == 2
    query = f"SELECT count(*), count(a), count(s), count(b) FROM ({table_rows(table, relation, ('a', 's', 'b'))})"
    with duckdb.connect() as other:
        [(_, plan)] = other.execute(f"EXPLAIN {query}").fetchall()
        assert other.execute(query).fetchall() == [(200, 200, 200, 199)]
    assert plan.count("count(#") == 1


def test_columns_that_came_later(cursor: Cursor, tmp_path: Path) -> None:
    """Files from before a column, with a value for them and without, and from before it was wider; inlined rows too."""
    later = Relation(
        1, "dev", "public", "t", "table", (A, S, B, Column("c", INTEGER), row_id_column()), (ROW_ID,), "", True
    )
    for statement in (
        "CREATE TABLE {t} (a SMALLINT, s VARCHAR)",
        "INSERT INTO {t} SELECT i, 'x' FROM range(300) r(i)",
        "INSERT INTO {t} VALUES (-1, 'inlined')",
        "ALTER TABLE {t} ADD COLUMN b INTEGER DEFAULT 7",
        "ALTER TABLE {t} ADD COLUMN c INTEGER",
        "ALTER TABLE {t} ALTER a TYPE INTEGER",
        "INSERT INTO {t} SELECT i, 'y', i, i FROM range(100000, 100300) r(i)",
        "INSERT INTO {t} VALUES (-2, 'inlined', 1, 2)",
        "DELETE FROM {t} WHERE a IN (3, 100003)",
    ):
        cursor.execute(statement.format(t='lake."dev.public".t'))
    table = table_files(cursor, later, snapshot_of(cursor), tmp_path / "scratch")
    columns = ("c", "b", "s", "a")
    expected = cursor.execute('SELECT c, b, s, a FROM lake."dev.public".t').fetchall()
    with duckdb.connect() as other:
        found = other.execute(table_rows(table, later, columns))
        assert [str(column[1]) for column in found.description] == ["INTEGER", "INTEGER", "VARCHAR", "INTEGER"]
        assert Counter(found.fetchall()) == Counter(expected)
    assert (None, 7, "x", 5) in expected and len(expected) == 600


def test_inlined_rows_of_a_postgres(tmp_path: Path) -> None:
    """A catalog in a PostgreSQL has small rows in types of its own, text as bytes."""
    spelled = {
        "a": "int", "s": "varchar", "b": "bytea", "l": "varchar[]", "n": "numeric", "ts": "timestamp", "j": "jsonb",
        "d": "date", "f": "double precision",
    }  # fmt: skip
    types = {name: parse_type(text) for name, text in spelled.items()}
    columns = tuple(Column(name, type_) for name, type_ in types.items())
    relation = Relation(1, "dev", "public", "t", "table", (*columns, row_id_column()), (ROW_ID,), "", True)
    postgres = Postgres()
    lake = Lake(Storage(tmp_path / "lake", postgres.conninfo(), tmp_path / "shared"))
    try:
        cursor = lake.cursor()
        listed = ", ".join(f"{name} {type_.in_lake()}" for name, type_ in types.items())
        cursor.execute(f'CREATE TABLE lake."dev.public".t ({listed})')
        for row in (
            "(1, 'sä\\me', 'a\\x00\\xFF'::BLOB, ['q', '', NULL, 'ö'], 1.5, '-infinity', '{\"ü\": 1}', "
            "'0001-01-01 (BC)', 'NaN')",
            "(2, '', ''::BLOB, [], NULL, 'infinity', 'null', 'infinity', -0.0)",
            f"(3, {', '.join(['NULL'] * 8)})",
        ):
            cursor.execute(f'INSERT INTO lake."dev.public".t VALUES {row}')
        table = table_files(cursor, relation, snapshot_of(cursor), tmp_path / "scratch")
        assert table.inlined is not None and not table.files
        wanted = ", ".join(f"({type_.from_lake(name)})::VARCHAR" for name, type_ in types.items())
        expected = cursor.execute(f'SELECT {wanted} FROM lake."dev.public".t ORDER BY a').fetchall()
        cast = ", ".join(f"{name}::VARCHAR" for name in types)
        found = cursor.execute(
            f"SELECT {cast} FROM ({table_rows(table, relation, tuple(types))}) ORDER BY a"
        ).fetchall()
        assert found == expected
        assert expected[0][1] == "sä\\me"
    finally:
        lake.close()
        postgres.stop()


def test_functions() -> None:
    """Expressions of `golden/functions.txt` have the types and values that they have in the server."""
    database = kernel._database(SETUP).cursor()
    database.execute("DROP VIEW IF EXISTS r1; DROP TABLE IF EXISTS h")
    create_table_h(database)
    database.execute("CREATE VIEW r1 AS FROM h")
    server = duckdb.connect()
    server.execute(SETUP.script)
    create_functions(server)
    create_table_h(server)
    server.execute("CREATE VIEW r1 AS FROM h")
    expressions = [expression for expression, (kind, _) in GOLDEN.items() if kind != "?"][::6]
    for expression in expressions:
        query, type_ = query_in_view(expression)
        kernel._define(database, needed_functions([query]))
        assert ask(database, query, type_) == in_view(server, expression), expression
    assert len(expressions) > 100


@pytest.mark.parametrize("first", range(4))
def test_a_function_comes_with_what_it_calls(first: int) -> None:
    names = list(scalar_functions())
    assert len(names) > 400
    for name in names[first * 10 :: 40]:
        with duckdb.connect() as database:
            define_functions(database)
            database.execute(TASK_SCRIPT)
            for statement in needed_functions([f'SELECT "memory"."pg".{name}(x)']):
                database.execute(statement)
            found = database.execute("SELECT count(*) FROM duckdb_functions() WHERE function_name = ?", [name])
            assert found.fetchall() != [(0,)], name


@pytest.mark.parametrize("call", ["jsonb_record", "jsonb_array_of_texts", "jsonb_array_of_documents", "number_in_json"])
def test_functions_that_contain_one_another_plan_their_argument_once(call: str) -> None:
    """A field of a record calls several, so that a column would be planned thousands of times."""

    def count(function: str) -> int:
        query = f'SELECT 1 FROM t WHERE "memory"."pg".{function}(argument) IS NOT NULL'
        for statement in needed_functions([query]):
            database.execute(statement)
        [(_, plan)] = database.execute(f"EXPLAIN (FORMAT JSON) {query}").fetchall()
        return int(plan.count("argument"))

    of_numbers = call == "number_in_json"
    with duckdb.connect() as database:
        define_functions(database)
        database.execute(TASK_SCRIPT)
        database.execute(f"CREATE TABLE t (argument {'DOUBLE' if of_numbers else 'JSON'})")
        assert count(call) == (count("to_text") if of_numbers else 1)


def test_tasks_are_sent_whole(tmp_path: Path) -> None:
    """A Python with duckdb and pyarrow and nothing of ours runs tables, files that later steps read, and `now`."""
    steps = (
        Step("shared", "SELECT i, 7 / 2 AS half, getvariable('now_new') AS now FROM range(1000) r(i)"),
        Step("state", 'SELECT * FROM "shared" WHERE i < 10', made(tmp_path / "state")),
        Step("none", 'SELECT * FROM "state" WHERE i < 0', made(tmp_path / "none")),
        Step(
            "view",
            """SELECT count(*) AS n, max(memory.pg.upper('ß' || now)) AS s, memory.pg.chars(count(*), 'FMRN')
                      || memory.pg.date_of('5 may 2024', 'DD Mon YYYY') || memory.pg.chars(now()::TIMESTAMP, '"q"TH')
                      || memory.pg.format_of('%2$*1$s', ['3', 'x']) || octet_length(memory.pg.sha512('a'::BLOB)) AS t
               FROM "state" """,
            made(tmp_path / "view"),
        ),
    )
    bad = Task((Step("x", "SELECT CAST('a' AS INTEGER) AS x", made(tmp_path / "x")),))
    program = """if True:
        import pickle, sys
        import pyarrow as pa
        assert "sparkwave" not in sys.modules
        run = pickle.load(sys.stdin.buffer)
        for batch in run(iter([pa.RecordBatch.from_pydict({"id": [n]}) for n in (0, 1)])):
            print(*batch.column(0).to_pylist(), sep="\\n")
        assert "sparkwave" not in sys.modules
    """
    tasks = [Task(steps, (0, 5_000_000), functions=needed_functions(step.query for step in steps)), bad]
    function = kernel.function(spark_engine._kernel_code(), SETUP, tasks)
    sent = cloudpickle.dumps(function, pickle.DEFAULT_PROTOCOL)
    done = subprocess.run(
        [sys.executable, "-P", "-c", program], input=sent, cwd=tmp_path, capture_output=True, check=False,
        env={"PYTHONPATH": "", "SPARK_LOCAL_DIRS": str(tmp_path)},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr.decode()
    *answers, failed = done.stdout.decode().splitlines()
    files = kernel.read_answers(answers).files
    assert [(file.step, file.rows) for file in files] == [("state", 10), ("none", 0), ("view", 1)]
    assert all(os.path.getsize(file.path) == file.size for file in files)
    [row] = duckdb.sql(f"FROM '{files[-1].path}'").fetchall()
    assert row == (10, "ß1970-01-01 00:00:05+00", "X2024-05-05qTH  x64")
    assert duckdb.sql(f"SELECT DISTINCT half FROM '{files[0].path}'").fetchall() == [(3,)]
    with pytest.raises(kernel.TaskError, match="Could not convert string 'a'") as raised:
        kernel.read_answers([*answers, failed])
    assert raised.value.kind == "ConversionException"


def test_rows_are_looked_through_only_if_an_expression_raises(tmp_path: Path) -> None:
    """Of what raised nothing is in the answer, and nothing is read afterwards."""
    for number, (value, rows) in enumerate((("'2'", 0), ("'x'", 1), ("'x'", 1))):
        read = f"FROM (VALUES ('1'), ({value})) AS v (s)"
        lenient, raising = (f"SELECT {cast}(s AS INTEGER) AS x {read}" for cast in ("TRY_CAST", "CAST"))
        check = (f"SELECT count(*) {read} WHERE TRY_CAST(s AS INTEGER) IS NULL", f"SELECT CAST(s AS INTEGER) {read}")
        steps = (
            Step("first", "SELECT 1 AS one", made(tmp_path / f"{number}_first")),
            Step("made", lenient, raising=raising) if number < 2 else Step("made", lenient, raising="SELECT nothing"),
            Step("last", "SELECT x, one FROM made, first", made(tmp_path / f"{number}_last")),
        )
        done = read_answers([json.dumps(answer) for answer in kernel._answers(SETUP, Task(steps, checks=(check,)))])
        assert done.failed == rows
        assert (done.reason or ("",))[0] == ("ConversionException" if rows else "")
        assert [file.step for file in done.files] == ["first", "last"]
        assert len(list(tmp_path.glob(f"{number}_*/*/*.parquet"))) == 2
        found = duckdb.sql(f"FROM read_parquet('{done.files[1].path}') ORDER BY ALL").fetchall()
        assert found == [(1, 1), (None if rows else 2, 1)]
    never = ("SELECT error('looked through')", "SELECT 1")
    steps = (Step("made", "SELECT error('not first')", made(tmp_path / "never"), raising="SELECT 1 AS x"),)
    [answer] = kernel._answers(SETUP, Task(steps, checks=(never,)))
    assert answer["rows"] == 1


def test_only_columns_of_few_values_have_a_dictionary(tmp_path: Path) -> None:
    step = Step("t", "SELECT i % 900 AS few, 'a' || i % 2000 AS many FROM range(100000) r(i)", made(tmp_path / "t"))
    with duckdb.connect() as connection:
        [file] = kernel.write(connection, step)
        found = connection.execute(f"SELECT path_in_schema, encodings FROM parquet_metadata('{file.path}')").fetchall()
    assert {column for column, encodings in found if "DICTIONARY" in encodings} == {"few"}


def test_what_is_no_matter_of_rows_is_not_tried_again(tmp_path: Path) -> None:
    """As a file that is not there."""
    raising = f"FROM read_parquet('{tmp_path}/nothing.parquet')"
    steps = (Step("made", "SELECT 1 AS x", made(tmp_path / "made"), raising=raising),)
    [answer] = kernel._answers(SETUP, Task(steps))
    assert answer["error"][0] == "IOException"


@pytest.mark.parametrize("by", [None, "x"])
def test_what_has_been_given_up_is_not_brought_back(tmp_path: Path, by: str | None) -> None:
    """A task that runs on when its files have been deleted makes none again, before and while it writes."""
    target = tmp_path / "job_1" / "step_0"
    target.mkdir(parents=True)
    calls: list[int] = []

    def gone() -> bool:
        calls.append(1)
        remove_tree(tmp_path / "job_1")
        return True

    cursor = duckdb.connect().cursor()
    cursor.create_function("gone", gone, [], "BOOLEAN", side_effects=True)  # type: ignore[arg-type]
    cursor.execute("SET threads = 1; SET preserve_insertion_order = false")
    step = Step("rows", "SELECT i AS x, i AS y FROM range(3) r(i) WHERE i >= 0 AND gone()", str(target), by)
    with contextlib.suppress(duckdb.IOException):
        kernel.write(cursor, step)
    assert calls and not list(tmp_path.iterdir())
    with pytest.raises(FileNotFoundError):
        kernel.write(cursor, step)
    assert not list(tmp_path.iterdir())


def test_a_tree_to_which_somebody_adds_is_removed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A task makes a directory right before the one that it is in goes."""
    target, rmdir, added = tmp_path / "step_0", os.rmdir, list[object]()

    def late(path: str | Path, **options: Any) -> None:
        if Path(path) == target and len(added) < 3:
            (target / str(len(added))).mkdir()
            added.append(path)
        rmdir(path, **options)

    target.mkdir()
    monkeypatch.setattr(os, "rmdir", late)
    remove_tree(target)
    assert len(added) == 3 and not target.exists()


def test_another_version_is_refused(tmp_path: Path) -> None:
    setup = Setup("1.0.0", 1, 256, (), TASK_SCRIPT)
    with pytest.raises(RuntimeError, match=r"this node has duckdb .*, and the server has 1\.0\.0"):
        kernel._answers(setup, Task((Step("x", "SELECT 1 AS x", made(tmp_path / "x")),)))


def test_secrets_are_not_shown() -> None:
    assert "hidden" not in repr(Setup("1", 1, 1, (), "", ("hidden",)))
    bad = Setup(ENGINE_VERSION, 1, 256, (), TASK_SCRIPT, ("CREATE SECRET s (TYPE s3, SECRET 'hidden' and more)",))
    with pytest.raises(RuntimeError, match="the keys of the files cannot be used") as raised:
        kernel._database(bad)
    assert "hidden" not in "".join(traceback.format_exception(raised.value))


def test_sql_is_a_plain_text_for_a_worker() -> None:
    """Workers have the kernel and none of the planner's modules."""
    sent = pickle.loads(pickle.dumps(Sql("FROM t", ["t"])))
    assert (sent, type(sent)) == ("FROM t", str)
