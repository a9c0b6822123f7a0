"""The law while a backfill runs: every strategy, with changes to all upstreams between and during its steps."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from marking import long_but
from test_law import check, opened, run
from test_operators import FIRST, OPERATORS, TABLES

from sparkwave.server.context import Context
from sparkwave.server.dispatch import Client

STRATEGIES = ("snapshot", "arrangement", "no_shuffle")
MAPS = ("filter", "unnest", "series", "union_all")
QUERIES = {**OPERATORS, "union_all": "SELECT a FROM t WHERE b > 1 UNION ALL SELECT k FROM u UNION ALL SELECT b FROM t"}


def change(chance: random.Random) -> str:
    """A change to one of the upstreams: some rows come, go, or move to another key."""
    a, b, k = chance.randint(0, 9), chance.randint(0, 9), chance.randint(1, 12)
    text = chance.choice(("'a'", "'b'", "NULL"))
    return chance.choice(
        (
            f"INSERT INTO t SELECT {a}, i, {text}, NULL FROM generate_series(1, {b + 1}) AS g(i)",
            f"INSERT INTO t VALUES (NULL, {b}, {text}, '2024-02-29 23:59:0{a}')",
            f"UPDATE t SET b = {b} WHERE a = {a}",
            f"UPDATE t SET a = a + 1, s = {text} WHERE b = {b}",
            f"DELETE FROM t WHERE a = {a} AND b < 5",
            f"INSERT INTO u VALUES ({k}, {b}, {text})",
            f"UPDATE u SET b = {a}, s = {text} WHERE k = {k}",
            f"DELETE FROM u WHERE k = {k}",
            f"INSERT INTO arrays VALUES ({k}, ARRAY[{a}, NULL, {b}])",
            f"DELETE FROM arrays WHERE k = {k}",
        )
    )


class Changes:
    """Changes the tables from a session of its own until it is left."""

    def __init__(self, context: Context, seed: int, pause_s: float) -> None:
        self._client = Client(context, {"user": "root"})
        self._chance = random.Random(seed)
        self._pause_s = pause_s
        self._over = threading.Event()
        self.made: list[str] = []
        self.error: Exception | None = None
        self._thread = threading.Thread(target=self._run)

    def _run(self) -> None:
        try:
            while not self._over.wait(self._pause_s):
                self.made.append(change(self._chance))
                run(self._client, self.made[-1])
        except Exception as error:
            self.error = error

    def __enter__(self) -> Changes:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()
        if self.error is not None:
            raise self.error


def hold(context: Context, client: Client, name: str, strategy: str, seed: int, options: str = "") -> int:
    """Create a view while the tables change, and hold the law at the end. Returns the changes made meanwhile."""
    with Changes(context, seed, 0.02) as changes:
        option = f"backfill_strategy = '{strategy}'{options}"
        run(client, f"CREATE MATERIALIZED VIEW made WITH ({option}) AS {QUERIES[name]}")
    context.coordinator.flush(lambda: False)
    check(client, {"made": QUERIES[name]}, f"{name}, {strategy}, {len(changes.made)} changes")
    run(client, "DROP MATERIALIZED VIEW made")
    return len(changes.made)


def refilled(client: Client) -> None:
    """The tables as they are at the start of each view."""
    for table in ("t", "u", "arrays"):
        run(client, f"DELETE FROM {table}")
    for statement in FIRST:
        run(client, statement)


# What is filled by each strategy in `make test`; the long tests fill everything by all that can.
SAMPLE: dict[str, tuple[str, ...]] = {
    "snapshot": ("inner", "group", "window"),
    "arrangement": (
        "left",
        "full",
        "not_in",
        "group",
        "global",
        "distinct_count",
        "top_n",
        "window",
        "union_all",
        "hop",
    ),
    "no_shuffle": MAPS,
}
EVERYTHING = {"snapshot": tuple(QUERIES), "arrangement": tuple(QUERIES), "no_shuffle": MAPS}


def in_process(directory: Path, strategy: str, names: tuple[str, ...]) -> None:
    """Steps of 9 rows. With a rate limit a snapshot backfill reads on by steps too."""
    with opened(directory, backfill_engine="auto", backfill_slice_rows="9") as (context, client):
        for statement in TABLES:
            run(client, statement)
        options = ", backfill_rate_limit = 1000" if strategy == "snapshot" else ""
        made = 0
        for seed, name in enumerate(names):
            refilled(client)
            made += hold(context, client, name, strategy, seed, options)
        assert made > len(names)


@pytest.mark.parametrize("strategy", long_but(["arrangement"], STRATEGIES))
def test_changes_before_the_first_step(tmp_path: Path, strategy: str) -> None:
    """A job that is paused from the start sees what came meanwhile once, not twice."""
    with opened(tmp_path / "lake", backfill_engine="auto", backfill_slice_rows="9") as (context, client):
        for statement in (*TABLES, *FIRST, "SET background_ddl = true"):
            run(client, statement)
        chance = random.Random(strategy)
        for name in ("filter", "union_all") if strategy == "no_shuffle" else ("group", "left"):
            option = f"backfill_strategy = '{strategy}', backfill_rate_limit = 0"
            run(client, f"CREATE MATERIALIZED VIEW made WITH ({option}) AS {QUERIES[name]}")
            for _ in range(5):
                run(client, change(chance))
            time.sleep(0.3)
            run(client, "ALTER MATERIALIZED VIEW made SET BACKFILL_RATE_LIMIT TO DEFAULT")
            context.coordinator.notify()
            run(client, "WAIT")
            context.coordinator.flush(lambda: False)
            check(client, {"made": QUERIES[name]}, f"{name}, {strategy}")
            run(client, "DROP MATERIALIZED VIEW made")


@pytest.mark.parametrize("strategy", long_but(["no_shuffle"], STRATEGIES))
def test_in_process(tmp_path: Path, strategy: str) -> None:
    in_process(tmp_path / "lake", strategy, SAMPLE[strategy])


@pytest.mark.parametrize(
    "first", [(), FIRST[1:3], ("INSERT INTO t VALUES (1, 2, 'a', NULL)",)], ids=["empty", "few", "one"]
)
@pytest.mark.parametrize("strategy", long_but(["no_shuffle"], ["arrangement", "no_shuffle"]))
def test_little_data_that_grows(tmp_path: Path, strategy: str, first: tuple[str, ...]) -> None:
    """Tables that are empty, or nearly so, and grow faster than they are read: a step reads one row."""
    with opened(tmp_path / "lake", backfill_engine="auto", backfill_slice_rows="1") as (context, client):
        for statement in (*TABLES, *first):
            run(client, statement)
        for seed, name in enumerate(("union_all",) if strategy == "no_shuffle" else ("left", "global")):
            hold(context, client, name, strategy, seed)


@pytest.mark.long
@pytest.mark.parametrize("strategy", ["arrangement", "no_shuffle"])
def test_several_views_at_once_and_one_over_a_view(tmp_path: Path, strategy: str) -> None:
    """A view is an upstream whose rows get new row ids when they change."""
    base = "SELECT a, b, s FROM t WHERE a IS NOT NULL"
    upper = {
        "filter": "SELECT a, b FROM base WHERE b > 1",
        "join": "SELECT base.a, u.s AS x FROM base JOIN u ON base.b = u.k",
    }
    names = ("filter", "union_all") if strategy == "no_shuffle" else ("filter", "left", "group", "distinct_count")
    views = {name: QUERIES[name] for name in names}
    views |= {f"over_{name}": upper[name] for name in (("filter",) if strategy == "no_shuffle" else upper)}
    with opened(tmp_path / "lake", backfill_engine="auto", backfill_slice_rows="10") as (context, client):
        for statement in (*TABLES, *FIRST, f"CREATE MATERIALIZED VIEW base AS {base}", "SET background_ddl = true"):
            run(client, statement)
        with Changes(context, 7, 0.03) as changes:
            for name, query in views.items():
                option = f"backfill_strategy = '{strategy}', backfill_rate_limit = 20"
                run(client, f'CREATE MATERIALIZED VIEW "{name}_" WITH ({option}) AS {query}')
            assert len(run(client, "SELECT * FROM rw_catalog.rw_ddl_progress")) > 1
            for name in views:
                run(client, f'ALTER MATERIALIZED VIEW "{name}_" SET BACKFILL_RATE_LIMIT TO DEFAULT')
            run(client, "WAIT")
        context.coordinator.flush(lambda: False)
        check(
            client, {f'"{name}_"': query for name, query in views.items()}, f"{strategy}, {len(changes.made)} changes"
        )


@pytest.mark.long
@pytest.mark.timeout(900)
@pytest.mark.parametrize("strategy", STRATEGIES)
def test_everything_in_process(tmp_path: Path, strategy: str) -> None:
    in_process(tmp_path / "lake", strategy, EVERYTHING[strategy])


@pytest.fixture(scope="module")
def on_spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Context, Client]]:
    """Every step that reads on runs on Spark, those that take up changes too; of a few rows each."""
    directory = tmp_path_factory.mktemp("spark") / "lake"
    with opened(directory, streaming_engine="spark", backfill_slice_rows="12") as (context, client):
        for statement in TABLES:
            run(client, statement)
        yield context, client


@pytest.mark.spark
@pytest.mark.timeout(300)
@pytest.mark.parametrize(("strategy", "name"), [("arrangement", "group"), ("no_shuffle", "union_all")])
@pytest.mark.long
def test_on_spark(on_spark: tuple[Context, Client], strategy: str, name: str) -> None:
    refilled(on_spark[1])
    hold(*on_spark, name, strategy, 1)


@pytest.mark.spark
@pytest.mark.long
@pytest.mark.timeout(900)
@pytest.mark.parametrize("strategy", STRATEGIES)
def test_more_on_spark(on_spark: tuple[Context, Client], strategy: str) -> None:
    for seed, name in enumerate(SAMPLE[strategy]):
        refilled(on_spark[1])
        hold(*on_spark, name, strategy, seed)
