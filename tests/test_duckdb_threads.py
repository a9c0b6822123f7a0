"""DuckDB has one thread until there is large work, and one that works after it."""

from __future__ import annotations

import math
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest
from servers import wait_until, with_lake

from sparkwave.catalog.lake import duckdb_threads, resting_threads
from sparkwave.catalog.lake.duckdb_threads import ALL_ROOM, LINGER_S, Room
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
    with closing(Lake(Storage(with_lake(tmp_path)), threads=3)) as opened:
        yield opened


def test_threads_stay_once_they_are_there(lake: Lake) -> None:
    assert threads(lake) == 1
    lake.threads.provide(lambda: 1000)
    assert threads(lake) == 1
    lake.threads.provide(lambda: 1_000_000)
    lake.threads.provide(lambda: 1)
    assert threads(lake) == 3


def seconds_of_own(lake: Lake, run: Callable[[], object]) -> float:
    """The processor time of DuckDB's own threads meanwhile, in seconds."""

    def now() -> float:
        stats = (Path(f"/proc/self/task/{id_}/schedstat").read_text() for id_ in lake.threads.own)
        return sum(int(stat.split()[0]) for stat in stats) / 1e9

    before = now()
    run()
    return now() - before


def rest(lake: Lake) -> None:
    """Wait until all of DuckDB's threads rest."""
    assert wait_until(lambda: lake.threads.resting == lake.threads.most, 10)


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_threads_rest_after_large_work(lake: Lake) -> None:
    small, large = lake.cursor(), lake.cursor()
    small.execute("CREATE TEMP TABLE t AS SELECT i % 7 AS i FROM range(3000000) AS r (i)")

    def query() -> object:
        return [small.execute("SELECT i, count(*) FROM t GROUP BY i").fetchall() for _ in range(5)]

    lake.threads.provide(lambda: 1_000_000, large)
    assert seconds_of_own(lake, query) > 0.01
    time.sleep(1.5 * LINGER_S)
    assert seconds_of_own(lake, query) > 0.01, "they work as long as the large work's cursor is there"
    del large
    rest(lake)
    assert seconds_of_own(lake, query) < 0.005
    with lake.threads.during(lambda: 1_000_000):
        assert seconds_of_own(lake, query) > 0.01
    rest(lake)
    lake.threads.provide(lambda: 1000, small)
    assert seconds_of_own(lake, query) < 0.005, "small work does not wake them"


def test_rests_end_again_and_again(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    """A rest's transaction would keep DuckDB from forgetting deleted rows."""
    monkeypatch.setattr(resting_threads, "_LONGEST_S", 0.05)
    monkeypatch.setattr(duckdb_threads, "LINGER_S", 0.0)
    lake.threads.provide(lambda: 1_000_000)
    rest(lake)
    held = lake.threads._rest
    assert held is not None
    assert wait_until(lambda: held.count > 5, 10)


@pytest.mark.parametrize("ending", ["", "lake.close()", "sys.exit(3)", "raise SystemError"])
def test_a_process_ends_while_threads_rest(tmp_path: Path, ending: str) -> None:
    code = (
        "import sys, time; from pathlib import Path\n"
        "from sparkwave.catalog.lake.ducklake import Lake; from sparkwave.catalog.lake.storage import Storage\n"
        f"lake = Lake(Storage(Path({str(tmp_path)!r})), threads=3); lake.threads.provide(lambda: 1000000)\n"
        f"while lake.threads.resting < 3: time.sleep(0.01)\n{ending}"
    )
    done = subprocess.run([sys.executable, "-c", code], timeout=30, capture_output=True)
    assert done.returncode == {"": 0, "lake.close()": 0, "sys.exit(3)": 3, "raise SystemError": 1}[ending], done.stderr


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
