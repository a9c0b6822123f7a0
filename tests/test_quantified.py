"""`> ALL (query)`, `= ANY (query)`, NOT IN of rows: as in PostgreSQL, in queries and views that follow, with NULLs."""

from __future__ import annotations

import random
from typing import Any

import psycopg
import pytest
from postgres import beside
from servers import Server, refused

Connection = psycopg.Connection[Any]

# Over tables a and b of (id, x, y, s).
QUERIES = (
    "SELECT id FROM a WHERE x > ALL (SELECT x FROM b)",
    "SELECT id FROM a WHERE x >= ALL (SELECT x FROM b WHERE x IS NOT NULL)",
    "SELECT id FROM a WHERE x > ALL (SELECT x FROM b WHERE false)",
    "SELECT id FROM a WHERE x < ANY (SELECT x FROM b)",
    "SELECT id FROM a WHERE x <> ALL (SELECT x FROM b)",
    "SELECT id FROM a WHERE x <> ANY (SELECT x FROM b)",
    "SELECT id FROM a WHERE x = ALL (SELECT x FROM b WHERE b.id = a.id)",
    "SELECT id FROM a WHERE NOT (x > ALL (SELECT x FROM b WHERE b.id = a.id))",
    "SELECT id FROM a WHERE s <= SOME (SELECT s FROM b WHERE b.y = a.y)",
    "SELECT id, x > ALL (SELECT x FROM b) AS r FROM a",
    "SELECT id, x <> ANY (SELECT y FROM b WHERE b.x = a.x) AS r FROM a",
    "SELECT id, (x + 1) * 0.5 < ALL (SELECT y FROM b) AS r FROM a",
    "SELECT id, x = ANY (SELECT x FROM b) AS r FROM a",
    "SELECT id, (SELECT max(y) FROM b) > ALL (SELECT x FROM b WHERE b.s = a.s) AS r FROM a",
    "SELECT id, CASE WHEN x > ALL (SELECT x FROM b WHERE x < 3) THEN 'big' ELSE 'small' END AS r FROM a",
    "SELECT id FROM a WHERE x > ALL (SELECT max(x) FROM b GROUP BY y HAVING count(*) > 0)",
    "SELECT s, max(x) AS x FROM a GROUP BY s HAVING max(x) > ALL (SELECT x FROM b WHERE x < 4)",
    "SELECT id FROM a WHERE (x, y) IN (SELECT x, y FROM b)",
    "SELECT id FROM a WHERE (x, y) NOT IN (SELECT x, y FROM b)",
    "SELECT id, (x, y) IN (SELECT x, y FROM b) AS r FROM a",
    "SELECT id, (x, y) NOT IN (SELECT x, y FROM b WHERE b.s = a.s) AS r FROM a",
    "SELECT id, (x, y) <> ALL (SELECT x, y FROM b) AS r FROM a",
    "SELECT id FROM a WHERE (x, s) = ANY (SELECT x, s FROM b)",
    "SELECT id, (x, y) = (SELECT x, y FROM b WHERE b.id = a.id) AS r FROM a",
    "SELECT id, (x, y) < (SELECT x, y FROM b WHERE b.id = 2) AS r FROM a",
    "SELECT id FROM a WHERE s LIKE ANY (SELECT s || '%' FROM b)",
    "SELECT id FROM a WHERE s ~ ANY (SELECT s FROM b)",
)
# Other queries, which views refuse with 0A000.
NO_VIEWS = (
    "SELECT id FROM a WHERE x >= ALL (SELECT x FROM b WHERE b.id <= a.id)",
    "SELECT id FROM a WHERE (x, y) NOT IN (SELECT x, y FROM b WHERE b.id > a.id)",
    "SELECT id, (x, y, s) IN (SELECT x, y, s FROM b) AS r FROM a",
)
ERRORS = (
    "SELECT id FROM a WHERE (x, y) IN (SELECT x, y, s FROM b)",
    "SELECT id FROM a WHERE (x, y) = ANY (SELECT x FROM b)",
    "SELECT id FROM a WHERE (x, y) = (SELECT x, y, s FROM b)",
    "SELECT (x, y) = (SELECT x, y FROM b) FROM a",
)
# Some of the queries that each take another way, for a short test.
SOME = (0, 5, 8, 9, 17, 18, 20, 23)


@pytest.mark.parametrize(
    ("queries", "steps"),
    [pytest.param([QUERIES[number] for number in SOME], 4, id="some"),
     pytest.param(QUERIES, 15, id="all", marks=pytest.mark.long)],
)  # fmt: skip
def test_as_postgres(in_process_server: Server, queries: list[str], steps: int) -> None:
    with beside(in_process_server) as clients:
        here, there = clients
        for client in clients:
            for table in ("a", "b"):
                client.execute(f"DROP TABLE IF EXISTS {table} CASCADE")
                client.execute(f"CREATE TABLE {table} (id int PRIMARY KEY, x int, y int, s text)")
        for number, query in enumerate(queries):
            here.execute(f"CREATE MATERIALIZED VIEW quantified{number} AS {query}".encode())
        for query in NO_VIEWS:
            assert refused(here, f"CREATE MATERIALIZED VIEW none AS {query}").sqlstate == "0A000", query
        chance = random.Random(7)
        for _ in range(steps):
            for statement in _changes(chance):
                for client in clients:
                    client.execute(statement.encode())
            here.execute("FLUSH")
            for number, query in enumerate(queries):
                expected = _rows(there, query)
                assert _rows(here, query) == expected, query
                assert _rows(here, f"SELECT * FROM quantified{number}") == expected, query
            for query in NO_VIEWS:
                assert _rows(here, query) == _rows(there, query), query
        for client in clients:
            client.execute("INSERT INTO a VALUES (20, 1, 1, 'a')")
            client.execute("INSERT INTO b VALUES (20, 1, 1, 'a'), (21, 1, 1, 'a')")
        for query in ERRORS:
            states = []
            for client in clients:
                with pytest.raises(psycopg.Error) as caught:
                    client.execute(query.encode())
                states.append((caught.value.sqlstate, caught.value.diag.message_primary))
            assert states[0] == states[1], query


def _changes(chance: random.Random) -> list[str]:
    """Some changes of some rows, many with NULLs."""

    def number() -> str:
        return chance.choice(["NULL", "1", "2", "3", "4"])

    found = []
    for _ in range(chance.choice([1, 1, 2, 5])):
        table, id_ = chance.choice("ab"), chance.randint(1, 6)
        found.append(f"DELETE FROM {table} WHERE id = {id_}")
        if chance.random() < 0.7:
            text = chance.choice(["NULL", "'a'", "'ab'", "'b'"])
            found.append(f"INSERT INTO {table} VALUES ({id_}, {number()}, {number()}, {text})")
        if chance.random() < 0.2:
            found.append(f"UPDATE {table} SET x = {number()} WHERE id > {id_}")
    return found


def _rows(client: Connection, query: str) -> list[tuple[Any, ...]]:
    return sorted(client.execute(query.encode()).fetchall(), key=repr)
