"""What EXPLAIN (INCREMENTAL) prints for one operator is right: run over random tables, its changes lead from the
operator's old rows to its new ones."""

from __future__ import annotations

import random
from collections.abc import Iterator

import duckdb
import pytest
from fuzz import standard
from sqlglot import exp
from test_explain import planned, tables
from view_functions import view_database

from sparkwave.planner.delta import operator_sql
from sparkwave.planner.explain.incremental import operator_delta
from sparkwave.planner.functions.emit import to_sql
from sparkwave.planner.plan.nodes import (
    Aggregate,
    Filter,
    Join,
    Node,
    OverWindow,
    Project,
    Scan,
    TopN,
    UnionAll,
    Unnest,
    Values,
    column,
    walk,
)
from sparkwave.planner.plan.stream_plan import StreamPlan

SEEDS = 40
ROWS = 8
# A value of each column of `fuzz.standard.TABLES`.
VALUES = {"s": ("p", "q", "r"), "d": (0.0, 0.5, 2.5), "arr": ([], [1], [1, 2]), "f": (True, False)}
TIMES = tuple(f"2024-01-01 00:{minute:02}:00" for minute in range(0, 20, 3))


def random_rows(rng: random.Random, columns: list[str], key: tuple[str, ...], kept: list[list[object]]) -> list:
    """Some of the rows, and new ones with other keys; the last value is the row id where there is no key."""
    rows = [row for row in kept if rng.random() < 0.6]
    taken = {tuple(row[columns.index(name)] for name in key) for row in rows}
    for _ in range(ROWS - len(rows)):
        row = [rng.choice((*VALUES.get(name, TIMES if name == "at" else range(5)), None)) for name in columns]
        for name in key:
            row[columns.index(name)] = rng.randint(0, 1000) if name == "_row_id" else rng.randint(0, 5)
        own = tuple(row[columns.index(name)] for name in key)
        if own not in taken:
            taken.add(own)
            rows.append(row)
    return rows


def fill(connection: duckdb.DuckDBPyConnection, rng: random.Random) -> None:
    """`t_old`, `t_new` and `t_changes` for each table t."""
    for relation in tables().relations:
        names = [c.name for c in relation.columns]
        rows: list = []
        for version in ("old", "new"):
            rows = random_rows(rng, names, relation.key, rows)
            listed = ", ".join(f'"{c.name}" {c.type.duckdb()}' for c in relation.columns)
            connection.execute(f"CREATE TABLE {relation.name}_{version} ({listed})")
            for row in rows:
                marks = ", ".join("?" for _ in row)
                connection.execute(f"INSERT INTO {relation.name}_{version} VALUES ({marks})", row)
        old, new = (f"SELECT * FROM {relation.name}_{version}" for version in ("old", "new"))
        connection.execute(
            f"CREATE TABLE {relation.name}_changes AS SELECT *, 1::BIGINT AS _weight FROM ({new} EXCEPT ALL {old}) "
            f"UNION ALL SELECT *, -1 FROM ({old} EXCEPT ALL {new})"
        )


def of(node: Node, relation: str) -> exp.Select:
    return exp.select(*(column(f.name) for f in node.fields)).from_(relation)


def computed(node: Node, below: list[exp.Select], version: str) -> exp.Select:
    """All rows of an operator over all rows of its inputs."""
    match node:
        case Scan():
            return operator_sql.scan(node, f"{node.relation.name}_{version}")
        case Values():
            return operator_sql.values(node)
        case Filter():
            return operator_sql.over(below[0], node.fields).where(node.predicate)
        case Project():
            return operator_sql.project(node, below[0])
        case Unnest():
            return operator_sql.unnest(node, below[0])
        case Join():
            return operator_sql.join(node, *below)
        case UnionAll():
            return operator_sql.union([operator_sql.over(part, node.fields) for part in below])
        case Aggregate():
            return operator_sql.aggregate(node, below[0])
        case TopN():
            return operator_sql.top_n(
                node, below[0], node.offset, None if node.limit is None else node.offset + node.limit
            )
        case OverWindow():
            return operator_sql.over_window(node, below[0])


def keep_state(connection: duckdb.DuckDBPyConnection, plan: StreamPlan, node: Node, labels: dict[int, str]) -> None:
    if isinstance(node, Aggregate):
        rows = of(node, f"{labels[id(node)]}_old")
    elif isinstance(node, TopN) and node.limit is not None:
        rows = operator_sql.top_n(node, of(node.input, f"{labels[id(node.input)]}_old"), 0, node.offset + node.limit)
    else:
        return
    state = plan.state_of(node)
    stored = exp.select(*(exp.alias_(column(name), kept, quoted=True) for name, kept in state.columns))
    make(connection, f"{state.name}_state", stored.from_(rows.subquery("s")))


def make(connection: duckdb.DuckDBPyConnection, name: str, query: exp.Expr) -> None:
    connection.execute(f"CREATE OR REPLACE TABLE {name} AS {to_sql(query)}")


@pytest.fixture(scope="module")
def database() -> Iterator[duckdb.DuckDBPyConnection]:
    with view_database() as opened:
        yield opened


@pytest.fixture
def connection(database: duckdb.DuckDBPyConnection) -> Iterator[duckdb.DuckDBPyConnection]:
    """A database without tables: those that a test makes vanish."""
    database.execute("BEGIN")
    yield database
    database.execute("ROLLBACK")


@pytest.mark.parametrize("seed", range(SEEDS))
def test_each_operators_changes_lead_from_old_to_new(seed: int, connection: duckdb.DuckDBPyConnection) -> None:
    view, plan = planned(standard.queries(random.Random(seed)), "v", tables())
    labels: dict[int, str] = {}
    fill(connection, random.Random(seed))
    for number, node in enumerate(walk(plan.root), 1):
        label = labels[id(node)] = f"n{number}"
        for version in ("old", "new"):
            below = [of(child, f"{labels[id(child)]}_{version}") for child in node.inputs]
            make(connection, f"{label}_{version}", computed(node, below, version))
        if isinstance(node, Scan):
            connection.execute(f"CREATE OR REPLACE VIEW {node.input}_changes AS FROM {node.relation.name}_changes")
        keep_state(connection, plan, node, labels)
        changes = exp.select("*", "1 AS _weight").from_(f"{label}_new").where("false")  # unless it has some
        make(connection, f"{label}_changes", changes)
        for name, query in operator_delta(plan, node, labels).steps:
            make(connection, name, query)
        names = [column(f.name) for f in node.fields]
        terms = [("changes", column("_weight")), ("old", exp.convert(1)), ("new", exp.convert(-1))]
        parts = [exp.select(*names, exp.alias_(weight, "w")).from_(f"{label}_{end}") for end, weight in terms]
        wrong = exp.select(*names, "sum(w)").from_(operator_sql.union(parts).subquery("u")).having("sum(w) <> 0")
        wrong = wrong.group_by(*names) if names else wrong
        assert connection.execute(to_sql(wrong)).fetchall() == [], (label, view)
