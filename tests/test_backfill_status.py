"""Progress of creating jobs: what rw_catalog and SHOW JOBS make of rows written by hand, the clock standing still."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from servers import with_lake

from sparkwave.catalog.lake.ducklake import Cursor, Lake
from sparkwave.catalog.lake.storage import Storage
from sparkwave.catalog.system import system_views

RELATIONS = """
INSERT INTO lake.sparkwave.relations
    (id, database, schema, name, kind, definition, key, upstreams, created, owner, initialized_at, created_at) VALUES
    (10, 'dev', 'public', 'orders', 'table', 'CREATE TABLE orders (...)', ['id'], [], true, 'root', now(), now()),
    (11, 'dev', 'public', 'items', 'table', 'CREATE TABLE items (...)', ['id'], [], true, 'root', now(), now()),
    (20, 'dev', 'public', 'mv', 'materialized view', 'CREATE MATERIALIZED VIEW mv AS ...', ['id'], [10, 11], false,
     'root', now() - INTERVAL 1 HOUR, NULL);
INSERT INTO lake.sparkwave.applications VALUES
    (1, 'risingwave-compute-1', 'default', false, 'READY', 5688, 1, 4, 1024, NULL, now(), now(), now());
"""

SNAPSHOT, ARRANGEMENT, NO_SHUFFLE = "SnapshotBackfill", "ArrangementBackfill", "Backfill"

# The ids of the fragments of job 20.
FIRST, SECOND = 1_000_002_001, 1_000_002_002


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lake]:
    lake = Lake(Storage(with_lake(tmp_path_factory.mktemp("lake"))))
    cursor = lake.cursor()
    system_views.define_python_functions(cursor, lambda user, process_id, how: False)
    system_views.install(cursor)
    cursor.execute(RELATIONS)
    system_views.refresh(cursor)
    yield lake
    lake.close()


@pytest.fixture
def cursor(lake: Lake) -> Iterator[Cursor]:
    """In a transaction that is rolled back: `now()` is the same in all of it."""
    cursor = lake.cursor()
    cursor.execute("BEGIN")
    yield cursor
    cursor.execute("ROLLBACK")


def add_job(cursor: Cursor, strategy: str = SNAPSHOT, status: str = "CREATING", **columns: object) -> None:
    given = {
        "is_background": True,
        "is_serverless": False,
        "resource_group": "default",
        "snapshot": 7,
        "backfill_order": [],
        "lag_ms": 0,
        **columns,
    }
    lag = given.pop("lag_ms")
    values = {"id": 20, "status": status, "strategy": strategy, **given}
    listed = ", ".join(f"? AS {name}" for name in values)
    cursor.execute(
        f"INSERT INTO lake.sparkwave.jobs BY NAME SELECT {listed}, epoch_us(now()) - 1000 * {lag} AS time_us",
        list(values.values()),
    )


def add_slices(cursor: Cursor, *counts: int, fragment: int = 1, upstream: int = 10) -> None:
    for number, count in enumerate(counts, start=1):
        cursor.execute(
            "INSERT INTO lake.sparkwave.slices VALUES (20, ?, ?, ?, 'i', 0, 0, ?)", [fragment, number, upstream, count]
        )


def add_positions(
    cursor: Cursor, *totals: int, fragment: int = 1, upstream: int = 10, is_finished: bool = False
) -> None:
    for vnode, total in enumerate(totals):
        cursor.execute(
            "INSERT INTO lake.sparkwave.positions VALUES (20, ?, ?, 'i', ?, 0, ?, ?, ?)",
            [fragment, upstream, vnode, total if is_finished else None, total, total],
        )


def add_steps(cursor: Cursor, *steps: tuple[int, float], fragment: int = 1) -> None:
    """Finished slices or steps, each (rows, seconds ago)."""
    for number, (rows, ago) in enumerate(steps, start=1):
        cursor.execute(
            f"INSERT INTO lake.sparkwave.finished_slices VALUES (20, ?, ?, ?, now() - INTERVAL {ago} SECONDS)",
            [fragment, number, rows],
        )


def one(cursor: Cursor, columns: str, relation: str) -> tuple[Any, ...]:
    rows = cursor.execute(f"SELECT {columns} FROM memory.rwc.{relation}").fetchall()
    assert len(rows) == 1, rows
    return rows[0]


def progress(cursor: Cursor) -> str:
    return one(cursor, '"Progress"', "_show_jobs")[0]


# The text.


@pytest.mark.parametrize(
    ("lag_ms", "shown"),
    [(0, "0ns"), (-5, "0ns"), (20, "20ms"), (999, "999ms"), (1234, "1.234s"), (1500, "1.5s"), (60_000, "60s")],
)
def test_lag(cursor: Cursor, lag_ms: int, shown: str) -> None:
    add_job(cursor, lag_ms=lag_ms)
    add_slices(cursor, 5)
    add_steps(cursor, (5, 1))
    assert progress(cursor) == f"LogStore [actor: 0/1, avg lag {shown}]"
    cursor.execute("UPDATE lake.sparkwave.jobs SET waiting = 'handing over: waiting for the next barrier'")
    assert progress(cursor) == f"Finishing [epoch lag: {shown}]"


@pytest.mark.parametrize("strategy", [ARRANGEMENT, NO_SHUFFLE])
@pytest.mark.parametrize(
    ("totals", "read", "is_finished", "shown"),
    [
        ([5000, 5000], [], False, "0.00% (0/10000)"),
        ([5000, 5000], [1000, 234], False, "12.34% (1234/10000)"),
        ([500_000, 500_000], [999_999], False, "99.99% (999999/1000000)"),
        ([5000, 5000], [10000], False, "99.99% (10000/10000)"),
        ([5000, 5000], [10000, 5], False, "99.99% (10005/10000)"),
        ([0], [0], False, "99.99%"),
        ([5000, 5000], [9999], True, "100%"),
    ],
)
def test_progress_of_a_job_that_reads_on(
    cursor: Cursor, strategy: str, totals: list[int], read: list[int], is_finished: bool, shown: str
) -> None:
    add_job(cursor, strategy)
    add_positions(cursor, *totals, is_finished=is_finished)
    add_steps(cursor, *((rows, 1) for rows in read))
    assert progress(cursor) == shown
    assert one(cursor, "ddl_id, backfill_type", "rw_ddl_progress") == (20, "NORMAL_BACKFILL")
    info = one(cursor, "backfill_type, backfill_epoch, backfill_target_relation_id", "rw_backfill_info")
    assert info == ("ARRANGEMENT_OR_NO_SHUFFLE", 0, 10)


def test_progress_sums_its_inputs(cursor: Cursor) -> None:
    add_job(cursor, ARRANGEMENT)
    add_positions(cursor, 60)
    add_positions(cursor, 40, fragment=2, upstream=11)
    add_steps(cursor, (30, 1))
    add_steps(cursor, (20, 1), fragment=2)
    assert progress(cursor) == "50.00% (50/100)"
    rows = cursor.execute(
        "SELECT fragment_id, upstream_table_name, progress FROM memory.rwc.rw_fragment_backfill_progress ORDER BY 1"
    ).fetchall()
    assert rows == [(FIRST, "public.orders", "50% (30/60)"), (SECOND, "public.items", "50% (20/40)")]


@pytest.mark.parametrize(
    ("total", "read", "shown"),
    [
        (3, 1, "33.33333333333333333333333333% (1/3)"),
        (10000, 1234, "12.34% (1234/10000)"),
        (3_000_000_000, 1, "0.00000003333333333333333333% (1/3000000000)"),
        (8, 8, "100% (8/8)"),
        (0, 0, "100% (0/0)"),
    ],
)
def test_progress_of_a_fragment_has_all_digits(cursor: Cursor, total: int, read: int, shown: str) -> None:
    add_job(cursor)
    add_slices(cursor, read, total - read)
    add_steps(cursor, (read, 1), *([(0, 1)] if read == total else []))
    assert one(cursor, "progress", "rw_fragment_backfill_progress") == (shown,)


@pytest.mark.parametrize("fragment", [1, 2])
def test_not_all_is_read_while_a_slice_without_rows_is_left(cursor: Cursor, fragment: int) -> None:
    """It merges what others of its fragment have left, or another fragment's state."""
    add_job(cursor)
    add_slices(cursor, 60, 40, *([0] if fragment == 1 else []))
    if fragment == 2:
        add_slices(cursor, 0, fragment=2)
    add_steps(cursor, (60, 2))
    assert progress(cursor) == "Snapshot [60.00% (60/100)]"
    cursor.execute("DELETE FROM lake.sparkwave.finished_slices")
    add_steps(cursor, (60, 2), (40, 1))
    assert progress(cursor) == "Snapshot [99.00% (99/100)]"
    cursor.execute("DELETE FROM lake.sparkwave.finished_slices")
    add_steps(cursor, (60, 2), (40, 1), *([(0, 1)] if fragment == 1 else []))
    if fragment == 2:
        add_steps(cursor, (0, 1), fragment=2)
    assert progress(cursor).startswith("LogStore")


# Fragments and limits.


def test_fragments(cursor: Cursor) -> None:
    columns = "fragment_id, flags, parallelism, parallelism_policy"
    own = "rw_fragments WHERE table_id = 20"
    add_job(cursor, parallelism="adaptive")
    add_slices(cursor, 5)
    scan = ["MVIEW", "STREAM_SCAN", "SNAPSHOT_BACKFILL_STREAM_SCAN"]
    assert one(cursor, columns, own) == (FIRST, scan, 4, "inherit(adaptive)")
    assert one(cursor, "parallelism", "rw_streaming_jobs WHERE id = 20") == ("adaptive",)
    cursor.execute("UPDATE lake.sparkwave.jobs SET parallelism = 'bounded(3)', backfill_parallelism = 2")
    assert one(cursor, columns, own) == (FIRST, scan, 2, "inherit(2)")
    assert one(cursor, "parallelism", "rw_streaming_parallelism WHERE id = 20") == ("bounded(3)",)
    cursor.execute(f"UPDATE lake.sparkwave.jobs SET strategy = '{NO_SHUFFLE}', backfill_parallelism = NULL")
    assert one(cursor, columns, own) == (
        FIRST,
        ["MVIEW", "STREAM_SCAN"],
        4,
        "upstream_fragment([10])",
    )


def test_rate_limits(cursor: Cursor) -> None:
    add_job(cursor, ARRANGEMENT)
    add_positions(cursor, 5)
    assert cursor.execute("FROM memory.rwc.rw_rate_limit").fetchall() == []
    cursor.execute("UPDATE lake.sparkwave.jobs SET rate_limit = 500")
    limit = (FIRST, ["MVIEW", "STREAM_SCAN"], "STREAM_SCAN", 20, 500)
    assert cursor.execute("FROM memory.rwc.rw_rate_limit").fetchall() == [limit]


@pytest.mark.parametrize(
    ("finished", "told", "shown"),
    [
        ([], 0, 0),
        ([], 37, 37),
        ([100], 137, 137),
        ([100], 60, 100),  # told by a server before, or of a snapshot that is older
        ([100], 300, 299),  # all is read when the last step has ended
        ([100], 500, 299),
        ([100, 100, 100], 250, 300),
    ],
)
@pytest.mark.parametrize("strategy", [SNAPSHOT, ARRANGEMENT])
def test_rows_of_running_steps(cursor: Cursor, strategy: str, finished: list[int], told: int, shown: int) -> None:
    add_job(cursor, strategy)
    if strategy == SNAPSHOT:
        add_slices(cursor, 100, 100, 100)
    else:
        add_positions(cursor, 300, is_finished=len(finished) == 3)
    add_steps(cursor, *((rows, 1) for rows in finished))
    said = json.dumps([{"job_id": id_, "fragment_id": 1, "rows": rows} for id_, rows in ((20, told), (21, 1000))])
    cursor.execute(f"SET VARIABLE backfill_rows = '{said}'")
    try:
        assert one(cursor, "rows_done, rows_total", "rw_backfill_status") == (shown, 300)
        assert f"({shown}/300)" in one(cursor, "progress", "rw_fragment_backfill_progress")[0]
        if shown < 300:
            assert f"{shown / 3:.2f}% ({shown}/300)" in progress(cursor)
    finally:
        cursor.execute("RESET VARIABLE backfill_rows")


# rw_backfill_status: the state.


@pytest.mark.parametrize(
    ("job", "slices", "steps", "state", "reason"),
    [
        ({"status": "INITIAL", "waiting": "waiting for a permit (…)"}, [], 0, "WAITING", "waiting for a permit (…)"),
        ({"status": "INITIAL"}, [], 0, "PROVISIONING", None),
        ({"is_serverless": True, "waiting": "provisioning x"}, [5, 5], 1, "PROVISIONING", "provisioning x"),
        ({"is_serverless": True}, [5, 5], 1, "RUNNING", None),
        ({}, [5, 5], 1, "RUNNING", None),
        ({"rate_limit": 10}, [5, 5], 1, "RUNNING", None),
        ({"rate_limit": 0, "waiting": "the rate limit is 0"}, [5, 5], 1, "PAUSED", "the rate limit is 0"),
        ({"waiting": "retrying after an error: x"}, [5, 5], 1, "RETRYING", "retrying after an error: x"),
        ({"waiting": "something else"}, [5, 5], 1, "WAITING", "something else"),
        ({}, [5, 5], 2, "CATCHING UP", None),
        ({"waiting": "handing over: x"}, [5, 5], 2, "FINISHING", "handing over: x"),
    ],
)
def test_state(
    cursor: Cursor, job: dict[str, Any], slices: list[int], steps: int, state: str, reason: str | None
) -> None:
    add_job(cursor, **job)
    add_slices(cursor, *slices)
    add_steps(cursor, *((5, 1) for _ in range(steps)))
    assert one(cursor, "state, reason", "rw_backfill_status") == (state, reason)


def test_state_of_each_input(cursor: Cursor) -> None:
    """One that a backfill_order holds back says for what; one that is read waits for the others."""
    add_job(cursor, ARRANGEMENT, backfill_order=[[10, 11]])
    add_positions(cursor, 5)
    add_positions(cursor, 5, fragment=2, upstream=11)
    states = "SELECT fragment_id, upstream_name, state, reason FROM memory.rwc.rw_backfill_status"
    assert cursor.execute(states).fetchall() == [
        (FIRST, "public.orders", "RUNNING", None),
        (SECOND, "public.items", "WAITING", "waiting for public.orders (backfill_order)"),
    ]
    cursor.execute("UPDATE lake.sparkwave.positions SET row_id_to = position WHERE fragment_id = 1")
    assert cursor.execute(states).fetchall() == [
        (FIRST, "public.orders", "FINISHED", None),
        (SECOND, "public.items", "RUNNING", None),
    ]


# rw_backfill_status: how long it may take.

BOUNDS = "rows_done, rows_total, rows_per_second, seconds_left_low, seconds_left_high"


def test_no_bounds_before_four_steps(cursor: Cursor) -> None:
    add_job(cursor)
    add_slices(cursor, *[100] * 10)
    add_steps(cursor, (100, 9), (100, 6), (100, 3))
    assert one(cursor, BOUNDS, "rw_backfill_status")[3:] == (None, None)


def test_bounds_of_a_steady_job(cursor: Cursor) -> None:
    """100 rows every 2 s, the last just now, and 600 rows left: 12 s, whichever way it is looked at."""
    add_job(cursor)
    add_slices(cursor, *[100] * 10)
    add_steps(cursor, (100, 6), (100, 4), (100, 2), (100, 0))
    assert one(cursor, BOUNDS, "rw_backfill_status") == pytest.approx((400, 1000, 50, 12, 12))


def test_bounds_of_an_uneven_job(cursor: Cursor) -> None:
    """Its fastest three steps read 300 rows in 3 s, its slowest in 12 s; 500 rows are left."""
    add_job(cursor)
    add_slices(cursor, *[100] * 12)
    add_steps(cursor, (100, 18), (100, 17), (100, 16), (100, 15), (100, 8), (100, 4), (100, 3))
    # By threes: 3 s, 9 s, 12 s and 12 s until 3 s ago; the last three and the time since: 15 s.
    assert one(cursor, BOUNDS, "rw_backfill_status") == pytest.approx((700, 1200, 600 / 15, 5 - 3, 25))


def test_bounds_grow_while_nothing_happens(cursor: Cursor) -> None:
    add_job(cursor)
    add_slices(cursor, *[100] * 10)
    add_steps(cursor, (100, 66), (100, 64), (100, 62), (100, 60))
    # 300 rows in the 66 s since the first, 600 left; at the full rate they would all be read by now.
    assert one(cursor, BOUNDS, "rw_backfill_status")[3:] == pytest.approx((0, 600 * 66 / 300))


def test_bounds_forget_old_steps(cursor: Cursor) -> None:
    """Only the last twelve count: an hour's pause before them does not."""
    add_job(cursor)
    add_slices(cursor, *[10] * 100)
    add_steps(cursor, *((10, 3600 + n) for n in range(9, -1, -1)), *((10, n) for n in range(11, -1, -1)))
    assert one(cursor, BOUNDS, "rw_backfill_status") == pytest.approx((220, 1000, 10, 78, 78))


def test_steps_without_rows_do_not_count(cursor: Cursor) -> None:
    add_job(cursor, ARRANGEMENT)
    add_positions(cursor, 1000)
    add_steps(cursor, (100, 6), (100, 4), (0, 3), (100, 2), (0, 1), (100, 0))
    assert one(cursor, BOUNDS, "rw_backfill_status") == pytest.approx((400, 1000, 50, 12, 12))


def test_no_bounds_while_paused(cursor: Cursor) -> None:
    add_job(cursor, rate_limit=0)
    add_slices(cursor, *[100] * 10)
    add_steps(cursor, (100, 6), (100, 4), (100, 2), (100, 0))
    assert one(cursor, BOUNDS, "rw_backfill_status") == (400, 1000, None, None, None)


def test_two_steps_at_one_moment(cursor: Cursor) -> None:
    add_job(cursor)
    add_slices(cursor, *[100] * 10)
    add_steps(cursor, *[(100, 1)] * 5)
    assert one(cursor, BOUNDS, "rw_backfill_status")[3] is None


def test_updated_at(cursor: Cursor) -> None:
    age = "(epoch_ms(now()) - epoch_ms(updated_at)) // 1000"
    cursor.execute("UPDATE lake.sparkwave.relations SET initialized_at = now() - INTERVAL 1 HOUR")
    add_job(cursor)
    add_slices(cursor, 5, 5)
    assert one(cursor, age, "rw_backfill_status") == (3600,)
    add_steps(cursor, (5, 30))
    assert one(cursor, age, "rw_backfill_status") == (30,)


def test_columns(cursor: Cursor) -> None:
    described = cursor.execute("DESCRIBE memory.rwc.rw_backfill_status").fetchall()
    assert [(name, type_) for name, type_, *_ in described] == [
        ("job_id", "INTEGER"), ("job_name", "VARCHAR"), ("fragment_id", "INTEGER"), ("upstream_name", "VARCHAR"),
        ("strategy", "VARCHAR"), ("resource_group", "VARCHAR"), ("state", "VARCHAR"), ("rows_done", "BIGINT"),
        ("rows_total", "BIGINT"), ("rows_per_second", "DOUBLE"), ("seconds_left_low", "DOUBLE"),
        ("seconds_left_high", "DOUBLE"), ("rate_limit", "BIGINT"), ("reason", "VARCHAR"),
        ("reason_since", "TIMESTAMP WITH TIME ZONE"),
        ("updated_at", "TIMESTAMP WITH TIME ZONE"),
    ]  # fmt: skip
