"""A COMMIT that began before another one is tried again at once, because all other commits wait for it."""

from __future__ import annotations

import time
from contextlib import closing
from pathlib import Path

from servers import with_lake

from sparkwave.catalog.lake.ducklake import Lake
from sparkwave.catalog.lake.storage import Storage
from sparkwave.catalog.names import LakeTable

LONG, SHORT = LakeTable("main", "long"), LakeTable("main", "short")


def overtaken(lake: Lake, number: int) -> float:
    """Commit a row of one table while the transaction of another one is open. Returns the seconds of its COMMIT."""
    cursor = lake.cursor()
    with lake.late_transaction(cursor, lambda: [LONG]):
        cursor.execute(f"INSERT INTO {LONG.sql} VALUES ({number})")
        with lake.transaction(other := lake.cursor()):
            other.execute(f"INSERT INTO {SHORT.sql} VALUES ({number})")
        began = time.monotonic()
    return time.monotonic() - began


def test_an_overtaken_commit_does_not_wait(tmp_path: Path) -> None:
    """DuckLake would wait for 50 ms or more before each second try."""
    with closing(Lake(Storage(with_lake(tmp_path)))) as lake:
        with lake.transaction(cursor := lake.cursor()):
            for table in (LONG, SHORT):
                cursor.execute(f"CREATE TABLE {table.sql} (i INT)")
        assert min(overtaken(lake, number) for number in range(10)) < 0.05
        for table in (LONG, SHORT):
            rows = cursor.execute(f"SELECT i FROM {table.sql} ORDER BY i").fetchall()
            assert rows == [(number,) for number in range(10)]
