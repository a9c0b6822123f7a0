"""Views that do not read one another are computed side by side, on cursors of their own."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import Future
from contextlib import closing, contextmanager
from functools import partial
from pathlib import Path
from unittest import mock

import pytest
from test_law import check, no_failures, opened, run

from sparkwave.catalog.errors import Error
from sparkwave.catalog.lake.ducklake import Cursor, Lake
from sparkwave.catalog.lake.storage import Storage
from sparkwave.catalog.model import Relation
from sparkwave.executor.epochs.advance import Advance
from sparkwave.executor.epochs.duckdb_engine import Ready
from sparkwave.executor.epochs.engines import Engines
from sparkwave.executor.epochs.side_by_side import Sides
from sparkwave.executor.epochs.time_limit import TimeLimit
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
    """A view over others waits for these, and all of them are of one epoch."""
    with opened(tmp_path, **IN_PROCESS) as (_, client), no_failures():
        make(client)
        with computed() as threads:
            for step in range(8):
                change(client, step)
                run(client, "FLUSH")
                check(client, QUERIES | OVER, str(step))
        assert threads.keys() == QUERIES.keys() | OVER.keys()
        assert len(set().union(*threads.values())) >= 2


def test_one_that_fails_there(tmp_path: Path) -> None:
    """The others go on, also those that are computed meanwhile, and it catches up."""
    with opened(tmp_path, **IN_PROCESS) as (context, client):
        make(client)
        beside = "v2"
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


def test_times_are_those_of_each_view(tmp_path: Path) -> None:
    """One that catches up has an earlier old time than one whose computation waits meanwhile."""
    query = "SELECT count(*) AS n FROM t WHERE at > now() - INTERVAL '1 hour'"
    with opened(tmp_path, **IN_PROCESS) as (context, client):
        run(client, "CREATE TABLE t (k int PRIMARY KEY, at timestamptz)")
        times = "now() - INTERVAL '1 hour' + i * INTERVAL '30 milliseconds'"
        run(client, f"INSERT INTO t SELECT i, {times} FROM generate_series(1, 300) AS r (i)")
        for name in ("late", "timely"):
            run(client, f"CREATE MATERIALIZED VIEW {name} AS {query}")
        usual, failures = Ready.run, [True]

        def failing(ready: Ready, by: Cursor) -> Advance:
            if ready.view.relation.name == "late" and failures[-1]:
                by.execute("SELECT error('is out of order')")
            return usual(ready, by)

        with mock.patch.object(Ready, "run", failing), mock.patch.object(Engines, "soonest_first", by_name):
            for is_failure in (True, True, False, False):
                failures.append(is_failure)
                time.sleep(0.5)
                context.coordinator.behind.hurry()
                context.coordinator.barrier()
        [(late,)], [(timely,)] = (run(client, f"SELECT n FROM {name}") for name in ("late", "timely"))
        assert late == timely < 280


def by_name(_engines: Engines, views: Sequence[Relation]) -> list[Relation]:
    return sorted(views, key=lambda view: view.name, reverse=True)


def held(sides: Sides, view_ids: Sequence[int], seconds: float, own: int = 0) -> dict[int, str]:
    """Run a task for each view, which takes so long, the last `own` of them only by the coordinator's own cursor.

    Returns the threads that ran them, by view.
    """
    threads: dict[int, str] = {}

    def compute(id_: int, _cursor: Cursor, _limit: TimeLimit) -> None:
        threads[id_] = threading.current_thread().name
        time.sleep(seconds)

    alone = {*view_ids[len(view_ids) - own :]}
    tasks = [sides.submit(partial(compute, id_), id_, id_ not in alone) for id_ in view_ids]
    for task in tasks:
        sides.complete(task, mock.MagicMock(), TimeLimit())
    sides.clear()
    return threads


def test_cursors_share_the_work(tmp_path: Path) -> None:
    """A view moves to a cursor that has nothing to do, and stays there; some tasks are for the coordinator alone."""
    lake = Lake(Storage(tmp_path))
    with closing(lake), closing(Sides(lake, 2)) as sides:
        views = range(8)
        found = [held(sides, views, 0.02, own=2) for _ in range(6)]
        assert all(threads.keys() == {*views} for threads in found)
        assert all({threads[6], threads[7]} == {"MainThread"} for threads in found)
        assert [sorted(threads.values()).count("epoch 1") for threads in found[-2:]] == [4, 4]
        assert found[-1] == found[-2]
        uneven = [held(sides, [id_ for id_, name in found[-1].items() if name == "epoch 1"], 0.02) for _ in range(6)]
        assert [*uneven[-1].values()].count("epoch 1") == 2


@pytest.mark.parametrize("is_movable", [True, False])
@pytest.mark.parametrize("cursors", [1, 2, 3])
def test_what_several_need_goes_first(tmp_path: Path, cursors: int, is_movable: bool) -> None:
    """A task waits for what it needs, on any cursor. One that fails lets the tasks fail that ask for its result."""
    lake = Lake(Storage(tmp_path))
    with closing(lake), closing(Sides(lake, cursors)) as sides:
        order: list[str] = []

        def shared(_cursor: Cursor, _limit: TimeLimit) -> int:
            time.sleep(0.05)
            order.append("shared")
            raise Error("is out of order")

        def view(needed: Future[int], _cursor: Cursor, _limit: TimeLimit) -> int:
            order.append("view")
            return needed.result()

        before = [sides.submit(lambda *_: time.sleep(0.01), id_, True) for id_ in range(3)]
        first = sides.submit(lambda *_: time.sleep(0.02), None, True)
        needed = sides.submit(shared, None, is_movable, [first.future])
        tasks = [sides.submit(partial(view, needed.future), id_, True, [needed.future]) for id_ in range(3, 6)]
        for task in [*before, *tasks]:
            sides.complete(task, mock.MagicMock(), TimeLimit())
        assert order == ["shared", "view", "view", "view"]
        assert [task.future.exception() is not None for task in [*before, *tasks]] == [False] * 3 + [True] * 3


def test_stopping_forgets_what_has_not_begun(tmp_path: Path) -> None:
    """And waits for what has."""
    lake = Lake(Storage(tmp_path))
    with closing(lake), closing(Sides(lake, 2)) as sides:
        held(sides, range(4), 0.01)
        has_begun = threading.Event()

        def compute(*_: object) -> None:
            has_begun.set()
            time.sleep(0.1)

        tasks = [sides.submit(compute, id_, True) for id_ in range(50, 54)]
        assert has_begun.wait(10)
        sides.clear()
        assert 1 <= [task.future.done() for task in tasks].count(True) < 4


def test_a_side_has_a_time_limit(tmp_path: Path) -> None:
    """As the coordinator's own cursor has."""
    lake = Lake(Storage(tmp_path))

    def count(cursor: Cursor, limit: TimeLimit) -> None:
        with limit.of(cursor, 0.2):
            cursor.execute("SELECT count(*) FROM range(1000000000000)").fetchall()

    with closing(lake), closing(Sides(lake, 2)) as sides, pytest.raises(Error, match=r"longer than 0\.2 s"):
        sides.submit(count, None, True).future.result(20)
