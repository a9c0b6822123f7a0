"""How far a job is while a step of it runs: what a task says, what becomes of that, and what one sees."""

from __future__ import annotations

import re
import time
from contextlib import AbstractContextManager, suppress
from pathlib import Path

import duckdb
import pytest
from scrapes import scrape
from servers import Server, free_port

from sparkwave.catalog.lake.ducklake import ENGINE_VERSION
from sparkwave.executor.backfill.progress import Progress
from sparkwave.executor.spark import kernel
from sparkwave.executor.spark.kernel import Setup, Step, Task
from sparkwave.executor.spark.spark_engine import TASK_SCRIPT

# About six seconds of a core over 3 million rows.
HASHES = 8
HASHED = f"{'md5(' * HASHES}k::varchar{')' * HASHES}"
SLOW = f"SELECT k % 10 AS g, count(*) AS n, max({HASHED}) AS m FROM big GROUP BY 1"


def test_a_task_says_how_far_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two steps of equal length: what it says only grows, and is of both."""
    monkeypatch.setattr(kernel, "SAY_SECONDS", 0.01)
    said: list[float] = []
    replace = kernel.os.replace

    def noted(new: str, path: str) -> None:
        said.append(float(Path(new).read_text()))
        replace(new, path)

    monkeypatch.setattr(kernel.os, "replace", noted)
    duckdb.sql(f"COPY (SELECT i FROM range(1000000) AS r (i)) TO '{tmp_path}/read' (FORMAT parquet)")
    slow = f"SELECT max(list_sum(list_transform(range(20), x -> x + i))) AS m FROM read_parquet('{tmp_path}/read')"
    (tmp_path / "b").mkdir()
    steps = (Step("a", slow), Step("b", slow, f"{tmp_path}/b"))
    setup = Setup(ENGINE_VERSION, 1, 256, (), TASK_SCRIPT)
    answers = kernel._answers(setup, Task(steps, says=f"{tmp_path}/says"))
    assert [answer["rows"] for answer in answers] == [1]
    assert said == sorted(said) and len(set(said)) > 4
    assert 0 < min(part for part in said if part) < 0.5 and said[-1] == 1  # when its steps are over, at once
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith("says")] == ["says"]


def test_nobody_listens(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A task does its work where it cannot say how far it is; it ends when DuckDB has an error."""
    monkeypatch.setattr(kernel, "SAY_SECONDS", 0.001)
    setup = Setup(ENGINE_VERSION, 1, 256, (), TASK_SCRIPT)
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
    slow = "SELECT sum(i) AS s FROM range(20000000) AS r (i)"
    task = Task((Step("a", slow, f"{tmp_path}/a"),), says=f"{tmp_path}/gone/says")
    assert [answer["rows"] for answer in kernel._answers(setup, task)] == [1]
    [answer] = kernel._answers(setup, Task((Step("a", "SELECT nothing", f"{tmp_path}/b"),), says=f"{tmp_path}/says"))
    assert answer["error"][0] == "BinderException"


class Interrupted(Exception):
    pass


def interrupted() -> AbstractContextManager[None]:
    return suppress(Interrupted)


def test_what_is_told_is_never_taken_back(tmp_path: Path) -> None:
    progress, says = Progress(tmp_path / "kept.json"), tmp_path / "says"
    progress.resume({1: 100})
    assert progress.rows() == {1: 100}
    with progress.running({1: 200, 2: 10}, [says]):
        assert progress.rows() == {1: 100}
        says.write_text("0.5")
        assert progress.rows() == {1: 200, 2: 5}
        says.write_text("")
        assert progress.rows() == {1: 200, 2: 5}
        says.write_text("7")
        assert progress.rows() == {1: 300, 2: 10}
    says.write_text("0.1")
    with progress.running({1: 200, 2: 10}, [says]), interrupted(), progress.running({1: 50}, []):  # it is tried again
        assert progress.rows() == {1: 300, 2: 10}
        raise Interrupted
    with progress.running({3: 100}, [says, tmp_path / "of_another_task"]):
        assert progress.rows()[3] == 5
    assert progress.rows() == {1: 300, 2: 10, 3: 100}  # before its commit
    progress.start_again()
    progress.resume({1: 300, 2: 10})
    with interrupted(), progress.running({1: 100}, [says]):
        assert progress.rows() == {1: 310, 2: 10}
        raise Interrupted

    again = Progress(tmp_path / "kept.json")  # of the next server
    assert again.rows() == {1: 310, 2: 10}  # before it goes on
    again.resume({1: 300, 2: 10})
    assert again.rows() == {1: 310, 2: 10}
    again.start_again()
    assert again.rows() == {}
    third = Progress(tmp_path / "kept.json")
    third.resume({})
    assert third.rows() == {}
    third.end()
    third.finish({1: 5})
    assert third.rows() == {1: 5} and "5" not in (tmp_path / "kept.json").read_text()


@pytest.mark.long
@pytest.mark.spark
def test_a_slice_that_takes_seconds(tmp_path: Path) -> None:
    """At default settings a view over 3 million rows is one slice; everything that shows progress shows it move."""
    port = free_port()
    server = Server(tmp_path / "data", metrics=f"127.0.0.1:{port}")
    try:
        with server.connect() as own:
            own.execute("CREATE TABLE big (k int)")
            own.execute("INSERT INTO big SELECT i FROM range(3000000) AS r (i)")
            own.execute("SET background_ddl = true")
            own.execute(f"CREATE MATERIALIZED VIEW slow AS {SLOW}")
            shown: dict[str, list[float]] = {"jobs": [], "ddl": [], "fragments": [], "status": [], "metric": []}
            deadline = time.monotonic() + 240
            while jobs := own.execute("SHOW JOBS").fetchall():
                assert time.monotonic() < deadline
                texts = {
                    "jobs": jobs[0][3],
                    "ddl": (own.execute("SELECT progress FROM rw_catalog.rw_ddl_progress").fetchone() or ("",))[0],
                    "fragments": (
                        own.execute("SELECT progress FROM rw_catalog.rw_fragment_backfill_progress").fetchone() or ("",)
                    )[0],
                }
                for name, text in texts.items():
                    if found := re.search(r"\((\d+)/3000000\)", text):
                        shown[name].append(int(found[1]) / 3_000_000)
                status = own.execute("SELECT rows_done, rows_total FROM rw_catalog.rw_backfill_status").fetchone()
                if status and status[1]:
                    shown["status"].append(status[0] / status[1])
                ratio = list(scrape(port).series("sparkwave_backfill_progress_ratio").values())
                shown["metric"] += ratio
                time.sleep(0.2)
            for name, parts in shown.items():
                assert parts == sorted(parts), name
                assert len({part for part in parts if 0 < part < 1}) > 1, (name, parts)
            finished = own.execute("SELECT count(*), sum(n) FROM slow").fetchone()
            assert finished == (10, 3_000_000)
            assert not list((server.data / "staging").glob("job_*"))
    finally:
        server.kill()
