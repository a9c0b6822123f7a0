"""DateStyle, IntervalStyle, bytea_output and client_encoding: every byte sent is PostgreSQL's."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import psycopg
import pytest
from postgres import beside
from psycopg import sql as p
from psycopg.pq import DiagnosticField
from servers import Server

from sparkwave.catalog.types import parse_type
from sparkwave.server.wire.client_encoding import ENCODINGS
from sparkwave.server.wire.command_tags import postgres_tag

Connection = psycopg.Connection[Any]

DATES = "'2001-02-03', '1999-12-31', '0044-03-15 BC', '12345-06-07', 'infinity', '-infinity'"
MOMENTS = "'2001-02-03 04:05:06', '1999-12-31 23:59:59.000001', '0044-03-15 12:00 BC', '2024-02-29', 'infinity'"
INTERVALS = (
    "0", "1 year", "-1 year", "13 months", "1 mon -2 days", "-1 mon 2 days", "3 days", "-3 days", "1 hour", "-1 hour",
    "1 second", "-1 second", "2.5 seconds", "-0.000001 seconds", "1 day 00:00:01.5", "-1 day -00:01", "1 year 00:00:01",
    "1 year 2 mons 3 days 04:05:06.7", "-1 year -2 mons -3 days -04:05:06.7", "1 year -2 days 03:00", "100:00:00",
    "-1 mon 04:05:06", "1 day -1 second", "59 minutes 59.999999 seconds", "-1 year 1 second", "1 min 1 sec",
)  # fmt: skip


@pytest.fixture(scope="module")
def both(module_server: Server) -> Iterator[tuple[Connection, Connection]]:
    with beside(module_server) as connections:
        yield connections


@pytest.fixture(autouse=True)
def afresh(both: tuple[Connection, Connection]) -> None:
    for connection in both:
        connection.execute("RESET ALL")


def sent(connection: Connection, sql: str | bytes, value: bytes | None = None, binary: bool = False) -> Any:
    """The bytes of all values, or the error's SQLSTATE and the bytes of its message; `value` is $1, in text."""
    text = sql.encode() if isinstance(sql, str) else sql
    answer = connection.pgconn.exec_params(text, [value] if b"$1" in text else None, result_format=int(binary))
    if answer.error_message:
        return answer.error_field(DiagnosticField.SQLSTATE), answer.error_field(DiagnosticField.MESSAGE_PRIMARY)
    rows, columns = range(answer.ntuples), range(answer.nfields)
    return [[answer.get_value(row, column) for column in columns] for row in rows]


@pytest.mark.parametrize("order", ["MDY", "DMY", "YMD"])
@pytest.mark.parametrize("style", ["ISO", "SQL", "Postgres", "German"])
def test_dates_and_moments(both: tuple[Connection, Connection], style: str, order: str) -> None:
    queries = [
        f"SELECT unnest(ARRAY[{DATES}]::date[]) AS d",
        f"SELECT unnest(ARRAY[{MOMENTS}]::timestamp[]) AS t",
        f"SELECT unnest(ARRAY[{MOMENTS}]::timestamptz[]) AS t",
        f"SELECT ARRAY[{DATES}]::date[], ARRAY[{MOMENTS}]::timestamptz[], NULL::date, NULL::timestamptz",
        "SELECT ROW(DATE '2001-02-03', TIMESTAMP '2001-02-03 04:05:06.7')",
    ]
    for zone in ("UTC", "Europe/Berlin", "America/St_Johns"):
        for connection in both:
            connection.execute(p.SQL("SET timezone = {}").format(zone))
            connection.execute(p.SQL("SET datestyle = {}, {}").format(style, order))
        for query in queries:
            ours, theirs = (sent(connection, query) for connection in both)
            assert ours == theirs, (zone, query)


@pytest.mark.parametrize("style", ["postgres", "postgres_verbose", "sql_standard", "iso_8601"])
def test_intervals(both: tuple[Connection, Connection], style: str) -> None:
    """The style is set after the values are read: PostgreSQL reads some otherwise under sql_standard."""
    found = []
    for connection in both:
        connection.execute("CREATE TABLE lengths (n int, i interval)")
        connection.cursor().executemany("INSERT INTO lengths VALUES (%s, %s)", list(enumerate((*INTERVALS, None))))
        if connection is both[0]:
            connection.execute("FLUSH")
        connection.execute(p.SQL("SET intervalstyle = {}").format(style))
        found.append(sent(connection, "SELECT i, ARRAY[i, i], ROW(i) FROM lengths ORDER BY n"))
        connection.execute("DROP TABLE lengths")
    assert found[0] == found[1]


def test_parts_of_a_date_style_stay(both: tuple[Connection, Connection]) -> None:
    for step in ("SQL", "DMY", "German", "ISO", "YMD", "Postgres", "default", "Postgres, European"):
        for connection in both:
            connection.execute(p.SQL("SET datestyle = {}").format(step))
        assert both[0].execute("SHOW datestyle").fetchone() == both[1].execute("SHOW datestyle").fetchone(), step
        reported = [connection.pgconn.parameter_status(b"DateStyle") for connection in both]
        assert reported[0] == reported[1]


def test_copy_has_the_style(both: tuple[Connection, Connection]) -> None:
    found = []
    for connection in both:
        connection.execute("SET datestyle = German")
        connection.execute("SET intervalstyle = iso_8601")
        with connection.cursor().copy("COPY (SELECT DATE '2001-02-03', INTERVAL '1 day 2 hours') TO STDOUT") as copy:
            found.append(b"".join(copy))
    assert found == [b"03.02.2001\tP1DT2H\n"] * 2


WORDS = {
    "LATIN1": "Grüße, señor",
    "LATIN9": "5 € für Œuvres",
    "WIN1252": "„5 €“ – naïve",
    "WIN1251": "Здравствуй",
    "KOI8R": "Привет",
    "EUC_JP": "日本語テキスト",
    "SJIS": "日本語テキスト",
    "EUC_KR": "한국어",
    "BIG5": "繁體中文",
    "GBK": "简体中文",
    "GB18030": "简体中文 €",
    "SQL_ASCII": "bytes: é",
    "UTF8": "all: é 日本 😀",
}


@pytest.mark.parametrize("name", WORDS)
def test_texts_are_converted(both: tuple[Connection, Connection], name: str) -> None:
    word, codec = WORDS[name], ENCODINGS[name].codec
    own = word.encode(codec)
    query = f"SELECT '{word}' AS \"{word}\", length('{word}'), '\"{word}\"'::jsonb".encode(codec)
    for connection in both:
        connection.pgconn.exec_(f"SET client_encoding = '{name}'".encode())
    cases = [(query, None, False), (query, None, True), (b"SELECT ARRAY['" + own + b"']", None, False)]
    cases += [(b"SELECT $1::text, length($1::text)", own, binary) for binary in (False, True)]
    cases += [(b'SELECT "' + own + b'" FROM (SELECT 1) AS t', None, False)]
    for text, value, binary in cases:
        ours, theirs = (sent(connection, text, value, binary) for connection in both)
        assert ours == theirs, text
        assert own in (ours[0] if isinstance(ours, list) else ours[1]) or b"ARRAY" in text, text
    names = [connection.pgconn.exec_(query).fname(0) for connection in both]
    assert names == [own, own]


def test_what_has_no_equivalent(both: tuple[Connection, Connection]) -> None:
    cases = [
        ("LATIN1", b"SELECT chr(8364)"),
        ("WIN1252", b"SELECT '\x81'"),
        ("EUC_JP", b"SELECT '\xff\xff'"),
        ("SJIS", b"SELECT chr(128512)"),
        ("UTF8", b"SELECT '\xff'"),
    ]
    for name, sql in cases:
        for connection in both:
            connection.pgconn.exec_(f"SET client_encoding = '{name}'".encode())
        ours, theirs = (sent(connection, sql) for connection in both)
        assert ours == theirs, (name, sql)


@pytest.mark.parametrize("options", ["", " (FORMAT csv, HEADER)", " (FORMAT binary)"])
def test_copy_is_converted(both: tuple[Connection, Connection], options: str) -> None:
    """Also where pieces are cut within a character."""
    found = []
    for connection in both:
        connection.execute('CREATE TABLE IF NOT EXISTS copied ("表" text, n int)')
        connection.execute("DELETE FROM copied")
        connection.execute("INSERT INTO copied VALUES ('日本', 1), (NULL, 2)")
        connection.execute("FLUSH" if connection is both[0] else "SELECT 1")
        connection.execute(
            "SET client_encoding = 'SJIS'" if "HEADER" not in options else "SET client_encoding = 'UTF8'"
        )
        with connection.cursor().copy(f"COPY (SELECT * FROM copied ORDER BY n) TO STDOUT{options}") as copy:
            data = b"".join(copy)
        with connection.cursor().copy(f"COPY copied FROM STDIN{options}") as copy:
            for at in range(len(data)):
                copy.write(data[at : at + 1])
        rows = connection.execute("SELECT * FROM copied ORDER BY n, 1").fetchall()
        found.append((data, rows))
    assert found[0] == found[1]
    assert found[0][1] == [("日本", 1), ("日本", 1), (None, 2), (None, 2)]


def test_arrays_in_binary_are_refused(both: tuple[Connection, Connection]) -> None:
    both[0].execute("SET client_encoding = 'LATIN1'")
    assert sent(both[0], "SELECT ARRAY['a']", binary=True) == (
        b"0A000",
        b"binary format of text[] in encoding LATIN1 is not supported",
    )
    assert not ENCODINGS["UTF8"].concerns(parse_type("varchar[]"))


def test_tags(both: tuple[Connection, Connection]) -> None:
    steps = (
        "CREATE TABLE tagged (a int)", "INSERT INTO tagged VALUES (1)", "ALTER TABLE tagged ADD COLUMN b int",
        "CREATE VIEW seen AS SELECT a FROM tagged", "DROP VIEW seen", "CREATE SCHEMA tags", "DROP SCHEMA tags",
        "CREATE USER tagger", "ALTER USER tagger WITH PASSWORD 'x'", "GRANT SELECT ON tagged TO tagger",
        "REVOKE SELECT ON tagged FROM tagger", "CREATE ROLE tags", "GRANT tags TO tagger", "REVOKE tags FROM tagger",
        "DROP USER tagger", "DROP ROLE tags", "SHOW timezone", "SET timezone = 'UTC'", "RESET timezone", "BEGIN",
        "COMMIT", "SELECT 1", "UPDATE tagged SET a = 2", "DELETE FROM tagged", "CREATE SEQUENCE tagged_numbers",
        "DROP SEQUENCE tagged_numbers", "CREATE INDEX tagged_a ON tagged (a)", "DROP INDEX tagged_a",
        "REFRESH MATERIALIZED VIEW tagged_view",
        "DROP MATERIALIZED VIEW tagged_view", "COMMENT ON TABLE tagged IS 'x'",
        "CREATE TABLE tag_copy AS SELECT 1 AS a",
        "TRUNCATE tagged", "DROP TABLE tag_copy, tagged", "PREPARE p AS SELECT 1", "EXECUTE p", "DEALLOCATE p",
        "EXPLAIN SELECT 1", "DISCARD ALL",
    )  # fmt: skip
    for connection in both:  # whose tag is here RisingWave's, as it is filled in the background
        connection.execute("CREATE MATERIALIZED VIEW tagged_view AS SELECT 1 AS one")
    for step in steps:
        ours, theirs = (connection.execute(step).statusmessage for connection in both)
        assert ours == theirs, step


def test_tags_of_risingwave(both: tuple[Connection, Connection]) -> None:
    ours, _ = both
    assert ours.execute("SET risingwave_command_tags = true").statusmessage == "SET_VARIABLE"
    assert ours.execute("CREATE TABLE tagged (a int)").statusmessage == "CREATE_TABLE"
    assert ours.execute("DROP TABLE tagged").statusmessage == "DROP_TABLE"
    assert postgres_tag("INSERT 0 1") == "INSERT 0 1"


def test_bytes_escaped(both: tuple[Connection, Connection]) -> None:
    values = r"('\x00415c7e7f20ff'::bytea, 1), ('\x', 2), (NULL, 3), ('\x61', 4)"
    found = []
    for connection in both:
        connection.execute("SET bytea_output = 'escape'")
        query = f"SELECT b, ARRAY[b, b], ROW(b) FROM (VALUES {values}) t(b, n) ORDER BY n"
        with connection.cursor().copy(f"COPY ({query}) TO STDOUT") as copy:
            copied = b"".join(copy)
        found.append((sent(connection, query), copied))
    assert found[0] == found[1]
    assert b"\\\\000A\\\\\\\\~\\\\177 \\\\377" in found[0][1]
