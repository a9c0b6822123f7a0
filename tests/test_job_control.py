"""Jobs that are cancelled, paused, altered and recovered while a step of theirs runs."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import pyarrow
import pytest
from marking import long_but
from servers import PATIENCE_SECONDS, wait_until
from test_law import check, opened, run

from sparkwave.catalog.errors import Error
from sparkwave.catalog.lake.ducklake import Cursor
from sparkwave.catalog.lake.lake_tables import locate
from sparkwave.catalog.lake.leftovers import forget_leftovers
from sparkwave.catalog.lake.snapshot_changes import ROW_CHANGES, changes_made
from sparkwave.catalog.lake.translation import DuckDBError
from sparkwave.catalog.model import Relation
from sparkwave.catalog.names import LakeTable
from sparkwave.catalog.stores.compute_errors import compute_errors
from sparkwave.catalog.stores.job_store import Start, finish_job
from sparkwave.catalog.stores.store import Store
from sparkwave.executor.backfill import jobs, whole_fill
from sparkwave.executor.backfill.progress import Rows
from sparkwave.executor.backfill.work import Work
from sparkwave.executor.spark import kernel
from sparkwave.server.context import Context
from sparkwave.server.dispatch import Client

pytestmark = pytest.mark.timeout(900)

ROWS = 30_000
# One step of each takes seconds, on both engines: every row meets, or becomes, thousands.
PAIRS = "SELECT a.g, count(*) AS n, sum(a.v - b.v) AS d FROM r a JOIN r b ON a.g = b.g WHERE a.v + b.v > 7 GROUP BY a.g"
SERIES = "SELECT k, i FROM (SELECT k, generate_series(1, 60000) AS i FROM r) AS s WHERE i > 59999"
SLOW = {"snapshot": PAIRS, "arrangement": PAIRS, "no_shuffle": SERIES}
# DuckDB fills a view with this aggregate whatever its size.
IN_PROCESS = PAIRS.replace("count(*)", "count(*) AS c, stddev_pop(a.v - b.v)")
STATUS = "SELECT state, reason FROM rw_catalog.rw_backfill_status"


@pytest.fixture(scope="module")
def opened_once(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Context, Client]]:
    """One server's parts with Spark warm, in this process, so that a test sees all that the server knows."""
    with opened(tmp_path_factory.mktemp("control") / "lake", barrier_interval_ms="100") as (context, client):
        run(client, "CREATE TABLE r (k int PRIMARY KEY, g int, v int)")
        run(client, f"INSERT INTO r SELECT i, i % 5, i FROM range({ROWS}) AS x (i)")
        run(client, "ALTER SYSTEM SET backfill_engine = spark")
        with context.groups.get().session("test") as session:
            session.sql("SELECT 1").collect()
        yield context, client


@pytest.fixture
def parts(opened_once: tuple[Context, Client]) -> Iterator[tuple[Context, Client]]:
    _, client = opened_once
    run(client, "SET background_ddl = true")
    yield opened_once
    for (job,) in run(client, "SELECT ddl_id FROM rw_catalog.rw_ddl_progress"):
        run(client, f"CANCEL JOBS {job}")
    run(client, "DROP MATERIALIZED VIEW IF EXISTS slow")
    run(client, "ALTER SYSTEM SET backfill_slice_rows TO DEFAULT")


def creation(strategy: str, query: str, options: str = "") -> str:
    return f"CREATE MATERIALIZED VIEW slow WITH (backfill_strategy = '{strategy}'{options}) AS {query}"


def creating(context: Context) -> set[int]:
    return {job.id for job in context.store.catalog.jobs if job.status == "CREATING"}


def only_job(context: Context) -> int:
    """The one that has begun, or soon will."""
    assert wait_until(lambda: bool(creating(context)), PATIENCE_SECONDS)
    [job] = creating(context)
    return job


def wait_for_step(context: Context, errors: Sequence[Error] = ()) -> int:
    """Wait until an engine works on a step of the one job. Returns the job's id."""

    def is_busy() -> bool:
        running = (context.jobs._running.get(job) for job in creating(context))
        return any(job is not None and job._work.controls._interrupts for job in running)

    assert wait_until(lambda: is_busy() or bool(errors), PATIENCE_SECONDS)
    assert not errors
    time.sleep(0.1)
    assert is_busy(), "the step is too short for this test"
    return only_job(context)


def stored(context: Context, table: str, job: int) -> list[tuple[object, ...]]:
    """The rows of one of Sparkwave's own relations that are about a job."""
    column = {"jobs": "id", "relations": "id", "columns": "relation_id"}.get(table, "job_id")
    return context.lake.cursor().execute(f"FROM lake.sparkwave.{table} WHERE {column} = {job}").fetchall()


def remains(context: Context, job: int) -> list[object]:
    """All that is left of a job that nobody wants any more, but for what goes in the background."""
    with context.lake.transaction(context.lake.cursor()) as cursor:
        forget_leftovers(cursor)
    tables = ("jobs", "relations", "columns", "states", "slices", "finished_slices", "positions")
    rows: list[object] = [row for table in tables for row in stored(context, table, job)]
    internal = "SELECT table_name FROM duckdb_tables() WHERE table_name = 'slow' OR table_name LIKE ?"
    rows += context.lake.cursor().execute(internal, [f"__internal_{job}%"]).fetchall()
    rows += [path for path in context.lake.data_path.glob(f"**/job_{job}") if path.exists()]
    return rows + list(context.lake.staging_path.iterdir())


@pytest.mark.spark
@pytest.mark.parametrize("strategy", long_but([], SLOW))
def test_steps_without_rows_leave_nothing(parts: tuple[Context, Client], strategy: str) -> None:
    """No file that a snapshot does not know, and no directory of a step."""
    context, client = parts
    run(client, f"ALTER SYSTEM SET backfill_slice_rows = {ROWS // 2}")
    run(client, creation(strategy, "SELECT k FROM r WHERE v < 0"))
    run(client, "WAIT")
    assert not list(context.lake.data_path.glob("job_*"))
    assert not list(context.lake.staging_path.iterdir())
    assert run(client, "SELECT * FROM slow") == []


# How little a CREATE does beside its view.


def commits(context: Context, after: int) -> int:
    """The transactions after a snapshot that have stored something of a job."""
    cursor = context.lake.cursor()
    upto = context.lake.snapshot(cursor)
    ids = {found[0] for name in ("jobs", "finished_slices") if (found := locate(cursor, LakeTable("sparkwave", name)))}
    changes = changes_made(cursor, after, upto)
    return len({c.snapshot for c in changes if c.kind in ROW_CHANGES and c.table_id in ids})


@pytest.mark.spark
@pytest.mark.parametrize(
    ("strategy", "engine", "in_background"),
    [
        ("snapshot", "spark", False),
        ("arrangement", "spark", False),
        ("snapshot", "spark", True),
        ("arrangement", "auto", True),
    ],
)
def test_what_is_little_takes_few_commits(
    parts: tuple[Context, Client], strategy: str, engine: str, in_background: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One of the view with its rows; in the background one before, of the name with where the job starts.

    In process, too: where a client waits, see tests/test_at_once.py.
    """
    for limit in ("at_once.MOMENT_S", "at_once.MOMENT_ON_SPARK_S", "at_once.PATIENCE_S", "one_commit.PATIENCE_S"):
        monkeypatch.setattr(f"sparkwave.executor.backfill.{limit}", 20.0)  # however busy the machine is
    context, client = parts
    run(client, f"SET background_ddl = {in_background}")
    run(client, f"ALTER SYSTEM SET backfill_engine = {engine}")
    before = context.lake.snapshot(context.lake.cursor())
    groups = "SELECT g, count(*) AS n, sum(100 / (v - 7)) AS d FROM r GROUP BY g"
    run(client, creation(strategy, f"SELECT n, count(*) AS c, sum(d) AS d FROM ({groups}) AS s GROUP BY n"))
    run(client, "WAIT")
    assert commits(context, before) == 1 + in_background
    assert run(client, "SELECT n, c FROM slow") == [(ROWS // 5, 5)]
    [job] = [relation.id for relation in context.store.catalog.relations if relation.name == "slow"]
    assert [found.rows for found, _ in compute_errors(context.lake.cursor(), job).values()] == [1]
    run(client, "ALTER SYSTEM SET backfill_engine = spark")


@pytest.mark.long
@pytest.mark.spark
@pytest.mark.parametrize("in_background", [False, True])
def test_nothing_is_left_of_a_job_that_cannot_be_stored(
    parts: tuple[Context, Client], in_background: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its task runs already or is over; and the next one, which can, has all rows."""
    context, client = parts
    begun = []

    def begin(work: Work, start: Start, rows: Rows) -> None:
        start_ahead(work, start, rows)
        begun.append(work)

    def fails(store: Store, cursor: Cursor, relation: Relation) -> Relation:
        raise Error("the job cannot be stored")

    start_ahead = whole_fill.start_ahead
    monkeypatch.setattr(whole_fill, "start_ahead", begin)
    monkeypatch.setattr(jobs, "create_relation", fails)
    run(client, f"SET background_ddl = {in_background}")
    sql = creation("snapshot", SERIES)
    with pytest.raises(Error, match="the job cannot be stored"):
        run(client, sql)
    [work] = begun
    assert work.ahead.take().done()
    assert not work.data.exists()
    assert not list(context.lake.staging_path.glob(f"fill_{work.id}*"))
    assert creating(context) == set()
    monkeypatch.undo()
    run(client, sql)
    run(client, "WAIT")
    assert run(client, "SELECT count(*), min(i), max(i) FROM slow") == [(ROWS, 60000, 60000)]


@pytest.mark.spark
@pytest.mark.parametrize("then", ["the next try says so", "nothing says so"])
def test_a_commit_that_fails_to_say_so_keeps_its_files(
    parts: tuple[Context, Client], then: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A view whose commit has succeeded has its rows, whatever happens between the commit and the answer."""
    monkeypatch.setattr("sparkwave.executor.backfill.at_once.MOMENT_ON_SPARK_S", 20.0)
    context, client = parts
    failed = []

    def fails() -> None:
        of_view = "SELECT 1 FROM lake.sparkwave.relations WHERE name = 'slow'"
        if context.lake.cursor().execute(of_view).fetchone() and (not failed or then == "nothing says so"):
            failed.append(then)
            raise DuckDBError("the connection is lost")
        reload()

    reload = context.store.reload
    monkeypatch.setattr(context.store, "reload", fails)
    run(client, "SET background_ddl = false")
    sql = creation("snapshot", "SELECT k, g FROM r")
    if then == "nothing says so":
        with pytest.raises(Error, match="the connection is lost"):
            run(client, sql)
    else:
        run(client, sql)
    assert failed
    monkeypatch.undo()
    context.store.reload()
    assert run(client, "SELECT count(*), count(DISTINCT k) FROM slow") == [(ROWS, ROWS)]


# Cancelling.


def cancel(context: Context, client: Client, creator: Client, how: str, job: int) -> None:
    match how:
        case "cancel jobs":
            assert run(client, f"CANCEL JOBS {job}") == [(str(job),)]
        case "drop":
            run(client, "DROP MATERIALIZED VIEW slow")
        case "protocol":
            creator.cancel()


def in_foreground(creator: Client, sql: str, errors: list[Error]) -> threading.Thread:
    def create() -> None:
        try:
            run(creator, sql)
        except Error as error:
            errors.append(error)

    thread = threading.Thread(target=create, daemon=True)
    thread.start()
    return thread


CANCELS = [(strategy, how) for strategy in (*SLOW, "in process") for how in ("cancel jobs", "drop", "protocol")]
QUICK = {
    ("snapshot", "cancel jobs"), ("arrangement", "protocol"), ("no_shuffle", "drop"), ("in process", "protocol"),
}  # fmt: skip


@pytest.mark.spark
@pytest.mark.parametrize(("strategy", "how"), long_but(QUICK, CANCELS))
def test_cancel_during_a_step(parts: tuple[Context, Client], strategy: str, how: str) -> None:
    """It takes effect at once and leaves nothing: no row, no table, no file, now and when Spark has calmed down."""
    context, client = parts
    creator, errors = Client(context, {"user": "root"}), []
    sql = creation("arrangement", IN_PROCESS) if strategy == "in process" else creation(strategy, SLOW[strategy])
    creating = in_foreground(creator, sql, errors)
    job = wait_for_step(context, errors)
    started = time.monotonic()
    cancel(context, client, creator, how, job)
    creating.join(20)
    assert time.monotonic() - started < 8
    assert [error.sqlstate for error in errors] == ["57014"]
    assert wait_until(lambda: not remains(context, job), 1), remains(context, job)
    time.sleep(1)
    assert not remains(context, job)
    events = f"SELECT event_type FROM lake.sparkwave.events WHERE job_id = {job}"
    assert context.lake.cursor().execute(events).fetchall() == [("CANCEL_STREAM_JOB",)]
    run(client, "CREATE MATERIALIZED VIEW slow WITH (backfill_rate_limit = 0) AS SELECT k FROM r")


# Pausing.


def is_paused(client: Client) -> bool:
    return run(client, STATUS) == [("PAUSED", "the rate limit is 0")] * len(run(client, STATUS))


def pause(client: Client) -> None:
    """Within an epoch: what runs is stopped, not waited for."""
    run(client, "ALTER MATERIALIZED VIEW slow SET BACKFILL_RATE_LIMIT = 0")
    assert wait_until(lambda: is_paused(client), 8), run(client, STATUS)


def go_on(context: Context, client: Client, query: str) -> None:
    run(client, "ALTER MATERIALIZED VIEW slow SET BACKFILL_RATE_LIMIT TO DEFAULT")
    run(client, "WAIT")
    context.coordinator.flush(lambda: False)
    check(client, {"slow": query}, "resumed")


def statuses(context: Context, job: int) -> set[str]:
    """Every status that a job has had in a committed snapshot since it was CREATING."""
    cursor = context.lake.cursor()
    found: list[str] = []
    for snapshot in range(context.lake.snapshot(cursor) + 1):
        found += at(cursor, "jobs", "status", f"id = {job}", snapshot)
    return set(found[found.index("CREATING") :])


def at(cursor: Cursor, table: str, value: str, where: str, snapshot: int) -> list[str]:
    """What one of Sparkwave's own relations was at a snapshot; nothing before it was made."""
    query = f"SELECT {value} FROM lake.sparkwave.{table} AT (VERSION => {snapshot}) WHERE {where}"
    tables = "SELECT 1 FROM __ducklake_metadata_lake.ducklake_table WHERE table_name = ? AND begin_snapshot <= ?"
    if not cursor.execute(tables, [table, snapshot]).fetchone():
        return []
    return [row[0] for row in cursor.execute(query).fetchall()]


@pytest.mark.spark
@pytest.mark.parametrize("strategy", long_but([], SLOW))
def test_pause_during_the_first_step(parts: tuple[Context, Client], strategy: str) -> None:
    """Nothing is read then, and afterwards all of it; a Snapshot job reads by positions from now on."""
    context, client = parts
    run(client, creation(strategy, SLOW[strategy]))
    job = wait_for_step(context)
    assert bool(stored(context, "slices", job)) == (strategy == "snapshot")
    pause(client)
    assert stored(context, "positions", job)
    assert not stored(context, "slices", job)
    assert not stored(context, "finished_slices", job)
    run(client, f"INSERT INTO r VALUES ({ROWS}, 1, 1)")
    run(client, "DELETE FROM r WHERE k = 3")
    go_on(context, client, SLOW[strategy])
    assert statuses(context, job) == {"CREATING", "CREATED"}, "a crash would have dropped the job meanwhile"
    run(client, f"DELETE FROM r WHERE k = {ROWS}")
    run(client, "INSERT INTO r VALUES (3, 3, 3)")


@pytest.mark.long
@pytest.mark.spark
def test_pause_between_slices(parts: tuple[Context, Client]) -> None:
    """A Snapshot job with finished slices keeps them and goes on with the others."""
    context, client = parts
    run(client, f"ALTER SYSTEM SET backfill_slice_rows = {ROWS // 5}")
    run(client, creation("snapshot", SERIES))
    job = only_job(context)
    assert wait_until(lambda: len(stored(context, "finished_slices", job)) > 0, PATIENCE_SECONDS)
    pause(client)
    slices, finished = stored(context, "slices", job), stored(context, "finished_slices", job)
    assert 0 < len(finished) < len(slices)
    time.sleep(1)
    assert stored(context, "finished_slices", job) == finished
    go_on(context, client, SERIES)
    assert set(finished) < set(stored(context, "finished_slices", job))
    assert len(stored(context, "finished_slices", job)) == len(slices)
    assert not stored(context, "positions", job)


@pytest.mark.long
@pytest.mark.spark
@pytest.mark.parametrize("strategy", ["snapshot", pytest.param("no_shuffle", marks=pytest.mark.long)])
def test_changing_the_limit_is_no_failure(parts: tuple[Context, Client], strategy: str) -> None:
    """However often a step is interrupted for it: attempts are not used up, and nothing is said to be retried."""
    context, client = parts
    run(client, creation(strategy, SERIES))
    states = set()
    for limit in (10_000_000, 0, 5_000_000, 0, 20_000_000, 0):
        time.sleep(0.4)
        run(client, f"ALTER MATERIALIZED VIEW slow SET BACKFILL_RATE_LIMIT = {limit}")
        states |= {state for state, _ in run(client, STATUS)}
    assert only_job(context)
    assert "RETRYING" not in states
    go_on(context, client, SERIES)


@pytest.mark.long
@pytest.mark.long
@pytest.mark.spark
def test_changing_the_limit_while_the_log_is_read(
    parts: tuple[Context, Client], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The step of the log that it interrupts is made again."""
    context, client = parts
    monkeypatch.setattr("sparkwave.executor.backfill.creation.MAX_HANDOVER_ROWS", 0)
    run(client, "ALTER SYSTEM SET streaming_engine = spark")
    try:
        run(client, creation("snapshot", PAIRS))
        wait_for_step(context)
        run(client, "UPDATE r SET v = v + 1 WHERE g < 3")
        log = lambda: any(context.lake.staging_path.glob("log_*"))  # noqa: E731
        assert wait_until(log, 60, 0.01)
        run(client, "ALTER MATERIALIZED VIEW slow SET BACKFILL_RATE_LIMIT = 1000000")
        run(client, "WAIT")
        context.coordinator.flush(lambda: False)
        check(client, {"slow": PAIRS}, "after the log")
    finally:
        run(client, "ALTER SYSTEM SET streaming_engine TO DEFAULT")


# Parallelism and order.


def moved_runs(cursor: Cursor, job: int, since: int) -> set[int]:
    """In how many places the scans of a job moved on at once, by their committed positions after a snapshot."""
    places: set[int] = set()
    last: list[str] = []
    for snapshot in range(since, newest(cursor) + 1):
        now = at(cursor, "positions", "position", f"job_id = {job} ORDER BY fragment_id, vnode", snapshot)
        if last and now != last:
            moved = [a != b for a, b in zip(last, now, strict=True)]
            places.add(sum(m and not before for before, m in zip([False, *moved], moved, strict=False)))
        last = now
    return places


def newest(cursor: Cursor) -> int:
    row = cursor.execute("FROM ducklake_current_snapshot('lake')").fetchone()
    assert row is not None
    return row[0]


@pytest.mark.long
@pytest.mark.spark
def test_another_parallelism_while_it_runs(parts: tuple[Context, Client]) -> None:
    """As many actors as it says read on, each at a place of its own."""
    context, client = parts
    cursor = context.lake.cursor()
    run(client, f"ALTER SYSTEM SET backfill_slice_rows = {ROWS // 20}")
    run(client, "SET streaming_parallelism_for_backfill = 1")
    query = "SELECT k, v + 1 AS w FROM r"
    run(client, creation("arrangement", query, f", backfill_rate_limit = {ROWS // 20}"))
    job = only_job(context)
    assert wait_until(lambda: len(stored(context, "finished_slices", job)) > 2, PATIENCE_SECONDS)
    altered = context.lake.snapshot(cursor)
    assert moved_runs(cursor, job, 0) == {1}
    run(client, "ALTER MATERIALIZED VIEW slow SET BACKFILL_PARALLELISM = 3")
    steps = len(stored(context, "finished_slices", job))
    assert wait_until(lambda: len(stored(context, "finished_slices", job)) > steps + 2, PATIENCE_SECONDS)
    assert max(moved_runs(cursor, job, altered)) >= 3
    run(client, "SET streaming_parallelism_for_backfill TO DEFAULT")
    go_on(context, client, query)


@pytest.mark.parametrize("order", ["t -> u", "u -> t"])
def test_a_fixed_order_is_kept(tmp_path: Path, order: str) -> None:
    """In no committed snapshot is the second input read before the first is finished."""
    with opened(tmp_path / "lake", backfill_engine="auto", backfill_slice_rows="100") as (context, client):
        for table in ("t", "u"):
            run(client, f"CREATE TABLE {table} (k int PRIMARY KEY, g int)")
            run(client, f"INSERT INTO {table} SELECT i, i % 50 FROM range(500) AS x (i)")
        query = "SELECT t.k, u.k AS l FROM t JOIN u ON t.g = u.g"
        run(client, creation("arrangement", query, f", backfill_order = FIXED({order})"))
        check(client, {"slow": query}, order)
        cursor, tables = context.lake.cursor(), {r.name: r.id for r in context.store.catalog.relations}
        first, second = (tables[name] for name in order.split(" -> "))
        steps = []
        for snapshot in range(newest(cursor) + 1):
            read, left = (
                at(cursor, "positions", f"sum({rows})", f"upstream_id = {upstream}", snapshot)
                for rows, upstream in (("position - row_id_from", second), ("row_id_to - position", first))
            )
            if read and read[0] is not None:
                assert not int(read[0]) or not int(left[0]), f"{read} of the second read, {left} of the first left"
                steps.append((read, left))
        assert len([read for read, left in steps if read == [0] and left != [0]]) > 2


# RECOVER.


@pytest.mark.long
@pytest.mark.spark
def test_recover_while_jobs_run(parts: tuple[Context, Client]) -> None:
    """Jobs of every strategy are stopped in the middle of a step and go on."""
    context, client = parts
    run(client, f"ALTER SYSTEM SET backfill_slice_rows = {ROWS // 2}")
    for strategy, query in SLOW.items():
        sql = creation(strategy, query).replace("VIEW slow", f"VIEW {strategy}_slow")
        run(client, sql)
    assert wait_until(lambda: len(creating(context)) == len(SLOW), PATIENCE_SECONDS)
    time.sleep(1)
    jobs = creating(context)
    assert len(jobs) == len(SLOW), "the queries are too small for this test"
    started = time.monotonic()
    run(client, "RECOVER")
    assert time.monotonic() - started < 10
    assert creating(context) == jobs
    run(client, "WAIT")
    context.coordinator.flush(lambda: False)
    check(client, {f"{strategy}_slow": query for strategy, query in SLOW.items()}, "recovered")
    for strategy in SLOW:
        run(client, f"DROP MATERIALIZED VIEW {strategy}_slow")


def test_a_session_is_its_owners(opened_once: tuple[Context, Client]) -> None:
    """And a worker of its own loads neither pandas nor pyspark's archive, which take longest."""

    def loaded(batches: Iterator[pyarrow.RecordBatch]) -> Iterator[pyarrow.RecordBatch]:
        for _ in batches:
            found = [str("pandas" in sys.modules), str(sys.modules["pyspark"].__file__)]
            yield pyarrow.RecordBatch.from_arrays([kernel._strings(found)], names=["answer"])

    group = opened_once[0].groups.get()
    with group.session("one") as first, group.session("one") as same, group.session("other") as second:
        assert first is same
        assert first is not second
        frame = second.range(0, 1, 1, 1).mapInArrow(loaded, "answer string")
        has_pandas, path = frame.toArrow().column(0).to_pylist()
    assert has_pandas == "False"
    assert Path(path).is_file()  # in an archive it is none
    with group.session("one") as again, group.session("other") as another:
        assert {again, another} == {first, second}


def test_a_view_is_there_when_its_job_has_finished(tmp_path: Path) -> None:
    """Also for a thread that takes up the jobs alone between the commit and the coordinator's own reading of it."""
    with opened(tmp_path / "lake", backfill_engine="auto", streaming_engine="duckdb") as (context, client):
        run(client, "CREATE TABLE t (a int)")
        run(client, "CREATE MATERIALIZED VIEW m AS SELECT a FROM t")
        [job] = context.store.catalog.jobs
        with context.store.change() as cursor:
            cursor.execute("UPDATE lake.sparkwave.jobs SET status = 'CREATING'")
            cursor.execute(f"UPDATE lake.sparkwave.relations SET created = false WHERE id = {job.id}")
        with context.lake.transaction(context.lake.cursor()) as cursor:
            finish_job(cursor, job.id, "default")
        context.store.reload()
        assert context.store.catalog.by_id[job.id].created


def test_settings_of_fragments(tmp_path: Path) -> None:
    """ALTER FRAGMENT finds the job of a fragment, while the job is being created and afterwards."""
    query = "SELECT a % 3 AS g FROM t"
    fragments = (
        "SELECT f.fragment_id, f.parallelism_policy, l.node_name, l.rate_limit FROM rw_catalog.rw_fragments f "
        "JOIN rw_catalog.rw_fragment_id_to_ddl d ON d.fragment_id = f.fragment_id "
        "LEFT JOIN rw_catalog.rw_rate_limit l ON l.fragment_id = f.fragment_id WHERE d.name = '{}'"
    )
    with opened(tmp_path / "lake", backfill_engine="auto", streaming_engine="duckdb") as (_, client):
        run(client, "CREATE TABLE t (a int)")
        run(client, "INSERT INTO t SELECT * FROM generate_series(1, 5000)")
        run(client, "SET background_ddl = true")
        run(client, "SET backfill_rate_limit = 10")
        run(client, "SET streaming_parallelism = 2")
        run(
            client, "CREATE MATERIALIZED VIEW slow WITH (backfill_strategy = 'arrangement') AS SELECT a % 3 AS g FROM t"
        )
        run(client, "CREATE MATERIALIZED VIEW other AS SELECT a FROM t")
        assert wait_until(lambda: run(client, fragments.format("slow")) and run(client, fragments.format("other")), 20)
        [(slow, *said)] = run(client, fragments.format("slow"))
        [(other, *_)] = run(client, fragments.format("other"))
        assert slow != other
        assert said == ["inherit(2)", "STREAM_SCAN", 10]
        run(client, f"ALTER FRAGMENT {slow} SET RATE_LIMIT = 0")
        run(client, f"ALTER FRAGMENT {slow} SET PARALLELISM = 3")
        assert run(client, fragments.format("slow")) == [(slow, "inherit(3)", "STREAM_SCAN", 0)]
        run(client, f"ALTER FRAGMENT {slow} SET PARALLELISM = DEFAULT")
        assert run(client, fragments.format("slow")) == [(slow, "inherit(2)", "STREAM_SCAN", 0)]
        with pytest.raises(Error, match="does not support online rescheduling"):  # a snapshot backfill
            run(client, f"ALTER FRAGMENT {other} SET PARALLELISM = 3")
        with pytest.raises(Error, match="fragment id not found: 7"):  # and nothing is set
            run(client, f"ALTER FRAGMENT {slow}, 7 SET RATE_LIMIT = 9")
        run(client, f"ALTER FRAGMENT {slow}, {other} SET RATE_LIMIT TO DEFAULT")
        run(client, "WAIT")
        check(client, {"slow": query}, "created")
        [(table, *_)] = run(client, fragments.format("t"))
        [(view, *_)] = run(client, fragments.format("slow"))
        run(client, f"ALTER FRAGMENT {table} SET RATE_LIMIT = 100")
        run(client, f"ALTER FRAGMENT {view} SET PARALLELISM = 4")
        assert run(client, fragments.format("t")) == [(table, "inherit(bounded(4))", "DML", 100)]
        assert run(client, fragments.format("slow")) == [(view, "inherit(4)", None, None)]
