"""json as drivers see it: its types, parameters and binary format, as PostgreSQL has them; and in copies in memory."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random
from typing import Any

import psycopg
import pytest
from postgres import beside
from psycopg import sql
from psycopg.types.json import Json, Jsonb
from servers import Server, refused, wait_until

from sparkwave.catalog.errors import Error
from sparkwave.planner.parse.json_texts import check_json

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


MARKS = ('"a"', "{", "}", "[", "]", ":", ",", "1", "-0.5", "01", "1.", "1e", "-", "true", "nul", " ", "é", "\t", "%",
         '"', '"\\n"', '"\\x"', '"\\u00"', '"\\u0041"', '"\\u0000"', '"\\ud83d\\ude00"', '"\\ud800"', '"\\ude00"',
         "NaN", '{"a": 1}', "[1, 2]")  # fmt: skip
WRONG = ("[1,]", '{"a": 1,}', '{"a"', "{,}", '{"a" 1}', "[1 2]", "1 2", "", '"\t"', '"a', '"\\', '"\\ud800\\ud800"')


@pytest.mark.parametrize("type_", ["json", "jsonb"])
def test_what_is_wrong_in_a_text_is_told_in_postgresqls_words(both: tuple[Connection, Connection], type_: str) -> None:
    random = Random(7)
    texts = [*WRONG, *("".join(random.choices(MARKS, k=random.randrange(1, 7))) for _ in range(2000))]
    both[1].execute(
        "CREATE OR REPLACE FUNCTION pg_temp.told(given text, kind text) RETURNS text[] LANGUAGE plpgsql AS $$"
        " DECLARE what text; BEGIN EXECUTE format('SELECT %L::%s', given, kind); RETURN NULL;"
        " EXCEPTION WHEN OTHERS THEN GET STACKED DIAGNOSTICS what = PG_EXCEPTION_DETAIL;"
        " RETURN ARRAY[SQLSTATE, SQLERRM, what]; END $$"
    )
    asked = "SELECT pg_temp.told(x, %s) FROM unnest(%s::text[]) WITH ORDINALITY u(x, n) ORDER BY n"
    expected = [found for (found,) in both[1].execute(asked, (type_, texts)).fetchall()]
    assert [(text, _told(text, type_)) for text in texts] == list(zip(texts, expected, strict=True))


def _told(text: str, type_: str) -> list[str | None] | None:
    try:
        check_json(text, is_read=type_ == "jsonb")
    except Error as error:
        return [error.sqlstate, error.message, error.detail]
    return None


@pytest.mark.parametrize("text", ["[1,]", "{a}", '{"a"', "[NaN]", '"\\\\u0000"'])
@pytest.mark.parametrize("column", ["d", "b"])
def test_what_is_wrong_in_a_copied_document_is_told(
    both: tuple[Connection, Connection], column: str, text: str
) -> None:
    found = []
    for client in both:
        try:
            with client.cursor().copy(f"COPY docs (id, {column}) FROM STDIN".encode()) as copy:
                copy.write(f"80\t{{}}\n81\t{text}\n".encode())
            found.append(None)
        except psycopg.Error as error:
            told = error.diag
            place = (told.context or "").rsplit("\n", 1)[-1]
            found.append((told.sqlstate, told.message_primary, told.message_detail, place))
        client.execute("DELETE FROM docs WHERE id >= 80")
    assert found[0] == found[1]


@pytest.mark.parametrize(
    "statement",
    [
        "SELECT '[1,]'::jsonb", "SELECT jsonb '{\"a\"'", "SELECT '{\"a\"'::json", "SELECT ARRAY['1', '[1,]']::jsonb[]",
        "SELECT '{\"[1,]\"}'::jsonb[]", "INSERT INTO docs (id, b) VALUES (70, '[1,]')",
        "SELECT 1 FROM docs WHERE b = '[1,]'", "SELECT 1 FROM docs WHERE b @> '[1,]'",
        "SELECT jsonb_array_length('[1,]')", "SELECT '\"\\u0000\"'::jsonb",
        "UPDATE docs SET b = '{a}'",
    ],
)  # fmt: skip
def test_where_a_wrong_document_stands_is_told(both: tuple[Connection, Connection], statement: str) -> None:
    here, there = (refused(client, statement).diag for client in both)
    assert (here.sqlstate, here.message_detail, here.statement_position) == (
        there.sqlstate, there.message_detail, there.statement_position,
    )  # fmt: skip
