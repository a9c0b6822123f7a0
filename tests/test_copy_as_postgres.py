"""COPY's options, byte for byte as PostgreSQL."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import psycopg
import pytest
from postgres import beside
from servers import Server

Connection = psycopg.Connection[Any]


@pytest.fixture(scope="module")
def both(module_server: Server) -> Iterator[tuple[Connection, Connection]]:
    with beside(module_server) as connections:
        for connection in connections:
            connection.execute('CREATE TABLE c (n int, t text, "T 2" text, d int DEFAULT 7)')
        yield connections


def copied_in(connection: Connection, options: str, data: bytes, columns: str = '(n, t, "T 2")') -> Any:
    """The rows of the table afterwards, or the error's SQLSTATE and message."""
    connection.execute("DELETE FROM c")
    try:
        with connection.cursor().copy(f"COPY c {columns} FROM STDIN {options}".encode()) as copy:
            copy.write(data)
    except psycopg.Error as error:
        return error.sqlstate, error.diag.message_primary
    return sorted(connection.execute("SELECT * FROM c").fetchall(), key=str)


def place_of(connection: Connection, options: str, data: bytes) -> tuple[str | None, str | None, str | None]:
    """The SQLSTATE, message and context of the error of a COPY."""
    with pytest.raises(psycopg.Error) as caught, connection.cursor().copy(f"COPY c {options}".encode()) as copy:
        copy.write(data)
    return caught.value.sqlstate, caught.value.diag.message_primary, caught.value.diag.context


@pytest.mark.parametrize(
    ("options", "data"),
    [
        ("", b"1\tabc\t1\t1\n2\tabcd\t1\t1\n"),
        ("", b"1\tabc\t1\t1\n2\tabc\t0\t1\n3\tabc\t0\t1\n"),
        ("", b"1\tabc\t1\t1\n2\tabc\t1\t100\n"),
        ("", b"1\tabc\t1\t1\n2\tabc\t\\N\t1\n"),
        ("(FORMAT csv, HEADER)", b"id,v,n,m\n1,abc,1,1\n2,abc,-1,1\n"),
        ("(FORMAT csv)", b'1,"a\nb",1,1\n2,abcd,1,1\n'),
    ],
)
def test_the_row_that_breaks_a_constraint(both: tuple[Connection, Connection], options: str, data: bytes) -> None:
    """Its line, value and names; where rows have several lines, no line."""
    made = "(id int PRIMARY KEY, v varchar(3), n int NOT NULL CHECK (n > 0), m numeric(4,2))"
    found = []
    for connection in both:
        connection.execute(f"CREATE TABLE IF NOT EXISTS limited {made}".encode())
        copy = connection.cursor().copy(f"COPY limited FROM STDIN {options}".encode())
        with pytest.raises(psycopg.Error) as caught, copy as rows:
            rows.write(data)
        told = caught.value.diag
        names = (told.table_name, told.column_name, told.constraint_name)
        found.append((told.sqlstate, told.message_primary, told.message_detail, *names, told.context))
    ours, theirs = found
    assert ours[:-1] == theirs[:-1]
    assert ours[-1] == (theirs[-1] if b"\nb" not in data else 'COPY limited, column v: "abcd"')


@pytest.mark.parametrize(
    ("options", "data"),
    [
        ("(n, t) FROM STDIN", b"1\ta\n2\tb\nx\tc\n"),
        ("(n, t) FROM STDIN", b"1\ta\n2\n"),
        ("(n, t) FROM STDIN", b"1\ta\n2\tb\tc\n"),
        ("(n) FROM STDIN", b"1\n99999999999\n"),
        ("(t, n) FROM STDIN (FORMAT csv, HEADER)", b't,n\n"a\nb",1\nc,2\nd,x\n'),
        ("(n, t) FROM STDIN (FORMAT csv, HEADER match)", b"n,x\n1,a\n"),
        ("FROM STDIN (FORMAT csv, DELIMITER 'ab')", b""),
        ("FROM STDIN (FORMAT csv, QUOTE 'ab')", b""),
        ("TO STDOUT (FORMAT csv, HEADER match)", b""),
    ],
)
def test_the_place_of_a_mistake(both: tuple[Connection, Connection], options: str, data: bytes) -> None:
    ours, theirs = (place_of(connection, options, data) for connection in both)
    assert ours == theirs


def test_a_header_that_matches(both: tuple[Connection, Connection]) -> None:
    ours, theirs = (copied_in(connection, "(FORMAT csv, HEADER match)", b"n,t\n1,a\n", "(n, t)") for connection in both)
    assert ours == theirs == [(1, "a", None, 7)]


def copied_out(connection: Connection, statement: str) -> Any:
    try:
        with connection.cursor().copy(statement.encode()) as copy:
            return b"".join(copy)
    except psycopg.Error as error:
        return error.sqlstate, error.diag.message_primary


NULLS = b'1,,""\n2,"",\n3,x,"y"\n,\\N,"\\N"\n'


@pytest.mark.parametrize(
    ("options", "data"),
    [
        ("(FORMAT csv, FORCE_NOT_NULL (t))", NULLS),
        ("(FORMAT csv, FORCE_NOT_NULL (t, \"T 2\"))", NULLS),
        ("(FORMAT csv, FORCE_NULL (t))", NULLS),
        ("(FORMAT csv, FORCE_NULL (t), FORCE_NOT_NULL (\"T 2\"), NULL '\\N')", NULLS),
        ("CSV FORCE NOT NULL t, \"T 2\"", NULLS),
        ("WITH CSV FORCE NULL t", NULLS),
        ("(FORMAT csv, FORCE_NULL (nope))", NULLS),
        ("(FORMAT csv, FORCE_NOT_NULL (d))", NULLS),
        ("(FORMAT csv, FORCE_QUOTE (t))", NULLS),
        ("(FORMAT text, FORCE_NULL (t))", NULLS),
        ("(FORMAT csv) WHERE n > 1", NULLS),
        ("(FORMAT csv) WHERE n > 1 AND t = 'x' OR n IS NULL", NULLS),
        ("CSV WHERE t IS NULL;", NULLS),
        ("WHERE d = 7 AND n % 2 = 0", b"1\ta\tb\n2\ta\tb\n4\t\\N\t\n"),
        ("WHERE lower(\"T 2\") LIKE 'b%'", b"1\ta\tB\n2\ta\tc\n4\t\\N\tbx\n"),
        ("WHERE nope > 1", b""),
        ("WHERE n IN (SELECT 1)", b""),
        ("WHERE n", b""),
        ("WHERE", b""),
        ("(ENCODING 'latin1')", "1\té\tü\n".encode("latin-1")),
        ("(FORMAT csv, ENCODING 'SJIS')", "1,日本,語\n".encode("cp932")),
        ("(FORMAT csv, ENCODING 'klingon')", b""),
        ("(FORMAT csv, ENCODING 'EUC_JP')", b"1,\xff\xff,\n"),
        ("(ENCODING 'latin1') WHERE t = 'é'", "1\té\tü\n2\te\tu\n".encode("latin-1")),
    ],
)  # fmt: skip
def test_in(both: tuple[Connection, Connection], options: str, data: bytes) -> None:
    ours, theirs = (copied_in(connection, options, data) for connection in both)
    assert ours == theirs


@pytest.mark.parametrize(
    "options",
    [
        "(FORMAT csv, FORCE_QUOTE (t))", "(FORMAT csv, FORCE_QUOTE *)", "(FORMAT csv, FORCE_QUOTE (n, \"T 2\"))",
        "CSV FORCE QUOTE t", "CSV HEADER FORCE QUOTE *", "(FORMAT csv, FORCE_QUOTE (nope))",
        "(FORMAT csv, FORCE_NULL (t))", "(FORMAT text, FORCE_QUOTE *)", "(FORMAT csv, ENCODING 'latin1')",
        "(ENCODING 'WIN1252', HEADER false)", "(FORMAT csv, FORCE_QUOTE *, QUOTE '''')",
    ],
)  # fmt: skip
def test_out(both: tuple[Connection, Connection], options: str) -> None:
    for connection in both:
        connection.execute("DELETE FROM c")
        connection.execute("INSERT INTO c VALUES (1, 'é', NULL), (2, 'a\"b''c', ''), (NULL, 'x,y', '€')")
        if connection is both[0]:
            connection.execute("FLUSH")
    statement = f'COPY (SELECT n, t, "T 2" FROM c WHERE n IS NOT NULL ORDER BY n) TO STDOUT {options}'
    ours, theirs = (copied_out(connection, statement) for connection in both)
    assert ours == theirs


MOMENTS = (
    "2000-01-01 00:00:00+2", "2000-01-01 00:00+02", "2000-1-1 1:00-5", "2000-01-01 00:00:00+5:30", "2024-01-1",
    "2000-01-01 00:00:00.5+0530", "10000-01-01 12:00+00", "1000-01-01 12:00+00 BC", "9999-12-31 23:59:59.999999+2",
    "2000-01-01T10:00+02", "2000-01-01 10:00", "2000-01-01", "infinity", "0044-03-15 BC",
)  # fmt: skip


@pytest.mark.parametrize("type_", ["timestamptz", "timestamp", "date"])
def test_moments_with_short_offsets(both: tuple[Connection, Connection], type_: str) -> None:
    """Copied, cast from a column of texts, as literals and as parameters."""
    found = []
    for connection in both:
        connection.execute(f"CREATE TABLE moments (at {type_}, t text)")
        with connection.cursor().copy("COPY moments FROM STDIN") as copy:
            for text in MOMENTS:
                copy.write_row((text, text))
        asked = ["SELECT at::text FROM moments ORDER BY t", f"SELECT t::{type_}::text FROM moments ORDER BY t"]
        asked += [f"SELECT '{text}'::{type_}::text" for text in MOMENTS]
        answers = [connection.execute(query.encode()).fetchall() for query in asked]
        answers += [connection.execute(f"SELECT %s::{type_}::text".encode(), (text,)).fetchall() for text in MOMENTS]
        connection.execute("DROP TABLE moments")
        found.append(answers)
    assert found[0] == found[1]
