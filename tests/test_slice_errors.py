"""Rows whose expressions fail are counted as often by the slices of a fill as by one that is not cut."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import pytest
from test_exchanges import BUCKETS, Filling, in_bucket, planned
from test_law import opened, run

from sparkwave.catalog.stores.compute_errors import compute_errors
from sparkwave.executor.backfill import slicing, snapshot
from sparkwave.executor.backfill.job_group import JobGroup
from sparkwave.executor.epochs.delta_programs import checks_of
from sparkwave.planner.backfill.fragment_checks import (
    bucket_checks,
    merge_checks,
    rest_checks,
    slice_checks,
    whole_checks,
)
from sparkwave.planner.backfill.fragments import PARTIALS, Fragment, fragments, merge_query, whole_query
from sparkwave.planner.delta.checks import Check, fill_checks
from sparkwave.planner.functions.emit import to_sql
from sparkwave.server.context import Context
from sparkwave.server.dispatch import Client

TABLES = (
    "CREATE TABLE big (id int PRIMARY KEY, d bigint, b int, s varchar)",
    "CREATE TABLE small (id int PRIMARY KEY, s varchar, z int)",
    "INSERT INTO big SELECT i, nullif(i % 31, 5), i % 3, if(i % 7 = 0, 'x', i::varchar) FROM range(300) r(i)",
    "INSERT INTO small SELECT i, if(i % 5 = 0, 'y', i::varchar), i % 4 FROM range(40) r(i)",
)
QUERIES = {
    "map": "SELECT id, s::int AS x, id / b AS y FROM big WHERE d + s::int > -5",
    "join": "SELECT big.id, t.x, big.id / t.z AS y FROM big JOIN (SELECT id, z, s::int AS x FROM small) t ON d = t.id",
    "pairs": "SELECT big.id FROM big JOIN small ON d = small.id AND big.id / small.z > 0 AND big.s::int > 0",
    "left": "SELECT big.id, t.z FROM big LEFT JOIN small t ON d = t.id AND t.s::int > 1",
    "full": "SELECT x.a, y.b FROM (SELECT d, id / b AS a FROM big) x FULL JOIN (SELECT id, s::int AS b FROM small) y"
            " ON x.d = y.id",
    "full_of_join": "SELECT x.id, y.id / x.z AS q FROM (SELECT big.id, d, z FROM big JOIN small ON d = small.id"
                    " WHERE small.s::int > 0) x FULL JOIN (SELECT id, s::int AS n FROM big) y ON x.id = y.id",
    "union": "SELECT id, id / b AS x FROM big UNION ALL SELECT id, s::int FROM small",
    "union_of_joins": "SELECT big.id, t.n FROM big JOIN (SELECT id, s::int AS n FROM small) t ON d = t.id"
                      " UNION ALL SELECT id, id / z FROM small",
    "group": "SELECT d, sum(s::int) AS x, count(*) AS n FROM big GROUP BY d",
    "ratio": "SELECT b, 10 / sum(d) FILTER (WHERE d < 0) AS x, 7 / (count(*) - 100) AS y FROM big GROUP BY b",
    "listed": "SELECT d, string_agg(s, ',' ORDER BY id / b) AS x FROM big GROUP BY d",
    "listed_ratio": "SELECT d, count(DISTINCT id / b) AS n, 1 / (count(*) - 10) AS x FROM big GROUP BY d",
    "window": "SELECT id, sum(id / b) OVER (PARTITION BY d ORDER BY id) AS x FROM big WHERE s::int > 3",
    "over_groups": "SELECT g.n / small.z AS x FROM (SELECT d, count(*) AS n FROM big WHERE s::int > 0 GROUP BY d) g"
                   " JOIN small ON small.id = g.d",
    "top": "SELECT id AS i, s::int AS x FROM big ORDER BY id / nullif(b, 5) LIMIT 10",
}  # fmt: skip


@pytest.fixture(scope="module")
def tables(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Context, Client]]:
    with opened(tmp_path_factory.mktemp("slice_errors") / "lake") as (context, client):
        for statement in TABLES:
            run(client, statement)
        yield context, client


class Counting(Filling):
    """Counts the rows that fail in the parts of a fragment."""

    def count(self, checks: Iterable[Check]) -> int:
        found = 0
        for one in checks_of(checks):
            row = self.cursor.execute(one.count).fetchone()
            assert row is not None
            found += row[0]
        return found

    def in_parts(self, fragment: Fragment, is_bucket: bool) -> int:
        self.whole_inputs()
        found = self.count(rest_checks(self.plan, fragment, None if is_bucket else fragment.drivers))
        if is_bucket:
            for exchange in fragment.exchanges:
                found += self.in_parts(exchange, bool(exchange.exchanges))
            for _ in self.by_key(fragment):
                found += self.count(bucket_checks(self.plan, fragment))
        elif not fragment.drivers:
            return self.count(whole_checks(self.plan, fragment))
        else:
            for driver, _ in zip(
                (d for d in fragment.drivers for _ in range(3)), self.by_ranges(fragment), strict=True
            ):
                found += self.count(slice_checks(self.plan, fragment, driver))
        return found + (self.in_merges(fragment, is_bucket) if fragment.end is not None else 0)

    def in_merges(self, fragment: Fragment, is_bucket: bool) -> int:
        found = 0
        written = self.written(fragment, self.by_key(fragment) if is_bucket else self.by_ranges(fragment))
        for bucket in range(BUCKETS if fragment.keys else 1):
            self.bind(PARTIALS, in_bucket(written, bucket))
            for state in self.plan.states_in(fragment.target):
                self.bind(f"{state.name}_state", to_sql(merge_query(self.plan, fragment)))
            found += self.count(merge_checks(self.plan, fragment))
        return found


@pytest.mark.long
def test_parts_count_what_the_whole_does(tables: tuple[Context, Client]) -> None:
    context, _ = tables
    cursor = context.lake.cursor()
    cuts: Counter[str] = Counter()
    for name, query in QUERIES.items():
        plan = planned(context, query)
        counting = Counting(plan, cursor, context.lake.snapshot(cursor))
        inputs, seen = [scan.input for scan in plan.scans], set()
        for large in (None, *inputs):
            found = fragments(plan, {i: 1000 if large in (None, i) else 1 for i in inputs})
            total = 0
            for fragment in found:
                counting.whole_inputs()
                for state in plan.states_in(fragment.target):
                    counting.bind(f"{state.name}_state", to_sql(whole_query(plan, fragment)))
                expected = counting.count(whole_checks(plan, fragment))
                total += expected
                for is_bucket in (True, False):
                    cut = fragment.exchanges if is_bucket else fragment.drivers
                    if cut and (fragment.id, cut) not in seen:
                        seen.add((fragment.id, cut))
                        cuts["key" if is_bucket else "ranges"] += 1
                        got = counting.in_parts(fragment, is_bucket)
                        assert got == expected, (name, fragment.id, large, is_bucket)
                        for state in plan.states_in(fragment.target):
                            counting.bind(f"{state.name}_state", to_sql(whole_query(plan, fragment)))
            counting.whole_inputs()
            assert total == counting.count(fill_checks(plan)) > 0, name
    assert cuts["key"] > 8 and cuts["ranges"] > 14, cuts


@pytest.mark.long
@pytest.mark.spark
@pytest.mark.timeout(300)
def test_on_spark(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Several slices count what one does, also when the commit of some fails and they are tried again."""
    names = ("join", "full", "listed_ratio")
    monkeypatch.setattr(slicing, "MOST_TIMES", 2)
    monkeypatch.setattr(JobGroup, "slots", 2)
    finish: Callable[..., None] = snapshot.finish_slices
    finished: list[int] = []

    def failing_once(*arguments: object) -> None:
        finished.append(len(finished))
        if len(finished) == 2:
            raise OSError("the commit fails")
        finish(*arguments)

    monkeypatch.setattr(snapshot, "finish_slices", failing_once)
    with opened(tmp_path / "lake", backfill_slice_rows="50") as (context, client):
        for statement in TABLES:
            run(client, statement)
        for engine in ("auto", "spark"):
            run(client, f"ALTER SYSTEM SET backfill_engine = {engine}")
            for name in names:
                run(client, f"CREATE MATERIALIZED VIEW {name}_{engine} AS {QUERIES[name]}")
        for name in names:
            assert Counter(run(client, f"SELECT * FROM {name}_spark")) == Counter(
                run(client, f"SELECT * FROM {name}_auto")
            ), name
        with context.lake.cursor() as cursor:
            errors = compute_errors(cursor)
        rows = {r.name: errors[r.id][0].rows for r in context.store.catalog.relations if r.id in errors}
        for name in names:
            assert rows[f"{name}_spark"] == rows[f"{name}_auto"] > 0, name
    assert len(finished) > 6
