"""Epochs change views in memory, and checkpoints store them: whoever reads them sees the same, whatever happens."""

from __future__ import annotations

import random
import shutil
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import duckdb
import pytest
from fuzz import standard
from marking import long_but
from servers import wait_until
from test_law import as_bag, check, opened, run

from sparkwave.catalog.lake.ducklake import Cursor
from sparkwave.catalog.model import Epoch
from sparkwave.executor.epochs import checkpoints
from sparkwave.executor.memory import copies, shared_buffer
from sparkwave.executor.memory.shared_buffer import Frozen
from sparkwave.server.context import Context
from sparkwave.server.dispatch import Client

VIEWS = {
    "sums": "SELECT a % 7 AS k, count(*) AS n, sum(b) AS s, max(b) AS m FROM t GROUP BY a % 7",
    "totals": "SELECT count(*) AS n, sum(b) AS s FROM t",
    "over": "SELECT n, count(*) AS many, sum(s) AS s FROM sums GROUP BY n",
    "joined": "SELECT t.a, t.b, u.c FROM t LEFT JOIN u ON t.a % 7 = u.k",
    "firsts": "SELECT a, b FROM t ORDER BY b DESC, a LIMIT 5",
    "kinds": "SELECT DISTINCT b % 3 AS kind FROM t",
    "nothing": "SELECT a FROM t WHERE b > 1000",
}
TABLES = (
    "CREATE TABLE t (a int PRIMARY KEY, b int)",
    "CREATE TABLE u (k int, c varchar)",
    "INSERT INTO t SELECT i, i % 10 FROM range(50) r(i)",
    "INSERT INTO u VALUES (0, 'zero'), (1, 'one'), (NULL, 'none')",
)


def create(client: Client) -> None:
    run_all(client, *TABLES, *(f"CREATE MATERIALIZED VIEW {name} AS {query}" for name, query in VIEWS.items()))


def run_all(client: Client, *statements: str) -> None:
    for statement in statements:
        run(client, statement)


def change(client: Client, choice: random.Random) -> None:
    """Some rows come, go and become others."""
    for _ in range(choice.randint(1, 4)):
        a, b = choice.randint(0, 60), choice.choice((*range(10), "NULL"))
        run(
            client,
            choice.choice(
                (
                    f"INSERT INTO t VALUES ({a}, {b})",
                    f"UPDATE t SET b = {b} WHERE a % 11 = {a % 11}",
                    f"DELETE FROM t WHERE a = {a}",
                    f"DELETE FROM t WHERE a > {40 + a}",
                    f"INSERT INTO u VALUES ({a % 8}, 'new {a}')",
                    f"DELETE FROM u WHERE k = {a % 8}",
                )
            ),
        )


def has_changes(context: Context) -> bool:
    return context.buffer.has_changes


@pytest.mark.parametrize("seed", long_but([0], range(20)))
def test_checkpoints_at_any_moment(tmp_path: Path, seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """With copies and without, also after a start in which nothing is left of what no checkpoint has stored."""
    choice, lake = random.Random(seed), tmp_path / "lake"
    monkeypatch.setattr(copies, "MANY_ROWS", 20)
    unstored = 0
    with opened(lake, streaming_engine="duckdb", backfill_engine="auto") as (_, client):
        create(client)
    for start in range(3):
        with opened(lake, streaming_engine="duckdb", backfill_engine="auto") as (context, client):
            for _ in range(6):
                if not choice.randrange(4):
                    run(client, f"ALTER SYSTEM SET epoch_cache_mib = {choice.choice((0, 1, 1024))}")
                change(client, choice)
                context.coordinator.flush(lambda: False)
                check(client, VIEWS, "after an epoch")
                if not choice.randrange(3):
                    context.coordinator.checkpoints.run()
                    assert not has_changes(context)
                    check(client, VIEWS, "after a checkpoint")
                    run(client, "SET visibility_mode = checkpoint")
                    check(client, VIEWS, "as it is stored")
                    run(client, "SET visibility_mode = DEFAULT")
            unstored += has_changes(context)
            shutil.copytree(lake, crashed := tmp_path / f"crashed_{start}")
        lake = crashed
    with opened(lake, streaming_engine="duckdb", backfill_engine="auto") as (context, client):
        context.coordinator.flush(lambda: False)
        check(client, VIEWS, "after a crash")
    assert unstored


def test_epochs_go_on_while_a_checkpoint_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is stored is of the epoch at which it began, and what comes meanwhile is stored by the next one."""
    store, choice, frozen_at = Frozen.store, random.Random(1), list[int]()

    def store_late(frozen: Frozen, cursor: Cursor, give_way: Callable[[], None]) -> None:
        with ThreadPoolExecutor() as threads:
            threads.submit(change_and_flush).result(60)
        frozen_at.append(frozen.epoch.snapshot)
        store(frozen, cursor, give_way)

    def change_and_flush() -> None:
        change(client, choice)
        context.coordinator.flush(lambda: False)

    with opened(tmp_path / "lake", streaming_engine="duckdb", backfill_engine="auto") as (context, client):
        create(client)
        left = 0
        for _ in range(5):
            change_and_flush()
            with monkeypatch.context() as patched:
                patched.setattr(Frozen, "store", store_late)
                context.coordinator.checkpoints.run()
            left += has_changes(context)
            run(client, "SET visibility_mode = checkpoint")
            stored = {name: as_bag(run(client, f"SELECT * FROM {name}")) for name in VIEWS}
            run(client, "SET visibility_mode = DEFAULT")
            check(client, VIEWS, "while there is more to store")
            for name in VIEWS.keys() - {"over"}:
                assert stored[name] == as_bag(run(client, at(VIEWS[name], frozen_at[-1]))), name
        assert left


def test_barriers_go_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The checkpoint of the clock stands still while a barrier runs, unless somebody waits for it."""
    monkeypatch.setattr(checkpoints, "PATIENCE_S", 60)
    with opened(tmp_path / "lake", barrier_interval_ms="100") as (context, client), ThreadPoolExecutor() as threads:
        create(client)
        stores = context.coordinator.checkpoints
        with context.coordinator.barrier_lock:  # so that no barrier says that there is none
            stores.run()
            threads.submit(run, client, "INSERT INTO t VALUES (100, 100)").result(30)
            context.coordinator.barrier()
            with stores.beside_a_barrier():
                time.sleep(1)
                assert has_changes(context)
                threads.submit(stores.run).result(30)
                assert not has_changes(context)
            threads.submit(run, client, "INSERT INTO t VALUES (101, 100)").result(30)
            context.coordinator.barrier()
            assert wait_until(lambda: not has_changes(context))


def at(query: str, snapshot: int) -> str:
    """A query over the tables as of a snapshot."""
    for table in ("t", "u"):
        query = query.replace(f"FROM {table}", f"FROM {table} FOR SYSTEM_VERSION AS OF {snapshot}")
        query = query.replace(f"JOIN {table}", f"JOIN {table} FOR SYSTEM_VERSION AS OF {snapshot}")
    return query


def test_a_query_sees_one_epoch(tmp_path: Path) -> None:
    """Over views that have copies, that have none, and over tables, which have no less rows than views."""
    views = {
        "small": "SELECT count(*) AS n FROM t",
        "same": "SELECT a FROM t",
        "odd": "SELECT a % 2 AS odd, count(*) AS n FROM t GROUP BY a % 2",
    }
    of_views = "SELECT (SELECT n FROM small), (SELECT count(*) FROM same), (SELECT sum(n) FROM odd)"
    mixed = "SELECT (SELECT n FROM small), (SELECT count(*) FROM t)"
    found: list[tuple[object, ...]] = []
    given = {
        "streaming_engine": "duckdb",
        "backfill_engine": "auto",
        "barrier_interval_ms": "50",
        "epoch_cache_mib": "1",
    }
    with opened(tmp_path / "lake", **given) as (context, client):
        run(client, "CREATE TABLE t (a int PRIMARY KEY)")
        run(client, "INSERT INTO t SELECT i FROM range(20000) r(i)")
        run_all(client, *(f"CREATE MATERIALIZED VIEW {name} AS {query}" for name, query in views.items()))
        readers = [Reader(context, of_views, found), Reader(context, mixed, found)]
        for reader in readers:
            reader.start()
        for number in range(30):
            run(client, f"INSERT INTO t SELECT i FROM range({20000 + 10 * number}, {20010 + 10 * number}) r(i)")
            if number % 7 == 0:
                run(client, "FLUSH")
        for reader in readers:
            reader.end()
    counts = {len(row): 0 for row in found}
    for row in found:
        counts[len(row)] += 1
        assert len(set(row)) == 1 if len(row) == 3 else row[0] <= row[1], row  # type: ignore[operator]
    assert counts[2] > 10 and counts[3] > 10


class Reader(threading.Thread):
    """Runs a query again and again."""

    def __init__(self, context: Context, query: str, found: list[tuple[object, ...]]) -> None:
        super().__init__(daemon=True)
        self._client, self._query, self._found = Client(context, {"user": "root"}), query, found
        self._is_over = threading.Event()
        self._error: BaseException | None = None

    def run(self) -> None:
        try:
            while not self._is_over.is_set():
                self._found += [tuple(map(int, row)) for row in run(self._client, self._query)]  # type: ignore[call-overload]
        except BaseException as error:
            self._error = error

    def end(self) -> None:
        self._is_over.set()
        self.join(30)
        assert self._error is None, self._error


READS: dict[str, Callable[[Client], list[tuple[object, ...]]]] = {
    "a transaction": lambda client: in_transaction(client, "SELECT n FROM totals"),
    "the past": lambda client: run(client, "SELECT n FROM totals FOR SYSTEM_TIME AS OF NOW()"),
    "a new view": lambda client: created(client, "SELECT n FROM totals"),
    "a view of the view": lambda client: run(client, "SELECT n FROM above"),
}


@pytest.mark.parametrize("how", READS)
def test_reads_that_need_a_checkpoint(tmp_path: Path, how: str) -> None:
    with opened(tmp_path / "lake", streaming_engine="duckdb", backfill_engine="auto") as (context, client):
        run_all(client, *TABLES, f"CREATE MATERIALIZED VIEW totals AS {VIEWS['totals']}")
        run(client, "CREATE MATERIALIZED VIEW above AS SELECT n FROM totals")
        for number in range(3):
            run(client, f"INSERT INTO t VALUES ({100 + number}, 1)")
            context.coordinator.flush(lambda: False)
            assert has_changes(context)
            assert READS[how](client) == [(51 + number,)]


def in_transaction(client: Client, query: str) -> list[tuple[object, ...]]:
    run(client, "BEGIN READ ONLY")
    try:
        return run(client, query)
    finally:
        run(client, "COMMIT")


def created(client: Client, query: str) -> list[tuple[object, ...]]:
    run(client, f"CREATE MATERIALIZED VIEW made AS {query}")
    try:
        return run(client, "SELECT * FROM made")
    finally:
        run(client, "DROP MATERIALIZED VIEW made")


def test_what_does_not_fit_is_stored_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shared_buffer, "MOST_ROWS", 30)
    choice = random.Random(3)
    with opened(tmp_path / "lake", streaming_engine="duckdb", backfill_engine="auto") as (context, client):
        create(client)
        stored = set()
        for _ in range(10):
            change(client, choice)
            context.coordinator.flush(lambda: False)
            check(client, VIEWS, "after an epoch")
            stored.add(context.coordinator.checkpoints.stored.snapshot)
        assert len(stored) > 3


def test_standard_views_with_checkpoints(tmp_path: Path) -> None:
    """What random changes of the fuzzer's tables make of views that have NULLs and texts in their keys."""
    queries = {
        "g": "SELECT s, b, count(*) AS n FROM t GROUP BY s, b",
        "j": "SELECT t.a, t.s, u.k FROM t FULL JOIN u ON t.s = u.s",
    }
    changes, choice = standard.changes(random.Random(5)), random.Random(5)
    with opened(tmp_path / "lake", streaming_engine="duckdb", backfill_engine="auto") as (context, client):
        for table in standard.TABLES:
            run(client, table.create())
        run_all(client, *(f"CREATE MATERIALIZED VIEW {name} AS {query}" for name, query in queries.items()))
        for _ in range(10):
            for _ in range(3):
                run(client, changes.change())
            context.coordinator.flush(lambda: False)
            if choice.randrange(2):
                context.coordinator.checkpoints.run()
            check(client, queries, "after an epoch")


def test_what_there_is_is_shown(tmp_path: Path) -> None:
    shown = "SELECT relation_name, unstored_changes, rows, bytes > 0, snapshot > 0 FROM rw_catalog.rw_shared_buffer"
    with opened(tmp_path / "lake", streaming_engine="duckdb", backfill_engine="auto") as (context, client):
        run_all(client, *TABLES, f"CREATE MATERIALIZED VIEW totals AS {VIEWS['totals']}")
        for number in range(3):
            run(client, f"INSERT INTO t VALUES ({100 + number}, 1)")
            context.coordinator.flush(lambda: False)
        assert run(client, shown) == [("totals", 6, 1, True, True)]
        context.coordinator.checkpoints.run()
        assert run(client, shown) == [("totals", 0, 1, True, True)]
        run(client, "DROP MATERIALIZED VIEW totals")
        context.coordinator.barrier()
        assert run(client, shown) == []


def test_views_with_odd_names(tmp_path: Path) -> None:
    """The view c of the schema "a.b" is not the view "b.c" of the schema a; and tables are locked in one order."""
    queries = {
        '"a.b".c': "SELECT a FROM t",
        'a."b.c"': "SELECT count(*) AS n FROM t",
        'a."""b"': "SELECT b FROM t",
        "a.v": "SELECT sum(b) AS s FROM t",
        '"a b".v': 'SELECT b AS "?number", max(a) AS "?gone" FROM t GROUP BY b',
    }
    with opened(tmp_path / "lake", streaming_engine="duckdb", backfill_engine="auto") as (context, client):
        run_all(client, *TABLES, "CREATE SCHEMA a", 'CREATE SCHEMA "a.b"', 'CREATE SCHEMA "a b"')
        run_all(client, *(f"CREATE MATERIALIZED VIEW {name} AS {query}" for name, query in queries.items()))
        for number in range(3):
            run(client, f"INSERT INTO t VALUES ({100 + number}, 1)")
            context.coordinator.flush(lambda: False)
            check(client, queries, "after an epoch")
            context.coordinator.checkpoints.run()
            check(client, queries, "after a checkpoint")


def test_an_epoch_that_memory_refuses(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is stored before it is told to be of the epoch before it, and then the lake has both."""
    changing, refused, epochs = shared_buffer.in_transaction, list[int](), list[Epoch]()

    @contextmanager
    def refusing(cursor: Cursor) -> Iterator[None]:
        with changing(cursor):
            yield
            if not refused:
                refused.append(1)
                raise duckdb.OutOfMemoryException("Out of Memory Error: failed to allocate data of size 16.0 MiB")

    with opened(tmp_path / "lake", streaming_engine="duckdb", backfill_engine="auto") as (context, client):
        create(client)
        for id_ in range(97, 100):  # makes copies and the tables of pending changes
            run(client, f"INSERT INTO t VALUES ({id_}, 1)")
            context.coordinator.flush(lambda: False)
        context.coordinator.checkpoints.run()
        checkpoints, before = context.coordinator.checkpoints, context.buffer.epoch
        with monkeypatch.context() as patched:
            patched.setattr(shared_buffer, "in_transaction", refusing)
            patched.setattr(checkpoints, "run", lambda: epochs.append(context.buffer.epoch))
            run(client, "INSERT INTO t VALUES (100, 1)")
            context.coordinator.barrier()
        assert refused and epochs == [before]
        check(client, VIEWS, "after it")
        run(client, "INSERT INTO t VALUES (101, 1)")
        context.coordinator.flush(lambda: False)
        check(client, VIEWS, "after the next")
