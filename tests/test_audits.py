"""Checksums follow each change of a view's rows, and an audit finds rows that are not those of the query."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from servers import Server, sparkwave
from test_law import opened, run

from sparkwave.catalog import errors
from sparkwave.catalog.errors import Error
from sparkwave.catalog.lake.ducklake import Lake
from sparkwave.catalog.lake.storage import Storage
from sparkwave.catalog.model import Relation
from sparkwave.executor.epochs import duckdb_engine
from sparkwave.executor.epochs.script import Script
from sparkwave.executor.maintenance import audits
from sparkwave.server.context import Context
from sparkwave.server.dispatch import Client

TABLE = "CREATE TABLE t (k int PRIMARY KEY, g int, n numeric, f float8, s varchar, at interval, j jsonb, a int[])"
ROWS = (
    "INSERT INTO t SELECT i, i %% 7, i * 1.5, i / 7.0, 's' || i, i * interval '1 hour', '{\"a\": 1}', ARRAY[i, NULL] "
    "FROM generate_series(%d, %d) AS r(i)"
)
VIEWS = {
    "rows": "SELECT * FROM t WHERE k % 2 = 0",
    "groups": (
        "SELECT g, count(*) AS c, sum(n) AS n, avg(f) AS f, min(s) AS s, count(DISTINCT s) AS d FROM t GROUP BY g"
    ),
    "joined": "SELECT t.k, t.s, groups.c FROM t LEFT JOIN groups ON t.g = groups.g",
    "first": "SELECT k, n FROM t ORDER BY n DESC, k LIMIT 5",
    "nested": "SELECT max(c) AS c, sum(n) AS n FROM (SELECT g, count(*) AS c, sum(n) AS n FROM t GROUP BY g)",
    "none": "SELECT k FROM t WHERE k < 0",
}
CHANGES = (
    ROWS % (101, 300),
    "UPDATE t SET n = n + 1, f = f * 1.1, at = at + interval '1 day' WHERE k < 50",
    "DELETE FROM t WHERE k % 11 = 0",
    "UPDATE t SET g = NULL, s = NULL WHERE k % 13 = 0",
    ROWS % (1000, 2500),
    "DELETE FROM t",
)


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Context, Client]]:
    """A table with views, in memory and in the lake; each test leaves rows in the table and right views."""
    with opened(tmp_path_factory.mktemp("audits"), view_audit_interval_secs="0") as (context, client):
        fill(client)
        yield context, client


def fill(client: Client) -> None:
    for sql in (TABLE, ROWS % (1, 100), *(f"CREATE MATERIALIZED VIEW {name} AS {q}" for name, q in VIEWS.items())):
        run(client, sql)
    run(client, "CREATE INDEX by_g ON t (g)")


def audit(client: Client, name: str, kind: str = "MATERIALIZED VIEW") -> tuple[str, str, int, str | None]:
    """The result, checksum, number of rows and detail."""
    [(shown, result, checksum, rows, _, _, detail)] = run(client, f"AUDIT {kind} {name}")
    assert shown == f"public.{name}"
    return result, checksum, rows, detail  # type: ignore[return-value]


def test_checksums_follow_every_change(filled: tuple[Context, Client]) -> None:
    """What the epochs have recorded is the checksum of the stored rows, and those are the query's."""
    _, client = filled
    before = {name: run(client, f"SHOW CHECKSUM {name}")[0][1:] for name in VIEWS}
    for sql in CHANGES:
        run(client, sql)
        run(client, "FLUSH")
        for name in VIEWS:
            [(_, recorded, rows)] = run(client, f"SHOW CHECKSUM {name}")
            assert audit(client, name) == ("PROVEN", recorded, rows, None), (name, sql)
        assert audit(client, "by_g", "INDEX")[0] == "PROVEN"
    assert [run(client, f"SHOW CHECKSUM {name}")[0][2] for name in VIEWS] == [0, 0, 0, 0, 1, 0]
    assert run(client, "SHOW CHECKSUM rows")[0][1] == "0" * 16
    run(client, ROWS % (1, 100))
    run(client, "FLUSH")
    after = {name: run(client, f"SHOW CHECKSUM {name}")[0][1:] for name in VIEWS}
    assert {name for name in VIEWS if after[name] != before[name]} <= {"groups"}  # which adds floating-point numbers


def test_a_row_counts_as_often_as_it_is_there(filled: tuple[Context, Client]) -> None:
    _, client = filled
    run(client, "CREATE MATERIALIZED VIEW once AS SELECT 1 AS x FROM t WHERE k = 1")
    run(client, "CREATE MATERIALIZED VIEW twice AS SELECT 1 AS x FROM t WHERE k <= 2")
    [(_, one, _)], [(_, two, _)] = run(client, "SHOW CHECKSUM once"), run(client, "SHOW CHECKSUM twice")
    assert one != two


@pytest.mark.parametrize(
    ("sql", "name", "said"),
    [
        ("UPDATE lake.\"dev.public\".rows SET s = 'wrong' WHERE k = 10", "rows", "1 row is unexpected"),
        ('DELETE FROM lake."dev.public".groups WHERE g = 3', "groups", "1 row is missing"),
        ('INSERT INTO lake."dev.public".first FROM lake."dev.public".first LIMIT 2', "first", "2 rows are unexpected"),
    ],
)
def test_a_changed_row_is_found_and_mended(filled: tuple[Context, Client], sql: str, name: str, said: str) -> None:
    context, client = filled
    assert audit(client, name)[0] == "PROVEN"
    corrupt(context, sql)
    result, checksum, _, detail = audit(client, name)
    assert result == "DIFFERENT"
    assert said in str(detail)
    assert "those that epochs have written" in str(detail)  # something else has changed the rows
    shown = "SELECT result, evidence FROM rw_catalog.rw_view_audits ORDER BY started_at DESC LIMIT 1"
    [(result, evidence)] = run(client, shown)
    found = json.loads(str(evidence))
    assert (result, found["stored_checksum"]) == ("DIFFERENT", checksum)
    assert VIEWS[name] in found["definition"]
    assert found["differences"][0]["unexpected_rows"] or found["differences"][0]["missing_rows"]
    assert run(client, f"SELECT result FROM rw_view_checksums WHERE relation_name = '{name}'") == [("DIFFERENT",)]
    run(client, f"REFRESH MATERIALIZED VIEW {name} REBUILD")
    assert audit(client, name)[0] == "PROVEN"
    assert audit(client, name)[3] is None
    run(client, ROWS % (5000, 5010))
    run(client, "FLUSH")
    assert [audit(client, each)[::3] for each in VIEWS] == [("PROVEN", None)] * len(VIEWS)


@pytest.mark.parametrize(
    ("column", "change", "result"),
    [("mean", "1e-12", "PROVEN"), ("mean", "1e-6", "DIFFERENT"), ("total", "1e-12", "DIFFERENT")],
)
def test_last_digits_count_where_no_float_was_added(
    filled: tuple[Context, Client], column: str, change: str, result: str
) -> None:
    """A numeric made of a sum of floats depends on the order of the rows; a sum of numerics does not."""
    context, client = filled
    query = "SELECT g, round(avg(f)::numeric, 15) AS mean, sum(n) AS total FROM t GROUP BY g"
    run(client, f"CREATE MATERIALIZED VIEW means AS {query}")
    corrupt(context, f"""UPDATE lake."dev.public".means SET {column} = {column} + {change}::DECIMAL(38, 19)""")
    assert audit(client, "means")[0] == result
    run(client, "DROP MATERIALIZED VIEW means")


def test_a_view_that_something_else_depends_on_is_not_rebuilt(filled: tuple[Context, Client]) -> None:
    _, client = filled
    run(client, "CREATE TABLE target (g int PRIMARY KEY, c bigint)")
    run(client, "CREATE SINK delivered INTO target AS SELECT g, c FROM groups WHERE g IS NOT NULL")
    with pytest.raises(Error, match=r"cannot compute materialized view public\.groups anew") as raised:
        run(client, "REFRESH MATERIALIZED VIEW groups REBUILD")
    assert raised.value.detail == "sink public.delivered has delivered its rows"
    run(client, "DROP SINK delivered")
    run(client, "DROP TABLE target")


def corrupt(context: Context, sql: str) -> None:
    context.coordinator.checkpoints.run()
    with context.lake.transaction(context.lake.cursor()) as cursor:
        cursor.execute(sql)


def test_a_changed_state_is_found(filled: tuple[Context, Client]) -> None:
    context, client = filled
    [view] = (relation for relation in context.store.catalog.relations if relation.name == "nested")
    found = context.lake.cursor().execute(f"SELECT name FROM lake.sparkwave.states WHERE job_id = {view.id}")
    [(state,)] = found.fetchall()
    corrupt(context, f'DELETE FROM lake."dev.public"."{state}" WHERE "t.g" = 3')
    result, _, _, detail = audit(client, "nested")
    assert result == "DIFFERENT"
    assert str(detail).startswith("state ")
    run(client, "REFRESH MATERIALIZED VIEW nested REBUILD")
    assert audit(client, "nested")[0] == "PROVEN"


def test_a_wrong_delta_rule_is_found(filled: tuple[Context, Client], monkeypatch: pytest.MonkeyPatch) -> None:
    """Epochs have recorded the wrong rows, so the detail says that they wrote them."""
    _, client = filled
    made = duckdb_engine.script_of_few

    def wrong(*arguments: Any) -> Script:
        found = made(*arguments)
        if "k" not in found.applications[-1].added.columns or "s" not in found.applications[-1].added.columns:
            return found
        *others, (name, query) = found.tables
        return replace(found, tables=(*others, (name, f"SELECT * REPLACE (upper(s) AS s) FROM ({query})")))

    run(client, "SHOW CHECKSUM rows")
    monkeypatch.setattr(duckdb_engine, "script_of_few", wrong)
    for k in (402, 404):
        run(client, ROWS % (k, k))
        run(client, "FLUSH")
    result, _, _, detail = audit(client, "rows")
    assert result == "DIFFERENT"
    assert "epochs have written these rows" in str(detail)


def test_a_new_definition_has_a_checksum_of_its_own(filled: tuple[Context, Client]) -> None:
    _, client = filled
    [(_, before, _)] = run(client, "SHOW CHECKSUM rows")
    run(client, "ALTER MATERIALIZED VIEW rows AS SELECT * FROM t WHERE k % 2 = 1")
    [(_, after, rows)] = run(client, "SHOW CHECKSUM rows")
    assert before != after
    assert audit(client, "rows") == ("PROVEN", after, rows, None)
    run(client, "DROP MATERIALIZED VIEW first")
    assert run(client, "SELECT 1 FROM rw_view_checksums WHERE relation_name = 'first'") == []


def test_the_background_takes_the_views_in_turn(tmp_path: Path) -> None:
    with opened(tmp_path, view_audit_interval_secs="3600") as (context, client):
        fill(client)
        for _ in range(len(VIEWS) + 2):
            context.audits.run_once()
            context.audits._rest_until = 0.0
        found = run(client, "SELECT relation_name, result FROM rw_view_checksums")
        assert sorted(map(str, dict(found))) == sorted([*VIEWS, "by_g"])
        assert set(dict(found).values()) == {"PROVEN"}
        assert run(client, "SELECT count(*) FROM rw_view_audits") == [(len(VIEWS) + 1,)]
        run(client, "ALTER SYSTEM SET view_audit_interval_secs = 0")
        context.audits.results.clear()
        context.audits.run_once()
        assert run(client, "SELECT count(*) FROM rw_view_audits") == [(len(VIEWS) + 1,)]


@pytest.mark.parametrize(
    ("sql", "message", "sqlstate"),
    [
        ("AUDIT MATERIALIZED VIEW nope", 'materialized view "nope" does not exist', errors.UNDEFINED_OBJECT),
        ("AUDIT MATERIALIZED VIEW t", '"t" is not a materialized view', errors.WRONG_OBJECT_TYPE),
        ("SHOW CHECKSUM t", '"t" is not a materialized view or an index', errors.WRONG_OBJECT_TYPE),
        ("AUDIT rows", 'syntax error at or near "rows"', errors.SYNTAX_ERROR),
    ],
)
def test_mistakes(filled: tuple[Context, Client], sql: str, message: str, sqlstate: str) -> None:
    with pytest.raises(Error) as raised:
        run(filled[1], sql)
    assert (raised.value.message, raised.value.sqlstate) in ((message, sqlstate), (f"relation {message[18:]}", "42P01"))


def test_only_the_owner_sees_rows(filled: tuple[Context, Client]) -> None:
    context, client = filled
    run(client, "CREATE USER reader")
    corrupt(context, 'DELETE FROM lake."dev.public".joined WHERE k = 10')
    audit(client, "joined")
    newest = "SELECT result, detail, evidence FROM rw_view_audits ORDER BY started_at DESC"
    reader = Client(context, {"user": "reader"})
    with pytest.raises(Error, match="must be owner of materialized view joined"):
        run(reader, "AUDIT MATERIALIZED VIEW joined")
    with pytest.raises(Error, match="permission denied"):
        run(reader, "SHOW CHECKSUM joined")
    assert run(reader, f"{newest} LIMIT 1") == [("DIFFERENT", None, None)]


def test_checksums_outlive_a_kill(tmp_path: Path) -> None:
    """A checkpoint stores rows and checksums together, so both are of one epoch after a crash."""
    data = tmp_path / "data"
    server = Server(data)
    with server.connect() as own:
        for sql in (TABLE, ROWS % (1, 100), *(f"CREATE MATERIALIZED VIEW {name} AS {q}" for name, q in VIEWS.items())):
            own.execute(sql.encode())
        for name in VIEWS:
            own.execute(f"SHOW CHECKSUM {name}".encode())
        for step in range(6):  # some of these changes are stored, some are in memory only
            own.execute((ROWS % (1000 + 10 * step, 1009 + 10 * step)).encode())
            own.execute(f"UPDATE t SET n = n + 1 WHERE k % 7 = {step % 7}".encode())
            own.execute("FLUSH")
    server.kill()
    server = Server(data)
    try:
        with server.connect() as own:
            own.execute("FLUSH")
            for name in VIEWS:
                [(_, recorded, rows)] = own.execute(f"SHOW CHECKSUM {name}".encode()).fetchall()
                [audited] = own.execute(f"AUDIT MATERIALIZED VIEW {name}".encode()).fetchall()
                assert (*audited[1:4], audited[6]) == ("PROVEN", recorded, rows, None)
    finally:
        server.stop()


def test_an_audit_ends_with_its_client_and_its_server(
    filled: tuple[Context, Client], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A cancelled audit leaves no result; the next one begins at once."""
    context, client = filled
    relation = next(r for r in context.store.catalog.relations if r.name == "groups")
    slow = "CREATE OR REPLACE TEMPORARY TABLE slow AS SELECT count(*) FROM range(1000000) a, range(1000000) b"
    monkeypatch.setattr(audits, "compare", lambda cursor, *_: cursor.execute(slow))
    before = run(client, "SELECT count(*) FROM rw_view_audits")
    started = time.monotonic()
    run(client, "SET statement_timeout = 300")
    with pytest.raises(Error, match="statement timeout"):
        run(client, "AUDIT MATERIALIZED VIEW groups")
    run(client, "SET statement_timeout = 0")
    background = threading.Thread(target=lambda: outcome.append(ends(context, relation)))
    outcome: list[bool] = []
    background.start()
    time.sleep(0.3)
    context.audits.stop()
    background.join(10)
    assert outcome == [True]
    assert time.monotonic() - started < 10
    assert run(client, "SELECT count(*) FROM rw_view_audits") == before
    context.audits._is_stopping = False
    monkeypatch.undo()
    assert audit(client, "groups")[0] == "PROVEN"


def ends(context: Context, relation: Relation) -> bool:
    with pytest.raises(Error, match="the server stops"):
        context.audits.audit(relation)
    return True


def test_the_background_starts_no_spark(filled: tuple[Context, Client]) -> None:
    context, client = filled
    run(client, "ALTER SYSTEM SET backfill_in_process_rows = 0")
    relation = next(r for r in context.store.catalog.relations if r.name == "joined")
    done = context.audits.audit(relation)
    run(client, "ALTER SYSTEM SET backfill_in_process_rows = DEFAULT")
    assert (done.result, done.detail) == ("SKIPPED", "resource group default is not there")


@pytest.mark.long
def test_check_online(server: Server) -> None:
    """`sparkwave check --online` names each view that differs, and its exit code tells."""
    with server.connect() as own:
        view, index = "CREATE MATERIALIZED VIEW copied AS SELECT * FROM t", "CREATE INDEX i ON t (g)"
        for sql in (TABLE, ROWS % (1, 20), view, index):
            own.execute(sql.encode())
    done = sparkwave("check", "--online", "--listen", server.address)
    assert (done.returncode, done.stdout) == (0, "2 views and indexes compared with their queries: no findings\n")
    server.stop()
    with closing(Lake(Storage(server.data))) as lake, lake.transaction(lake.cursor()) as cursor:
        cursor.execute('DELETE FROM lake."dev.public".copied WHERE k = 7')
    again = Server(server.data)
    try:
        done = sparkwave("check", "--online", "--listen", again.address)
        assert done.returncode == 1
        assert done.stdout.startswith("materialized view public.copied: 1 row is missing: ")
        assert done.stdout.endswith("2 views and indexes compared with their queries: 1 findings\n")
    finally:
        again.stop()


@pytest.mark.long
def test_a_large_view_is_computed_on_spark(shared_server: Server) -> None:
    """As in process: states and views over views are compared, too."""
    with shared_server.connect() as own:
        own.execute("ALTER SYSTEM SET backfill_in_process_rows = 0")
        try:
            for sql in (TABLE, ROWS % (1, 100), *(f"CREATE MATERIALIZED VIEW {n} AS {q}" for n, q in VIEWS.items())):
                own.execute(sql.encode())
            own.execute("UPDATE t SET n = n + 1, f = f * 1.1 WHERE k < 50")
            own.execute("FLUSH")
            for name in VIEWS:
                [(_, result, _, _, engine, _, detail)] = own.execute(
                    f"AUDIT MATERIALIZED VIEW {name}".encode()
                ).fetchall()
                assert (result, engine, detail) == ("PROVEN", "spark", None)
        finally:
            own.execute("ALTER SYSTEM SET backfill_in_process_rows = DEFAULT")
            own.execute("DROP TABLE t CASCADE")
