"""Aggregate functions as data: what PostgreSQL calls them, how they are maintained, their result types.

Three kinds: those merged into the stored state of a group (count, sum, min, max), those computed from such states
(avg, bool_and, bool_or, every), and all others, which are computed again for a touched group.
"""

from __future__ import annotations

from collections.abc import Callable

from sqlglot import exp

from catalog.types import BIGINT, BOOLEAN, DOUBLE, NUMERIC, VARCHAR, Type

JSONB = Type("jsonb")

# Functions that sqlglot does not know as aggregates, by PostgreSQL's name.
_BY_NAME: dict[str, str] = {
    "every": "bool_and",
    "jsonb_agg": "json_group_array",
    "json_agg": "json_group_array",
    "jsonb_object_agg": "json_group_object",
    "json_object_agg": "json_group_object",
    "mode": "mode",
}

_AVERAGES = frozenset({"stddev", "stddevpop", "stddevsamp", "variance", "variancepop", "corr", "covarpop", "covarsamp"})


def is_aggregate(node: exp.Expr) -> bool:
    """Whether a node is itself an aggregate call (its FILTER and WITHIN GROUP are around it)."""
    if isinstance(node, exp.Grouping):
        return False
    return isinstance(node, exp.AggFunc) or (isinstance(node, exp.Anonymous) and node.name.lower() in _BY_NAME)


def aggregate_calls(tree: exp.Expr) -> list[exp.Expr]:
    """The aggregate calls of an expression that are not window functions, with their FILTER or WITHIN GROUP."""
    found: list[exp.Expr] = []

    def visit(node: exp.Expr) -> None:
        if isinstance(node, exp.Window):
            # The function itself is not an aggregate of the query; what it is of may be.
            inner = node.this.this if isinstance(node.this, exp.Filter | exp.IgnoreNulls) else node.this
            children = [*inner.iter_expressions(), *(c for c in node.iter_expressions() if c is not node.this)]
        elif isinstance(node, exp.Query):
            return
        elif _call_of(node) is not None:
            found.append(node)
            return
        else:
            children = list(node.iter_expressions())
        for child in children:
            visit(child)

    visit(tree)
    return found


def _call_of(node: exp.Expr) -> exp.Expr | None:
    """The bare call inside FILTER and WITHIN GROUP."""
    while isinstance(node, exp.Filter | exp.WithinGroup):
        node = node.this
    return node if is_aggregate(node) else None


def call_of(node: exp.Expr) -> exp.Expr:
    """As `_call_of`, of what `aggregate_calls` found."""
    found = _call_of(node)
    assert found is not None
    return found


def canonical(tree: exp.Expr) -> exp.Expr:
    """A copy whose aggregate calls are in DuckDB's terms: `every`, `mode() WITHIN GROUP`, `jsonb_agg` and the like."""
    return tree.transform(_canonical)


def _canonical(node: exp.Expr) -> exp.Expr:
    if isinstance(node, exp.WithinGroup) and isinstance(node.this, exp.Mode):
        ordered = node.expression.expressions[0]
        return exp.Anonymous(
            this="mode", expressions=[exp.Order(this=ordered.this.copy(), expressions=[ordered.copy()])]
        )
    if isinstance(node, exp.ApproxDistinct):
        return exp.Count(this=exp.Distinct(expressions=[node.this]), big_int=True)
    if isinstance(node, exp.JSONArrayAgg):
        return exp.Anonymous(this="json_group_array", expressions=[node.this])
    if isinstance(node, exp.JSONBObjectAgg | exp.JSONObjectAgg):
        return exp.Anonymous(this="json_group_object", expressions=list(node.iter_expressions()))
    if isinstance(node, exp.Anonymous) and node.name.lower() in _BY_NAME and node.name.lower() != "mode":
        name = _BY_NAME[node.name.lower()]
        if name == "bool_and":
            return exp.LogicalAnd(this=node.expressions[0])
        return exp.Anonymous(this=name, expressions=node.expressions)
    if isinstance(node, exp.FirstValue | exp.LastValue) and not isinstance(_over(node), exp.Window):
        name = "first" if isinstance(node, exp.FirstValue) else "last"
        return exp.Anonymous(this=name, expressions=[node.this])
    return node


def _over(node: exp.Expr) -> exp.Expr | None:
    parent = node.parent
    while isinstance(parent, exp.Filter | exp.IgnoreNulls | exp.RespectNulls):
        parent = parent.parent
    return parent


def result_type(call: exp.Expr, type_of: Callable[[exp.Expr], Type]) -> Type | None:
    """PostgreSQL's type of an aggregate call; None when it is not one. `type_of` types its argument."""
    inner = _call_of(call)
    if inner is None:
        return None
    match inner:
        case exp.Count() | exp.ApproxDistinct():
            return BIGINT
        case exp.Sum():
            return sum_type(type_of(argument(inner)))
        case exp.Avg() | exp.PercentileCont():
            return DOUBLE
        case exp.LogicalAnd() | exp.LogicalOr():
            return BOOLEAN
        case exp.GroupConcat():
            return VARCHAR
        case exp.ArrayAgg():
            item = type_of(argument(inner))
            return Type(item.name, item.precision, item.scale, item.dimensions + 1)
        case exp.JSONArrayAgg() | exp.JSONBObjectAgg() | exp.JSONObjectAgg():
            return JSONB
        case exp.Mode() | exp.PercentileDisc():
            ordered = call.find(exp.Ordered)
            return type_of(ordered.this) if ordered is not None else None
        case exp.Anonymous() if inner.name.lower() == "every":
            return BOOLEAN
        case exp.Anonymous() if _BY_NAME.get(inner.name.lower(), "").startswith("json"):
            return JSONB
    if inner.key in _AVERAGES or inner.key.startswith("regr"):
        return DOUBLE
    return type_of(argument(inner))


def argument(call: exp.Expr) -> exp.Expr:
    """The first argument of a call, without its DISTINCT and ORDER BY."""
    found = call.expressions[0] if isinstance(call, exp.Anonymous) else call.this
    while isinstance(found, exp.Order | exp.Distinct):
        found = found.this if isinstance(found, exp.Order) else found.expressions[0]
    assert isinstance(found, exp.Expr)
    return found


def sum_type(type_: Type) -> Type:
    """PostgreSQL's type of sum(x) (documentation, table "General-Purpose Aggregate Functions")."""
    match type_.name:
        case "smallint" | "integer":
            return BIGINT
        case "bigint":
            return Type("numeric", 38, 0)
        case "numeric":
            return Type("numeric", 38, NUMERIC.scale or type_.scale if type_.precision is not None else 10)
    return type_
