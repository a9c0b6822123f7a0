"""Views that do not read one another are computed side by side, on cursors of their own."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from unittest import mock

import pytest
from test_law import check, no_failures, opened, run

from sparkwave.catalog.lake.ducklake import Cursor, Lake
from sparkwave.catalog.lake.storage import Storage
from sparkwave.catalog.lake.translation import DuckDBError
from sparkwave.executor.epochs.advance import Advance
from sparkwave.executor.epochs.duckdb_engine import Ready
from sparkwave.executor.epochs.side_by_side import _FIRST, Sides
from sparkwave.server.dispatch import Client

QUERIES = {f"v{n}": f"SELECT g, count(*) AS n, sum(v + {n}) AS total FROM t GROUP BY g" for n in range(4)}
OVER = {"w": "SELECT v0.g, v0.n, v1.total FROM v0 JOIN v1 USING (g)"}
IN_PROCESS = {"streaming_engine": "duckdb", "backfill_engine": "auto"}


@contextmanager
def computed() -> Iterator[dict[str, set[str]]]:
    """The names of the threads that compute views while entered, by view."""
    threads: dict[str, set[str]] = {}
    usual = Ready.run

    def noted(ready: Ready, by: Cursor) -> Advance:
        threads.setdefault(ready.view.relation.name, set()).add(threading.current_thread().name)
        return usual(ready, by)

    with mock.patch.object(Ready, "run", noted):
        yield threads


def make(client: Client) -> None:
    run(client, "CREATE TABLE t (k int PRIMARY KEY, g int, v int)")
    run(client, "INSERT INTO t SELECT i, i % 7, i FROM range(100) AS r (i)")
    for name, query in (QUERIES | OVER).items():
        run(client, f"CREATE MATERIALIZED VIEW {name} AS {query}")
    for step in range(3):
        change(client, 1000 + step)
        run(client, "FLUSH")


def change(client: Client, step: int) -> None:
    run(client, f"INSERT INTO t VALUES ({10000 + step}, {step}, 1)")
    run(client, f"UPDATE t SET v = v + {step}, g = (g + 1) % 7 WHERE k % 3 = {step % 3}")
    run(client, f"DELETE FROM t WHERE k = {step}")


def test_views_are_computed_on_several_threads(tmp_path: Path) -> None:
    """Each by its own one; a view over others waits for these, and all of them are of one epoch."""
    with opened(tmp_path, **IN_PROCESS) as (_, client), no_failures():
        make(client)
        with computed() as threads:
            for step in range(8):
                change(client, step)
                run(client, "FLUSH")
                check(client, QUERIES | OVER, str(step))
        assert threads.keys() == QUERIES.keys() | OVER.keys()
        assert all(len(names) == 1 for names in threads.values()), threads
        assert len(set().union(*threads.values())) >= 2


def test_one_that_fails_there(tmp_path: Path) -> None:
    """The others go on, also those that are computed meanwhile, and it catches up."""
    with opened(tmp_path, **IN_PROCESS) as (context, client):
        make(client)
        with computed() as threads:
            change(client, 0)
            run(client, "FLUSH")
        beside = next(name for name in QUERIES if threads[name] != {"coordinator"} and name not in ("v0", "v1"))
        usual = Ready.run

        def failing(ready: Ready, by: Cursor) -> Advance:
            if ready.view.relation.name == beside:
                by.execute("SELECT error('is out of order')")
            return usual(ready, by)

        with mock.patch.object(Ready, "run", failing):
            change(client, 1)
            context.coordinator.barrier()
        behind = [job for job in context.store.catalog.jobs if job.is_behind]
        assert [context.store.catalog.by_id[job.id].name for job in behind] == [beside]
        check(client, {name: query for name, query in (QUERIES | OVER).items() if name != beside}, "meanwhile")
        context.coordinator.behind.hurry()
        context.coordinator.barrier()
        check(client, QUERIES | OVER, "after")


def test_views_are_spread_by_their_times(tmp_path: Path) -> None:
    lake = Lake(Storage(tmp_path))
    sides = Sides(lake, 2)
    seconds = {1: 0.001, 2: 0.008, 3: 0.004, 4: 0.004}
    for view_id, computing_s in seconds.items():
        sides.took(view_id, 0.0, 1.0)  # the first time tells nothing
        assert sides.of(view_id) is None
        for _ in range(_FIRST):
            sides.took(view_id, 0.0, computing_s)
    beside = {view_id for view_id in seconds if sides.of(view_id) is not None}
    assert 0.008 <= sum(seconds[view_id] for view_id in beside) < 0.01
    sides.keep([2])
    sides.took(5, 0.0, 0.1)
    assert sides.of(5) is None
    sides.close()
    lake.close()


def test_a_side_has_a_time_limit(tmp_path: Path) -> None:
    """As the coordinator's own cursor has."""
    lake = Lake(Storage(tmp_path))
    sides = Sides(lake, 2)
    for view_id in (1, 2):
        for _ in range(_FIRST):
            sides.took(view_id, 0.0, 1.0)
    side = next(side for side in map(sides.of, (1, 2)) if side is not None)

    def count() -> None:
        with side.time_limit.of(side.cursor, 0.2):
            side.cursor.execute("SELECT count(*) FROM range(1000000000000)").fetchall()

    with pytest.raises(Exception, match=r"longer than 0\.2 s") as raised:
        side.submit(count).result(20)
    assert not isinstance(raised.value, DuckDBError)
    sides.close()
    lake.close()
