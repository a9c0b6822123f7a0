"""The order of values that an aggregate collects with DISTINCT: PostgreSQL sorts them, to find equal ones."""

from __future__ import annotations

from sqlglot import exp

_COLLECTING = (exp.GroupConcat, exp.ArrayAgg, exp.JSONArrayAgg)
_NAMES = frozenset({"string_agg", "array_agg", "jsonb_agg", "json_agg"})


def with_orders(tree: exp.Expr) -> exp.Expr:
    """Return the tree, changed in place: `array_agg(DISTINCT a)` has `ORDER BY a`, unless it has another order."""
    for distinct in list(tree.find_all(exp.Distinct)):
        call = distinct.parent
        collects = isinstance(call, _COLLECTING) or (isinstance(call, exp.Anonymous) and call.name.lower() in _NAMES)
        if collects and distinct.expressions and not isinstance(call.parent if call else None, exp.Window):
            key = exp.Ordered(this=distinct.expressions[0].copy(), nulls_first=False)
            distinct.replace(exp.Order(this=distinct.copy(), expressions=[key]))
    return tree
