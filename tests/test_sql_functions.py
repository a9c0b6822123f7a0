"""CREATE FUNCTION … LANGUAGE SQL: functions are what their expressions are, in queries, writes and views."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import psycopg
import pytest
from servers import Server, refused, rows

Connection = psycopg.Connection[Any]


@pytest.fixture(scope="module")
def own(in_process_server: Server) -> Iterator[Connection]:
    with in_process_server.connect() as opened:
        opened.execute("CREATE TABLE t (k int PRIMARY KEY, v varchar)")
        opened.execute("INSERT INTO t VALUES (1, 'one'), (2, NULL), (3, 'three')")
        opened.execute("CREATE FUNCTION add2(a int, b int) RETURNS int LANGUAGE SQL AS $$ SELECT a + b $$")
        opened.execute("CREATE FUNCTION twice(int) RETURNS bigint LANGUAGE SQL AS 'SELECT add2($1, $1)'")
        opened.execute("create function label(v varchar) returns varchar language sql return coalesce(v, 'none')")
        opened.execute("CREATE FUNCTION seven() RETURNS int AS 'select 7' LANGUAGE sql IMMUTABLE")
        yield opened


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        ("add2(1, 2)", 3),
        ("public.add2(1, add2(2, 3))", 6),
        ("dev.public.twice(4)", 8),
        ("ADD2(1, NULL)", None),
        ("twice(1 + 1) * 2", 8),
        ("label(NULL)", "none"),
        ("label(upper('x')) || '!'", "X!"),
        ("seven() + 1", 8),
        ("add2('1', 2)", 3),
        ("(SELECT max(add2(k, 1)) FROM t)", 4),
        ("pg_typeof(twice(1))::varchar", "bigint"),
    ],
)
def test_in_expressions(own: Connection, expression: str, value: object) -> None:
    assert rows(own, f"SELECT {expression}") == [(value,)]


def test_in_queries_and_writes(own: Connection) -> None:
    found = own.execute("SELECT k, label(v), add2(k, %s) FROM t WHERE twice(k) > %s ORDER BY add2(0, k) DESC", (10, 2))
    assert [column.name for column in found.description or ()] == ["k", "label", "add2"]
    assert found.fetchall() == [(3, "three", 13), (2, "none", 12)]
    assert rows(own, "SELECT label(v), count(*) FROM t GROUP BY label(v) ORDER BY 1") == [
        ("none", 1), ("one", 1), ("three", 1),
    ]  # fmt: skip
    own.execute("CREATE TABLE written (k int PRIMARY KEY, v varchar)")
    own.execute("INSERT INTO written SELECT twice(k)::int, label(v) FROM t")
    own.execute("INSERT INTO written VALUES (seven(), label('v'))")
    assert own.execute("UPDATE written SET v = label(NULL) WHERE k = twice(1) RETURNING label(v)").fetchall() == [
        ("none",)
    ]
    own.execute("DELETE FROM written WHERE k = add2(2, 2)")
    assert sorted(rows(own, "SELECT * FROM written")) == [(2, "none"), (6, "three"), (7, "v")]


def test_in_views(own: Connection) -> None:
    own.execute("CREATE VIEW plain AS SELECT k, label(v) FROM t")
    own.execute("CREATE MATERIALIZED VIEW kept AS SELECT label(v), sum(twice(k)) AS total FROM t GROUP BY label(v)")
    assert sorted(rows(own, "SELECT k, label FROM plain")) == [(1, "one"), (2, "none"), (3, "three")]
    assert sorted(rows(own, "SELECT * FROM kept")) == [("none", 4), ("one", 2), ("three", 6)]
    own.execute("INSERT INTO t VALUES (4, NULL)")
    own.execute("FLUSH")
    assert sorted(rows(own, "SELECT * FROM kept")) == [("none", 12), ("one", 2), ("three", 6)]
    own.execute("CREATE MATERIALIZED VIEW above AS SELECT add2(k, 1) AS k FROM plain WHERE label = 'none'")
    assert sorted(rows(own, "SELECT * FROM above")) == [(3,), (5,)]
    error = refused(own, "DROP FUNCTION label(varchar)")
    assert (error.sqlstate, error.diag.message_hint) == ("2BP01", "DROP the dependent objects first.")
    assert error.diag.message_detail == "view public.plain depends on it\nmaterialized view public.kept depends on it"
    assert refused(own, "DROP FUNCTION add2").diag.message_detail == (
        "materialized view public.above depends on it\nfunction public.twice depends on it"
    )
    own.execute("DELETE FROM t WHERE k = 4")
    for view in ("MATERIALIZED VIEW above", "MATERIALIZED VIEW kept", "VIEW plain"):
        own.execute(f"DROP {view}")


def test_in_other_schemas(own: Connection) -> None:
    own.execute("CREATE SCHEMA tools")
    own.execute("CREATE FUNCTION tools.half(x int) RETURNS int LANGUAGE SQL RETURN x / 2")
    assert refused(own, "SELECT half(4)").sqlstate == "42883"
    assert rows(own, "SELECT tools.half(4)") == [(2,)]
    own.execute("SET search_path = public, tools")
    own.execute("CREATE VIEW halves AS SELECT half(k) AS h, tools.half(k) AS same FROM t")
    own.execute("SET search_path TO DEFAULT")
    assert sorted(rows(own, "SELECT * FROM halves")) == [(0, 0), (1, 1), (1, 1)]
    assert "tools.half(k) AS h, tools.half(k)" in rows(own, "SHOW CREATE VIEW halves")[0][1]
    assert refused(own, "ALTER SCHEMA tools RENAME TO kit").sqlstate == "2BP01"
    assert refused(own, "DROP SCHEMA tools CASCADE").sqlstate == "2BP01"
    assert refused(own, "DROP SCHEMA tools").diag.message_detail == "function tools.half is in it"
    own.execute("DROP VIEW halves")
    own.execute("ALTER SCHEMA tools RENAME TO kit")
    assert rows(own, "SELECT kit.half(4)") == [(2,)]
    own.execute("DROP SCHEMA kit CASCADE")
    assert refused(own, "SELECT kit.half(4)").sqlstate in ("42883", "3F000", "42P01")


def test_what_is_shown(own: Connection) -> None:
    assert rows(own, "SHOW FUNCTIONS") == [
        ("add2", "integer, integer", "integer", "sql", None),
        ("label", "character varying", "character varying", "sql", None),
        ("seven", "", "integer", "sql", None),
        ("twice", "integer", "bigint", "sql", None),
    ]
    query = "SELECT name, type, arg_type_ids, return_type_id, language FROM rw_functions ORDER BY name LIMIT 2"
    assert rows(own, query) == [("add2", "scalar", [23, 23], 23, "sql"), ("label", "scalar", [1043], 1043, "sql")]
    query = "SELECT proname, pronargs, prorettype, proargnames, prosrc FROM pg_proc WHERE proname IN ('add2', 'twice')"
    assert sorted(rows(own, query)) == [("add2", 2, 23, ["a", "b"], "a + b"), ("twice", 1, 20, None, "add2($1, $1)")]
    assert rows(own, "SHOW CREATE FUNCTION seven") == [
        ("public.seven", "CREATE FUNCTION seven() RETURNS integer LANGUAGE sql AS $$select 7$$")
    ]


def test_create_and_drop(own: Connection) -> None:
    created = own.execute("CREATE FUNCTION tmp(a int) RETURNS int LANGUAGE SQL RETURN a")
    assert created.statusmessage == "CREATE FUNCTION"
    assert refused(own, "CREATE FUNCTION tmp(b int) RETURNS int LANGUAGE SQL RETURN b").sqlstate == "42723"
    own.execute("CREATE FUNCTION IF NOT EXISTS tmp(a int) RETURNS int LANGUAGE SQL RETURN a")
    own.execute("CREATE FUNCTION tmp(a int, b int) RETURNS int LANGUAGE SQL RETURN a - b")
    assert rows(own, "SELECT tmp(5), tmp(5, 2)") == [(5, 3)]
    assert refused(own, "SELECT tmp(1, 2, 3)").sqlstate == "42883"
    assert refused(own, "DROP FUNCTION tmp").sqlstate == "42725"
    assert own.execute("DROP FUNCTION tmp(int), tmp(int, int)").statusmessage == "DROP FUNCTION"
    assert refused(own, "DROP FUNCTION tmp").sqlstate == "42883"
    own.execute("DROP FUNCTION IF EXISTS tmp(int)")
    assert refused(own, "SELECT tmp(5)").sqlstate == "42883"


@pytest.mark.parametrize(
    ("sql", "sqlstate"),
    [
        ("f(a int) RETURNS int LANGUAGE python AS 'return a'", "55000"),
        ("f(a int) RETURNS int LANGUAGE javascript AS $$ return a $$", "0A000"),
        ("f(a int) RETURNS int AS 'SELECT a'", "42P13"),
        ("f(a int) LANGUAGE SQL AS 'SELECT a'", "42P13"),
        ("f(a int) RETURNS int LANGUAGE SQL", "42P13"),
        ("f(a int) RETURNS int LANGUAGE SQL AS 'SELECT b'", "42703"),
        ("f(a int) RETURNS int LANGUAGE SQL AS 'SELECT $2'", "42P02"),
        ("f(a int) RETURNS int LANGUAGE SQL AS 'SELECT no_such(a)'", "42883"),
        ("f(a int) RETURNS int LANGUAGE SQL AS 'SELECT f(a)'", "42P13"),
        ("f(a int) RETURNS int LANGUAGE SQL AS 'SELECT a, a'", "42P13"),
        ("f(a int) RETURNS int LANGUAGE SQL AS 'DELETE FROM t'", "0A000"),
        ("f(a int) RETURNS int LANGUAGE SQL AS 'SELECT a +'", "42601"),
        ("f(a int) RETURNS int LANGUAGE SQL AS 'SELECT label(''x'')'", "42P13"),
        ("f(a int, a int) RETURNS int LANGUAGE SQL AS 'SELECT a'", "42P13"),
        ("f(a no_type) RETURNS int LANGUAGE SQL AS 'SELECT 1'", "42704"),
        ("f(a int) RETURNS no_type LANGUAGE SQL AS 'SELECT 1'", "42704"),
        ("upper(a varchar) RETURNS varchar LANGUAGE SQL AS 'SELECT a'", "42723"),
        ("f(a int) RETURNS int LANGUAGE SQL AS 'SELECT a' RETURN a", "42601"),
    ],
)
def test_what_is_refused(own: Connection, sql: str, sqlstate: str) -> None:
    error = refused(own, f"CREATE FUNCTION {sql}")
    assert error.sqlstate == sqlstate, str(error)


def test_indexes_call_functions(own: Connection) -> None:
    """Else the index could not be planned at the next start."""
    own.execute("CREATE FUNCTION doubled(a int) RETURNS int LANGUAGE SQL RETURN a + a")
    own.execute("CREATE INDEX by_double ON t (doubled(k))")
    error = refused(own, "DROP FUNCTION doubled")
    assert error.sqlstate == "2BP01"
    assert "index public.by_double depends on it" in str(error)
    own.execute("DROP INDEX by_double")
    own.execute("DROP FUNCTION doubled")


def test_volatile_arguments_and_size(own: Connection) -> None:
    own.execute("CREATE FUNCTION both(a double precision) RETURNS double precision LANGUAGE SQL RETURN a - a")
    assert refused(own, "SELECT both(random())").sqlstate == "0A000"
    assert rows(own, "SELECT both(1.5)") == [(0.0,)]
    nested = "both(" * 15 + "1" + ")" * 15
    assert refused(own, f"SELECT {nested}").sqlstate == "54000"
    own.execute("DROP FUNCTION both")


@pytest.mark.long
def test_after_a_restart(tmp_path: Path) -> None:
    server = Server(tmp_path / "data")
    with server.connect() as own:
        own.execute("ALTER SYSTEM SET backfill_engine = auto")
        own.execute("CREATE TABLE t (k int)")
        own.execute("CREATE FUNCTION plus(a int) RETURNS int LANGUAGE SQL RETURN a + 1")
        own.execute("CREATE MATERIALIZED VIEW m AS SELECT sum(plus(k)) AS total FROM t")
    server.kill()
    server = Server(tmp_path / "data")
    with server.connect() as own:
        own.execute("INSERT INTO t VALUES (1), (2)")
        own.execute("FLUSH")
        assert rows(own, "SELECT * FROM m") == [(5,)]
        assert rows(own, "SELECT plus(1)") == [(2,)]
    server.kill()


def test_or_replace(own: Connection) -> None:
    own.execute("CREATE OR REPLACE FUNCTION plus(a int) RETURNS int LANGUAGE SQL RETURN a + 1")
    own.execute("CREATE OR REPLACE FUNCTION plus(b int) RETURNS int LANGUAGE SQL RETURN b + 2")
    assert rows(own, "SELECT plus(1)") == [(3,)]
    error = refused(own, "CREATE OR REPLACE FUNCTION plus(a int) RETURNS bigint LANGUAGE SQL RETURN a")
    assert (error.sqlstate, error.diag.message_hint) == ("42P13", "Use DROP FUNCTION plus(integer) first.")
    own.execute("CREATE MATERIALIZED VIEW added AS SELECT plus(k) FROM t")
    own.execute("CREATE OR REPLACE FUNCTION plus(b int) RETURNS int LANGUAGE SQL RETURN b + 2")  # as it is
    error = refused(own, "CREATE OR REPLACE FUNCTION plus(b int) RETURNS int LANGUAGE SQL RETURN b + 3")
    assert (error.sqlstate, error.diag.message_detail) == ("2BP01", "materialized view public.added depends on it")
    own.execute("DROP MATERIALIZED VIEW added")
    own.execute("DROP FUNCTION plus")


def test_views_are_created_while_another_client_drops_functions(in_process_server: Server, own: Connection) -> None:
    """A plan that another statement has outdated is made again, and is not outdated by what the view does not read."""
    has_ended, dropped = threading.Event(), []

    def drop_functions() -> None:
        with in_process_server.connect() as other:
            while not has_ended.is_set():
                other.execute("CREATE FUNCTION halved(a int) RETURNS int LANGUAGE SQL RETURN a / 2")
                other.execute("DROP FUNCTION halved")
                dropped.append(1)

    thread = threading.Thread(target=drop_functions)
    thread.start()
    try:
        for number in range(8):
            own.execute(f"CREATE MATERIALIZED VIEW beside_{number} AS SELECT add2(k, {number}) AS x FROM t".encode())
    finally:
        has_ended.set()
        thread.join()
    assert dropped


def test_the_types_of_parameters_choose_a_function(own: Connection) -> None:
    for type_ in ("smallint", "varchar", "numeric"):
        own.execute(f"CREATE FUNCTION kind(a {type_}) RETURNS varchar LANGUAGE SQL RETURN '{type_}'")
    given = (1, Decimal("1.5"), "a", None)
    assert [own.execute("SELECT kind(%s)", (value,)).fetchone() for value in given] == [
        ("smallint",), ("numeric",), ("varchar",), ("varchar",),
    ]  # fmt: skip
    own.execute("CREATE TABLE kinds (kind varchar)")
    own.execute("INSERT INTO kinds VALUES (kind(%s))", (1,))
    own.execute("UPDATE kinds SET kind = kind || kind(%s)", (Decimal(1),))
    assert own.execute("SELECT * FROM kinds").fetchall() == [("smallintnumeric",)]
