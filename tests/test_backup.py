"""BACKUP, `sparkwave backup` and `restore`: all of one moment, whatever goes on, and a server goes on from there."""

from __future__ import annotations

import errno
import os
import shutil
import threading
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import psycopg
import pytest
from buckets import SECRET, Bucket
from crashes import (
    FILLS,
    check_views,
    create_in_background,
    create_tables,
    holding,
    standing,
    start_writers,
    wait_for_progress,
)
from postgres import Postgres
from servers import PATIENCE_SECONDS, Server, refused, sparkwave, wait_until
from test_retention import AT_ONCE, forget, opened, run

from sparkwave.catalog.errors import Error
from sparkwave.catalog.lake.ducklake import Cursor
from sparkwave.catalog.lake.storage import LOCK_FILE, Storage
from sparkwave.catalog.sealing import KEY_FILE
from sparkwave.executor.maintenance import backup as executor_backup
from sparkwave.executor.maintenance.backup import back_up_storage, restore
from sparkwave.executor.maintenance.check import check_directory, check_storage
from sparkwave.executor.maintenance.retention import Retention
from sparkwave.server.dispatch import Client
from sparkwave.server.statements.backups import ask_for_backup

SUMS = "SELECT g, count(*) AS n, sum(v) AS s FROM t GROUP BY g"
COPIED = "SELECT k, v FROM t WHERE v % 2 = 0"


def make_tables(client: Client) -> None:
    run(client, "CREATE TABLE t (k int PRIMARY KEY, g int, v bigint)",
        "INSERT INTO t SELECT i, i % 7, i FROM range(3000) AS r(i)",
        f"CREATE MATERIALIZED VIEW sums AS {SUMS}", f"CREATE MATERIALIZED VIEW copied AS {COPIED}",
        "DELETE FROM t WHERE k % 10 = 3", "UPDATE t SET v = v + 1 WHERE k % 10 = 4")  # fmt: skip


def check_whole(directory: Path, views: int) -> None:
    report = check_directory(directory, views=True)
    assert (report.findings, report.skipped, report.views) == ((), (), views)


def check_maintained(client: Client) -> None:
    run(client, "FLUSH")
    for view, query in (("sums", SUMS), ("copied", COPIED)):
        assert sorted(run(client, f"SELECT * FROM {view}")) == sorted(run(client, query))


def before_the_first_file(patch: pytest.MonkeyPatch, do: Callable[[], object]) -> None:
    """Have something happen in the middle of a backup, when its catalog has been copied."""
    place, todo = executor_backup.place, [do]

    def placing(source: Path, target: Path) -> None:
        if todo:
            todo.pop()()
        place(source, target)

    patch.setattr(executor_backup, "place", placing)


def test_while_rows_come_and_go(tmp_path: Path) -> None:
    """Of two backups at once: what was acknowledged before is there, and of each later statement all or nothing."""
    acknowledged: list[int] = []
    stop = threading.Event()

    def write(client: Client) -> None:
        while not stop.is_set():
            k = 10_000 + 2 * len(acknowledged)
            run(client, f"INSERT INTO t VALUES ({k}, 1, {k}), ({k + 1}, 2, {k})", f"DELETE FROM t WHERE k = {k % 3000}")
            acknowledged.append(k)

    with opened(tmp_path / "data") as (context, client):
        make_tables(client)
        clients = [Client(context, {"user": "root"}) for _ in range(2)]
        writer = threading.Thread(target=write, args=(clients[0],))
        writer.start()
        assert wait_until(lambda: len(acknowledged) > 2)
        expected = len(acknowledged)
        other = threading.Thread(target=run, args=(clients[1], f"BACKUP TO '{tmp_path / 'other'}'"))
        other.start()
        run(client, f"BACKUP TO '{tmp_path / 'b'}'")
        other.join()
        assert not context.lake.keeps_files
        run(client, "FLUSH")
        stop.set()
        writer.join()
    shutil.rmtree(tmp_path / "data")
    check_whole(tmp_path / "other", views=2)
    restore(tmp_path / "b", Storage(tmp_path / "restored"))
    shutil.rmtree(tmp_path / "b")
    with opened(tmp_path / "restored") as (_, client):
        found = {k for (k,) in run(client, "SELECT k FROM t WHERE k >= 10000")}
        assert {10_000 + i for i in range(2 * expected)} <= found
        assert all(k ^ 1 in found for k in found), "half a statement"
        run(client, "INSERT INTO t SELECT i, i % 7, i FROM range(90000, 90050) AS r(i)", "DELETE FROM t WHERE g = 3")
        check_maintained(client)
    check_whole(tmp_path / "restored", views=2)


@pytest.mark.long
def test_nothing_is_deleted_meanwhile(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Files that no snapshot needs any more stay until the backup is done."""
    with opened(tmp_path / "data") as (context, client):
        make_tables(client)
        run(client, "FLUSH")
        present = set(context.lake.data_path.rglob("*.parquet"))

        def forget_all() -> None:
            run(client, "TRUNCATE t", "FLUSH")
            Retention(context.store, context.coordinator, lambda: 0, AT_ONCE).run_once()

        with monkeypatch.context() as patch:
            before_the_first_file(patch, forget_all)
            run(client, f"BACKUP TO '{tmp_path / 'b'}'")
        assert present <= set(context.lake.data_path.rglob("*.parquet"))
        forget(context)
        assert not present <= set(context.lake.data_path.rglob("*.parquet"))
        assert run(client, "SELECT count(*) FROM t") == [(0,)]
    check_whole(tmp_path / "b", views=2)
    restore(tmp_path / "b", Storage(tmp_path / "restored"))
    with opened(tmp_path / "restored") as (_, client):
        assert run(client, "SELECT count(*) FROM t") == [(2700,)]
        check_maintained(client)


def test_where_links_cannot_be(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def link(source: object, target: object) -> None:
        raise OSError(errno.EXDEV, os.strerror(errno.EXDEV))

    with opened(tmp_path / "data") as (_, client):
        make_tables(client)
        run(client, "FLUSH")
        with monkeypatch.context() as patch:
            patch.setattr(os, "link", link)
            run(client, f"BACKUP TO '{tmp_path / 'b'}'")
            restore(tmp_path / "b", Storage(tmp_path / "restored"))
    assert all(path.stat().st_nlink == 1 for path in tmp_path.rglob("*.parquet"))
    check_whole(tmp_path / "restored", views=2)


@pytest.mark.long
def test_what_goes_on_from_where_it_stood(tmp_path: Path) -> None:
    """A backfill, a source, a sink, a subscription, secrets and time travel."""
    inbox, outbox = tmp_path / "in", tmp_path / "out"
    inbox.mkdir()
    outbox.mkdir()
    (inbox / "a.csv").write_text("1,a\n2,b\n")
    with opened(tmp_path / "data") as (context, client):
        make_tables(client)
        run(client, "CREATE SECRET word WITH (backend = 'meta') AS 'xyzzy'",
            "CREATE TABLE read (k int PRIMARY KEY, s varchar) WITH (connector = 'posix_fs', match_pattern = '*.csv', "
            f"posix_fs.root = '{inbox}') FORMAT PLAIN ENCODE CSV (without_header = 'true', delimiter = ',')",
            "CREATE SUBSCRIPTION sub FROM t WITH (retention = '1 day')",
            "DECLARE cur SUBSCRIPTION CURSOR FOR sub FULL", "FLUSH")  # fmt: skip
        assert wait_until(lambda: run(client, "SELECT count(*) FROM read") == [(2,)])
        [(then,)] = run(client, "SELECT now()")
        run(client, "SET background_ddl = true")
        run(client, f"CREATE MATERIALIZED VIEW slow WITH (backfill_rate_limit = 1000) AS {SUMS}")
        assert wait_until(lambda: progress(client) > 0)
        run(client, f"BACKUP TO '{tmp_path / 'b'}'")
        key = context.store.cipher
        (inbox / "b.csv").write_text("3,c\n")
        run(client, "CANCEL JOBS " + str(run(client, "SELECT ddl_id FROM rw_catalog.rw_ddl_progress")[0][0]))
    restore(tmp_path / "b", Storage(tmp_path / "restored"))
    assert (tmp_path / "restored" / KEY_FILE).stat().st_mode & 0o777 == 0o600
    assert (tmp_path / "b").stat().st_mode & 0o777 == 0o700
    with opened(tmp_path / "restored") as (context, client):
        [secret] = context.store.catalog.secrets.values()
        assert context.store.cipher.open(secret.sealed) == key.open(secret.sealed) == "xyzzy"
        assert progress(client) > 0, "the backfill has begun again"
        run(client, "ALTER MATERIALIZED VIEW slow SET BACKFILL_RATE_LIMIT = DEFAULT", "WAIT", "FLUSH")
        assert sorted(run(client, "SELECT * FROM slow")) == sorted(run(client, SUMS))
        assert wait_until(lambda: run(client, "SELECT count(*) FROM read") == [(3,)])
        run(client, "INSERT INTO t VALUES (50000, 1, 2)", "DECLARE cur SUBSCRIPTION CURSOR FOR sub SINCE begin()")
        assert run(client, "FETCH NEXT FROM cur")[0][0] == 50000
        assert run(client, f"SELECT count(*) FROM t FOR SYSTEM_TIME AS OF '{then}'") == [(2700,)]


def progress(client: Client) -> float:
    """Rows that the one creating job has read."""
    found = run(client, "SELECT progress FROM rw_catalog.rw_ddl_progress")
    text = str(found[0][0]) if found else "(0/"
    return float(text.partition("(")[2].partition("/")[0]) if "(" in text else 0.0


def test_a_cancelled_backup_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with opened(tmp_path / "data") as (context, client):
        make_tables(client)
        run(client, "FLUSH")
        with monkeypatch.context() as patch, pytest.raises(Error) as caught:
            before_the_first_file(patch, client.cancel)
            run(client, f"BACKUP TO '{tmp_path / 'b'}'")
        assert caught.value.sqlstate == "57014"
        assert sorted(path.name for path in tmp_path.iterdir()) == ["data"]
        assert not context.lake.keeps_files
        assert not list(context.lake.staging_path.glob("*"))
        run(client, f"BACKUP TO '{tmp_path / 'b'}'")


def test_refused(connection: Any, module_server: Server, tmp_path: Path) -> None:
    (tmp_path / "there").mkdir()
    (tmp_path / "begun.partial").mkdir()
    (tmp_path / "link").symlink_to(module_server.data)
    cases = {
        "relative/path": ("42602", "relative path not allowed for BACKUP"),
        str(tmp_path / "there"): ("58P02", f'"{tmp_path}/there" exists already'),
        str(tmp_path / "begun"): ("58P02", f'directory "{tmp_path}/begun.partial" exists already'),
        str(tmp_path / "no" / "where"): ("58P01", f'directory "{tmp_path}/no" does not exist'),
        str(module_server.data / "b"): ("22023", f'a backup in the data directory "{module_server.data}" would be '
                                        "part of it"),
        str(tmp_path / "link" / "b"): ("22023", f'a backup in the data directory "{module_server.data}" would be '
                                       "part of it"),
        "/proc/b": ("58030", '"/proc/b" cannot be written: No such file or directory'),
    }  # fmt: skip
    for target, expected in cases.items():
        error = refused(connection, f"BACKUP TO '{target}'")
        assert (error.sqlstate, error.diag.message_primary) == expected
    assert refused(connection, "BACKUP TO 'x'").diag.statement_position == "11"
    assert refused(connection, "BACKUP 'x'").sqlstate == "42601"
    assert refused(connection, "BACKUP TO x").sqlstate == "42601"
    assert refused(connection, "BACKUP TO 'x' now").sqlstate == "42601"
    connection.execute("CREATE USER plain")
    with module_server.connect(user="plain") as other:
        error = refused(other, f"BACKUP TO '{tmp_path / 'b'}'")
        assert (error.sqlstate, error.diag.message_primary) == ("42501", "only superusers can back up")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["begun.partial", "link", "there"]


def test_restore_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with opened(tmp_path / "data") as (_, client):
        run(client, f"BACKUP TO '{tmp_path / 'b'}'")
        with pytest.raises(Error, match="is in use by another server"):
            restore(tmp_path / "data", Storage(tmp_path / "new"))
    before = sorted((tmp_path / "data").rglob("*"))
    for backup, directory, message in (
        (tmp_path / "b", tmp_path / "data", "is not empty"),
        (tmp_path / "nothing", tmp_path / "new", "there is no catalog in the directory"),
    ):
        with pytest.raises(Error, match=message):
            restore(backup, Storage(directory))
    assert sorted((tmp_path / "data").rglob("*")) == before

    def die(*_: object) -> None:
        shutil.copytree(tmp_path / "new", tmp_path / "cut")
        raise KeyboardInterrupt

    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(executor_backup, "move_files", die)
        restore(tmp_path / "b", Storage(tmp_path / "new"))
    # As a kill would leave it, without the last step: no server begins anew there.
    with pytest.raises(Error, match="cannot be opened"), opened(tmp_path / "cut"):
        pass

    (tmp_path / "b" / "catalog.ducklake").write_bytes(b"not a database" * 100)
    with pytest.raises(Error) as caught:
        restore(tmp_path / "b", Storage(tmp_path / "new"))
    assert caught.value.sqlstate == "XX001"
    assert not list((tmp_path / "new").iterdir())


@pytest.mark.long
def test_the_commands(tmp_path: Path) -> None:
    """The server runs; after a kill its directory is backed up with the log of its catalog."""
    server = Server(tmp_path / "data")
    try:
        with server.connect() as connection:
            connection.execute("CREATE TABLE t (k int PRIMARY KEY)")
            connection.execute("INSERT INTO t SELECT i FROM range(1000) AS r(i)")
            described = connection.execute(f"BACKUP TO '{tmp_path / 'by_sql'}'", prepare=True)
            assert [column.name for column in described.description or ()] == ["Snapshot", "Files", "Bytes"]
        asked = sparkwave("backup", "--listen", server.address, tmp_path / "asked")
        assert (asked.returncode, asked.stderr) == (0, "")
        assert asked.stdout.startswith("snapshot ")
        assert asked.stdout.endswith(f" bytes, in {tmp_path / 'asked'}\n")
        with pytest.raises(Error) as caught:
            ask_for_backup(("127.0.0.1", server.port), "root", tmp_path / "asked")
        assert (caught.value.sqlstate, caught.value.message) == ("58P02", f'"{tmp_path}/asked" exists already')
        with pytest.raises(Error, match="is in use by another server"):
            back_up_storage(Storage(server.data), tmp_path / "held")
    finally:
        server.kill()
    with pytest.raises(Error, match="refused"):
        ask_for_backup(("127.0.0.1", server.port), "root", tmp_path / "none")
    back_up_storage(Storage(server.data), tmp_path / "stopped")
    made = sparkwave("restore", tmp_path / "asked", "--data", tmp_path / "restored")
    assert (made.returncode, made.stderr) == (0, "")
    assert made.stdout == f"restored: sparkwave serve --data {tmp_path / 'restored'}\n"
    for directory in ("by_sql", "stopped", "restored"):
        check_whole(tmp_path / directory, views=0)
        with opened(tmp_path / directory) as (_, client):
            assert run(client, "SELECT count(*) FROM t") == [(1000,)]


@pytest.mark.long
def test_what_a_failed_restore_into_a_postgresql_leaves(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing, so that it can be tried again."""
    with opened(tmp_path / "data") as (_, client):
        make_tables(client)
    postgres = Postgres()
    try:
        with postgres.connect() as connection:
            connection.execute("CREATE TABLE own AS SELECT 1 AS x")
        storage = Storage(tmp_path / "restored", postgres.conninfo(), tmp_path / "shared")

        def broken(cursor: Cursor, name: str, source: str) -> None:
            cursor.execute("BEGIN")
            cursor.execute(f"DELETE FROM {name}.ducklake_metadata")
            cursor.execute("SELECT error('broken')")

        with monkeypatch.context() as patched, pytest.raises(Error, match="broken"):
            patched.setattr(executor_backup, "fill_postgres_catalog", broken)
            restore(tmp_path / "data", storage)
        assert not [
            *storage.directory.iterdir(),
            *(path for path in (tmp_path / "shared").rglob("*") if path.is_file()),
        ]
        with postgres.connect() as connection:
            tables = "SELECT table_name FROM information_schema.tables WHERE table_schema = 'public'"
            assert connection.execute(tables).fetchall() == [("own",)]
        restore(tmp_path / "data", storage)
        assert {path.name for path in storage.directory.iterdir()} == {LOCK_FILE, KEY_FILE}
        report = check_storage(storage, views=True)
        assert (report.findings, report.views) == ((), 2)
        with pytest.raises(Error, match="has a lake already"):
            restore(tmp_path / "data", Storage(tmp_path / "again", postgres.conninfo(), tmp_path / "other"))
    finally:
        postgres.stop()


ALL_TYPES = """k int PRIMARY KEY, b boolean, s smallint, l bigint, n numeric, r real, d double precision, v varchar,
               y bytea, day date, t time, ts timestamp, tz timestamptz, i interval, j jsonb, a int[], va varchar[],
               st STRUCT<x int, y varchar>, sta STRUCT<x varchar[]>[]"""
ALL_VALUES = """true, 2, 3, 4.5, 1.1, 'NaN', 'it''s "é"' || chr(10), '\\x00ff'::bytea, '2024-01-01'::date,
                '10:00:00.123456'::time, 'infinity'::timestamp, '2024-01-01 00:00:00+00'::timestamptz,
                INTERVAL '1 month 2 days 3 seconds', '{"a": [1, null]}'::jsonb, ARRAY[1, NULL],
                ARRAY['NULL', NULL, 'a,b', '"q"', '', ' '], ROW(1, 'a''b, c}'), ARRAY[ROW(ARRAY['a', '\\'])]"""


@pytest.mark.long
@pytest.mark.parametrize("has_bucket", [False, True])
def test_a_catalog_in_a_postgresql(tmp_path: Path, has_bucket: bool) -> None:
    """Its backup is served with a catalog in a file: all rows, now and then, in files and in the catalog."""
    postgres, bucket = Postgres(), Bucket()
    shared = "s3://data/lake" if has_bucket else tmp_path / "shared"
    keys = {"AWS_ACCESS_KEY_ID": "a", "AWS_SECRET_ACCESS_KEY": SECRET, "AWS_ENDPOINT_URL": bucket.url}
    place = ("--catalog", postgres.conninfo(), "--shared", shared)
    server = Server(tmp_path / "data", keys, catalog=postgres.conninfo(), shared=shared)
    servers = [server]
    relations = ("t", "u", "sums", "copied", "all_types", "wide")
    try:
        with server.connect() as own:
            own.execute("ALTER SYSTEM SET backfill_engine = auto")
            own.execute("CREATE TABLE t (k int PRIMARY KEY, g int, v bigint)")
            own.execute("INSERT INTO t SELECT i, i % 7, i FROM range(3000) AS r(i)")
            own.execute(f"CREATE MATERIALIZED VIEW sums AS {SUMS}")
            own.execute(f"CREATE MATERIALIZED VIEW copied AS {COPIED}")
            own.execute(f"CREATE TABLE all_types ({ALL_TYPES})")
            own.execute(f"INSERT INTO all_types SELECT 1, {ALL_VALUES}")
            own.execute("INSERT INTO all_types (k) VALUES (2)")
            own.execute(f"INSERT INTO all_types SELECT i, {ALL_VALUES} FROM range(10, 500) AS r(i)")
            own.execute("CREATE INDEX by_s ON all_types (v)")
            own.execute("CREATE TABLE u (x int, old varchar)")
            own.execute("INSERT INTO u VALUES (1, 'a'), (2, NULL)")
            own.execute("ALTER TABLE u ADD COLUMN added varchar DEFAULT 'new'")
            own.execute("INSERT INTO u VALUES (3, 'c', 'd')")
            own.execute("ALTER TABLE u RENAME COLUMN old TO name")
            own.execute("ALTER TABLE u ALTER COLUMN x TYPE bigint")
            own.execute("CREATE MATERIALIZED VIEW wide AS SELECT st, va, j FROM all_types")
            own.execute("DELETE FROM t WHERE k % 10 = 3")
            own.execute("UPDATE u SET name = 'z' WHERE x = 2")
            own.execute("FLUSH")
            [(then,)] = own.execute("SELECT extract(epoch FROM now())::bigint").fetchall()
            time.sleep(1.1)
            own.execute("DELETE FROM all_types WHERE k % 3 = 1")
            own.execute("UPDATE t SET v = v + 1 WHERE k % 10 = 4")
            own.execute("INSERT INTO u VALUES (5000000000, 'e', 'f')")
            own.execute("CREATE SECRET se WITH (backend = 'meta') AS 'x'")
            own.execute("FLUSH")

            def all_rows(connection: psycopg.Connection[Any]) -> list[list[Any]]:
                """Of each relation, now and before, in text."""
                queries = [f"SELECT r::text FROM {name} r ORDER BY 1" for name in relations]
                before = f"FOR SYSTEM_TIME AS OF {then}"
                queries += [f"SELECT * FROM {name} {before} ORDER BY 1" for name in ("u", "t", "sums")]
                queries += [f"SELECT k, v, j::text, va, tz FROM all_types {before} ORDER BY 1"]
                return [connection.execute(query).fetchall() for query in queries]

            known = all_rows(own)
            assert all(known)
            own.execute(f"BACKUP TO '{tmp_path / 'running'}'")
            own.execute("DELETE FROM t")
            error = refused(own, f"BACKUP TO '{shared}/b'") if not has_bucket else None
            assert error is None or error.sqlstate == "22023"
            done = sparkwave("backup", "--data", tmp_path / "other", *place, tmp_path / "in_use", environment=keys)
            assert f"is in use by the server at {server.address}" in done.stderr
        server.kill()
        done = sparkwave("backup", "--data", tmp_path / "other", *place, tmp_path / "stopped", environment=keys)
        assert (done.returncode, done.stderr) == (0, "")
        check_whole(tmp_path / "stopped", views=4)
        check_whole(tmp_path / "running", views=4)
        restore(tmp_path / "running", Storage(tmp_path / "restored"))
        with postgres.connect() as connection:
            connection.execute("CREATE DATABASE again")
        catalog, other = postgres.conninfo("again"), "s3://data/again" if has_bucket else tmp_path / "again shared"
        places = ("--catalog", catalog, "--shared", other)
        done = sparkwave("restore", tmp_path / "running", "--data", tmp_path / "again", *places, environment=keys)
        assert (done.returncode, done.stderr) == (0, "")
        for second in (other, tmp_path / "third shared"):
            options = ("--data", tmp_path / "third", "--catalog", catalog, "--shared", second)
            done = sparkwave("restore", tmp_path / "running", *options, environment=keys)
            assert ("is not empty" if second == other else "has a lake already") in done.stderr
            assert not any(path for path in (tmp_path / "third").rglob("*") if path.name != LOCK_FILE)
        shutil.rmtree(tmp_path / "running")
        check_whole(tmp_path / "restored", views=4)
        if not has_bucket:
            shutil.rmtree(tmp_path / "shared")
        for directory, options in (("restored", {}), ("again", {"catalog": catalog, "shared": other})):
            servers.append(Server(tmp_path / directory, keys, **options))
            with servers[-1].connect() as own:
                assert all_rows(own) == known
                for name in ("all_types", "t", "u"):
                    own.execute(f"DELETE FROM {name} WHERE true")
                own.execute(f"INSERT INTO all_types SELECT 1, {ALL_VALUES}")
                own.execute("INSERT INTO t VALUES (1, 2, 4)")
                own.execute("FLUSH")
                assert own.execute("SELECT * FROM sums").fetchall() == [(2, 1, 4)]
                assert own.execute("SELECT count(*) FROM wide").fetchall() == [(1,)]
            servers[-1].stop()
        check_whole(tmp_path / "restored", views=4)
        done = sparkwave("check", "--views", "--data", tmp_path / "again", *places, environment=keys)
        assert done.returncode == 0, done.stdout
    finally:
        for each in servers:
            each.kill()
        bucket.stop()
        postgres.stop()


@pytest.mark.long
@pytest.mark.spark
@pytest.mark.timeout(900)
@pytest.mark.parametrize(("strategy", "view", "has_bucket"), [*((*fill, False) for fill in FILLS), (*FILLS[0], True)])
def test_during_a_backfill(tmp_path: Path, strategy: str, view: str, has_bucket: bool) -> None:
    """The restored server goes on with the steps that were finished, however the backed up one went on."""
    with ExitStack() as stack:
        environment, options = {}, {}
        if has_bucket:
            postgres, bucket = Postgres(), Bucket()
            stack.callback(postgres.stop)
            stack.callback(bucket.stop)
            environment = {"AWS_ACCESS_KEY_ID": "a", "AWS_SECRET_ACCESS_KEY": SECRET, "AWS_ENDPOINT_URL": bucket.url}
            options = {"catalog": postgres.conninfo(), "shared": "s3://data/lake"}
        # Planning is a step of its own.
        options["patch"] = holding(tmp_path / "hold", 3)
        server = Server(tmp_path / "data", environment, fills_on_spark=True, spark_start="eager", **options)
        check_backfill(tmp_path, server, strategy, view)


def check_backfill(tmp_path: Path, server: Server, strategy: str, view: str) -> None:
    servers = [server]
    try:
        with server.connect() as own:
            create_tables(own, slice_rows=4000)
            (hold := tmp_path / "hold").touch()
            create_in_background(own, view, strategy)
            wait_for_progress(own, 0.05)
            writers = start_writers(server, seed=1)
            own.execute(f"BACKUP TO '{tmp_path / 'b'}'")
            hold.unlink()
            own.execute("WAIT")  # which deletes partial results
            for writer in writers:
                writer.stop()
        server.kill()
        known = standing(tmp_path / "b")
        assert known.creating and known.finished
        restore(tmp_path / "b", Storage(tmp_path / "restored"))
        shutil.rmtree(tmp_path / "b")
        shutil.rmtree(tmp_path / "data")
        servers.append(Server(tmp_path / "restored"))
        with servers[-1].connect() as own:
            own.execute("WAIT")
            assert check_views(own) == [view]
        servers[-1].stop(PATIENCE_SECONDS)
        standing(tmp_path / "restored").check_follows(known)
        check_whole(tmp_path / "restored", views=1)
    finally:
        for each in servers:
            each.kill()
