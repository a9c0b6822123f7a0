"""Dates and times are read as PostgreSQL reads them, in each order of DateStyle."""

from __future__ import annotations

import random
import re
from collections.abc import Iterator
from typing import Any

import duckdb
import psycopg
import pytest
from postgres import beside
from servers import Server
from view_functions import create_functions

from sparkwave.catalog.errors import Error
from sparkwave.catalog.moment_texts import iso_text, read_moment

Connection = psycopg.Connection[Any]

ORDERS = ("MDY", "DMY", "YMD")
TYPES = ("date", "timestamp without time zone", "timestamp with time zone", "time without time zone")
DATE_LIST = """1/8/1999;01/02/03;January 8, 1999;1999-Jan-08;Jan-08-1999;08-Jan-1999;99-Jan-08;08-Jan-99;Jan-08-99
19990108;990108;1999.008;J2451187;January 8, 99 BC;8.1.1999;1999-01-08;1/18/1999;18/1/1999;99/1/18;1999/1/8;13/13/2000
2000-02-30;2000-13-01;30-Feb-2001;Feb 29 2001;Feb 29 2000;0000-01-01;5-8-2001;1-1-1;Sat Jan 8 1999;8 January 1999
1999 January 8
99 8 Jan;January 1999;1999;Jan 8;1999-01;1.1;20000230;000101;99999;123456789;4714-11-24 BC;4714-11-23 BC;5874897-12-31
5874898-01-01;294276-12-31;294277-01-01;1999-01-08 BC;J0;J2451187.5;julian 2451187;1999-008;2000-366;1999-366
1999.366;99-008;1 8 1999;08 01 99;x;;2000-01-01x;2001-02-04 AD;1-Jan-1;01-Januar-1999;Sept 5 2001;5 sep. 2001
on Jan 8 1999;2/29/2001;0/1/2001;1/0/2001;1/32/2001;1-2-3-4;1999-1-8-;+infinity;Jan 99999;(1999-01-08);jan8 1999
Jan/8/1999;18.1.99;99.1.18;1999:01:08;12.5;32.5;00-01-01;Monday;infinity;-infinity;epoch;é"""
DATES = DATE_LIST.replace("\n", ";").split(";")
CLOCKS = """04:05;04:05:06;04:05:06.789;04:05 PM;04:05PM;12:00 AM;12:30 pm;13:00 PM;040506;0405;04:05:06-8
04:05:06.789-8;04:05:06 -08:00;040506-08;04:05:06 PST;04:05:06 America/New_York;04:05 z;T040506;T04:05;24:00
24:00:01;25:00;23:60
23:59:60;23:59:60.5;23:59:61;04:05:06.9999999;04:05:06+16;04:05:06+15:59;04:05:06 Foo/Bar;04:05:06 foo;allballs
04:05 MET DST;05:06.7;:05;04:;040506.789;04:05:06 +1:30:15;04:05:06 utc;04.05;4;04:05:06+0530;04:05:06 europe/paris
04:05:06 AM PM;10:20 10:20;04:05 dst;2560;04:05:06 EDT;02:30 America/New_York;01:30 America/New_York"""
CLOCK_TEXTS = CLOCKS.replace("\n", ";").split(";")
DAYS = ("1999-01-08", "1/8/1999", "8-Jan-99", "990108", "J2451187", "January 8, 99 BC", "2001-04-01", "2001-10-28")
WHOLE = ("Wed Dec 17 07:37:16 1997 PST", "Wed Dec 17 07:37:16 PST 1997", "12/17/1997 07:37:16.00 PST",
         "Dec 17 073716 PST 1997", "2003-04-12 04:05:06 America/New_York")  # fmt: skip
_WORDS = (
    "1 8 31 99 1999 jan feb december 04:05 04:05:06.5 - / . , : pst pm am bc ad +08 -3 1-2-2003 2003-4-5 7.8.2009 J"
)
WORDS = _WORDS.split(" ")
READ = """
CREATE FUNCTION pg_temp.read(text text, type text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE found text; hint text;
BEGIN EXECUTE format('SELECT %L::%s::text', text, type) INTO found; RETURN found;
EXCEPTION WHEN others THEN
    GET STACKED DIAGNOSTICS hint = pg_exception_hint;
    RETURN sqlstate || ' ' || sqlerrm || ' ' || hint;
END $$"""


@pytest.fixture(scope="module")
def both(in_process_server: Server) -> Iterator[tuple[Connection, Connection]]:
    with beside(in_process_server) as clients:
        yield clients


def _texts() -> list[str]:
    dice = random.Random(5)
    texts = [*DATES, *CLOCK_TEXTS, *WHOLE]
    texts += [text for day in DAYS for clock in CLOCK_TEXTS for text in (f"{day} {clock}", f"{clock} {day}")]
    texts += [
        f"{day}{behind}" for day in DATES if "inf" not in day and day != "epoch" for behind in (" 04:05:06", " 040506")
    ]
    texts += [" ".join(dice.choices(WORDS, k=dice.randint(2, 5))) for _ in range(300)]
    return list(dict.fromkeys(texts))


def _read(text: str, type_: str, order: str) -> str:
    """What PostgreSQL prints for the value that is read, in UTC, or the error."""
    try:
        moment = read_moment(text, type_, order)
    except Error as error:
        return f"{error.sqlstate} {error.message} {error.hint or ''}"
    found = iso_text(moment, type_).removesuffix("+00:00")
    if "." in found:
        found = found.rstrip("0")
    is_zoned = type_ == TYPES[2] and moment.word in (None, "epoch")
    day, before, clock = found.partition(" (BC)")
    return f"{day}{clock}{'+00' if is_zoned else ''}{' BC' if before else ''}"


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("type_", TYPES)
def test_texts_are_read_as_postgresql_reads_them(both: tuple[Connection, Connection], type_: str, order: str) -> None:
    _, postgres = both
    postgres.execute("DROP FUNCTION IF EXISTS pg_temp.read")
    postgres.execute(READ.encode())
    postgres.execute(f"SET datestyle = 'ISO, {order}'; SET timezone = 'UTC'".encode())
    texts = _texts()
    query = "SELECT pg_temp.read(text, %s) FROM unnest(%s::text[]) WITH ORDINALITY AS t(text, n) ORDER BY n"
    answers = [answer for (answer,) in postgres.execute(query, (type_, texts))]
    found = [(text, _read(text, type_, order), answer) for text, answer in zip(texts, answers, strict=True)]
    assert [each for each in found if each[1] != each[2]] == []


PLACES = (
    "SELECT '{0}'::date", "SELECT date '{0}'", "SELECT timestamp '{0} 04:05 PM'",
    "SELECT count(*) FROM days WHERE d = '{0}'",
    "SELECT count(*) FROM days WHERE d IN ('{0}', '2000-01-01')", "SELECT count(*) FROM days WHERE t < '{0} 23:00'",
    "INSERT INTO days (id, d, t) VALUES (2, '{0}', '{0}') RETURNING d, t",
    "INSERT INTO days (id, d, t) SELECT 3, '{0}', '{0} 3:04 pm' RETURNING d, t",
    "UPDATE days SET t = '{0} 17:00' WHERE id = 3 RETURNING t", "EXECUTE given_{1}('{0}')",
)  # fmt: skip


@pytest.mark.parametrize("order", ORDERS)
def test_literals_and_parameters_are_read_in_the_sessions_order(
    both: tuple[Connection, Connection], order: str
) -> None:
    for client in both:
        client.execute(f"SET datestyle = 'ISO, {order}'".encode())
        client.execute("DROP TABLE IF EXISTS days")
        client.execute("CREATE TABLE days (id int PRIMARY KEY, d date, t timestamp)")
        client.execute("INSERT INTO days VALUES (1, '2003-01-02', '2003-01-02 12:00')")
        client.execute(f"PREPARE given_{order}(date) AS SELECT $1".encode())
    for text in ("01/02/03", "Jan 2, 2003", "2-Jan-03", "20030102", "18/1/1999", "no date", "2003-13-01"):
        here, there = (
            [_answer(client, place.format(text, order)) for place in PLACES]
            + [_answer(client, "SELECT %s::date", text)]
            for client in both
        )
        assert here == there
        for client in both:
            client.execute("DELETE FROM days WHERE id > 1")


def _answer(client: Connection, statement: str, *given: str) -> object:
    try:
        return client.execute(statement.encode(), given or None).fetchall()
    except psycopg.Error as error:
        return error.sqlstate, error.diag.message_primary, error.diag.message_hint


@pytest.mark.parametrize("form", ["text", "csv"])
@pytest.mark.parametrize("order", ORDERS)
def test_copy_reads_in_the_sessions_order(both: tuple[Connection, Connection], order: str, form: str) -> None:
    rows = ("01/02/03|Jan 2 2003 4:05 pm|040506", "2003-01-02|2003-01-02 16:05:00|04:05:06", "4-Jan-03|20030102|4:05")
    answers = []
    for client in both:
        client.execute(f"SET datestyle = 'ISO, {order}'; DROP TABLE IF EXISTS copied".encode())
        client.execute("CREATE TABLE copied (d date, t timestamp, c time)")
        found = []
        for lines in (rows, ("2003-01-02||", "18/1/1999||"), ("1/18/1999||",), ("2003-13-01||",), ("|no time|",)):
            statement = f"COPY copied FROM STDIN (FORMAT {form}, DELIMITER '|', NULL '')"
            try:
                with client.cursor() as cursor, cursor.copy(statement.encode()) as copy:
                    copy.write("".join(f"{line}\n" for line in lines))
            except psycopg.Error as error:
                found.append((error.sqlstate, error.diag.message_primary, error.diag.context))
        answers.append((found, client.execute("SELECT * FROM copied ORDER BY 1, 2, 3").fetchall()))
    assert answers[0] == answers[1]


WRITES = (
    "INSERT INTO written (k, d) VALUES (1, '{}')",
    "INSERT INTO written (k, d) VALUES (2, '{}'), (3, NULL)",
    "INSERT INTO written (k, d) SELECT 4, '{}'",
    "UPDATE written SET d = '{}' WHERE k = 3",
    "UPDATE written SET (d, n) = ('{}', 5) WHERE k = 4",
    "INSERT INTO written (k, d) VALUES (1, NULL) ON CONFLICT (k) DO UPDATE SET d = '{}', n = 1",
    "MERGE INTO written t USING (VALUES (2), (9)) AS s (k) ON t.k = s.k WHEN MATCHED THEN UPDATE SET d = '{0}', n = 2 "
    "WHEN NOT MATCHED THEN INSERT (k, d) VALUES (s.k, '{0}')",
)


@pytest.fixture(scope="module")
def tables(both: tuple[Connection, Connection]) -> tuple[Connection, Connection]:
    """Clients of two servers with two tables, which are empty before and after each test."""
    for client in both:
        client.execute("CREATE TABLE written (k int PRIMARY KEY, d date, n int)")
        client.execute("CREATE TABLE arrays (k int PRIMARY KEY, d date[], i int[])")
    return both


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("text", ["01/02/03", "8-Jan-99", "13.02.2003", "today", "1/2/3/4"])
def test_whatever_writes_reads_in_the_sessions_order(
    tables: tuple[Connection, Connection], text: str, order: str
) -> None:
    answers = []
    for client in tables:
        client.execute(f"SET datestyle = 'ISO, {order}'")
        told = [_answer(client, write.format(text)) for write in WRITES]
        answers.append((told, client.execute("SELECT k, d, n FROM written ORDER BY k").fetchall()))
        client.execute("DELETE FROM written")
    assert answers[0] == answers[1]


ARRAYS = (
    "SELECT '{{{0},NULL}}'::date[]", "SELECT '{{\"{0} 10:30\"}}'::timestamp[]",
    "SELECT '{{{{{0}}},{{2024-01-02}}}}'::date[]",
    "SELECT '2003-02-01'::date = ANY('{{{0}}}')", "SELECT '[1:1]={{{0}}}'::date[] = '{{{0}}}'",
    "SELECT ARRAY['{0}']::date[]",
    "INSERT INTO arrays (k, d) VALUES (1, '{{{0}}}')", "INSERT INTO arrays (k, d) VALUES (2, '{{{0}}}'), (3, NULL)",
    "INSERT INTO arrays (k, d, i) SELECT 4, '{{{0}}}', '{{1,2}}'", "UPDATE arrays SET d = '{{{0}}}' WHERE k = 3",
    "SELECT k FROM arrays WHERE d = '{{{0}}}' ORDER BY k",
)  # fmt: skip


@pytest.mark.parametrize("style", [*(f"ISO, {order}" for order in ORDERS), "German"])
@pytest.mark.parametrize("text", ["01/02/03", "8-Jan-99", "13.02.2003", "20030201", "2003-02-01", "1/2/3/4"])
def test_items_of_arrays_are_read_in_the_sessions_order(
    tables: tuple[Connection, Connection], text: str, style: str
) -> None:
    answers = []
    for client in tables:
        client.execute(f"SET datestyle = '{style}'".encode())
        told = [_answer(client, write.format(text)) for write in ARRAYS]
        try:
            with client.cursor() as cursor, cursor.copy("COPY arrays (k, d) FROM STDIN") as copy:
                copy.write(f"5\t{{{text},NULL}}\n6\t\\N\n7\t{{}}\n".encode())
        except psycopg.Error as error:
            told.append((error.sqlstate, error.diag.message_primary, error.diag.context))
        answers.append((told, client.execute("SELECT k, d, i FROM arrays ORDER BY k").fetchall()))
        client.execute("DELETE FROM arrays")
    assert answers[0] == answers[1]


OTHERWISE = "has another meaning in the order MDY, in which definitions are read"


@pytest.mark.parametrize("written", ["'{}'::date = d", "d = '{}'", "d = ANY('{{{}}}')", "('{{{}}}'::date[])[1] = d"])
@pytest.mark.parametrize("kind", ["MATERIALIZED VIEW", "VIEW"])
def test_a_definition_means_the_same_in_every_session(in_process_server: Server, kind: str, written: str) -> None:
    """It is read in the order MDY; what a session's order reads otherwise is refused in this session."""
    with in_process_server.connect() as client:
        client.execute("CREATE TABLE dated (k int PRIMARY KEY, d date)")
        client.execute("INSERT INTO dated VALUES (1, '2004-05-07'), (2, '2004-07-05')")
        try:
            for order, text, refused in (
                ("DMY", "05/07/2004", OTHERWISE),
                ("DMY", "13/07/2004", OTHERWISE),
                ("YMD", "05/07/2004", "date/time field value out of range"),
                ("MDY", "13/07/2004", "date/time field value out of range"),
            ):
                client.execute(f"SET datestyle = '{order}'")
                with pytest.raises(psycopg.Error, match=refused) as raised:
                    client.execute(f"CREATE {kind} read AS SELECT k FROM dated WHERE {written.format(text)}")
                assert raised.value.diag.statement_position is not None
            client.execute(f"CREATE {kind} read AS SELECT k FROM dated WHERE {written.format('05/07/2004')}")
            for order in ORDERS:
                client.execute(f"SET datestyle = '{order}'")
                assert client.execute("SELECT k FROM read").fetchall() == [(1,)], order
            client.execute("SET datestyle = 'DMY'")
            client.execute(f"CREATE {kind} iso AS SELECT k FROM dated WHERE {written.format('2004-07-05')}")
            assert client.execute("SELECT k FROM iso").fetchall() == [(2,)]
        finally:
            client.execute("DROP TABLE dated CASCADE")


@pytest.mark.parametrize(("type_", "order"), [("date", "DMY"), (TYPES[1], "YMD"), (TYPES[2], "MDY"), ("time", "MDY")])
def test_columns_of_text_are_read_as_postgresql_reads_them(
    both: tuple[Connection, Connection], type_: str, order: str
) -> None:
    """Each text is a value, or the same error."""
    texts = [
        *(DATES if type_ == "date" else CLOCK_TEXTS),
        *WHOLE,
        " 1999-01-08 ",
        "2000-01-01x",
        "1/2/2003 04:05",
        "30/12/2003",
    ]
    read = []
    for client in both:
        client.execute(f"SET datestyle = 'ISO, {order}'; SET timezone = 'UTC'".encode())
        read.append([_cast_column(client, text, type_) for text in texts])
    assert [row for row in zip(texts, *read, strict=True) if row[1] != row[2]] == []


def _cast_column(client: Connection, text: str, type_: str) -> tuple[Any, ...] | None:
    """The date or time in a column of text, or the error."""
    query = f"SELECT s::{type_}::text FROM (VALUES (%s::text), (NULL)) AS t (s) WHERE s IS NOT NULL"
    try:
        return client.execute(query.encode(), (text,)).fetchone()
    except psycopg.Error as error:
        return error.sqlstate, error.diag.message_primary, error.diag.message_hint


@pytest.mark.parametrize("type_", [TYPES[2], "time"])
def test_views_read_columns_of_text_as_postgresql_reads_them(both: tuple[Connection, Connection], type_: str) -> None:
    here, postgres = both
    texts = [text for text in _texts() if "294276" not in text]  # DuckDB's timestamps end in 290309
    here.execute("CREATE TABLE texts (id int, s text)")
    here.execute(f"CREATE MATERIALIZED VIEW texts_read AS SELECT id, s::{type_}::text AS d FROM texts".encode())
    with here.cursor() as cursor, cursor.copy("COPY texts FROM STDIN") as copy:
        for row in enumerate(texts):
            copy.write_row(row)
    here.execute("FLUSH")
    found = dict(here.execute("SELECT id, d FROM texts_read").fetchall())
    here.execute("DROP TABLE texts CASCADE")
    postgres.execute("DROP FUNCTION IF EXISTS pg_temp.read")
    postgres.execute(READ.encode())
    postgres.execute("SET datestyle = 'ISO, MDY'; SET timezone = 'UTC'")
    query = "SELECT pg_temp.read(s, %s) FROM unnest(%s::text[]) WITH ORDINALITY AS t (s, n) ORDER BY n"
    answers = [re.sub(r"^22\d{3} .*", "", answer) or None for (answer,) in postgres.execute(query, (type_, texts))]
    rows = zip(texts, map(found.get, range(len(texts))), answers, strict=True)
    assert [row for row in rows if row[1] != row[2]] == []


def test_views_read_columns_of_text_with_the_month_first(both: tuple[Connection, Connection]) -> None:
    here, _ = both
    here.execute("SET datestyle = 'ISO, DMY'")
    here.execute("CREATE TABLE day_texts (id int, s text)")
    here.execute("INSERT INTO day_texts VALUES (1, '01/02/03'), (2, '13/1/2024')")
    here.execute("CREATE MATERIALIZED VIEW days_read AS SELECT id, s::date::text AS d FROM day_texts")
    here.execute("INSERT INTO day_texts VALUES (3, '12.31.99'), (4, '20240102')")
    here.execute("FLUSH")
    found = here.execute("SELECT id, d FROM days_read ORDER BY id").fetchall()
    assert found == [(1, "2003-01-02"), (2, None), (3, "1999-12-31"), (4, "2024-01-02")]
    with pytest.raises(psycopg.errors.DatetimeFieldOverflow, match="out of range"):
        here.execute("SELECT s::date FROM day_texts WHERE id = 3")
    with pytest.raises(psycopg.errors.InvalidDatetimeFormat, match=r'invalid input syntax for type time: "12\.31\.99"'):
        here.execute("SELECT s::time FROM day_texts WHERE id = 3")


_MONTHS = "Jan January feb FEBRUARY Mar march Apr May june Jul July Aug August Sep Sept September Oct nov December"
_DAY_CLOCKS = (
    "; 10:20; 9:05 AM; 12:00 am; 12:30:05.25 PM; 23:59:59.999999; 11:59 pm; 13:00 PM; 9:05; 04:05PM; 24:00; 00:10 AM"
)


@pytest.mark.parametrize("order", [None, *ORDERS])
def test_usual_forms_mean_the_same_without_the_reader(order: str | None) -> None:
    """`pg.date_in` changes them in SQL, because that is quicker."""
    dice = random.Random(7)
    months, days, years = _MONTHS.split(" "), (1, 9, "01", 15, 28, 29, 30, 31), (1999, 2000, 2023, 2024)
    texts = []
    for _ in range(2000):
        month, day, year, number = dice.choice(months), dice.choice(days), dice.choice(years), dice.randint(1, 12)
        forms = (
            f"{month} {day}, {year}", f"{month} {day} {year}", f"{day}-{month[:3]}-{year}", f"{number}/{day}/{year}",
            f"{day}/{number:02}/{year}", f"{month} {day},{year}", f"{month}-{day}-{year}",
        )  # fmt: skip
        texts.append(dice.choice(forms) + dice.choice(_DAY_CLOCKS.split(";")))
    written = "coalesce(try_cast({} AS TIMESTAMP)::VARCHAR, '')"
    read = "sparkwave_moment_text(s, 'timestamp without time zone', getvariable('date_order')::VARCHAR)"
    with duckdb.connect() as database:
        database.execute("ATTACH ':memory:' AS lake")
        create_functions(database)
        if order is not None:
            database.execute(f"SET VARIABLE date_order = '{order}'")
        own = written.format("pg.date_in(s, 'timestamp without time zone')")
        query = f"SELECT s, {own}, {written.format(read)} FROM (SELECT unnest(?) AS s)"
        rows = database.execute(query, [texts]).fetchall()
    assert [row for row in rows if row[1] != row[2]] == []
    assert sum(row[1] != "" for row in rows) > 500
