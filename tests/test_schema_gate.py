"""Queries wait while one thread reads a new schema of the lake (`catalog.lake.schema_gate`)."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import duckdb
import pytest
from servers import with_lake

from sparkwave.catalog.lake.ducklake import Lake
from sparkwave.catalog.lake.storage import Storage

SOON_S, LATE_S = 0.3, 20


@pytest.fixture
def lake(tmp_path: Path) -> Iterator[Lake]:
    with closing(Lake(Storage(with_lake(tmp_path / "data")))) as made:
        yield made


@pytest.fixture
def reading(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> threading.Event:
    """Set, it lets the thread go on that reads the schema."""
    goes_on, read = threading.Event(), lake._read_schema

    def delayed() -> None:
        assert goes_on.wait(LATE_S)
        read()

    monkeypatch.setattr(lake, "_read_schema", delayed)
    return goes_on


def _counted(lake: Lake) -> int:
    [(count,)] = lake.cursor().execute("SELECT count(*) FROM duckdb_tables() WHERE table_name = 'made'").fetchall()
    return int(count)


def _change(lake: Lake, statement: str) -> None:
    with lake.transaction(lake.cursor()) as cursor:
        cursor.execute(statement)


def _waits(future: Future[object]) -> bool:
    with pytest.raises(TimeoutError):
        future.result(SOON_S)
    return True


def test_queries_and_transactions_wait_for_the_new_schema(lake: Lake, reading: threading.Event) -> None:
    with ThreadPoolExecutor(2) as threads:
        _change(lake, "CREATE TABLE lake.main.made (a INT)")
        query = threads.submit(_counted, lake)
        transaction = threads.submit(_change, lake, "ALTER TABLE lake.main.made ADD COLUMN b INT")
        assert _waits(query) and _waits(transaction)
        reading.set()
        assert query.result(LATE_S) == 1
        transaction.result(LATE_S)


def test_a_change_of_rows_closes_no_gate(lake: Lake, reading: threading.Event) -> None:
    reading.set()
    _change(lake, "CREATE TABLE lake.main.made (a INT)")
    assert _counted(lake) == 1
    reading.clear()
    _change(lake, "INSERT INTO lake.main.made VALUES (1)")
    assert _counted(lake) == 1


def test_a_failed_commit_opens_the_gate(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    cursor = lake.cursor()
    with pytest.raises(duckdb.Error), lake.transaction(cursor):
        cursor.execute("CREATE TABLE lake.main.made (a INT)")
        monkeypatch.setattr(cursor, "commit", _fail, raising=False)
    assert _counted(lake) == 0


def _fail() -> None:
    raise duckdb.IOException("no space left")
