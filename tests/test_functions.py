"""Scalar expressions give PostgreSQL's answers, in batch queries and in views: see `oracle.py`."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from decimal import Decimal, InvalidOperation

import duckdb
import pyarrow as pa
import pytest
from oracle import COLUMNS, ROWS, create_table, read_golden
from sqlglot import exp
from view_functions import view_database

from sparkwave.catalog.errors import Error
from sparkwave.catalog.model import Catalog, Column, Relation
from sparkwave.catalog.types import VARCHAR, Type, parse_type
from sparkwave.catalog.users import User
from sparkwave.planner.batch.query import Environment, plan_query
from sparkwave.planner.bind.binder import Scope, bind, type_of
from sparkwave.planner.bind.comparison_keys import compare_by_keys
from sparkwave.planner.bind.untyped import type_literals
from sparkwave.planner.functions.emit import to_sql
from sparkwave.planner.functions.typed import sql_type
from sparkwave.planner.parse.trees import parse_tree
from sparkwave.server.wire.text_format import text_array

GOLDEN = read_golden()
ERROR, ERRED = re.compile("![0-9A-Z]{5}"), "!error"
# Where we differ from PostgreSQL, with the rows that show it; of a row not listed here the answer is the same.
KNOWN: dict[str, tuple[int, ...]] = {
    # Floats overflow to infinity and underflow to zero instead of an error.
    "f / g": (5,), "r * f": (5,),
    # A numeric function is computed in double precision and has 10 digits after the point.
    "exp(q / 10000000)": (9,),
    # Of a float with more digits before the point than are significant, Postgres leaves MI's column out.
    "to_char(f, '000.0MI')": (5, 6, 9),
    # INT's least is no position.
    "right(t, i)": (6,),
    # RisingWave's date_trunc of a date is a timestamp.
    "date_trunc('month', dt)": tuple(range(1, 11)),
    # jsonb: numbers have no trailing zeros, and documents are equal that have the same text.
    "js ->> 'b'": (8,), "js = '{\"b\": 2.50, \"a\": \"1\"}'::jsonb": (8,),
}  # fmt: skip
# In batch queries alone: DuckDB refuses a product of two numerics of up to 18 digits that has more.
KNOWN_IN_BATCH = {"d * d": (5,)}
H = Relation(
    1, "dev", "public", "h", "table", tuple(Column(name, parse_type(t)) for name, t in COLUMNS), ("n",), "", True
)


@pytest.fixture(scope="module")
def connection() -> Iterator[duckdb.DuckDBPyConnection]:
    made = view_database()
    create_table_h(made)
    made.execute("CREATE VIEW r1 AS FROM h")
    made.execute('CREATE SCHEMA lake."dev.public"')
    made.execute('CREATE TABLE lake."dev.public".h AS FROM h')
    yield made
    made.close()


def create_table_h(connection: duckdb.DuckDBPyConnection) -> None:
    """The table of hard values, in the columns that a lake table has."""
    create, insert = create_table("h", "?")
    connection.execute(create.replace("jsonb", "json").replace(" numeric,", " DECIMAL(38,19),"))
    connection.executemany(insert.replace("jsonb", "json").replace("AS numeric)", "AS DECIMAL(38,19))"), ROWS)


def ask(connection: duckdb.DuckDBPyConnection, sql: str, type_: Type | None) -> tuple[Type, list[str | None]]:
    """The type and values of a query for `{}`, the rows' condition; `!` for an error."""
    try:
        return answer(connection, sql.format("true"), type_)
    except duckdb.Error as error:
        if isinstance(error, duckdb.BinderException | duckdb.CatalogException | duckdb.ParserException):
            raise
    values: list[str | None] = []
    for row in ROWS:
        try:
            type_, found = answer(connection, sql.format(f"n = {row[0]}"), type_)
            values += found
        except duckdb.Error:
            values.append(ERRED)
    return type_ or Type("text"), values


def answer(connection: duckdb.DuckDBPyConnection, sql: str, type_: Type | None) -> tuple[Type, list[str | None]]:
    cursor = connection.execute(sql)
    if type_ is None:
        type_ = sql_type(exp.DataType.build(str(cursor.description[0][1]), dialect="duckdb")) or VARCHAR
    array = cursor.to_arrow_table().column(0).combine_chunks()
    array = array.chunk(0) if isinstance(array, pa.ChunkedArray) else array
    return type_, text_array(array, type_).to_pylist()


def in_batch(connection: duckdb.DuckDBPyConnection, expression: str) -> tuple[Type, list[str | None]]:
    root = User(1, "root", True)
    environment = Environment(Catalog((H,)), Scope("dev"), {}, lambda schema, name: False, root)
    tree = parse_tree(f"SELECT {expression} AS x FROM h WHERE true ORDER BY n")
    sql = plan_query(tree, environment).sql
    return ask(connection, sql.replace("{", "{{").replace("}", "}}").replace("WHERE TRUE", "WHERE {}"), None)


def in_view(connection: duckdb.DuckDBPyConnection, expression: str) -> tuple[Type, list[str | None]]:
    return ask(connection, *query_in_view(expression))


def query_in_view(expression: str) -> tuple[str, Type]:
    """Return a view's query of an expression, as `ask` takes it, and the expression's type."""
    tree = parse_tree(f"SELECT {expression} AS x FROM h WHERE true ORDER BY n")
    bound = bind(tree, Catalog((H,)), Scope("dev"))
    type_literals(bound)
    compare_by_keys(bound.tree, list)
    type_ = type_of(bound.tree.selects[0])
    sql = to_sql(bound.tree)
    return sql.replace("{", "{{").replace("}", "}}").replace("WHERE TRUE", "WHERE {}"), type_


def same_value(found: str | None, expected: str | None, kind: str) -> bool:
    if found == expected or found is None or expected is None:
        return found == expected
    if kind.startswith("jsonb"):
        return bool(json.loads(found) == json.loads(expected))
    if kind not in ("numeric", "double precision", "real"):
        return False
    try:
        left, right = Decimal(found), Decimal(expected)
    except InvalidOperation:
        return False
    if not left.is_finite() or not right.is_finite():
        return (left.is_nan() and right.is_nan()) or left == right
    tolerance = {"real": Decimal("1e-5"), "double precision": Decimal("1e-14"), "numeric": Decimal("3e-14")}[kind]
    absolute = Decimal("1e-19") if kind == "numeric" else 0
    return abs(left - right) <= abs(right) * tolerance + absolute


def same_type(found: Type, expected: str) -> bool:
    wanted = parse_type(expected)
    as_text = found.is_text and wanted.is_text
    return (
        as_text
        or (found.name, found.dimensions) == (wanted.name, wanted.dimensions)
        or (found.dimensions == wanted.dimensions and {found.name, wanted.name} <= {"text", "character varying"})
    )


def differences(
    expression: str, found: tuple[Type, list[str | None]], expected: tuple[str, list[str | None]], null: bool
) -> list[str]:
    """What differs in type or value; `null` asks for NULL where PostgreSQL has an error."""
    kind, values = expected
    always = all(value is not None and ERROR.fullmatch(value) for value in values)
    has_known_type = kind == "?" or len(KNOWN.get(expression, ())) == len(ROWS)
    out = [] if has_known_type or same_type(found[0], kind) else [f"type {found[0]} not {kind}"]
    known = KNOWN.get(expression, ()) + (() if null else KNOWN_IN_BATCH.get(expression, ()))
    for row, value, right in zip(ROWS, found[1], values, strict=True):
        if right is not None and ERROR.fullmatch(right):
            right = None if null and not always else ERRED
        if row[0] not in known and not same_value(value, right, kind):
            out.append(f"row {row[0]}: {value!r} not {right!r}")
    return out


def refusal(expression: str) -> str | None:
    """The SQLSTATE of an expression with a literal that is no value of its type: it is refused before it runs."""
    try:
        parse_tree(f"SELECT {expression} AS x FROM h", order="MDY")
    except Error as error:
        return error.sqlstate
    return None


REFUSED = {expression: sqlstate for expression in GOLDEN if (sqlstate := refusal(expression))}


def test_a_day_is_written_as_any_pattern_is(connection: duckdb.DuckDBPyConnection) -> None:
    moments = ("0001-01-01 00:00:01", "0044-03-15 (BC) 12:00:00", "0999-03-04", "12345-03-04", "infinity", "-infinity")
    for moment in (*moments, "2024-02-29 23:59:59.999999"):
        for type_ in ("DATE", "TIMESTAMP", "TIMESTAMPTZ"):
            value = f"CAST('{moment}' AS {type_})"
            [(own, other)] = connection.execute(
                f"SELECT pg.day_as_text({value}), strftime({value}, '%Y-%m-%d')"
            ).fetchall()
            assert own == other, value
    assert connection.execute("SELECT pg.day_as_text(NULL::DATE)").fetchall() == [(None,)]


@pytest.mark.parametrize("expression", REFUSED)
def test_refused_as_in_postgres(expression: str) -> None:
    assert set(GOLDEN[expression][1]) == {f"!{REFUSED[expression]}"}


@pytest.mark.parametrize("expression", [expression for expression in GOLDEN if expression not in REFUSED])
def test_batch(connection: duckdb.DuckDBPyConnection, expression: str) -> None:
    assert differences(expression, in_batch(connection, expression), GOLDEN[expression], null=False) == []


@pytest.mark.parametrize("expression", [expression for expression in GOLDEN if expression not in REFUSED])
def test_view(connection: duckdb.DuckDBPyConnection, expression: str) -> None:
    assert differences(expression, in_view(connection, expression), GOLDEN[expression], null=True) == []
