"""Functions of jsonb, and functions that return rows: PostgreSQL's values, in queries and in views over changes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import psycopg
import pytest
from postgres import beside
from servers import Server

Connection = psycopg.Connection[Any]

DOCUMENTS = (
    '{"a": 1, "b": [1, "x", null, {"c": [2]}], "e": {"f": "g,h:i"}}',
    '{"a": {"b": {"c": 3}}, "list": []}', "{}",
    '{"a": "it''s \\"quoted\\", {[", "é": "日本"}', "[]", '[1, "a", null, true, {"a": 2}, ["x"]]', '"text"',
    "4", "null", None, '{"a": null}', '["a", "b", "a"]',
)  # fmt: skip
OBJECTS, ARRAYS = "jsonb_typeof(d) = 'object'", "jsonb_typeof(d) = 'array'"
EITHER = "jsonb_typeof(d) IN ('object', 'array')"
# With the condition of the rows that have a value.
EXPRESSIONS = {
    "d ->> 'a'": "true", "d ->> 'b'": "true", "d ->> k": "true", "d ->> 4": "true", "d #>> '{b}'": "true",
    "d #>> '{b,3}'": "true", "jsonb_extract_path_text(d, 'a', 'b')": "true", "d::text": "true",
    "d - 'a'": EITHER, "d - k": EITHER, "d - 1": ARRAYS, "d - (-1)": ARRAYS, "d - ARRAY['a', 'b']": EITHER,
    "d #- '{b,0}'": OBJECTS, "d #- '{a}'": OBJECTS, "jsonb_set(d, '{a}', '[1]')": OBJECTS,
    "jsonb_set(d, '{a,b}', '\"new\"')": OBJECTS, "jsonb_set(d, '{b,3,c}', '0')": OBJECTS,
    "jsonb_set(d, '{1}', d)": ARRAYS, "jsonb_set(d, '{-1}', '9')": ARRAYS, "jsonb_set(d, '{99}', '9')": ARRAYS,
    "jsonb_set(d, '{-99}', '9')": ARRAYS, "jsonb_set(d, '{x}', '1', false)": OBJECTS,
    "jsonb_set(d, ARRAY[k], to_jsonb(n))": f"{OBJECTS} AND k IS NOT NULL", "jsonb_set(d, '{a}', NULL)": OBJECTS,
    "jsonb_strip_nulls(d)": "true", "jsonb_insert(d, '{b,1}', '\"new\"')": OBJECTS,
    "jsonb_insert(d, '{b,3,c,0}', d, true)": OBJECTS, "jsonb_insert(d, '{0}', '9')": ARRAYS,
    "jsonb_insert(d, '{-1}', '9', true)": ARRAYS, "jsonb_insert(d, '{99}', '9')": ARRAYS,
    "jsonb_insert(d, '{-99}', '9')": ARRAYS, "jsonb_insert(d, '{zz}', '9')": f"{OBJECTS} AND n IN (1, 3, 11)",
    "jsonb_object(ARRAY[k, t])": "k IS NOT NULL", "jsonb_object(ARRAY['a', 'b', 'a'], ARRAY[k, t, 'x'])": "true",
    "jsonb_object('{a,1,b,2}')": "true", "jsonb_build_object('b', n, 'a', k, 'b', ARRAY[n])": "true",
    "jsonb_build_array(interval '1 day' * n, n * 0.25 + 0.001, ROW(n, k), ARRAY[n * 0.5 + 0.01])": "true",
    "to_jsonb(n * 0.5 + 0.01)": "true", "to_jsonb(t::bytea)": "true", "to_jsonb(ARRAY[date '2024-01-01' + n])": "true",
    "to_jsonb(timestamp '2024-01-01' + n * interval '1 s')": "true",
    "to_jsonb(ROW(n * 0.5 + 0.01, timestamp '2024-01-01'))": "true",
    "jsonb_pretty(d)": "n <> 1 AND n <> 4", "jsonb_array_length(d)": ARRAYS,
    "num_nulls(d, k, n)": "true", "num_nonnulls(d, k, n)": "true",
    "regexp_split_to_array(t, '\\s*')": "true", "regexp_split_to_array(t, ',')": "true",
    "array_dims(string_to_array(t, ','))": "true", "array_ndims(ARRAY[[n]])": "true",
    "encode(convert_to(t, 'UTF8'), 'escape')": "true", "convert_from(convert_to(t, 'utf8'), 'UTF-8')": "true",
    "get_byte(convert_to(t, 'UTF8'), 1)": "length(t) > 1",
    "encode(set_byte(convert_to(t, 'UTF8'), 0, n), 'hex')": "length(t) > 0",
    "encode(decode('a\\\\\\\\' || '\\001', 'escape'), 'hex')": "true",
}  # fmt: skip
# What follows SELECT n, ...
ROWS = (
    f"jsonb_array_elements(d)::text AS x FROM v WHERE {ARRAYS}",
    f"jsonb_array_elements_text(d) AS x FROM v WHERE {ARRAYS}",
    f"jsonb_object_keys(d) AS x FROM v WHERE {OBJECTS}",
    f"x.key, x.value::text FROM v, jsonb_each(d) AS x WHERE {OBJECTS}",
    f"key, value FROM v, LATERAL jsonb_each_text(d) WHERE {OBJECTS}",
    f"p, q::text FROM v CROSS JOIN jsonb_each(d) AS x(p, q) WHERE {OBJECTS}",
    f"value::text FROM v, jsonb_array_elements(d) WHERE {ARRAYS}",
    f"item::text, item ->> 'a' AS a FROM v, jsonb_array_elements(d) AS item WHERE {ARRAYS}",
    f"item.value::text FROM v CROSS JOIN LATERAL jsonb_array_elements(d) AS item WHERE {ARRAYS}",
    f"y FROM v, jsonb_array_elements_text(d) WITH ORDINALITY AS x(y, o) WHERE {ARRAYS} AND o > 1",
    f"count(*) AS c FROM v, jsonb_array_elements(d) AS e WHERE {ARRAYS} GROUP BY n",
    "string_to_table(t, ',') AS x FROM v",
    "x FROM v, string_to_table(t, ',') AS x",
    "x FROM v, regexp_split_to_table(t, ',') AS x",
    "regexp_matches(t, '(.)(,)', 'g') AS x FROM v",
    "regexp_matches(t, '[a-z]', 'gi') AS x FROM v",
    "x FROM v, regexp_matches(t, '(o)(.)') AS x",
    "generate_subscripts(string_to_array(t, ','), 1) AS x FROM v",
    "i FROM v, generate_subscripts(string_to_array(t, ','), 1) AS i",
    "unnest(ARRAY[n, n + 1]) = ANY(ARRAY[2, 3]) AS x FROM v",
    "a, b FROM v, unnest(ARRAY[n, n + 1], ARRAY[k]) AS x(a, b)",
)
CHANGES = (
    "INSERT INTO v SELECT n + 100, d, k, t FROM v",
    "UPDATE v SET k = 'a', t = 'x,y', d = '{\"new\": [1, {\"x\": null}]}' WHERE n BETWEEN 101 AND 104",
    "DELETE FROM v WHERE n IN (102, 106, 112)",
    "DELETE FROM v WHERE n > 100",
)
# Equal documents that are written otherwise, and documents of each kind, with PostgreSQL's order of keys.
WRITTEN = (
    '{"a":2,"b":1}', '{"b":1,"a":2}', '{"b":0,"a":2,"b":1}', "9", "10", "-3", "-30", "9.5", "9007199254740993",
    "0.1", '{"x":1.5,"a":2}', '{"a":2,"x":1.5}',
    '"x"', '"a"', "null", None, '[1,{"z":1,"y":2}]', '[1,{"y":2,"z":1}]', "[]", "{}", "true", "false",
    '{"a":{"q":[{"v":1,"u":"é"}],"p":1}}', '{"a":{"p":1,"q":[{"u":"\\u00e9","v":1}]}}',
)  # fmt: skip
COMPARISONS = (
    'SELECT n FROM w WHERE d = \'{"a": 2, "b": 1}\'',
    "SELECT n FROM w WHERE d > '9' AND d <= '9007199254740993'",
    "SELECT n FROM w WHERE d BETWEEN '-3' AND '9.5' OR d IN ('\"x\"', '{\"b\": 1, \"a\": 2}')",
    'SELECT n, d IS DISTINCT FROM \'{"b": 1, "a": 2}\' AS x FROM w',
    "SELECT n, CASE d WHEN '10' THEN 'ten' WHEN '{\"b\": 1, \"a\": 2}' THEN 'object' END AS x FROM w",
    "SELECT d, count(*) AS c, max(n) AS m FROM w GROUP BY d",
    "SELECT w.d -> 'a' AS x, count(*) AS c FROM w GROUP BY 1 HAVING count(*) > 1",
    "SELECT d AS x, n > 16 AS y FROM w GROUP BY d, n > 16",
    "SELECT DISTINCT d, n > 16 AS y FROM w",
    "SELECT count(DISTINCT d) AS c FROM w",
    "SELECT d FROM w WHERE n < 8 UNION SELECT d -> 'a' FROM w",
    "SELECT d FROM w EXCEPT SELECT d FROM w WHERE n IN (2, 15, 20)",
    "SELECT d FROM w WHERE n % 2 = 1 EXCEPT ALL SELECT d FROM w WHERE n % 2 = 0",
    "SELECT d FROM w WHERE n % 2 = 1 INTERSECT ALL SELECT d FROM w WHERE n % 2 = 0",
    "SELECT l.n, r.n AS m FROM w AS l JOIN w AS r ON l.d = r.d AND l.n < r.n",
    "SELECT n FROM w WHERE d IN (SELECT d FROM w WHERE n % 3 = 0)",
    "SELECT n FROM w WHERE d IN (SELECT d FROM w WHERE n = 2 UNION SELECT d FROM w WHERE n = 5)",
    "SELECT n FROM w WHERE (d, 1) IN (SELECT d, 1 FROM w WHERE n = 2)",
    "SELECT n FROM w WHERE d = (SELECT d FROM w WHERE n = 2)",
    "SELECT n, (SELECT count(*) FROM w AS o WHERE o.d = w.d) AS c FROM w",
    "SELECT n, row_number() OVER (PARTITION BY d ORDER BY n) AS r FROM w",
    "SELECT n, r FROM (SELECT n, row_number() OVER (ORDER BY d DESC NULLS LAST, n) AS r FROM w) AS x WHERE r < 9",
    "SELECT n FROM w ORDER BY d NULLS FIRST, n LIMIT 7",
    "SELECT n, lead(n) OVER (ORDER BY d, n) AS x FROM w",
    "SELECT array_agg(n ORDER BY d, n) AS x FROM w",
)
OF_W = (
    "INSERT INTO w SELECT n + 100, d FROM w WHERE n % 2 = 0",
    'UPDATE w SET d = \'{"b": 1, "a": 2}\' WHERE n IN (4, 102, 110) OR d = \'"a"\'',
    'DELETE FROM w WHERE d = \'{"a": 2, "b": 1}\' AND n > 3 OR n IN (6, 108)',
)
ERRORS = {
    "SELECT jsonb_array_elements('{}')": ("22023", "cannot extract elements from an object"),
    "SELECT jsonb_array_elements('1')": ("22023", "cannot extract elements from a scalar"),
    "SELECT jsonb_object_keys('[]')": ("22023", "cannot call jsonb_object_keys on an array"),
    "SELECT * FROM jsonb_each('1')": ("22023", "cannot call jsonb_each on a non-object"),
    "SELECT '{}'::jsonb - 1": ("22023", "cannot delete from object using integer index"),
    "SELECT '1'::jsonb - 'a'": ("22023", "cannot delete from scalar"),
    "SELECT jsonb_set('{\"a\": []}', '{a,b}', '2')": ("22P02", 'path element at position 2 is not an integer: "b"'),
    "SELECT jsonb_set('{\"a\": {}}', ARRAY['a', NULL], '2')": ("22004", "path element at position 2 is null"),
    "SELECT jsonb_insert('{\"a\": 1}', '{a}', '2')": ("22023", "cannot replace existing key"),
    "SELECT jsonb_object(ARRAY['a'])": ("2202E", "array must have even number of elements"),
    "SELECT jsonb_object(ARRAY['a'], ARRAY['a', 'b'])": ("2202E", "mismatched array dimensions"),
    "SELECT jsonb_object(ARRAY[NULL::text, 'a'])": ("22004", "null value not allowed for object key"),
    "SELECT jsonb_set('1', '{a}', '2')": ("22023", "cannot set path in scalar"),
    "SELECT encode('a'::bytea, 'x')": ("22023", 'unrecognized encoding: "x"'),
}
TEXTS = ("a,b,,c", "foo Bar,oo", "", None, "é,日", "one", ",", "o, o", "x", "a,b", "O,o,", "  a ")


@pytest.fixture(scope="module")
def both(in_process_server: Server) -> Iterator[tuple[Connection, Connection]]:
    with beside(in_process_server) as clients:
        for client in clients:
            client.execute("CREATE TABLE v (n int PRIMARY KEY, d jsonb, k varchar, t varchar)")
            for number, document in enumerate(DOCUMENTS, start=1):
                values = (number, document, ("a", "b", None)[number % 3], TEXTS[number - 1])
                client.execute("INSERT INTO v VALUES (%s, %s, %s, %s)", values)
        yield clients


def answer(client: Connection, query: str) -> list[Any]:
    """The rows as text, in any order."""
    with client.cursor() as cursor:
        cursor.execute(query.encode())
        result = cursor.pgresult
        assert result is not None
        rows = [[result.get_value(row, place) for place in range(result.nfields)] for row in range(result.ntuples)]
    return sorted(rows, key=str)


def compare(both: tuple[Connection, Connection], queries: list[str], changes: tuple[str, ...] = CHANGES) -> None:
    """In queries, and in views of them while rows come and go."""
    connection, postgres = both
    wrong: list[tuple[str, object, object]] = []
    for number in range(len(queries)):
        connection.execute(f"DROP MATERIALIZED VIEW IF EXISTS made_{number}".encode())
    for number, query in enumerate(queries):
        expected = answer(postgres, query)
        try:
            found: object = answer(connection, query)
            connection.execute(f"CREATE MATERIALIZED VIEW made_{number} AS {query}".encode())
        except psycopg.Error as error:
            found = str(error)
        if found != expected:
            wrong.append((query, found, expected))
            connection.execute(f"DROP MATERIALIZED VIEW IF EXISTS made_{number}".encode())
    for change in ("SELECT 1", *changes):
        for client in both:
            client.execute(change.encode())
        connection.execute("FLUSH")
        for number, query in enumerate(queries):
            if any(query == failed for failed, *_ in wrong):
                continue
            found, expected = answer(connection, f"SELECT * FROM made_{number}"), answer(postgres, query)
            if found != expected:
                wrong.append((f"view, {change}: {query}", found, expected))
    assert not wrong, "\n".join(map(str, wrong))


@pytest.mark.long
def test_functions(both: tuple[Connection, Connection]) -> None:
    """Several a view, because each view takes a tenth of a second."""
    cases = [f"CASE WHEN {condition} THEN {call} END" for call, condition in EXPRESSIONS.items()]
    packs = (cases[start : start + 8] for start in range(0, len(cases), 8))
    compare(both, [f"SELECT n, {', '.join(f'{case} AS x{n}' for n, case in enumerate(pack))} FROM v" for pack in packs])


def test_functions_that_return_rows(both: tuple[Connection, Connection]) -> None:
    compare(both, [f"SELECT n, {rest}" for rest in ROWS])


def test_comparisons(both: tuple[Connection, Connection]) -> None:
    for client in both:
        client.execute("CREATE TABLE w (n int PRIMARY KEY, d jsonb)")
        for number, document in enumerate(WRITTEN, start=1):
            client.execute("INSERT INTO w VALUES (%s, %s)", (number, document))
    compare(both, list(COMPARISONS), OF_W)
    queries = [f"SELECT DISTINCT {items} FROM w WHERE n < 4 ORDER BY 1" for items in ("d", "w.d AS x", "w.*", "*")]
    queries += ["SELECT count(*) FROM (SELECT DISTINCT * FROM (SELECT d FROM w) AS x) AS y"]
    queries += [f"SELECT n FROM w WHERE n < 25 ORDER BY d{end}, n" for end in ("", " DESC", " NULLS FIRST")]
    queries += ["SELECT d AS x FROM w ORDER BY x, n", "SELECT d FROM w WHERE n < 25 ORDER BY 1 DESC, n LIMIT 5"]
    queries += ["SELECT jsonb_array_elements('[10, 9, \"a\"]') AS e ORDER BY e"]
    queries += ["SELECT '10.0'::jsonb = '10', '[1.50]'::jsonb >= '[1.5]', '1e2'::jsonb IN ('100')"]
    for query in queries:
        found, expected = (client.execute(query.encode()).fetchall() for client in both)
        assert found == expected, query


@pytest.mark.parametrize("query", ERRORS)
def test_errors(both: tuple[Connection, Connection], query: str) -> None:
    for client in both:
        with pytest.raises(psycopg.Error) as caught:
            client.execute(query.encode())
        assert (caught.value.sqlstate, caught.value.diag.message_primary) == ERRORS[query]


def test_names(both: tuple[Connection, Connection]) -> None:
    """The columns are called as in PostgreSQL."""
    queries = (
        "SELECT jsonb_object_keys('{}')",
        "SELECT * FROM jsonb_each('{}')",
        "SELECT * FROM jsonb_object_keys('{}')",
        "SELECT * FROM jsonb_array_elements('[]') AS x",
        "SELECT * FROM string_to_table('a', ',') AS x",
        "SELECT * FROM jsonb_array_elements('[]') WITH ORDINALITY",
        "SELECT * FROM jsonb_each('{}') AS x(y)",
    )
    for query in queries:
        names = [[column.name for column in client.execute(query.encode()).description or ()] for client in both]
        assert names[0] == names[1], query


@pytest.mark.parametrize("call", ["array_to_json(ARRAY[1], true)", "row_to_json(ROW(1), false)", "to_jsonb(1, 2)"])
def test_jsonb_has_one_form(both: tuple[Connection, Connection], call: str) -> None:
    with pytest.raises(psycopg.errors.UndefinedFunction, match=r"function .* does not exist"):
        both[0].execute(f"SELECT {call}".encode())
