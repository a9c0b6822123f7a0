"""The first delivery of a sink into a table: step by step, with other commits in between, and over a restart."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from test_law import opened, run

from sparkwave.catalog.errors import Error
from sparkwave.executor.sinks import first_delivery

STEP, ROWS = 10, 95


@pytest.fixture(autouse=True)
def _small_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(first_delivery, "STEP_ROWS", STEP)


def before_each_step(monkeypatch: pytest.MonkeyPatch, act: Callable[[int], None]) -> None:
    """Have something done before each step, by its number from 0."""
    original, number = first_delivery._deliver, iter(range(1000))

    def deliver(*arguments: Any) -> None:
        act(next(number))
        original(*arguments)

    monkeypatch.setattr(first_delivery, "_deliver", deliver)


def fill(client: Any) -> None:
    run(client, "CREATE TABLE t (k int PRIMARY KEY, v int)")
    run(client, f"INSERT INTO t SELECT i, i FROM range({ROWS}) AS r (i)")
    run(client, "CREATE TABLE u (k int PRIMARY KEY, v int NOT NULL)")
    run(client, "CREATE TABLE other (n int)")


@pytest.mark.long
def test_others_commit_between_bounded_steps(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[int] = []
    with opened(tmp_path / "data", backfill_engine="auto") as (context, client):
        fill(client)

        def act(number: int) -> None:
            # Another session's commits, to the table of the sink too; neither waits for the delivery to end.
            seen.extend(*run(client, "SELECT count(*) FROM u WHERE k < 1000"))
            run(client, f"INSERT INTO other VALUES ({number})")
            run(client, f"INSERT INTO u VALUES ({1000 + number}, 0)")
            run(client, f"UPDATE t SET v = v + 1000 WHERE k = {number}")

        before_each_step(monkeypatch, act)
        run(client, "SET background_ddl = true")
        run(client, "CREATE SINK s INTO u FROM t")
        run(client, "WAIT")
        run(client, "FLUSH")
        assert seen == list(range(0, ROWS, STEP))
        steps = len(seen)
        assert run(client, "SELECT count(*) FROM other") == [(steps,)]
        assert run(client, "SELECT count(*) FROM u WHERE k >= 1000") == [(steps,)]
        expected = run(client, "SELECT * FROM t ORDER BY k")
        assert sorted(run(client, "SELECT * FROM u WHERE k < 1000")) == expected
        assert expected[0] == (0, 1000)
        assert context.store.catalog.find("dev", "public", "s") is not None
        # What it stored is forgotten.
        sink = context.store.catalog.find("dev", "public", "s")
        assert sink is not None
        assert context.lake.cursor().execute(f"SELECT count(*) FROM {sink.lake_name}").fetchone() == (0,)


@pytest.mark.long
def test_a_restart_goes_on_where_the_last_commit_stands(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    reached, delivered = threading.Event(), []
    with monkeypatch.context() as patch, opened(tmp_path / "data", backfill_engine="auto") as (_, client):
        fill(client)

        def act(number: int) -> None:
            if number == 3:  # the server ends here
                reached.set()
                threading.Event().wait(3600)

        before_each_step(patch, act)
        monkeypatch.setattr(
            "sparkwave.executor.backfill.creation.BackfillJob.wait_until_stopped", lambda *arguments: True
        )
        run(client, "SET background_ddl = true")
        run(client, "CREATE SINK s INTO u FROM t")
        assert reached.wait(200)
        assert run(client, "SELECT count(*) FROM u") == [(3 * STEP,)]
        # One that has been delivered, one that has not, and of each one that goes.
        run(client, "UPDATE t SET v = -1 WHERE k IN (0, 94)")
        run(client, "DELETE FROM t WHERE k IN (1, 93)")
        # A row that is delivered already is not delivered again: a client has changed it since.
        run(client, "UPDATE u SET v = 777 WHERE k = 2")

    def note(number: int) -> None:
        delivered.append(number)

    before_each_step(monkeypatch, note)
    with opened(tmp_path / "data", backfill_engine="auto") as (_, client):
        run(client, "WAIT")
        run(client, "FLUSH")
        expected = dict(run(client, "SELECT * FROM t"))
        expected[2] = 777
        assert dict(run(client, "SELECT * FROM u")) == expected
    assert len(delivered) == len(range(0, ROWS, STEP)) - 3


def test_nothing_goes_when_a_later_row_cannot(tmp_path: Path) -> None:
    with opened(tmp_path / "data", backfill_engine="auto") as (_, client):
        fill(client)
        run(client, "ALTER TABLE u ADD CONSTRAINT small CHECK (v < 1000000)")
        run(client, "UPDATE t SET v = 1000000 WHERE k = 94")
        with pytest.raises(Error, match='violates check constraint "small"'):
            run(client, "CREATE SINK s INTO u FROM t")
        assert run(client, "SELECT count(*) FROM u") == [(0,)]
