"""Databases that an earlier version made."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from sparkwave.catalog.lake import migrating
from sparkwave.catalog.lake.ducklake import Lake
from sparkwave.catalog.lake.storage import Storage
from sparkwave.catalog.model import INITIAL, Column, Job, Relation, Watermark
from sparkwave.catalog.names import METADATA, LakeTable
from sparkwave.catalog.stores.job_store import add_job
from sparkwave.catalog.stores.migrations import MIGRATIONS
from sparkwave.catalog.stores.relation_store import create_relation
from sparkwave.catalog.stores.store import Store
from sparkwave.catalog.types import parse_type
from sparkwave.catalog.users import PUBLIC, Grant

FIRST_VERSION = """
INSERT INTO lake.sparkwave.relations VALUES
    (2000, 'dev', 'public', 't', 'table', 'CREATE TABLE t (k INT)', ['k'], [], true, 'root', now(), now());
INSERT INTO lake.sparkwave.columns VALUES (2000, 1, 'k', 'integer', false, true);
CREATE TABLE lake."dev.public".t (k INTEGER)
"""


def test_a_database_of_the_first_version_opens(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patched:
        patched.setattr(migrating, "MIGRATIONS", MIGRATIONS[:1])
        old = Lake(Storage(tmp_path))
        old.cursor().execute(FIRST_VERSION)
        old.close()
    for _ in range(2):
        opened = Lake(Storage(tmp_path))
        try:
            store = Store(opened)
            [relation] = [r for r in store.catalog.relations if r.id == 2000]
            assert (relation.name, relation.append_only, relation.watermark) == ("t", False, None)
            assert relation.made_as == LakeTable("dev.public", "t")
        finally:
            opened.close()


def test_functions_of_earlier_versions_may_be_called(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    step = next(number for number, text in enumerate(MIGRATIONS) if "default_grants" in text)
    with monkeypatch.context() as patched:
        patched.setattr(migrating, "MIGRATIONS", MIGRATIONS[:step])
        old = Lake(Storage(tmp_path))
        old.cursor().execute(
            "INSERT INTO lake.sparkwave.functions VALUES "
            "(2001, 'dev', 'public', 'f', 'root', [], [], 'integer', '1', 'CREATE FUNCTION f() …')"
        )
        old.close()
    opened = Lake(Storage(tmp_path))
    catalog = Store(opened).catalog
    opened.close()
    assert catalog.grants_on[2001] == {Grant(2001, PUBLIC, "EXECUTE", "root")}


def test_all_tables_have_statistics(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of one without them DuckLake asks its catalog about each column, with each statement that reads it."""
    with monkeypatch.context() as patched:
        patched.setattr(migrating, "MIGRATIONS", MIGRATIONS[:-1])
        Lake(Storage(tmp_path / "old")).close()
    for directory in ("old", "new"):
        opened = Lake(Storage(tmp_path / directory))
        metadata = f"{METADATA}.ducklake_table"
        [without] = opened.cursor().execute(
            f"SELECT list(table_name) FROM {metadata} t LEFT JOIN {metadata}_stats s USING (table_id) "
            "WHERE end_snapshot IS NULL AND s.table_id IS NULL"
        ).fetchone() or (None,)
        [jobs] = opened.cursor().execute("FROM lake.sparkwave.jobs").fetchall() or [None]
        opened.close()
        assert (without, jobs) == (None, None)


def system_tables(opened: Lake) -> tuple[list[Any], list[Any]]:
    cursor = opened.cursor()
    query = "FROM duckdb_columns() WHERE database_name = 'lake' AND schema_name = 'sparkwave'"
    columns = cursor.execute(f"SELECT table_name, column_name, data_type {query} ORDER BY 1, column_index").fetchall()
    rows = []
    # These have the time of their making, and each step that was made.
    for table in sorted({table for table, _, _ in columns} - {"epoch", "migrations"}):
        rows.append((table, cursor.execute(f"FROM lake.sparkwave.{table} ORDER BY ALL").fetchall()))
    return columns, rows


@pytest.mark.long
def test_all_steps_at_once_do_what_each_does(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(1, len(MIGRATIONS) + 1):
        with monkeypatch.context() as patched:
            patched.setattr(migrating, "MIGRATIONS", MIGRATIONS[:number])
            Lake(Storage(tmp_path / "old")).close()
    Lake(Storage(tmp_path / "new")).close()
    old, new = Lake(Storage(tmp_path / "old")), Lake(Storage(tmp_path / "new"))
    found = system_tables(old), system_tables(new)
    old.close()
    new.close()
    assert found[0] == found[1]


def test_what_later_versions_added_is_kept(tmp_path: Path) -> None:
    opened = Lake(Storage(tmp_path))
    store = Store(opened)
    column = Column("at", parse_type("timestamp"))
    watermark = Watermark("at", 5_000_000)
    made = Relation(
        7, "dev", "public", "t", "table", (column,), ("at",), "", True, append_only=True, watermark=watermark
    )
    job = Job(
        8, INITIAL, False, False, "default", "NoShuffle", None, None, None, 100, "bounded(4)", 2, ((1, 2), (3, 2))
    )
    with store.change() as cursor:
        create_relation(store, cursor, made)
        add_job(cursor, job)
    opened.close()
    opened = Lake(Storage(tmp_path))
    catalog = Store(opened).catalog
    opened.close()
    [relation] = catalog.relations
    assert (relation.append_only, relation.watermark) == (True, watermark)
    assert catalog.jobs == (job,)
