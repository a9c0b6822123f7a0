"""RisingWave's functions that PostgreSQL has not, or not yet: in queries, and in a view that follows its table."""

from __future__ import annotations

import hmac
import math
import zlib
from collections.abc import Iterator
from typing import Any

import psycopg
import pytest
from servers import Server

Connection = psycopg.Connection[Any]

TEXTS = ("", "Straße", "GROẞE", "ﬁnd ﬄ", "ΣΑΣ ς", "İstanbul", "Ꭰꭰ", "ᾳ ΰ", "plain ASCII Text", "€ 😀 ǰ", "123456789")
# Of RFC 3720, B.4, and of "123456789".
CASTAGNOLI = {r"\x" + "00" * 32: 0x8A9136AA, r"\x" + "ff" * 32: 0x62A8AB43, "123456789": 0xE3069283, "": 0}


@pytest.fixture(scope="module")
def connection(in_process_server: Server) -> Iterator[Connection]:
    with in_process_server.connect() as made:
        made.execute("CREATE TABLE texts (id int PRIMARY KEY, s varchar)")
        made.cursor().executemany("INSERT INTO texts VALUES (%s, %s)", list(enumerate(TEXTS)))
        made.execute(
            "CREATE TABLE lists (id int PRIMARY KEY, g int, a int[], n numeric[], d varchar, v int,"
            " r struct<x int, y varchar>[])"
        )
        made.execute(
            "INSERT INTO lists VALUES (1, 1, '{1,2,NULL}', '{1.5,2}', ',', 10, ARRAY[ROW(1, 'x'), ROW(2, NULL)]),"
            " (2, 1, '{}', NULL, '|', 20, NULL), (3, 2, NULL, '{}', NULL, NULL, NULL)"
        )
        yield made


def test_checks_and_case_folding(connection: Connection) -> None:
    query = "SELECT s, crc32(s), crc32(s::bytea), crc32c(s), casefold(s) FROM texts"
    connection.execute(f"CREATE MATERIALIZED VIEW folded AS {query.replace('s::bytea)', 's::bytea) AS crc')}".encode())
    for of in (query, "SELECT * FROM folded"):
        for text, check, of_bytes, castagnoli, folded in connection.execute(of.encode()).fetchall():
            assert (check, of_bytes, folded) == (zlib.crc32(text.encode()), zlib.crc32(text.encode()), text.casefold())
            assert 0 <= castagnoli < 2**32
    for text, check in CASTAGNOLI.items():
        assert connection.execute("SELECT crc32c(%s::bytea)", (text,)).fetchone() == (check,)
    assert connection.execute(r"SELECT crc32('\x00'), crc32(NULL), casefold(NULL)").fetchone() == (
        3523407757,
        None,
        None,
    )


def test_bytes_of_bigints(connection: Connection) -> None:
    query = "SELECT int8recv(int8send(n)) - n, encode(int8send(n), 'hex') FROM"
    values = "(VALUES (0::bigint), (-5), (2147483647), (9223372036854775807), (-9223372036854775808)) AS v (n)"
    expected = [(0, f"{n % 2**64:016x}") for n in (0, -5, 2**31 - 1, 2**63 - 1, -(2**63))]
    assert connection.execute(f"{query} {values}".encode()).fetchall() == expected
    connection.execute("CREATE TABLE bigints (n bigint)")
    connection.execute(
        "CREATE MATERIALIZED VIEW sent AS SELECT n, int8recv(int8send(n)) AS m, int8recv('x') AS x FROM bigints"
    )
    connection.execute("INSERT INTO bigints VALUES (-9223372036854775808), (NULL)")
    connection.execute("FLUSH")
    found = connection.execute("SELECT m, x FROM sent ORDER BY n").fetchall()
    assert found == [(-9223372036854775808, None), (None, None)]
    assert connection.execute("SELECT int8recv(NULL), int8recv('       a')").fetchone() == (None, 2314885530818453601)
    for value in ("x", "012345678"):
        with pytest.raises(psycopg.Error) as raised:
            connection.execute("SELECT int8recv(%s::bytea)", (value,))
        assert raised.value.sqlstate == "22P03"
    with pytest.raises(psycopg.errors.UndefinedFunction):
        connection.execute("SELECT int8recv(to_hex(1))")


# Of texts as json, whether they are a value, an object, an array, a scalar, and an object of unique keys.
KINDS = {
    '{"a": 1, "a": [NaN]}': (False,) * 5, '{"a": 1, "a": 2}': (True, True, False, False, False),
    ' {"b": {"c": 1}}': (True, True, False, False, True), '{"b": {"c": 1, "c": 2}}': (True, True, False, False, False),
    "[1, {}]": (True, False, True, False, False), '"x"': (True, False, False, True, False),
    "-1.5e3": (True, False, False, True, False), "[1,]": (False,) * 5, "01": (False,) * 5, "": (False,) * 5,
}  # fmt: skip


def test_hashes_with_a_secret_and_texts_that_are_json(connection: Connection) -> None:
    connection.execute("CREATE TABLE given (s varchar PRIMARY KEY)")
    connection.cursor().executemany("INSERT INTO given VALUES (%s)", [(text,) for text in KINDS])
    query = (
        "SELECT s, s IS JSON AS v, s IS JSON OBJECT AS o, s IS JSON ARRAY AS a, NOT s IS NOT JSON SCALAR AS c,"
        " s IS JSON OBJECT WITH UNIQUE KEYS AS u, hmac('key', s::bytea, 'sha256') AS h FROM given"
    )
    connection.execute(f"CREATE MATERIALIZED VIEW hashed AS {query}".encode())
    expected = {text: (*kinds, hmac.digest(b"key", text.encode(), "sha256")) for text, kinds in KINDS.items()}
    for of in (query, "SELECT * FROM hashed"):
        assert {text: tuple(rest) for text, *rest in connection.execute(of.encode()).fetchall()} == expected
    shown = connection.execute(
        "SELECT '{}'::jsonb IS JSON OBJECT, '[1]'::json IS JSON ARRAY, NULL IS JSON, '{}' IS JSON"
    )
    assert shown.fetchone() == (True, True, None, True)
    for wrong, error in (
        ("1 IS JSON", psycopg.errors.DatatypeMismatch),
        ("hmac('key', s, 'sha256')", psycopg.errors.UndefinedFunction),  # pgcrypto's has the secret second
        ("hmac('key', 'x', 'sha7')", psycopg.errors.InvalidParameterValue),
    ):
        with pytest.raises(error):
            connection.execute(f"SELECT {wrong} FROM given".encode())


# By the expression over `lists`, its values.
TRANSFORMED = {
    "array_transform(a, |x| x * 2)": [[2, 4, None], [], None],
    "array_transform(a, |V| v + g)": [[2, 3, None], [], None],
    "array_transform(a, |x| x + v)": [[11, 12, None], [], None],
    "array_transform(array_transform(a, |x| x + 0.5), |x| concat(x, '!'))": [["1.5!", "2.5!", "!"], [], None],
    "array_transform(ARRAY[[g], a], |x| array_transform(x, |y| y + cardinality(x)))": [
        [[2], [4, 5, None]], [[2], []], [[3], None]],
    "array_transform(a, |x| CASE WHEN x > 1 THEN 'many' END)": [[None, "many", None], [], None],
    "array_transform(n, |x| x::int)": [[2, 2], None, []],
    "array_transform(r, |x| (x).y || (x).x)": [["x1", None], None, None],
    "array_sum(array_transform(a, |x| x * x))": [5, None, None],
    "array_flatten(ARRAY[a, ARRAY[g]])": [[1, 2, None, 1], [1], [2]],
    "array_reverse(a)": [[None, 2, 1], [], None],
    "array_length(a)": [3, 0, None],
    "array_join(a, d)": ["1,2", "", None],
    "array_to_string(a, d || ' ', '?')": ["1, 2, ?", "", None],
    "array_join(ARRAY[1, 2], NULL)": [None, None, None],
    "array_is_overlap(a, ARRAY[2])": [True, False, None],
    "array_is_intersect(a, ARRAY[7, NULL])": [False, False, None],
}  # fmt: skip


def test_elements_are_transformed(connection: Connection) -> None:
    listed = ", ".join(f"{expression} AS x{number}" for number, expression in enumerate(TRANSFORMED))
    query = f"SELECT id, {listed} FROM lists"
    connection.execute(f"CREATE MATERIALIZED VIEW transformed AS {query}".encode())
    for of in (query, "SELECT * FROM transformed"):
        rows = connection.execute(f"{of} ORDER BY id".encode()).fetchall()
        for place, expression in enumerate(TRANSFORMED, 1):
            assert [row[place] for row in rows] == TRANSFORMED[expression], expression
    (types,) = connection.execute("SELECT pg_typeof(x0), pg_typeof(x3), pg_typeof(x4) FROM transformed").fetchmany(1)
    assert types == ("integer[]", "character varying[]", "integer[]")
    connection.execute("UPDATE lists SET a = '{7}', v = 1 WHERE id = 2")
    connection.execute("FLUSH")
    assert connection.execute("SELECT x0, x2, x11 FROM transformed WHERE id = 2").fetchone() == ([14], [8], 1)
    connection.execute("UPDATE lists SET a = '{}', v = 20 WHERE id = 2")


# By the statement, what the message says and where.
MISTAKES = {
    "SELECT array_transform(a, |x| x +) FROM lists": ("42601", 'syntax error at or near ")"', 34),
    "SELECT array_transform(a, |x x) FROM lists": ("42601", 'syntax error at or near "x"', 30),
    "SELECT array_transform(a, |x| y) FROM lists": ("42703", 'column "y" does not exist', 31),
    "SELECT array_transform(a, 1) FROM lists": (
        "42883", "function array_transform(integer[], integer) does not exist", 8),
    "SELECT abs(|x| x)": ("42601", "a lambda expression is an argument of array_transform and map_filter alone", None),
    "SELECT array_transform(a, |x| (SELECT x)) FROM lists": (
        "0A000", "subqueries in lambda expressions are not supported", None),
    "SELECT {1: 2}": ("42601", 'syntax error at or near ":"', 10),
}  # fmt: skip


@pytest.mark.parametrize("statement", MISTAKES)
def test_wrong_lambdas(connection: Connection, statement: str) -> None:
    with pytest.raises(psycopg.Error) as raised:
        connection.execute(statement.encode())
    sqlstate, message, position = MISTAKES[statement]
    diag = raised.value.diag
    assert (diag.sqlstate, diag.message_primary) == (sqlstate, message)
    assert position is None or diag.statement_position == str(position)


def test_aggregates_of_array_functions(connection: Connection) -> None:
    """`aggregate:f(x)` is `f(array_agg(x))`."""
    pairs = {
        "aggregate:array_sum(v)": "array_sum(array_agg(v))",
        "AGGREGATE:array_to_string(v, d ORDER BY id)": "array_to_string(array_agg(v ORDER BY id), ',')",
        "aggregate:array_max(DISTINCT v) FILTER (WHERE v < 20)": "array_max(array_agg(v) FILTER (WHERE v < 20))",
    }
    prefixed = ", ".join(f"{call} AS x{number}" for number, call in enumerate(pairs)).replace("v, d", "v, ','")
    query = f"SELECT g, {prefixed} FROM lists GROUP BY g"
    connection.execute(f"CREATE MATERIALIZED VIEW aggregated AS {query}".encode())
    plain = f"SELECT g, {', '.join(pairs.values())} FROM lists GROUP BY g ORDER BY g"
    for change in (
        "FLUSH",
        "INSERT INTO lists (id, g, v) VALUES (4, 2, 5), (5, 1, 6)",
        "DELETE FROM lists WHERE id > 3",
    ):
        connection.execute(change.encode())
        connection.execute("FLUSH")
        expected = connection.execute(plain.encode()).fetchall()
        assert connection.execute(f"{query} ORDER BY g".encode()).fetchall() == expected
        assert connection.execute("SELECT * FROM aggregated ORDER BY g").fetchall() == expected
    over = "SELECT id, aggregate:array_sum(v) OVER (ORDER BY id) FROM lists ORDER BY id"
    assert connection.execute(over.encode()).fetchall() == [(1, 10), (2, 30), (3, 30)]


def test_gamma(connection: Connection) -> None:
    """As in PostgreSQL 18."""
    for value in (0.5, 1.0, 5.0, 170.5, -0.5):
        found = connection.execute("SELECT gamma(%s::float8), lgamma(%s::float8)", (value, value)).fetchone()
        assert found == pytest.approx((math.gamma(value), math.lgamma(value)))
    infinite = "SELECT gamma('Infinity'), lgamma('-Infinity'), gamma('NaN')"
    assert str(connection.execute(infinite).fetchone()) == "(inf, inf, nan)"
    for call in (
        "gamma(0)",
        "gamma(-1)",
        "gamma('-Infinity')",
        "gamma(1000)",
        "lgamma(0)",
        "lgamma(-1)",
        "lgamma(1e308)",
    ):
        with pytest.raises(psycopg.errors.NumericValueOutOfRange, match="overflow"):
            connection.execute(f"SELECT {call}".encode())
    with pytest.raises(psycopg.errors.NumericValueOutOfRange, match="underflow"):
        connection.execute("SELECT gamma(-1000.5)")


def test_nulls_leave_documents_and_their_arrays(connection: Connection) -> None:
    """As in PostgreSQL 18."""
    documents = {
        '[1, 2, null, 3]': [1, 2, 3], "null": None, '{"a": 1, "b": null, "c": [2, null]}': {"a": 1, "c": [2]},
        '[null, {"a": "null,", "b": [null]}, null]': [{"a": "null,", "b": []}], '"null"': "null",
    }  # fmt: skip
    for document, stripped in documents.items():
        assert connection.execute("SELECT jsonb_strip_nulls(%s::jsonb, true)", (document,)).fetchone() == (stripped,)
    assert connection.execute("SELECT jsonb_strip_nulls('[1, null]', false)").fetchone() == ([1, None],)
