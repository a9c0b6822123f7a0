"""Subscriptions and their cursors: every change once, in order, after a crash too, and for as long as they keep it."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest
from servers import Server, refused, rows
from test_retention import forget, opened, run

Connection = psycopg.Connection[Any]
ALL = "FETCH 1000 FROM c"


@pytest.fixture
def session(in_process_server: Server) -> Iterator[Connection]:
    """A session with a table `t` and a subscription `s` of it."""
    with in_process_server.connect() as own:
        own.execute("CREATE TABLE t (k int PRIMARY KEY, v varchar)")
        own.execute("INSERT INTO t VALUES (1, 'one'), (2, 'two')")
        own.execute("CREATE SUBSCRIPTION s FROM t WITH (retention = '1D')")
        yield own
        own.execute("DROP TABLE t CASCADE")


def changes(connection: Connection, fetch: str = ALL) -> list[tuple[Any, ...]]:
    """What a FETCH gives, without `rw_timestamp`."""
    return [row[:-1] for row in rows(connection, fetch)]


def times(connection: Connection, fetch: str = ALL) -> list[int]:
    return [row[-1] for row in rows(connection, fetch)]


def test_each_kind_of_change(session: Connection) -> None:
    assert session.execute("DECLARE c SUBSCRIPTION CURSOR FOR s").statusmessage == "DECLARE CURSOR"
    session.execute("INSERT INTO t VALUES (3, 'three'), (4, 'four')")
    session.execute("UPDATE t SET v = 'zwei' WHERE k = 2")
    session.execute("INSERT INTO t VALUES (3, 'drei')")  # which overwrites
    session.execute("DELETE FROM t WHERE k IN (1, 4)")
    found = session.execute(ALL)
    assert [column.name for column in found.description or ()] == ["k", "v", "op", "rw_timestamp"]
    fetched = found.fetchall()
    assert [row[:-1] for row in fetched] == [
        (3, "three", "Insert"),
        (4, "four", "Insert"),
        (2, "two", "UpdateDelete"),
        (2, "zwei", "UpdateInsert"),
        (3, "three", "UpdateDelete"),
        (3, "drei", "UpdateInsert"),
        (1, "one", "Delete"),
        (4, "four", "Delete"),
    ]
    commits = [row[-1] for row in fetched]
    assert [commits.count(each) for each in sorted(set(commits))] == [2, 2, 2, 2]
    assert commits == sorted(commits)
    assert abs(commits[-1] - time.time() * 1000) < 60_000
    assert (found.statusmessage, changes(session)) == ("FETCH 8", [])


def test_rows_of_equal_values_and_without_a_key(session: Connection) -> None:
    session.execute("CREATE TABLE bag (v int)")
    session.execute("CREATE SUBSCRIPTION bag_changes FROM bag WITH (retention = '1 hour')")
    session.execute("DECLARE c SUBSCRIPTION CURSOR FOR bag_changes")
    session.execute("INSERT INTO bag VALUES (7), (7), (8)")
    session.execute("UPDATE bag SET v = 9 WHERE v = 8")
    session.execute("UPDATE bag SET v = 7 WHERE v = 7")  # changes nothing
    session.execute("DELETE FROM bag WHERE v = 7")
    kinds = [(7, "Insert"), (7, "Insert"), (8, "Insert"), (8, "UpdateDelete"), (9, "UpdateInsert")]
    assert changes(session) == [*kinds, (7, "Delete"), (7, "Delete")]
    session.execute("DROP TABLE bag CASCADE")


def test_a_view_is_followed_epoch_by_epoch(session: Connection) -> None:
    session.execute(
        "CREATE MATERIALIZED VIEW sizes AS SELECT length(v) AS n, count(*) AS rows FROM t GROUP BY length(v)"
    )
    session.execute("CREATE SUBSCRIPTION sizes_changes FROM sizes WITH (retention = '1D')")
    session.execute("DECLARE c SUBSCRIPTION CURSOR FOR sizes_changes FULL")
    assert rows(session, ALL) == [(3, 2, "Insert", None)]
    session.execute("INSERT INTO t VALUES (3, 'three'), (4, 'six')")
    session.execute("FLUSH")
    assert sorted(changes(session)) == [(3, 2, "UpdateDelete"), (3, 3, "UpdateInsert"), (5, 1, "Insert")]
    session.execute("DELETE FROM t WHERE k = 3")
    session.execute("FLUSH")
    assert changes(session) == [(5, 1, "Delete")]


def test_where_a_cursor_starts(session: Connection) -> None:
    session.execute("INSERT INTO t VALUES (3, 'three')")
    session.execute("INSERT INTO t VALUES (4, 'four')")
    session.execute("DECLARE b SUBSCRIPTION CURSOR FOR s SINCE BEGIN()")
    session.execute("DECLARE n SUBSCRIPTION CURSOR FOR public.s SINCE now()")
    session.execute("DECLARE p SUBSCRIPTION CURSOR FOR s SINCE proctime()")
    session.execute("DECLARE f SUBSCRIPTION CURSOR FOR s FULL")
    session.execute("INSERT INTO t VALUES (5, 'five')")
    begun = rows(session, "FETCH 9 FROM b")
    assert [row[0] for row in begun] == [3, 4, 5]
    assert [row[0] for row in rows(session, "FETCH 9 FROM n")] == [5]
    assert [row[0] for row in rows(session, "FETCH 9 FROM p")] == [5]
    assert [row[0] for row in rows(session, "FETCH 9 FROM f")] == [1, 2, 3, 4, 5]
    for number, row in enumerate(begun):
        session.execute(f"DECLARE x SUBSCRIPTION CURSOR FOR s SINCE {row[-1]}")
        assert rows(session, "FETCH 9 FROM x") == begun[number:]
        session.execute("CLOSE x")
        session.execute(f"DECLARE x SUBSCRIPTION CURSOR FOR s SINCE {row[-1] + 1}")
        assert rows(session, "FETCH 9 FROM x") == begun[number + 1 :]
        session.execute("CLOSE x")


def test_a_few_rows_at_a_time(session: Connection) -> None:
    session.execute("DECLARE c SUBSCRIPTION CURSOR FOR s")
    session.execute("INSERT INTO t SELECT i, 'many' FROM range(10, 50010) AS r (i)")
    session.execute("DELETE FROM t WHERE k = 1")
    assert changes(session, "FETCH NEXT FROM c") == [(10, "many", "Insert")]
    assert [row[0] for row in rows(session, "FETCH 20000 FROM c")] == list(range(11, 20011))
    assert session.execute("MOVE 29999 FROM c").statusmessage == "MOVE 29999"
    assert changes(session, "FETCH 2 c") == [(1, "one", "Delete")]
    assert changes(session, "FETCH 0 FROM c") == []
    assert refused(session, "FETCH PRIOR FROM c").sqlstate == "55000"
    session.execute("INSERT INTO t VALUES (1, 'again')")
    assert changes(session, "FETCH ALL FROM c") == [(1, "again", "Insert")]


def test_fetch_waits_for_a_change_but_not_for_ever(session: Connection, in_process_server: Server) -> None:
    session.execute("DECLARE c SUBSCRIPTION CURSOR FOR s")
    started = time.monotonic()
    assert changes(session, "FETCH NEXT FROM c WITH (timeout = '300ms')") == []
    assert 0.3 <= time.monotonic() - started < 3

    def write() -> None:
        time.sleep(0.3)
        with in_process_server.connect() as other:
            other.execute("INSERT INTO t VALUES (9, 'nine')")

    writer = threading.Thread(target=write)
    writer.start()
    started = time.monotonic()
    assert changes(session, "FETCH 5 FROM c WITH (timeout = '30s')") == [(9, "nine", "Insert")]
    assert time.monotonic() - started < 5
    writer.join()
    assert changes(session, "FETCH NEXT FROM c") == []  # at once


def test_a_waiting_fetch_can_be_stopped(session: Connection) -> None:
    session.execute("DECLARE c SUBSCRIPTION CURSOR FOR s")
    timer = threading.Timer(0.3, session.cancel)
    timer.start()
    started = time.monotonic()
    assert refused(session, "FETCH NEXT FROM c WITH (timeout = '1 hour')").sqlstate == "57014"
    assert time.monotonic() - started < 5
    timer.join()
    session.execute("SET statement_timeout = '200ms'")
    assert refused(session, "FETCH NEXT FROM c WITH (timeout = '1 hour')").sqlstate == "57014"
    session.execute("SET statement_timeout TO DEFAULT")
    session.execute("INSERT INTO t VALUES (3, 'three')")
    assert changes(session) == [(3, "three", "Insert")]


def test_extended_protocol_and_transaction_blocks(session: Connection) -> None:
    with session.transaction():
        session.execute("DECLARE c SUBSCRIPTION CURSOR FOR s")
    session.execute("INSERT INTO t VALUES (3, 'three')")
    assert session.execute("FETCH 5 FROM c", prepare=True, binary=True).fetchall()[0][:3] == (3, "three", "Insert")
    with pytest.raises(psycopg.DatabaseError), session.transaction():
        session.execute("SELECT 1/0")
    session.execute("INSERT INTO t VALUES (4, 'four')")
    assert changes(session) == [(4, "four", "Insert")]


def test_what_is_shown(session: Connection) -> None:
    assert rows(session, "SHOW SUBSCRIPTIONS") == [("s", 86400)]
    definition = "CREATE SUBSCRIPTION s FROM t WITH (retention = '1D')"
    assert rows(session, "SHOW CREATE SUBSCRIPTION s") == [("public.s", definition)]
    columns = "name, definition, retention_seconds, created_at IS NOT NULL"
    assert rows(session, f"SELECT {columns} FROM rw_subscriptions") == [("s", definition, 86400, True)]
    depend = (
        "SELECT count(*) FROM rw_depend d JOIN rw_subscriptions s ON s.id = d.objid JOIN rw_tables t ON t.id = refobjid"
    )
    assert rows(session, depend) == [(1,)]
    assert rows(session, "SELECT count(*) FROM pg_class WHERE relname = 's'") == [(0,)]
    session.execute("DECLARE c SUBSCRIPTION CURSOR FOR s")
    [shown] = rows(session, "SHOW SUBSCRIPTION CURSORS")
    assert shown[1:2] + shown[3:6] == ("root", "dev", "c", "s")
    assert rows(session, "SHOW CURSORS") == []
    session.execute("CLOSE c")
    assert rows(session, "SHOW SUBSCRIPTION CURSORS") == []


def test_names_and_dependents(session: Connection) -> None:
    assert refused(session, "CREATE SUBSCRIPTION s FROM t WITH (retention = '1D')").sqlstate == "42P07"
    session.execute("CREATE SUBSCRIPTION IF NOT EXISTS s FROM t WITH (retention = '1D')")
    session.execute("DECLARE c SUBSCRIPTION CURSOR FOR s")
    session.execute("ALTER SUBSCRIPTION s RENAME TO followed")
    session.execute("ALTER TABLE t RENAME TO renamed")
    definition = "CREATE SUBSCRIPTION followed FROM renamed WITH (retention = '1D')"
    assert rows(session, "SHOW CREATE SUBSCRIPTION followed") == [("public.followed", definition)]
    session.execute("INSERT INTO renamed VALUES (3, 'three')")
    assert changes(session) == [(3, "three", "Insert")]
    session.execute("CREATE SCHEMA elsewhere")
    session.execute("ALTER SUBSCRIPTION followed SET SCHEMA elsewhere")
    definition = "CREATE SUBSCRIPTION followed FROM public.renamed WITH (retention = '1D')"
    assert rows(session, "SHOW CREATE SUBSCRIPTION elsewhere.followed") == [("elsewhere.followed", definition)]
    error = refused(session, "DROP TABLE elsewhere.followed")
    assert (error.sqlstate, "DROP SUBSCRIPTION" in str(error)) == ("42809", True)
    assert session.execute("DROP SUBSCRIPTION elsewhere.followed").statusmessage == "DROP SUBSCRIPTION"
    session.execute("DROP SUBSCRIPTION IF EXISTS followed")
    assert refused(session, ALL).sqlstate == "42704"
    session.execute("DROP SCHEMA elsewhere")
    session.execute("ALTER TABLE renamed RENAME TO t")


def test_what_is_followed_is_dropped_with_its_subscriptions(session: Connection) -> None:
    session.execute("CREATE TABLE followed (k int)")
    session.execute("CREATE MATERIALIZED VIEW seen AS SELECT k FROM followed")
    session.execute("CREATE SUBSCRIPTION of_table FROM followed WITH (retention = '1D')")
    session.execute("CREATE SUBSCRIPTION of_view FROM seen WITH (retention = '1D')")
    session.execute("DECLARE open SUBSCRIPTION CURSOR FOR of_view")
    error = refused(session, "DROP TABLE followed")
    detail = "materialized view public.seen depends on it"
    assert (error.sqlstate, error.diag.message_detail.splitlines()[0]) == ("2BP01", detail)
    session.execute("DROP MATERIALIZED VIEW seen")
    assert refused(session, "FETCH NEXT FROM open").sqlstate == "42704"
    assert refused(session, "DROP SUBSCRIPTION of_view").sqlstate == "42704"
    session.execute("DROP TABLE followed")
    assert refused(session, "DROP SUBSCRIPTION of_table").sqlstate == "42704"


REFUSED = [
    ("CREATE SUBSCRIPTION x FROM nothing WITH (retention = '1D')", "42P01"),
    ("CREATE SUBSCRIPTION x FROM v WITH (retention = '1D')", "42809"),
    ("CREATE SUBSCRIPTION x FROM s WITH (retention = '1D')", "42P01"),
    ("CREATE SUBSCRIPTION x FROM t", "22023"),
    ("CREATE SUBSCRIPTION x FROM t WITH (retention = 'long')", "22023"),
    ("CREATE SUBSCRIPTION x FROM t WITH (retention = '0s')", "22023"),
    ("CREATE SUBSCRIPTION x FROM t WITH (keep = '1D')", "22023"),
    ("CREATE SUBSCRIPTION pg_class FROM t WITH (retention = '1D')", "42939"),
    ("SELECT * FROM s", "42P01"),
    ("INSERT INTO s VALUES (1)", "42809"),
    ("CREATE MATERIALIZED VIEW x AS SELECT * FROM s", "42P01"),
    ("DROP SUBSCRIPTION nothing", "42704"),
    ("DECLARE x SUBSCRIPTION CURSOR FOR nothing", "42704"),
    ("DECLARE x SUBSCRIPTION CURSOR FOR t", "42809"),
    ("DECLARE x SUBSCRIPTION CURSOR FOR s SINCE 1", "22023"),
    ("DECLARE x SUBSCRIPTION CURSOR FOR s SINCE 99999999999999", "22023"),
    ("DECLARE x SUBSCRIPTION CURSOR FOR s SINCE yesterday", "42601"),
    ("FETCH NEXT FROM x WITH (timeout = 'soon')", "22023"),
    ("FETCH NEXT FROM x WITH (timeout = '1s')", "34000"),
]


def test_what_is_refused(session: Connection) -> None:
    session.execute("CREATE VIEW v AS SELECT * FROM t")
    for sql, sqlstate in REFUSED:
        assert refused(session, sql).sqlstate == sqlstate, sql


def test_privileges(session: Connection, in_process_server: Server) -> None:
    session.execute("CREATE USER reader")
    with in_process_server.connect(user="reader") as reader:
        assert refused(reader, "DECLARE c SUBSCRIPTION CURSOR FOR s").sqlstate == "42501"
        session.execute("GRANT SELECT ON SUBSCRIPTION s TO reader")
        session.execute("GRANT SELECT ON t TO reader")
        reader.execute("DECLARE c SUBSCRIPTION CURSOR FOR s")
        session.execute("INSERT INTO t VALUES (3, 'three')")
        assert changes(reader) == [(3, "three", "Insert")]
        session.execute("REVOKE SELECT ON t FROM reader")
        assert refused(reader, ALL).sqlstate == "42501"
    session.execute("REVOKE SELECT ON SUBSCRIPTION s FROM reader")
    session.execute("DROP USER reader")


def test_a_view_that_is_being_created_cannot_be_subscribed(stuck_server: Server) -> None:
    with stuck_server.connect() as own:
        own.execute("CREATE TABLE t (k int)")
        own.execute("INSERT INTO t VALUES (1)")
        own.execute("SET background_ddl = true")
        threading.Thread(target=lambda: own_create(stuck_server), daemon=True).start()
        for _ in range(100):
            if rows(own, "SHOW JOBS"):
                break
            time.sleep(0.05)
        assert refused(own, "CREATE SUBSCRIPTION s FROM v WITH (retention = '1D')").sqlstate == "55000"


def own_create(server: Server) -> None:
    """Create a view that never gets ready."""
    with server.connect() as other:
        try:
            other.execute("CREATE MATERIALIZED VIEW v AS SELECT k FROM t")
        except psycopg.Error:
            return


@pytest.mark.long
def test_a_crash_loses_nothing_and_repeats_nothing(tmp_path: Path) -> None:
    """A client keeps the last timestamp that it has read whole; killed servers in between make no difference."""
    fetched: list[tuple[Any, ...]] = []
    since: int | None = None
    for part in range(2):
        server = Server(tmp_path / "data")
        with server.connect() as own:
            if not part:
                own.execute("CREATE TABLE t (k int PRIMARY KEY, v int)")
                own.execute("CREATE SUBSCRIPTION s FROM t WITH (retention = '1D')")
            own.execute(f"DECLARE c SUBSCRIPTION CURSOR FOR s {'SINCE BEGIN()' if since is None else f'SINCE {since}'}")
            for number in range(4):
                own.execute(f"INSERT INTO t VALUES ({number}, {part}), ({10 + number}, {part})")
            read = rows(own, "FETCH 5 FROM c")  # the last commit only half
            whole = [row for row in read if row[-1] != read[-1][-1]]
            fetched += whole
            since = read[-1][-1]
        server.kill()
    server = Server(tmp_path / "data")
    with server.connect() as own:
        own.execute(f"DECLARE c SUBSCRIPTION CURSOR FOR s SINCE {since}")
        fetched += rows(own, "FETCH ALL FROM c")
        own.execute("DECLARE b SUBSCRIPTION CURSOR FOR s SINCE BEGIN()")
        assert fetched == rows(own, "FETCH ALL FROM b")
        inserted = [(row[0], row[1]) for row in fetched if row[2] in ("Insert", "UpdateInsert")]
        order = [0, 10, 1, 11, 2, 12, 3, 13]
        assert inserted == [(k, part) for part in range(2) for k in order]
    server.kill()


def test_what_a_subscription_keeps(tmp_path: Path) -> None:
    """Old snapshots stay for as long as it says, from its making on, and not longer."""
    with opened(tmp_path) as (context, client):
        run(client, "CREATE TABLE t (k int PRIMARY KEY)", "INSERT INTO t VALUES (0)")
        run(client, "CREATE SUBSCRIPTION s FROM t WITH (retention = '1 hour')")
        run(client, "DECLARE early SUBSCRIPTION CURSOR FOR s")
        for number in range(1, 4):
            run(client, f"INSERT INTO t VALUES ({number})", f"DELETE FROM t WHERE k = {number - 1}", "FLUSH")
        forget(context)
        kinds = [(row[0], row[1]) for row in run(client, "FETCH ALL FROM early")]
        expected = [(1, "Insert"), (0, "Delete"), (2, "Insert"), (1, "Delete"), (3, "Insert"), (2, "Delete")]
        assert kinds == expected
        run(client, "DECLARE late SUBSCRIPTION CURSOR FOR s SINCE BEGIN()")
        assert [(row[0], row[1]) for row in run(client, "FETCH ALL FROM late")] == expected
        run(client, "DECLARE idle SUBSCRIPTION CURSOR FOR s", "INSERT INTO t VALUES (4)")
        with context.store.change() as cursor:
            cursor.execute("UPDATE lake.sparkwave.subscriptions SET retention_s = 0")
        run(client, "DELETE FROM t WHERE k = 4", "FLUSH", "INSERT INTO t VALUES (5)", "FLUSH")
        forget(context)
        with pytest.raises(Exception, match="recycled") as caught:
            run(client, "FETCH ALL FROM idle")
        assert getattr(caught.value, "sqlstate", "") == "72000"


def test_a_shorter_and_a_longer_retention(tmp_path: Path) -> None:
    """ALTER … SET RETENTION counts for the snapshots that the next clean-up keeps."""
    with opened(tmp_path) as (context, client):
        run(client, "CREATE TABLE t (k int PRIMARY KEY)")
        run(client, "CREATE SUBSCRIPTION s FROM t WITH (retention = '1s')")
        run(client, "ALTER SUBSCRIPTION s SET RETENTION = '1 hour'", "DECLARE c SUBSCRIPTION CURSOR FOR s")
        for number in range(2):
            run(client, f"INSERT INTO t VALUES ({number})", "FLUSH")
        time.sleep(1.1)
        forget(context)
        assert [row[0] for row in run(client, "FETCH ALL FROM c")] == [0, 1]
        run(client, "DECLARE idle SUBSCRIPTION CURSOR FOR s", "INSERT INTO t VALUES (2)", "FLUSH")
        run(client, "ALTER SUBSCRIPTION s SET RETENTION TO '1s'", "INSERT INTO t VALUES (3)", "FLUSH")
        time.sleep(1.1)
        run(client, "INSERT INTO t VALUES (4)", "FLUSH")
        forget(context)
        with pytest.raises(Exception, match="recycled"):
            run(client, "FETCH ALL FROM idle")
