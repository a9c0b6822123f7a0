"""percentile_cont and percentile_disc of a fraction that is NULL: NULL, whatever the rows."""

from __future__ import annotations

from sqlglot import exp


def with_null_fractions(tree: exp.Expr) -> None:
    """Let a percentile of NULL be one of values that are all NULL, because DuckDB takes no NULL as a fraction."""
    for call in tree.find_all(exp.PercentileCont, exp.PercentileDisc):
        order = call.parent.expression if isinstance(call.parent, exp.WithinGroup) else None
        if order is None or not _is_null(call.this):
            continue
        call.set("this", exp.Literal.number(0))
        for ordered in order.expressions:
            ordered.set("this", exp.Case().when(exp.false(), ordered.this))


def _is_null(value: exp.Expr) -> bool:
    """Return whether a number is NULL, as far as its form tells."""
    match value.unnest():
        case exp.Null():
            return True
        case exp.Cast(this=inner, to=to):
            return to.this != exp.DType.ARRAY and _is_null(inner)
        case exp.Add(this=left, expression=right) | exp.Sub(this=left, expression=right):
            return _is_null(left) or _is_null(right)
        case exp.Mul(this=left, expression=right) | exp.Div(this=left, expression=right):
            return _is_null(left) or _is_null(right)
    return False
