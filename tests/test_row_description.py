"""What RowDescription says of columns: type, modifier, and the relation's column it is. As PostgreSQL 15.18 answers."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import psycopg
import pytest
from postgres import beside
from servers import Server

Connection = psycopg.Connection[Any]
NUMERIC_10_2 = 655366


@pytest.fixture(scope="module")
def tables(module_server: Server) -> Iterator[Connection]:
    with module_server.connect() as connection:
        connection.execute("CREATE TABLE rd (id int PRIMARY KEY, price numeric(10,2), free numeric, v text, a int[])")
        connection.execute("CREATE VIEW rv AS SELECT id AS k, price FROM rd")
        connection.execute("INSERT INTO rd VALUES (1, 2.5, 1.5, 'x', ARRAY[1])")
        yield connection


RD, RV = "rd", "rv"


@pytest.mark.parametrize(
    ("sql", "columns"),
    [
        ("SELECT id, price, free FROM rd", [(RD, 1, -1), (RD, 2, NUMERIC_10_2), (RD, 3, -1)]),
        ("SELECT v, a FROM rd", [(RD, 4, -1), (RD, 5, -1)]),
        ("SELECT price AS p, id + 1, sum(price) FROM rd GROUP BY 1, 2", [(RD, 2, NUMERIC_10_2), None, None]),
        ("SELECT rd.* FROM rd LIMIT 1", [(RD, n, NUMERIC_10_2 if n == 2 else -1) for n in range(1, 6)]),
        ("SELECT * FROM rv", [(RV, 1, -1), (RV, 2, NUMERIC_10_2)]),
        ("SELECT x.k, y.v FROM rv x JOIN rd y ON x.k = y.id", [(RV, 1, -1), (RD, 4, -1)]),
        ("SELECT s.q FROM (SELECT price AS q FROM rd) s", [(RD, 2, NUMERIC_10_2)]),
        ("WITH c(z) AS (SELECT price FROM rd) SELECT z, 1 AS one FROM c", [(RD, 2, NUMERIC_10_2), None]),
        ("SELECT id FROM rd UNION SELECT 5", [None]),
        ("SELECT upper(v), 'x', NULL FROM rd", [None, None, None]),
        ("SELECT 1.5::numeric(6,3)", [("", 0, (6 << 16) + 3 + 4)]),
        ("SELECT DISTINCT id FROM rd ORDER BY id", [(RD, 1, -1)]),
    ],
)
def test_origins(tables: Connection, sql: str, columns: list[tuple[str, int, int] | None]) -> None:
    """The same from a Describe before it runs and from a simple query."""
    oids = {name: tables.execute(f"SELECT '{name}'::regclass::oid").fetchone() for name in (RD, RV)}
    wanted = [(0, 0, -1) if c is None else ((oids[c[0]] or (0,))[0] if c[0] else 0, c[1], c[2]) for c in columns]
    raw = tables.pgconn
    raw.prepare(b"", sql.encode())
    for found in (raw.describe_prepared(b""), raw.exec_(sql.encode())):
        assert not found.error_message
        assert [(found.ftable(n), found.ftablecol(n), found.fmod(n)) for n in range(found.nfields)] == wanted


def test_numbers_without_a_scale_have_no_zeros_of_their_own(tables: Connection) -> None:
    found = tables.pgconn.exec_(b"SELECT free, free + price, price, 2::numeric FROM rd")
    assert [found.get_value(0, n) for n in range(4)] == [b"1.5", b"4", b"2.50", b"2"]


@pytest.mark.parametrize("binary", [False, True])
def test_rows_may_have_no_columns(tables: Connection, binary: bool) -> None:
    """In few rows, which are encoded one by one, and in many."""
    for query, count in (("SELECT", 1), ("SELECT FROM rd", 1), ("SELECT FROM generate_series(1, 20)", 20)):
        found = tables.execute(query.encode(), binary=binary)
        assert found.description == [] and found.fetchall() == [()] * count


TYPES = (
    "SELECT 'a', NULL, lower(v), v || t, i::text, b::text FROM rt", "SELECT v, t FROM rt", "SELECT * FROM rt",
    "SELECT v::text, t::varchar, t::varchar(3), coalesce(v, 'x'), coalesce(t, v), greatest('a', v) FROM rt",
    "SELECT CASE WHEN b THEN 'x' ELSE v END, CASE WHEN b THEN t ELSE NULL END, nullif(v, 'a') FROM rt",
    "SELECT v, max(v) FROM rt GROUP BY v",
    "SELECT first_value(v) OVER (), lag(t) OVER (), (SELECT v FROM rt), (SELECT 'a') FROM rt",
    "SELECT v FROM rt UNION SELECT t FROM rt", "SELECT 'x' UNION SELECT v FROM rt",
    "SELECT t FROM rt UNION SELECT v FROM rt",
    "WITH q AS (SELECT v, 'a' AS a FROM rt) SELECT q.v, a, x.v FROM q, (SELECT lower(v) AS v FROM rt) y (w), rt x",
    "SELECT x.v, x.l FROM (SELECT v, lower(v) AS l FROM rt) x", "SELECT * FROM rt JOIN rt AS r USING (v)",
    "VALUES ('a', 1), ('b', 2)", "SELECT * FROM (VALUES ('a')) x (c)", "SELECT 'a'::name, 'a'::\"char\", ARRAY['a']",
    "SELECT current_user, session_user, current_schema, current_database(), version()",
    "SELECT typname, typtype, typlen, oid FROM pg_type",
    "SELECT array_agg(attname ORDER BY attnum), array(SELECT relkind FROM pg_class) FROM pg_attribute",
    "SELECT array[c.relname], array_agg(DISTINCT relkind), i.indkey[0:1], i.indkey[:] FROM pg_class c, pg_index i "
    "GROUP BY c.relname, i.indkey", "SELECT relid, schemaname, relname FROM pg_statio_all_tables",
    "SELECT c.relname, c.relfrozenxid, c.reloptions FROM pg_class c",
    "SELECT * FROM pg_namespace n, pg_tables WHERE false", "SELECT name, setting FROM pg_catalog.pg_settings",
    "SELECT table_name, table_type FROM information_schema.tables", "SELECT * FROM information_schema.schemata",
    "INSERT INTO rt (v, t) VALUES ('a', 'b') RETURNING v, t, lower(v), *", "DELETE FROM rt RETURNING *, v || 'x'",
)  # fmt: skip


MODIFIED = (
    "SELECT s, z, n, m, o, * FROM rt", "SELECT x.s, y.n FROM rt AS x LEFT JOIN rt AS y USING (v)",
    "SELECT 'x'::varchar(10), 1::numeric(5,1), '01:00'::time(3), now()::timestamp(2), now()::timestamptz(0) FROM rt",
    "SELECT '{a}'::varchar(3)[], '{1}'::numeric(4,1)[], s::varchar, s::varchar(3), n::numeric(5,1) FROM rt",
    "SELECT coalesce(s, z), coalesce(s, v), coalesce(s, 'x'), coalesce(n, m), coalesce(n, o), greatest(n, m) FROM rt",
    "SELECT CASE WHEN b THEN s ELSE z END, CASE WHEN b THEN n ELSE m END, CASE WHEN b THEN n END FROM rt",
    "SELECT (SELECT n FROM rt LIMIT 1), (SELECT s FROM rt LIMIT 1), lag(s) OVER (), max(n) OVER (), n + 1 FROM rt",
    "SELECT s FROM rt UNION SELECT z FROM rt", "SELECT s FROM rt UNION SELECT v FROM rt",
    "SELECT n FROM rt UNION SELECT m FROM rt", "SELECT n FROM rt UNION ALL SELECT o FROM rt",
    "WITH q AS (SELECT now()::timestamp(2) AS x) SELECT x FROM q", "SELECT x FROM (SELECT n AS x, s FROM rt) AS q",
)  # fmt: skip


@pytest.fixture(scope="module")
def both(module_server: Server) -> Iterator[tuple[Connection, Connection]]:
    with beside(module_server) as clients:
        for client in clients:
            client.execute(
                "CREATE TABLE rt (v varchar, t text, i int, b boolean, s varchar(5), z varchar(5), n numeric(10,2),"
                " m numeric(10,2), o numeric(8,1))"
            )
        yield clients


@pytest.mark.parametrize("query", TYPES)
def test_types_are_postgresqls(both: tuple[Connection, Connection], query: str) -> None:
    """The same from a Describe before it runs and from a simple query. Lists of privileges are texts here."""
    told = []
    for client in both:
        raw = client.pgconn
        raw.prepare(b"", query.encode())
        types = []
        for found in (raw.describe_prepared(b""), raw.exec_(query.encode())):
            assert not found.error_message
            types.append([(found.fname(n), found.ftype(n)) for n in range(found.nfields)])
        assert types[0] == types[1]
        told.append([(name, 1009 if oid == 1034 else oid) for name, oid in types[0]])
    assert told[0] == told[1]


@pytest.mark.parametrize("query", MODIFIED)
def test_modifiers_are_postgresqls(both: tuple[Connection, Connection], query: str) -> None:
    """The length of a varchar, the digits of a numeric, those of a time's seconds."""
    told = []
    for client in both:
        client.pgconn.prepare(b"", query.encode())
        found = client.pgconn.describe_prepared(b"")
        told.append([(found.ftype(n), found.fmod(n)) for n in range(found.nfields)])
    assert told[0] == told[1]
