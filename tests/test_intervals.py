"""Intervals are stored as they are, few or many: of any sign, to the microsecond, and equal by their length."""

from __future__ import annotations

import random
from typing import Any

import psycopg
import pytest
from servers import Server

Connection = psycopg.Connection[Any]

# More rows than the lake's catalog keeps, so that they go into Parquet files, and few that it keeps.
MANY = (
    "INSERT INTO iv SELECT g, interval '-1 day 00:00:00.000123' * g FROM generate_series(1, 40) AS r (g)",
    "INSERT INTO iv SELECT 100 + g, interval '2000:00:00.000001' + g * interval '1 month'"
    " FROM generate_series(1, 40) AS r (g)",
    "INSERT INTO iv VALUES (200, '1 month'), (201, '30 days'), (202, '720:00:00'), (203, '1 day -24:00:00'),"
    " (204, '0'), (205, NULL), (206, '-1 mons +30 days'), (207, '178000000 years'), (208, '-178000000 years'),"
    " (209, '2147483647 days'), (210, '-00:00:00.000001')",
)
CHANGES = (
    "UPDATE iv SET i = i - interval '1 us' WHERE id < 50",
    "UPDATE iv SET i = '5 days' WHERE i = interval '24:00:00' * 30",
    "DELETE FROM iv WHERE i < interval '-39 days' AND id < 200",
    "INSERT INTO iv SELECT 1000 + g, interval '-1 day 00:00:00.000123' * (g / 2) FROM generate_series(1, 400) AS r (g)",
)
QUERIES = (
    "SELECT id, i::text FROM iv ORDER BY id",
    "SELECT id, (i + interval '1 us')::text, i > interval '0', extract(day FROM i) FROM iv ORDER BY id",
    "SELECT count(*), count(DISTINCT i), min(i)::text, max(i)::text FROM iv WHERE id <> 209",
    "SELECT a.id, b.id FROM iv AS a JOIN iv AS b ON a.i = b.i WHERE a.id >= 200 AND b.id >= 200 ORDER BY 1, 2",
    "SELECT count(*), sum(n) FROM (SELECT i, count(*) AS n FROM iv GROUP BY i) AS x",
    "SELECT id FROM iv WHERE id >= 200 AND i IN (SELECT i FROM iv WHERE id = 203) ORDER BY id",
    "SELECT id FROM iv ORDER BY i, id",
)
TEXTS = """1 month - 1 day;1 day - 1 hour;- 1 day;+ 1 day;1 - 2;5;1.5;-5;1:30;-1:30;1:30:15.5;1 day 1:30;1 day -1:30
P1Y2M3DT4H5M6S;P1W;PT0.5H;1-2;-1-2;1-2 3 4:05;1 day ago;1 year 2 mons ago;5 ago;1.5 days;1.5 months;0.5 years;2.5 weeks
1.25 hours;1d;1h;1m;1mon;1y;1 yr;3 hrs;2 mins 5 secs;1 s 500 ms;500 us;1 week;1 decade;2 centuries;1 millennium;@ 1 day
@ 1 day ago;1 day 2 days;x;1 foo;;1 day x;infinity;12:60;25:00;100:00:00;1e3 seconds;1 day, 2 hours;1day2hours;.5 day
0.1234567 s;0.1234565 s;1 quarter;1 day 5;5 1 day;1:2:3:4;00:00:00.0000005;1 fortnight;-1 day 2 hours;-1 day +02:03;1-12
epoch;1 yrs 2 mos;1 microsecond;3 milliseconds;1 c;1 mil;7 dec;P-1Y;P1Y-2M;PT-5M;PT36H;P0001-02-03T04:05:06;p1y;P1.5M
-P1D;P20240102T030405;PT030405.5;P1;PT1:30;PT1:30:15;P1-2;P1-2-3;P;PT;P1YT;P1S;99999999999 years;178956970 years;1:30.5
2147483648 days;9223372036854 seconds;1 day 1 hour 1 minute 1.5 seconds 3 ms;1 year 2 mons 3 days 04:05:06.789
10:00 1.5 days
 1 day ;1 day\t2 hours;1_000 days;1 Day 2 HOURS;1,5 days;1 day -;--1 day;+1 mon -2 days"""


def test_intervals_are_postgresqls_in_queries_and_views(in_process_server: Server, postgres: Connection) -> None:
    views = {
        "plain": "SELECT id, i, -i AS n, i + interval '1 us' AS m FROM iv WHERE abs(extract(year FROM i)) < 1000",
        "grouped": "SELECT i, count(*) AS n FROM iv GROUP BY i",
        "ends": "SELECT id % 2 AS k, min(i) AS lo, max(i) AS hi FROM iv GROUP BY id % 2",
        "firsts": "SELECT id, i FROM iv ORDER BY i, id LIMIT 5",
        "joined": "SELECT a.id, b.id AS other FROM iv AS a JOIN iv AS b ON a.i = b.i",
        "over": "SELECT id, n FROM plain WHERE n < interval '3 days'",
        "numbered": "SELECT id, row_number() OVER (PARTITION BY i ORDER BY id) AS n FROM iv",
    }
    with in_process_server.connect() as connection:
        for client in (connection, postgres):
            client.execute("CREATE TABLE iv (id int PRIMARY KEY, i interval)")
        for name, query in views.items():
            connection.execute(f"CREATE MATERIALIZED VIEW {name} AS {query}".encode())
        for statement in (*MANY, *CHANGES):
            for client in (connection, postgres):
                client.execute(statement.encode())
            if statement == MANY[-1]:
                _compare(connection, postgres, views)
        _compare(connection, postgres, views)
        for name, query in views.items():  # filled from what is stored
            connection.execute(f"CREATE MATERIALIZED VIEW again_{name} AS {query}".encode())
        _compare(connection, postgres, {f"again_{name}": query for name, query in views.items()})
        connection.execute("DROP TABLE iv CASCADE")


def test_columns_of_times_have_digits(in_process_server: Server, postgres: Connection) -> None:
    statements = (
        "CREATE TABLE id (id int PRIMARY KEY, i interval(2), s interval day to second(0), t time(1), e timestamp(0),"
        " z timestamptz(3))",
        "INSERT INTO id VALUES (1, '1.235', '1 day 2.5', '23:59:59.95', '1969-12-31 23:59:59.5',"
        " '2020-01-01 00:00:00.0005Z'), (2, '-1.235', '-2:3:4.5', '0:0:0.04', '1999-12-31 23:59:59.5', 'infinity'),"
        " (3, '1', NULL, NULL, NULL, NULL)",
        "INSERT INTO id SELECT id + 10, i / 7, s / 7, t + i / 7, e + s / 7, z + i / 7 FROM id",
        "UPDATE id SET i = i * 1.2345, e = e + interval '0.5' WHERE id IN (1, 11)",
        "ALTER TABLE id ALTER COLUMN s TYPE interval",
        "UPDATE id SET s = s / 7 WHERE id = 1",
    )
    names = "SELECT format_type(atttypid, atttypmod) FROM pg_attribute WHERE attrelid = 'id'::regclass AND attnum > 0"
    with in_process_server.connect() as connection:
        for statement in statements:
            for client in (connection, postgres):
                client.execute(statement.encode())
            if "id = 1" in statement:
                connection.execute("CREATE MATERIALIZED VIEW digits AS SELECT * FROM id")
            for query in ("SELECT id, i::text, s::text, t::text, e::text, z::text FROM id ORDER BY id", names):
                found, expected = (client.execute(query.encode()).fetchall() for client in (connection, postgres))
                assert found == expected, statement
            described = "SELECT *, e::timestamp(2), '1'::interval day to second FROM id"
            found, expected = (
                [column._fmod for column in client.execute(described).description or ()]
                for client in (connection, postgres)
            )
            assert found == expected, statement
        with pytest.raises(psycopg.errors.FeatureNotSupported):
            connection.execute("ALTER TABLE id ALTER COLUMN s TYPE interval(1)")
        with connection.cursor().copy("COPY id (id, e) FROM STDIN") as copy:
            copy.write_row((4, "2020-01-01 00:00:00.5"))
        assert connection.execute("SELECT e::text FROM id WHERE id = 4").fetchall() == [("2020-01-01 00:00:01",)]
        connection.execute("DROP TABLE id CASCADE")
    postgres.execute("DROP TABLE id")


def _compare(connection: Connection, postgres: Connection, views: dict[str, str]) -> None:
    connection.execute("FLUSH")
    for query in QUERIES:
        found, expected = (client.execute(query.encode()).fetchall() for client in (connection, postgres))
        assert found == expected, query
    for name, query in views.items():
        for one, other in ((f"SELECT * FROM {name}", query), (query, f"SELECT * FROM {name}")):
            more = connection.execute(f"SELECT * FROM ({one}) AS x EXCEPT ALL SELECT * FROM ({other}) AS y".encode())
            assert more.fetchall() == [], name


def test_a_key_of_intervals_is_equal_by_its_length(connection: Connection) -> None:
    connection.execute("CREATE TABLE ik (k interval PRIMARY KEY, v int, a interval[])")
    connection.execute(
        "INSERT INTO ik SELECT interval '1 mon' * g, g, ARRAY[interval '-1 us'] FROM generate_series(1, 40) r(g)"
    )
    connection.execute("INSERT INTO ik VALUES ('30 days', -1, NULL) ON CONFLICT (k) DO UPDATE SET v = ik.v + 10")
    connection.execute("INSERT INTO ik VALUES ('1440:00:00', -2, NULL)")
    rows = connection.execute("SELECT k::text, v, a::text FROM ik WHERE k <= '2 mons' ORDER BY k").fetchall()
    assert rows == [("1 mon", 11, "{-00:00:00.000001}"), ("2 mons", -2, None)]
    assert connection.execute("SELECT v FROM ik WHERE k = '90 days'").fetchall() == [(3,)]
    connection.execute("DELETE FROM ik WHERE k > '60 days'")
    assert connection.execute("SELECT count(*) FROM ik").fetchall() == [(2,)]


def test_a_version_may_be_an_interval(connection: Connection) -> None:
    connection.execute(
        "CREATE TABLE versioned (id int PRIMARY KEY, at interval) ON CONFLICT OVERWRITE WITH VERSION COLUMN (at)"
    )
    connection.execute("INSERT INTO versioned VALUES (1, '9 days'), (2, '-1 day')")
    connection.execute("INSERT INTO versioned VALUES (1, '10 days'), (2, '-2 days')")
    rows = connection.execute("SELECT id, at::text FROM versioned ORDER BY id").fetchall()
    assert rows == [(1, "10 days"), (2, "-1 days")]


def test_intervals_in_a_transaction_and_by_the_change_log(connection: Connection) -> None:
    connection.execute("CREATE TABLE ib (id int PRIMARY KEY, i interval, s STRUCT<x interval>)")
    connection.execute(
        "INSERT INTO ib SELECT g, interval '-1 us' * g, ROW(interval '-1 day') FROM generate_series(1, 40) r(g)"
    )
    connection.execute("CREATE SUBSCRIPTION ibs FROM ib WITH (retention = '1D')")
    connection.execute("SET atomic_transactions = on")
    connection.execute("BEGIN")
    connection.execute("UPDATE ib SET i = i - interval '1 mon' WHERE id = 1")
    connection.execute("INSERT INTO ib VALUES (41, '-5 days', ROW(interval '-1 us'))")
    inside = connection.execute("SELECT id, i::text, (s).x::text FROM ib WHERE id IN (1, 2, 41) ORDER BY id").fetchall()
    connection.execute("COMMIT")
    assert inside == [(1, "-1 mons -00:00:00.000001", "-1 days"), (2, "-00:00:00.000002", "-1 days"),
                      (41, "-5 days", "-00:00:00.000001")]  # fmt: skip
    after = connection.execute("SELECT id, i::text, (s).x::text FROM ib WHERE id IN (1, 2, 41) ORDER BY id").fetchall()
    assert after == inside
    connection.execute("ALTER TABLE ib ADD COLUMN more interval DEFAULT '-1 mons 2 days'")
    assert connection.execute("SELECT DISTINCT more::text FROM ib").fetchall() == [("-1 mons +2 days",)]


def test_long_intervals_reach_the_client(connection: Connection, postgres: Connection) -> None:
    values = ["'3000000 hours'", "'-2562047:47:16.854776'", "'-1 mons 300000000:00:00.000001'", "'-9 days'", "'-1us'"]
    listed = ", ".join(f"({key}, {value}::interval)" for key, value in enumerate([*values, "NULL"]))
    queries = [
        f"SELECT i FROM (VALUES {listed}) AS v (k, i) ORDER BY k",
        f"SELECT array_agg(i ORDER BY k) FROM (VALUES {listed}) AS v (k, i)",
        f"SELECT sum(i) FROM (VALUES {listed}) AS v (k, i) WHERE k <> 2",
    ]
    for query in queries:
        for binary in (0, 1):
            found, expected = (
                _values(client.pgconn.exec_params(query.encode(), [], result_format=binary))
                for client in (connection, postgres)
            )
            assert found == expected, query


def _values(result: psycopg.pq.abc.PGresult) -> list[bytes | None]:
    return [result.get_value(row, 0) for row in range(result.ntuples)]


def test_intervals_are_read_as_postgresql_reads_them(connection: Connection, postgres: Connection) -> None:
    """In literals, in columns of text, and in views, which have NULL for errors."""
    texts = TEXTS.replace("\n", ";").split(";")
    connection.execute("CREATE TABLE texts (id int, s text)")
    connection.execute("CREATE MATERIALIZED VIEW texts_read AS SELECT id, s::interval::text AS i FROM texts")
    connection.cursor().executemany("INSERT INTO texts VALUES (%s, %s)", list(enumerate(texts)))
    connection.execute("FLUSH")
    in_view = dict(connection.execute("SELECT id, i FROM texts_read").fetchall())
    literal, cast = "SELECT '{0}'::interval::text", "SELECT s::interval::text FROM texts WHERE id = {1}"
    for number, text in enumerate(texts):
        expected = _answer(postgres, literal.format(text))
        assert _answer(connection, literal.format(text)) == expected
        assert _answer(connection, cast.format(text, number)) == expected
        assert in_view[number] == (expected[0][0] if isinstance(expected, list) else None), text
    connection.execute("DROP TABLE texts CASCADE")


def test_groups_of_equal_intervals_are_one(connection: Connection) -> None:
    """Whichever of them comes and goes: '30 days', '1 month' and '720:00:00' are equal."""
    connection.execute("CREATE TABLE terms (id int PRIMARY KEY, i interval)")
    connection.execute("INSERT INTO terms VALUES (1, '30 days'), (2, '1 month'), (3, '720:00:00'), (4, '5 days')")
    connection.execute("CREATE MATERIALIZED VIEW groups AS SELECT i, count(*) AS n FROM terms GROUP BY i")
    connection.execute("CREATE MATERIALIZED VIEW singles AS SELECT DISTINCT i FROM terms")
    rest = "SELECT i FROM terms EXCEPT ALL SELECT interval '1 month'"
    connection.execute(f"CREATE MATERIALIZED VIEW rest AS {rest}")
    for change, months in (
        ("INSERT INTO terms VALUES (5, '29 days 24:00:00'), (6, '1 mon')", 5),
        ("DELETE FROM terms WHERE id IN (1, 2, 6)", 2),
        ("UPDATE terms SET i = '1 month' WHERE id = 5", 2),
        ("DELETE FROM terms WHERE id = 3", 1),
    ):
        connection.execute(change.encode())
        connection.execute("FLUSH")
        groups = connection.execute("SELECT i::text, n FROM groups ORDER BY groups.i").fetchall()
        assert groups == [("5 days", 1), ("1 mon", months)], change
        assert connection.execute("SELECT count(*) FROM singles").fetchall() == [(2,)]
        left = connection.execute("SELECT i::text, count(*) FROM rest GROUP BY 1 ORDER BY 1 DESC").fetchall()
        assert left == [("5 days", 1), *[("1 mon", months - 1)] * (months > 1)], change
        assert connection.execute(f"SELECT count(*) FROM ({rest}) AS r").fetchall() == [(months,)]
    for view in ("groups", "singles", "rest"):
        [audited] = connection.execute(f"AUDIT MATERIALIZED VIEW {view}".encode()).fetchall()
        assert "PROVEN" in audited
    connection.execute("DROP TABLE terms CASCADE")


def test_groups_of_what_holds_equal_intervals_are_one(connection: Connection) -> None:
    """In arrays, rows and rows of a query, whichever of them comes and goes."""
    connection.execute("CREATE TABLE holders (id int PRIMARY KEY, a interval[], s STRUCT<i interval, n int>)")
    for number, text in enumerate(("1 day", "24:00:00", "1 month", "30 days"), start=1):
        connection.execute(f"INSERT INTO holders VALUES ({number}, '{{{text},NULL}}', ROW('{text}', 1))".encode())
    queries = {
        "arrays": "SELECT a, count(*) AS n FROM holders GROUP BY a",
        "kept_arrays": "SELECT a FROM holders EXCEPT ALL SELECT a FROM holders WHERE id > 4",
        "structs": "SELECT DISTINCT s FROM holders",
        "made_rows": "SELECT ROW(s, (s).i, 'x') AS r, max(id) AS m FROM holders GROUP BY 1",
    }
    for name, query in queries.items():
        connection.execute(f"CREATE MATERIALIZED VIEW {name} AS {query}".encode())
    changes = (
        "DELETE FROM holders WHERE id IN (1, 3)",
        "DELETE FROM holders WHERE id = 4",
        "INSERT INTO holders VALUES (5, '{1 day,NULL}', ROW('1 day', 1))",
        "DELETE FROM holders WHERE id = 2",
    )
    for change in ("SELECT 1", *changes):
        connection.execute(change.encode())
        connection.execute("FLUSH")
        for name, query in queries.items():
            found, expected = (
                sorted(map(str, connection.execute(text.encode()).fetchall())) for text in (f"TABLE {name}", query)
            )
            assert found == expected, (change, name)
    connection.execute("DROP TABLE holders CASCADE")


def _answer(client: Connection, statement: str) -> object:
    try:
        return client.execute(statement.encode()).fetchall()
    except psycopg.Error as error:
        return error.sqlstate, error.diag.message_primary


def test_totals_of_intervals_are_postgresqls(in_process_server: Server, postgres: Connection) -> None:
    """Sums and averages, by their fields, in queries and in views over changes."""
    dice = random.Random(3)

    def drawn(id_: int) -> str:
        size = dice.choice((1, 30, 10**4))
        fields = (dice.randint(-size, size) for _ in range(3))
        text = "'{} mons {} days {}.000007 secs'".format(*fields) if dice.random() < 0.85 else "NULL"
        return f"({id_}, {id_ % 5 if id_ % 30 else 'NULL'}, {text})"

    rows = [drawn(id_) for id_ in range(160)]
    queries = {
        "totals": "SELECT k, sum(i)::text AS s, avg(i)::text AS a, sum(i) FILTER (WHERE id > 20)::text AS f,"
        " count(i) AS n, sum(i - interval '1 day')::text AS d FROM iv GROUP BY k",
        "total": "SELECT avg(i)::text AS a, sum(i)::text AS s FROM iv WHERE id < 100",
        "running": "SELECT id, sum(i) OVER (PARTITION BY k ORDER BY id ROWS 2 PRECEDING)::text AS s,"
        " avg(i) OVER (PARTITION BY k)::text AS a FROM iv",
        "months": "SELECT avg(i)::text AS a FROM (SELECT interval '1 month' AS i FROM iv WHERE id < 49) AS x",
    }
    changes = (
        f"INSERT INTO iv VALUES {', '.join(rows[80:])}", "UPDATE iv SET i = i * 2 WHERE id % 3 = 1",
        "DELETE FROM iv WHERE k = 2", "DELETE FROM iv WHERE id >= 49 AND k > 2", "DELETE FROM iv",
    )  # fmt: skip
    with in_process_server.connect() as connection:
        for client in (connection, postgres):
            client.execute("DROP TABLE IF EXISTS iv CASCADE")
            client.execute("CREATE TABLE iv (id int PRIMARY KEY, k int, i interval)")
            client.execute(f"INSERT INTO iv VALUES {', '.join(rows[:80])}".encode())
        for name, query in queries.items():
            connection.execute(f"CREATE MATERIALIZED VIEW {name} AS {query}".encode())
        for change in changes:
            for client in (connection, postgres):
                client.execute(change.encode())
            connection.execute("FLUSH")
            for name, query in queries.items():
                expected = sorted(postgres.execute(query.encode()).fetchall(), key=str)
                for asked in (query, f"SELECT * FROM {name}"):
                    assert sorted(connection.execute(asked.encode()).fetchall(), key=str) == expected, (change, asked)


def test_a_total_beyond_an_interval_is_an_error(connection: Connection) -> None:
    """And NULL in a view."""
    connection.execute("CREATE TABLE far (i interval)")
    connection.execute("CREATE MATERIALIZED VIEW far_off AS SELECT sum(i)::text AS s, count(*) AS n FROM far")
    connection.execute("INSERT INTO far VALUES ('178000000 years'), ('178000000 years')")
    connection.execute("FLUSH")
    assert connection.execute("SELECT s, n FROM far_off").fetchall() == [(None, 2)]
    with pytest.raises(psycopg.errors.DatetimeFieldOverflow, match="interval out of range"):
        connection.execute("SELECT sum(i) FROM far")
    connection.execute("INSERT INTO far VALUES ('-178000000 years')")
    connection.execute("FLUSH")
    assert connection.execute("SELECT s, n FROM far_off").fetchall() == [("178000000 years", 3)]
