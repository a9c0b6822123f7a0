"""The last moment of a creating job: cancelled, recovered and stopped while it waits for its barrier."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from servers import DUCKDB_THREADS, wait_until
from test_law import NoEpochs, without_epochs

from sparkwave.catalog.errors import Error
from sparkwave.executor.backfill.creation import BackfillJob
from sparkwave.executor.epochs import delta_programs
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
    context = open_context(Config(data=tmp_path / "data", spark_start="on_demand", duckdb_threads=DUCKDB_THREADS), {})
    try:
        client = Client(context, {"user": "root"})
        run(client, "WAIT")
        assert sorted(run(client, "SELECT n FROM m")) == [(2,), (3,)]
    finally:
        context.close()


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
