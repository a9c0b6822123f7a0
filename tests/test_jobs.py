"""Creating jobs as clients see and control them: permits, waiting, cancelling, RECOVER, notices and what is refused."""

from __future__ import annotations

import contextlib
import re
import shutil
import threading
import time
from collections.abc import Iterator
from itertools import product
from typing import Any

import psycopg
import pytest
from marking import long_but
from servers import Server, wait_until

Connection = psycopg.Connection[Any]

TABLE = "CREATE TABLE t (k int PRIMARY KEY, v int)"
WAITING = "waiting for a permit (max_concurrent_creating_streaming_jobs = {})"


class Statement:
    """A statement that runs on a connection and thread of its own."""

    def __init__(self, server: Server, sql: str, *before: str) -> None:
        self.connection = server.connect()
        self.notices: list[str] = []
        self.connection.add_notice_handler(lambda notice: self.notices.append(notice.message_primary or ""))
        for setting in before:
            self.connection.execute(setting)
        self.error: psycopg.Error | None = None
        self._thread = threading.Thread(target=self._run, args=(sql,), daemon=True)
        self._thread.start()

    def _run(self, sql: str) -> None:
        try:
            self.connection.execute(sql)
        except psycopg.Error as error:
            self.error = error

    @property
    def is_over(self) -> bool:
        return not self._thread.is_alive()

    def join(self, timeout: float = 20) -> psycopg.Error | None:
        self._thread.join(timeout)
        assert self.is_over, "the statement does not end"
        return self.error


def create(name: str) -> str:
    return f"CREATE MATERIALIZED VIEW {name} AS SELECT k, v FROM t"


def jobs(connection: Connection) -> dict[str, tuple[int, str | None]]:
    """(id, why it waits) of the jobs being created, by name."""
    rows = connection.execute("SELECT job_name, job_id, reason FROM rw_catalog.rw_backfill_status").fetchall()
    return {name.removeprefix("public."): (id_, reason) for name, id_, reason in rows}


@pytest.fixture
def own(stuck_server: Server) -> Iterator[Connection]:
    """A session on a server where no job gets beyond INITIAL, with the table t."""
    with stuck_server.connect() as connection:
        connection.execute(TABLE)
        yield connection


def start_two(server: Server, own: Connection) -> tuple[Statement, Statement]:
    """Two foreground CREATEs, of which the second waits for a permit."""
    first = Statement(server, create("first"))
    assert wait_until(lambda: "first" in jobs(own), 10)
    second = Statement(server, create("second"))
    assert wait_until(lambda: jobs(own).get("second", (0, ""))[1] == WAITING.format(1), 10), jobs(own)
    return first, second


# Permits.


def test_a_second_create_waits_for_a_permit(stuck_server: Server, own: Connection) -> None:
    """It says so, the limit may change meanwhile, and the end of the first lets the second go on."""
    first, second = start_two(stuck_server, own)
    third = Statement(stuck_server, create("third"))
    assert wait_until(lambda: jobs(own).get("third", (0, ""))[1] == WAITING.format(1), 10)
    own.execute("ALTER SYSTEM SET max_concurrent_creating_streaming_jobs = 2")
    assert wait_until(lambda: jobs(own)["second"][1] is None, 10)
    assert wait_until(lambda: jobs(own)["third"][1] == WAITING.format(2), 10)
    own.execute(f"CANCEL JOBS {jobs(own)['first'][0]}")
    assert isinstance(first.join(), psycopg.errors.QueryCanceled)
    assert wait_until(lambda: jobs(own)["third"][1] is None, 10)
    own.execute("ALTER SYSTEM SET max_concurrent_creating_streaming_jobs = 0")
    Statement(stuck_server, create("fourth"))
    assert wait_until(lambda: jobs(own).get("fourth", (0, ""))[1] is None, 10)
    assert not second.is_over
    assert not third.is_over
    with pytest.raises(psycopg.errors.InvalidParameterValue):
        own.execute("ALTER SYSTEM SET max_concurrent_creating_streaming_jobs = -1")


@pytest.mark.parametrize(
    ("how", "which"),
    long_but(
        [("protocol", "first")],
        product(["cancel jobs", "drop", "protocol"], ["first", "second"]),
    ),
)
def test_cancelling_a_job_that_has_not_started(stuck_server: Server, own: Connection, how: str, which: str) -> None:
    """Whether it waits for a permit or for Spark: its client is told, nothing is left, its name is free."""
    statements = dict(zip(("first", "second"), start_two(stuck_server, own), strict=True))
    job = jobs(own)[which][0]
    match how:
        case "cancel jobs":
            assert own.execute(f"CANCEL JOBS {job}, 999999").fetchall() == [(str(job),)]
        case "drop":
            own.execute(f"DROP MATERIALIZED VIEW {which}")
        case "protocol":
            statements[which].connection.cancel()
    assert isinstance(statements[which].join(), psycopg.errors.QueryCanceled)
    other = "second" if which == "first" else "first"
    assert list(jobs(own)) == [other]
    assert wait_until(lambda: jobs(own)[other][1] is None, 10)
    events = "SELECT count(*) FROM rw_catalog.rw_event_logs WHERE event_type = 'CANCEL_STREAM_JOB'"
    assert own.execute(events).fetchone() == (1,)
    again = Statement(stuck_server, create(which))
    assert wait_until(lambda: which in jobs(own), 10), again.error


@pytest.mark.parametrize("is_background", [True, False])
def test_a_crash_before_a_job_has_started(stuck_server: Server, own: Connection, is_background: bool) -> None:
    """One in the background was acknowledged, so it starts after the crash; of the other nothing is left."""
    own.execute("INSERT INTO t VALUES (1, 2)")
    if is_background:
        own.execute("SET background_ddl = true")
        own.execute(create("late"))
        assert own.execute("SELECT status FROM rw_catalog.rw_streaming_jobs WHERE name = 'late'").fetchall() == [
            ("INITIAL",)
        ]
    else:
        Statement(stuck_server, create("late"))
    assert wait_until(lambda: "late" in jobs(own), 10)
    own.execute("ALTER SYSTEM SET backfill_engine = auto")  # the next server fills it itself
    stuck_server.kill()
    again = Server(stuck_server.data)
    try:
        with again.connect() as session:
            session.execute("WAIT")
            assert session.execute("SHOW MATERIALIZED VIEWS").fetchall() == (
                [("public.late",)] if is_background else []
            )
            if is_background:
                assert session.execute("SELECT * FROM late").fetchall() == [(1, 2)]
    finally:
        again.kill()


# What a creating view refuses.


def test_a_creating_view_cannot_be_used(stuck_server: Server, own: Connection) -> None:
    creator = Statement(stuck_server, create("unready"))
    assert wait_until(lambda: "unready" in jobs(own), 10)
    for sql in ("SELECT * FROM unready", "CREATE MATERIALIZED VIEW above AS SELECT k FROM unready"):
        with pytest.raises(psycopg.errors.ObjectNotInPrerequisiteState) as caught:
            own.execute(sql)
        diagnostics = caught.value.diag
        assert diagnostics.message_primary == 'materialized view "unready" is still being created'
        assert diagnostics.message_detail == "SHOW JOBS and rw_catalog.rw_backfill_status tell how far it is."
        assert diagnostics.message_hint == "WAIT MATERIALIZED VIEW unready waits for it."
    with pytest.raises(psycopg.errors.DuplicateTable) as taken:
        own.execute(create("unready"))
    message = 'relation "unready" already exists and is still being created'
    assert taken.value.diag.message_primary == message
    own.execute("SET background_ddl = true")
    own.execute(create("unready").replace("VIEW", "VIEW IF NOT EXISTS"))
    assert not creator.is_over


@pytest.mark.long
def test_cascade_cancels_no_job(stuck_server: Server, own: Connection) -> None:
    creator = Statement(stuck_server, create("dependent"))
    assert wait_until(lambda: "dependent" in jobs(own), 10)
    job = jobs(own)["dependent"][0]
    with pytest.raises(psycopg.errors.ObjectInUse) as caught:
        own.execute("DROP TABLE t CASCADE")
    diagnostics = caught.value.diag
    text = "cannot drop 1 streaming job(s) that are still being created; please cancel them first"
    assert diagnostics.message_primary == text
    assert diagnostics.message_detail == "materialized view public.dependent is still being created"
    assert diagnostics.message_hint == f"CANCEL JOBS {job}"
    own.execute(f"CANCEL JOBS {job}")
    creator.join()
    own.execute("DROP TABLE t CASCADE")


# Waiting.


@pytest.mark.long
def test_wait_names_what_is_wrong(own: Connection) -> None:
    with pytest.raises(psycopg.errors.UndefinedTable) as missing:
        own.execute("WAIT MATERIALIZED VIEW nothing")
    assert missing.value.diag.message_primary == 'materialized view "nothing" does not exist'
    with pytest.raises(psycopg.errors.WrongObjectType) as wrong:
        own.execute("WAIT MATERIALIZED VIEW t")
    assert wrong.value.diag.message_primary == "Use `DROP TABLE` to drop a table."
    own.execute("WAIT TABLE t")
    own.execute("WAIT")


@pytest.mark.long
def test_wait_ends_when_the_jobs_do(stuck_server: Server, own: Connection) -> None:
    start_two(stuck_server, own)
    waiting = Statement(stuck_server, "WAIT")
    named = Statement(stuck_server, "WAIT MATERIALIZED VIEW first")
    limited = Statement(stuck_server, "WAIT", "SET statement_timeout = '300ms'")
    assert isinstance(limited.join(), psycopg.errors.QueryCanceled)
    own.execute(f"CANCEL JOBS {jobs(own)['first'][0]}")
    assert isinstance(named.join(), psycopg.errors.QueryCanceled), "what ended the job ends the wait for it"
    assert not waiting.is_over
    own.execute(f"CANCEL JOBS {jobs(own)['second'][0]}")
    assert waiting.join() is None


# Notices.


@pytest.mark.long
def test_a_slow_create_says_so_while_it_runs(stuck_server: Server, own: Connection) -> None:
    slow = Statement(stuck_server, create("slow"), "SET slow_ddl_notification_secs = 1")
    quiet = Statement(stuck_server, create("quiet"), "SET slow_ddl_notification_secs = 0")
    assert wait_until(lambda: len(slow.notices) == 1, 10)
    start = "CREATE MATERIALIZED VIEW has taken more than 1 secs, barrier latency might be high."
    assert slow.notices[0].startswith(start)
    assert "SHOW JOBS" in slow.notices[0]
    assert not slow.is_over
    for job, _ in jobs(own).values():
        with contextlib.suppress(psycopg.Error):
            own.execute(f"CANCEL JOBS {job}")
    slow.join()
    quiet.join()
    assert len(slow.notices) == 1
    assert quiet.notices == []


# Jobs that run: in process, slowly, because a rate limit holds them back.

ROWS = 20_000
SUMS = "SELECT g, count(*) AS n, sum(v) AS total FROM r GROUP BY g"
STATUS = "SELECT state, rows_done, rows_total, reason FROM rw_catalog.rw_backfill_status"


def slow_view(name: str, strategy: str, limit: int = 2000) -> str:
    options = f"backfill_strategy = '{strategy}', backfill_rate_limit = {limit}"
    return f"CREATE MATERIALIZED VIEW {name} WITH ({options}) AS {SUMS}"


def fill(connection: Connection) -> None:
    connection.execute("ALTER SYSTEM SET backfill_engine = auto")
    connection.execute("CREATE TABLE r (k int PRIMARY KEY, g int, v int)")
    connection.execute(f"INSERT INTO r SELECT i, i % 7, i FROM range({ROWS}) AS x (i)")


def rows_done(connection: Connection) -> int:
    """What all fragments of the one job have read; all of it once there is no such job."""
    found = connection.execute("SELECT count(*), sum(rows_done)::bigint FROM rw_catalog.rw_backfill_status").fetchone()
    assert found is not None
    return (found[1] or 0) if found[0] else ROWS


def wait_for_rows(connection: Connection) -> int:
    """Wait until a job is under way. Returns the rows it has read."""
    assert wait_until(lambda: 0 < rows_done(connection) < ROWS, 20), connection.execute(STATUS).fetchall()
    return rows_done(connection)


def check_sums(connection: Connection, name: str) -> None:
    connection.execute("FLUSH")
    view = connection.execute(f"SELECT * FROM {name}").fetchall()
    assert sorted(view) == sorted(connection.execute(SUMS).fetchall())


@pytest.mark.long
@pytest.mark.parametrize("strategy", ["snapshot", "arrangement"])
def test_recover_takes_jobs_up_where_they_are(server: Server, strategy: str) -> None:
    """The client of a foreground CREATE notices nothing."""
    with server.connect() as own:
        fill(own)
        creating = Statement(server, slow_view("slow", strategy))
        done = wait_for_rows(own)
        job = jobs(own)["slow"][0]
        assert own.execute("RECOVER").statusmessage == "RECOVER"
        assert ROWS > rows_done(own) >= done
        assert jobs(own)["slow"][0] == job
        assert not creating.is_over
        assert wait_until(lambda: rows_done(own) > done, 20)
        own.execute("ALTER MATERIALIZED VIEW slow SET BACKFILL_RATE_LIMIT TO DEFAULT")
        assert creating.join() is None
        check_sums(own, "slow")
        events = own.execute("SELECT event_type FROM rw_catalog.rw_event_logs").fetchall()
        assert [event for (event,) in events] == ["GLOBAL_RECOVERY_START", "GLOBAL_RECOVERY_SUCCESS"]
        last = own.execute("SELECT last_global_event FROM rw_catalog.rw_recovery_info").fetchall()
        assert last == [("GLOBAL_RECOVERY_SUCCESS",)]
        own.execute("RECOVER")


@pytest.mark.long
def test_recover_leaves_waiting_jobs_alone(stuck_server: Server, own: Connection) -> None:
    first, second = start_two(stuck_server, own)
    before = jobs(own)
    own.execute("RECOVER")
    assert jobs(own) == before
    assert not first.is_over
    assert not second.is_over


@pytest.mark.parametrize("strategy", ["snapshot", pytest.param("arrangement", marks=pytest.mark.long)])
def test_progress_is_seen_and_never_goes_back(server: Server, strategy: str) -> None:
    """By every relation that shows it, over kill -9 too."""
    with server.connect() as own:
        fill(own)
        own.execute("SET background_ddl = true")
        own.execute(slow_view("slow", strategy, 2500))
        done = wait_for_rows(own)
        text = own.execute("SELECT progress, backfill_type FROM rw_catalog.rw_ddl_progress").fetchone()
        assert text is not None
        pattern, kind = {
            "snapshot": (r"Snapshot \[\d+\.\d\d% \(\d+/20000\)\]", "SNAPSHOT_BACKFILL"),
            "arrangement": (r"\d+\.\d\d% \(\d+/20000\)", "NORMAL_BACKFILL"),
        }[strategy]
        assert re.fullmatch(pattern, text[0])
        assert text[1] == kind
        limits = own.execute("SELECT node_name, rate_limit FROM rw_catalog.rw_rate_limit").fetchall()
        assert limits == [("STREAM_SCAN", 2500)]
        server.kill()
    again = Server(server.data)
    try:
        with again.connect() as own:
            seen = [rows_done(own)]
            assert seen[0] >= done
            bounds = "SELECT seconds_left_low, seconds_left_high, rows_per_second FROM rw_catalog.rw_backfill_status"
            low_high: list[tuple[float, float, float]] = []
            while jobs(own):
                seen.append(rows_done(own))
                low_high += [row for row in own.execute(bounds).fetchall() if row[0] is not None]
                time.sleep(0.1)
            assert seen == sorted(seen)
            assert len(set(seen)) > 3
            assert low_high
            assert all(0 <= low <= high for low, high, _ in low_high)
            check_sums(own, "slow")
    finally:
        again.kill()


@pytest.mark.parametrize("how", long_but(["protocol"], ["cancel jobs", "drop", "protocol"]))
def test_cancelling_a_job_that_runs(server: Server, how: str) -> None:
    with server.connect() as own:
        fill(own)
        creating = Statement(server, slow_view("slow", "arrangement"))
        wait_for_rows(own)
        match how:
            case "cancel jobs":
                own.execute(f"CANCEL JOBS {jobs(own)['slow'][0]}")
            case "drop":
                own.execute("DROP MATERIALIZED VIEW slow")
            case "protocol":
                creating.connection.cancel()
        assert isinstance(creating.join(), psycopg.errors.QueryCanceled)
        assert jobs(own) == {}
        assert own.execute("SELECT * FROM rw_catalog.rw_rate_limit").fetchall() == []
        own.execute(f"CREATE MATERIALIZED VIEW slow AS {SUMS}")
        check_sums(own, "slow")


@pytest.mark.long
def test_a_paused_job_says_so_in_psql(server: Server) -> None:
    with server.connect() as own:
        fill(own)
        own.execute("SET background_ddl = true")
        own.execute(slow_view("paused", "snapshot", 0))
        assert wait_until(lambda: own.execute(STATUS).fetchall()[0][0] == "PAUSED", 10)
        assert own.execute(STATUS).fetchall() == [("PAUSED", 0, ROWS, "the rate limit is 0")]
        if shutil.which("psql"):
            status = server.psql("-c", "SELECT * FROM rw_catalog.rw_backfill_status").stdout
            assert "| public.paused |" in status
            assert "| PAUSED |" in re.sub(" +", " ", status)
            shown = server.psql("-At", "-c", "SHOW JOBS").stdout
            assert shown.endswith("|BACKGROUND|Snapshot [0.00% (0/20000)]\n")
        own.execute("CANCEL JOBS " + str(jobs(own)["paused"][0]))
