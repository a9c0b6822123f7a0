"""What tests of crashes share: tables, views and writers of them, and what must be true of a server's lake."""

from __future__ import annotations

import contextlib
import random
import re
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

import psycopg
import servers
from servers import PATIENCE_SECONDS, Server, wait_until

from sparkwave.catalog.lake.ducklake import Lake
from sparkwave.catalog.lake.storage import IDENTITY_FILE, Storage
from sparkwave.catalog.names import METADATA
from sparkwave.executor.maintenance.orphan_removal import Orphans, Pace

Connection = psycopg.Connection[Any]

BASE_ROWS = 40_000
GROUPS = 20
TABLES = {"t": BASE_ROWS, "u": GROUPS}
VIEWS = {
    "sums": "SELECT g, count(*) AS n, sum(v) AS total, max(v) AS most FROM t GROUP BY g",
    "on_sums": "SELECT sum(n) AS n, sum(total) AS total FROM sums",
    "copied": "SELECT k, g, v + 1 AS w FROM t WHERE v >= 3",
    "paired": "SELECT t.k, u.v FROM t JOIN u ON t.g = u.k",
}
# A map, an aggregate and a join, each filled by every strategy that can.
FILLS = [
    ("snapshot", "sums"),
    ("snapshot", "paired"),
    ("arrangement", "sums"),
    ("arrangement", "paired"),
    ("no_shuffle", "copied"),
]
# Steps that a job of a strategy may have begun and not committed: all that a crash makes it do again.
IN_FLIGHT = {"snapshot": 2, "arrangement": 1, "no_shuffle": 1}


def create_tables(connection: Connection, slice_rows: int, engine: str = "spark") -> None:
    """Filled tables, which writers may change, on a server that fills views on an engine."""
    for table, rows in TABLES.items():
        connection.execute(f"CREATE TABLE {table} (k int PRIMARY KEY, g int, v int)")
        for start in range(0, rows, max(rows // 5, 10)):
            numbers = f"range({start}, {min(start + max(rows // 5, 10), rows)}) AS r (i)"
            connection.execute(f"INSERT INTO {table} SELECT i, i % {GROUPS}, i % 100 FROM {numbers}")
    connection.execute(f"ALTER SYSTEM SET backfill_engine = {engine}")
    connection.execute(f"ALTER SYSTEM SET backfill_slice_rows = {slice_rows}")
    connection.execute("ALTER SYSTEM SET barrier_interval_ms = 200")
    connection.execute(f"ALTER SYSTEM SET serverless_backfill_provision_timeout = {PATIENCE_SECONDS}")


# Writers.


@dataclass
class Writer:
    """A client that changes its own keys of a table until the server dies, and remembers what was acknowledged.

    `expected` maps the keys it has touched to their value, None for deleted ones; `unsure` is what the last
    statement, sent but not acknowledged, would make of its keys.
    """

    server: Server
    table: str
    keys: Sequence[int]
    seed: int
    pause_s: float = 0.02
    expected: dict[int, int | None] = field(default_factory=dict)
    unsure: dict[int, int | None] = field(default_factory=dict)
    acknowledged: int = 0
    failure: BaseException | None = None

    def __post_init__(self) -> None:
        self._random = random.Random(self.seed)
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def stop(self) -> None:
        self._stop.set()
        self.join()

    def join(self) -> None:
        self._thread.join(PATIENCE_SECONDS)
        assert not self._thread.is_alive(), "the writer hangs"
        if self.failure is not None:
            raise self.failure

    def _run(self) -> None:
        try:
            with contextlib.suppress(psycopg.OperationalError), self.server.connect() as connection:
                while not self._stop.wait(self.pause_s):
                    statement, effect = self._next()
                    self.unsure = effect
                    connection.execute(statement)
                    self.expected |= effect
                    self.unsure = {}
                    self.acknowledged += 1
        except BaseException as error:
            self.failure = error

    def _next(self) -> tuple[str, dict[int, int | None]]:
        """A statement on three of its keys, old or new, and what it makes of them."""
        known = [k for k, value in self.expected.items() if value is not None]
        keys = set(self._random.sample(self.keys, 3))
        value = self._random.randrange(1000)
        match self._random.choice(["insert", "insert", "update", "delete"]):
            case "insert":
                rows = ", ".join(f"({k}, {k % GROUPS}, {value})" for k in keys)
                return f"INSERT INTO {self.table} VALUES {rows}", dict.fromkeys(keys, value)
            case "update" if known:
                keys = set(self._random.sample(known, min(3, len(known))))
                listed = ", ".join(map(str, sorted(keys)))
                return f"UPDATE {self.table} SET v = {value} WHERE k IN ({listed})", dict.fromkeys(keys, value)
        listed = ", ".join(map(str, sorted(keys)))
        return f"DELETE FROM {self.table} WHERE k IN ({listed})", dict.fromkeys(keys, None)


def start_writers(server: Server, seed: int, before: list[Writer] | None = None) -> list[Writer]:
    """Two writers of t and one of u, half of whose keys are new; they go on from what earlier ones did.

    Each has had something acknowledged when this returns.
    """
    known = [dict(writer.expected) for writer in before] if before else [{}, {}, {}]
    writers = [
        Writer(server, "t", range(0, 2 * BASE_ROWS, 2), seed, expected=known[0]),
        Writer(server, "t", range(1, 2 * BASE_ROWS, 2), seed + 1, expected=known[1]),
        Writer(server, "u", range(2 * GROUPS), seed + 2, pause_s=0.2, expected=known[2]),
    ]
    wait_until(lambda: all(writer.acknowledged for writer in writers), PATIENCE_SECONDS)
    return writers


def join(writers: list[Writer]) -> None:
    """The server is dead, so the writers end; each has written."""
    for writer in writers:
        writer.join()
        assert writer.acknowledged > 0, writer.table


def check_rows(connection: Connection, writers: list[Writer]) -> None:
    """All that was acknowledged is there; the statement under way at the crash was done wholly or not at all."""
    for table, rows in TABLES.items():
        own = [writer for writer in writers if writer.table == table]
        found = dict(connection.execute(f"SELECT k, v FROM {table}").fetchall())
        expected: dict[int, int | None] = {k: k % 100 for k in range(rows)}
        for writer in own:
            if writer.unsure and all(found.get(k) == value for k, value in writer.unsure.items()):
                writer.expected |= writer.unsure
            writer.unsure = {}
            expected |= writer.expected
        keys = expected.keys() | found.keys()
        wrong = {k: (expected.get(k), found.get(k)) for k in keys if expected.get(k) != found.get(k)}
        assert not wrong, f"{len(wrong)} rows of {table} differ, such as {dict(list(wrong.items())[:5])}"


def check_views(connection: Connection) -> list[str]:
    """Every view is its query, row by row, a row that is there twice counting twice. Returns the views' names."""
    connection.execute("FLUSH")
    names = [name.removeprefix("public.") for (name,) in connection.execute("SHOW MATERIALIZED VIEWS").fetchall()]
    for name in names:
        view = connection.execute(f"SELECT * FROM {name}").fetchall()
        query = connection.execute(VIEWS[name]).fetchall()
        assert sorted(view) == sorted(query), name
    return names


# Jobs.


def create_in_background(connection: Connection, name: str, strategy: str = "auto", options: str = "") -> None:
    connection.execute("SET background_ddl = true")
    with_ = f"WITH (backfill_strategy = '{strategy}'{options})"
    connection.execute(f"CREATE MATERIALIZED VIEW {name} {with_} AS {VIEWS[name]}")


def progress_of(connection: Connection) -> tuple[int, int]:
    """(rows read, rows to read) of the one running job; all of them once there is no such job."""
    found = connection.execute("SELECT progress FROM rw_catalog.rw_ddl_progress").fetchone()
    if found is None:
        return 1 << 60, 1 << 60
    numbers = re.search(r"\((\d+)/(\d+)\)", found[0])
    if numbers:
        return int(numbers[1]), int(numbers[2])
    return (0, 1) if found[0] == "0.0%" else (1 << 60, 1 << 60)


def wait_for_progress(connection: Connection, share: float) -> int:
    """Wait until the running job has read this share of its rows. Returns the number of rows read."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    while time.monotonic() < deadline:
        read, total = progress_of(connection)
        if read >= share * total:
            assert read < total, "the job was done before it could be interrupted"
            return read
        time.sleep(0.05)
    raise AssertionError("the job makes no progress")


def holding(file: Path, steps: int) -> str:
    """What a server runs first so that a job waits after so many steps as long as there is a file."""
    return f"""
import os, time
from sparkwave.executor.backfill.retries import Retries
run, done = Retries.run, []
def held(retries, step, since=None):
    while len(done) >= {steps} and os.path.exists({str(file)!r}):
        time.sleep(0.02)
    run(retries, step, since)
    done.append(step)
Retries.run = held
"""


@dataclass(frozen=True)
class Standing:
    """How far the jobs of a stopped server are.

    The finished steps, (job, fragment, step) to when, the rows of them, and the jobs that were still being created:
    the next server forgets the steps of the others.
    """

    finished: dict[tuple[int, int, int], datetime]
    rows: int
    creating: frozenset[int]

    def check_follows(self, earlier: Standing) -> None:
        """Nothing that was finished has been lost or done again."""
        kept = {step: at for step, at in earlier.finished.items() if step[0] in earlier.creating}
        assert kept.items() <= self.finished.items()


@contextlib.contextmanager
def opened_lake(data: Path) -> Iterator[Lake]:
    """The lake of a server that is not running."""
    lake = Lake(Storage(data, **servers.CATALOGS(data)))
    try:
        yield lake
    finally:
        lake.close()


def standing(data: Path) -> Standing:
    """Read from the lake of a stopped server."""
    with opened_lake(data) as lake:
        steps = lake.cursor().execute(
            "SELECT job_id, fragment_id, slice_id, finished_at, row_count FROM lake.sparkwave.finished_slices"
        ).fetchall()  # fmt: skip
        jobs = lake.cursor().execute("SELECT id FROM lake.sparkwave.jobs WHERE status = 'CREATING'").fetchall()
    finished = {(job, fragment, step): at for job, fragment, step, at, _ in steps}
    assert len(finished) == len(steps), "a step was committed twice"
    return Standing(finished, sum(step[-1] for step in steps), frozenset(job for (job,) in jobs))


def unfinished_steps(data: Path, known: Standing) -> dict[int, set[str]]:
    """The directories, by job, of steps that Spark began to write and that were not committed."""
    found = {}
    for job in known.creating:
        begun = [path for root in ("data", "staging") for path in (data / root).glob(f"job_{job}/*")]
        steps = [(fragment, step) for id_, fragment, step in known.finished if id_ == job]
        finished = {f"f{fragment}_s{step}" for fragment, step in steps} | {f"step_{step - 1}" for _, step in steps}
        found[job] = {path.name for path in begun if any(path.rglob("*.parquet"))} - finished
    return found


# What is left over.


def check_no_orphans(server: Server) -> None:
    """All Spark processes of a dead server end by themselves."""
    assert wait_until(lambda: not server.java_processes(), 60), f"java left: {server.java_processes()}"


def unknown_files(data: Path) -> list[str]:
    """The files below a stopped server's directories of data that its catalog does not know."""
    tables = ("ducklake_data_file", "ducklake_delete_file", "ducklake_files_scheduled_for_deletion")
    with opened_lake(data) as lake:
        query = " UNION ALL ".join(f"SELECT path FROM {METADATA}.{table}" for table in tables)
        known = {Path(path).name for (path,) in lake.cursor().execute(query).fetchall()}
    present = [path for root in ("data", "staging") for path in (data / root).rglob("*") if path.is_file()]
    return [str(path.relative_to(data)) for path in present if path.name not in known | {IDENTITY_FILE}]


def delete_what_crashes_left(data: Path) -> None:
    """What a server deletes in the background after an hour."""
    with opened_lake(data) as lake:
        Orphans(lake, Pace(grace_s=-1, temporary_s=-1)).run_once()


def check_files(data: Path) -> None:
    """No file in the directory of a stopped server that its catalog does not know."""
    unknown = unknown_files(data)
    assert not unknown, f"{len(unknown)} unknown files, such as {unknown[:5]}"
