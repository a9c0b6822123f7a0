"""`make demo`: a tour of Sparkwave over the wire, with the flights that left New York in 2013.

It starts a server, loads tables with COPY, creates views in the background (some on Spark resources of their own),
inserts the rest of the flights meanwhile, changes rows, and checks that every view equals its query. Before a view is
created, a quote tells how long that will take.
"""

from __future__ import annotations

import json
import os
import sys
import time
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from queue import Queue

import psycopg

from sparkwave.server.demo import flights
from sparkwave.server.demo.local_server import LocalServer, ServerError, local_server
from sparkwave.server.demo.progress_lines import CREATED, PLANNED, STARTING, Track, parse_progress
from sparkwave.server.demo.screen import Screen

POLL_S = 0.2
CREATE_TIMEOUT_S = 300
JOBS_TIMEOUT_S = 10
# Small slices, so that a few hundred thousand rows show progress.
SLICE_ROWS = 50_000
Connection = psycopg.Connection

JOBS = """
SELECT v.name, p.progress, j.resource_group
FROM rw_catalog.rw_ddl_progress p
JOIN rw_catalog.rw_materialized_views v ON v.id = p.ddl_id
LEFT JOIN rw_catalog.rw_streaming_jobs j ON j.id = p.ddl_id"""
STATUSES = "SELECT name, status FROM rw_catalog.rw_materialized_views"
DEDICATED_NODES = """
SELECT host, resource_group, parallelism, system_total_memory_bytes
FROM rw_catalog.rw_worker_nodes WHERE resource_group <> 'default' ORDER BY id"""


class DemoError(Exception):
    """The server has not done as the demo expects."""


def main() -> int:
    """Run the demo. Returns the exit code."""
    screen = Screen()
    try:
        with local_server("--spark-start", "eager") as server:
            try:
                Demo(screen, server).run()
            except (DemoError, psycopg.Error) as error:
                screen.keep_progress()
                return _fail(f"{error}\n{server.log_tail()}".strip())
    except ServerError as error:
        return _fail(str(error))
    except KeyboardInterrupt:
        screen.keep_progress()
        return _fail("stopped", 130)
    return 0


def _fail(message: str, code: int = 1) -> int:
    print(f"\ndemo: {message}", file=sys.stderr)
    return code


class Demo:
    """The steps of the demo, and the time of each."""

    def __init__(self, screen: Screen, server: LocalServer) -> None:
        self._screen = screen
        self._server = server
        self._connection = server.connect()
        self._times: list[tuple[str, str]] = []
        self._notes: Queue[str] = Queue()
        self._accepted: set[str] = set()

    def run(self) -> None:
        """Run all steps. Raises DemoError when the server does not do as expected."""
        started = time.monotonic()
        self._screen.write(f"Sparkwave is listening on 127.0.0.1:{self._server.port}, on {os.cpu_count()} cores.")
        self._timed("load four small tables, and flights up to November", self._load)
        self._timed("create four views, and insert December meanwhile", self._create_views)
        self._timed("change rows", self._change_rows)
        self._timed("compare views with their queries", self._check_views)
        self._timed("give a view another query", self._edit_view)
        self._timed("total", lambda: None, started)
        self._summarise()

    def _timed(self, what: str, step: object, started: float | None = None) -> None:
        start = time.monotonic() if started is None else started
        assert callable(step)
        step()
        self._times.append((what, f"{time.monotonic() - start:.1f} s"))

    # 1. Tables.

    def _load(self) -> None:
        self._screen.step("1. Load tables with COPY … FROM STDIN")
        loaded = []
        for table, create in flights.TABLES.items():
            frame = flights.rows(table)
            if table == "flights":
                frame = frame[~flights.is_held_back(frame)]
            data = flights.to_csv(frame)
            start = time.monotonic()
            self._connection.execute(create)
            copy_csv(self._connection, table, data)
            seconds = time.monotonic() - start
            (count,) = one_row(self._connection, f"SELECT count(*) FROM {table}")
            if count != len(frame):
                raise DemoError(f"{table} has {count:,} rows, {len(frame):,} were copied")
            loaded.append((table, count, f"{seconds:.1f} s"))
        self._screen.table(("table", "rows", "time"), loaded)

    # 2. and 3. Views, while rows arrive.

    def _create_views(self) -> None:
        self._screen.step("2. Create views in the background, two of them on Spark resources of their own")
        for sql in (
            "ALTER SYSTEM SET serverless_backfill_enabled = true",
            f"ALTER SYSTEM SET backfill_slice_rows = {SLICE_ROWS}",
            "SET background_ddl = true",
        ):
            self._screen.statement(sql)
            self._connection.execute(sql)
        self._show_quotes()
        pool = ThreadPoolExecutor(len(flights.VIEWS) + 1)
        try:
            self._watch(pool)
        finally:
            # No wait here: after an error, the end of the server ends what still runs.
            pool.shutdown(wait=False, cancel_futures=True)
        self._connection.execute("FLUSH")

    def _show_quotes(self) -> None:
        """Show what EXPLAIN (BACKFILL, COST) says of each view whose tables are there."""
        lines = []
        for view in flights.VIEWS:
            if view.upstream is None:
                with self._server.connect() as connection:
                    for sql in view.session:
                        connection.execute(sql)
                    quoted = connection.execute(f"EXPLAIN (BACKFILL, COST, FORMAT JSON) {view.statement}").fetchall()
                found = json.loads("\n".join(line for (line,) in quoted))
                taken = next(engine for engine in found["engines"] if engine["taken"])
                times = (f"{taken['seconds'][part]:.1f} s" for part in ("p10", "p50", "p90"))
                engine = " ".join(dict.fromkeys((taken["engine"], taken["name"])))
                lines.append((view.name, sum(read["rows"] for read in found["read"]), engine, *times))
        self._screen.write("")
        self._screen.write("  What EXPLAIN (BACKFILL, COST) says before anything is created:")
        self._screen.table(("view", "rows to read", "engine", "10 %", "middle", "90 %"), lines)
        self._screen.write("")

    def _create(self, pool: Executor, view: flights.View) -> Future[None]:
        """Create a view on a separate connection, since the statement waits for its Spark resources."""
        for sql in (*view.session, view.statement):
            self._screen.statement(sql)

        def create() -> None:
            with self._server.connect() as connection:
                for sql in ("SET background_ddl = true", *view.session, view.statement):
                    connection.execute(sql)
            self._accepted.add(view.name)

        return pool.submit(create)

    def _watch(self, pool: Executor) -> None:
        """Follow the views until all are created; insert December once the first view has read some rows."""
        started = time.monotonic()
        tracks = {view.name: Track(view.name) for view in flights.VIEWS}
        work: list[Future[None]] = [self._create(pool, view) for view in flights.VIEWS if view.upstream is None]
        self._show_jobs(len(work))
        self._screen.step("3. Watch them; meanwhile COPY the flights of December")
        december: Future[None] | None = None
        nodes: dict[str, str] = {}
        while any(track.finished_s is None for track in tracks.values()):
            now_s = time.monotonic() - started
            if now_s > CREATE_TIMEOUT_S:
                raise DemoError(f"the views were not created within {CREATE_TIMEOUT_S} s")
            self._read_progress(tracks, nodes, now_s)
            work += self._create_ready(pool, tracks, now_s)
            if december is None and any(track.progress.read for track in tracks.values()):
                december = pool.submit(self._insert_december)
                work.append(december)
            for done in (future for future in work if future.done()):
                done.result()
            while not self._notes.empty():
                self._screen.write(self._notes.get())
            self._screen.progress(list(tracks.values()), now_s)
            time.sleep(POLL_S)
        self._screen.keep_progress()
        if december is None:
            raise DemoError("no backfill has shown any progress")

    def _show_jobs(self, expected: int) -> None:
        deadline = time.monotonic() + JOBS_TIMEOUT_S
        while True:
            cursor = self._connection.execute("SHOW JOBS")
            jobs = cursor.fetchall()
            if len(jobs) >= expected or time.monotonic() > deadline:
                break
            time.sleep(POLL_S)
        header = [column.name for column in cursor.description or ()]
        shown = [(str(id_), f"{' '.join(sql.split())[:40]} …", kind, done) for id_, sql, kind, done in jobs]
        self._screen.write("")
        self._screen.statement("SHOW JOBS")
        self._screen.table(header, shown, indent=4)

    def _read_progress(self, tracks: dict[str, Track], nodes: dict[str, str], now_s: float) -> None:
        for host, group, cores, memory in self._connection.execute(DEDICATED_NODES).fetchall():
            if group not in nodes:
                nodes[group] = host
                self._screen.write(
                    f"  {now_s:6.1f} s  + node {host}: {cores} cores, {memory >> 30} GiB, for one backfill"
                )
        accepted = set(self._accepted)
        jobs = {name: (progress, group) for name, progress, group in self._connection.execute(JOBS).fetchall()}
        statuses: dict[str, str] = dict(self._connection.execute(STATUSES).fetchall())
        for track in tracks.values():
            if track.name in jobs:
                text, group = jobs[track.name]
                track.update(now_s, parse_progress(text), nodes.get(group, ""))
            elif statuses.get(track.name) == "Created":
                track.update(now_s, CREATED)
            elif track.name in accepted and track.name not in statuses:
                raise DemoError(f"{track.name} was not created: {self._reason(track.name)}")

    def _reason(self, name: str) -> str:
        events = self._connection.execute("SELECT info FROM rw_catalog.rw_event_logs").fetchall()
        return next((str(info) for (info,) in reversed(events) if name in str(info)), "no reason in rw_event_logs")

    def _create_ready(self, pool: Executor, tracks: dict[str, Track], now_s: float) -> list[Future[None]]:
        """Create the views over views whose upstream is created."""
        created = []
        for view in flights.VIEWS:
            is_ready = view.upstream is not None and tracks[view.upstream].finished_s is not None
            if is_ready and tracks[view.name].progress == PLANNED:
                self._screen.write(f"  {view.upstream} is created; now a view on it:")
                created.append(self._create(pool, view))
                tracks[view.name].update(now_s, STARTING)
        return created

    def _insert_december(self) -> None:
        """Copy the remaining flights on a separate connection."""
        frame = flights.rows("flights")
        data = flights.to_csv(frame[flights.is_held_back(frame)])
        with self._server.connect() as connection:
            start = time.monotonic()
            count = copy_csv(connection, "flights", data)
            seconds = time.monotonic() - start
            creating = connection.execute("SHOW JOBS").fetchall()
        self._notes.put(f"  December: {count:,} flights in {seconds:.1f} s, {len(creating)} views still being created")

    # 4. Changes.

    def _change_rows(self) -> None:
        self._screen.step("4. Change rows; views follow")
        before = self._flights_in_views()
        lines: list[tuple[object, ...]] = [("before", "", "", *before)]
        for what, sql in flights.CHANGES:
            start = time.monotonic()
            count = self._connection.execute(sql).rowcount
            written = time.monotonic()
            self._connection.execute("FLUSH")
            flushed = time.monotonic()
            times = f"{written - start:.2f} s", f"{flushed - written:.2f} s"
            self._screen.statement(sql)
            lines.append((f"{what} ({count:,} rows)", *times, *self._flights_in_views()))
        names = [view.name for view in flights.VIEWS]
        self._screen.write("")
        self._screen.write("  Flights that each view accounts for:")
        self._screen.table(("change", "write", "FLUSH", *names), lines)

    def _flights_in_views(self) -> list[int]:
        return [int(one_row(self._connection, f"SELECT {v.flights} FROM {v.name}")[0]) for v in flights.VIEWS]

    # 5. Checks.

    def _check_views(self) -> None:
        self._screen.step("5. Compare every view with its query: AUDIT, and over the tables EXCEPT ALL both ways")
        lines, wrong = [], []
        for view in flights.VIEWS:
            (rows,) = one_row(self._connection, f"SELECT count(*) FROM {view.name}")
            stored = f"SELECT {view.compared} FROM {view.name}"
            computed = f"SELECT {view.compared} FROM ({view.query}) AS q"
            more, fewer = (
                one_row(self._connection, f"SELECT count(*) FROM ({left} EXCEPT ALL {right}) AS d")[0]
                for left, right in ((stored, computed), (computed, stored))
            )
            is_equal = rows > 0 and more == fewer == 0
            audit = self._connection.execute(f"AUDIT MATERIALIZED VIEW {view.name}").fetchone()
            assert audit is not None
            _, result, checksum, *_ = audit
            compared = "equal" if is_equal else f"{more} rows too many, {fewer} missing"
            lines.append((view.name, rows, compared, result, checksum))
            wrong += [] if is_equal and result == "PROVEN" else [view.name]
        self._screen.table(("view", "rows", "EXCEPT ALL", "AUDIT", "checksum"), lines)
        if wrong:
            raise DemoError(f"not equal to its query: {', '.join(wrong)}")

    # 6. An edit.

    def _edit_view(self) -> None:
        self._screen.step("6. Give a view another query; the rows that it has are enough")
        self._screen.statement(flights.EDIT)
        quoted = self._connection.execute(f"EXPLAIN (BACKFILL, COST, FORMAT JSON) {flights.EDIT}").fetchall()
        reads = json.loads("\n".join(line for (line,) in quoted))["read"]
        start = time.monotonic()
        self._connection.execute("SET background_ddl = false")
        self._connection.execute(flights.EDIT)
        seconds = time.monotonic() - start
        audit = self._connection.execute(f"AUDIT MATERIALIZED VIEW {flights.EDITED}").fetchone()
        assert audit is not None
        _, result, _, rows, *_ = audit
        lines = [(read["relation"], read["rows"], f"{seconds:.1f} s", rows, result) for read in reads]
        self._screen.table(("reads", "rows", "time", "rows now", "AUDIT"), lines)
        if result != "PROVEN":
            raise DemoError(f"{flights.EDITED} is not its new query")

    def _summarise(self) -> None:
        self._screen.step("Done")
        self._screen.table(("step", "time"), self._times)
        self._screen.write("")
        self._screen.write("To try it yourself:  make run")
        self._screen.write("and then:            psql -h 127.0.0.1 -p 4566 -U root -d dev")


def one_row(connection: Connection, sql: str) -> tuple[int, ...]:
    """Return the only row of a query."""
    row = connection.execute(sql).fetchone()
    assert row is not None
    return row


def copy_csv(connection: Connection, table: str, data: bytes) -> int:
    """Copy rows into a table. Returns their number."""
    cursor = connection.cursor()
    with cursor.copy(f"COPY {table} FROM STDIN (FORMAT csv)") as copy:
        copy.write(data)
    return cursor.rowcount


if __name__ == "__main__":
    sys.exit(main())
