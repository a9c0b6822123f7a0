"""CREATE SINK: into tables and files, exactly once."""

from __future__ import annotations

import random
import threading
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb
import psycopg
import pytest
from servers import Server, refused, rows, wait_until
from test_law import as_bag, opened, run

from sparkwave.catalog.errors import Error
from sparkwave.executor.epochs import coordinator
from sparkwave.executor.sinks.outbox import Pace

Connection = psycopg.Connection[Any]


@pytest.fixture
def session(in_process_server: Server) -> Iterator[Connection]:
    """A session in a schema of its own, with tables t and u."""
    with in_process_server.connect() as own:
        own.execute("CREATE SCHEMA app")
        own.execute("SET search_path = app")
        own.execute("CREATE TABLE t (k int PRIMARY KEY, v int)")
        own.execute("INSERT INTO t VALUES (1, 10), (2, 20)")
        own.execute("CREATE TABLE u (k int PRIMARY KEY, v int, note varchar DEFAULT 'none')")
        yield own
        own.execute("RESET ALL")
        own.execute("DROP SCHEMA app CASCADE")


def plain(**options: str) -> dict[str, Any]:
    """Options as rw_sinks shows those that are not secret."""
    return {name: {"type": "plaintext", "value": value} for name, value in options.items()}


def flushed(connection: Connection, query: str) -> list[Any]:
    connection.execute("FLUSH")
    return sorted(rows(connection, query))


def kept_in(directory: Path, format_: str = "parquet", operations: bool = True) -> Counter[tuple[Any, ...]]:
    """The rows that a sink's files leave when they are applied in order; no row goes that is not there."""
    found: Counter[tuple[Any, ...]] = Counter()
    for file in sorted(directory.glob(f"sink-*.{format_}")):
        for operation, *row in duckdb.sql(f"FROM '{file}'").fetchall() if operations else []:
            found[tuple(row)] += 1 if operation == "insert" else -1
            assert found[tuple(row)] >= 0, (file, row)
        if not operations:
            found.update(duckdb.sql(f"FROM '{file}'").fetchall())
    return +found


@pytest.mark.long
def test_what_has_no_key_gets_another_name(session: Connection) -> None:
    """A sink goes on with the relation that it was made from, as in a swap without downtime."""
    session.execute("CREATE TABLE log (v int) APPEND ONLY")
    session.execute("CREATE MATERIALIZED VIEW m AS SELECT v FROM log")
    session.execute("CREATE MATERIALIZED VIEW other AS SELECT v, 1 AS one FROM log")
    session.execute("CREATE TABLE taken (v int)")
    session.execute(
        "CREATE SINK hole FROM m WITH (connector = 'blackhole', type = 'append-only', force_append_only = 'true')"
    )
    session.execute("CREATE SINK into_taken INTO taken FROM m WITH (type = 'append-only', force_append_only = 'true')")
    session.execute("ALTER MATERIALIZED VIEW m SWAP WITH other")
    session.execute("INSERT INTO log VALUES (1), (2)")
    assert flushed(session, "SELECT v FROM taken") == [(1,), (2,)]
    session.execute("ALTER MATERIALIZED VIEW other RENAME TO old")
    session.execute("INSERT INTO log VALUES (3)")
    assert flushed(session, "SELECT v FROM taken") == [(1,), (2,), (3,)]
    assert " FROM old " in rows(session, "SHOW CREATE SINK into_taken")[0][1]


# Into tables.


def test_into_a_table(session: Connection) -> None:
    session.execute("INSERT INTO u VALUES (2, 0, 'own'), (9, 9, 'own')")
    assert session.execute("CREATE SINK s INTO u FROM t").statusmessage == "CREATE SINK"
    assert flushed(session, "TABLE u") == [(1, 10, "none"), (2, 20, "none"), (9, 9, "own")]
    session.execute("UPDATE t SET v = v + 1")
    session.execute("DELETE FROM t WHERE k = 1")
    session.execute("INSERT INTO t VALUES (3, 30)")
    assert flushed(session, "TABLE u") == [(2, 21, "none"), (3, 30, "none"), (9, 9, "own")]
    session.execute("DROP SINK s")
    session.execute("DELETE FROM t")
    assert flushed(session, "SELECT k FROM u") == [(2,), (3,), (9,)]


def test_a_query_into_columns(session: Connection) -> None:
    session.execute("CREATE TABLE totals (note text, n bigint, total bigint, g int PRIMARY KEY, d double precision)")
    session.execute(
        "CREATE SINK s INTO totals (g, n, total) AS SELECT v % 3 AS g, count(*)::int, sum(v) FROM t GROUP BY v % 3"
    )
    session.execute("INSERT INTO t VALUES (3, 13), (4, 20)")
    assert flushed(session, "TABLE totals") == [(None, 2, 23, 1, None), (None, 2, 40, 2, None)]


@pytest.mark.long
def test_two_sinks_and_what_reads_their_table(session: Connection) -> None:
    """What one barrier writes to a table, the next one takes up; FLUSH waits for all of them."""
    session.execute("CREATE TABLE last (k int PRIMARY KEY, v int)")
    session.execute("CREATE TABLE other (k int PRIMARY KEY, v int)")
    session.execute("CREATE SINK a INTO u (k, v) FROM t")
    session.execute("CREATE SINK b INTO u (k, v) AS SELECT k, v FROM other")
    session.execute("CREATE MATERIALIZED VIEW sums AS SELECT sum(v) AS total FROM u")
    session.execute("CREATE SINK c INTO last AS SELECT k, v * 2 AS v FROM u")
    session.execute("CREATE MATERIALIZED VIEW of_last AS SELECT sum(v) AS total FROM last")
    for number in range(3):
        session.execute(f"INSERT INTO t VALUES (5, {number})")
        session.execute(f"INSERT INTO other VALUES (6, {number}), (7, 1)")
        total = 31 + 2 * number
        session.execute("FLUSH")
        assert rows(session, "TABLE of_last") == [(2 * total,)]
        assert rows(session, "TABLE sums") == [(total,)]
    error = refused(session, "CREATE SINK d INTO t FROM last")
    assert error.diag.message_primary == "Creating such a sink will result in circular dependency."


def test_append_only(session: Connection) -> None:
    session.execute("CREATE TABLE events (k int, v int) APPEND ONLY")
    session.execute("INSERT INTO events VALUES (1, 1), (1, 1)")
    session.execute("CREATE TABLE log (v int, k int)")
    session.execute("CREATE SINK s INTO log AS SELECT v + 1 AS v, k FROM events WHERE k > 0")
    session.execute("CREATE TABLE changes (k int, v int)")
    session.execute("CREATE SINK forced INTO changes FROM t WITH (type = 'append-only', force_append_only = 'true')")
    session.execute("INSERT INTO events VALUES (2, 2)")
    session.execute("UPDATE t SET v = 11 WHERE k = 1")
    session.execute("DELETE FROM t WHERE k = 2")
    assert flushed(session, "TABLE log") == [(2, 1), (2, 1), (3, 2)]
    assert flushed(session, "TABLE changes") == [(1, 10), (1, 11), (2, 20)]
    types = rows(session, "SELECT name, sink_type FROM rw_sinks ORDER BY 1")
    assert types == [("forced", "FORCE_APPEND_ONLY"), ("s", "APPEND_ONLY")]


@pytest.mark.long
def test_a_row_that_does_not_fit_fails_the_sink_alone(session: Connection) -> None:
    session.execute("CREATE TABLE strict (k int PRIMARY KEY, v int CONSTRAINT small CHECK (v < 100))")
    session.execute("CREATE SINK s INTO strict FROM t")
    session.execute("CREATE MATERIALIZED VIEW m AS SELECT count(*) AS n FROM t")
    session.execute("INSERT INTO t VALUES (3, 300)")
    assert wait_until(lambda: rows(session, "TABLE m") == [(3,)], 20)
    events = "SELECT info->>'error' FROM rw_catalog.rw_event_logs WHERE event_type = 'STREAM_JOB_FAIL'"
    reason = 'new row for relation "strict" violates check constraint "small"'
    assert wait_until(lambda: (reason,) in rows(session, events), 20)  # it is tried again before it has failed
    session.execute("INSERT INTO t VALUES (4, 4)")
    assert flushed(session, "TABLE m") == [(4,)]
    assert flushed(session, "TABLE strict") == [(1, 10), (2, 20)]
    assert refused(session, "CREATE SINK again INTO strict FROM t").sqlstate == "23514"


@pytest.mark.long
def test_writers_of_the_table_and_its_sink(session: Connection, in_process_server: Server) -> None:
    """Both write, neither fails, and each has its own rows in the end."""
    session.execute("CREATE SINK s INTO u (k, v) FROM t")
    failures: list[BaseException] = []

    def write() -> None:
        try:
            with in_process_server.connect() as own:
                for number in range(20):
                    own.execute(f"INSERT INTO app.u VALUES ({1000 + number % 7}, {number}, 'own')")
                    own.execute(f"DELETE FROM app.u WHERE k = {1000 + (number + 3) % 7}")
        except BaseException as error:
            failures.append(error)

    writer = threading.Thread(target=write)
    writer.start()
    for number in range(25):
        session.execute(f"INSERT INTO t VALUES ({number % 20}, {number})")
    writer.join(60)
    assert not failures and not writer.is_alive()
    assert flushed(session, "SELECT k, v FROM u WHERE k < 1000") == flushed(session, "TABLE t")
    assert len(rows(session, "SELECT k FROM u WHERE k >= 1000")) == 4


REFUSED = [
        ("CREATE SINK s FROM t", "42601", "sink properties not provided"),
        ("CREATE SINK s FROM t WITH (type = 'upsert')", "22023", "missing field 'connector'"),
        ("CREATE SINK s FROM t WITH (connector = 'kinesis')", "0A000", "unsupported sink connector: kinesis"),
        ("CREATE SINK s FROM t WITH (connector = 'blackhole', nope = 1)", "22023", "unexpected options"),
        ("CREATE SINK s FROM t WITH (connector = 'blackhole', type = 'debezium')", "22023", "`type` must be"),
        ("CREATE SINK s FROM t WITH (connector = 'blackhole', type = 'append-only')", "0A000", "cannot be append-only"),
        ("CREATE SINK s FROM t WITH (connector = 'fs')", "22023", "missing field 'fs.path'"),
        ("CREATE SINK s FROM t WITH (connector = 'fs', fs.path = 'a/b')", "22023", "not an absolute path"),
        ("CREATE SINK s FROM t WITH (connector = 'fs', fs.path = '/proc/no')", "58030", "could not create directory"),
        ("CREATE SINK s FROM t WITH (connector = 'posix_fs', posix_fs.root = '/x') FORMAT PLAIN ENCODE AVRO", "0A000",
         "sink encode unsupported: AVRO"),
        ("CREATE SINK s FROM t WITH (connector = 'blackhole') FORMAT PLAIN ENCODE JSON", "0A000", "not supported by"),
        ("CREATE SINK s FROM nope WITH (connector = 'blackhole')", "42P01", 'relation "nope" does not exist'),
        ("CREATE SINK s AS SELECT nope FROM t WITH (connector = 'blackhole')", "42703", 'column "nope" does not exist'),
        ("CREATE SINK s AS SELECT v + 1 FROM t WITH (connector = 'blackhole')", "42611", "An alias must be specified"),
        ("CREATE SINK s INTO nope FROM t", "42P01", "table \"nope\" does not exist"),
        ("CREATE SINK s INTO m FROM t", "42809", "cannot change materialized view"),
        ("CREATE SINK s INTO u FROM t WITH (connector = 'blackhole')", "22023", "a sink into a table has no connector"),
        ("CREATE SINK s INTO u (k, nope) FROM t", "42703", 'column "nope" of relation "u" does not exist'),
        ("CREATE SINK s INTO u (k, k) FROM t", "42701", "specified more than once"),
        ("CREATE SINK s INTO u (k) FROM t", "42601", "more expressions than target columns"),
        ("CREATE SINK s INTO u (v) AS SELECT v FROM t", "0A000", "the primary key of the table must be included"),
        ("CREATE SINK s INTO u (v) AS SELECT v FROM t WITH (type = 'append-only', force_append_only = true)", "0A000",
         'no value for the key column "k"'),
        ("CREATE SINK s INTO u (k, note) FROM t", "42804", "is of type character varying but the sink's is of type"),
        ("CREATE SINK s INTO plain FROM t", "0A000",
         "Only append-only sinks can sink to a table without primary keys."),
        ("CREATE SINK s INTO grows FROM t", "0A000", "Only append-only sinks can sink to a append only table."),
        ("CREATE SINK s INTO f FROM t", "42809", 'cannot change source "f"'),
        ("CREATE SINK s INTO made FROM t", "42601", "more expressions than target columns"),
        ("CREATE SINK s INTO made (k, g) FROM t", "428C9", 'cannot insert a non-DEFAULT value into column "g"'),
        ("CREATE SINK s INTO numbered FROM t", "428C9", 'cannot insert a non-DEFAULT value into column "k"'),
        ("CREATE SINK s INTO counted (v) AS SELECT v FROM t", "0A000", "default is the next number of a sequence"),
        ("CREATE SINK s INTO u (k, v) FROM t WITH (type = 'upsert', force_append_only = true)", "22023",
         "Cannot force the sink to be append-only without \"type='append-only'\"."),
        ("CREATE SINK s INTO u (k, v) FROM t WITH (ignore_delete = 'maybe')", "22023", "must be true or false"),
        ("CREATE SINK s INTO u (k, v) AS SELECT * FROM t WITH (snapshot = 'false')", "0A000",
         "`snapshot = false` only support `CREATE SINK FROM MV or TABLE`"),
        ("CREATE SINK s INTO u (k, v) FROM w WITH (snapshot = 'false')", "0A000", "`snapshot = false` only support"),
        ("CREATE SINK s FROM t WITH (connector = 'table')", "0A000", "unsupported sink type table"),
        ("CREATE SINK s INTO t FROM t", "0A000", "circular dependency"),
        ("DROP SINK nope", "42704", "sink \"nope\" does not exist"),
        ("SELECT * FROM there", "42P01", "relation \"there\" does not exist"),
        ("CREATE SINK there FROM t WITH (connector = 'blackhole')", "42P07", "relation \"there\" already exists"),
]  # fmt: skip


def test_refused(session: Connection) -> None:
    session.execute("CREATE MATERIALIZED VIEW m AS SELECT * FROM t")
    session.execute("CREATE TABLE plain (k int, v int)")
    session.execute("CREATE TABLE grows (k int PRIMARY KEY, v int) APPEND ONLY")
    session.execute("CREATE SINK there FROM t WITH (connector = 'blackhole')")
    session.execute("CREATE SOURCE f (k int, v int) WITH (connector = 'datagen')")
    session.execute("CREATE TABLE made (k int PRIMARY KEY, g int AS k + 1)")
    session.execute("CREATE TABLE numbered (k int GENERATED ALWAYS AS IDENTITY PRIMARY KEY, v int)")
    session.execute("CREATE TABLE counted (k serial PRIMARY KEY, v int)")
    session.execute("CREATE VIEW w AS SELECT * FROM t")
    for sql, sqlstate, message in REFUSED:
        error = refused(session, sql)
        assert (error.sqlstate, message in (error.diag.message_primary or "")) == (sqlstate, True), (sql, error)
    assert rows(session, "SHOW JOBS") == []


def test_several_rows_of_a_key(session: Connection) -> None:
    session.execute("CREATE SINK s INTO u (k) AS SELECT v % 10 FROM t")
    assert flushed(session, "SELECT k FROM u") == [(0,)]


def test_casts_that_lose_nothing(session: Connection) -> None:
    session.execute(
        "CREATE TABLE wide (k bigint PRIMARY KEY, r real, d double precision, n numeric, i interval, t text)"
    )
    session.execute(
        "CREATE SINK s INTO wide "
        "AS SELECT k, v, v::bigint AS w, v::smallint AS x, time '01:30' AS y, 'z'::varchar AS z FROM t"
    )
    session.execute("UPDATE t SET v = 21 WHERE k = 2")
    assert flushed(session, "SELECT k, r, d, n, i::varchar, t FROM wide") == [
        (1, 10.0, 10.0, 10, "01:30:00", "z"),
        (2, 21.0, 21.0, 21, "01:30:00", "z"),
    ]


def test_catalogs_and_names(session: Connection) -> None:
    session.execute("CREATE SINK s INTO u (k, v) AS SELECT k, v FROM t")
    session.execute("CREATE SINK IF NOT EXISTS b FROM t WITH (connector = 'blackhole', primary_key = 'k')")
    session.execute("CREATE SINK IF NOT EXISTS b FROM t WITH (connector = 'blackhole')")
    assert rows(session, "SHOW SINKS") == [("app.b",), ("app.s",)]
    found = rows(
        session, "SELECT name, connector, sink_type, target_table_name, connector_props FROM rw_sinks ORDER BY 1"
    )
    assert found == [
        ("b", "blackhole", "UPSERT", None, plain(connector="blackhole", primary_key="k")),
        ("s", "table", "UPSERT", "u", {}),
    ]
    session.execute("ALTER TABLE t RENAME TO source")
    session.execute("ALTER TABLE u RENAME TO target")
    session.execute("ALTER SINK b RENAME TO hole")
    session.execute("CREATE SCHEMA other")
    session.execute("ALTER SINK s SET SCHEMA other")
    assert rows(session, "SHOW CREATE SINK other.s")[0][1] == (
        "CREATE SINK s INTO app.target (k, v) AS SELECT k, v FROM app.source AS t"
    ), rows(session, "SHOW CREATE SINK other.s")
    assert rows(session, "SHOW CREATE SINK hole") == [
        ("app.hole", "CREATE SINK hole FROM source WITH (connector = 'blackhole', primary_key = 'k')")
    ]
    session.execute("INSERT INTO source VALUES (7, 70)")
    assert (7, 70) in flushed(session, "SELECT k, v FROM target")
    described = {name: type_ for name, type_, *_ in rows(session, "DESCRIBE other.s")}
    assert described["target table name"] == "target"
    assert rows(session, "SELECT relname FROM pg_class WHERE relname IN ('s', 'hole') AND relkind IS NOT NULL") == []
    session.execute("COMMENT ON SINK hole IS 'nothing comes out'")
    error = refused(session, "DROP TABLE target")
    assert (error.sqlstate, error.diag.message_detail) == ("2BP01", "sink other.s depends on it")
    session.execute("DROP TABLE target CASCADE")
    assert rows(session, "SELECT name FROM rw_sinks") == [("hole",)]
    session.execute("DROP SCHEMA other")


def test_a_creating_sink(session: Connection) -> None:
    session.execute("SET background_ddl = true")
    session.execute("CREATE SINK slow INTO u (k, v) FROM t WITH (backfill_rate_limit = 0)")
    assert [row[1:3] for row in rows(session, "SHOW JOBS")] == [
        ("CREATE SINK slow INTO u (k, v) FROM t WITH (backfill_rate_limit = 0)", "BACKGROUND")
    ]
    assert rows(session, "SELECT name FROM rw_sinks") == [] == rows(session, "TABLE u")
    session.execute("UPDATE t SET v = 0")
    session.execute("ALTER SINK slow SET BACKFILL_RATE_LIMIT = DEFAULT")
    session.execute("WAIT SINK slow")
    assert flushed(session, "SELECT k, v FROM u") == [(1, 0), (2, 0)]
    session.execute("CREATE SINK gone INTO u (k, v) FROM t WITH (backfill_rate_limit = 0)")
    session.execute("DROP SINK gone")
    assert rows(session, "SHOW JOBS") == []


def test_rate_limits(session: Connection) -> None:
    """Of sinks that no barrier waits for; rw_rate_limit shows them."""
    limits = (
        "SELECT s.name, l.node_name, l.rate_limit FROM rw_rate_limit l JOIN rw_sinks s ON s.id = l.table_id ORDER BY 1"
    )
    session.execute("SET search_path = app, rw_catalog")
    hole = "WITH (connector = 'blackhole'"
    session.execute(f"CREATE SINK a FROM t {hole})")
    session.execute(f"CREATE SINK b FROM t {hole}, sink_rate_limit = 9)")
    session.execute("SET sink_rate_limit = 7")
    session.execute(f"CREATE SINK c FROM t {hole})")
    session.execute("CREATE SINK d INTO u (k, v) FROM t")
    assert rows(session, limits) == [("b", "SINK", 9), ("c", "SINK", 7)]
    session.execute("ALTER SINK a SET SINK_RATE_LIMIT TO 0")
    session.execute("ALTER SINK b SET SINK_RATE_LIMIT = DEFAULT")
    session.execute("ALTER SINK c SET SINK_RATE_LIMIT = -1")
    assert rows(session, limits) == [("a", "SINK", 0)]
    session.execute("SET sink_decouple = false")
    session.execute(f"CREATE SINK e FROM t {hole})")
    for sql in (
        "ALTER SINK d SET SINK_RATE_LIMIT = 1",
        "ALTER SINK e SET SINK_RATE_LIMIT = 0",
        "CREATE SINK f INTO u (k, v) FROM t WITH (sink_rate_limit = 1)",
    ):
        error = refused(session, sql)
        assert error.sqlstate == "0A000"
        assert (error.diag.message_primary or "").startswith("sink rate limit is only supported for kv log store")
    for sql in ("ALTER SINK a SET SINK_RATE_LIMIT = x", f"CREATE SINK f FROM t {hole}, sink_rate_limit = x)"):
        assert refused(session, sql).sqlstate == "22023"
    assert refused(session, "ALTER INDEX i SET SINK_RATE_LIMIT = 1").sqlstate == "0A000"
    session.execute("ALTER SINK a SET PARALLELISM = 3")
    assert rows(session, "SELECT parallelism FROM rw_streaming_parallelism WHERE name = 'a'") == [("3",)]


def test_a_pace() -> None:
    """Over any time, at most the limit, a second's worth more, and one epoch more."""
    number, now = random.Random(2), 0.0
    pace = Pace(clock=lambda: now)
    for limit in (10, 3, 7):
        began, sent, largest = now, 0, 0
        for _ in range(500):
            now += number.choice((0.0, 0.1, 1.0))
            if pace.allows(limit):
                rows_ = number.randrange(1, 40)
                pace.spend(rows_)
                sent, largest = sent + rows_, max(largest, rows_)
        assert limit * (now - began) - largest <= sent <= limit * (now - began + 1) + 2 * largest
    assert not pace.allows(0)
    now += 1000.0
    assert not pace.allows(0)
    assert pace.allows(None)


def test_serverless(session: Connection) -> None:
    """What takes part in serverless backfill says so, by its option and by the variable (reference §1.4)."""
    for what, given, query in (
        ("SINK s FROM t", "connector = 'blackhole'", ""),
        ("INDEX i ON t (v)", "", ""),
        ("MATERIALIZED VIEW m", "", " AS SELECT * FROM t"),
    ):
        options = ", ".join(part for part in (given, "cloud.serverless_backfill_enabled = true") if part)
        error = refused(session, f"CREATE {what} WITH ({options}){query}")
        assert (error.diag.message_primary or "").startswith("Serverless Backfill is disabled")
        session.execute("SET enable_serverless_backfill = true")
        assert refused(session, f"CREATE {what} {f'WITH ({given})' if given else ''}{query}").sqlstate == "22023"
        session.execute("RESET enable_serverless_backfill")


# Files.


@pytest.mark.parametrize("format_", ["parquet", "json", "csv"])
def test_files_of_changes(session: Connection, tmp_path: Path, format_: str) -> None:
    directory = tmp_path / "out"
    session.execute(
        f"CREATE SINK s FROM t WITH (connector = 'posix_fs', posix_fs.root = '{directory}') "
        f"FORMAT UPSERT ENCODE {format_.upper()}"
    )
    assert kept_in(directory, format_) == Counter([(1, 10), (2, 20)])
    session.execute("UPDATE t SET v = 21 WHERE k = 2")
    session.execute("FLUSH")
    session.execute("INSERT INTO t VALUES (3, NULL)")
    session.execute("DELETE FROM t WHERE k = 1")
    session.execute("FLUSH")
    assert kept_in(directory, format_) == Counter([(2, 21), (3, None)])
    assert len(list(directory.iterdir())) >= 3
    session.execute("DROP SINK s")
    assert kept_in(directory, format_) == Counter([(2, 21), (3, None)])


def test_append_only_files(session: Connection, tmp_path: Path) -> None:
    session.execute(
        f"CREATE SINK s AS SELECT k, v FROM t WITH (connector = 'fs', fs.path = '{tmp_path}', "
        "type = 'append-only', force_append_only = true)"
    )
    session.execute("UPDATE t SET v = 21 WHERE k = 2")
    session.execute("FLUSH")
    assert kept_in(tmp_path, operations=False) == Counter([(1, 10), (2, 20), (2, 21)])


def test_files_without_deletes_or_earlier_rows(session: Connection, tmp_path: Path) -> None:
    given = f"connector = 'fs', fs.path = '{tmp_path}', snapshot = 'false', ignore_delete = 'true'"
    session.execute(f"CREATE SINK s FROM t WITH ({given})")
    session.execute("INSERT INTO t VALUES (3, 30)")
    session.execute("DELETE FROM t WHERE k = 1")
    session.execute("FLUSH")
    session.execute("UPDATE t SET v = 21 WHERE k = 2")
    session.execute("FLUSH")
    assert kept_in(tmp_path) == Counter([(3, 30), (2, 21)])


def test_who_may_write_files(session: Connection, in_process_server: Server, tmp_path: Path) -> None:
    session.execute("CREATE USER writer")
    session.execute("GRANT ALL ON SCHEMA app TO writer")
    session.execute("GRANT SELECT ON t TO writer")
    with in_process_server.connect(user="writer") as own:
        own.execute("SET search_path = app")
        error = refused(own, f"CREATE SINK s FROM t WITH (connector = 'fs', fs.path = '{tmp_path}')")
        assert error.sqlstate == "42501"
        assert refused(own, "CREATE SINK s INTO u (k, v) FROM t").sqlstate == "42501"
        own.execute("CREATE SINK s FROM t WITH (connector = 'blackhole')")
        own.execute("DROP SINK s")
    session.execute("REVOKE ALL ON t FROM writer")
    session.execute("REVOKE ALL ON SCHEMA app FROM writer")
    session.execute("DROP USER writer")
    data = in_process_server.data / "sinks"
    assert refused(session, f"CREATE SINK s FROM t WITH (connector = 'fs', fs.path = '{data}')").sqlstate == "22023"


def test_an_epoch_that_fails_leaves_no_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its file goes before the next one comes, or when the server starts again."""
    out = tmp_path / "out"
    parameters = {"streaming_engine": "duckdb", "backfill_engine": "auto"}
    with opened(tmp_path / "lake", **parameters) as (context, client):
        run(client, "CREATE TABLE t (k int PRIMARY KEY, v int)")
        run(client, "INSERT INTO t VALUES (1, 1)")
        run(client, f"CREATE SINK s FROM t WITH (connector = 'fs', fs.path = '{out}')")
        run(client, "INSERT INTO t VALUES (2, 2)")
        with monkeypatch.context() as patched:
            patched.setattr(coordinator, "store_epoch", _fail)
            with pytest.raises(Error, match="power failure"):
                context.coordinator.barrier()
            assert kept_in(out) == Counter([(1, 1), (2, 2)])  # written, and not committed
            run(client, "DELETE FROM t WHERE k = 2")
        context.coordinator.flush(lambda: False)
        assert kept_in(out) == Counter([(1, 1)])
        run(client, "INSERT INTO t VALUES (3, 3)")
        with monkeypatch.context() as patched:
            patched.setattr(coordinator, "store_epoch", _fail)
            with pytest.raises(Error, match="power failure"):
                context.coordinator.barrier()
        run(client, "DELETE FROM t WHERE k = 3")
    with opened(tmp_path / "lake", **parameters) as (context, client):
        context.coordinator.flush(lambda: False)
        assert kept_in(out) == Counter([(1, 1)])


def _fail(*_: object) -> None:
    raise Error("power failure")


@pytest.mark.long
def test_law(tmp_path: Path) -> None:
    """After any changes a table has what its sink's query has, and so do the files of another."""
    number, out = random.Random(11), tmp_path / "out"
    query = "SELECT a, count(*) AS n, max(v) AS most, sum(t.v) AS total FROM t JOIN g ON g.k = t.g GROUP BY a"
    top = "SELECT g, k, v FROM (SELECT *, row_number() OVER (PARTITION BY g ORDER BY v, k) AS r FROM t) x WHERE r <= 2"
    with opened(tmp_path / "lake", streaming_engine="duckdb", backfill_engine="auto") as (context, client):
        run(client, "CREATE TABLE t (k int PRIMARY KEY, g int, v int)")
        run(client, "CREATE TABLE g (k int PRIMARY KEY, a int)")
        run(client, "INSERT INTO g SELECT i, i % 3 FROM range(6) AS r(i)")
        run(client, "INSERT INTO t SELECT i, i % 6, i * 7 % 10 FROM range(40) AS r(i)")
        run(client, "CREATE TABLE target (a int PRIMARY KEY, n bigint, most int, total bigint)")
        run(client, "CREATE TABLE first (g int, k int PRIMARY KEY, v int)")
        run(client, f"CREATE SINK s INTO target AS {query}")
        run(client, f"CREATE SINK f INTO first AS {top}")
        run(client, f"CREATE SINK files AS {query} WITH (connector = 'fs', fs.path = '{out}')")
        for epoch in range(5):
            for _ in range(number.randint(1, 5)):
                k, g, v = number.randrange(60), number.randrange(6), number.randrange(10)
                run(
                    client,
                    number.choice(
                        (
                            f"INSERT INTO t VALUES ({k}, {g}, {v})",
                            f"UPDATE t SET v = {v} WHERE k % 7 = {k % 7}",
                            f"UPDATE g SET a = {v % 4} WHERE k = {g}",
                            f"DELETE FROM t WHERE k % 9 = {k % 9}",
                        )
                    ),
                )
            context.coordinator.flush(lambda: False)
            expected = as_bag(run(client, query))
            assert as_bag(run(client, "TABLE target")) == expected, epoch
            assert as_bag(run(client, "TABLE first")) == as_bag(run(client, top)), epoch
            assert as_bag(list(kept_in(out).elements())) == expected, epoch


@pytest.mark.spark
@pytest.mark.long
def test_on_spark(shared_server: Server, tmp_path: Path) -> None:
    """Filled on Spark in slices, and epochs on Spark."""
    with shared_server.connect() as own:
        own.execute("CREATE TABLE spark_t (k int PRIMARY KEY, v int)")
        own.execute("INSERT INTO spark_t SELECT i, i % 10 FROM range(1000) AS r(i)")
        own.execute("CREATE TABLE spark_u (v int PRIMARY KEY, n bigint)")
        own.execute("ALTER SYSTEM SET backfill_slice_rows = 400")
        own.execute("CREATE SINK spark_s INTO spark_u AS SELECT v, count(*) FROM spark_t GROUP BY v")
        own.execute("CREATE TABLE spark_w (v int PRIMARY KEY, k int)")
        own.execute("CREATE SINK spark_m INTO spark_w AS SELECT v, k FROM spark_t")
        assert rows(own, "SELECT v, k FROM spark_w ORDER BY v") == [(v, 990 + v) for v in range(10)]
        own.execute(f"CREATE SINK spark_f FROM spark_t WITH (connector = 'fs', fs.path = '{tmp_path}')")
        own.execute("ALTER SYSTEM SET backfill_slice_rows = DEFAULT")
        assert rows(own, "SELECT count(*), sum(n) FROM spark_u") == [(10, 1000)]
        own.execute("ALTER SYSTEM SET streaming_engine = spark")
        own.execute("DELETE FROM spark_t WHERE k < 5")
        own.execute("FLUSH")
        own.execute("ALTER SYSTEM SET streaming_engine = DEFAULT")
        assert rows(own, "SELECT n FROM spark_u WHERE v IN (4, 5) ORDER BY v") == [(99,), (100,)]
        assert rows(own, "SELECT v, k FROM spark_w ORDER BY v") == [(v, 990 + v) for v in range(5, 10)]
        assert kept_in(tmp_path) == Counter({(k, k % 10): 1 for k in range(5, 1000)})
        own.execute("DROP TABLE spark_t CASCADE")
        own.execute("DROP TABLE spark_u")
        own.execute("DROP TABLE spark_w")


@pytest.mark.long
@pytest.mark.timeout(600)
def test_files_survive_kill(tmp_path: Path) -> None:
    """kill -9 at any moment: no change is missing from the files, and none is there twice."""
    out, data, number = tmp_path / "out", tmp_path / "data", random.Random(3)
    server = Server(data)
    with server.connect() as own:
        own.execute("ALTER SYSTEM SET backfill_engine = auto")
        own.execute("ALTER SYSTEM SET barrier_interval_ms = 50")
        own.execute("CREATE TABLE t (k int PRIMARY KEY, v int)")
        own.execute("CREATE TABLE u (k int PRIMARY KEY, v int)")
        own.execute(f"CREATE SINK s FROM t WITH (connector = 'fs', fs.path = '{out}')")
        own.execute("CREATE SINK into_u INTO u FROM t")
    for round_ in range(5):
        killer = threading.Timer(number.uniform(0.2, 2.0), server.kill)
        killer.start()
        with pytest.raises(psycopg.OperationalError), server.connect() as own:
            for step in range(100_000):
                k = number.randrange(30)
                own.execute(f"INSERT INTO t VALUES ({k}, {round_ * 100_000 + step})")
                own.execute(f"DELETE FROM t WHERE k = {(k + 11) % 30}")
        killer.join()
        server = Server(data)
        with server.connect() as own:
            own.execute("FLUSH")
            expected = Counter(rows(own, "TABLE t"))
            assert kept_in(out) == expected, round_
            assert Counter(rows(own, "TABLE u")) == expected, round_
    server.kill()
