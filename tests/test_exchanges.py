"""A fragment that is cut has the rows of the whole one: by ranges of its drivers, and by key, whatever moves."""

from __future__ import annotations

import re
import threading
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from test_law import check, comparable, opened, run
from test_operators import FIRST, STRUCT_FIRST, STRUCT_TABLES, STRUCTS, TABLES
from test_strategies import QUERIES

from sparkwave.catalog.lake.ducklake import Cursor
from sparkwave.catalog.model import Epoch, Position
from sparkwave.catalog.stores.job_store import BUCKET
from sparkwave.executor.backfill import slicing
from sparkwave.executor.backfill.job_group import JobGroup
from sparkwave.executor.backfill.progress import Progress, Rows
from sparkwave.executor.backfill.slicing import plan_slices
from sparkwave.executor.epochs.versions import rows_at
from sparkwave.executor.spark.lake_rows import BUCKET_COLUMN, in_buckets, no_rows
from sparkwave.planner.backfill.fragments import (
    PARTIALS,
    Fragment,
    bucket_query,
    fragments,
    merge_query,
    slice_query,
    whole_query,
)
from sparkwave.planner.bind.binder import Scope
from sparkwave.planner.functions.emit import to_sql
from sparkwave.planner.parse.statement import parse_statement
from sparkwave.planner.plan.stream_plan import StreamPlan, plan_view
from sparkwave.planner.statements import CreateMaterializedView
from sparkwave.server.context import Context
from sparkwave.server.dispatch import Client

MORE = {
    "chain": "SELECT t.a, v.s FROM t JOIN u ON t.b = u.k JOIN t AS v ON v.a = u.b",
    "full_chain": """SELECT x.a, u.s, y.b FROM t AS x FULL JOIN u ON x.b = u.k
                     FULL JOIN (SELECT a, b FROM t WHERE b > 1) AS y ON y.b = u.b""",
    "window_of_join": "SELECT t.a, u.s, count(*) OVER (PARTITION BY u.s ORDER BY t.a) AS n FROM t JOIN u ON t.b = u.k",
    "listed": "SELECT u.s, string_agg(t.s, ',' ORDER BY t.a, t.s) AS l FROM t LEFT JOIN u ON t.b = u.k GROUP BY u.s",
    "median": "SELECT b, percentile_cont(0.5) WITHIN GROUP (ORDER BY a) AS m, count(DISTINCT s) AS n FROM t GROUP BY b",
    "distinct_in_all": "SELECT count(DISTINCT a) AS n FROM t WHERE b > 0",
    "grouped_join": "SELECT x.b, count(*) AS n, max(y.a) AS m FROM t AS x JOIN t AS y ON x.a = y.b GROUP BY x.b",
    "union_of_windows": """SELECT a, sum(b) OVER (PARTITION BY a) AS x FROM t UNION ALL SELECT k, b FROM u
                           UNION ALL SELECT * FROM (VALUES (1, 2), (3, NULL)) AS v (p, q)""",
    "of_one_type": "SELECT t.a FROM t LEFT JOIN u ON t.b::bigint = u.k AND t.s = u.s",
    "of_two_types": "SELECT t.a, u.k FROM t FULL JOIN u ON t.b::numeric = u.k",
    "full_groups": """SELECT x.s, y.n FROM (SELECT s, count(*) AS n FROM t GROUP BY s) AS x
                      FULL JOIN (SELECT s, count(*) AS n FROM u GROUP BY s) AS y ON x.s = y.s""",
    "last_of_join": """SELECT * FROM (SELECT t.a, u.s, row_number() OVER (PARTITION BY u.s ORDER BY t.a DESC) AS n
                       FROM t JOIN u ON t.b = u.k) AS r WHERE n < 3""",
    "left_of_window": """SELECT u.k, w.r FROM u LEFT JOIN
                         (SELECT a, rank() OVER (PARTITION BY b ORDER BY a) AS r FROM t) AS w ON w.a = u.k""",
}
ALL = {**QUERIES, **STRUCTS, **MORE}
BUCKETS = 3


@pytest.fixture(scope="module")
def tables(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Context, Client]]:
    with opened(tmp_path_factory.mktemp("exchanges") / "lake") as (context, client):
        for statement in (*TABLES, *STRUCT_TABLES, *FIRST, *STRUCT_FIRST):
            run(client, statement)
        yield context, client


@dataclass(frozen=True)
class Filling:
    """Computes the fragments of a plan on a cursor, in parts that are put together."""

    plan: StreamPlan
    cursor: Cursor
    snapshot: int

    def rows(self, query: str) -> Counter[str]:
        return Counter(str(tuple(map(comparable, row))) for row in self.cursor.execute(query).fetchall())

    def bind(self, name: str, query: str) -> None:
        self.cursor.execute(f'CREATE OR REPLACE TEMPORARY TABLE "{name}" AS {query}')

    def whole_inputs(self) -> None:
        for scan in self.plan.scans:
            self.bind(f"{scan.input}_new", rows_at(scan, self.snapshot))

    def by_ranges(self, fragment: Fragment) -> Iterator[str]:
        """The queries of three slices of each driver, which are bound before each of them."""
        for driver in fragment.drivers:
            [scan] = [scan for scan in self.plan.scans if scan.input == driver]
            for part in range(3):
                where = f"WHERE rowid % 3 = {part}"
                self.bind(f"{driver}_new", f"{rows_at(scan, self.snapshot)} {where}")
                yield to_sql(slice_query(self.plan, fragment, driver))
        self.whole_inputs()

    def by_key(self, fragment: Fragment) -> Iterator[str]:
        moved = {exchange.relation: self.exchanged(exchange) for exchange in fragment.exchanges}
        for bucket in range(BUCKETS):
            for name, written in moved.items():
                self.bind(
                    str(name), f"SELECT * EXCLUDE ({BUCKET_COLUMN}) FROM {written} WHERE {BUCKET_COLUMN} = {bucket}"
                )
            yield to_sql(bucket_query(self.plan, fragment))

    def exchanged(self, fragment: Fragment) -> str:
        """A table of the rows of an exchange with their buckets."""
        parts = self.by_key(fragment) if fragment.exchanges else self.by_ranges(fragment)
        return self.written(fragment, parts if fragment.exchanges or fragment.drivers else self.whole(fragment))

    def whole(self, fragment: Fragment) -> Iterator[str]:
        yield to_sql(whole_query(self.plan, fragment))

    def written(self, fragment: Fragment, parts: Iterator[str]) -> str:
        name = f"written_{fragment.id}"
        types = {field.name: field.type for field in fragment.partial_fields}
        stored = {field: type_.in_lake() for field, type_ in types.items()}
        self.bind(name, f"SELECT *, 0 AS {BUCKET_COLUMN} FROM ({no_rows(stored)})")
        for query in parts:
            keys = [to_sql(key) for key in fragment.keys]
            self.cursor.execute(f"INSERT INTO {name} {in_buckets(query, types, keys, BUCKETS)}")
        return name

    def result(self, fragment: Fragment, parts: Iterator[str]) -> Counter[str]:
        """What the parts give when they are put together."""
        found: Counter[str] = Counter()
        if fragment.end is None:
            for query in parts:
                found += self.rows(query)
            return found
        written = self.written(fragment, parts)
        for bucket in range(BUCKETS if fragment.keys else 1):
            self.bind(PARTIALS, in_bucket(written, bucket))
            found += self.rows(to_sql(merge_query(self.plan, fragment)))
        return found


def in_bucket(table: str, bucket: int) -> str:
    return f"SELECT * EXCLUDE ({BUCKET_COLUMN}) FROM {table} WHERE {BUCKET_COLUMN} = {bucket}"


@pytest.mark.long
def test_every_way_to_cut(tables: tuple[Context, Client]) -> None:
    """All fragments of all operators, with inputs that are large, or small beside the largest, one by one."""
    context, _ = tables
    cuts: Counter[str] = Counter()
    cursor = context.lake.cursor()
    for name, query in ALL.items():
        plan = planned(context, query)
        filling = Filling(plan, cursor, context.lake.snapshot(cursor))
        filling.whole_inputs()
        inputs, seen = [scan.input for scan in plan.scans], set()
        for large in (None, *inputs):
            for fragment in fragments(plan, {i: 1000 if large in (None, i) else 1 for i in inputs}):
                whole = to_sql(whole_query(plan, fragment))
                for state in plan.states_in(fragment.target):
                    filling.bind(f"{state.name}_state", whole)
                if (fragment.id, fragment.drivers, fragment.exchanges) in seen:
                    continue
                seen.add((fragment.id, fragment.drivers, fragment.exchanges))
                expected = filling.rows(whole)
                where = f"{name}, fragment {fragment.id}, large: {large or 'all'}"
                if fragment.drivers:
                    cuts["ranges"] += 1
                    assert filling.result(fragment, filling.by_ranges(fragment)) == expected, f"ranges: {where}"
                if fragment.exchanges:
                    cuts["key"] += 1
                    assert filling.result(fragment, filling.by_key(fragment)) == expected, f"key: {where}"
    assert cuts["key"] > 30 and cuts["ranges"] > 80, cuts


def planned(context: Context, query: str) -> StreamPlan:
    catalog = context.store.catalog
    statement = parse_statement(f"CREATE MATERIALIZED VIEW made AS {query}")
    assert isinstance(statement, CreateMaterializedView)
    return plan_view(statement, catalog, Scope("dev"))


# What is filled on Spark: by key and then by groups; of several exchanges, one of which reads others.
ON_SPARK = {
    "full": "SELECT b.id, s.id AS small, b.name FROM big AS b FULL JOIN small AS s ON b.d = s.id",
    "window": "SELECT id, rank() OVER w AS r, sum(price) OVER w AS x FROM big WINDOW w AS (PARTITION BY d ORDER BY id)",
    "listed": "SELECT d, count(DISTINCT name) AS n, string_agg(name, '-' ORDER BY id) AS l FROM big GROUP BY d",
    "grouped": "SELECT s.name, count(*) AS n, sum(price) AS x FROM big FULL JOIN small AS s ON d = s.id GROUP BY 1",
    "chain": """SELECT b.id, w.r, c.span FROM big AS b FULL JOIN
                (SELECT id, rank() OVER (PARTITION BY name ORDER BY id) AS r FROM small) AS w ON b.d = w.id
                LEFT JOIN small AS c ON w.r = c.id""",
}


# The rows of the tables that they read, of one that is read twice both times.
ROWS_READ = {"full": 1350, "window": 900, "listed": 900, "grouped": 1350, "chain": 1800}


def watched(context: Context, monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, int]]:
    """What SHOW JOBS tells after each commit: the rows that are read, but for the last, and of how many."""
    shown: list[tuple[int, int]] = []
    other, finish, looking = Client(context, {"user": "root"}), Progress.finish, threading.Lock()

    def finish_and_look(self: Progress, rows: Rows) -> None:
        finish(self, rows)
        with looking:  # two jobs run at a time: what one has seen first is noted first
            for *_, text in run(other, "SHOW JOBS"):
                found = re.findall(r"Snapshot \[.*\((\d+)/(\d+)\)\]", str(text))
                shown.extend((int(read), int(total)) for read, total in found)

    monkeypatch.setattr(Progress, "finish", finish_and_look)
    return shown


@pytest.mark.spark
@pytest.mark.timeout(300)
@pytest.mark.parametrize("names", ["grouped listed", "full window chain"])
@pytest.mark.long
def test_on_spark(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, names: str) -> None:
    """Rows move between tasks through files, and nothing of them is left behind. Progress counts each of them once."""
    monkeypatch.setattr(slicing, "MOST_TIMES", 2)
    monkeypatch.setattr(JobGroup, "slots", 2)  # a job has two tasks, as on two nodes
    views = {name: ON_SPARK[name] for name in names.split()}
    with opened(tmp_path / "lake", backfill_engine="spark", backfill_slice_rows="150") as (context, client):
        run(client, "CREATE TABLE big (id int PRIMARY KEY, d bigint, name varchar, price numeric(12, 2))")
        run(client, "CREATE TABLE small (id int PRIMARY KEY, name varchar, span interval)")
        run(client, "INSERT INTO big SELECT i, nullif(i % 311, 5), 'n' || i % 7, i * 1.25 FROM range(900) r(i)")
        run(client, "INSERT INTO small SELECT i, nullif('s' || i % 9, 's3'), i * INTERVAL '1 day' FROM range(450) r(i)")
        shown = watched(context, monkeypatch)
        for name, query in views.items():
            cursor = context.lake.cursor()
            cut = plan_slices(
                cursor, planned(context, query), Position.at(Epoch(context.lake.snapshot(cursor), 0)), 150
            )
            assert any(s.input is None if name == "listed" else s.input == BUCKET for s in cut), name
            run(client, f"CREATE MATERIALIZED VIEW {name} AS {query}")
            assert {total for _, total in shown} == {ROWS_READ[name]}, name
            assert shown == sorted(shown) and len(set(shown)) > 2 and shown[-1][0] < ROWS_READ[name]
            shown.clear()
        check(client, views, "filled")
        run(client, "UPDATE big SET d = d + 1 WHERE id % 3 = 0")
        run(client, "DELETE FROM small WHERE id % 5 = 0")
        context.coordinator.flush(lambda: False)
        check(client, views, "changed")
        assert not list(Path(str(context.lake.staging_path)).rglob("*.parquet"))
