"""Tables that follow those of a real PostgreSQL."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest
from postgres import Postgres
from psycopg.pq import ExecStatus
from servers import Server, free_port, refused, rows, wait_until
from test_retention import opened, run

from sparkwave.catalog.lake.storage import Storage
from sparkwave.executor.maintenance.backup import restore

Connection = psycopg.Connection[Any]
SECONDS = 30
COLUMNS = "id int, part varchar, n numeric(12,2), at timestamptz, ok boolean, doc jsonb, raw bytea, d date"
UPSTREAM = f"({COLUMNS}, unread int, PRIMARY KEY (id, part))"
SUMS = "count(*) AS c, sum(n) AS s"
READ = "SELECT id, part, n, at, ok, doc, raw, d FROM {} ORDER BY id, part"


@pytest.fixture(scope="module")
def postgres() -> Iterator[Postgres]:
    started = Postgres("wal_level=logical", "max_replication_slots=20", "max_wal_senders=20")
    yield started
    started.stop()


@pytest.fixture
def upstream(postgres: Postgres) -> Iterator[Connection]:
    with postgres.connect() as opened:
        yield opened


@pytest.fixture
def session(in_process_server: Server) -> Iterator[Connection]:
    with in_process_server.connect() as opened:
        yield opened


def create_source(session: Connection, postgres: Postgres, name: str) -> None:
    session.execute(source(postgres, name))


def source(postgres: Postgres, name: str) -> str:
    return (
        f"CREATE SOURCE {name} WITH (connector = 'postgres-cdc', hostname = '127.0.0.1', port = '{postgres.port}', "
        f"username = 'root', password = 'hidden-from-all', database.name = 'dev', slot.name = 'slot_{name}')"
    )


def insert(upstream: Connection, table: str, first: int, count: int) -> None:
    upstream.execute(
        f"INSERT INTO {table} SELECT i, CASE i % 3 WHEN 0 THEN '' WHEN 1 THEN 'a \"quoted\"' "
        "ELSE E'two\nlines, \\\\N' END, "
        "i / 4.0, CASE WHEN i % 5 > 0 THEN timestamptz '2024-01-01 00:00:00+02' + i * interval '1 second' END, "
        "i % 2 = 0, CASE WHEN i % 7 > 0 THEN jsonb_build_object('k', i, 'l', null) END, "
        "decode(lpad(to_hex(i), 8, '0'), 'hex'), date '2024-01-01' + i % 100, 0 "
        f"FROM generate_series({first}, {first + count - 1}) AS g (i)"
    )


def follows(session: Connection, upstream: Connection, table: str) -> bool:
    return wait_until(lambda: rows(session, READ.format(table)) == rows(upstream, READ.format(table)), SECONDS)


def test_rows_and_then_changes(session: Connection, upstream: Connection, postgres: Postgres) -> None:
    upstream.execute(f"CREATE TABLE followed {UPSTREAM}")
    insert(upstream, "followed", 1, 3000)
    create_source(session, postgres, "pg")
    session.execute(f"CREATE TABLE followed ({COLUMNS}, PRIMARY KEY (id, part)) FROM pg TABLE 'public.followed'")
    assert follows(session, upstream, "followed")
    session.execute(
        "CREATE MATERIALIZED VIEW totals AS SELECT ok, count(*) AS n, sum(n) AS s FROM followed GROUP BY ok"
    )
    insert(upstream, "followed", 5000, 10)
    upstream.execute("UPDATE followed SET n = -1, doc = NULL WHERE id % 10 = 0")
    upstream.execute("DELETE FROM followed WHERE id BETWEEN 100 AND 200")
    upstream.execute("UPDATE followed SET id = id + 100000 WHERE id BETWEEN 300 AND 310")
    with upstream.transaction():
        upstream.execute("INSERT INTO followed (id, part) VALUES (-1, 'x'), (-2, 'x')")
        upstream.execute("DELETE FROM followed WHERE id = -1")
        upstream.execute("UPDATE followed SET ok = true WHERE id = -2")
    assert follows(session, upstream, "followed")
    session.execute("FLUSH")
    query = "SELECT ok, count(*), sum(n) FROM followed GROUP BY ok ORDER BY 1"
    assert rows(session, "SELECT * FROM totals ORDER BY ok") == rows(upstream, query)
    upstream.execute("TRUNCATE followed")
    insert(upstream, "followed", 7000, 3)
    assert follows(session, upstream, "followed")
    progress = "SELECT * FROM rw_catalog.rw_cdc_progress WHERE job_id = 'followed'::regclass::int"
    assert rows(session, progress)[0][1:] == (1, 1, 1)
    assert "hidden-from-all" not in str(rows(session, "SHOW CREATE SOURCE pg"))
    assert "hidden-from-all" not in str(rows(session, "SELECT * FROM rw_catalog.rw_sources"))
    assert refused(session, "DROP SOURCE pg").sqlstate == "2BP01"
    session.execute("ALTER SOURCE pg RENAME TO pg2")
    assert rows(session, "SHOW CREATE TABLE followed")[0][1].endswith("FROM pg2 TABLE 'public.followed'")
    session.execute("DROP SOURCE pg2 CASCADE")
    slots = "SELECT slot_name FROM pg_replication_slots"
    assert wait_until(lambda: not rows(upstream, slots), SECONDS)


def test_a_slot_in_use_is_dropped_later(session: Connection, upstream: Connection, postgres: Postgres) -> None:
    """As that of a connection which has been lost, and whose server process goes on: else it keeps the log for ever."""
    upstream.execute(f"CREATE TABLE used {UPSTREAM}")
    insert(upstream, "used", 1, 10)
    create_source(session, postgres, "using")
    session.execute(f"CREATE TABLE used ({COLUMNS}, PRIMARY KEY (id, part)) FROM using TABLE 'public.used'")
    assert follows(session, upstream, "used")
    slots = "SELECT slot_name, active FROM pg_replication_slots"
    [(slot, _)] = rows(upstream, slots)
    options = "(proto_version '1', publication_names 'any')"
    with psycopg.connect(f"{postgres.conninfo()} replication=database", autocommit=True) as other:
        begun = False
        while not begun:  # the source holds it too while it reads
            answer = other.pgconn.exec_(f'START_REPLICATION SLOT "{slot}" LOGICAL 0/0 {options}'.encode())
            begun = answer.status == ExecStatus.COPY_BOTH
        session.execute("DROP SOURCE using CASCADE")
        time.sleep(2)
        assert rows(upstream, slots) == [(slot, True)]
        other.pgconn.finish()
    assert wait_until(lambda: not rows(upstream, slots), SECONDS)


def test_what_is_wrong_is_said(session: Connection, upstream: Connection, postgres: Postgres) -> None:
    unreachable = (
        f"CREATE SOURCE nowhere WITH (connector = 'postgres-cdc', hostname = '127.0.0.1', port = '{free_port()}', "
        "username = 'root', database.name = 'dev')"
    )
    error = refused(session, unreachable)
    assert error.sqlstate == "08006"
    create_source(session, postgres, "said")
    upstream.execute("CREATE TABLE said_rows (a int PRIMARY KEY, b int[])")
    for create, sqlstate in (
        ("(a int PRIMARY KEY) FROM said TABLE 'public.nothing'", "42P01"),
        ("(a int PRIMARY KEY, c int) FROM said TABLE 'public.said_rows'", "42703"),
        ("(a int) FROM said TABLE 'public.said_rows'", "42P16"),
        ("(a int PRIMARY KEY) FROM nothing TABLE 'public.said_rows'", "42704"),
    ):
        assert refused(session, f"CREATE TABLE said_table {create}").sqlstate == sqlstate
    session.execute("DROP SOURCE said")


def test_a_lost_slot_is_an_error(session: Connection, upstream: Connection, postgres: Postgres) -> None:
    """Nothing is skipped in silence."""
    create_source(session, postgres, "losing")
    upstream.execute("CREATE TABLE lost (a int PRIMARY KEY)")
    upstream.execute("INSERT INTO lost VALUES (1)")
    session.execute("CREATE TABLE lost (a int PRIMARY KEY) FROM losing TABLE 'lost'")
    assert wait_until(lambda: rows(session, "SELECT a FROM lost") == [(1,)], SECONDS)
    drop = "SELECT pg_drop_replication_slot(slot_name) FROM pg_replication_slots WHERE NOT active"
    upstream.execute(drop)
    upstream.execute("INSERT INTO lost VALUES (2)")
    reason = "SELECT reason FROM rw_catalog.rw_source_status WHERE source_name = 'public.lost'"
    assert wait_until(lambda: "does not exist any more" in str(rows(session, reason)), SECONDS)
    assert rows(session, "SELECT a FROM lost") == [(1,)]
    session.execute("DROP SOURCE losing CASCADE")


@pytest.mark.long
def test_a_restored_table_skips_nothing(tmp_path: Path, postgres: Postgres, upstream: Connection) -> None:
    """A backup goes on where it stands while the slot still has that, and says so when it has not."""
    upstream.execute("CREATE TABLE kept (a int PRIMARY KEY)")
    upstream.execute("CREATE TABLE others (a varchar)")
    upstream.execute("INSERT INTO kept VALUES (1)")
    read, reason = "SELECT a FROM kept ORDER BY a", "SELECT reason FROM rw_catalog.rw_source_status"
    position = "SELECT confirmed_flush_lsn FROM pg_replication_slots WHERE slot_name LIKE 'slot_keeping%'"
    with opened(tmp_path / "data") as (_, client):
        run(client, source(postgres, "keeping"))
        run(client, "CREATE TABLE kept (a int PRIMARY KEY) FROM keeping TABLE 'public.kept'")
        assert wait_until(lambda: run(client, read) == [(1,)], SECONDS)
        run(client, f"BACKUP TO '{tmp_path / 'early'}'")
        [before] = rows(upstream, position)
        upstream.execute("INSERT INTO others SELECT repeat(i::text, 100) FROM generate_series(1, 20000) AS g (i)")
        assert wait_until(lambda: rows(upstream, position) != [before], SECONDS)
        run(client, f"BACKUP TO '{tmp_path / 'late'}'")
    upstream.execute("INSERT INTO kept VALUES (2)")
    restore(tmp_path / "late", Storage(tmp_path / "goes_on"))
    with opened(tmp_path / "goes_on") as (_, client):
        assert wait_until(lambda: run(client, read) == [(1,), (2,)], SECONDS)
    restore(tmp_path / "early", Storage(tmp_path / "lags"))
    with opened(tmp_path / "lags") as (_, client):
        assert wait_until(lambda: "is ahead of the table" in str(run(client, reason)), SECONDS)
        assert run(client, read) == [(1,)]
        run(client, "DROP SOURCE keeping CASCADE")


def test_a_transaction_that_changes_everything(session: Connection, upstream: Connection, postgres: Postgres) -> None:
    """What goes from a file of the lake by two statements, until nothing is left in it, views are told once."""
    upstream.execute("CREATE TABLE everything (a int PRIMARY KEY, n int)")
    upstream.execute("INSERT INTO everything SELECT i, 1 FROM generate_series(1, 1000) AS g (i)")
    create_source(session, postgres, "everything_of")
    session.execute("ALTER SYSTEM SET refresh_mode = incremental")
    session.execute("CREATE TABLE everything (a int PRIMARY KEY, n int) FROM everything_of TABLE 'everything'")
    sums = "SELECT count(*)::int AS c, sum(n)::int AS s FROM everything"
    session.execute(f"CREATE MATERIALIZED VIEW everything_sum AS {sums}")
    assert wait_until(lambda: rows(session, sums) == [(1000, 1000)], SECONDS)
    session.execute("FLUSH")
    with upstream.transaction():
        upstream.execute("DELETE FROM everything WHERE a <= 300")
        upstream.execute("UPDATE everything SET n = 3")
    assert wait_until(lambda: rows(session, sums) == [(700, 2100)], SECONDS)
    session.execute("FLUSH")
    assert rows(session, "TABLE everything_sum") == [(700, 2100)]
    session.execute("DROP SOURCE everything_of CASCADE")
    session.execute("ALTER SYSTEM SET refresh_mode = DEFAULT")


def test_large_values_that_are_left_alone(session: Connection, upstream: Connection, postgres: Postgres) -> None:
    """PostgreSQL sends them only with the full row: without it there is an error, not a NULL."""
    create_source(session, postgres, "large")
    for name, identity in (("large_full", "FULL"), ("large_default", "DEFAULT")):
        upstream.execute(f"CREATE TABLE {name} (a int PRIMARY KEY, n int, big varchar)")
        upstream.execute(f"ALTER TABLE {name} ALTER big SET STORAGE EXTERNAL, REPLICA IDENTITY {identity}")
        upstream.execute(f"INSERT INTO {name} VALUES (1, 0, repeat('x', 100000))")
        session.execute(f"CREATE TABLE {name} (a int PRIMARY KEY, n int, big varchar) FROM large TABLE '{name}'")
        count = f"SELECT a, n, length(big) FROM {name}"
        assert wait_until(lambda q=count: rows(session, q) == [(1, 0, 100000)], SECONDS)
        upstream.execute(f"UPDATE {name} SET n = 1")
    assert wait_until(lambda: rows(session, "SELECT n, length(big) FROM large_full") == [(1, 100000)], SECONDS)
    reason = "SELECT reason FROM rw_catalog.rw_source_status WHERE source_name = 'public.large_default'"
    assert wait_until(lambda: "without a large value" in str(rows(session, reason)), SECONDS)
    assert rows(session, "SELECT n, length(big) FROM large_default") == [(0, 100000)]
    session.execute("DROP SOURCE large CASCADE")


@pytest.mark.long
@pytest.mark.parametrize("kills", [1, 8])
def test_crashes(tmp_path: Path, postgres: Postgres, upstream: Connection, kills: int) -> None:
    """kill -9 while the table is read and changes: in the end it is what it is upstream."""
    name = f"crashed_{kills}"
    upstream.execute(f"CREATE TABLE {name} {UPSTREAM}")
    insert(upstream, name, 0, 20_000)
    stopping = threading.Event()

    def write() -> None:
        chooser = random.Random(kills)
        with postgres.connect() as own:
            number = 100_000
            while not stopping.is_set():
                insert(own, name, number := number + 5, 5)
                low = chooser.randrange(20_000)
                own.execute(f"UPDATE {name} SET n = n + 1 WHERE id BETWEEN {low} AND {low + 20}")
                own.execute(f"DELETE FROM {name} WHERE id BETWEEN {low + 30} AND {low + 35}")
                time.sleep(0.01)

    writer = threading.Thread(target=write)
    writer.start()
    server = Server(tmp_path / "data")
    try:
        with server.connect() as own:
            create_source(own, postgres, "crashing")
            own.execute("SET source_rate_limit = 5000")
            table = f"{name} ({COLUMNS}, PRIMARY KEY (id, part))"
            own.execute(f"CREATE TABLE {table} FROM crashing TABLE 'public.{name}'")
            own.execute("ALTER SYSTEM SET backfill_engine = auto")
            own.execute(f"CREATE MATERIALIZED VIEW totals AS SELECT id % 10 AS k, {SUMS} FROM {name} GROUP BY 1")
        chooser = random.Random(-kills)
        for _ in range(kills):
            time.sleep(chooser.uniform(0.3, 2))
            server.kill()
            server = Server(tmp_path / "data")
        stopping.set()
        writer.join()
        with server.connect() as own:
            own.execute(f"ALTER TABLE {name} SET SOURCE_RATE_LIMIT = DEFAULT")
            assert follows(own, upstream, name)
            own.execute("FLUSH")
            expected = rows(upstream, f"SELECT id % 10 AS k, {SUMS} FROM {name} GROUP BY 1 ORDER BY 1")
            assert rows(own, "SELECT * FROM totals ORDER BY k") == expected
            own.execute(f"DROP TABLE {name} CASCADE")
    finally:
        stopping.set()
        writer.join()
        server.kill()
