"""Views over little data: stored together with their rows by one commit, or else by a job."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import duckdb
import pytest
from servers import PATIENCE_SECONDS, Server, wait_until
from test_law import check, opened, run, without_epochs

from sparkwave.catalog.errors import Error
from sparkwave.catalog.lake.ducklake import Cursor
from sparkwave.catalog.lake.leftovers import forget_leftovers
from sparkwave.catalog.lake.schema_gate import GatedCursor
from sparkwave.catalog.model import CREATED, Epoch
from sparkwave.catalog.stores.compute_errors import compute_errors
from sparkwave.catalog.stores.relation_store import drop_relation
from sparkwave.catalog.stores.store import Store
from sparkwave.executor.backfill import at_once
from sparkwave.executor.epochs import duckdb_engine
from sparkwave.executor.spark import kernel
from sparkwave.executor.spark.kernel import File, Step
from sparkwave.server.context import Context
from sparkwave.server.dispatch import Client

GROUPS = "SELECT g, count(*) AS n, sum(100 / nullif(k - 7, 0)) AS d FROM t GROUP BY g"
NESTED = f"SELECT n, count(*) AS c, sum(d) AS d FROM ({GROUPS}) AS s GROUP BY n"
STEPS = "SELECT job_id FROM lake.sparkwave.positions"


@pytest.fixture(scope="module")
def opened_once(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Context, Client]]:
    directory = tmp_path_factory.mktemp("at_once") / "lake"
    with opened(directory, backfill_engine="auto", streaming_engine="duckdb") as (context, client):
        run(client, "CREATE TABLE t (k int PRIMARY KEY, g int)")
        run(client, "INSERT INTO t SELECT i, i % 20 FROM range(1000) AS x (i)")
        yield context, client


@pytest.fixture
def parts(opened_once: tuple[Context, Client], monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[Context, Client]]:
    for limit in ("at_once.MOMENT_S", "at_once.MOMENT_ON_SPARK_S", "at_once.PATIENCE_S", "one_commit.PATIENCE_S"):
        monkeypatch.setattr(f"sparkwave.executor.backfill.{limit}", 20.0)  # however busy the machine is
    yield opened_once
    context, client = opened_once
    names = [relation.name for relation in context.store.catalog.relations if not relation.is_table]
    run(client, f"DROP MATERIALIZED VIEW IF EXISTS {', '.join(reversed(names))}" if names else "SELECT 1")


def number(context: Context, name: str) -> int:
    [found] = [relation.id for relation in context.store.catalog.relations if relation.name == name]
    return found


def has_steps(context: Context, name: str) -> bool:
    """Whether a job has filled it."""
    return (number(context, name),) in context.lake.cursor().execute(STEPS).fetchall()


def test_one_commit(parts: tuple[Context, Client]) -> None:
    """The view, the states of its operators, its rows and the ones that failed, its job."""
    context, client = parts
    for name, query in (("v", NESTED), ("above", "SELECT c, count(*) AS n FROM v GROUP BY c")):
        before = context.lake.commits
        failing = query.replace("nullif(k - 7, 0)", "(k - 7)")
        run(client, f"CREATE MATERIALIZED VIEW {name} AS {failing}")
        assert context.lake.commits == before + 1
        check(client, {name: query}, "created")
    assert run(client, "SELECT count(*) FROM rw_catalog.rw_ddl_progress") == [(0,)]
    found = compute_errors(context.lake.cursor(), number(context, "v"))
    assert [errors.rows for errors, _ in found.values()] == [1]
    before = context.lake.commits
    run(client, "DROP MATERIALIZED VIEW above")
    assert context.lake.commits == before + 1


def test_an_index(parts: tuple[Context, Client]) -> None:
    context, client = parts
    before = context.lake.commits
    run(client, "CREATE INDEX i ON t (g)")
    assert context.lake.commits == before + 1
    assert len(run(client, "SELECT * FROM i WHERE g = 3")) == 50
    run(client, "DROP INDEX i")


@pytest.mark.long
def test_rows_that_come_meanwhile(parts: tuple[Context, Client]) -> None:
    """Writers go on, and barriers too, while views over a table and over views are created."""
    context, client = parts
    writer, is_over = Client(context, {"user": "root"}), threading.Event()

    def write() -> None:
        row = 10_000
        while not is_over.is_set():
            run(writer, f"INSERT INTO t VALUES ({row}, {row % 20})")
            run(writer, f"UPDATE t SET g = g + 1 WHERE k = {row - 3}")
            run(writer, f"DELETE FROM t WHERE k = {row - 5}")
            context.coordinator.notify()
            row += 1

    thread = threading.Thread(target=write)
    thread.start()
    queries = {}
    try:
        for round_ in range(3):
            queries[f"groups{round_}"] = GROUPS
            queries[f"keys{round_}"] = "SELECT k, g FROM t WHERE k >= 10000"
            queries[f"above{round_}"] = f"SELECT n, count(*) AS c FROM groups{round_} GROUP BY n"
            for name in list(queries)[-3:]:
                run(client, f"CREATE MATERIALIZED VIEW {name} AS {queries[name]}")
    finally:
        is_over.set()
        thread.join()
    context.coordinator.flush(lambda: False)
    check(client, queries, "written to meanwhile")


def test_what_is_inserted_before_is_there(parts: tuple[Context, Client]) -> None:
    """Though no barrier has taken it up."""
    context, client = parts
    run(client, f"CREATE MATERIALIZED VIEW v AS {GROUPS}")
    for row in range(20_000, 20_003):
        run(client, f"INSERT INTO t VALUES ({row}, 3)")
        query = f"SELECT k FROM t WHERE k >= 20000 AND g < {row}"
        run(client, f"CREATE MATERIALIZED VIEW w{row} AS {query}")
        assert not has_steps(context, f"w{row}")
        check(client, {f"w{row}": query}, "created")
    context.coordinator.flush(lambda: False)
    check(client, {"v": GROUPS, "w20000": query}, "later")


def test_what_it_reads_is_as_old_as_the_epoch(parts: tuple[Context, Client], caplog: pytest.LogCaptureFixture) -> None:
    """The next barrier goes on from there: no view is left behind since its table had not been made then."""
    context, client = parts
    run(client, "CREATE TABLE u (k int PRIMARY KEY)")
    for name in ("v", "w"):
        run(client, f"CREATE MATERIALIZED VIEW {name} AS SELECT k, sum(k) OVER (ORDER BY k) AS s FROM u")
    run(client, "INSERT INTO u VALUES (1), (2)")
    context.coordinator.flush(lambda: False)
    assert run(client, "SELECT v.s, w.s FROM v JOIN w ON v.k = w.k ORDER BY 1") == [(1, 1), (3, 3)]
    assert not caplog.records
    run(client, "DROP TABLE u CASCADE")


@pytest.mark.parametrize("late", ["time", "rows", "barrier"])
def test_what_takes_longer_is_a_job(parts: tuple[Context, Client], monkeypatch: pytest.MonkeyPatch, late: str) -> None:
    """A fill, rows to be stored, or a barrier in the way."""
    context, client = parts
    query = GROUPS
    if late == "time":
        monkeypatch.setattr(at_once, "MOMENT_S", 0.05)
        query = (
            "SELECT a.g, count(*) AS n FROM t a JOIN t b ON a.g <> b.g OR a.k <> b.k JOIN t c ON c.k < 60 GROUP BY a.g"
        )
    elif late == "rows":
        monkeypatch.setattr(at_once, "MOST_ROWS", 19)
    else:
        monkeypatch.setattr(at_once, "PATIENCE_S", 0.05)
    creating = threading.Thread(target=run, args=(client, f"CREATE MATERIALIZED VIEW v AS {query}"))
    with without_epochs(context) as none:
        if late != "barrier":
            none.end()
        creating.start()
        if late == "barrier":  # which the job's end needs
            assert wait_until(lambda: any(not r.created for r in context.store.catalog.relations), PATIENCE_SECONDS)
    creating.join(PATIENCE_SECONDS)
    assert has_steps(context, "v")
    check(client, {"v": query}, late)


def test_a_commit_that_fails(parts: tuple[Context, Client], monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is there, and a job creates the view; nor is anything there of a view that nothing creates."""
    context, client = parts
    store_epoch = at_once.store_epoch
    error: BaseException = duckdb.IOException("not now")

    def fail(cursor: Cursor, epoch: Epoch) -> None:
        monkeypatch.setattr(at_once, "store_epoch", store_epoch)
        raise error

    monkeypatch.setattr(at_once, "store_epoch", fail)
    run(client, f"CREATE MATERIALIZED VIEW v AS {GROUPS}")
    assert has_steps(context, "v")
    check(client, {"v": GROUPS}, "after an error")
    error = Error("the server ends")
    monkeypatch.setattr(at_once, "store_epoch", fail)
    with pytest.raises(Error, match="ends"):
        run(client, f"CREATE MATERIALIZED VIEW w AS {GROUPS}")
    assert [r.name for r in context.store.catalog.relations] == ["t", "v"]
    run(client, f"CREATE MATERIALIZED VIEW w AS {GROUPS}")
    check(client, {"w": GROUPS}, "after another")
    with pytest.raises(Error, match="already exists"):
        run(client, f"CREATE MATERIALIZED VIEW w AS {GROUPS}")


def test_rows_are_stored_once(parts: tuple[Context, Client], monkeypatch: pytest.MonkeyPatch) -> None:
    """By a job too whose commit, of the rows and the end, seems to have failed and has not."""
    context, client = parts
    reload, failed = Store.reload, []

    def fail(store: Store) -> None:
        if threading.current_thread().name.startswith("job-") and not failed:
            failed.append(len(context.store.catalog.relations))
            raise duckdb.IOException("not now")
        reload(store)

    monkeypatch.setattr(Store, "reload", fail)
    run(client, "SET background_ddl = true")
    before = context.lake.commits
    run(client, "CREATE MATERIALIZED VIEW v AS SELECT g FROM t WHERE k < 30")
    run(client, "WAIT")
    run(client, "SET background_ddl = false")
    assert failed
    assert context.lake.commits >= before + 2
    assert run(client, "SELECT count(*) FROM v") == [(30,)]
    # The job still thinks that it has failed.
    run(client, "DROP MATERIALIZED VIEW v")
    run(client, "CREATE MATERIALIZED VIEW v AS SELECT g FROM t WHERE k < 40")
    assert wait_until(lambda: not any(thread.name.startswith("job-") for thread in threading.enumerate()))
    assert run(client, "SELECT count(*) FROM v") == [(40,)]


def test_a_drop_is_few_statements(parts: tuple[Context, Client]) -> None:
    """It deletes what is there; what a job has noted goes later."""
    context, client = parts
    run(client, "SET background_ddl = true")
    run(client, f"CREATE MATERIALIZED VIEW v AS {NESTED}")
    run(client, "WAIT")
    run(client, "SET background_ddl = false")
    run(client, "COMMENT ON MATERIALIZED VIEW v IS 'said'")
    run(client, f"CREATE MATERIALIZED VIEW w AS {GROUPS}")
    executed: list[str] = []

    class Recording:
        def __init__(self, cursor: Cursor) -> None:
            self._cursor = cursor

        def execute(self, query: str, *rest: object) -> Cursor:
            executed.append(query)
            return self._cursor.execute(query, *rest)

    for name, most in (("w", 3), ("v", 6)):
        relation = context.store.catalog.by_id[number(context, name)]
        executed.clear()
        with context.store.change() as cursor:
            drop_relation(context.store, Recording(cursor), relation)  # type: ignore[arg-type]
        assert len(executed) <= most, executed
    cursor = context.lake.cursor()
    left = ("states", "columns", "comments", "jobs", "relations", "compute_errors", "positions", "finished_slices")
    with context.lake.transaction(cursor):
        forget_leftovers(cursor)
    for table in left:
        column = {"columns": "relation_id", "comments": "object_id", "compute_errors": "relation_id"}
        column |= {"jobs": "id", "relations": "id"}
        query = f"SELECT count(*) FROM lake.sparkwave.{table} WHERE {column.get(table, 'job_id')} = {relation.id}"
        assert cursor.execute(query).fetchall() == [(0,)], table
    for table in ("epoch", "identifiers"):
        assert cursor.execute(f"FROM (SELECT DISTINCT * FROM lake.sparkwave.{table})").fetchall()[1:] == []


def test_a_drop_of_many_deletes_once(parts: tuple[Context, Client], monkeypatch: pytest.MonkeyPatch) -> None:
    """DROP SCHEMA … CASCADE deletes from each system table once, however many relations go."""
    context, client = parts
    executed: list[str] = []
    execute = GatedCursor.execute

    def recording(self: GatedCursor, query: object, parameters: object = None) -> Cursor:
        executed.append(str(query))
        return execute(self, query, parameters)

    monkeypatch.setattr(GatedCursor, "execute", recording)
    counts = []
    for tables in (1, 4):
        run(client, "CREATE SCHEMA many")
        for place in range(tables):
            run(client, f"CREATE TABLE many.t{place} (k int PRIMARY KEY)")
            run(client, f"COMMENT ON TABLE many.t{place} IS 'said'")
        run(client, "CREATE MATERIALIZED VIEW many.v AS SELECT k FROM many.t0")
        executed.clear()
        run(client, "DROP SCHEMA many CASCADE")
        counts.append(sum(query.startswith("DELETE FROM lake.sparkwave.") for query in executed))
    assert counts[0] == counts[1] > 0
    cursor = context.lake.cursor()
    with context.lake.transaction(cursor):
        forget_leftovers(cursor)
    for table in ("relations", "columns", "jobs", "comments"):
        column = {"columns": "relation_id", "comments": "object_id"}.get(table, "id")
        left = {id_ for (id_,) in cursor.execute(f"SELECT {column} FROM lake.sparkwave.{table}").fetchall()}
        assert left <= context.store.catalog.by_id.keys(), table


def test_a_kill_right_after(tmp_path: Path) -> None:
    """What has been answered is there, counts every row once, and goes on; ids are new ones."""
    server = Server(tmp_path / "data")
    query = "SELECT g, count(*) AS n FROM u GROUP BY g ORDER BY g"
    try:
        with server.connect() as connection:
            connection.execute("ALTER SYSTEM SET barrier_interval_ms = 3600000")
            connection.execute("CREATE TABLE t (k int PRIMARY KEY)")
            connection.execute("CREATE MATERIALIZED VIEW first AS SELECT count(*) AS n FROM t")
            connection.execute("CREATE TABLE u (k int PRIMARY KEY, g int)")
            for row in range(5):  # which no created view reads, so that no epoch is stored
                connection.execute(f"INSERT INTO u VALUES ({row}, {row % 2})")
            connection.execute(f"CREATE MATERIALIZED VIEW made AS {query}")
            connection.execute("CREATE MATERIALIZED VIEW gone AS SELECT count(*) AS n FROM u")
            ids = connection.execute("SELECT oid FROM pg_class WHERE relname = 'gone'").fetchall()
            connection.execute("DROP MATERIALIZED VIEW gone")
        server.kill()
        server = Server(tmp_path / "data")
        with server.connect() as connection:
            assert connection.execute("SELECT * FROM made ORDER BY g").fetchall() == [(0, 3), (1, 2)]
            connection.execute("INSERT INTO u VALUES (5, 1), (6, 0)")
            connection.execute("CREATE MATERIALIZED VIEW last AS SELECT count(*) AS n FROM u")
            connection.execute("FLUSH")
            assert connection.execute("SELECT * FROM made ORDER BY g").fetchall() == [(0, 4), (1, 3)]
            assert connection.execute("SELECT * FROM last").fetchall() == [(7,)]
            new = connection.execute("SELECT oid FROM pg_class WHERE relname = 'last'").fetchall()
            assert new > ids
    finally:
        server.kill()


def test_a_created_job_is_as_any_other(parts: tuple[Context, Client]) -> None:
    context, client = parts
    run(client, f"CREATE MATERIALIZED VIEW v AS {GROUPS}")
    run(client, "SET background_ddl = true")
    run(client, f"CREATE MATERIALIZED VIEW w AS {GROUPS}")
    run(client, "WAIT")
    run(client, "SET background_ddl = false")
    made, filled = (context.store.catalog.job_by_id[number(context, name)] for name in ("v", "w"))
    assert (made.status, made.snapshot, made.resource_group) == (CREATED, None, filled.resource_group)
    query = "SELECT created_at IS NOT NULL, definition FROM rw_catalog.rw_materialized_views WHERE name IN ('v', 'w')"
    assert {row[0] for row in run(client, query)} == {True}


def test_others_write_while_a_job_stores_many_rows(
    parts: tuple[Context, Client], monkeypatch: pytest.MonkeyPatch
) -> None:
    """They are written into files before the commit, for which all writers wait. Types that files lack keep values."""
    context, client = parts
    values = "i::numeric(30,10) / 7 AS d, i * interval '1 hour' AS v, ARRAY[i, NULL] AS a, to_jsonb(i) AS j"
    texts = "nullif('Größe ' || i, 'Größe 9') AS s"
    run(client, f"CREATE TABLE many AS SELECT i AS k, {texts}, {values} FROM range(120000) AS x (i)")
    other, written = Client(context, {"user": "root"}), []

    def write(cursor: Cursor, step: Step) -> list[File]:
        written.append(step.name)
        found = kernel.write(cursor, step)
        waiting = threading.Thread(target=run, args=(other, "INSERT INTO t VALUES (5000, 5)"))
        waiting.start()
        waiting.join(PATIENCE_SECONDS)
        assert not waiting.is_alive()
        return found

    monkeypatch.setattr(duckdb_engine, "write", write)
    query = "SELECT k, s, d, v, a, j, count(*) AS n FROM many GROUP BY k, s, d, v, a, j"
    run(client, f"CREATE MATERIALIZED VIEW copied AS {query}")
    assert written and has_steps(context, "copied")
    assert run(client, "SELECT count(*) FROM t WHERE k = 5000") == [(1,)]
    run(client, "UPDATE many SET s = 'x' WHERE k < 3")
    run(client, "FLUSH")
    differing = f"(({query}) EXCEPT ALL SELECT * FROM copied) UNION ALL (SELECT * FROM copied EXCEPT ALL ({query}))"
    assert run(client, differing) == []
    run(client, "DROP TABLE many CASCADE")
    run(client, "DELETE FROM t WHERE k = 5000")
