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

from catalog import system_views
from catalog.errors import Error
from catalog.model import Catalog, Column, Relation
from catalog.types import VARCHAR, Type, parse_type
from planner.bind import Scope, bind, type_of
from planner.emit import DUCKDB, to_sql
from planner.query import Environment, plan_query
from planner.trees import parse_tree
from planner.typed import sql_type
from server.text_format import text_array

GOLDEN = read_golden()
ERROR, ERRED = re.compile("![0-9A-Z]{5}"), "!error"
H = Relation(
    1, "dev", "public", "h", "table", tuple(Column(name, parse_type(t)) for name, t in COLUMNS), ("n",), "", True
)


class OneTable:
    """As much of a catalog as binding needs."""

    def find(self, database: str, schema: str, name: str) -> Relation | None:
        return H if name == "h" else None


@pytest.fixture(scope="module")
def connection() -> Iterator[duckdb.DuckDBPyConnection]:
    made = duckdb.connect()
    made.execute("SET TimeZone = 'UTC'; SET integer_division = true; CREATE SCHEMA memory.pg; ATTACH ':memory:' AS lake")
    made.execute(system_views._OURS.sub(r"memory.\1.", system_views._SCRIPTS["scalar"]))
    create, insert = create_table("h", "?")
    made.execute(create.replace("jsonb", "json").replace(" numeric,", " DECIMAL(38,10),"))
    made.executemany(insert.replace("jsonb", "json").replace("AS numeric)", "AS DECIMAL(38,10))"), ROWS)
    made.execute("CREATE VIEW r1 AS FROM h; CREATE TABLE lake.main.h AS FROM h")
    yield made
    made.close()


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
    environment = Environment(Catalog(0, {}, {}), Scope("dev"), {}, lambda schema, name: False)
    tree = parse_tree(f"SELECT {expression} AS x FROM lake.main.h WHERE true ORDER BY n")
    sql = plan_query(tree, environment).sql
    return ask(connection, sql.replace("{", "{{").replace("}", "}}").replace("WHERE TRUE", "WHERE {}"), None)


def in_view(connection: duckdb.DuckDBPyConnection, expression: str) -> tuple[Type, list[str | None]]:
    tree = parse_tree(f"SELECT {expression} AS x FROM h WHERE true ORDER BY n")
    bound = bind(tree, OneTable(), Scope("dev"))  # type: ignore[arg-type]
    type_ = type_of(bound.tree.selects[0])
    sql = to_sql(bound.tree, DUCKDB)
    return ask(connection, sql.replace("{", "{{").replace("}", "}}").replace("WHERE TRUE", "WHERE {}"), type_)


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
        return left.is_nan() and right.is_nan() or left == right
    tolerance = {"real": Decimal("1e-5"), "double precision": Decimal("1e-14"), "numeric": Decimal("1e-14")}[kind]
    absolute = Decimal("1e-10") if kind == "numeric" else 0
    return abs(left - right) <= abs(right) * tolerance + absolute


def same_type(found: Type, expected: str) -> bool:
    wanted = parse_type(expected)
    as_text = found.is_text and wanted.is_text
    return as_text or (found.name, found.dimensions) == (wanted.name, wanted.dimensions) or (
        found.dimensions == wanted.dimensions and {found.name, wanted.name} <= {"text", "character varying"}
    )


def differences(found: tuple[Type, list[str | None]], expected: tuple[str, list[str | None]], null: bool) -> list[str]:
    kind, values = expected
    always = all(value is not None and ERROR.fullmatch(value) for value in values)
    out = [] if kind == "?" or same_type(found[0], kind) else [f"type {found[0]} not {kind}"]
    for row, value, right in zip(ROWS, found[1], values, strict=True):
        if right is not None and ERROR.fullmatch(right):
            right = None if null and not always else ERRED
        if not same_value(value, right, kind):
            out.append(f"row {row[0]}: {value!r} not {right!r}")
    return out


@pytest.mark.parametrize("expression", GOLDEN)
def test_batch(connection: duckdb.DuckDBPyConnection, expression: str) -> None:
    assert differences(in_batch(connection, expression), GOLDEN[expression], null=False) == []


@pytest.mark.parametrize("expression", GOLDEN)
def test_view(connection: duckdb.DuckDBPyConnection, expression: str) -> None:
    assert differences(in_view(connection, expression), GOLDEN[expression], null=True) == []
