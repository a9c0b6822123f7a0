"""Aggregate functions as data: PostgreSQL's names, their maintenance, and their result types.

Three kinds: those merged into the stored state of a group (count, sum, min, max), those computed from such states (avg,
bool_and, bool_or, every), and all others, which are computed again for a touched group.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from sqlglot import exp

from sparkwave.catalog import errors
from sparkwave.catalog.errors import Error
from sparkwave.catalog.types import (
    BIGINT,
    BOOLEAN,
    DOUBLE,
    INTEGER,
    INTERVAL,
    JSON,
    JSONB,
    NUMERIC,
    QUOTIENT,
    VARCHAR,
    Type,
)
from sparkwave.planner.functions.array_aggregates import argument, over_array
from sparkwave.planner.functions.fractions import PERCENTILES, with_fractions
from sparkwave.planner.functions.result_types import array_type, keeps_digits
from sparkwave.planner.functions.typed import data_type, sql_type
from sparkwave.planner.functions.written_json import IS_OF_JSONB
from sparkwave.planner.since import EXACT_ROUNDS, is_since

# Functions that sqlglot does not know as aggregates, by PostgreSQL's name.
_BY_NAME: dict[str, str] = {
    "every": "bool_and",
    **dict.fromkeys(("jsonb_agg", "json_agg", "jsonb_object_agg", "json_object_agg"), "jsonb_agg"),
    "mode": "mode",
    "approx_percentile": "approx_percentile",
}

# Result types that do not depend on the argument.
_FIXED: dict[str, Type] = {
    "count": BIGINT,
    "regrcount": BIGINT,
    "approxdistinct": BIGINT,
    "approx_percentile": DOUBLE,
    "logicaland": BOOLEAN,
    "logicalor": BOOLEAN,
    "bool_and": BOOLEAN,
    "groupconcat": VARCHAR,
    "jsonarrayagg": JSON,
    "jsonbobjectagg": JSONB,
    "jsonobjectagg": JSON,
    "jsonb_agg": JSONB,
}
_COUNTING: dict[type[exp.Expr], Type] = {
    exp.RowNumber: BIGINT,
    exp.Rank: BIGINT,
    exp.DenseRank: BIGINT,
    exp.PercentRank: DOUBLE,
    exp.CumeDist: DOUBLE,
    exp.Ntile: INTEGER,
}
_OF_PAIRS = frozenset({"corr", "covarpop", "covarsamp"})
# Those of two floats.
PAIRED = (
    exp.Corr, exp.CovarPop, exp.CovarSamp, exp.RegrAvgx, exp.RegrAvgy, exp.RegrIntercept, exp.RegrR2, exp.RegrSlope,
    exp.RegrSxx, exp.RegrSxy, exp.RegrSyy,
)  # fmt: skip
# Standard deviations and variances.
SPREADS = (exp.Stddev, exp.StddevPop, exp.StddevSamp, exp.Variance, exp.VariancePop)


def is_aggregate(node: exp.Expr) -> bool:
    """Return whether a node itself is an aggregate call (without its FILTER and WITHIN GROUP)."""
    if isinstance(node, exp.Grouping):
        return False
    return isinstance(node, exp.AggFunc) or (isinstance(node, exp.Anonymous) and node.name.lower() in _BY_NAME)


# Marks an avg() that is always of double precision, as before `since.EXACT_AVERAGES`, and one of SPREADS, as
# before `since.EXACT_FUNCTIONS`.
OF_FLOATS = "of floats"

# The nodes for which `annotate_types` asks `result_type`.
TYPED_HERE: tuple[type[exp.Expr], ...] = (
    exp.Count, exp.Sum, exp.Avg, exp.Min, exp.Max, exp.LogicalAnd, exp.LogicalOr, exp.GroupConcat, exp.ArrayAgg,
    exp.Stddev, exp.StddevPop, exp.StddevSamp, exp.Variance, exp.VariancePop, exp.FirstValue, exp.LastValue,
    exp.ApproxDistinct, exp.WithinGroup, exp.Filter, exp.Window, exp.IgnoreNulls, exp.Lag, exp.Lead, exp.NthValue,
    exp.JSONArrayAgg, exp.JSONBObjectAgg, exp.JSONObjectAgg, exp.AnyValue, exp.RegrCount, exp.Corr, exp.CovarPop,
    exp.CovarSamp, exp.RegrAvgx, exp.RegrAvgy, exp.RegrIntercept, exp.RegrR2, exp.RegrSlope, exp.RegrSxx, exp.RegrSxy,
    exp.RegrSyy, *_COUNTING,
)  # fmt: skip


# Nodes that may be around a call, except its window.
AROUND = (exp.Filter, exp.IgnoreNulls, exp.RespectNulls)


def aggregate_calls(tree: exp.Expr) -> list[exp.Expr]:
    """Return the aggregate calls of an expression that are not window functions, with their FILTER or WITHIN GROUP."""
    found: list[exp.Expr] = []

    def visit(node: exp.Expr) -> None:
        if isinstance(node, exp.Window):
            # The window function itself is not an aggregate of the query; its arguments may contain one.
            inner = node.this.this if isinstance(node.this, AROUND) else node.this
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
    """Return the bare call inside FILTER and WITHIN GROUP."""
    while isinstance(node, exp.Filter | exp.WithinGroup):
        node = node.this
    return node if is_aggregate(node) else None


def call_of(node: exp.Expr) -> exp.Expr:
    """Return what `_call_of` does, for a result of `aggregate_calls`."""
    found = _call_of(node)
    assert found is not None
    return found


def canonical(tree: exp.Expr, copy: bool = True) -> exp.Expr:
    """Return a tree with aggregate calls in DuckDB's terms, such as `every` and `mode() WITHIN GROUP`.

    Without a `copy` the tree itself is changed.
    """
    return tree.transform(_canonical, copy=copy)


def _canonical(node: exp.Expr) -> exp.Expr:
    if isinstance(node, exp.WithinGroup) and isinstance(node.this, exp.Mode):
        ordered = node.expression.expressions[0]
        if ordered.this.is_string:
            message = "could not determine polymorphic type because input has type unknown"
            raise Error(message, errors.DATATYPE_MISMATCH)
        return exp.Anonymous(
            this="mode", expressions=[exp.Order(this=ordered.this.copy(), expressions=[ordered.copy()])]
        )
    if isinstance(node, exp.WithinGroup) and isinstance(node.this, PERCENTILES):
        with_fractions(node.this)
    if isinstance(node, exp.WithinGroup) and isinstance(node.this, exp.PercentileCont):
        # DuckDB's function returns the type of the values, with its scale.
        for ordered in node.expression.expressions:
            type_ = sql_type(ordered.this.type)
            if type_ is None or type_.name == "numeric" or (type_.name == "real" and is_since(EXACT_ROUNDS)):
                ordered.set("this", exp.cast(ordered.this.copy(), data_type(DOUBLE)))
        return node
    if (made := over_array(node)) is not None:
        return made
    if isinstance(node, exp.RegrCount):  # DuckDB's is NULL in a correlated subquery over no rows
        is_pair = exp.and_(*(exp.not_(exp.Is(this=side, expression=exp.null())) for side in node.iter_expressions()))
        return exp.Count(this=exp.Case().when(is_pair, exp.Literal.number(1)), big_int=True)
    if isinstance(node, exp.ApproxDistinct):
        return exp.Count(this=exp.Distinct(expressions=[node.this]), big_int=True)
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


def result_type(node: exp.Expr, type_of: Callable[[exp.Expr], Type | None]) -> Type | None:
    """Return PostgreSQL's type of an aggregate or window call; None for another node or an unknown argument type."""
    if isinstance(node, exp.Window | exp.IgnoreNulls | exp.RespectNulls):
        return result_type(node.this, type_of)
    if type(node) in _COUNTING:
        return _COUNTING[type(node)]
    if isinstance(node, exp.Lag | exp.Lead | exp.NthValue):
        return type_of(node.this)
    inner = _call_of(node)
    if inner is None:
        return None
    if isinstance(inner, PERCENTILES):
        return _percentile_type(node, inner, type_of)
    name = _BY_NAME.get(inner.name.lower(), "") if isinstance(inner, exp.Anonymous) else inner.key
    if name in _FIXED:
        return JSONB if inner.meta.get(IS_OF_JSONB) else _FIXED[name]
    if name in _OF_PAIRS or name.startswith("regr"):
        return DOUBLE
    if isinstance(inner, exp.Mode) or name == "mode":
        ordered = node.find(exp.Ordered)
        return type_of(ordered.this) if ordered is not None else None
    found = type_of(argument(inner))
    if isinstance(inner, exp.Avg):
        return DOUBLE if inner.meta.get(OF_FLOATS) else average_type(found)
    if isinstance(inner, SPREADS):
        is_exact = not inner.meta.get(OF_FLOATS) and average_type(found) == QUOTIENT
        return QUOTIENT if is_exact else DOUBLE
    if found is None:
        return None
    if isinstance(inner, exp.Sum):
        return sum_type(found)
    if isinstance(inner, exp.ArrayAgg):
        return replace(found, dimensions=found.dimensions + 1)
    return found


def _percentile_type(
    node: exp.Expr, call: exp.PercentileCont | exp.PercentileDisc, type_of: Callable[[exp.Expr], Type | None]
) -> Type | None:
    """Return the type of a percentile, or of as many as there are fractions."""
    ordered = node.find(exp.Ordered)
    value = DOUBLE if isinstance(call, exp.PercentileCont) else type_of(ordered.this) if ordered is not None else None
    fractions = type_of(call.this)
    is_array = fractions is not None and fractions.dimensions > 0
    return array_type(value) if is_array and value is not None else value


def average_type(type_: Type | None) -> Type:
    """Return PostgreSQL's type of avg(x), except that a quotient keeps a limited number of decimal places."""
    if type_ == INTERVAL:
        return INTERVAL
    if type_ is None or not type_.is_numeric or type_.is_float:
        return DOUBLE
    is_exact = type_.is_integer or type_.digits[1] <= QUOTIENT.digits[1] or keeps_digits()
    return QUOTIENT if is_exact else DOUBLE


def whole_call(call: exp.Expr) -> exp.Expr:
    """Return a call with its FILTER and OVER."""
    while isinstance(call.parent, (*AROUND, exp.Window)) and call.arg_key == "this":
        call = call.parent
    return call


def sum_type(type_: Type) -> Type:
    """Return PostgreSQL's type of sum(x) (documentation, table "General-Purpose Aggregate Functions")."""
    match type_.name:
        case "smallint" | "integer":
            return BIGINT
        case "bigint":
            return Type("numeric", 38, 0)
        case "numeric":
            return Type("numeric", 38, NUMERIC.scale or type_.scale if type_.precision is not None else 10)
    return type_
