"""Aggregates and windows as arguments of Sparkwave's macros.

DuckDB (1.5.5) does not know the type of an aggregate when it chooses between macros of one name: `round(avg(x))` is an
error, or the wrong macro. Within a lambda it knows the types of the lambda's arguments, so the aggregate is the item of
a list: `list_transform([avg(x)], lambda _value: round(_value))[1]`.
"""

from __future__ import annotations

from sqlglot import exp

from sparkwave.planner.functions.aggregates import is_aggregate
from sparkwave.planner.functions.duckdb_spelling import rewrite_leaves_first
from sparkwave.planner.functions.scalar_functions import OURS, duckdb_call, of_one

_VALUE = "_value"
# Macros that exist once, for all types.
_FOR_ANY = frozenset({"multiply_quotients", "divide_numerics"})
_SPELLED = "list"  # DuckDB's name of another macro


def with_typed_aggregates(tree: exp.Expr) -> exp.Expr:
    """Return a tree spelled for DuckDB, changed in place, in which the macros know the types of aggregates."""
    if not any(map(_is_aggregate, tree.walk())):
        return tree
    holding: set[int] = set()  # nodes with an aggregate of their SELECT in them

    def typed(node: exp.Expr) -> exp.Expr | None:
        call = _macro(node)
        new = node
        if call is not None and any(id(part) in holding for part in call.expressions):
            # DuckDB has no subqueries in a lambda.
            outside = [id(part) in holding or part.find(exp.Query) is not None for part in call.expressions]
            new = _within_lambda(node, call, [place for place, is_so in enumerate(outside) if is_so])
        inside = not isinstance(node, exp.Query) and any(id(part) in holding for part in node.iter_expressions())
        if inside or _is_aggregate(node):
            holding.add(id(new))
        return new

    return rewrite_leaves_first(tree, typed, copy=False)


def _macro(node: exp.Expr) -> exp.Anonymous | None:
    """Return the call of `memory.pg.name(...)`, if the node is such a call."""
    if not isinstance(node, exp.Dot) or not isinstance(node.expression, exp.Anonymous):
        return None
    if not isinstance(node.this, exp.Dot) or node.this.expression.name != OURS or node.expression.name in _FOR_ANY:
        return None
    return node.expression


def _is_aggregate(node: exp.Expr) -> bool:
    if isinstance(node, exp.AggFunc | exp.Window):
        return True
    return isinstance(node, exp.Anonymous) and (node.name.lower() == _SPELLED or is_aggregate(node))


def _within_lambda(node: exp.Expr, call: exp.Anonymous, places: list[int]) -> exp.Expr:
    """Return the node with the arguments at these places computed before the macro."""
    values = [call.expressions[place] for place in places]
    for number, place in enumerate(places, 1):
        value: exp.Expr = exp.column(exp.to_identifier(_VALUE))
        if len(values) > 1:
            value = duckdb_call("struct_extract", value, exp.Literal.number(number))
        call.set("expressions", value, place)
    item = values[0] if len(values) == 1 else duckdb_call("row", *values)
    return of_one(item, node, _VALUE)
