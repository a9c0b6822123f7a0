"""Views that do not read one another are computed side by side, on cursors of their own."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from unittest import mock

import pytest
from test_law import check, no_failures, opened, run

from sparkwave.catalog.errors import Error
from sparkwave.catalog.lake.ducklake import Cursor, Lake
from sparkwave.catalog.lake.storage import Storage
from sparkwave.executor.epochs.advance import Advance
from sparkwave.executor.epochs.duckdb_engine import Ready
from sparkwave.executor.epochs.side_by_side import Side, Sides
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


def test_views_are_computed_on_several_threads(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each by its own one; a view over others waits for these, and all of them are of one epoch."""
    monkeypatch.setattr(Sides, "balance", lambda _sides, _own_s: None)
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


def test_one_that_fails_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The others go on, also those that are computed meanwhile, and it catches up."""
    usually_took = Sides.took
    # The last two views take longer, so that one of them is not the coordinator's.
    monkeypatch.setattr(Sides, "took", lambda sides, view_id, _: usually_took(sides, view_id, 1.1**view_id))
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
    """Over those that can be computed meanwhile; what reads a view is not."""
    with opened(tmp_path, **IN_PROCESS) as (context, client):
        make(client)
        catalog = context.store.catalog
        views = {relation.name: relation for relation in catalog.relations if relation.is_streaming}
        sides = Sides(context.lake, 2)
        assert not any(sides.of(view, catalog) for view in views.values())
        seconds = {"v0": 0.001, "v1": 0.008, "v2": 0.004, "v3": 0.004}
        for name, taken in seconds.items():
            sides.took(views[name].id, taken)
        beside = {name for name in seconds if sides.of(views[name], catalog) is not None}
        assert 0.008 <= sum(map(seconds.__getitem__, beside)) < 0.01
        sides.keep(())
        for name in ("v0", "w"):
            sides.took(views[name].id, 0.1)
        assert not any(sides.of(views[name], catalog) for name in ("v0", "w"))
        sides.close()


def test_a_view_moves_to_a_cursor_that_takes_less_time(tmp_path: Path) -> None:
    """After three uneven epochs, and after the next move only after six."""
    with opened(tmp_path, **IN_PROCESS) as (context, client):
        make(client)
        catalog = context.store.catalog
        views = {relation.name: relation for relation in catalog.relations if relation.is_streaming}
        names = ["v0", "v1", "v2", "v3"]
        sides = Sides(context.lake, 2)

        def epoch(*seconds: float) -> set[str]:
            own_s = 0.0
            beside = {name for name in names if sides.of(views[name], catalog) is not None}
            for name, taken in zip(names, seconds, strict=True):
                sides.took(views[name].id, taken)
                own_s += 0.0 if name in beside else taken
            sides.balance(own_s)
            return {name for name in names if sides.of(views[name], catalog) is not None}

        placed = epoch(0.1, 0.1, 0.1, 0.1)
        assert len(placed) == 2
        large, small = (name for name in names if name not in placed)
        taken = [{large: 0.3, small: 0.05}.get(name, 0.1) for name in names]
        assert [epoch(*taken) == placed for _ in range(2)] == [True, True]
        moved = epoch(*taken)
        assert moved == placed | {small}
        assert [epoch(*[0.3 if name in moved else 0.0 for name in names]) == moved for _ in range(6)] == [True] * 5 + [
            False
        ]
        sides.close()


def test_a_side_has_a_time_limit(tmp_path: Path) -> None:
    """As the coordinator's own cursor has."""
    lake = Lake(Storage(tmp_path))
    side = Side(lake, 1)

    def count() -> None:
        with side.time_limit.of(side.cursor, 0.2):
            side.cursor.execute("SELECT count(*) FROM range(1000000000000)").fetchall()

    with pytest.raises(Error, match=r"longer than 0\.2 s"):
        side.submit(count).result(20)
    side.close()
    lake.close()
