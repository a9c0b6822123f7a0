"""EXPLAIN over random views: every option prints every plan, and plans are put together as they say."""

from __future__ import annotations

import json
import random
import re
from pathlib import Path
from unittest import mock
from xml.etree import ElementTree

import pytest
from fuzz import standard
from fuzz.queries import Queries
from sqlglot import exp
from test_golden import shown

from sparkwave.catalog.errors import Error
from sparkwave.catalog.model import ROW_ID, Catalog, Column, Relation, row_id_column
from sparkwave.planner.bind.binder import Scope
from sparkwave.planner.explain import lines as explain_lines
from sparkwave.planner.explain.lines import explain
from sparkwave.planner.parse.statement import parse_statement
from sparkwave.planner.plan.distribution import BROADCAST, HASH, SINGLE, distribution, moves
from sparkwave.planner.plan.join_types import DYNAMIC
from sparkwave.planner.plan.nodes import Aggregate, Join, OverWindow, Scan, TopN, walk
from sparkwave.planner.plan.stream_plan import StreamPlan, plan_view
from sparkwave.planner.statements import CreateMaterializedView, CreateTable, Explain

SEEDS = range(6)
OPTIONS = (
    "", "(VERBOSE)", "(TRACE, VERBOSE)", "(INCREMENTAL)", "(LOGICAL, VERBOSE)", "(DISTSQL, VERBOSE)",
    "(FORMAT JSON, VERBOSE)", "(FORMAT XML)", "(FORMAT YAML)", "(FORMAT DOT)",
)  # fmt: skip
SCOPE = Scope("dev")


def tables() -> Catalog:
    found = []
    for number, table in enumerate(standard.TABLES, 1):
        statement = parse_statement(table.create())
        assert isinstance(statement, CreateTable)
        columns = tuple(Column(c.name, c.type) for c in statement.columns)
        key = statement.primary_key
        columns = columns if key else (*columns, row_id_column())
        found.append(
            Relation(number, "dev", "public", statement.name.name, "table", columns, key or (ROW_ID,), "", True)
        )
    return Catalog(tuple(found), schemas=frozenset({("dev", "public")}))


def planned(queries: Queries, name: str, catalog: Catalog) -> tuple[str, StreamPlan]:
    """The next query that can be planned: what is refused is not looked at here."""
    while True:
        sources = list(queries.sources)
        sql = f"CREATE MATERIALIZED VIEW {name} AS {queries.view(name)}"
        try:
            statement = parse_statement(sql)
            assert isinstance(statement, CreateMaterializedView)
            return sql, plan_view(statement, catalog, SCOPE)
        except Error:
            queries.sources = sources


def views(seed: int) -> list[tuple[str, Catalog, StreamPlan]]:
    """Some views, each over the tables and those before it."""
    queries, catalog, made = standard.queries(random.Random(seed)), tables(), []
    for number in range(5):
        sql, plan = planned(queries, f"v{number}", catalog)
        made.append((sql, catalog, plan))
        view = Relation(
            100 + number, "dev", "public", f"v{number}", "materialized view", plan.columns, plan.key, sql, True
        )
        catalog = Catalog((*catalog.relations, view), schemas=catalog.schemas)
    return made


def lines(sql: str, catalog: Catalog) -> list[str]:
    statement = parse_statement(sql)
    assert isinstance(statement, Explain)
    return explain(statement, catalog, SCOPE)


@pytest.mark.parametrize("seed", SEEDS)
def test_every_option_prints_every_view(seed: int) -> None:
    for sql, catalog, plan in views(seed):
        # The plan of every option is the same one, and to make it takes most of the time.
        with mock.patch.object(explain_lines, "plan_view", lambda *_, of=plan: of):
            outputs = {options: lines(f"EXPLAIN {options} {sql}", catalog) for options in OPTIONS[1:]}
        outputs[OPTIONS[0]] = lines(f"EXPLAIN {OPTIONS[0]} {sql}", catalog)
        assert all(outputs.values())
        assert json.loads("\n".join(outputs["(FORMAT JSON, VERBOSE)"]))["name"] == "StreamMaterialize"
        names = ElementTree.fromstring("\n".join(outputs["(FORMAT XML)"])).iter("name")
        drawn = [line.partition(' [ label = "')[2].partition("\\l")[0] for line in outputs["(FORMAT DOT)"]]
        assert [each.text for each in names] == [name for name in drawn if name]
        scans = [line for line in outputs["(VERBOSE)"] if "StreamTableScan" in line]
        assert len(scans) == sum(isinstance(node, Scan) for node in walk(plan.root))
        fragments = [line for line in outputs["(DISTSQL, VERBOSE)"] if line.startswith("Fragment ")]
        assert len(fragments) == 1 + sum("StreamExchange" in line for line in outputs["(VERBOSE)"])


@pytest.mark.parametrize("seed", SEEDS)
def test_rows_that_belong_together_are_in_one_place(seed: int) -> None:
    for sql, _, plan in views(seed):
        for node in walk(plan.root):
            there = [move or distribution(child) for child, move in zip(node.inputs, moves(node), strict=True)]
            for child, place in zip(node.inputs, there, strict=True):
                read = {column.name for key in place.keys for column in key.find_all(exp.Column)}
                assert read <= {f.name for f in child.fields}, sql
            match node:
                case Aggregate(keys=keys) | TopN(partition=keys) | OverWindow(partition=keys):
                    assert there[0].is_within(keys) if keys else there[0].kind == SINGLE, sql
                case Join(kind=kind) if kind == DYNAMIC:
                    assert there[1].kind == BROADCAST, sql
                case Join() if node.pairs:
                    assert [place.kind for place in there] == [HASH, HASH], sql
                    pairs = {(one, other) for one, other, _ in node.pairs}
                    assert set(zip(there[0].keys, there[1].keys, strict=True)) <= pairs, sql
                case Join():
                    assert [place.kind for place in there] == [SINGLE, SINGLE], sql


PAGE = Path(__file__).parent.parent / "docs" / "explain.md"


def test_the_documentation_shows_what_is_printed() -> None:
    examples = re.findall(r"^```\n=> (EXPLAIN .*?);\n(.*?)^```", PAGE.read_text(), re.MULTILINE | re.DOTALL)
    assert len(examples) > 5
    for sql, output in examples:
        printed = shown("explain", " ".join(sql.split())).splitlines()
        head, is_cut, _ = output.partition("…\n")
        expected = head.splitlines()
        assert printed[: len(expected)] == expected
        assert is_cut or len(printed) == len(expected)
