"""json as drivers see it: its types, parameters and binary format, as PostgreSQL has them; and in copies in memory."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import psycopg
import pytest
from postgres import beside
from psycopg import sql
from psycopg.types.json import Json, Jsonb
from servers import Server, wait_until

Connection = psycopg.Connection[Any]

QUERIES = (
    "SELECT $1::json, '1'::json", "SELECT cast($1 AS json[])", "SELECT $1::json -> 'a'",
    "SELECT coalesce($1, '{}'::json)", "SELECT json_typeof($1) IS NULL", "SELECT json_array_length($1)",
    "INSERT INTO docs (id, d, b, a) VALUES ($1, $2, $3, $4)", "UPDATE docs SET d = $1 WHERE id = $2",
    "SELECT d, b, a, d -> 'x', d #> '{x}', a[1] FROM docs WHERE d ->> 'x' = $1",
    "SELECT json_agg(d), json_object_agg(id, d) FROM docs", "SELECT row_to_json(docs) FROM docs",
)  # fmt: skip


@pytest.fixture(scope="module")
def both(module_server: Server) -> Iterator[tuple[Connection, Connection]]:
    with beside(module_server) as connections:
        for client in connections:
            client.execute("CREATE TABLE docs (id int PRIMARY KEY, d json, b jsonb, a json[])")
        yield connections


def described(client: Connection, query: str) -> tuple[list[int], list[int]]:
    client.pgconn.prepare(b"", query.encode())
    found = client.pgconn.describe_prepared(b"")
    assert not found.error_message, found.error_message
    return [found.param_type(n) for n in range(found.nparams)], [found.ftype(n) for n in range(found.nfields)]


@pytest.mark.parametrize("query", QUERIES)
def test_types_are_postgresqls(both: tuple[Connection, Connection], query: str) -> None:
    here, there = (described(client, query) for client in both)
    assert here == there


def test_values_go_in_and_out(both: tuple[Connection, Connection]) -> None:
    """As json or jsonb, text or binary, by INSERT and COPY; json into columns of jsonb and the other way round."""
    found = []
    for client in both:
        client.execute("TRUNCATE docs")
        for number, wrap in enumerate((Json, Jsonb)):
            for way in ("t", "b"):
                places = sql.SQL(", ").join([sql.Placeholder(format=way)] * 4)  # type: ignore[arg-type]
                values = (len(way) * number + ord(way), wrap({"x": [1]}), wrap({"x": None}), [Json({"y": 1}), None])
                client.execute(sql.SQL("INSERT INTO docs VALUES ({})").format(places), values)
        client.execute("INSERT INTO docs VALUES (1, NULL, NULL, NULL)")
        with client.cursor().copy("COPY docs FROM STDIN (FORMAT BINARY)") as copy:
            copy.set_types(["int4", "json", "jsonb", "json[]"])
            copy.write_row((2, Json([1]), Jsonb([1]), [Json("z"), None]))
            copy.write_row((3, None, None, None))
        query = b"SELECT *, d IS NULL, a[2] IS NULL, d::text FROM docs ORDER BY id"
        found.append([client.execute(query, binary=binary).fetchall() for binary in (False, True)])
    assert found[0] == found[1] and found[0][0] == found[0][1]


def test_a_row_of_a_table_becomes_json(both: tuple[Connection, Connection]) -> None:
    for client in both:
        client.execute("TRUNCATE docs")
        client.execute("""INSERT INTO docs VALUES (1, '{"x":1}', '{"y": 2}', '{1}'), (2, NULL, NULL, NULL)""")
    query = b"SELECT row_to_json(docs), (to_jsonb(docs) -> 'a')::text FROM docs ORDER BY id"
    here, there = (client.execute(query).fetchall() for client in both)
    assert here == there


def test_nulls_stay_nulls_in_copies(both: tuple[Connection, Connection]) -> None:
    client, _ = both
    client.execute("TRUNCATE docs")
    client.execute("INSERT INTO docs (id, d) VALUES (1, NULL), (2, '{}')")
    query = b"SELECT id, d IS NULL, a IS NULL, d::text FROM docs ORDER BY id"
    known = b"SELECT count(*) FROM rw_catalog.rw_serving_cache WHERE relation_name = 'docs'"

    def is_copied() -> bool:
        client.execute(query).fetchall()
        return client.execute(known).fetchall() == [(1,)]

    assert wait_until(is_copied)
    client.execute("INSERT INTO docs (id, d) VALUES (3, NULL), (4, '[1]')")
    assert client.execute(query).fetchall() == [
        (1, True, True, None), (2, False, True, "{}"), (3, True, True, None), (4, False, True, "[1]")
    ]  # fmt: skip
