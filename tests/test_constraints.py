"""CHECK and varchar(n) as PostgreSQL enforces them, however rows come."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import psycopg
import pytest
from postgres import beside, differences
from servers import Server, rows

Connection = psycopg.Connection[Any]


@pytest.fixture(scope="module")
def both(module_server: Server) -> Iterator[tuple[Connection, Connection]]:
    with beside(module_server) as found:
        yield found


def test_as_postgresql(both: tuple[Connection, Connection]) -> None:
    different = differences(both, "constraints.sql")
    assert not different, "\n".join(map(str, different))
    details = []
    for each in both:
        with pytest.raises(psycopg.errors.CheckViolation) as refused:
            each.execute("INSERT INTO days VALUES ('2019-05-05', 1.50, NULL)")
        details.append(refused.value.diag.message_detail)
    assert details[0] == details[1] == "Failing row contains (2019-05-05, 1.50, null)."


_CHANGES = (
    "UPDATE broken SET b = -1 WHERE a = 2", "UPDATE broken SET c = NULL", "UPDATE broken SET c = c || d WHERE a = 2",
    "UPDATE broken SET c = v.c FROM (VALUES (1, NULL)) AS v (a, c) WHERE v.a = broken.a",
    "MERGE INTO broken USING (VALUES (2, NULL::text)) AS v (a, c) ON v.a = broken.a "
    "WHEN MATCHED THEN UPDATE SET c = v.c WHEN NOT MATCHED THEN DO NOTHING",
)  # fmt: skip


@pytest.mark.parametrize("atomic", ["off", "on"])
def test_changes_name_what_they_break(both: tuple[Connection, Connection], atomic: str) -> None:
    both[0].execute(f"SET atomic_transactions = {atomic}".encode())
    for each in both:
        each.execute("DROP TABLE IF EXISTS broken")
        each.execute("CREATE TABLE broken (a int PRIMARY KEY, b int CHECK (b > 0), c text NOT NULL, d text)")
        each.execute("INSERT INTO broken VALUES (1, 1, 'x', 'y'), (2, 2, 'z', NULL)")
    for change in _CHANGES:
        found = []
        for each in both:
            with pytest.raises(psycopg.errors.IntegrityError) as refused:
                each.execute(change.encode())
            diag = refused.value.diag
            names = diag.table_name, diag.column_name, diag.constraint_name
            found.append((diag.sqlstate, diag.message_primary, diag.message_detail, names))
        assert found[0] == found[1]


def test_copy_and_prepared_and_atomic(connection: Connection) -> None:
    connection.execute("CREATE TABLE checked (id int CHECK (id > 0), v varchar(3))")
    for bad, error in (((0, "a"), "CheckViolation"), ((1, "long"), "StringDataRightTruncation")):
        with pytest.raises(getattr(psycopg.errors, error)):
            connection.execute("INSERT INTO checked VALUES (%s, %s)", bad)
        with pytest.raises(getattr(psycopg.errors, error)), connection.cursor() as cursor:
            cursor.executemany("INSERT INTO checked VALUES (%s, %s)", [(2, "ok"), bad])
        with (
            pytest.raises(getattr(psycopg.errors, error)),
            connection.cursor() as cursor,
            cursor.copy("COPY checked FROM STDIN") as copy,
        ):
            copy.write_row((3, "ok"))
            copy.write_row(bad)
        connection.execute("SET atomic_transactions = on")
        connection.execute("BEGIN")
        with pytest.raises(getattr(psycopg.errors, error)):
            connection.execute("INSERT INTO checked VALUES (%s, %s)", bad)
        connection.execute("ROLLBACK")
        connection.execute("SET atomic_transactions = off")
    assert rows(connection, "SELECT DISTINCT id, v FROM checked") == [(2, "ok")]


def test_definitions_keep_constraints(module_server: Server, connection: Connection) -> None:
    connection.execute("CREATE TABLE kept (id int CHECK (id > 0), v varchar(3), w int)")
    connection.execute("ALTER TABLE kept RENAME COLUMN id TO number")
    [(_, text)] = rows(connection, "SHOW CREATE TABLE kept")
    assert text == (
        "CREATE TABLE kept (number INT, v CHARACTER VARYING(3), w INT, CONSTRAINT kept_id_check CHECK (number > 0))"
    )
    connection.execute("DROP TABLE kept")
    connection.execute(text.encode())
    with pytest.raises(psycopg.errors.CheckViolation, match="kept_id_check"):
        connection.execute("INSERT INTO kept VALUES (0, 'a', 1)")


def test_a_sink_meets_the_checks_of_its_target(connection: Connection) -> None:
    """It waits with its reason, and the epochs of others go on."""
    connection.execute("CREATE TABLE source_of (id int PRIMARY KEY, v int)")
    connection.execute("CREATE TABLE target_of (id int PRIMARY KEY, v int CHECK (v < 10))")
    connection.execute("CREATE SINK into_target INTO target_of AS SELECT id, v FROM source_of")
    connection.execute("INSERT INTO source_of VALUES (1, 5)")
    connection.execute("FLUSH")
    assert rows(connection, "SELECT id, v FROM target_of") == [(1, 5)]
