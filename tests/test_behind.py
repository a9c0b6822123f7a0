"""Views that cannot follow: the others go on, and they catch up by themselves, to what their queries give."""

from __future__ import annotations

import time
from pathlib import Path
from random import Random
from typing import Any

import psycopg
import pytest
from servers import Server, rows, wait_until, without_spark
from test_law import check, opened, run, without_epochs
from test_retention import forget

from sparkwave.catalog import errors
from sparkwave.catalog.errors import Error
from sparkwave.catalog.lake.ducklake import Cursor
from sparkwave.catalog.model import Job
from sparkwave.executor.epochs import behind
from sparkwave.executor.epochs.advance import Advance, View
from sparkwave.executor.epochs.engines import Engines
from sparkwave.executor.maintenance import retention
from sparkwave.executor.maintenance.check import check_directory
from sparkwave.executor.memory.shared_buffer import SharedBuffer
from sparkwave.server.context import Context
from sparkwave.server.dispatch import Client

IN_PROCESS = {"streaming_engine": "duckdb", "backfill_engine": "auto"}
QUERIES = {
    "a": "SELECT g, count(*) AS n, sum(v) AS s FROM t GROUP BY g",
    "b": "SELECT a.g, a.n, u.w FROM a JOIN u ON a.g = u.g",
    "c": "SELECT g, max(w) AS w FROM u GROUP BY g",
    "d": "SELECT b.g, b.n, b.w, c.w AS most FROM b JOIN c ON b.g = c.g",
}
STATUS = "SELECT job_name, state, reason, tries FROM rw_catalog.rw_job_status ORDER BY 1"


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(behind, "FIRST_S", 0.1)


class Faults:
    """The views, by name, that fail for a reason, and how often each was tried meanwhile."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.reasons: dict[str, Error] = {}
        self.tries: dict[str, int] = {}
        advance, compute_anew = Engines.advance, Engines.compute_anew
        self.anew: list[str] = []

        def failing(engines: Engines, cursor: Cursor, view: View, *rest: object) -> Advance | None:
            self._fail(view)
            return advance(engines, cursor, view, *rest)  # type: ignore[arg-type]

        def failing_anew(engines: Engines, cursor: Cursor, view: View, *rest: object) -> Advance | None:
            self._fail(view)
            self.anew.append(view.relation.name)
            return compute_anew(engines, cursor, view, *rest)  # type: ignore[arg-type]

        monkeypatch.setattr(Engines, "advance", failing)
        monkeypatch.setattr(Engines, "compute_anew", failing_anew)

    def _fail(self, view: View) -> None:
        name = view.relation.name
        if name in self.reasons:
            self.tries[name] = self.tries.get(name, 0) + 1
            raise self.reasons[name]


@pytest.fixture
def faults(monkeypatch: pytest.MonkeyPatch) -> Faults:
    return Faults(monkeypatch)


def make(client: Client) -> None:
    run(client, "CREATE TABLE t (k int PRIMARY KEY, g int, v int)")
    run(client, "CREATE TABLE u (k int PRIMARY KEY, g int, w int)")
    run(client, "INSERT INTO t SELECT i, i % 5, i FROM range(50) AS r (i)")
    run(client, "INSERT INTO u SELECT i, i % 5, i FROM range(20) AS r (i)")
    for name, query in QUERIES.items():
        run(client, f"CREATE MATERIALIZED VIEW {name} AS {query}")


def change(client: Client, n: int) -> None:
    """One commit after another, to rows that views have already and to new ones."""
    run(client, f"INSERT INTO t VALUES ({100 + n}, {n % 6}, {n})")
    run(client, f"UPDATE t SET g = g + 1 WHERE k = {n}")
    run(client, f"INSERT INTO u VALUES ({100 + n}, {n % 6}, {100 + n})")
    run(client, f"DELETE FROM u WHERE k = {n}")


def flush(context: Context) -> None:
    context.coordinator.flush(lambda: False, 30)


def go_on(context: Context, client: Client, *numbers: int) -> None:
    """Changes, each of which all views take up that can."""
    for n in numbers:
        change(client, n)
        flush(context)


def job(context: Context, name: str) -> Job:
    relation = context.store.catalog.find("dev", "public", name)
    assert relation is not None
    return context.store.catalog.job_by_id[relation.id]


def check_others(client: Client, *names: str) -> None:
    check(client, {name: QUERIES[name] for name in names}, "behind")


def test_a_chain_waits_and_catches_up(tmp_path: Path, faults: Faults) -> None:
    """One view fails: what reads it waits by name, others go on; all catch up together once it succeeds."""
    with opened(tmp_path / "lake", **IN_PROCESS) as (context, client):
        make(client)
        flush(context)
        faults.reasons["a"] = Error("division by zero", errors.DIVISION_BY_ZERO)
        for n in range(2):
            go_on(context, client, n)
            check_others(client, "c")
        assert [row[:3] for row in run(client, STATUS)] == [
            ("a", "FAILED", "division by zero"),
            ("b", "FAILED", "waits for materialized view public.a: division by zero"),
            ("c", "FOLLOWING", None),
            ("d", "FAILED", "waits for materialized view public.a: division by zero"),
        ]  # fmt: skip
        for name in "abd":
            with pytest.raises(Error, match="has failed and does not follow") as caught:
                run(client, f"SELECT * FROM {name}")
            assert "division by zero" in (caught.value.detail or "")
            assert caught.value.sqlstate == errors.NOT_IN_PREREQUISITE_STATE
        [notice] = client.execute(client.prepare("FLUSH", ()), ()).notices
        assert notice.severity == "WARNING" and "public.a (division by zero)" in notice.message
        assert faults.tries["a"] >= 3
        del faults.reasons["a"]
        assert wait_until(lambda: not job(context, "d").is_behind, 10), "it recovers alone"
        go_on(context, client, 4)
        check_others(client, *QUERIES)
        events = "SELECT event_type, count(*) FROM rw_catalog.rw_event_logs WHERE event_type LIKE 'STREAM_JOB_%' "
        assert run(client, f"{events} GROUP BY 1 ORDER BY 1") == [("STREAM_JOB_FAIL", 3), ("STREAM_JOB_RECOVER", 3)]
        assert not client.execute(client.prepare("FLUSH", ()), ()).notices
        assert faults.anew == []


@pytest.mark.long
def test_one_in_the_middle(tmp_path: Path, faults: Faults) -> None:
    """What it reads goes on without it, so that it takes up more than one change of a view."""
    with opened(tmp_path / "lake", **IN_PROCESS) as (context, client):
        make(client)
        faults.reasons["b"] = Error("it broke")
        for n in range(2):
            go_on(context, client, n)
            check_others(client, "a", "c")
        faults.reasons["a"] = Error("this too")
        go_on(context, client, 3)
        assert job(context, "a").is_behind
        del faults.reasons["b"]
        go_on(context, client, 5)
        assert job(context, "b").is_behind, "what it reads is behind now"
        del faults.reasons["a"]
        go_on(context, client, 6)
        check_others(client, *QUERIES)


def test_one_that_catches_up_beside_others(tmp_path: Path, faults: Faults) -> None:
    """It is taken along from an older snapshot than the others, which look the same rows up in the same epoch."""
    queries = {name: f"SELECT k, sum(k) OVER (ORDER BY k) AS {name} FROM t" for name in ("late", "other")}
    with opened(tmp_path / "lake", **IN_PROCESS) as (context, client):
        run(client, "CREATE TABLE t (k int PRIMARY KEY)")
        for name, query in queries.items():
            run(client, f"CREATE MATERIALIZED VIEW {name} AS {query}")

        def insert(k: int) -> None:
            run(client, f"INSERT INTO t VALUES ({k})")
            flush(context)

        insert(1)
        insert(2)
        faults.reasons["late"] = Error("it broke")
        insert(3)
        with without_epochs(context):
            run(client, "INSERT INTO t VALUES (4)")
            context.coordinator._engines.forget_copies()
            context.coordinator.behind.forget((job(context, "late").id,))  # so that it is tried at once
            del faults.reasons["late"]
        flush(context)
        assert wait_until(lambda: not job(context, "late").is_behind, 10)
        check(client, queries, "behind")
        assert faults.anew == []


def test_over_a_restart(tmp_path: Path, faults: Faults) -> None:
    """Where a view stands is kept; another server takes it along from there."""
    with opened(tmp_path / "lake", **IN_PROCESS) as (context, client):
        make(client)
        faults.reasons["a"] = Error("it broke")
        go_on(context, client, 0, 1)
        stood = job(context, "a").position
        assert stood is not None
    assert check_directory(tmp_path / "lake", views=True).findings == (), "it is compared as of where it stands"
    with opened(tmp_path / "lake", **IN_PROCESS) as (context, client):
        go_on(context, client, 5)
        assert job(context, "a").position == stood
        with pytest.raises(Error, match="has failed"):
            run(client, "SELECT * FROM a")
        faults.reasons = {}
    with opened(tmp_path / "lake", **IN_PROCESS) as (context, client):
        go_on(context, client, 6)
        check_others(client, *QUERIES)
        assert faults.anew == []


def test_one_that_is_refreshed_at_intervals(tmp_path: Path) -> None:
    """It rests beside changes, over a restart too; once it is time, it has the rows of its query."""
    made = "CREATE MATERIALIZED VIEW {} WITH (refresh.interval.sec = {}) AS " + QUERIES["b"]
    with opened(tmp_path / "lake", **IN_PROCESS) as (context, client):
        make(client)
        run(client, made.format("often", 1))
        run(client, made.format("seldom", 3600))
        before = sorted(run(client, "SELECT * FROM seldom"))
        go_on(context, client, 0)
        assert sorted(run(client, "SELECT * FROM often")) == before
        assert job(context, "often").is_resting
        time.sleep(1.1)
        go_on(context, client, 1, 2)
        stood = job(context, "seldom").position
    assert check_directory(tmp_path / "lake", views=True).findings == (), "it is compared as of its last refresh"
    with opened(tmp_path / "lake", **IN_PROCESS) as (context, client):
        go_on(context, client, 3)
        assert job(context, "seldom").position == stood
        assert sorted(run(client, "SELECT * FROM seldom")) == before
        while job(context, "often").is_resting:
            time.sleep(1.1)
            go_on(context, client, 4)
        check(client, {"often": QUERIES["b"], **QUERIES}, "refreshed again")


def test_what_is_forgotten_is_computed_anew(tmp_path: Path, faults: Faults) -> None:
    """Also of a view that a server before this one has given up, of which nobody knows where it stands."""
    with opened(tmp_path / "lake", **IN_PROCESS) as (context, client):
        make(client)
        faults.reasons["a"] = Error("it broke")
        go_on(context, client, 0, 1)
    with opened(tmp_path / "lake", **IN_PROCESS) as (context, client):
        failed = "UPDATE lake.sparkwave.jobs SET snapshot = NULL, views_at = NULL, waiting_since = NULL"
        with context.store.change() as cursor:
            cursor.execute(f"{failed} WHERE status = 'FAILED'")
        flush(context)
        faults.reasons = {}
        time.sleep(3 * behind.FIRST_S)  # it is not tried before
        go_on(context, client, 5)
        check_others(client, *QUERIES)
        assert faults.anew == ["a", "b", "d"]


@pytest.mark.long
def test_what_the_lake_keeps(tmp_path: Path, faults: Faults, monkeypatch: pytest.MonkeyPatch) -> None:
    """What a view has missed, for as long as it is worth: then it is computed anew; what cannot be stays."""
    with opened(tmp_path / "lake", **IN_PROCESS) as (context, client):
        make(client)
        run(client, "CREATE TABLE target (g int PRIMARY KEY, n bigint)")
        run(client, "CREATE SINK s INTO target AS SELECT g, n FROM a")
        flush(context)
        for is_kept in (True, False):
            faults.reasons["a"] = Error("it broke")
            for n in range(2):
                go_on(context, client, n + 20 * is_kept)
                forget(context)
            monkeypatch.setattr(retention, "LONGEST_BEHIND_S", 24 * 3600 if is_kept else -1)
            forget(context)
            del faults.reasons["a"]
            go_on(context, client, 5 + 20 * is_kept)
            assert faults.anew[:4] == ([] if is_kept else ["a", "b", "s", "d"])
            check_others(client, *QUERIES)
        assert job(context, "s").status == "FAILED"
        assert job(context, "s").error == "what has changed since it stopped is forgotten"


def test_what_users_can_do(connection: psycopg.Connection[Any]) -> None:
    """Rows that a view cannot compute or a sink cannot write: who sees what, and that they go on without them."""
    session = connection
    said: list[str] = []
    session.add_notice_handler(lambda notice: said.append(f"{notice.severity}: {notice.message_primary}"))
    session.execute("CREATE SCHEMA failing")
    session.execute("SET search_path = failing")
    session.execute("CREATE TABLE t (k int PRIMARY KEY, v numeric(38, 0), w int)")
    session.execute("CREATE TABLE target (k int PRIMARY KEY, w int CHECK (w < 9))")
    session.execute("CREATE MATERIALIZED VIEW total AS SELECT sum(v) AS s FROM t")
    session.execute("CREATE MATERIALIZED VIEW over AS SELECT s + 1 AS more FROM total")
    session.execute("CREATE MATERIALIZED VIEW counted AS SELECT count(*) AS n FROM t")
    session.execute("CREATE SINK s INTO target AS SELECT k, w FROM t")
    session.execute(f"INSERT INTO t SELECT i, {'9' * 38}, i FROM range(3) AS x (i)")
    session.execute("INSERT INTO t VALUES (3, 0, 9)")
    said.clear()
    session.execute("FLUSH")
    [warning] = said
    assert warning.startswith("WARNING: what has failed does not follow until it succeeds again: failing.total (")
    assert 'failing.s (new row for relation "target" violates check constraint "target_w_check")' in warning
    assert rows(session, "SELECT * FROM counted") == [(4,)]
    for query in ("SELECT * FROM over", "CREATE MATERIALIZED VIEW more AS SELECT * FROM total"):
        with pytest.raises(psycopg.errors.ObjectNotInPrerequisiteState, match="has failed and does not follow"):
            session.execute(query)
    session.execute("DELETE FROM t WHERE k IN (1, 3)")
    session.execute("INSERT INTO t VALUES (4, -1, 4)")
    session.execute("UPDATE t SET v = 1 WHERE k = 2")
    # On a busy machine a try takes long, and so does the rest after it.
    behind_still = "FROM rw_catalog.rw_job_status WHERE schema_name = 'failing' AND state <> 'FOLLOWING'"
    assert wait_until(lambda: not rows(session, f"SELECT job_name {behind_still}"), 30)
    session.execute("FLUSH")
    assert len(said) == 1
    assert rows(session, "SELECT * FROM target ORDER BY k") == [(0, 0), (2, 2), (4, 4)]
    assert rows(session, "SELECT s::text FROM total") == [("9" * 38,)]
    session.execute("DROP SCHEMA failing CASCADE")


@pytest.mark.long
def test_nobodys_fault(tmp_path: Path, faults: Faults, monkeypatch: pytest.MonkeyPatch) -> None:
    """A view that needs a Spark that is not there lags, and may be read as it was; FLUSH waits for it, and says so."""
    monkeypatch.setattr("sparkwave.executor.epochs.coordinator.PATIENCE_S", 0.5)
    told: list[Error] = []
    with opened(tmp_path / "lake", **IN_PROCESS) as (context, client):
        make(client)
        flush(context)
        before = run(client, "SELECT * FROM a ORDER BY g")
        faults.reasons["a"] = Error("resource group default was not ready", errors.INSUFFICIENT_RESOURCES)
        change(client, 1)
        with pytest.raises(Error, match="did not catch up within 2 s") as caught:
            context.coordinator.flush(lambda: False, 2, told.append)
        reason = "materialized view public.a does not follow: resource group default was not ready"
        assert (caught.value.detail, [why.message for why in told]) == (reason, [reason])
        assert [row[:2] for row in run(client, STATUS)] == [
            ("a", "BEHIND"), ("b", "BEHIND"), ("c", "FOLLOWING"), ("d", "BEHIND"),
        ]  # fmt: skip
        assert run(client, "SELECT * FROM a ORDER BY g") == before
        check_others(client, "c")
        faults.reasons = {}
        flush(context)
        check_others(client, *QUERIES)


STATES = "SELECT job_name, state, reason FROM rw_catalog.rw_job_status ORDER BY 1"


def large_and_small(own: psycopg.Connection[Any]) -> None:
    """Two tables with a view each; changes of more than 100 rows are for Spark."""
    own.execute("ALTER SYSTEM SET backfill_engine = auto")
    for name in ("large", "small"):
        own.execute(f"CREATE TABLE {name}_t (k int PRIMARY KEY, g int)")
        own.execute(f"CREATE MATERIALIZED VIEW {name} AS SELECT g, count(*) AS n FROM {name}_t GROUP BY g")
    own.execute("ALTER SYSTEM SET streaming_duckdb_max_rows = 100")


@pytest.mark.long
def test_without_a_spark(tmp_path: Path) -> None:
    """A view whose change is for Spark, which does not come, holds up no other, and goes on when it may without."""
    server = Server(tmp_path / "data", without_spark(tmp_path))
    try:
        with server.connect() as own:
            large_and_small(own)
            own.execute("INSERT INTO large_t SELECT i, i % 5 FROM range(1000) AS r (i)")
            for n in range(3):
                own.execute(f"INSERT INTO small_t VALUES ({n}, {n})")
                assert wait_until(lambda: rows(own, f"SELECT g FROM small WHERE g = {n}") == [(n,)], 10)  # noqa: B023
                [large, small] = rows(own, STATES)
                assert small == ("small", "FOLLOWING", None)
                assert large == ("large", "BEHIND", "resource group default is starting")
            assert rows(own, "SELECT * FROM large") == []
            own.execute("ALTER SYSTEM SET streaming_duckdb_max_rows = 100000")
            own.execute("FLUSH")
            assert rows(own, "SELECT sum(n)::int FROM large") == [(1000,)]
    finally:
        server.kill()


def test_a_full_disk_is_said_in_time(tmp_path: Path, faults: Faults, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sparkwave.executor.epochs.coordinator.PATIENCE_S", 0.5)
    with opened(tmp_path / "lake", **IN_PROCESS) as (context, client):
        make(client)
        faults.reasons["a"] = Error("No space left on device", errors.DISK_FULL)
        change(client, 1)
        with pytest.raises(Error, match="No space left on device") as caught:
            context.coordinator.flush(lambda: False, 30)
        assert caught.value.sqlstate == errors.DISK_FULL
        context.coordinator.barrier()
        check_others(client, "c")


@pytest.mark.long
def test_what_fails_in_the_checkpoint(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A change that can be written neither in memory nor into the lake holds the others up for an epoch in two."""
    import duckdb

    with opened(tmp_path / "lake", **IN_PROCESS) as (context, client):
        make(client)
        apply, steps = Advance.apply, SharedBuffer._steps

        def fail(advance: Advance) -> None:
            if advance.view.relation.name == "a":
                raise duckdb.OutOfMemoryException("Out of Memory Error: failed to allocate data of size 16.0 MiB")

        def failing_apply(advance: Advance, cursor: Cursor) -> None:
            fail(advance)
            apply(advance, cursor)

        def failing_steps(buffer: SharedBuffer, cursor: Cursor, advance: Advance) -> Any:
            fail(advance)
            return steps(buffer, cursor, advance)

        with monkeypatch.context() as patched:
            patched.setattr(Advance, "apply", failing_apply)
            patched.setattr(SharedBuffer, "_steps", failing_steps)
            for n in range(2):
                go_on(context, client, n)
                check_others(client, "c")
            assert job(context, "a").status == "FAILED"
        change(client, 5)
        assert wait_until(lambda: not job(context, "d").is_behind, 10)
        flush(context)
        check_others(client, *QUERIES)


def test_indexes_sinks_and_what_becomes_of_them(tmp_path: Path, faults: Faults) -> None:
    """An index that is behind is not read, and a sink hands on once what it has missed."""
    with opened(tmp_path / "lake", **IN_PROCESS) as (context, client):
        make(client)
        run(client, "CREATE INDEX i ON c (w)")
        run(client, "CREATE TABLE target (g int PRIMARY KEY, n bigint)")
        run(client, "CREATE SINK s INTO target AS SELECT g, n FROM a")
        run(client, "CREATE MATERIALIZED VIEW over AS SELECT g, n + 1 AS m FROM target")
        flush(context)
        faults.reasons |= {"i": Error("it broke"), "s": Error("it broke")}
        for n in range(2):
            go_on(context, client, n)
            assert run(client, f"SELECT g FROM c WHERE w = {100 + n}") == [(n % 6,)]
        assert job(context, "i").is_behind and job(context, "s").is_behind
        faults.reasons = {}
        go_on(context, client, 5)
        same = "SELECT g, n FROM target EXCEPT SELECT g, n FROM a"
        assert run(client, same) == []
        check(client, {"over": "SELECT g, n + 1 AS m FROM target"}, "over")
        assert run(client, "SELECT g FROM c WHERE w = 105") == [(5,)]


def check_random(directory: Path, faults: Faults, seed: int) -> None:
    """Any views fail at any time, for any reason."""
    random = Random(seed)
    with opened(directory, **IN_PROCESS) as (context, client):
        make(client)
        for n in range(6):
            for _ in range(random.randint(1, 4)):
                sqlstate = random.choice((errors.INTERNAL_ERROR, errors.INSUFFICIENT_RESOURCES))
                names = random.sample(sorted(QUERIES), random.randint(0, 2))
                faults.reasons = {name: Error(f"it broke {random.random()}", sqlstate) for name in names}
                change(client, 10 * n + random.randint(0, 9)) if random.random() < 0.7 else None
                context.coordinator.barrier()
            faults.reasons = {}
            go_on(context, client, 200 + n)
            check(client, QUERIES, f"seed {seed}, round {n}")
        assert faults.anew == []
        faults.reasons = {name: Error("it broke") for name in random.sample(sorted(QUERIES), 2)}
        for n in range(300, 302):
            change(client, n)
            context.coordinator.barrier()
    report = check_directory(directory, views=True)
    assert (report.findings, report.views) == ((), len(QUERIES))


def test_random_failures(tmp_path: Path, faults: Faults) -> None:
    check_random(tmp_path / "lake", faults, 1)


@pytest.mark.long
@pytest.mark.parametrize("seed", range(2, 8))
def test_random_failures_at_length(tmp_path: Path, faults: Faults, seed: int) -> None:
    check_random(tmp_path / "lake", faults, seed)


@pytest.mark.long
def test_altering_and_dropping(tmp_path: Path, faults: Faults) -> None:
    """A new query makes a failed view good, and what reads it goes on; a table may be altered meanwhile."""
    with opened(tmp_path / "lake", **IN_PROCESS) as (context, client):
        make(client)
        faults.reasons["a"] = Error("it broke")
        go_on(context, client, 0, 1)
        run(client, "ALTER TABLE u ADD COLUMN more int")
        run(client, "INSERT INTO u VALUES (500, 1, 500, 1)")
        query = "SELECT g, count(*) + 1 AS n, sum(v) AS s FROM t WHERE v >= 0 GROUP BY g"
        faults.reasons = {"b": Error("this too")}
        run(client, f"ALTER MATERIALIZED VIEW a AS {query}")
        flush(context)
        check(client, {"a": query}, "altered")
        assert job(context, "b").status == "FAILED"
        assert job(context, "b").position is None, "the rows that it has applied are gone"
        faults.reasons = {}
        go_on(context, client, 6)
        check(client, QUERIES | {"a": query}, "after")
        faults.reasons = {"b": Error("again")}
        go_on(context, client, 7, 8)
        run(client, "DROP MATERIALIZED VIEW d")
        run(client, "DROP MATERIALIZED VIEW b")
        faults.reasons = {}
        run(client, f"CREATE MATERIALIZED VIEW b AS {QUERIES['b']}")
        flush(context)
        check(client, {"a": query, "b": QUERIES["b"], "c": QUERIES["c"]}, "made again")


@pytest.mark.long
def test_a_job_finishes_after_what_it_reads(tmp_path: Path, faults: Faults) -> None:
    """A view is not created over one that is behind: it waits and says for what."""
    with opened(tmp_path / "lake", **IN_PROCESS) as (context, client):
        make(client)
        flush(context)
        run(client, "SET background_ddl = true")
        with without_epochs(context):
            faults.reasons["a"] = Error("it broke")
            change(client, 1)  # before e begins, or it may end before `a` fails
            run(client, "CREATE MATERIALIZED VIEW e AS SELECT g, n FROM a")
        waiting = "SELECT reason FROM rw_catalog.rw_backfill_status"
        assert wait_until(lambda: any("has to catch up: it broke" in str(r) for (r,) in run(client, waiting)), 10)
        check_others(client, "c")
        faults.reasons = {}
        run(client, "WAIT")
        flush(context)
        check(client, QUERIES | {"e": "SELECT g, n FROM a"}, "finished")


def test_out_of_memory_is_a_views_own(tmp_path: Path) -> None:
    """Real: a view whose groups do not fit stops alone, and goes on when there is enough memory."""
    with opened(tmp_path / "lake", **IN_PROCESS) as (context, client):
        run(client, "CREATE TABLE t (k int, g int)")
        run(client, "INSERT INTO t SELECT i, i % 5 FROM range(10) AS r (i)")
        huge = "SELECT g, max(repeat(chr(64 + k % 26), k)) AS s FROM t GROUP BY g"
        run(client, f"CREATE MATERIALIZED VIEW huge AS {huge}")
        run(client, "CREATE MATERIALIZED VIEW small AS SELECT g, count(*) AS n FROM t GROUP BY g")
        cursor = context.lake.cursor()
        cursor.execute("SET memory_limit = '40MB'")
        cursor.execute("SET max_temp_directory_size = '0MB'")
        run(client, "INSERT INTO t SELECT 8000000, i FROM range(5) AS r (i)")
        flush(context)
        assert run(client, "SELECT sum(n)::int FROM small") == [(15,)]
        assert job(context, "huge").status == "FAILED"
        cursor.execute("SET memory_limit = '4GB'")
        assert wait_until(lambda: not job(context, "huge").is_behind, 20)
        assert run(client, "SELECT max(length(s)) FROM huge") == [(8000000,)]


def test_one_that_takes_too_long(tmp_path: Path) -> None:
    """The others follow meanwhile; it keeps what it has, and gets twice the time with each try."""
    with opened(tmp_path / "lake", **IN_PROCESS, view_time_limit_ms="500") as (context, client):
        run(client, "CREATE TABLE t (k int PRIMARY KEY, v int)")
        run(client, "CREATE MATERIALIZED VIEW quick AS SELECT count(*) AS n FROM t")
        pairs = "SELECT count(*) AS n FROM t AS a JOIN t AS b ON a.v * b.v % 1000003 = a.k + b.k"
        run(client, f"CREATE MATERIALIZED VIEW slow AS {pairs}")
        run(client, "INSERT INTO t SELECT i, i FROM range(5000) AS r (i)")
        context.coordinator.barrier()
        assert run(client, "SELECT n FROM quick") == [(5000,)]
        assert run(client, "SELECT n FROM slow") == [(0,)]
        [job] = [job for job in context.store.catalog.jobs if job.is_behind]
        assert job.error is not None
        assert job.error.startswith("an epoch of it took longer than 0.5")
        run(client, "ALTER SYSTEM SET view_time_limit_ms = 0")
        context.coordinator.behind.hurry()
        context.coordinator.barrier()
        assert not any(job.is_behind for job in context.store.catalog.jobs)
        assert run(client, "SELECT n FROM slow") == run(client, pairs)
