"""ALTER MATERIALIZED VIEW … AS: another query for a view that runs."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest
from servers import Server
from test_law import opened, run

from sparkwave.catalog.errors import Error
from sparkwave.server.dispatch import Client
from sparkwave.server.statements import streaming_jobs
from sparkwave.server.statements.planned_jobs import PlannedJob

Connection = psycopg.Connection[Any]


@pytest.fixture
def db(in_process_server: Server) -> Iterator[Connection]:
    """A schema of the test's own."""
    with in_process_server.connect() as opened:
        name = f"s{time.time_ns()}"
        opened.execute(f"CREATE SCHEMA {name}")
        opened.execute(f"SET search_path = {name}")
        opened.execute("CREATE TABLE t (k int PRIMARY KEY, g int, v int)")
        opened.execute("INSERT INTO t SELECT i, i % 7, i * 3 FROM range(100) AS r(i)")
        yield opened


def rows(db: Connection, sql: str) -> list[tuple[Any, ...]]:
    return sorted(db.execute(sql).fetchall(), key=repr)


def check(db: Connection, view: str, query: str) -> None:
    """The law: a view has the rows of its query."""
    db.execute("FLUSH")
    assert rows(db, f"SELECT * FROM {view}") == rows(db, query)


def change(db: Connection) -> None:
    db.execute("INSERT INTO t VALUES (1, 2, 3000), (1000, 3, 17), (1001, 9, NULL)")
    db.execute("UPDATE t SET g = g + 1 WHERE k % 5 = 0")
    db.execute("DELETE FROM t WHERE k % 11 = 0")


def refused(db: Connection, sql: str) -> psycopg.Error:
    with pytest.raises(psycopg.Error) as caught:
        db.execute(sql)
    return caught.value


QUERIES = (
    "SELECT g, count(*) AS n FROM t GROUP BY g",
    "SELECT g, count(*) AS n FROM t WHERE v > 60 GROUP BY g",
    "SELECT a.g, count(*) AS n FROM t a JOIN t b ON a.g = b.g WHERE b.k < 50 GROUP BY a.g",
    "SELECT k AS g, CAST(v AS bigint) AS n FROM t WHERE v IS NOT NULL",
    "SELECT v, max(k) AS top FROM t GROUP BY v ORDER BY top DESC LIMIT 5",
)


def test_a_view_has_the_rows_of_its_new_query_and_follows_changes(db: Connection) -> None:
    db.execute(f"CREATE MATERIALIZED VIEW m AS {QUERIES[0]}")
    before = db.execute("SELECT 'm'::regclass::oid").fetchone()
    for query in (*QUERIES[1:], QUERIES[0]):
        assert db.execute(f"ALTER MATERIALIZED VIEW m AS {query}").statusmessage == "ALTER MATERIALIZED VIEW"
        check(db, "m", query)
        change(db)
        check(db, "m", query)
    assert db.execute("SELECT 'm'::regclass::oid").fetchone() == before


READERS = (
    "SELECT n, count(*) AS many FROM m GROUP BY n",
    "SELECT g, n * 2 AS twice FROM m WHERE g > 1",
    "SELECT m.g, m.n, t.k FROM m JOIN t ON m.g = t.g",
    "SELECT sum(n) AS total FROM m",
    "SELECT g, n FROM m ORDER BY n DESC, g LIMIT 3",
)


@pytest.mark.long
def test_readers_take_the_difference_up_as_a_change(db: Connection) -> None:
    db.execute(f"CREATE MATERIALIZED VIEW m AS {QUERIES[0]}")
    db.execute("CREATE VIEW plain AS SELECT * FROM m")
    for number, query in enumerate(READERS):
        db.execute(f"CREATE MATERIALIZED VIEW d{number} AS {query}")
    db.execute("CREATE MATERIALIZED VIEW dd AS SELECT many, count(*) AS c FROM d0 GROUP BY many")
    db.execute("CREATE MATERIALIZED VIEW dp AS SELECT g % 2 AS h, sum(n) AS s FROM plain GROUP BY g % 2")
    db.execute("CREATE INDEX i ON m (n) INCLUDE (g)")
    for query in (*QUERIES[1:3], QUERIES[0]):
        change(db)
        db.execute(f"ALTER MATERIALIZED VIEW m AS {query}")
        for is_changed in (False, True):
            if is_changed:
                change(db)
            check(db, "m", query)
            check(db, "plain", query)
            check(db, "i", "SELECT n, g FROM m")
            for number, reader in enumerate(READERS):
                check(db, f"d{number}", reader)
            check(db, "dd", "SELECT many, count(*) AS c FROM d0 GROUP BY many")
            check(db, "dp", "SELECT g % 2 AS h, sum(n) AS s FROM plain GROUP BY g % 2")


def test_what_readers_need_is_not_taken_from_them(db: Connection) -> None:
    db.execute("CREATE MATERIALIZED VIEW m AS SELECT g, k, v FROM t")
    db.execute("CREATE VIEW p AS SELECT g FROM m")
    db.execute("CREATE MATERIALIZED VIEW d AS SELECT k, v + 1 AS w FROM m")
    error = refused(db, "ALTER MATERIALIZED VIEW m AS SELECT k, CAST(v AS bigint) AS v FROM t")
    assert error.sqlstate == "2BP01"
    detail = str(error.diag.message_detail)
    assert 'reads column "g", which would be missing' in detail
    assert 'reads column "v", which would be of type bigint' in detail
    assert len(detail.splitlines()) == 2  # neither reads both
    # The rows of `d` are told apart by t's key, which comes along with `m`'s.
    error = refused(db, "ALTER MATERIALIZED VIEW m AS SELECT g, max(k) AS k, max(v) AS v FROM t GROUP BY g")
    assert error.sqlstate == "2BP01"
    assert "materialized view" in str(error.diag.message_detail)
    db.execute("DROP MATERIALIZED VIEW d")
    db.execute("ALTER MATERIALIZED VIEW m AS SELECT g, max(k) AS k, 'x' AS new FROM t GROUP BY g")
    check(db, "p", "SELECT DISTINCT g FROM t")


def test_no_view_is_made_of_itself(db: Connection) -> None:
    db.execute("CREATE MATERIALIZED VIEW m AS SELECT g, v FROM t")
    db.execute("CREATE VIEW p AS SELECT g, v FROM m")
    db.execute("CREATE MATERIALIZED VIEW d AS SELECT g, v FROM p")
    db.execute("CREATE TABLE sunk (g int, v int)")
    db.execute("CREATE SINK s INTO sunk FROM d WITH (type = 'append-only', force_append_only = 'true')")
    for source in ("m", "p", "d", "sunk"):
        error = refused(db, f"ALTER MATERIALIZED VIEW m AS SELECT g, v FROM {source}")
        assert (error.sqlstate, "circular" in str(error)) == ("0A000", True)


def test_a_view_may_come_to_read_one_that_was_made_later(db: Connection) -> None:
    db.execute("CREATE MATERIALIZED VIEW m AS SELECT g, k FROM t")
    db.execute("CREATE MATERIALIZED VIEW d AS SELECT g % 2 AS h, sum(k) AS s FROM m GROUP BY g % 2")
    db.execute("CREATE MATERIALIZED VIEW later AS SELECT g, max(k) AS k FROM t GROUP BY g")
    db.execute("ALTER MATERIALIZED VIEW m AS SELECT g, k FROM later")
    for _ in range(2):
        check(db, "m", "SELECT g, max(k) FROM t GROUP BY g")
        check(db, "d", "SELECT g % 2, sum(k) FROM (SELECT g, max(k) AS k FROM t GROUP BY g) AS x GROUP BY g % 2")
        change(db)


def test_columns_are_those_that_each_definition_knows(db: Connection) -> None:
    db.execute("CREATE MATERIALIZED VIEW m AS SELECT g, k FROM t")
    db.execute("COMMENT ON COLUMN m.g IS 'the group'")
    db.execute("COMMENT ON COLUMN m.k IS 'the key'")
    db.execute("CREATE VIEW early AS SELECT * FROM m")
    db.execute("CREATE MATERIALIZED VIEW early_too AS SELECT * FROM m WHERE g < 3")
    db.execute("ALTER TABLE t ADD COLUMN w int DEFAULT 5")
    db.execute("ALTER MATERIALIZED VIEW m AS SELECT w, g, k FROM t")
    db.execute("CREATE VIEW late AS SELECT * FROM m")
    assert [column.name for column in db.execute("SELECT * FROM m").description or ()] == ["w", "g", "k"]
    check(db, "early", "SELECT g, k FROM t")
    check(db, "early_too", "SELECT g, k FROM t WHERE g < 3")
    check(db, "late", "SELECT w, g, k FROM t")
    described = "SELECT col_description('m'::regclass, n) FROM generate_series(1, 3) AS s(n) ORDER BY n"
    assert [text for (text,) in db.execute(described)] == [None, "the group", "the key"]
    shown = db.execute("SHOW CREATE MATERIALIZED VIEW early_too").fetchone()
    assert shown is not None and "SELECT g, k FROM m" in shown[1]


@pytest.mark.long
def test_an_alter_is_a_job_that_can_be_cancelled(in_process_server: Server, db: Connection) -> None:
    db.execute("CREATE MATERIALIZED VIEW m AS SELECT g, k FROM t")
    db.execute("SET background_ddl = true")
    db.execute("SET backfill_rate_limit = 0")
    db.execute("ALTER MATERIALIZED VIEW m AS SELECT g, max(k) AS k FROM t GROUP BY g")
    [(job, text, *_)] = db.execute("SHOW JOBS").fetchall()
    assert text.startswith("ALTER MATERIALIZED VIEW m AS SELECT g, max(k)")
    assert db.execute("SELECT count(*) FROM pg_matviews WHERE schemaname = current_schema()").fetchone() == (1,)
    assert refused(db, "ALTER MATERIALIZED VIEW m AS SELECT g, k FROM t").sqlstate == "55006"
    change(db)
    check(db, "m", "SELECT g, k FROM t")
    db.execute("ALTER MATERIALIZED VIEW m RENAME TO renamed")
    db.execute(f"CANCEL JOBS {job}")
    assert db.execute("SHOW JOBS").fetchall() == []
    check(db, "renamed", "SELECT g, k FROM t")

    db.execute("ALTER MATERIALIZED VIEW renamed AS SELECT g, min(k) AS k FROM t GROUP BY g")
    db.execute("CREATE SCHEMA IF NOT EXISTS elsewhere")
    db.execute("ALTER MATERIALIZED VIEW renamed SET SCHEMA elsewhere")
    db.execute("ALTER MATERIALIZED VIEW elsewhere.renamed SET BACKFILL_RATE_LIMIT = DEFAULT")
    db.execute("WAIT MATERIALIZED VIEW elsewhere.renamed")
    assert db.execute("SHOW JOBS").fetchall() == []
    check(db, "elsewhere.renamed", "SELECT g, min(k) FROM t GROUP BY g")
    db.execute("DROP SCHEMA elsewhere CASCADE")


@pytest.mark.long
def test_what_reads_a_view_is_created_before_the_view_is_another(db: Connection) -> None:
    db.execute("CREATE MATERIALIZED VIEW m AS SELECT g, k FROM t")
    db.execute("SET background_ddl = true")
    db.execute("SET backfill_rate_limit = 0")
    db.execute("CREATE MATERIALIZED VIEW slow AS SELECT sum(k) AS s FROM m")
    assert refused(db, "ALTER MATERIALIZED VIEW m AS SELECT g, v AS k FROM t").sqlstate == "55006"
    db.execute("DROP MATERIALIZED VIEW slow")
    db.execute("ALTER MATERIALIZED VIEW m AS SELECT g, v AS k FROM t")
    db.execute("CREATE MATERIALIZED VIEW slow AS SELECT sum(k) AS s FROM m")
    db.execute("ALTER MATERIALIZED VIEW m SET BACKFILL_RATE_LIMIT = DEFAULT")
    waiting = "SELECT count(*) FROM rw_catalog.rw_backfill_status WHERE reason LIKE 'waiting: %slow is still%'"
    deadline = time.monotonic() + 60
    while db.execute(waiting).fetchone() == (0,) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert db.execute(waiting).fetchone() == (1,)
    db.execute("ALTER MATERIALIZED VIEW slow SET BACKFILL_RATE_LIMIT = DEFAULT")
    db.execute("WAIT")
    check(db, "m", "SELECT g, v FROM t")
    check(db, "slow", "SELECT sum(v) FROM t")


def test_a_subscription_keeps_the_query(db: Connection) -> None:
    db.execute("CREATE MATERIALIZED VIEW m AS SELECT g, k FROM t")
    db.execute("CREATE SUBSCRIPTION sub FROM m WITH (retention = '1D')")
    error = refused(db, "ALTER MATERIALIZED VIEW m AS SELECT g, v AS k FROM t")
    assert (error.sqlstate, "sub" in str(error.diag.message_detail)) == ("0A000", True)


def test_only_the_owner_of_a_created_view_gives_it_a_query(db: Connection) -> None:
    for sql, sqlstate in (
        ("ALTER MATERIALIZED VIEW none AS SELECT 1 AS a", "42P01"),
        ("ALTER MATERIALIZED VIEW t AS SELECT 1 AS a", "42809"),
        ("ALTER MATERIALIZED VIEW m AS SELECT nothing FROM t", "42703"),
        ("ALTER MATERIALIZED VIEW m AS", "42601"),
    ):
        db.execute("CREATE MATERIALIZED VIEW IF NOT EXISTS m AS SELECT g, k FROM t")
        assert refused(db, sql).sqlstate == sqlstate
    assert refused(db, "ALTER MATERIALIZED VIEW m AS SELECT nothing FROM t").diag.statement_position == "37"
    assert db.execute("ALTER MATERIALIZED VIEW IF EXISTS none AS SELECT 1 AS a").statusmessage


@pytest.mark.long
def test_kill_9_while_a_view_is_filled_anew(server: Server) -> None:
    with server.connect() as db:
        db.execute("ALTER SYSTEM SET backfill_engine = auto")
        db.execute("CREATE TABLE t (k int PRIMARY KEY, g int, v int)")
        db.execute("INSERT INTO t SELECT i, i % 7, i * 3 FROM range(20000) AS r(i)")
        db.execute("CREATE MATERIALIZED VIEW m AS SELECT g, sum(k) AS k FROM t GROUP BY g")
        db.execute("CREATE MATERIALIZED VIEW d AS SELECT sum(k) AS s FROM m")
        db.execute("SET background_ddl = true")
        db.execute("SET backfill_rate_limit = 100")
        db.execute("ALTER MATERIALIZED VIEW m AS SELECT g, sum(v) AS k FROM t GROUP BY g")
    server.kill()
    again = Server(server.data)
    try:
        with again.connect() as db:
            assert len(db.execute("SHOW JOBS").fetchall()) == 1
            check(db, "m", "SELECT g, sum(k) FROM t GROUP BY g")
            db.execute("DELETE FROM t WHERE k % 3 = 0")
            db.execute("ALTER MATERIALIZED VIEW m SET BACKFILL_RATE_LIMIT = DEFAULT")
            db.execute("WAIT")
            check(db, "m", "SELECT g, sum(v) FROM t GROUP BY g")
            check(db, "d", "SELECT sum(v) FROM t")
        again.kill()
        last = Server(server.data)
        try:
            with last.connect() as db:
                db.execute("DELETE FROM t WHERE k % 5 = 0")
                check(db, "m", "SELECT g, sum(v) FROM t GROUP BY g")
                check(db, "d", "SELECT sum(v) FROM t")
        finally:
            last.kill()
    finally:
        again.kill()


def newest(db: Connection) -> int:
    detail = str(refused(db, "SELECT * FROM t FOR SYSTEM_VERSION AS OF 99999999").diag.message_detail)
    return int(detail.removeprefix("The newest is ").rstrip("."))


def test_the_past_of_a_view_is_that_of_its_definition(db: Connection) -> None:
    db.execute("CREATE MATERIALIZED VIEW m AS SELECT g, k FROM t")
    before = newest(db)
    db.execute("ALTER MATERIALIZED VIEW m AS SELECT g, v AS k FROM t")
    after = newest(db)
    expected = rows(db, "SELECT g, v FROM t")
    db.execute("DELETE FROM t")
    db.execute("FLUSH")
    assert rows(db, f"SELECT * FROM m FOR SYSTEM_VERSION AS OF {after}") == expected
    for snapshot in range(before, after):
        assert refused(db, f"SELECT * FROM m FOR SYSTEM_VERSION AS OF {snapshot}").sqlstate == "42P01"


def test_who_still_has_the_old_catalog(tmp_path: Path) -> None:
    """An audit may have the view as it was before; its plan is not that of the next epochs."""
    with opened(tmp_path, backfill_engine="auto", streaming_engine="duckdb") as (context, client):
        run(client, "CREATE TABLE t (k int PRIMARY KEY, v int)")
        run(client, "INSERT INTO t SELECT i, i FROM range(10) AS r(i)")
        run(client, "CREATE MATERIALIZED VIEW m AS SELECT k FROM t WHERE v < 3")
        before = context.store.catalog
        [old] = [relation for relation in before.relations if relation.name == "m"]
        run(client, "ALTER MATERIALIZED VIEW m AS SELECT k FROM t WHERE v < 5")
        context.plans.view(old, before)
        run(client, "INSERT INTO t VALUES (11, 4)")
        run(client, "FLUSH")
        assert sorted(run(client, "SELECT k FROM m")) == [(0,), (1,), (2,), (3,), (4,), (11,)]


def test_a_view_that_is_dropped_meanwhile(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with opened(tmp_path, backfill_engine="auto") as (context, client):
        run(client, "CREATE TABLE t (k int)")
        run(client, "CREATE MATERIALIZED VIEW v AS SELECT k FROM t")
        planned, other = streaming_jobs.planned_job, Client(context, {"user": "root"})

        def after_the_drop(*arguments: Any) -> PlannedJob:
            run(other, "DROP MATERIALIZED VIEW v")
            return planned(*arguments)

        monkeypatch.setattr(streaming_jobs, "planned_job", after_the_drop)
        with pytest.raises(Error, match='relation "v" does not exist') as caught:
            run(client, "ALTER MATERIALIZED VIEW v AS SELECT k FROM t WHERE k > 1")
        assert caught.value.sqlstate == "42P01"
