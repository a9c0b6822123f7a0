"""A server that is used in all ways at once, killed and started again, for SOAK_MINUTES: everything is always right.

Clients change rows, make and drop views on Spark and in process, cancel, and come and go without a word. In between,
and after each restart, rows are what was acknowledged and views are their queries; memory and descriptors stay level
while a server lives; and at the end nothing is left over. SOAK_SEED makes another soak of it.
"""

from __future__ import annotations

import contextlib
import os
import random
import re
import statistics
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import psycopg
import pytest
from crashes import (
    FILLS,
    VIEWS,
    Connection,
    Writer,
    check_files,
    check_no_orphans,
    check_rows,
    check_views,
    create_in_background,
    create_tables,
    delete_what_crashes_left,
    start_writers,
)
from fuzz.standard import script
from servers import PATIENCE_SECONDS, Server, sparkwave
from test_law import as_bag

MINUTES = float(os.environ.get("SOAK_MINUTES", "5"))
SEED = int(os.environ.get("SOAK_SEED", "1"))
# How long a server lives, and how often it is looked at meanwhile. Long soaks have long lives, for what grows slowly.
LIFE_SECONDS = (20, max(60, MINUTES * 8))
WATCH_SECONDS = 2
# What of a life's memory and descriptors its second half may take more than its first, once the caches are full.
WARM_SECONDS = 60
MORE_MEMORY, MORE_DESCRIPTORS = 256 << 20, 20
FAULTS = re.compile(r"Traceback|internal error|CRITICAL")
STRATEGIES = {name: [strategy for strategy, view in FILLS if view == name] or ["auto"] for name in VIEWS}

Client = Callable[[Server, random.Random, threading.Event, Counter[str]], None]


# Clients. Each goes on until it is told to stop or its server is gone, and counts what it has done.


def random_views(server: Server, chance: random.Random, is_over: threading.Event, done: Counter[str]) -> None:
    """Random tables, views and changes in a database of their own; after each epoch every view is its query."""
    with server.connect() as own:
        own.execute("DROP DATABASE IF EXISTS law")
        own.execute("CREATE DATABASE law")
    with server.connect(dbname="law") as own:
        while not is_over.is_set():
            made: dict[str, str] = {}
            for statement in script(chance.randrange(10_000), views=3, epochs=4):
                if is_over.is_set():
                    return
                try:
                    own.execute(statement)
                except (psycopg.errors.FeatureNotSupported, psycopg.errors.UndefinedTable):
                    continue  # a view that is refused, or reads one that was
                except psycopg.DataError:
                    assert statement.startswith(("UPDATE", "DELETE")), statement
                if statement.startswith("CREATE MATERIALIZED VIEW "):
                    name, _, query = statement.removeprefix("CREATE MATERIALIZED VIEW ").partition(" AS ")
                    made[name] = query
                for name, query in made.items() if statement == "FLUSH" else ():
                    view, computed = (as_bag(own.execute(sql).fetchall()) for sql in (f"SELECT * FROM {name}", query))
                    assert view == computed, f"{name} = {query}"
                    done["random view checked"] += 1


# There is no such view, or it is there already, or it is being created or not any more.
REFUSALS = (
    psycopg.errors.ProgrammingError,
    psycopg.errors.ObjectNotInPrerequisiteState,
    psycopg.errors.QueryCanceled,
    psycopg.errors.ObjectInUse,  # CASCADE meets a view that replaces another
)


def view_maker(server: Server, chance: random.Random, is_over: threading.Event, done: Counter[str]) -> None:
    """Views over the tables that others write: made in all ways, slowed down, cancelled, dropped, made again."""
    with server.connect() as own:
        while not is_over.wait(chance.uniform(0, 2)):
            name = chance.choice(list(VIEWS))
            with contextlib.suppress(*REFUSALS):
                action = chance.choice(["create", "create", "create", "limit", "cancel", "drop", "replace"])
                match action:
                    case "create":
                        serverless = ", cloud.serverless_backfill_enabled = true" if chance.random() < 0.4 else ""
                        create_in_background(own, name, chance.choice(STRATEGIES[name]), serverless)
                    case "limit":
                        rate = chance.choice([0, 5000, "DEFAULT"])
                        own.execute(f"ALTER MATERIALIZED VIEW {name} SET BACKFILL_RATE_LIMIT TO {rate}")
                    case "cancel":
                        jobs = own.execute("SHOW JOBS").fetchall()
                        found = [job for job, statement, *_ in jobs if any(f" {view} " in statement for view in VIEWS)]
                        if not found:
                            continue
                        own.execute(f"CANCEL JOBS {chance.choice(found)}")
                    case "drop":
                        own.execute(f"DROP MATERIALIZED VIEW {name} CASCADE")
                    case "replace":
                        own.execute(f"ALTER MATERIALIZED VIEW {name} AS {VIEWS[name]}")
                done[action] += 1


def visitor(server: Server, chance: random.Random, is_over: threading.Event, done: Counter[str]) -> None:
    """Comes, asks something, and goes: politely, in the middle of its query, or after it has cancelled that."""
    while not is_over.wait(chance.uniform(0, 0.3)):
        own = server.connect()
        with contextlib.closing(own):
            action = chance.choice(["ask", "ask", "copy", "cursor", "table", "interrupt", "vanish"])
            match action:
                case "ask":
                    own.execute("SELECT count(*), sum(v) FROM t WHERE g = %s", (chance.randrange(20),)).fetchone()
                case "copy":
                    with own.cursor().copy("COPY u TO STDOUT") as copy:
                        assert sum(1 for _ in copy) > 0
                case "cursor":
                    own.execute("BEGIN")
                    own.execute("DECLARE c CURSOR FOR SELECT * FROM t")
                    assert len(own.execute("FETCH 100 FROM c").fetchall()) == 100
                case "table":
                    name = f"short_{chance.randrange(1 << 30)}"
                    own.execute(f"CREATE TABLE {name} AS SELECT * FROM t WHERE v < 50")
                    own.execute(f"DROP TABLE {name}")
                case "interrupt":
                    killer = threading.Timer(chance.uniform(0, 0.5), own.cancel)
                    killer.start()
                    with contextlib.suppress(psycopg.errors.QueryCanceled):
                        own.execute("SELECT count(*) FROM t a JOIN t b ON a.v < b.v")
                    killer.join()
                case "vanish":
                    own.pgconn.send_query(b"SELECT count(*) FROM t a JOIN t b ON a.v < b.v")
            done[action] += 1


CLIENTS: tuple[Client, ...] = (random_views, view_maker, visitor)
LEAST = ("rows written", "random view checked", "create", "ask")  # what has to have been done at all


# What a server takes.


@dataclass(frozen=True)
class Taken:
    at: float  # seconds of its life
    memory: int
    descriptors: int
    threads: int


def taken(server: Server, since: float) -> Taken:
    process = Path(f"/proc/{server.process.pid}")
    memory = int((process / "statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    descriptors = len(list((process / "fd").iterdir()))
    return Taken(time.monotonic() - since, memory, descriptors, len(list((process / "task").iterdir())))


def check_level(life: list[Taken]) -> None:
    """After it has warmed up a server takes no more and more."""
    warm = [sample for sample in life if sample.at > WARM_SECONDS]
    if len(warm) < 40:
        return
    first, second = warm[: len(warm) // 2], warm[len(warm) // 2 :]
    for name, more in (("memory", MORE_MEMORY), ("descriptors", MORE_DESCRIPTORS)):
        before, after = (statistics.median(getattr(s, name) for s in half) for half in (first, second))
        assert after <= before + more, f"{name} of a server that lived {life[-1].at:.0f} s: {before}, then {after}"


# Lives.


@contextlib.contextmanager
def at_work(server: Server, chance: random.Random, done: Counter[str]) -> Iterator[list[Future[None]]]:
    """The clients work meanwhile. What they find wrong is raised, but not that the server is gone."""

    is_over = threading.Event()

    def run(client: Client, seed: int) -> None:
        try:
            client(server, random.Random(seed), is_over, done)
        except psycopg.OperationalError as error:
            if error.sqlstate is not None:
                raise
            if server.process.poll() is None:
                time.sleep(2)  # the connection may end before the process is gone
            assert server.process.poll() is not None, "the server has ended a connection"

    with ThreadPoolExecutor(len(CLIENTS)) as pool:
        working = [pool.submit(run, client, chance.randrange(1 << 30)) for client in CLIENTS]
        try:
            yield working
        finally:
            is_over.set()
    for one in working:
        one.result()


def live(
    server: Server, chance: random.Random, writers: list[Writer], until: float, done: Counter[str]
) -> list[Writer]:
    """One life: everything at once, then quiet, in which everything is right; or death in the middle."""
    since, dies = time.monotonic(), chance.random() < 0.6
    seconds = min(chance.uniform(*LIFE_SECONDS), max(until - since, LIFE_SECONDS[0]))
    life: list[Taken] = []
    writers = start_writers(server, chance.randrange(1 << 30), writers)
    with at_work(server, chance, done) as working:
        while time.monotonic() < since + seconds and not any(one.done() for one in working):
            time.sleep(WATCH_SECONDS)
            life.append(taken(server, since))
        if dies and not any(one.done() for one in working):
            server.kill()
    last = life[-1]
    print(f"{seconds:.0f} s, {last.memory >> 20} MiB, {last.descriptors} descriptors, {last.threads} threads, {dies=}")
    for writer in writers:
        writer.stop()
        done["rows written"] += writer.acknowledged
    if not dies:
        with server.connect() as own:
            settle(own)
            check_rows(own, writers)
            check_views(own)
        assert server.stop(PATIENCE_SECONDS) == 0
    check_no_orphans(server)
    check_level(life)
    return writers


def settle(connection: Connection) -> None:
    """Wait until no job runs; paused ones go on."""
    for name in VIEWS:
        with contextlib.suppress(psycopg.errors.ProgrammingError):
            connection.execute(f"ALTER MATERIALIZED VIEW {name} SET BACKFILL_RATE_LIMIT TO DEFAULT")
    connection.execute("WAIT")


@pytest.mark.long
@pytest.mark.spark
@pytest.mark.timeout(MINUTES * 60 + 900)
def test_soak(tmp_path: Path) -> None:
    chance, until = random.Random(SEED), time.monotonic() + 60 * MINUTES
    data, done = tmp_path / "data", Counter[str]()
    servers: list[Server] = []
    writers: list[Writer] = []
    try:
        while not servers or time.monotonic() < until:
            servers.append(Server(data, spark_start=chance.choice(["eager", "on_demand"])))
            with servers[-1].connect() as own:
                if len(servers) == 1:
                    create_tables(own, slice_rows=10_000)
                    own.execute("ALTER SYSTEM SET serverless_backfill_enabled = true")
                    own.execute("ALTER SYSTEM SET serverless_backfill_sku = '1c2g'")
                    own.execute("ALTER SYSTEM SET max_concurrent_creating_streaming_jobs = 2")
                else:
                    check_rows(own, writers)
                own.execute(f"ALTER SYSTEM SET backfill_engine = {chance.choice(['auto', 'spark'])}")
            writers = live(servers[-1], chance, writers, until, done)
        servers.append(Server(data))
        with servers[-1].connect() as own:
            settle(own)
            check_rows(own, writers)
            check_views(own)
        assert servers[-1].stop(PATIENCE_SECONDS) == 0
    finally:
        for server in servers:
            server.kill()
    print(f"{len(servers)} servers; {dict(done)}")
    assert min(done[name] for name in LEAST) > 0
    assert not FAULTS.findall(servers[-1].log())
    check_no_orphans(servers[-1])
    delete_what_crashes_left(data)
    found = sparkwave("check", "--views", "--data", data)
    assert found.returncode == 0, found.stdout
    check_files(data)
