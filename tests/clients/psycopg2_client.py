"""psycopg2: simple queries in blocks of its own making, COPY, named cursors, batches, cancelling."""

from __future__ import annotations

import datetime as dt
import io
import threading
from collections.abc import Iterator
from contextlib import closing
from decimal import Decimal
from typing import Any

import psycopg2
import psycopg2.extensions
import psycopg2.extras
import pytest
from conftest import ENDLESS

VALUES = [
    ("integer", -1),
    ("bigint", 2**62),
    ("numeric", Decimal("-1.50")),
    ("double precision", 0.1),
    ("boolean", False),
    ("varchar", "it's \\ žluť"),
    ("date", dt.date(1999, 12, 31)),
    ("time", dt.time(1, 2, 3)),
    ("timestamp", dt.datetime(2024, 1, 1, 1, 2, 3, 4)),
    ("timestamptz", dt.datetime(2024, 1, 1, 1, 2, 3, tzinfo=dt.UTC)),
    ("interval", dt.timedelta(days=1, seconds=3)),
    ("integer[]", [1, None, 3]),
    ("varchar[]", ["a", 'b"', "c,d", None]),
]


@pytest.fixture
def connection() -> Iterator[Any]:
    with closing(psycopg2.connect("")) as opened:
        opened.autocommit = True
        yield opened


@pytest.fixture
def cursor(connection: Any) -> Any:
    return connection.cursor()


def test_values(cursor: Any, name: str) -> None:
    columns = ", ".join(f"c{number} {type_}" for number, (type_, _) in enumerate(VALUES))
    cursor.execute(f"CREATE TABLE {name} (k int PRIMARY KEY, {columns})")
    row = tuple(value for _, value in VALUES)
    marks = ", ".join(["%s"] * len(VALUES))
    cursor.execute(f"INSERT INTO {name} VALUES (1, {marks}), (2, {marks})", (*row, *[None] * len(VALUES)))
    cursor.execute(f"SELECT * FROM {name} ORDER BY k")
    assert cursor.fetchall() == [(1, *row), (2, *[None] * len(VALUES))]
    for number, (type_, value) in enumerate(VALUES):
        cursor.execute(f"SELECT k, %s::{type_} FROM {name} WHERE c{number} = %s::{type_}", (value, value))
        assert cursor.fetchall() == [(1, value)]
    cursor.execute(f"DROP TABLE {name}")


def test_bytes_and_json(cursor: Any) -> None:
    cursor.execute("SELECT %s::bytea", (psycopg2.Binary(b"\x00\xff\\"),))
    assert bytes(cursor.fetchone()[0]) == b"\x00\xff\\"
    cursor.execute("SELECT %s::jsonb, %s::jsonb ->> 'b'", (psycopg2.extras.Json({"a": [1]}), '{"b": "c"}'))
    assert cursor.fetchone() == ({"a": [1]}, "c")


def test_lists_and_tuples(cursor: Any) -> None:
    cursor.execute("SELECT 1 WHERE 2 IN %s AND 'b' = ANY(%s)", ((1, 2, 3), ["a", "b"]))
    assert cursor.fetchall() == [(1,)]


def test_what_a_cursor_tells(cursor: Any, name: str) -> None:
    cursor.execute(f"CREATE TABLE {name} (k int PRIMARY KEY, v numeric(10,2))")
    assert cursor.description is None
    cursor.execute(f"INSERT INTO {name} VALUES (1, 2.5), (2, 3)")
    assert (cursor.rowcount, cursor.statusmessage) == (2, "INSERT 0 2")
    cursor.execute(f"SELECT k, v, v * 2 < 10 AS small FROM {name}")
    assert [(c.name, c.type_code) for c in cursor.description] == [("k", 23), ("v", 1700), ("small", 16)]
    assert (cursor.description[1].precision, cursor.description[1].scale) == (10, 2)
    cursor.execute(f"DROP TABLE {name}")


def test_batches(cursor: Any, name: str) -> None:
    cursor.execute(f"CREATE TABLE {name} (k int PRIMARY KEY, v varchar)")
    cursor.executemany(f"INSERT INTO {name} VALUES (%s, %s)", [(1, "a"), (2, "b")])
    psycopg2.extras.execute_batch(cursor, f"INSERT INTO {name} VALUES (%s, %s)", [(i, "c") for i in range(3, 53)])
    rows = [(i, "d") for i in range(53, 403)]
    psycopg2.extras.execute_values(cursor, f"INSERT INTO {name} VALUES %s", rows)
    returned = psycopg2.extras.execute_values(
        cursor, f"INSERT INTO {name} VALUES %s RETURNING k, upper(v)", [(500, "x"), (501, None)], fetch=True
    )
    assert returned == [(500, "X"), (501, None)]
    cursor.execute(f"SELECT v, count(*) FROM {name} GROUP BY v ORDER BY v NULLS LAST")
    assert cursor.fetchall() == [("a", 1), ("b", 1), ("c", 50), ("d", 350), ("x", 1), (None, 1)]
    cursor.execute(f"DROP TABLE {name}")


def test_rows_by_name(connection: Any) -> None:
    with connection.cursor(cursor_factory=psycopg2.extras.RealDictCursor) as cursor:
        cursor.execute("SELECT 1 AS a, NULL AS b")
        assert dict(cursor.fetchone()) == {"a": 1, "b": None}
    with connection.cursor(cursor_factory=psycopg2.extras.NamedTupleCursor) as cursor:
        cursor.execute("SELECT 1 AS a")
        assert cursor.fetchone().a == 1


def test_copy(cursor: Any, name: str) -> None:
    cursor.execute(f"CREATE TABLE {name} (k int PRIMARY KEY, v varchar)")
    cursor.copy_from(io.StringIO("1\ta\n2\t\\N\n"), name, columns=("k", "v"))
    assert cursor.rowcount == 2
    cursor.copy_expert(f"COPY {name} FROM STDIN WITH (FORMAT csv, HEADER)", io.StringIO('k,v\n3,"x,y"\n'))
    out = io.StringIO()
    cursor.copy_expert(f"COPY (SELECT * FROM {name} ORDER BY k) TO STDOUT WITH CSV HEADER", out)
    assert out.getvalue() == 'k,v\n1,a\n2,\n3,"x,y"\n'
    out = io.StringIO()
    cursor.copy_to(out, name, null="-", sep="|")
    assert sorted(out.getvalue().splitlines()) == ["1|a", "2|-", "3|x,y"]
    with pytest.raises(psycopg2.DataError):
        cursor.copy_expert(f"COPY {name} FROM STDIN", io.StringIO("x\ty\n"))
    cursor.execute(f"DROP TABLE {name}")


def test_named_cursors() -> None:
    with closing(psycopg2.connect("")) as connection:
        with connection.cursor("rows") as cursor:
            cursor.itersize = 100
            cursor.execute("SELECT i FROM generate_series(1, 1000) s (i)")
            assert sum(row[0] for row in cursor) == 500_500
        connection.commit()
        with connection.cursor("held", withhold=True) as cursor:
            cursor.execute("SELECT i FROM generate_series(1, 3) s (i)")
            connection.commit()
            assert cursor.fetchall() == [(1,), (2,), (3,)]


def test_blocks(name: str) -> None:
    """Without autocommit psycopg2 sends BEGIN first; what was committed is there for others."""
    with closing(psycopg2.connect("")) as connection, closing(psycopg2.connect("")) as other:
        with connection, connection.cursor() as cursor:
            cursor.execute(f"CREATE TABLE {name} (k int PRIMARY KEY)")
        with connection, connection.cursor() as cursor:
            cursor.execute(f"INSERT INTO {name} VALUES (1)")
        with other, other.cursor() as cursor:
            cursor.execute(f"SELECT * FROM {name}")
            assert cursor.fetchall() == [(1,)]
        with pytest.raises(psycopg2.errors.UndefinedTable), connection, connection.cursor() as cursor:
            cursor.execute("SELECT * FROM nowhere_to_be_found")
        connection.set_session(isolation_level="SERIALIZABLE", readonly=True, deferrable=True)
        with pytest.raises(psycopg2.errors.ReadOnlySqlTransaction), connection, connection.cursor() as cursor:
            cursor.execute(f"INSERT INTO {name} VALUES (2)")
        connection.set_session(readonly=False)
        with connection, connection.cursor() as cursor:
            cursor.execute(f"DROP TABLE {name}")


def test_errors(cursor: Any) -> None:
    for sql, error, code in [
        ("SELECT * FROM nowhere_to_be_found", psycopg2.errors.UndefinedTable, "42P01"),
        ("SELECT nope FROM pg_class", psycopg2.errors.UndefinedColumn, "42703"),
        ("SELECT 1/0", psycopg2.errors.DivisionByZero, "22012"),
        ("SELECT (", psycopg2.errors.SyntaxError, "42601"),
    ]:
        with pytest.raises(error) as caught:
            cursor.execute(sql)
        assert caught.value.pgcode == code


def test_notices(connection: Any, cursor: Any, name: str) -> None:
    cursor.execute(f"DROP TABLE IF EXISTS {name}")
    assert connection.notices == [f'NOTICE:  table "{name}" does not exist, skipping\n']


def test_cancel(connection: Any, cursor: Any) -> None:
    timer = threading.Timer(0.5, connection.cancel)
    timer.start()
    with pytest.raises(psycopg2.errors.QueryCanceled):
        cursor.execute(ENDLESS)
    timer.join()
    cursor.execute("SELECT 1")
    assert cursor.fetchone() == (1,)


def test_asynchronous() -> None:
    with closing(psycopg2.connect("", async_=True)) as connection:
        psycopg2.extras.wait_select(connection)
        cursor = connection.cursor()
        cursor.execute("SELECT 1; SELECT 2")
        psycopg2.extras.wait_select(connection)
        assert cursor.fetchall() == [(2,)]


def test_what_a_connection_knows(connection: Any) -> None:
    assert connection.server_version >= 130000
    assert connection.encoding == "UTF8"
    assert connection.get_parameter_status("integer_datetimes") == "on"
    connection.set_client_encoding("UTF8")
    assert connection.get_backend_pid() > 0
