"""DuckDB has one thread until there is large work."""

from __future__ import annotations

import math
import os
import threading
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from sparkwave.catalog.lake.duckdb_threads import ALL_ROOM, Room
from sparkwave.catalog.lake.ducklake import Lake
from sparkwave.catalog.lake.storage import Storage
from sparkwave.catalog.names import LakeTable
from sparkwave.server.context import open_context
from sparkwave.server.dispatch import Client
from sparkwave.server.operations.config import Config


def threads(lake: Lake) -> int:
    [(found,)] = lake.cursor().execute("SELECT current_setting('threads')").fetchall()
    return int(found)


@pytest.fixture
def lake(tmp_path: Path) -> Iterator[Lake]:
    with closing(Lake(Storage(tmp_path), threads=3)) as opened:
        yield opened


def test_threads_stay_once_they_are_there(lake: Lake) -> None:
    assert threads(lake) == 1
    lake.threads.provide(lambda: 1000)
    assert threads(lake) == 1
    lake.threads.provide(lambda: 1_000_000)
    lake.threads.provide(lambda: 1)
    assert threads(lake) == 3


@pytest.mark.skipif(len(ALL_ROOM.cores) < 2, reason="needs Linux and two cores")
def test_less_room(lake: Lake) -> None:
    """DuckDB's own threads have the least room of any confined thread, also if they start later."""
    first, *others = sorted(ALL_ROOM.cores)
    one, some = Room(frozenset((first,)), ALL_ROOM.niceness), Room(frozenset(others), ALL_ROOM.niceness)
    is_over = threading.Event()
    waiting = [threading.Thread(target=is_over.wait) for _ in range(2)]
    for thread in waiting:
        thread.start()
    a, b = (thread.native_id or 0 for thread in waiting)

    def cores(*ids: int) -> set[frozenset[int]]:
        return {frozenset(os.sched_getaffinity(id_)) for id_ in ids}

    lake.threads.confine(a, one)
    lake.threads.provide(lambda: 1_000_000)
    own = lake.threads.own
    assert len(own) == 2
    assert not own & {thread.native_id for thread in threading.enumerate()}
    assert cores(a, *own) == {one.cores}
    assert cores(b, threading.get_native_id()) == {ALL_ROOM.cores}
    lake.threads.confine(b, some)
    assert (cores(b), cores(*own)) == ({some.cores}, {one.cores})
    lake.threads.confine(a, None)
    assert (cores(a), cores(*own)) == ({ALL_ROOM.cores}, {some.cores})
    lake.threads.confine(b, None)
    assert cores(a, b, *own) == {ALL_ROOM.cores}
    is_over.set()


def test_estimates(lake: Lake) -> None:
    cursor, table, rows = lake.cursor(), LakeTable("main", 'a "b"'), lake.row_estimates
    with lake.transaction(cursor):
        cursor.execute(f"CREATE TABLE {table.sql} AS SELECT range AS i FROM range(1000)")
    assert rows.of(f"SELECT * FROM {table.sql} AS a JOIN {table.sql} AS b USING (i) LIMIT 9") == 1000
    assert rows.of_table(table) == 1000
    assert rows.of("SELECT 123456789") == rows.of('FROM lake."main"."unknown"') == 0
    assert rows.of("FROM generate_series(1, 4000000)") == 4_000_000


@pytest.mark.parametrize(
    "statement",
    [
        "SELECT count(*) FROM many",
        "DELETE FROM many WHERE i < 0",
        "INSERT INTO few SELECT i FROM many",
        "INSERT INTO few SELECT i FROM generate_series(1, 300000) AS s (i)",
        "CREATE MATERIALIZED VIEW summed AS SELECT sum(i) AS s FROM many",
    ],
)
def test_large_statements_have_all_threads(tmp_path: Path, statement: str) -> None:
    config = Config(data=tmp_path / "lake", spark_start="on_demand", duckdb_threads=3)
    parameters = {"backfill_engine": "auto", "backfill_in_process_rows": "1000000"}
    with closing(open_context(config, parameters)) as context:
        client = Client(context, {"user": "root"})

        def run(sql: str) -> None:
            client.execute(client.prepare(sql, ()), ()).close()

        run("CREATE TABLE few (i int)")
        run("CREATE TABLE many (i int)")
        run("INSERT INTO few VALUES (1), (2)")
        run("CREATE MATERIALIZED VIEW counted AS SELECT count(*) AS n FROM few")
        run("INSERT INTO few SELECT i + 2 FROM few")
        run("FLUSH")
        run("SELECT * FROM few, counted")
        assert threads(context.lake) == 1
        with context.lake.transaction(cursor := context.lake.cursor()):
            stored = context.store.catalog.find("dev", "public", "many").lake_name
            cursor.execute(f"INSERT INTO {stored} SELECT range FROM range(300000)")
        context.lake.row_estimates._read_at = -math.inf
        run(statement)
        assert threads(context.lake) == 3
