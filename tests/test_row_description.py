"""What RowDescription says of columns: type, modifier, and the relation's column it is. As PostgreSQL 15.18 answers."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import psycopg
import pytest
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
