"""CREATE FUNCTION … LANGUAGE python: code of users in processes of its own, in queries, writes and views."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest
from servers import Server, descendants, refused, rows, wait_until

Connection = psycopg.Connection[Any]

ENABLE = "ALTER SYSTEM SET enable_embedded_python_udf = true"
STEPS = """
def steps(n):
    if n < 0: raise ValueError(f"{n} is below one")
    count = 0
    while n > 1:
        n = n // 2 if n % 2 == 0 else 3 * n + 1
        count += 1
    return count
"""
# Code that reaches the modules that it may not import, as code can.
REACH = """
import collections
def reach(what):
    os = collections._sys.modules["os"]
    if what == "exit": os._exit(1)
    if what == "hang":
        while True: pass
    if what == "memory": return str(len([0] * 10**10))
    if what == "file": return collections._sys.modules["_io"].open("/etc/passwd").read()
    if what == "folder": return str(os.listdir("/"))
    if what == "fork": return str(os.fork())
    if what == "environment": return " ".join(sorted(os.environ))
    if what == "unlink": os.unlink("/nothing")
    if what == "kill": os.kill(os.getppid(), 0)
    return what
"""


def _function(name: str, arguments: str, result: str, code: str) -> str:
    return f"CREATE FUNCTION {name}({arguments}) RETURNS {result} LANGUAGE python IMMUTABLE AS $${code}$$"


@pytest.fixture(scope="module")
def own(in_process_server: Server) -> Iterator[Connection]:
    with in_process_server.connect() as opened:
        opened.execute(ENABLE)
        opened.execute("ALTER SYSTEM SET python_udf_timeout_ms = 2000")
        opened.execute(_function("steps", "n int", "int", STEPS))
        opened.execute(_function("reach", "what varchar", "varchar", REACH))
        yield opened


# A value of each type, and the expression by which Python sees it.
TYPES = [
    ("smallint", "-32768", "-32768"),
    ("int", "7", "7"),
    ("bigint", "9223372036854775807", "9223372036854775807"),
    ("real", "1.5", "1.5"),
    ("double precision", "1e300", "1e+300"),
    ("numeric", "1234567890.125", "Decimal('1234567890.125')"),
    ("numeric", "100", "Decimal('100')"),
    ("numeric(10,2)", "1.50", "Decimal('1.50')"),
    ("boolean", "true", "True"),
    ("varchar", "'grün'", "'grün'"),
    ("bytea", r"'\xdeadbeef'", r"b'\xde\xad\xbe\xef'"),
    ("date", "'2024-02-29'", "datetime.date(2024, 2, 29)"),
    ("time", "'12:30'", "datetime.time(12, 30)"),
    ("timestamp", "'2024-02-29 12:30:00.5'", "datetime.datetime(2024, 2, 29, 12, 30, 0, 500000)"),
    ("interval", "'1 month 2 days 3 seconds'", "MonthDayNano(months=1, days=2, nanoseconds=3000000000)"),
    ("jsonb", """'{"a": [1, null, "x"]}'""", "{'a': [1, None, 'x']}"),
    ("int[]", "'{1,NULL,3}'", "[1, None, 3]"),
    ("numeric[]", "'{1.50}'", "[Decimal('1.5')]"),
    ("struct<a int, b varchar>", "row(1, 'x')", "{'a': 1, 'b': 'x'}"),
    ("struct<a int, b varchar>[]", "array[row(1, 'x')]", "[{'a': 1, 'b': 'x'}]"),
]


@pytest.mark.long
@pytest.mark.parametrize(("number", "type_", "value", "seen"), [(n, *each) for n, each in enumerate(TYPES)])
def test_types(own: Connection, number: int, type_: str, value: str, seen: str) -> None:
    """A value of a type comes to Python and back; so does NULL."""
    own.execute(_function(f"same_{number}", f"v {type_}", type_, f"\ndef same_{number}(v): return v"))
    own.execute(_function(f"seen_{number}", f"v {type_}", "varchar", f"\ndef seen_{number}(v): return repr(v)"))
    given = f"CAST({value} AS {type_})"
    assert rows(own, f"SELECT seen_{number}({given}), seen_{number}(NULL)") == [(seen, "None")]
    assert rows(own, f"SELECT same_{number}({given}) IS NOT DISTINCT FROM {given}, same_{number}(NULL) IS NULL") == [
        (True, True)
    ]


def test_types_at_once(own: Connection) -> None:
    """The same for all types in one function."""
    types = [type_ for type_, _, _ in TYPES]
    names = [f"v{number}" for number in range(len(TYPES))]
    arguments = ", ".join(f"{name} {type_}" for name, type_ in zip(names, types, strict=True))
    code = f"\ndef all_types({', '.join(names)}): return [repr(v) for v in ({', '.join(names)})]"
    own.execute(_function("all_types", arguments, "varchar[]", code))
    given = ", ".join(f"CAST({value} AS {type_})" for type_, value, _ in TYPES)
    assert rows(own, f"SELECT all_types({given})") == [([seen for _, _, seen in TYPES],)]
    nulls = ", ".join("NULL" for _ in TYPES)
    assert rows(own, f"SELECT all_types({nulls})") == [(["None"] * len(TYPES),)]


def test_times_with_zone(own: Connection) -> None:
    own.execute(_function("later", "v timestamptz", "timestamptz", """
import datetime
def later(v):
    assert v.utcoffset() == datetime.timedelta(0)
    return v.astimezone(datetime.timezone(datetime.timedelta(hours=3))) + datetime.timedelta(hours=1)
"""))  # fmt: skip
    own.execute("SET timezone = 'Asia/Tokyo'")
    assert rows(own, "SELECT later('2024-01-01 12:00:00+00:00')::varchar") == [("2024-01-01 22:00:00+09",)]
    own.execute("RESET timezone")


@pytest.mark.parametrize(
    ("result", "expression", "message"),
    [
        ("smallint", "70000", "ArrowInvalid: Value 70000 too large to fit in C integer type"),
        ("int", "'7'", "TypeError: the function returned a value of type str, not int"),
        ("int", "True", "TypeError: the function returned a value of type bool, not int"),
        ("varchar", "7", "TypeError: the function returned a value of type int, not str"),
        ("numeric", "float('nan')", "ValueError: NaN is no value of type numeric"),
        ("numeric(4,2)", "100", "ArrowInvalid: Decimal type with precision 5 does not fit into precision inferred"),
        ("jsonb", "{1, 2}", "TypeError: a value of type set is no part of a JSON document"),
        ("int[]", "7", "TypeError: the function returned a value of type int, not list or tuple"),
        ("struct<a int>", "{'b': 1}", "ValueError: the returned row has a field b too many"),
    ],
)
@pytest.mark.long
def test_unfit_results(own: Connection, result: str, expression: str, message: str) -> None:
    name = f"unfit_{abs(hash((result, expression)))}"
    own.execute(_function(name, "", result, f"\ndef {name}(): return {expression}"))
    error = refused(own, f"SELECT {name}()")
    assert error.sqlstate == "38000"
    assert f"function {name}: {message}" in str(error)


def test_errors_in_queries(own: Connection) -> None:
    """The first row that fails fails the statement, with Python's message and the line."""
    error = refused(own, "SELECT steps(3 - x) FROM generate_series(1, 5000) s(x)")
    assert error.sqlstate == "38000"
    assert "function steps: ValueError: -1 is below one (line 3)" in str(error)
    assert rows(own, "SELECT steps(27), steps('9') + 1") == [(111, 20)]
    assert own.execute("SELECT steps(%s), steps(%s::int)", (27, 9)).fetchone() == (111, 19)
    assert refused(own, "SELECT steps(1, 2)").sqlstate == "42883"


def test_batches(own: Connection) -> None:
    found = own.execute("SELECT sum(steps(x::int)), count(*) FROM generate_series(1, 20000) s(x)").fetchone()

    def steps(n: int) -> int:
        count = 0
        while n > 1:
            n, count = n // 2 if n % 2 == 0 else 3 * n + 1, count + 1
        return count

    assert found == (sum(map(steps, range(1, 20001))), 20000)


@pytest.mark.long
@pytest.mark.parametrize(
    ("what", "sqlstate", "message"),
    [
        ("exit", "38000", "the process of function reach has ended unexpectedly"),
        ("hang", "38000", "function reach took too long"),
        ("memory", "53200", "function reach needs too much memory"),
        ("file", "38000", "function reach: PermissionError: [Errno 1] Operation not permitted"),
        ("folder", "38000", "function reach: PermissionError: [Errno 1] Operation not permitted"),
        ("unlink", "38000", "function reach: PermissionError: [Errno 1] Operation not permitted"),
        ("kill", "38000", "function reach: PermissionError: [Errno 1] Operation not permitted"),
        ("fork", "38000", "function reach: PermissionError: [Errno 1] Operation not permitted"),
    ],
)
def test_isolation(own: Connection, what: str, sqlstate: str, message: str) -> None:
    """Code does not get at the system, and its process is replaced."""
    error = refused(own, f"SELECT reach('{what}')")
    assert error.sqlstate == sqlstate
    assert message in str(error)
    assert rows(own, "SELECT reach('all is well')") == [("all is well",)]


def test_a_process_is_replaced(own: Connection) -> None:
    assert "the process of function reach has ended" in str(refused(own, "SELECT reach('exit')"))
    assert rows(own, "SELECT reach('all is well')") == [("all is well",)]


def test_nothing_is_inherited(own: Connection, in_process_server: Server) -> None:
    """A process has none of the server's environment, and of its open files only the two pipes."""
    [(found,)] = rows(own, "SELECT reach('environment')")
    allowed = {"PYTHONHASHSEED", "ARROW_DEFAULT_MEMORY_POOL", "MALLOC_ARENA_MAX", "LC_CTYPE", "LD_LIBRARY_PATH"}
    assert set(found.split()) <= allowed
    processes = [pid for pid in descendants(in_process_server.process.pid) if _runs_python_function(pid)]
    assert processes
    for pid in processes:
        files = [os.readlink(file) for file in Path(f"/proc/{pid}/fd").iterdir()]
        assert {file.partition(":")[0] for file in files} == {"/dev/null", "pipe"}
        assert sum(file.startswith("pipe:") for file in files) == 2


@pytest.mark.long
def test_two_sessions(own: Connection, in_process_server: Server) -> None:
    """Two sessions use one function at once, and one that hangs does not hold the other up."""
    found: list[object] = []

    def ask(sql: str) -> None:
        with in_process_server.connect() as other:
            try:
                found.append(other.execute(sql).fetchone())
            except psycopg.Error as error:
                found.append(error.sqlstate)

    asked = ["SELECT reach('hang')", "SELECT count(reach(x::varchar)) FROM generate_series(1, 5000) s(x)"]
    threads = [threading.Thread(target=ask, args=(sql,)) for sql in asked]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert found == [(5000,), "38000"]


def test_refused_code(own: Connection) -> None:
    error = refused(own, "CREATE FUNCTION f(a int) RETURNS int LANGUAGE python AS 'import socket'")
    assert error.sqlstate == "42P13"
    assert "module socket cannot be imported in a function (line 1)" in str(error)


CREATIONS = [
    ("f(a int) RETURNS int LANGUAGE python AS 'def f(a) return a'", "42P13", "SyntaxError: expected ':' (line 1)"),
    ("f(a int) RETURNS int LANGUAGE python AS 'def g(a): return a'", "42P13", "does not define a function f"),
    ("f(a int) RETURNS int LANGUAGE python AS 'def f(): return 1'", "42P13", "f cannot be called with 1 arguments"),
    ("f(a int) RETURNS int LANGUAGE python AS 'import socket'", "42P13", "module socket cannot be imported"),
    ("f(a int) RETURNS int LANGUAGE python AS 'while True: pass'", "38000", "function f took too long"),
    ("f(a uuid) RETURNS int LANGUAGE python AS 'def f(a): return 1'", "0A000", "type uuid is not supported"),
    ("f(a jsonb[]) RETURNS int LANGUAGE python AS 'def f(a): return 1'", "0A000", "type jsonb[] is not supported"),
    ("f(a int) RETURNS int LANGUAGE python VOLATILE AS 'def f(a): return 1'", "0A000", "VOLATILE is not supported"),
    ("f(a int) RETURNS int LANGUAGE python RETURN a", "42601", "code after AS"),
    ("f(a int) RETURNS int LANGUAGE java AS 'x'", "0A000", 'language "java" is not supported'),
    ("lower(a varchar) RETURNS varchar LANGUAGE python AS 'def lower(a): return a'", "42723", "built-in"),
]


@pytest.mark.long
@pytest.mark.parametrize(("sql", "sqlstate", "message"), CREATIONS)
def test_refused_creations(own: Connection, sql: str, sqlstate: str, message: str) -> None:
    error = refused(own, f"CREATE FUNCTION {sql}")
    assert error.sqlstate == sqlstate
    assert message in str(error)


def test_nulls(own: Connection) -> None:
    """NULL comes as None, or does not come with STRICT."""
    own.execute("CREATE FUNCTION is_none(a int) RETURNS boolean LANGUAGE python AS 'def is_none(a): return a is None'")
    own.execute(
        "CREATE FUNCTION is_none_strict(a int) RETURNS boolean STRICT LANGUAGE python AS "
        "'def is_none_strict(a): return a is None'"
    )
    assert rows(own, "SELECT is_none(NULL), is_none(1), is_none_strict(NULL), is_none_strict(1)") == [
        (True, False, None, False)
    ]


def test_catalogs(own: Connection) -> None:
    assert rows(own, "SELECT name, language FROM rw_functions WHERE name = 'steps'") == [("steps", "python")]
    assert rows(
        own,
        "SELECT p.proname, l.lanname, p.provolatile, p.prosrc FROM pg_proc p JOIN pg_language l ON l.oid = p.prolang "
        "WHERE proname = 'steps'",
    ) == [("steps", "python", "i", STEPS)]
    assert ("steps", "integer", "integer", "python", None) in rows(own, "SHOW FUNCTIONS")


def test_in_writes(own: Connection) -> None:
    own.execute("CREATE TABLE written (k int PRIMARY KEY, v int)")
    own.execute("INSERT INTO written SELECT x::int, steps(x::int) FROM generate_series(1, 4) s(x)")
    own.execute("INSERT INTO written VALUES (9, steps(9))")
    own.execute("UPDATE written SET v = steps(v) + 12 WHERE steps(k) = 7")
    own.execute("DELETE FROM written WHERE steps(k) < 2")
    assert rows(own, "SELECT * FROM written ORDER BY k") == [(3, 28), (4, 2), (9, 19)]


VIEW = (
    "SELECT label, count(*) AS n, sum(value) AS total FROM "
    "(SELECT steps(a) % 3 AS label, steps(a) + coalesce(steps(b), 0) AS value FROM {table}) AS x GROUP BY label"
)


def _check_view(own: Connection, table: str, view: str) -> None:
    """The view has what its query gives, where an error is NULL."""
    without = f"(SELECT CASE WHEN a >= 0 THEN a END AS a, CASE WHEN b >= 0 THEN b END AS b FROM {table}) AS y"
    query = VIEW.format(table=without).replace("steps(", "steps_or_null(")
    own.execute("FLUSH")
    assert sorted(rows(own, f"SELECT * FROM {view}"), key=repr) == sorted(rows(own, query), key=repr)


@pytest.fixture
def or_null(own: Connection) -> Iterator[None]:
    own.execute(
        "CREATE FUNCTION steps_or_null(n int) RETURNS int STRICT LANGUAGE python AS $$"
        f"{STEPS.replace('steps', 'steps_or_null')}$$"
    )
    yield
    own.execute("DROP FUNCTION steps_or_null")


def test_views(own: Connection, or_null: None) -> None:
    """A view is filled and maintained; rows whose code fails have NULL, and are counted."""
    own.execute("CREATE TABLE v_t (k int PRIMARY KEY, a int, b int)")
    own.execute("INSERT INTO v_t SELECT x::int, x::int % 50 - 2, x::int % 7 FROM generate_series(1, 100) s(x)")
    notices: list[str] = []
    own.add_notice_handler(lambda notice: notices.append(notice.message_primary or ""))
    own.execute(f"CREATE MATERIALIZED VIEW v_v AS {VIEW.format(table='v_t')}")
    assert notices[0].startswith("4 rows had expressions that failed and are NULL: function steps: ValueError: -")
    _check_view(own, "v_t", "v_v")
    own.execute("INSERT INTO v_t VALUES (9001, 27, NULL), (9002, -5, 1), (9003, NULL, NULL)")
    _check_view(own, "v_t", "v_v")
    own.execute("UPDATE v_t SET a = a + 1 WHERE k % 5 = 0")
    _check_view(own, "v_t", "v_v")
    own.execute("DELETE FROM v_t WHERE k % 3 = 0 OR k > 9000")
    _check_view(own, "v_t", "v_v")
    assert refused(own, "DROP FUNCTION steps").sqlstate == "2BP01"
    error = refused(
        own,
        "CREATE OR REPLACE FUNCTION steps(n int) RETURNS int LANGUAGE python AS 'def steps(n): return n'",
    )
    assert error.sqlstate == "2BP01"
    own.execute("DROP MATERIALIZED VIEW v_v")


@pytest.mark.long
def test_views_wait_for_a_process(own: Connection) -> None:
    """A view whose function's process fails keeps its rows, is said to have failed, and recovers."""
    own.execute("CREATE TABLE w_t (k varchar PRIMARY KEY)")
    own.execute("INSERT INTO w_t VALUES ('a')")
    own.execute("CREATE MATERIALIZED VIEW w_v AS SELECT k, reach(k) || '!' AS r FROM w_t")
    own.execute("INSERT INTO w_t VALUES ('exit')")
    own.execute("FLUSH")
    assert wait_until(lambda: "has failed" in str(_failure(own, "SELECT * FROM w_v")))
    assert "the process of function reach has ended unexpectedly" in str(_failure(own, "SELECT * FROM w_v"))
    own.execute("DELETE FROM w_t WHERE k = 'exit'")
    own.execute("INSERT INTO w_t VALUES ('b')")
    assert wait_until(lambda: _failure(own, "SELECT * FROM w_v") is None)
    own.execute("FLUSH")
    assert rows(own, "SELECT * FROM w_v ORDER BY k") == [("a", "a!"), ("b", "b!")]
    own.execute("DROP MATERIALIZED VIEW w_v")


def _failure(own: Connection, sql: str) -> psycopg.Error | None:
    try:
        own.execute(sql)
    except psycopg.Error as error:
        return error
    return None


def test_replacing(own: Connection) -> None:
    """A replaced function has the new code at once, in prepared statements too."""
    own.execute("CREATE FUNCTION which(a int) RETURNS int LANGUAGE python AS 'def which(a): return 1'")
    own.execute("PREPARE asked AS SELECT which(5)")
    assert rows(own, "EXECUTE asked") == [(1,)]
    own.execute("CREATE OR REPLACE FUNCTION which(a int) RETURNS int LANGUAGE python AS 'def which(a): return 2'")
    assert rows(own, "SELECT which(5)") == [(2,)]
    assert rows(own, "EXECUTE asked") == [(2,)]
    own.execute("CREATE OR REPLACE FUNCTION which(a int) RETURNS int LANGUAGE SQL RETURN a")
    assert rows(own, "SELECT which(5)") == [(5,)]
    own.execute("DROP FUNCTION which")
    assert refused(own, "SELECT which(5)").sqlstate == "42883"


def test_privileges(own: Connection, in_process_server: Server) -> None:
    own.execute("CREATE USER coder WITH PASSWORD 'x'")
    own.execute("GRANT CREATE ON SCHEMA public TO coder")
    own.execute(_function("secret_steps", "n int", "int", STEPS.replace("steps", "secret_steps")))
    own.execute("REVOKE EXECUTE ON FUNCTION secret_steps FROM public")
    name = rows(own, "SELECT id FROM rw_functions WHERE name = 'secret_steps'")[0][0]
    with in_process_server.connect(user="coder", password="x") as other:
        error = refused(other, _function("mine", "n int", "int", "def mine(n): return n"))
        assert error.sqlstate == "42501"
        assert "permission denied for language python" in str(error)
        assert rows(other, "SELECT steps(27)") == [(111,)]
        assert refused(other, "SELECT secret_steps(27)").sqlstate == "42501"
        assert refused(other, f"SELECT python_function_{name}_0(27)").sqlstate == "42883"


@pytest.mark.long
def test_disabled_by_default_and_after_a_restart(tmp_path: Path) -> None:
    """Without ALTER SYSTEM there are none; a restarted server has them, and views go on; none run once disabled."""
    server = Server(tmp_path / "data")
    create = _function("steps", "n int", "int", STEPS)
    with server.connect() as own:
        error = refused(own, create)
        assert error.sqlstate == "55000"
        assert "ALTER SYSTEM SET enable_embedded_python_udf = true" in str(error)
        own.execute("ALTER SYSTEM SET backfill_engine = auto")
        own.execute(ENABLE)
        own.execute(create)
        own.execute("CREATE TABLE t (k int PRIMARY KEY)")
        own.execute("INSERT INTO t VALUES (27)")
        own.execute("CREATE MATERIALIZED VIEW v AS SELECT k, steps(k) AS s FROM t")
        assert rows(own, "SELECT * FROM v") == [(27, 111)]
        of_python = [pid for pid in descendants(server.process.pid) if _runs_python_function(pid)]
        assert of_python
    server.stop()
    assert wait_until(lambda: not any(map(_runs_python_function, of_python)))
    server = Server(tmp_path / "data")
    try:
        with server.connect() as own:
            own.execute("INSERT INTO t VALUES (9)")
            own.execute("FLUSH")
            assert rows(own, "SELECT * FROM v ORDER BY k") == [(9, 19), (27, 111)]
            assert rows(own, "SELECT steps(9)") == [(19,)]
            own.execute("ALTER SYSTEM SET enable_embedded_python_udf = false")
            assert refused(own, "SELECT steps(9)").sqlstate == "55000"
            assert rows(own, "SELECT * FROM v ORDER BY k") == [(9, 19), (27, 111)]
    finally:
        server.kill()


def _runs_python_function(pid: int) -> bool:
    try:
        return b"The program of a process that runs the code" in Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return False


@pytest.mark.long
def test_on_spark(shared_server: Server) -> None:
    """A view that Spark's tasks fill and maintain has the rows of one in the server, with its failed rows counted."""
    with shared_server.connect() as own:
        own.execute(ENABLE)
        own.execute(_function("steps", "n int", "int", STEPS))
        own.execute("CREATE TABLE py_t (k int PRIMARY KEY, a int, b int)")
        own.execute("INSERT INTO py_t SELECT x::int, x::int % 50 - 2, x::int % 7 FROM generate_series(1, 500) s(x)")
        notices: list[str] = []
        own.add_notice_handler(lambda notice: notices.append(notice.message_primary or ""))
        own.execute(f"CREATE MATERIALIZED VIEW py_v AS {VIEW.format(table='py_t')}")
        assert notices[-1].startswith("20 rows had expressions that failed and are NULL: function steps: ValueError: -")
        query = VIEW.format(table="(SELECT CASE WHEN a >= 0 THEN a END AS a, b FROM py_t) AS y")
        query = query.replace("steps(a)", "CASE WHEN a IS NOT NULL THEN steps(a) END")
        assert sorted(rows(own, "SELECT * FROM py_v"), key=repr) == sorted(rows(own, query), key=repr)
        own.execute("ALTER SYSTEM SET streaming_engine = spark")
        try:
            own.execute("UPDATE py_t SET a = a + 1 WHERE k % 5 = 0")
            own.execute("DELETE FROM py_t WHERE k % 3 = 0")
            own.execute("FLUSH")
        finally:
            own.execute("ALTER SYSTEM SET streaming_engine = auto")
        assert sorted(rows(own, "SELECT * FROM py_v"), key=repr) == sorted(rows(own, query), key=repr)
        own.execute("DROP MATERIALIZED VIEW py_v")
        own.execute("DROP TABLE py_t")
        own.execute("DROP FUNCTION steps")
        own.execute("ALTER SYSTEM SET enable_embedded_python_udf = false")
