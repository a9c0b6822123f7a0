"""psycopg 3: text and binary, prepared statements, pipelines, cursors, COPY, cancelling, and the same on asyncio."""

from __future__ import annotations

import asyncio
import datetime as dt
import threading
import time
from collections.abc import Iterator
from decimal import Decimal
from typing import Any

import psycopg
import pytest
from conftest import ENDLESS
from psycopg.rows import class_row, dict_row, namedtuple_row
from psycopg.types import TypeInfo
from psycopg.types.json import Jsonb

VALUES = [
    ("smallint", -32768),
    ("integer", -2147483648),
    ("bigint", 2**63 - 1),
    ("real", -0.5),
    ("double precision", 1e300),
    ("numeric", Decimal("-12345.678")),
    ("boolean", True),
    ("varchar", "žluť 'quoted' \\ back"),
    ("text", ""),
    ("bytea", b"\x00\xff\\x"),
    ("date", dt.date(2024, 2, 29)),
    ("time", dt.time(23, 59, 59, 123456)),
    ("timestamp", dt.datetime(2024, 2, 29, 12, 30, 0, 1)),
    ("timestamptz", dt.datetime(2024, 2, 29, 12, 30, tzinfo=dt.UTC)),
    ("interval", dt.timedelta(days=3, hours=-2, microseconds=5)),
    ("jsonb", {"a": [1, None, "x"], "b": {"c": 1.5}}),
    ("integer[]", [1, None, -3]),
    ("varchar[]", ["a,b", '"', "", None, "NULL"]),
    ("numeric[]", [Decimal("1.50"), None]),
    ("timestamp[]", [dt.datetime(2024, 1, 1)]),
]


@pytest.fixture
def connection() -> Iterator[psycopg.Connection[Any]]:
    with psycopg.connect(autocommit=True) as opened:
        yield opened


@pytest.fixture(scope="module")
def values_table() -> Iterator[str]:
    """A table with a column of each type, c0, c1, …, and a row with the values; as text and as binary."""
    columns = ", ".join(f"c{number} {type_}" for number, (type_, _) in enumerate(VALUES))
    with psycopg.connect(autocommit=True) as connection:
        connection.execute(f"CREATE TABLE all_types (k int PRIMARY KEY, {columns})")
        insert_row(connection, 1, binary=False)
        yield "all_types"
        connection.execute("DROP TABLE all_types")


def insert_row(connection: psycopg.Connection[Any], k: int, binary: bool) -> None:
    sent = [Jsonb(value) if type_ == "jsonb" else value for type_, value in VALUES]
    placeholders = ["%b" if binary and type_ != "jsonb" else "%s" for type_, _ in VALUES]
    connection.execute(f"INSERT INTO all_types VALUES ({k}, {', '.join(placeholders)})", sent)


@pytest.mark.parametrize("binary", [False, True], ids=["text", "binary"])
def test_a_row_of_every_type(connection: psycopg.Connection[Any], values_table: str, binary: bool) -> None:
    if binary:
        connection.execute(f"DELETE FROM {values_table}")
        insert_row(connection, 1, binary=True)
    cursor = connection.cursor(binary=binary)
    (row,) = cursor.execute(f"SELECT * FROM {values_table}").fetchall()
    assert row == (1, *(value for _, value in VALUES))


@pytest.mark.parametrize("binary", [False, True], ids=["text", "binary"])
@pytest.mark.parametrize(("type_", "value"), VALUES, ids=[type_ for type_, _ in VALUES])
def test_values_go_there_and_back(
    connection: psycopg.Connection[Any], values_table: str, type_: str, value: Any, binary: bool
) -> None:
    sent = Jsonb(value) if type_ == "jsonb" else value
    placeholder = "%b" if binary and type_ != "jsonb" else "%s"
    cursor = connection.cursor(binary=binary)
    assert cursor.execute(f"SELECT {placeholder}::{type_}", [sent]).fetchone() == (value,)
    assert cursor.execute(f"SELECT %s::{type_}", [None]).fetchone() == (None,)
    if type_ != "jsonb":
        column = f"c{[one for one, _ in VALUES].index(type_)}"
        found = cursor.execute(f"SELECT k FROM {values_table} WHERE {column} = {placeholder}::{type_}", [sent])
        assert found.fetchall() == [(1,)]


def test_row_factories(connection: psycopg.Connection[Any]) -> None:
    sql = "SELECT 1 AS a, 'x' AS b"
    assert connection.cursor(row_factory=dict_row).execute(sql).fetchone() == {"a": 1, "b": "x"}
    named = connection.cursor(row_factory=namedtuple_row).execute(sql).fetchone()
    assert (named.a, named.b) == (1, "x")
    made = connection.cursor(row_factory=class_row(dict)).execute(sql).fetchone()
    assert made == {"a": 1, "b": "x"}


def test_what_a_cursor_tells(connection: psycopg.Connection[Any], name: str) -> None:
    cursor = connection.execute(f"CREATE TABLE {name} (k int PRIMARY KEY, v numeric(10,2))")
    assert cursor.description is None
    cursor.execute(f"INSERT INTO {name} SELECT i, i FROM generate_series(1, 5) s (i)")
    assert (cursor.rowcount, cursor.statusmessage) == (5, "INSERT 0 5")
    assert cursor.execute(f"UPDATE {name} SET v = 0 WHERE k > 2").rowcount == 3
    cursor.execute(f"SELECT k, v, k + 1, now() FROM {name}")
    assert [(c.name, c.type_display) for c in cursor.description or ()] == [
        ("k", "int4"), ("v", "numeric(10,2)"), ("?column?", "int4"), ("now", "timestamptz"),
    ]  # fmt: skip
    assert cursor.rowcount == 5
    assert cursor.execute(f"DELETE FROM {name} WHERE k = %s", [1]).rowcount == 1
    connection.execute(f"DROP TABLE {name}")


def test_many_results_of_one_text(connection: psycopg.Connection[Any]) -> None:
    cursor = connection.execute("SELECT 1; SELECT 'a', 'b'; SELECT 3 WHERE false")
    found = [cursor.fetchall()]
    while cursor.nextset():
        found.append(cursor.fetchall())
    assert found == [[(1,)], [("a", "b")], []]


def test_prepared_past_the_threshold(connection: psycopg.Connection[Any], name: str) -> None:
    """The sixth run is that of a named statement; it sees new rows, and a table made anew."""
    connection.execute(f"CREATE TABLE {name} (k int PRIMARY KEY, v varchar)")
    query = f"SELECT v FROM {name} WHERE k = %s"
    for number in range(12):
        connection.execute(f"INSERT INTO {name} VALUES (%s, %s)", [number, f"v{number}"])
        assert connection.execute(query, [number]).fetchall() == [(f"v{number}",)]
    listed = connection.execute("SELECT count(*) FROM pg_prepared_statements WHERE statement LIKE %s", [f"%{name}%"])
    assert listed.fetchone() == (2,)
    connection.execute(f"DROP TABLE {name}")
    with pytest.raises(psycopg.errors.UndefinedTable):
        connection.execute(query, [1])
    connection.execute(f"CREATE TABLE {name} (k int PRIMARY KEY, v varchar)")
    assert connection.execute(query, [1]).fetchall() == []
    connection.execute(f"DROP TABLE {name}")


def test_executemany(connection: psycopg.Connection[Any], name: str) -> None:
    connection.execute(f"CREATE TABLE {name} (k int PRIMARY KEY, v varchar)")
    cursor = connection.cursor()
    cursor.executemany(f"INSERT INTO {name} VALUES (%s, %s)", [(i, str(i)) for i in range(50)])
    assert cursor.rowcount == 50
    cursor.executemany(f"SELECT v FROM {name} WHERE k = %s", [(1,), (2,)], returning=True)
    found = [cursor.fetchall()]
    while cursor.nextset():
        found.append(cursor.fetchall())
    assert found == [[("1",)], [("2",)]]
    cursor.executemany(f"INSERT INTO {name} VALUES (%s, %s) RETURNING k", [(60, "a"), (61, "b")], returning=True)
    assert cursor.fetchall() == [(60,)]
    connection.execute(f"DROP TABLE {name}")


def test_pipeline(connection: psycopg.Connection[Any], name: str) -> None:
    with connection.pipeline() as pipeline:
        connection.execute(f"CREATE TABLE {name} (k int PRIMARY KEY)")
        pipeline.sync()
        cursors = [connection.execute(f"INSERT INTO {name} VALUES (%s)", [i]) for i in range(20)]
        count = connection.execute(f"SELECT count(*) FROM {name}")
        pipeline.sync()
        assert [cursor.rowcount for cursor in cursors] == [1] * 20
        assert count.fetchone() == (20,)
    with pytest.raises(psycopg.errors.UndefinedTable), connection.pipeline() as pipeline:
        connection.execute(f"INSERT INTO {name} VALUES (50)")
        connection.execute("SELECT 1 FROM nowhere_to_be_found")
        connection.execute(f"INSERT INTO {name} VALUES (51)")
        pipeline.sync()
    assert connection.execute(f"SELECT count(*) FROM {name} WHERE k = 51").fetchone() == (0,)
    assert connection.execute("SELECT 3").fetchone() == (3,)
    connection.execute(f"DROP TABLE {name}")


def test_server_cursors() -> None:
    with psycopg.connect() as connection:
        with connection.cursor("big") as cursor:
            cursor.itersize = 1000
            cursor.execute("SELECT i, i::varchar FROM generate_series(1, %s) s (i)", [5000])
            assert cursor.fetchone() == (1, "1")
            assert [row[0] for row in cursor.fetchmany(3)] == [2, 3, 4]
            cursor.scroll(10)
            assert cursor.fetchone() == (15, "15")
            assert sum(row[0] for row in cursor) == sum(range(16, 5001))
        with connection.cursor("held", withhold=True, binary=True) as cursor:
            cursor.execute("SELECT i FROM generate_series(1, 3) s (i)")
            connection.commit()
            assert cursor.fetchall() == [(1,), (2,), (3,)]


def test_copy(connection: psycopg.Connection[Any], name: str) -> None:
    rows = [(1, "a\tb", Decimal("1.50")), (2, None, None), (3, "line\nbreak \\ 'q'", Decimal("-3"))]
    connection.execute(f"CREATE TABLE {name} (k int PRIMARY KEY, v varchar, n numeric)")
    cursor = connection.cursor()
    with cursor.copy(f"COPY {name} (k, v, n) FROM STDIN") as copy:
        for row in rows:
            copy.write_row(row)
    assert cursor.rowcount == 3
    with cursor.copy(f"COPY (SELECT * FROM {name} ORDER BY k) TO STDOUT") as copy:
        copy.set_types(["int4", "varchar", "numeric"])
        assert list(copy.rows()) == rows
    connection.execute(f"DELETE FROM {name}")
    with cursor.copy(f"COPY {name} FROM STDIN (FORMAT binary)") as copy:
        copy.set_types(["int4", "varchar", "numeric"])
        for row in rows:
            copy.write_row(row)
    with cursor.copy(f"COPY (SELECT * FROM {name} ORDER BY k) TO STDOUT (FORMAT binary)") as copy:
        copy.set_types(["int4", "varchar", "numeric"])
        assert list(copy.rows()) == rows
    with pytest.raises(psycopg.DataError) as caught, cursor.copy(f"COPY {name} FROM STDIN") as copy:
        copy.write(b"4\tx\t1\nnot a number\ty\t2\n")
    assert caught.value.sqlstate == "22P02"
    with pytest.raises(ZeroDivisionError), cursor.copy(f"COPY {name} FROM STDIN") as copy:
        copy.write(b"4\tx\t1\n")
        raise ZeroDivisionError
    assert connection.execute(f"SELECT count(*) FROM {name}").fetchone() == (3,)
    connection.execute(f"DROP TABLE {name}")


@pytest.mark.parametrize(
    ("sql", "error", "position"),
    [
        ("SELECT * FROM nowhere_to_be_found", psycopg.errors.UndefinedTable, 15),
        ("SELECT nocolumn FROM pg_class", psycopg.errors.UndefinedColumn, 8),
        ("SELECT nofunction(1)", psycopg.errors.UndefinedFunction, 8),
        ("SELEC 1", psycopg.errors.SyntaxError, 1),
        ("SELECT 1 / 0", psycopg.errors.DivisionByZero, None),
        ("SELECT v::int FROM (VALUES ('x')) t (v)", psycopg.errors.InvalidTextRepresentation, None),
        ("SELECT 2147483647 + 1", psycopg.errors.NumericValueOutOfRange, None),
    ],
)
def test_errors(
    connection: psycopg.Connection[Any], sql: str, error: type[psycopg.Error], position: int | None
) -> None:
    """None as position: where a value is found wrong may be known or not."""
    with pytest.raises(error) as caught:
        connection.execute(sql)
    assert caught.value.diag.severity == "ERROR"
    if position is not None:
        assert caught.value.diag.statement_position == str(position)
    assert connection.execute("SELECT 1").fetchone() == (1,)


def test_notices(connection: psycopg.Connection[Any], name: str) -> None:
    notices: list[str] = []
    connection.add_notice_handler(lambda notice: notices.append(f"{notice.severity}: {notice.message_primary}"))
    connection.execute(f"DROP TABLE IF EXISTS {name}")
    assert notices == [f'NOTICE: table "{name}" does not exist, skipping']


def test_what_a_connection_knows(connection: psycopg.Connection[Any]) -> None:
    assert connection.info.encoding == "utf-8"
    assert connection.info.server_version >= 130000
    assert connection.info.transaction_status.name == "IDLE"
    connection.execute("SET TIME ZONE 'Europe/Prague'")
    assert connection.info.parameter_status("TimeZone") == "Europe/Prague"
    summer = connection.execute("SELECT '2024-07-01 00:00:00Z'::timestamptz").fetchone()[0]
    assert (str(summer.tzinfo), summer.hour) == ("Europe/Prague", 2)


def test_types_are_looked_up(connection: psycopg.Connection[Any]) -> None:
    found = TypeInfo.fetch(connection, "numeric")
    assert found is not None
    assert (found.oid, found.array_oid) == (1700, 1231)
    assert TypeInfo.fetch(connection, "nosuchtype") is None


def test_client_side_parameters(name: str) -> None:
    with psycopg.connect(autocommit=True, cursor_factory=psycopg.ClientCursor) as connection:
        row = connection.execute("SELECT %s, %s, %s", ["it's", 1, dt.date(2024, 1, 1)]).fetchone()
        assert row == ("it's", 1, dt.date(2024, 1, 1))


def test_cancel(connection: psycopg.Connection[Any]) -> None:
    timer = threading.Timer(0.5, connection.cancel_safe)
    timer.start()
    started = time.monotonic()
    with pytest.raises(psycopg.errors.QueryCanceled):
        connection.execute(ENDLESS)
    assert time.monotonic() - started < 5
    timer.join()
    assert connection.execute("SELECT 1").fetchone() == (1,)


def test_blocks_without_autocommit(name: str) -> None:
    with psycopg.connect() as connection:
        connection.execute(f"CREATE TABLE {name} (k int PRIMARY KEY)")
        connection.commit()
        with connection.transaction():
            connection.execute(f"INSERT INTO {name} VALUES (1)")
        connection.commit()
        assert connection.execute(f"SELECT k FROM {name}").fetchall() == [(1,)]
        connection.rollback()
        connection.read_only = True
        with pytest.raises(psycopg.errors.ReadOnlySqlTransaction):
            connection.execute(f"INSERT INTO {name} VALUES (2)")
        connection.rollback()
        connection.read_only = None
        connection.execute(f"DROP TABLE {name}")


def test_asyncio(name: str) -> None:
    async def main() -> None:
        async with await psycopg.AsyncConnection.connect(autocommit=True) as connection:
            await connection.execute(f"CREATE TABLE {name} (k int PRIMARY KEY, v varchar)")
            async with connection.cursor() as cursor:
                async with cursor.copy(f"COPY {name} FROM STDIN") as copy:
                    for i in range(1000):
                        await copy.write_row((i, f"v{i}"))
                found = [row async for row in cursor.stream(f"SELECT k FROM {name} WHERE k < %s ORDER BY k", [3])]
                assert found == [(0,), (1,), (2,)]
        # A connection of its own: psycopg 3.3 leaves single-row mode on after stream(), with PostgreSQL too.
        async with await psycopg.AsyncConnection.connect(autocommit=True) as connection:
            async with connection.pipeline():
                cursors = [await connection.execute(f"SELECT v FROM {name} WHERE k = %s", [i]) for i in range(10)]
            assert [await cursor.fetchone() for cursor in cursors] == [(f"v{i}",) for i in range(10)]
            with pytest.raises(asyncio.TimeoutError):
                await asyncio.wait_for(connection.execute(ENDLESS), 0.5)
            assert await (await connection.execute("SELECT 1")).fetchone() == (1,)
            await connection.execute(f"DROP TABLE {name}")
        async with await psycopg.AsyncConnection.connect() as connection, connection.cursor("c") as cursor:
            await cursor.execute("SELECT i FROM generate_series(1, 250) s (i)")
            assert len([row async for row in cursor]) == 250

    asyncio.run(main())


def test_many_tasks(name: str) -> None:
    """Connections beside each other, each with statements of its own."""

    async def one(number: int) -> int:
        async with await psycopg.AsyncConnection.connect(autocommit=True) as connection:
            found = 0
            for i in range(10):
                cursor = await connection.execute("SELECT %s::int * %s::int", [number, i])
                found += (await cursor.fetchone())[0]
            return found

    async def main() -> list[int]:
        return await asyncio.gather(*(one(number) for number in range(10)))

    assert asyncio.run(main()) == [45 * number for number in range(10)]
