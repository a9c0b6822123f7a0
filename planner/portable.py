"""Which expressions are proven to give the same result on DuckDB and on Spark.

A view that uses anything else runs on Spark alone, for its backfill and for every epoch.
`tests/test_portable.py` evaluates each of these on both engines.
"""

from __future__ import annotations

from sqlglot import exp

PORTABLE: frozenset[type[exp.Expr]] = frozenset(
    {
        exp.Column, exp.Identifier, exp.Literal, exp.Boolean, exp.Null, exp.Paren, exp.Neg,
        exp.And, exp.Or, exp.Not, exp.Is, exp.EQ, exp.NEQ, exp.GT, exp.GTE, exp.LT, exp.LTE, exp.NullSafeEQ,
        exp.Between, exp.In, exp.Add, exp.Sub, exp.Mul, exp.Case, exp.If, exp.Coalesce, exp.Nullif,
        exp.Upper, exp.Lower, exp.Abs,
    }
)  # fmt: skip

# Casts from each of these to those wider than it. Others differ in rounding, overflow or text.
_WIDENING: dict[str, frozenset[str]] = {
    "SMALLINT": frozenset({"SMALLINT", "INT", "BIGINT", "DOUBLE"}),
    "INT": frozenset({"INT", "BIGINT", "DOUBLE"}),
    "BIGINT": frozenset({"BIGINT"}),
    "FLOAT": frozenset({"DOUBLE"}),
    "DOUBLE": frozenset({"DOUBLE"}),
}


def unproven_part(expression: exp.Expr) -> exp.Expr | None:
    """The first part of an expression that is not proven equal on both engines; None if all are."""
    if isinstance(expression, exp.Cast):
        inner = expression.this
        if isinstance(inner, exp.Null) or _is_state_as_double(expression):
            return None
        source = inner.type.this.value if inner.type is not None else ""
        widens = expression.to.this.value in _WIDENING.get(source, ())
        return unproven_part(inner) if widens else expression
    if isinstance(expression, exp.Div):
        if all(isinstance(side.unnest(), exp.Cast) for side in (expression.this, expression.expression)):
            return next((f for s in (expression.this, expression.expression) if (f := unproven_part(s.unnest()))), None)
        return expression
    if type(expression) not in PORTABLE:
        return expression
    for child in expression.iter_expressions():
        if not isinstance(child, exp.DataType) and (found := unproven_part(child)) is not None:
            return found
    return None


def _is_state_as_double(cast: exp.Cast) -> bool:
    """The two halves of avg: a stored sum or count as a double."""
    is_state = isinstance(cast.this, exp.Column) and cast.this.type is None and cast.this.name.startswith("_")
    return is_state and cast.to.this.value == "DOUBLE"
