"""asyncpg: every value binary, types taken from what Describe answers, COPY of records, a pool."""

from __future__ import annotations

import asyncio
import datetime as dt
import io
import json
from collections.abc import Awaitable, Callable
from decimal import Decimal
from typing import Any

import asyncpg
import pytest
from conftest import ENDLESS

Connection = asyncpg.Connection

VALUES = [
    ("smallint", -5),
    ("integer", 2**31 - 1),
    ("bigint", -(2**63)),
    ("real", 0.5),
    ("double precision", -1e-300),
    ("numeric", Decimal("12345.6789")),
    ("boolean", True),
    ("varchar", "žluť"),
    ("text", ""),
    ("bytea", b"\x00\xff"),
    ("date", dt.date(2024, 2, 29)),
    ("time", dt.time(1, 2, 3, 4)),
    ("timestamp", dt.datetime(1969, 12, 31, 23, 59, 59, 999999)),
    ("timestamptz", dt.datetime(2024, 1, 1, tzinfo=dt.UTC)),
    ("interval", dt.timedelta(days=2, seconds=1, microseconds=-1)),
    ("jsonb", "[1]"),
    ("integer[]", [1, None, 2]),
    ("varchar[]", ["a", "", None]),
    ("timestamptz[]", [dt.datetime(2024, 1, 1, tzinfo=dt.UTC)]),
]


def run(body: Callable[[Connection], Awaitable[None]], **options: Any) -> None:
    """Run `body` with a connection of its own."""

    async def main() -> None:
        connection = await asyncpg.connect(**options)
        try:
            await body(connection)
        finally:
            await connection.close()

    asyncio.run(main())


def test_values(name: str) -> None:
    async def body(connection: Connection) -> None:
        columns = ", ".join(f"c{number} {type_}" for number, (type_, _) in enumerate(VALUES))
        await connection.execute(f"CREATE TABLE {name} (k int PRIMARY KEY, {columns})")
        row = tuple(value for _, value in VALUES)
        marks = ", ".join(f"${number + 2}" for number in range(len(VALUES)))
        # The types of the parameters are those of the columns.
        for k, values in ((1, row), (2, [None] * len(VALUES))):
            await connection.execute(f"INSERT INTO {name} VALUES ($1, {marks})", k, *values)
            assert tuple(await connection.fetchrow(f"SELECT * FROM {name} WHERE k = $1", k)) == (k, *values)
        for number, (type_, value) in enumerate(VALUES):
            assert await connection.fetchval(f"SELECT $1::{type_}", value) == value
            assert await connection.fetchval(f"SELECT $1::{type_}", None) is None
            if type_ != "jsonb":
                assert await connection.fetchval(f"SELECT k FROM {name} WHERE c{number} = $1", value) == 1, type_
        await connection.execute(f"DROP TABLE {name}")

    run(body)


def test_types_of_parameters_are_told(name: str) -> None:
    async def body(connection: Connection) -> None:
        await connection.execute(f"CREATE TABLE {name} (k int PRIMARY KEY, v varchar, n numeric, at timestamp)")
        for sql, types in [
            (f"SELECT * FROM {name} WHERE k = $1 AND v = $2", ["int4", "varchar"]),
            (f"SELECT * FROM {name} WHERE at BETWEEN $1 AND $2", ["timestamp", "timestamp"]),
            (f"SELECT * FROM {name} WHERE k = ANY($1)", ["int4[]"]),
            (f"SELECT * FROM {name} WHERE v LIKE $1 LIMIT $2 OFFSET $3", ["text", "int8", "int8"]),
            (f"SELECT k + $1 FROM {name} WHERE n < $2", ["int4", "numeric"]),
            (f"INSERT INTO {name} (at, k) VALUES ($1, $2)", ["timestamp", "int4"]),
            (f"UPDATE {name} SET n = $2 WHERE k < $1", ["int4", "numeric"]),
            (f"DELETE FROM {name} WHERE v IN ($1, $2)", ["varchar", "varchar"]),
            ("SELECT $1::date, $2", ["date", "text"]),
        ]:
            prepared = await connection.prepare(sql)
            told = [parameter.name for parameter in prepared.get_parameters()]
            # PostgreSQL says text where varchar is compared; both take the same values.
            assert [t.replace("varchar", "text") for t in told] == [t.replace("varchar", "text") for t in types], sql
        prepared = await connection.prepare(f"SELECT k, v AS named, count(*) OVER () FROM {name}")
        assert [(a.name, a.type.name) for a in prepared.get_attributes()] == [
            ("k", "int4"), ("named", "varchar"), ("count", "int8"),
        ]  # fmt: skip
        await connection.execute(f"DROP TABLE {name}")

    run(body)


def test_lists_as_parameters(name: str) -> None:
    async def body(connection: Connection) -> None:
        await connection.execute(f"CREATE TABLE {name} (k int PRIMARY KEY, v varchar)")
        await connection.executemany(f"INSERT INTO {name} VALUES ($1, $2)", [(i, f"v{i}") for i in range(20)])
        found = await connection.fetch(f"SELECT v FROM {name} WHERE k = ANY($1) ORDER BY k", [1, 3, 99])
        assert [row["v"] for row in found] == ["v1", "v3"]
        inserted = await connection.fetch(
            f"INSERT INTO {name} SELECT n, 'a' FROM unnest($1::int[]) AS numbers (n) RETURNING k", [30, 31]
        )
        assert [row["k"] for row in inserted] == [30, 31]
        assert await connection.execute(f"DELETE FROM {name} WHERE k >= $1", 30) == "DELETE 2"
        await connection.execute(f"DROP TABLE {name}")

    run(body)


def test_prepared_statements(name: str) -> None:
    async def body(connection: Connection) -> None:
        await connection.execute(f"CREATE TABLE {name} (k int PRIMARY KEY)")
        insert = await connection.prepare(f"INSERT INTO {name} VALUES ($1)")
        count = await connection.prepare(f"SELECT count(*) FROM {name}")
        for number in range(1, 6):
            await insert.fetch(number)
            assert await count.fetchval() == number
        assert insert.get_statusmsg() == "INSERT 0 1"
        await connection.execute(f"DROP TABLE {name}")
        with pytest.raises(asyncpg.UndefinedTableError):
            await count.fetchval()

    run(body)


def test_cursors() -> None:
    async def body(connection: Connection) -> None:
        async with connection.transaction(readonly=True):
            found = [row[0] async for row in connection.cursor("SELECT i FROM generate_series(1, 1000) s (i)")]
            assert found == list(range(1, 1001))
            cursor = await connection.cursor("SELECT i FROM generate_series(1, 1000) s (i) WHERE i > $1::int", 10)
            assert [row[0] for row in await cursor.fetch(2)] == [11, 12]
            await cursor.forward(3)
            assert [row[0] for row in await cursor.fetch(3)] == [16, 17, 18]

    run(body)


def test_copy(name: str) -> None:
    async def body(connection: Connection) -> None:
        await connection.execute(
            f"CREATE TABLE {name} (k int PRIMARY KEY, v varchar, n numeric, at timestamptz, d date)"
        )
        at, day = dt.datetime(2024, 1, 1, tzinfo=dt.UTC), dt.date(2024, 1, 1)
        records = [(i, f"v{i}", Decimal(i) / 4, at, day) for i in range(1000)] + [(1000, None, None, None, None)]
        assert await connection.copy_records_to_table(name, records=records) == "COPY 1001"
        assert [tuple(row) for row in await connection.fetch(f"SELECT * FROM {name} ORDER BY k")] == records
        out = io.BytesIO()
        query = f"SELECT k, v FROM {name} WHERE k < $1 ORDER BY k"
        assert await connection.copy_from_query(query, 2, output=out, format="csv", header=True) == "COPY 2"
        assert out.getvalue() == b"k,v\n0,v0\n1,v1\n"
        source = io.BytesIO(b"2000,x\n2001,\n")
        assert await connection.copy_to_table(name, source=source, columns=["k", "v"], format="csv") == "COPY 2"
        out = io.BytesIO()
        await connection.copy_from_table(name, output=out, format="binary")
        assert out.getvalue().startswith(b"PGCOPY\n\xff\r\n\0")
        await connection.execute(f"DROP TABLE {name}")

    run(body)


def test_codecs() -> None:
    """set_type_codec looks the type up in the catalogs."""

    async def body(connection: Connection) -> None:
        await connection.set_type_codec("jsonb", encoder=json.dumps, decoder=json.loads, schema="pg_catalog")
        assert await connection.fetchval("SELECT $1::jsonb", {"a": [1, None]}) == {"a": [1, None]}

    run(body)


def test_settings() -> None:
    async def body(connection: Connection) -> None:
        assert await connection.fetchval("SHOW timezone") == "Asia/Tokyo"
        assert connection.get_settings().application_name == "checks"
        assert connection.get_server_version().major >= 13

    run(body, server_settings={"timezone": "Asia/Tokyo", "application_name": "checks"})


def test_time_out_cancels() -> None:
    async def body(connection: Connection) -> None:
        with pytest.raises(asyncio.TimeoutError):
            await connection.fetch(ENDLESS, timeout=0.5)
        assert await connection.fetchval("SELECT 1") == 1

    run(body)


def test_errors(name: str) -> None:
    async def body(connection: Connection) -> None:
        with pytest.raises(asyncpg.UndefinedTableError) as caught:
            await connection.fetch("SELECT * FROM nowhere_to_be_found")
        assert caught.value.position == "15"
        with pytest.raises(asyncpg.PostgresSyntaxError):
            await connection.execute("SELEC")
        with pytest.raises(asyncpg.DataError):
            await connection.fetch("SELECT $1::int", "not a number")
        with pytest.raises(asyncpg.DivisionByZeroError):
            await connection.fetch("SELECT 1 / $1::int", 0)
        assert await connection.fetchval("SELECT 1") == 1

    run(body)


def test_transactions(name: str) -> None:
    async def body(connection: Connection) -> None:
        await connection.execute(f"CREATE TABLE {name} (k int PRIMARY KEY)")
        async with connection.transaction():
            await connection.execute(f"INSERT INTO {name} VALUES (1)")
        assert not connection.is_in_transaction()
        with pytest.raises(asyncpg.ReadOnlySQLTransactionError):
            async with connection.transaction(isolation="serializable", readonly=True):
                await connection.execute(f"INSERT INTO {name} VALUES (2)")
        assert await connection.fetchval(f"SELECT count(*) FROM {name}") == 1
        await connection.execute(f"DROP TABLE {name}")

    run(body)


def test_pool(name: str) -> None:
    async def main() -> None:
        async with asyncpg.create_pool(min_size=2, max_size=4) as pool:
            await pool.execute(f"CREATE TABLE {name} (k int PRIMARY KEY)")
            statements = (pool.execute(f"INSERT INTO {name} VALUES ($1)", i) for i in range(20))
            assert await asyncio.gather(*statements) == ["INSERT 0 1"] * 20
            async with pool.acquire() as connection:
                await connection.execute("SET timezone = 'Asia/Tokyo'")
            for _ in range(4):
                assert await pool.fetchval("SHOW timezone") != "Asia/Tokyo"
            await pool.execute(f"DROP TABLE {name}")

    asyncio.run(main())
