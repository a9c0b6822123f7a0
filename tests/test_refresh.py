"""Which way an epoch takes a view: incrementally, or in full where that has been faster."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from test_golden import CATALOG, plan
from test_law import check, opened, run

from sparkwave.catalog.counters import REFRESHES
from sparkwave.executor.epochs import feeds, refresh
from sparkwave.executor.epochs.advance import View
from sparkwave.executor.epochs.refresh import AUTO, FULL, INCREMENTAL, Refresh
from sparkwave.executor.maintenance.view_check import check_view
from sparkwave.server.context import Context
from sparkwave.server.dispatch import Client

FLIGHTS = "CREATE MATERIALIZED VIEW v AS SELECT carrier, {} AS x FROM flights GROUP BY carrier"
ROWS = 100_000


def view(call: str = "count(*)") -> View:
    return View(CATALOG.by_id[3], plan(FLIGHTS.format(call)))


def refresh_in(mode: str) -> Refresh:
    return Refresh(lambda: mode)


def no_rows() -> int:
    raise AssertionError("nobody has to know")


def test_what_has_not_been_timed_is_incremental() -> None:
    assert not refresh_in(AUTO).is_full(view(), 10, no_rows)


def test_what_takes_milliseconds_is_incremental() -> None:
    chosen, made = refresh_in(AUTO), view()
    chosen.took(made, 10, False, 0.01)
    assert not chosen.is_full(made, 10, no_rows)


def test_a_slow_change_is_computed_in_full_if_there_is_little_to_read() -> None:
    chosen, made = refresh_in(AUTO), view()
    chosen.took(made, 10, False, 0.5)
    assert chosen.is_full(made, 10, lambda: ROWS)
    assert not chosen.is_full(view(), 10, no_rows)  # another view
    other = refresh_in(AUTO)
    other.took(made, 10, False, 0.5)
    assert not other.is_full(made, 10, lambda: 100 * ROWS)


def test_a_view_of_single_rows_is_incremental() -> None:
    chosen = refresh_in(AUTO)
    made = View(CATALOG.by_id[3], plan("CREATE MATERIALIZED VIEW v AS SELECT carrier, delay + 1 AS x FROM flights"))
    chosen.took(made, 10, False, 0.5)
    assert not chosen.is_full(made, 10, no_rows)


def test_a_full_refresh_that_was_much_slower_is_not_tried_again() -> None:
    chosen, made = refresh_in(AUTO), view()
    chosen.took(made, 10, False, 0.2)
    assert chosen.is_full(made, 10, lambda: ROWS)
    chosen.took(made, 10, True, 2.0)
    for _ in range(1000):
        assert not chosen.is_full(made, 10, no_rows)
        chosen.took(made, 10, False, 0.2)


def test_the_time_of_planning_does_not_count() -> None:
    chosen, made = refresh_in(AUTO), view()
    for _ in range(4):
        chosen.took(made, 10, False, 0.5, has_planned=True)
        assert not chosen.is_full(made, 10, lambda: ROWS)
    chosen.took(made, 10, False, 0.04)
    assert not chosen.is_full(made, 10, lambda: ROWS)
    for _ in range(5):  # as if each of them had to be planned
        chosen.took(made, 10, False, 0.5, has_planned=True)
    assert chosen.is_full(made, 10, lambda: ROWS)
    other = refresh_in(AUTO)
    other.took(made, 10, False, 5.0, has_planned=True)
    assert other.is_full(made, 10, lambda: ROWS)


def test_a_small_change_is_not_judged_by_a_large_one() -> None:
    chosen, made = refresh_in(AUTO), view()
    chosen.took(made, 100_000, False, 0.5)
    assert not chosen.is_full(made, 10, lambda: ROWS)
    assert chosen.is_full(made, 1_000_000, lambda: ROWS)


def test_the_faster_way_is_kept_and_the_other_one_tried_again() -> None:
    chosen, made = refresh_in(AUTO), view()
    chosen.took(made, 10, False, 0.2)
    assert chosen.is_full(made, 10, lambda: ROWS)
    chosen.took(made, 10, True, 0.3)  # it was not
    assert not chosen.is_full(made, 10, no_rows)
    ways = []
    for _ in range(60):
        is_full = chosen.is_full(made, 10, no_rows)
        ways.append(is_full)
        chosen.took(made, 10, is_full, 0.3 if is_full else 0.2)
    assert 1 <= sum(ways) <= 10
    # What was slow once, on a busy machine, is not given up for ever.
    chosen.took(made, 10, False, 3.0)
    ways = []
    for _ in range(400):
        is_full = chosen.is_full(made, 10, no_rows)
        ways.append(is_full)
        chosen.took(made, 10, is_full, 0.3 if is_full else 0.2)
    assert ways[0] and sum(ways[-20:]) <= 3


def test_sums_of_floats_are_not_added_up_in_another_order() -> None:
    chosen = refresh_in(AUTO)
    for call, is_full in (("sum(delay)", False), ("max(delay)", True), ("sum(distance)", True)):
        made = view(call)
        chosen.took(made, 10, False, 0.5)
        assert chosen.is_full(made, 10, lambda: ROWS) == is_full, call


@pytest.mark.parametrize("mode", [INCREMENTAL, FULL])
def test_the_parameter_decides(mode: str) -> None:
    chosen, made = refresh_in(mode), view("sum(delay)")
    assert chosen.is_full(made, 10, no_rows) == (mode == FULL)
    chosen.took(made, 10, mode == FULL, 1.0)
    assert chosen.is_full(made, 10, no_rows) == (mode == FULL)


def test_what_cannot_be_computed_again_is_incremental() -> None:
    joined = plan(
        "CREATE MATERIALIZED VIEW v AS SELECT c.carrier, a.name FROM clicks c "
        "JOIN airlines FOR SYSTEM_TIME AS OF PROCTIME() a ON a.carrier = c.carrier"
    )
    assert not refresh_in(FULL).is_full(View(CATALOG.by_id[3], joined), 10, no_rows)


def refreshes() -> dict[str, float]:
    [metric] = REFRESHES.collect()
    return {sample.labels["mode"]: sample.value for sample in metric.samples}


@pytest.fixture
def session(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[Context, Client]]:
    monkeypatch.setattr(refresh, "WORTH_S", 0)
    monkeypatch.setattr(refresh, "FIXED_S", 0)
    monkeypatch.setattr(refresh, "ROWS_A_SECOND", 1e12)
    with opened(tmp_path / "lake", streaming_engine="duckdb", backfill_engine="auto", refresh_mode=AUTO) as found:
        yield found


def test_a_server_does_both(session: tuple[Context, Client]) -> None:
    context, client = session
    run(client, "CREATE TABLE t (k int PRIMARY KEY, g int, x numeric)")
    run(client, "INSERT INTO t SELECT i, i % 3, i FROM generate_series(1, 20) AS g(i)")
    views = {"v": "SELECT g, count(*) AS n, sum(x) AS x FROM t GROUP BY g", "w": "SELECT max(n) AS n FROM v"}
    for name, query in views.items():
        run(client, f"CREATE MATERIALIZED VIEW {name} AS {query}")
    before = refreshes()
    for number in range(3):
        run(client, f"UPDATE t SET x = x + 1, g = g + 1 WHERE k % 3 = {number}")
        context.coordinator.flush(lambda: False)
        check(client, views, f"epoch {number}")
    after = refreshes()
    assert after["incremental"] > before.get("incremental", 0)
    assert after["full"] > before.get("full", 0)
    run(client, "UPDATE t SET x = x WHERE k = 1")
    assert not context.coordinator.barrier(), "what is equal is not stored again"


def test_what_is_computed_in_full_needs_no_changes(session: tuple[Context, Client]) -> None:
    context, client = session
    run(client, "CREATE TABLE t (k int PRIMARY KEY, g int)")
    views = {"v": "SELECT g, count(*) AS n FROM t GROUP BY g", "w": "SELECT k FROM t WHERE now() > '2020-01-01'"}
    for name, query in views.items():
        run(client, f"CREATE MATERIALIZED VIEW {name} AS {query}")
    run(client, f"ALTER SYSTEM SET refresh_mode = {FULL}")
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(feeds, "keep_changes", None)
        run(client, "INSERT INTO t VALUES (1, 1), (2, 1), (3, 2)")
        context.coordinator.flush(lambda: False)
        check(client, views, "inserted")
    for change in ("DELETE FROM t WHERE k = 3", "UPDATE t SET g = 3 WHERE k = 1", "DELETE FROM t"):
        run(client, change)
        context.coordinator.flush(lambda: False)
        check(client, views, change)


def test_states_are_stored_whichever_way_changed_them(session: tuple[Context, Client]) -> None:
    context, client = session
    run(client, "CREATE TABLE t (k int PRIMARY KEY, g int, x int)")
    run(client, "CREATE TABLE d (g int PRIMARY KEY, name text)")
    run(client, "INSERT INTO t SELECT i, i % 4, i FROM generate_series(1, 40) AS g(i)")
    run(client, "INSERT INTO d SELECT i, 'n' || i FROM generate_series(0, 3) AS g(i)")
    ranked = "SELECT k, g, x, row_number() OVER (PARTITION BY g ORDER BY x DESC, k) AS n FROM t"
    views = {
        "first_of_each": f"SELECT * FROM ({ranked}) AS r WHERE n <= 2",
        "first_names": f"SELECT r.k, d.name FROM ({ranked}) AS r JOIN d ON d.g = r.g WHERE n = 1",
        "first_ones": "SELECT k, x FROM t ORDER BY x DESC, k LIMIT 3",
        "sums": "SELECT g, sum(x) AS x, count(DISTINCT x % 5) AS n FROM t GROUP BY g HAVING count(*) > 1",
    }
    for name, query in views.items():
        run(client, f"CREATE MATERIALIZED VIEW {name} AS {query}")
    modes = (INCREMENTAL, FULL, INCREMENTAL, FULL, FULL, INCREMENTAL, INCREMENTAL)
    for number, mode in enumerate(modes):
        run(client, f"ALTER SYSTEM SET refresh_mode = {mode}")
        run(client, f"UPDATE t SET x = x + 100 WHERE k % 7 = {number}")
        run(client, f"DELETE FROM t WHERE k = {number + 30}")
        run(client, f"INSERT INTO t VALUES ({100 + number}, {number % 4}, {500 * number}), ({200 + number}, NULL, 7)")
        context.coordinator.flush(lambda: False)
        if number % 3 != 2:  # some checkpoints store several epochs
            context.coordinator.checkpoints.run()
            with closing(context.store.lake.cursor()) as cursor:
                for relation in context.store.catalog.relations:
                    if relation.name in views:
                        assert check_view(context.store, cursor, context.plans, relation).findings == (), number
        check(client, views, f"epoch {number}")
