"""Statements of every kind, one after the other, give what PostgreSQL gives: rows, SQLSTATEs and messages."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import psycopg
import pytest
from postgres import beside, differences
from servers import Server

Connection = psycopg.Connection[Any]

# Scripts of tests/data, each with the statements whose errors have other words here.
SCRIPTS: dict[str, tuple[str, ...]] = {
    "like": ("INSERT INTO like_domain VALUES (9)", "INSERT INTO all_of_domain VALUES (9)"),
    "edges": (),
    "everyday": (),
    "on_commit": (),
    "jsonpath": (),
    "names_of_outputs": (),
    "names_of_values": (),
    "primary_keys_in_group_by": (),
    "smallints": (),
    "unknown_texts": (),
}


@pytest.fixture(scope="module")
def both(in_process_server: Server) -> Iterator[tuple[Connection, Connection]]:
    with beside(in_process_server) as clients:
        yield clients


@pytest.mark.parametrize("name", SCRIPTS)
def test_scripts(both: tuple[Connection, Connection], name: str) -> None:
    assert differences(both, f"{name}.sql", SCRIPTS[name]) == []


NAMED = (
    "VALUES (1, 'a'), (2, NULL)", "SELECT * FROM (VALUES (1, 'a')) AS q", "SELECT 2 ^ 3, 7 % 3, mod(7, 3), power(2, 3)",
    "SELECT 'abc' ^@ 'a', starts_with('a', 'b'), now()::text ~ 'x', (2 ^ 3)::int", "SELECT 'a', 'a'::text, 'a' || 'b'",
    "SELECT upper('a'::varchar), 'a'::varchar, 1::text, to_char(1, '9'), concat(1, 'x')", "SELECT format('%s', 1)",
    "SELECT x.y, x.z FROM (SELECT 'lit' AS y, lower('A') AS z) AS x", "SELECT string_agg('a', ','), min('a'::varchar)",
    "SELECT 1e5, (1.5e3), -1e5, 1e5::int, 1.5, -1, (SELECT 1e5), true, NULL", "SELECT 1e5 UNION SELECT 2",
    "SELECT '{}'::jsonb -> 'a', ('{}'::jsonb ->> 'a')::int, '{}'::jsonb #> '{a}', '{}'::json #>> '{a}'",
    "SELECT |/ 4, ||/ 8, @ -1, sqrt(4), abs(1), ~ 1", "SELECT 'now'::date, 'tomorrow'::date, date 'today', 'now'::time",
    "SELECT * FROM (SELECT -1, 1.5, 1e5, 'a', '{}'::jsonb -> 'b') AS x",
)  # fmt: skip


@pytest.mark.parametrize("query", NAMED)
def test_names_and_types_of_outputs(both: tuple[Connection, Connection], query: str) -> None:
    found, expected = (
        [(column.name, column.type_code) for column in client.execute(query.encode()).description or ()]
        for client in both
    )
    assert found == expected


def test_views_follow_what_depends_on_a_primary_key(in_process_server: Server) -> None:
    query = """SELECT c.id, c.name || '!' AS name, count(o.id) AS n, sum(o.amount) AS s
               FROM buyer c LEFT JOIN bought o ON o.cid = c.id GROUP BY c.id HAVING c.name <> 'none'"""
    with in_process_server.connect() as client:
        client.execute("CREATE TABLE buyer (id int PRIMARY KEY, name text)")
        client.execute("CREATE TABLE bought (id int PRIMARY KEY, cid int, amount numeric)")
        client.execute(f"CREATE MATERIALIZED VIEW buyers AS {query}".encode())
        for statement in (
            "INSERT INTO buyer VALUES (1, 'ann'), (2, 'bob'), (3, 'none'), (4, NULL)",
            "INSERT INTO bought VALUES (1, 1, 5), (2, 1, 6), (3, 3, 7)",
            "UPDATE buyer SET name = 'bobby' WHERE id IN (2, 3)",
            "UPDATE bought SET cid = 2 WHERE id = 1",
            "DELETE FROM buyer WHERE id = 1",
        ):
            client.execute(statement.encode())
            client.execute("FLUSH")
            expected = client.execute(query.encode()).fetchall()
            assert sorted(client.execute("SELECT * FROM buyers").fetchall()) == sorted(expected)
        assert sorted(expected) == [(2, "bobby!", 1, 5), (3, "bobby!", 1, 7)]


def test_views_follow_what_paths_find(in_process_server: Server) -> None:
    query = """SELECT id, jsonb_path_query_array(d, '$.b[*] ? (@.x > 1 || @ == 2)') AS found,
               jsonb_path_exists(d, '$.a') AS is_there, jsonb_path_match(d, '$.a == 1') AS is_one FROM paths"""
    each = "SELECT id, p FROM paths, jsonb_path_query(d, '$.b[*]') AS p"
    with in_process_server.connect() as client:
        client.execute("CREATE TABLE paths (id int PRIMARY KEY, d jsonb)")
        client.execute(f"CREATE MATERIALIZED VIEW of_paths AS {query}".encode())
        client.execute(f"CREATE MATERIALIZED VIEW of_each AS {each}".encode())
        for document in ('{"a": 1, "b": [2, {"x": 5}]}', '{"b": [1]}', '{"a": 1}', None):
            client.execute("INSERT INTO paths VALUES (1, %s), (2, NULL)", (document,))
            client.execute("FLUSH")
            for view, of in (("of_paths", query), ("of_each", each)):
                expected = sorted(client.execute(of.encode()).fetchall(), key=str)
                assert sorted(client.execute(f"SELECT * FROM {view}".encode()).fetchall(), key=str) == expected
