"""Golden files of the planner's layers: `tests/golden/<layer>.txt`.

A file is a list of cases, each a `#` line that says what it shows, a statement, `----` and the expected text.
`make golden` writes the expected texts again; review them as a diff.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest

from sparkwave.catalog.errors import Error
from sparkwave.catalog.model import ROW_ID, Catalog, Column, Relation, row_id_column
from sparkwave.catalog.types import parse_type
from sparkwave.catalog.users import ROOT, User
from sparkwave.planner.backfill.fragments import (
    Fragment,
    bucket_query,
    fragments,
    merge_query,
    slice_query,
    whole_query,
)
from sparkwave.planner.batch.definition_checks import check_definition
from sparkwave.planner.batch.query import Environment
from sparkwave.planner.bind.binder import Scope
from sparkwave.planner.delta.compiler import compile_delta
from sparkwave.planner.explain.lines import explain, explain_view
from sparkwave.planner.functions.emit import to_sql
from sparkwave.planner.parse.statement import parse_statement
from sparkwave.planner.plan.stream_plan import StreamPlan, plan_view
from sparkwave.planner.statements import CreateMaterializedView, CreateTable, Explain, ExplainOptions, Query

GOLDEN = Path(__file__).parent / "golden"


def relation(number: int, name: str, columns: str, key: tuple[str, ...] = (), kind: str = "table") -> Relation:
    pairs = [column.strip().split(" ", 1) for column in re.split(r",(?![^()]*\))", columns)]
    return relation_of(number, name, tuple(Column(column, parse_type(type_)) for column, type_ in pairs), key, kind)


def relation_of(
    number: int, name: str, made: tuple[Column, ...], key: tuple[str, ...] = (), kind: str = "table"
) -> Relation:
    return Relation(
        number, "dev", "public", name, kind, made if key else (*made, row_id_column()), key or (ROW_ID,), "", True
    )


CATALOG = Catalog(
    (
        relation(1, "flights", "carrier varchar, month int, delay double precision, distance int"),
        relation(2, "airlines", "carrier varchar, name varchar", ("carrier",)),
        relation(3, "by_carrier", "carrier varchar, flights bigint", ("carrier",), "materialized view"),
        replace(
            relation(4, "clicks", "carrier varchar, at timestamp with time zone, tags varchar[]"), append_only=True
        ),
        relation(6, "routes", "origin varchar, target varchar, distance int", ("origin", "target")),
        replace(relation(5, "unready", "carrier varchar", ("carrier",), "materialized view"), created=False),
    ),
    schemas=frozenset({("dev", "public")}),
)


def plan(sql: str, catalog: Catalog = CATALOG) -> StreamPlan:
    statement = parse_statement(sql)
    assert isinstance(statement, CreateMaterializedView)
    return plan_view(statement, catalog, Scope("dev"))


@cache
def _catalog_of(tables: tuple[str, ...]) -> Catalog:
    relations = []
    for number, text in enumerate(tables, 1):
        table = parse_statement(text)
        assert isinstance(table, CreateTable)
        columns = tuple(Column(column.name, column.type) for column in table.columns)
        relations.append(relation_of(number, table.name.name, columns, table.primary_key))
    return Catalog(tuple(relations), schemas=frozenset({("dev", "public")}))


def plan_over(tables: tuple[str, ...], query: str) -> StreamPlan:
    """The plan of a new view over tables that CREATE TABLE statements describe. Raises what CREATE would."""
    catalog = _catalog_of(tables)
    created = parse_statement(f"CREATE MATERIALIZED VIEW v AS {query}")
    assert isinstance(created, CreateMaterializedView)
    check_definition(
        created.query, Environment(catalog, Scope("dev"), {}, lambda schema, name: False, User(1, ROOT, True))
    )
    return plan_view(created, catalog, Scope("dev"))


def show_parse(sql: str) -> str:
    statement = parse_statement(sql)
    return repr(statement.tree.sql(dialect="postgres") if isinstance(statement, Query) else statement)


def show_plan(sql: str) -> str:
    return "\n".join(explain_view(plan(sql), ExplainOptions(verbose=True)))


def show_explain(sql: str) -> str:
    statement = parse_statement(sql)
    assert isinstance(statement, Explain)
    return "\n".join(explain(statement, CATALOG, Scope("dev")))


def show_delta(sql: str) -> str:
    """The program when the first input has changes, for DuckDB."""
    made = plan(sql)
    program = compile_delta(made, {made.scans[0].input})
    lines = [f"{step.name} := {to_sql(step.query)}" for step in program.steps]
    for apply in program.applies:
        target = apply.state or "view"
        lines += [f"{target} -= {to_sql(apply.removed)}", f"{target} += {to_sql(apply.added)}"]
    for name, groups in sorted(program.lookups.items()):
        lines += [f"{name} by {', '.join(columns)}" for columns in groups]
    return "\n".join(lines)


def show_backfill(sql: str) -> str:
    """Each fragment whole, a slice of each driver, and the merge."""
    made = plan(sql)
    found = fragments(made, {"i0": 100, "i1": 50, "i2": 1})
    return "\n".join(line for fragment in found for line in show_fragment(made, fragment))


def show_fragment(made: StreamPlan, fragment: Fragment) -> Iterator[str]:
    for exchange in fragment.exchanges:
        yield from show_fragment(made, exchange)
    keys = ", ".join(map(to_sql, fragment.keys))
    does = f"moves by {keys} {fragment.relation}" if fragment.is_exchange else f"fills {fragment.target or 'view'}"
    yield f"fragment {fragment.id} {does}, driven by {', '.join(fragment.drivers)}"
    yield f"  whole: {to_sql(whole_query(made, fragment))}"
    for driver in fragment.drivers:
        yield f"  slice of {driver}: {to_sql(slice_query(made, fragment, driver))}"
    if fragment.exchanges:
        yield f"  bucket: {to_sql(bucket_query(made, fragment))}"
    if fragment.end is not None:
        yield f"  merge: {to_sql(merge_query(made, fragment))}"


LAYERS: dict[str, Callable[[str], str]] = {
    "parse": show_parse,
    "plan": show_plan,
    "delta": show_delta,
    "backfill": show_backfill,
    "explain": show_explain,
    "errors": show_plan,
}


def shown(layer: str, sql: str) -> str:
    try:
        return LAYERS[layer](sql)
    except Error as error:
        lines = [f"ERROR {error.sqlstate} at {error.position}: {error.message}"]
        if error.position:
            lines += [sql, " " * (error.position - 1) + "^"]
        return "\n".join(lines + ([f"HINT: {error.hint}"] if error.hint else []))


def cases(layer: str) -> list[tuple[str, str, str]]:
    """(comment, statement, expected) of a golden file."""
    found = []
    for block in ("\n\n" + (GOLDEN / f"{layer}.txt").read_text().strip()).split("\n\n# ")[1:]:
        comment, _, rest = block.partition("\n")
        statement, _, expected = rest.partition("\n----\n")
        found.append((comment, statement.removesuffix("\n----"), expected))
    return found


@pytest.mark.parametrize("layer", LAYERS)
def test_golden(layer: str, request: pytest.FixtureRequest) -> None:
    found = cases(layer)
    if request.config.getoption("--update-golden"):
        blocks = [f"# {comment}\n{sql}\n----\n{shown(layer, sql)}" for comment, sql, _ in found]
        (GOLDEN / f"{layer}.txt").write_text("\n\n".join(blocks) + "\n")
        return
    for comment, sql, expected in found:
        assert shown(layer, sql) == expected, f"{layer}: {comment}"
