"""DROP … CASCADE tells what else goes, as PostgreSQL does; names are quoted where they have to be."""

from __future__ import annotations

from typing import Any

import psycopg
import pytest
from postgres import beside
from servers import Server

Connection = psycopg.Connection[Any]

STATEMENTS = (
    "CREATE TABLE t (a int PRIMARY KEY)", "CREATE VIEW v AS SELECT a FROM t", "DROP TABLE t CASCADE",
    "CREATE TABLE t (a int PRIMARY KEY)", "CREATE TABLE child (a int REFERENCES t)", "CREATE VIEW v AS SELECT a FROM t",
    "CREATE VIEW above AS SELECT a FROM v", "CREATE INDEX ON t (a)", "DROP VIEW v, above CASCADE",
    "CREATE VIEW v AS SELECT a FROM t", "CREATE VIEW above AS SELECT a FROM v", "DROP TABLE t CASCADE",
    "DROP TABLE child CASCADE", "CREATE SCHEMA inside", "CREATE TABLE inside.a (x serial)",
    "CREATE INDEX ON inside.a (x)", "CREATE VIEW inside.v AS SELECT x FROM inside.a", "CREATE SEQUENCE inside.s",
    "CREATE TYPE inside.e AS ENUM ('a')",
    "CREATE FUNCTION inside.f(int) RETURNS int LANGUAGE sql AS 'SELECT 1'", "DROP SCHEMA inside CASCADE",
    'CREATE SCHEMA "Other One"', 'CREATE TYPE "Other One"."E" AS ENUM (\'a\')',
    'CREATE TABLE "Other One"."T t" (x "Other One"."E")',
    'CREATE FUNCTION "Other One"."F f"() RETURNS int LANGUAGE sql AS \'SELECT 1\'',
    'CREATE VIEW "Other One"."V v" AS SELECT "Other One"."F f"() AS x', 'DROP SCHEMA "Other One" CASCADE',
    "CREATE FUNCTION called(a int) RETURNS int LANGUAGE sql AS 'SELECT $1'", "CREATE VIEW v AS SELECT called(1) AS a",
    "DROP FUNCTION called(int) CASCADE",
    "CREATE VIEW alone AS SELECT 1 AS a", "DROP VIEW alone CASCADE",
)  # fmt: skip


def test_notices_are_postgresqls(module_server: Server) -> None:
    with beside(module_server) as both:
        told = [_told(client) for client in both]
    assert told[0] == told[1]
    assert ("drop cascades to view v", "") in told[0]


def _told(client: Connection) -> list[tuple[str, str]]:
    found: list[tuple[str, str]] = []
    client.add_notice_handler(lambda d: found.append((str(d.message_primary), d.message_detail or "")))
    for statement in STATEMENTS:
        client.execute(statement.encode())
    return [each for each in found if "not enforced" not in each[0]]


def test_more_than_a_hundred_objects(connection: Connection) -> None:
    found: list[str] = []
    connection.add_notice_handler(lambda d: found.append(d.message_detail or ""))
    connection.execute("CREATE SCHEMA many")
    for number in range(102):
        connection.execute(f"CREATE VIEW many.v{number} AS SELECT 1 AS a".encode())
    connection.execute("DROP SCHEMA many CASCADE")
    lines = found[-1].splitlines()
    assert (len(lines), lines[99], lines[100]) == (101, "drop cascades to view many.v99", "and 2 other objects")


def test_names_in_errors_are_quoted(connection: Connection) -> None:
    connection.execute('CREATE SCHEMA "Odd One"')
    connection.execute('CREATE TABLE "Odd One".t (a int)')
    connection.execute('CREATE VIEW "Odd One"."select" AS SELECT a FROM "Odd One".t')
    with pytest.raises(psycopg.errors.DependentObjectsStillExist) as error:
        connection.execute('DROP TABLE "Odd One".t')
    assert error.value.diag.message_detail == 'view "Odd One"."select" depends on it'
    assert connection.execute('SHOW CREATE VIEW "Odd One"."select"').fetchall() == [
        ('"Odd One"."select"', 'CREATE VIEW "Odd One"."select" AS SELECT a FROM "Odd One".t')
    ]
