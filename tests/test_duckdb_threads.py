"""DuckDB has one thread as long as all work is small, and all of them for large work."""

from __future__ import annotations

import random
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import duckdb
import pytest

from sparkwave.catalog.lake import duckdb_threads
from sparkwave.catalog.lake.duckdb_threads import LARGE_ROWS, Parallelism
from sparkwave.catalog.lake.ducklake import Lake
from sparkwave.catalog.lake.storage import Storage
from sparkwave.catalog.names import LakeTable

SECONDS = 2.0


@pytest.fixture
def parallelism(monkeypatch: pytest.MonkeyPatch) -> Parallelism:
    monkeypatch.setattr(duckdb_threads, "_REST_S", -1)
    return Parallelism(duckdb.connect(config={"threads": 3}))


def threads(parallelism: Parallelism) -> int:
    [(found,)] = parallelism._cursor.execute("SELECT current_setting('threads')").fetchall()
    return int(found)


def test_large_work_has_all_threads(parallelism: Parallelism) -> None:
    assert threads(parallelism) == 1
    with parallelism.work(is_large=False):
        assert threads(parallelism) == 1
    with parallelism.work(is_large=True):
        with parallelism.work(is_large=True):
            assert threads(parallelism) == 3
        assert threads(parallelism) == 3
    assert threads(parallelism) == 1


def test_no_thread_ends_below_work_that_may_have_tasks_on_it(parallelism: Parallelism) -> None:
    before = parallelism.begin(is_large=False)
    large = parallelism.begin(is_large=True)
    beside = parallelism.begin(is_large=False)
    parallelism.end(large)
    after = parallelism.begin(is_large=False)
    parallelism.end(before)
    assert threads(parallelism) == 3
    parallelism.end(beside)
    assert threads(parallelism) == 1
    parallelism.end(beside)  # a second end
    parallelism.end(after)
    assert threads(parallelism) == 1


def test_threads_stay_for_the_next_large_work(parallelism: Parallelism, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(duckdb_threads, "_REST_S", 3600)
    with parallelism.work(is_large=True):
        pass
    with parallelism.work(is_large=False):
        pass
    assert threads(parallelism) == 3


@pytest.fixture
def lake(tmp_path: Path) -> Iterator[Lake]:
    with closing(Lake(Storage(tmp_path), threads=3)) as opened:
        yield opened


def test_estimates(lake: Lake) -> None:
    cursor, table = lake.cursor(), LakeTable("main", 'a "b"')
    with lake.transaction(cursor):
        cursor.execute(f"CREATE TABLE {table.sql} AS SELECT range AS i FROM range(1000)")
    assert lake.row_estimates.of(f"SELECT * FROM {table.sql} AS a JOIN {table.sql} AS b USING (i)") == 1000
    assert lake.row_estimates.of_table(table) == 1000
    assert lake.row_estimates.of("SELECT 1") == 0
    assert not lake.row_estimates.are_many(f"FROM {table.sql}")
    assert lake.row_estimates.are_many("FROM range(10)")
    assert lake.row_estimates.are_many('FROM lake."main"."unknown"')
    assert LARGE_ROWS > 1000


def test_threads_come_and_go_below_queries(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(duckdb_threads, "_REST_S", -1)
    lake.cursor().execute("CREATE TABLE memory.main.numbers AS SELECT range AS i FROM range(500_000)")
    until, rounds = time.monotonic() + SECONDS, Counter[bool]()

    def work(seed: int) -> None:
        choice = random.Random(seed)
        with closing(lake.cursor()) as cursor:
            while time.monotonic() < until:
                is_large = choice.random() < 0.3
                rows = 500_000 if is_large else choice.randrange(1, 1000)
                with lake.parallelism.work(is_large):
                    query = f"SELECT sum(i), count(DISTINCT i % 7) FROM memory.main.numbers WHERE i < {rows}"
                    assert cursor.execute(query).fetchall() == [(rows * (rows - 1) // 2, min(rows, 7))]
                rounds[is_large] += 1

    with ThreadPoolExecutor(4) as pool:
        for done in [pool.submit(work, seed) for seed in range(4)]:
            done.result(60)
    assert min(rounds[True], rounds[False]) > 5
    lake.parallelism.end(lake.parallelism.begin(is_large=False))
    assert threads(lake.parallelism) == 1
