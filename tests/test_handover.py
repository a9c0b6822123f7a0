"""The last moment of a creating job: cancelled, recovered and stopped while it waits for its barrier."""

from __future__ import annotations

import shutil
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from servers import DUCKDB_THREADS, wait_until
from test_law import NoEpochs, without_epochs

from sparkwave.catalog.errors import OUT_OF_MEMORY, Error
from sparkwave.catalog.lake.ducklake import Cursor
from sparkwave.executor.backfill.creation import BackfillJob
from sparkwave.executor.epochs import delta_programs
from sparkwave.executor.epochs.advance import Advance, View
from sparkwave.executor.epochs.checkpoints import Checkpoints
from sparkwave.executor.epochs.duckdb_engine import Ready
from sparkwave.executor.epochs.engines import Engines
from sparkwave.executor.epochs.lookups import input_owner
from sparkwave.server.context import Context, open_context
from sparkwave.server.dispatch import Client
from sparkwave.server.operations.config import Config


@contextmanager
def waiting_job(directory: Path) -> Iterator[tuple[Context, Client, int, NoEpochs]]:
    """A filled job whose barrier does not come, because its lock is held."""
    context = open_context(
        Config(data=directory, spark_start="on_demand", duckdb_threads=DUCKDB_THREADS),
        {"backfill_engine": "auto", "barrier_interval_ms": "100"},
    )
    try:
        client = Client(context, {"user": "root"})
        run(client, "CREATE TABLE t (k int)", "INSERT INTO t VALUES (1), (2)", "SET background_ddl = true")
        with without_epochs(context) as held:
            run(client, "CREATE MATERIALIZED VIEW m AS SELECT k + 1 AS n FROM t")
            assert wait_until(lambda: state(client) == [("FINISHING",)], 10), state(client)
            [(job, text)] = run(client, "SELECT ddl_id, progress FROM rw_catalog.rw_ddl_progress")
            assert str(text).startswith("Finishing [epoch lag: ")
            yield context, client, int(str(job)), held
    finally:
        context.close()


def run(client: Client, *statements: str) -> list[tuple[object, ...]]:
    rows: list[tuple[object, ...]] = []
    for sql in statements:
        result = client.execute(client.prepare(sql, ()), ())
        rows = [r for b in result.batches or () for r in zip(*(c.to_pylist() for c in b.columns), strict=True)]
    return rows


def after_restart(directory: Path) -> list[tuple[object, ...]]:
    """The view's rows once a new server has finished it."""
    context = open_context(Config(data=directory, spark_start="on_demand", duckdb_threads=DUCKDB_THREADS), {})
    try:
        client = Client(context, {"user": "root"})
        return sorted(run(client, "WAIT", "SELECT n FROM m"))
    finally:
        context.close()


def state(client: Client) -> list[tuple[object, ...]]:
    return run(client, "SELECT state FROM rw_catalog.rw_backfill_status")


def in_background(action: Callable[[], object]) -> threading.Thread:
    thread = threading.Thread(target=action, daemon=True)
    thread.start()
    return thread


def test_its_sql_is_made_before(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The barrier that ends a creation does not plan the last change, for all running views wait meanwhile."""
    planned: list[str] = []
    fill, compile_delta = BackfillJob._fill, delta_programs.compile_delta

    def fill_then_insert(job: BackfillJob) -> None:
        fill(job)
        other = Client(contexts[0], {"user": "root"})
        run(other, "INSERT INTO t VALUES (3)")

    def noting(*arguments: Any, **named: Any) -> Any:
        planned.append(threading.current_thread().name)
        return compile_delta(*arguments, **named)

    opened, contexts = open_context, list[Context]()
    monkeypatch.setitem(globals(), "open_context", lambda *given: contexts.append(opened(*given)) or contexts[0])
    monkeypatch.setattr(BackfillJob, "_fill", fill_then_insert)
    monkeypatch.setattr(delta_programs, "compile_delta", noting)
    with waiting_job(tmp_path / "data") as (_, client, job, held):
        assert planned == [f"job-{job}"]
        held.end()
        run(client, "WAIT")
        held.begin()
        assert sorted(run(client, "SELECT n FROM m")) == [(2,), (3,), (4,)]
        assert planned == [f"job-{job}"]


def test_cancel(tmp_path: Path) -> None:
    """It takes the hand-over back, so the next barrier does not finish the job."""
    cancelled: list[int] = []
    with waiting_job(tmp_path / "data") as (context, client, job, held):
        thread = in_background(lambda: cancelled.extend(context.jobs.cancel((job,))))
        assert wait_until(lambda: not context.coordinator._handovers, 10)
        held.end()
        thread.join(10)
        held.begin()
        assert cancelled == [job]
        assert run(client, "SHOW JOBS") == []
        with pytest.raises(Error, match='"m" does not exist'):
            run(client, "SELECT * FROM m")


@pytest.mark.long
def test_recover(tmp_path: Path) -> None:
    """The job is resumed, asks again, and is finished once."""
    with waiting_job(tmp_path / "data") as (context, client, job, held):
        thread = in_background(lambda: run(client, "RECOVER"))
        assert wait_until(lambda: context.jobs._running[job].finished.is_set(), 10)
        held.end()  # which it waits for, as it would for a barrier
        thread.join(30)
        run(client, "WAIT")
        held.begin()
        assert sorted(run(client, "SELECT n FROM m")) == [(2,), (3,)]
        assert context.store.catalog.job_by_id[job].waiting is None


@pytest.mark.long
def test_close(tmp_path: Path) -> None:
    """A server that stops leaves the job to the next one."""
    with waiting_job(tmp_path / "data") as (context, _, job, _):
        context.jobs.close()
        assert context.store.catalog.job_by_id[job].status == "CREATING"
        context.coordinator.withdraw(job)
    assert after_restart(tmp_path / "data") == [(2,), (3,)]


def test_changes_while_it_waits(tmp_path: Path) -> None:
    """The last step reads the changes of a table twice, other columns each time."""
    query = "SELECT k AS n FROM u UNION ALL SELECT v FROM u UNION ALL SELECT w FROM u"
    with waiting_job(tmp_path) as (_, client, _, held):
        held.end()
        run(client, "WAIT", "CREATE TABLE u (k int, v int, w int)", "INSERT INTO u VALUES (1, 2, 3)")
        held.begin()
        run(client, "INSERT INTO u VALUES (4, 5, 6)")
        run(client, f"CREATE MATERIALIZED VIEW twice AS {query}")
        assert wait_until(lambda: set(state(client)) == {("FINISHING",)}, 10), state(client)
        run(client, "DELETE FROM u WHERE k = 1", "INSERT INTO u VALUES (7, 8, 9)")
        held.end()
        run(client, "WAIT")
        assert run(client, "SELECT n FROM twice ORDER BY n") == [(4,), (5,), (6,), (7,), (8,), (9,)]


@contextmanager
def taken_along(
    directory: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[tuple[Context, Client, int, Callable[[], None]]]:
    """A job whose view follows the barriers, and a function that lets it be stored as created."""
    may_store, store_all = threading.Event(), Checkpoints._store_all

    def waiting(checkpoints: Checkpoints) -> None:
        assert may_store.wait(30)
        store_all(checkpoints)

    with waiting_job(directory) as (context, client, job, held):
        monkeypatch.setattr(Checkpoints, "_store_all", waiting)
        held.end()
        assert wait_until(lambda: context.coordinator._buffer.creations == {job}, 10)

        def store() -> None:
            may_store.set()
            run(client, "WAIT", "FLUSH")

        try:
            yield context, client, job, store
        finally:
            may_store.set()
            held.begin()


def test_barriers_go_on_until_it_is_stored(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A barrier takes the view along in memory; further ones follow before a checkpoint marks it as created."""
    with taken_along(tmp_path / "data", monkeypatch) as (context, client, job, store):
        for k in (3, 4):
            run(client, f"INSERT INTO t VALUES ({k})", "FLUSH")
        assert not context.store.catalog.by_id[job].created
        with pytest.raises(Error, match='"m" is still being created'):
            run(client, "SELECT * FROM m")
        shutil.copytree(tmp_path / "data", tmp_path / "crashed")
        store()
        assert sorted(run(client, "SELECT n FROM m")) == [(2,), (3,), (4,), (5,)]
    assert after_restart(tmp_path / "crashed") == [(2,), (3,), (4,), (5,)]


def test_a_failure_before_it_is_stored(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A view that fails after its hand-over, and before the checkpoint, is created, left behind, and catches up."""
    failures, advance = [Error("as if memory had run out", OUT_OF_MEMORY)], Engines.advance

    def failing(engines: Engines, cursor: Cursor, view: View, *given: Any, **named: Any) -> Any:
        if view.relation.id in engines._buffer.creations and failures:
            raise failures.pop()
        return advance(engines, cursor, view, *given, **named)

    monkeypatch.setattr(Engines, "advance", failing)
    with taken_along(tmp_path, monkeypatch) as (_, client, _, store):
        run(client, "INSERT INTO t VALUES (3)")
        assert wait_until(lambda: not failures, 10)
        store()
        assert sorted(run(client, "SELECT n FROM m")) == [(2,), (3,), (4,)]


def test_it_has_no_time_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The last change of a creating view may take longer than an epoch of a created one."""
    run_ready = Ready.run

    def slow(ready: Ready, by: Cursor) -> Advance:
        if not context.store.catalog.by_id[ready.view.relation.id].created:
            by.execute("SELECT count(*) FROM range(300000000) r(i) WHERE hash(i) = 1").fetchall()
        return run_ready(ready, by)

    with waiting_job(tmp_path) as (context, client, job, held):
        monkeypatch.setattr(Ready, "run", slow)
        run(client, "ALTER SYSTEM SET view_time_limit_ms = 100", "INSERT INTO t VALUES (3)")
        held.end()
        assert wait_until(lambda: context.store.catalog.by_id[job].created, 30)
        run(client, "FLUSH")
        assert sorted(run(client, "SELECT n FROM m")) == [(2,), (3,), (4,)]
        held.begin()


def change_behind_the_fill(monkeypatch: pytest.MonkeyPatch, other: Client, *statements: str) -> None:
    """Let tables change after a job has read them."""
    fill = BackfillJob._fill

    def fill_then_change(job: BackfillJob) -> None:
        fill(job)
        run(other, *statements)

    monkeypatch.setattr(BackfillJob, "_fill", fill_then_change)


def test_what_it_looks_up_is_copied_before(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The barrier that ends a creation, and the next ones, find large groups and tables in memory, with an index."""
    with waiting_job(tmp_path) as (context, client, _, held):
        other, copies = Client(context, {"user": "root"}), context.coordinator._engines._copies

        held.end()
        rows = "SELECT i, i FROM generate_series(1, 60000) AS g(i)"
        run(client, "WAIT", *(f"CREATE TABLE {name} (k int, v int)" for name in "uw"))
        run(client, *(f"INSERT INTO {name} {rows}" for name in "uw"), "FLUSH")
        held.begin()
        change_behind_the_fill(monkeypatch, other, "INSERT INTO u VALUES (1, 1)")
        joined = "SELECT u.k, sum(u.v + w.v) AS v FROM u JOIN w ON u.k = w.k GROUP BY u.k"
        run(client, f"CREATE MATERIALIZED VIEW sums AS {joined}")
        assert wait_until(lambda: set(state(client)) == {("FINISHING",)}, 20), state(client)
        ahead = {copy.name: copy.indexed for _, copy in copies._ahead.values()}
        assert [*ahead.values()] == [set(), {"k"}]  # of the groups, and of w
        held.end()
        run(client, "WAIT")
        for k in (2, 3):
            run(client, f"INSERT INTO u VALUES ({k}, {k})", "FLUSH")
        held.begin()
        assert {copy.name: copy.indexed for copy in copies._copies.values() if copy.rows >= 60000} == ahead
        assert not copies._ahead
        assert run(other, "SELECT * FROM sums ORDER BY k") == run(other, f"SELECT * FROM ({joined}) AS q ORDER BY k")


def test_it_leaves_the_copies_of_others(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The barrier that ends a creation leaves a copy that others follow; the next one has a wider one, made before."""
    with waiting_job(tmp_path) as (context, client, _, held):
        other, copies = Client(context, {"user": "root"}), context.coordinator._engines._copies

        held.end()
        run(client, "WAIT", "SET background_ddl = false", "CREATE TABLE u (k int, v int)")
        run(client, "CREATE TABLE w (k int, v int, x int)", "INSERT INTO w VALUES (1, 1, 1), (2, 2, 2), (3, 3, 3)")
        first = "SELECT u.v, w.v AS w FROM u JOIN w ON u.k = w.k"
        run(client, f"CREATE MATERIALIZED VIEW first AS {first}")
        for k in (1, 2):
            run(client, f"INSERT INTO u VALUES ({k}, {k})", "FLUSH")
        [w] = [relation for relation in context.store.catalog.relations if relation.name == "w"]
        key = input_owner(w), "rows"
        copied = copies._copies[key]
        held.begin()
        change_behind_the_fill(monkeypatch, other, "INSERT INTO u VALUES (3, 3)", "INSERT INTO w VALUES (2, 2, 2)")
        second = "SELECT u.v, w.v AS w, w.x FROM u JOIN w ON u.k = w.k"
        run(client, "SET background_ddl = true", f"CREATE MATERIALIZED VIEW second AS {second}")
        assert wait_until(lambda: set(state(client)) == {("FINISHING",)}, 20), state(client)
        [(_, wider)] = [ahead for other_key, ahead in copies._ahead.items() if other_key == key]
        held.end()
        run(client, "WAIT")
        assert copies._copies[key] in (copied, wider)
        run(client, "INSERT INTO u VALUES (1, 4)", "FLUSH")
        assert copies._copies[key] is wider
        held.begin()
        for name, query in (("first", first), ("second", second)):
            assert sorted(run(other, f"SELECT * FROM {name}")) == sorted(run(other, query))
