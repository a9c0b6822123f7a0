"""The log of the catalog's file is written into the file beside transactions, and never by a COMMIT."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import pytest
from test_retention import opened, run

from sparkwave.catalog.lake import catalog_log
from sparkwave.catalog.lake.catalog_log import checkpoint_once
from sparkwave.catalog.lake.ducklake import Cursor, Lake
from sparkwave.catalog.lake.places import log_of
from sparkwave.catalog.names import BUFFER, EPOCHS_SCHEMA, METADATA


def log_bytes(lake: Lake) -> int:
    log = log_of(lake.storage.catalog_file)
    return log.stat().st_size if log.exists() else 0


def checkpoints(cursor: Cursor) -> list[tuple[object, ...]]:
    return cursor.execute("SELECT message FROM duckdb_logs WHERE type = 'Checkpoint'").fetchall()


def test_it_is_written_beside_transactions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with opened(tmp_path) as (context, client):
        lake = context.lake
        run(client, "CREATE TABLE t (k int, v varchar)", "INSERT INTO t VALUES (1, 'one'), (2, 'two')")
        before = log_bytes(lake)
        assert before > 0
        assert not checkpoint_once(lake)
        assert log_bytes(lake) == before  # it is short
        monkeypatch.setattr(catalog_log, "MOST_BYTES", before - 1)
        with lake.transaction(lake.cursor()) as writing:
            writing.execute("INSERT INTO lake.\"dev.public\".t VALUES (3, 'three')")
            checkpoint_once(lake)
            assert log_bytes(lake) < before
        assert run(client, "SELECT * FROM t ORDER BY k") == [(1, "one"), (2, "two"), (3, "three")]
    with opened(tmp_path) as (_, client):
        assert run(client, "SELECT * FROM t ORDER BY k") == [(1, "one"), (2, "two"), (3, "three")]


def test_a_commit_writes_none(tmp_path: Path) -> None:
    """Neither one of the catalog, nor one of tables in memory."""
    with opened(tmp_path) as (context, _), closing(context.lake.cursor()) as cursor:
        cursor.execute("CALL enable_logging(level = 'debug')")
        for table in (f"{BUFFER}.{EPOCHS_SCHEMA}.many", f"{METADATA}.many"):
            cursor.execute(f"CREATE TABLE {table} (k int, v varchar)")
            for start in range(0, 1_200_000, 60_000):
                cursor.execute(
                    f"INSERT INTO {table} SELECT k, 'value ' || k FROM range({start}, {start + 60_000}) r(k)"
                )
        assert log_bytes(context.lake) > catalog_log.MOST_BYTES
        assert not checkpoints(cursor)
        checkpoint_once(context.lake)
        assert checkpoints(cursor)
        assert log_bytes(context.lake) < 1_000_000
