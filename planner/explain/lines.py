"""EXPLAIN: returns the lines for a statement and its options. Nothing runs, nothing is created."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from sqlglot import exp

from sparkwave.catalog import errors
from sparkwave.catalog.errors import Error
from sparkwave.catalog.model import Catalog
from sparkwave.planner.backfill.strategy import DEFAULTS, SNAPSHOT, BackfillSettings
from sparkwave.planner.bind.binder import Scope
from sparkwave.planner.explain.batch import batch_operators, logical_operators, logical_steps
from sparkwave.planner.explain.distsql import distsql
from sparkwave.planner.explain.incremental import decisions, incremental
from sparkwave.planner.explain.operator_tree import with_readable_names
from sparkwave.planner.explain.output_formats import FORMATS, text
from sparkwave.planner.explain.plan_tree import view_operators
from sparkwave.planner.explain.table_operators import table_operators
from sparkwave.planner.plan.stream_plan import StreamPlan, plan_view
from sparkwave.planner.plan.streaming_query import streaming_of
from sparkwave.planner.statements import AlterQuery, CreateStreaming, CreateTable, Explain, ExplainOptions


def explain(
    statement: Explain,
    catalog: Catalog,
    scope: Scope,
    settings: BackfillSettings = DEFAULTS,
    indexes: bool = False,
    check_plan: Callable[[StreamPlan], None] = lambda plan: None,
) -> list[str]:
    """Return the lines of EXPLAIN, for a session with these settings, whose queries may read `indexes`.

    `check_plan` raises the errors of a CREATE with a plan. Raises Error as planning the statement does, and 0A000 for
    options that cannot be combined. With TRACE a planning error is the last line instead.
    """
    options = statement.options
    check(statement)
    lines: list[str] = []
    try:
        for line in _explained(statement, catalog, scope, settings, indexes, check_plan):
            lines.append(line)
    except Error as error:
        if not options.trace:
            raise
        lines.append(f"ERROR: {error.message}")
    return lines


def check(statement: Explain) -> None:
    """Raise Error 0A000 for options that cannot be combined with each other or with the statement."""
    options = statement.options
    if options.cost:
        _check_cost(statement)
    is_view = isinstance(statement.statement, CreateStreaming)
    shown = options.format.upper()
    is_order = options.backfill and options.format == "dot" and is_view
    if options.format != "text" and (options.trace or options.type == "distsql") and not is_order:
        raise _unsupported(
            f"EXPLAIN (TRACE, {shown} FORMAT)", f"Only EXPLAIN (LOGICAL | PHYSICAL, {shown} FORMAT) is supported."
        )
    if options.incremental and options.format != "text":
        raise _unsupported(f"EXPLAIN (INCREMENTAL, {shown} FORMAT)", "EXPLAIN (INCREMENTAL) is text.")
    if options.incremental and not is_view:
        raise _unsupported(
            "EXPLAIN (INCREMENTAL) of a statement that keeps nothing up to date",
            "Use EXPLAIN (INCREMENTAL) CREATE MATERIALIZED VIEW … AS …",
        )
    if options.analyze and (options.trace or options.type != "physical"):
        raise _unsupported(f"EXPLAIN (ANALYZE, {'TRACE' if options.trace else options.type.upper()})", _ANALYZED)
    if options.type == "distsql" and not isinstance(statement.statement, CreateStreaming | CreateTable):
        raise _unsupported("EXPLAIN (DISTSQL) of a batch query", "A batch query runs on DuckDB, in one stage.")


def _check_cost(statement: Explain) -> None:
    """Check the options of a quote. Raises Error 22023 without BACKFILL, else 0A000."""
    options = statement.options
    if not options.backfill:
        hint = "EXPLAIN (BACKFILL, COST) says how long a backfill takes."
        raise Error("EXPLAIN option COST requires BACKFILL", errors.INVALID_PARAMETER_VALUE, hint=hint)
    plain = ExplainOptions(backfill=True, cost=True, format=options.format)
    if options != plain or options.format not in ("text", "json"):
        raise _unsupported("EXPLAIN (BACKFILL, COST) with other options", "It can have FORMAT TEXT or FORMAT JSON.")
    if not isinstance(statement.statement, CreateStreaming | AlterQuery):
        raise _unsupported(
            "EXPLAIN (BACKFILL, COST) of a statement that fills nothing",
            "It is for CREATE MATERIALIZED VIEW, CREATE INDEX, CREATE SINK and ALTER MATERIALIZED VIEW … AS.",
        )


_ANALYZED = "EXPLAIN (ANALYZE) shows the plan that has run."


def _unsupported(what: str, hint: str) -> Error:
    return Error(f"Not supported: {what}", errors.FEATURE_NOT_SUPPORTED, hint=hint)


def _explained(
    statement: Explain,
    catalog: Catalog,
    scope: Scope,
    settings: BackfillSettings,
    indexes: bool,
    check_plan: Callable[[StreamPlan], None],
) -> Iterator[str]:
    options, target = statement.options, statement.statement
    assert not isinstance(target, AlterQuery)  # only with COST
    if isinstance(target, CreateTable):
        yield from FORMATS[options.format](table_operators(target))
        return
    if isinstance(target, CreateStreaming):
        query: exp.Expr | None = streaming_of(target, catalog, scope).query
    else:
        query = getattr(target, "tree", None) if not hasattr(target, "table") else None
    if query is not None and options.trace:
        yield from _trace(query, catalog, scope, options)
    if query is not None and options.type == "logical":
        if not options.trace:
            *_, (_, root) = logical_steps(query, catalog, scope)
            yield from FORMATS[options.format](logical_operators(root, options.verbose))
        return
    if isinstance(target, CreateStreaming):
        plan = plan_view(target, catalog, scope, settings)
        check_plan(plan)
        if options.trace:
            yield from ("To Stream Plan:", "")
        yield from explain_view(plan, options)
        return
    if options.trace:
        yield from ("To Batch Plan:", "")
    yield from FORMATS[options.format](batch_operators(target, catalog, scope, options.verbose, indexes))


def _trace(query: exp.Expr, catalog: Catalog, scope: Scope, options: ExplainOptions) -> Iterator[str]:
    """Yield the logical plan as built and after each rule that changed it."""
    for title, root in logical_steps(query, catalog, scope):
        yield from (f"{title}:", "", *text(logical_operators(root, options.verbose, keeps_unused=True)), "")


def explain_view(plan: StreamPlan, options: ExplainOptions) -> list[str]:
    """Return the lines of a view's stream plan.

    As text, VERBOSE and BACKFILL also show how and where it is filled, which RisingWave does not. So does a view with
    an unusual backfill strategy.
    """
    if options.backfill and options.format == "dot":
        return _order(plan)
    if options.incremental:
        return incremental(plan)
    root = view_operators(plan, options.verbose)
    if options.type == "distsql":
        return distsql(plan, root, options.verbose)
    lines = FORMATS[options.format](with_readable_names(root))
    if options.format == "text" and (options.verbose or options.backfill or plan.strategy != SNAPSHOT):
        lines += ["", *decisions(plan)]
    return lines


def _order(plan: StreamPlan) -> list[str]:
    """Return the backfill order as a graph (RisingWave: backfill_order_strategy.rs, module display)."""
    names = {scan.relation.id: scan.relation.qualified_name for scan in plan.scans}
    return ["digraph G {", *sorted(f'  "{names[before]}" -> "{names[after]}";' for before, after in plan.order), "}"]


def notices(query: exp.Query, plan: StreamPlan, kind: str) -> list[str]:
    """Return the notices about an accepted query for this kind of relation."""
    found = list(plan.notices)
    if query.args.get("order") is not None:
        found.append(
            f"The ORDER BY clause in the CREATE {kind.upper()} statement does not guarantee the order of a SELECT."
        )
    return found
