"""Stream plans as text, in RisingWave's shape, and what the planner tells the user besides."""

from __future__ import annotations

from collections.abc import Iterator

from sqlglot import exp

from planner.delta import compile_delta
from planner.emit import DUCKDB, to_sql
from planner.nodes import Aggregate, Filter, Join, Node, Project, Scan, UnionAll
from planner.stream import StreamPlan


def explain_view(plan: StreamPlan, verbose: bool = False, incremental: bool = False) -> list[str]:
    """The lines of EXPLAIN CREATE MATERIALIZED VIEW.

    `verbose` adds strategy, keys and the reason; `incremental` the SQL that maintains the view and the state kept.
    """
    columns = ", ".join(c.name + ("(hidden)" if c.is_hidden else "") for c in plan.columns)
    key = ", ".join(plan.key)
    head = (
        f"StreamMaterialize {{ columns: [{columns}], stream_key: [{key}], pk_columns: [{key}], pk_conflict: NoCheck }}"
    )
    lines = [head, *_tree(plan.root, plan, verbose, "")]
    if verbose:
        engine = "DuckDB only, because of " + plan.duckdb_only if plan.duckdb_only else "DuckDB or Spark, by size"
        lines += ["", f"backfill: {plan.strategy} ({plan.reason})", f"maintained on: {engine}"]
    if incremental:
        lines += ["", *_incremental(plan)]
    return lines


def _tree(node: Node, plan: StreamPlan, verbose: bool, indent: str) -> Iterator[str]:
    yield from _subtree(node, plan, verbose, indent, last=True)


def _subtree(node: Node, plan: StreamPlan, verbose: bool, indent: str, last: bool) -> Iterator[str]:
    yield f"{indent}{'└─' if last else '├─'}{_line(node, plan, verbose)}"
    below = indent + ("  " if last else "│ ")
    for number, child in enumerate(node.inputs):
        yield from _subtree(child, plan, verbose, below, number == len(node.inputs) - 1)


def _line(node: Node, plan: StreamPlan, verbose: bool) -> str:
    match node:
        case Scan():
            return _scan_line(node, plan, verbose)
        case Filter():
            return f"StreamFilter {{ predicate: {_sql(node.predicate)} }}"
        case Project():
            items = ", ".join(_sql(i.expression) + ("" if i.source == i.name else f" as {i.name}") for i in node.items)
            return f"StreamProject {{ exprs: [{items}] }}"
        case Join():
            condition = _sql(node.condition) if node.condition is not None else "true"
            return f"StreamHashJoin {{ type: Inner, predicate: {condition} }}"
        case UnionAll():
            return "StreamUnion { all: true }"
        case Aggregate():
            calls = ", ".join(f"{c.function}({c.argument or ''})" for c in node.calls)
            if not node.keys:
                return f"StreamSimpleAgg {{ aggs: [{calls}] }}"
            return f"StreamHashAgg {{ group_key: [{', '.join(node.keys)}], aggs: [{calls}] }}"


def _scan_line(scan: Scan, plan: StreamPlan, verbose: bool) -> str:
    name = scan.relation.name
    if not verbose:
        return f"StreamTableScan {{ table: {name}, columns: [{', '.join(scan.columns)}] }}"
    columns = ", ".join(f"{name}.{column}" for column in scan.columns)
    stream_key = ", ".join(f"{name}.{column}" for column in scan.relation.key)
    return (
        f"StreamTableScan {{ table: {name}, columns: [{columns}], stream_scan_type: {plan.strategy}, "
        f"stream_key: [{stream_key}], pk: [{', '.join(scan.relation.key)}], dist: UpstreamHashShard({stream_key}) }}"
    )


def _sql(expression: exp.Expr) -> str:
    return expression.sql(dialect="postgres").replace('"', "")


def _incremental(plan: StreamPlan) -> Iterator[str]:
    """The delta program when every input has changes."""
    for state in plan.states:
        place = "in the view itself" if state.in_view else "in an internal table"
        fields = ", ".join(name for name, _ in state.columns)
        yield f"state {state.name} ({place}): {fields}"
    program = compile_delta(plan, {scan.input for scan in plan.scans})
    for step in program.steps:
        yield f"{step.name} :="
        yield from (f"  {line}" for line in step.query.sql(dialect=DUCKDB, pretty=True).splitlines())
    for apply in program.applies:
        target = apply.state or "the view"
        yield f"{target}: delete by ({', '.join(apply.key)}) in {to_sql(apply.removed, DUCKDB)}"
        yield f"{target}: insert {to_sql(apply.added, DUCKDB)}"


def notices(query: exp.Query) -> list[str]:
    """What to tell the user about a query that is accepted."""
    if query.args.get("order") is None:
        return []
    return ["The ORDER BY clause in the CREATE MATERIALIZED VIEW statement does not guarantee the order of a SELECT."]
