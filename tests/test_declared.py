"""Casts, operators, lists and aggregates of all types: what PostgreSQL refuses is refused, in its words and place."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from typing import Any

import psycopg
import pytest
from postgres import Postgres, beside
from servers import Server

from sparkwave.catalog.types import Type, parse_type
from sparkwave.planner.functions.argument_counts import COUNTS
from sparkwave.planner.functions.declared import (
    CALLS,
    OF_DOCUMENTS,
    are_alike,
    has_cast,
    has_operator,
    has_sign,
    have_common,
    takes_argument,
    takes_documents,
)

Connection = psycopg.Connection[Any]

VALUES = {
    "smallint": "1", "integer": "1", "bigint": "1", "numeric": "1", "real": "1", "double precision": "1",
    "boolean": "true", "text": "1", "varchar": "1", "date": "2024-01-01", "time": "01:00", "timestamp": "2024-01-01",
    "timestamptz": "2024-01-01", "interval": "1 day", "bytea": "x", "json": "1", "jsonb": "1",
    "uuid": "00000000-0000-0000-0000-000000000001", "integer[]": "{1}", "text[]": "{1}", "date[]": "{2024-01-01}",
}  # fmt: skip
TYPES = {name: parse_type(name) for name in VALUES}
NAMES = {name: f"c{number}" for number, name in enumerate(VALUES)}
OPERATORS = (
    "+", "-", "*", "/", "%", "^", "||", "=", "<>", "<", ">=", "&", "|", "#", "<<", ">>", "->", "->>", "#>", "#>>", "#-",
    "@>", "<@", "?", "?|", "?&", "&&", "~", "~*", "~~", "~~*",
)  # fmt: skip
AGGREGATES = (
    "avg", "sum", "stddev", "stddev_pop", "stddev_samp", "variance", "var_pop", "var_samp", "bool_and", "bool_or",
    "every", "bit_and", "bit_or", "bit_xor",
)  # fmt: skip
_REFUSALS = frozenset({"42846", "42883", "42804", "42725", "42809"})
COLUMNS = ", ".join(f"{NAMES[name]} {name}" for name in VALUES)
ROW = ", ".join(f"'{value}'" for value in VALUES.values())

# One of each kind in a statement, in each place of it.
REFUSED = (
    "SELECT avg(d) FROM m", "SELECT id, sum(d) OVER (ORDER BY id) FROM m", "SELECT sum(DISTINCT d) FROM m",
    "SELECT d::int FROM m", "SELECT 1, CAST(CAST(d AS timestamp) AS int) FROM m", "SELECT (id + 1)::date FROM m",
    "SELECT date '2024-01-01'::int", "SELECT j -> d FROM m", "SELECT id FROM m WHERE id = ANY(l)",
    "SELECT id = ALL(ARRAY['a']::text[]) FROM m", "SELECT id = ANY(SELECT s FROM m) FROM m",
    "SELECT id = ANY(s) FROM m",
    "SELECT CASE id WHEN 2 THEN 1 WHEN s THEN 2 END FROM m", "SELECT s NOT LIKE id FROM m", "SELECT s !~ id FROM m",
    "SELECT id NOT BETWEEN 3 AND s FROM m", "SELECT sum(x) FROM (SELECT d AS x FROM m) q",
    "WITH q AS (SELECT s AS x FROM m) SELECT x + 1 FROM q", "SELECT d + count(*) FROM m GROUP BY d",
    "SELECT string_agg(id, ',') FROM m", "SELECT lag(id, n) OVER (ORDER BY id) FROM m",
    "SELECT ntile(n) OVER () FROM m",
    "SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY s) FROM m", "SELECT coalesce(id, n, s) FROM m",
    "SELECT CASE WHEN true THEN s ELSE id END FROM m", "SELECT ARRAY[d, t] FROM m",
    "SELECT d FROM m UNION SELECT t FROM m",
    "SELECT n FROM m UNION ALL SELECT s FROM m", "SELECT j = s FROM m", "SELECT j - t FROM m", "SELECT j ? id FROM m",
    "SELECT DISTINCT id FROM m ORDER BY n", "SELECT DISTINCT lower(s) FROM m ORDER BY s",
    "SELECT DISTINCT m.id FROM m JOIN m AS o ON o.id = m.id ORDER BY m.id, o.n",
    "SELECT string_agg(DISTINCT s, ',' ORDER BY v) FROM m", "SELECT array_agg(DISTINCT id ORDER BY n DESC) FROM m",
    "SELECT DISTINCT ON (id, n) s FROM m ORDER BY n, s", "SELECT DISTINCT count(*) FROM m GROUP BY id ORDER BY id",
    "SELECT s -> 'a' FROM m", "SELECT upper(s) ->> 0 FROM m", "SELECT (SELECT s) #> '{a}' FROM m",
    "SELECT id FROM m WHERE s ? 'a'", "SELECT s @> '{}' FROM m", "SELECT jsonb_array_length(s) FROM m",
    "SELECT jsonb_typeof(x) FROM (SELECT max(s) AS x FROM m) q", "SELECT e FROM m, jsonb_array_elements_text(m.s) AS e",
    "SELECT jsonb_each(s) FROM m", "SELECT r.a FROM m, jsonb_to_record(m.s) AS r(a int)",
    "SELECT jsonb_set(j, '{a}', s) FROM m", "SELECT json_array_length(j) FROM m", "SELECT jsonb_object(s) FROM m",
    "SELECT r.k FROM m, jsonb_populate_record(NULL::parts, m.s) AS r",
)  # fmt: skip
ACCEPTED = (
    "SELECT DISTINCT id AS x FROM m ORDER BY x", "SELECT DISTINCT m.id FROM m ORDER BY id",
    "SELECT DISTINCT lower(m.s) FROM m ORDER BY LOWER(s) DESC", "SELECT DISTINCT id + 1 FROM m ORDER BY (id + 1)",
    "SELECT DISTINCT id, s FROM m ORDER BY 2, 1", "SELECT DISTINCT ON (m.id, n) s FROM m ORDER BY n, id DESC, s",
    "SELECT DISTINCT ON (x) id AS x, n FROM m ORDER BY x, n", "SELECT DISTINCT ON (id) id AS x, n FROM m ORDER BY 1, n",
    "SELECT array_agg(DISTINCT id ORDER BY id DESC) FROM m",
    "SELECT DISTINCT * FROM (SELECT id, n FROM m) q ORDER BY n",
    "SELECT a + 1 FROM (VALUES (1), ('20')) AS q (a) ORDER BY 1",
    "SELECT x * 2 FROM unnest(ARRAY[[1, 2], [3, 4]]) AS x",
    "SELECT x || y FROM unnest(ARRAY[1], ARRAY['a']) AS u (x, y)", "SELECT ARRAY[[1]] || ARRAY[2]",
    "SELECT ARRAY[id, '2']::text[] FROM m",
    "SELECT t::interval + d, d - t::interval FROM m", "SELECT j -> 'a' -> id FROM m", "SELECT id = ANY('{1}') FROM m",
    "SELECT jsonb_typeof('1'), jsonb_set(j, '{a}', '1'), jsonb_set('{}', l, j), jsonb_object(l || l) FROM m",
    "SELECT NULL::jsonb -> 'a', j #> l, j ?| l, l @> '{a}', '{\"a\": 1}'::json -> 'a' IS NULL FROM m",
    "SELECT s || j, j || s, s || (j -> 'a') FROM m",
    "SELECT 'pg_class'::regclass::oid::int", "SELECT json '1'::text::jsonb = j FROM m", "SELECT (id > 1)::int FROM m",
)  # fmt: skip


@pytest.fixture(scope="module")
def postgres() -> Iterator[Connection]:
    started = Postgres()
    try:
        with started.connect() as client:
            client.execute(f"CREATE TABLE of_all ({COLUMNS})".encode())
            client.execute(f"INSERT INTO of_all VALUES ({ROW})".encode())
            yield client
    finally:
        started.stop()


def _refused(client: Connection, expression: str) -> str | None:
    try:
        client.execute(f"SELECT {expression} FROM of_all".encode())
    except psycopg.Error as error:
        return error.sqlstate if error.sqlstate in _REFUSALS else None
    return None


def _is_exact(*types: Type) -> bool:
    """Whether it is known of all elements of arrays, not only that they are numbers."""
    return not any(type_.dimensions for type_ in types)


def test_casts_are_those_of_postgresql(postgres: Connection) -> None:
    for (own, source), (other, target) in product(TYPES.items(), TYPES.items()):
        assert has_cast(source, target) == (_refused(postgres, f"{NAMES[own]}::{other}") is None), (own, other)


@pytest.mark.parametrize("operator", OPERATORS)
def test_operators_are_those_of_postgresql(postgres: Connection, operator: str) -> None:
    for (own, left), (other, right) in product(TYPES.items(), TYPES.items()):
        is_there = _refused(postgres, f"{NAMES[own]} {operator} {NAMES[other]}") is None
        found = has_operator(operator, left, right)
        assert found == is_there or (found and not _is_exact(left, right)), (own, other)


def test_signs_are_those_of_postgresql(postgres: Connection) -> None:
    for sign, (name, type_) in product(("-", "+", "~", "|/", "||/", "@"), TYPES.items()):
        assert has_sign(sign, type_) == (_refused(postgres, f"{sign} {NAMES[name]}") is None), (sign, name)


def test_lists_are_those_of_postgresql(postgres: Connection) -> None:
    for (own, left), (other, right) in product(TYPES.items(), TYPES.items()):
        sqlstate = _refused(postgres, f"coalesce({NAMES[own]}, {NAMES[other]})")
        assert have_common(left, right) == (sqlstate is None), (own, other)
        if sqlstate is not None:
            assert are_alike(left, right) == (sqlstate == "42846"), (own, other)


@pytest.mark.parametrize("aggregate", AGGREGATES)
def test_aggregates_are_those_of_postgresql(postgres: Connection, aggregate: str) -> None:
    for name, type_ in TYPES.items():
        is_there = _refused(postgres, f"{aggregate}({NAMES[name]})") is None
        assert takes_argument(aggregate, type_) == is_there, name


@pytest.mark.parametrize("function", [name for name in sorted(OF_DOCUMENTS) if "_to_" not in name])
def test_functions_of_documents_are_those_of_postgresql(postgres: Connection, function: str) -> None:
    count, own = COUNTS.get(function, (2, 2))[0], {"jsonb": "'1'", "text[]": "'{}'", "text": "'$'"}
    others = [own[part] for part in CALLS[function][1:count]]
    before = ["NULL::of_all"] if "_populate_" in function else []
    for name, type_ in TYPES.items():
        call = f"{function}({', '.join([*before, NAMES[name], *others])})"
        is_there = _refused(postgres, call) is None
        assert takes_documents(function, [type_]) == is_there, name


@pytest.fixture(scope="module")
def both(in_process_server: Server) -> Iterator[tuple[Connection, Connection]]:
    with beside(in_process_server) as clients:
        for client in clients:
            client.execute(
                "CREATE TABLE m (id int PRIMARY KEY, n bigint, s text, v varchar, d date, t time, j jsonb, l text[])"
            )
            client.execute("CREATE TYPE parts AS (k int)")
            client.execute("INSERT INTO m VALUES (1, 2, 'x', 'y', '2024-01-01', '01:00', '{\"a\": [1, 2]}', '{a}')")
        yield clients


@pytest.mark.parametrize("query", REFUSED)
def test_what_postgresql_refuses(both: tuple[Connection, Connection], query: str) -> None:
    told = []
    for client in both:
        with pytest.raises(psycopg.Error) as raised:
            client.execute(query.encode())
        diag = raised.value.diag
        told.append((diag.sqlstate, diag.message_primary, diag.message_hint, diag.statement_position))
    assert told[0] == told[1]
    with pytest.raises(psycopg.Error) as raised:
        both[0].execute(f"CREATE MATERIALIZED VIEW refused AS {query}".encode())
    assert (raised.value.diag.sqlstate, raised.value.diag.message_primary) == told[1][:2]


@pytest.mark.parametrize("query", ACCEPTED)
def test_what_postgresql_accepts(both: tuple[Connection, Connection], query: str) -> None:
    found = [client.execute(query.encode()).fetchall() for client in both]
    assert found[0] == found[1]


def test_explain_refuses_as_create_does(both: tuple[Connection, Connection]) -> None:
    for kind in ("", "(INCREMENTAL) ", "(BACKFILL) "):
        with pytest.raises(psycopg.errors.CannotCoerce, match="cannot cast type date to integer"):
            both[0].execute(f"EXPLAIN {kind}CREATE MATERIALIZED VIEW refused AS SELECT d::int AS i FROM m".encode())
