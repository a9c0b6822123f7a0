"""Which expressions are proven to give the same result on DuckDB and on Spark.

A view that uses anything else runs on Spark alone, for its backfill and for every epoch.
`tests/test_portable.py` evaluates each of these on both engines.
"""

from __future__ import annotations

from sqlglot import exp

from planner.nodes import Filter, Join, Node, Project, walk

PORTABLE: frozenset[type[exp.Expression]] = frozenset(
    {
        exp.Column, exp.Identifier, exp.Literal, exp.Boolean, exp.Null, exp.Paren, exp.Neg,
        exp.And, exp.Or, exp.Not, exp.Is, exp.EQ, exp.NEQ, exp.GT, exp.GTE, exp.LT, exp.LTE, exp.NullSafeEQ,
        exp.Between, exp.In, exp.Add, exp.Sub, exp.Mul, exp.Case, exp.If, exp.Coalesce, exp.Nullif,
        exp.Upper, exp.Lower, exp.Abs,
    }
)  # fmt: skip

# Casts between these; others differ in rounding, overflow or text.
_CASTS = ("INT", "BIGINT", "SMALLINT", "DOUBLE", "VARCHAR", "DATE", "TIMESTAMP", "BOOLEAN")


def unproven(root: Node) -> str | None:
    """The first expression of a plan that is not proven equal on both engines; None if all are."""
    for node in walk(root):
        match node:
            case Filter(predicate=predicate):
                expressions = [predicate]
            case Join(condition=condition) if condition is not None:
                expressions = [condition]
            case Project(items=items):
                expressions = [item.expression for item in items]
            case _:
                continue
        for expression in expressions:
            found = _unproven_part(expression)
            if found is not None:
                return found.sql(dialect="postgres")
    return None


def _unproven_part(expression: exp.Expression) -> exp.Expression | None:
    if isinstance(expression, exp.Cast):
        same_kind = expression.to.this.value in _CASTS and not isinstance(expression.this, exp.Literal)
        numeric = expression.this.type is None or expression.this.type.this in exp.DataType.NUMERIC_TYPES
        if same_kind and numeric and expression.to.this.value == "DOUBLE":
            return _unproven_part(expression.this)
        if isinstance(expression.this, exp.Null):
            return None
        return expression
    if isinstance(expression, exp.Div):
        if all(isinstance(side.unnest(), exp.Cast) for side in (expression.this, expression.expression)):
            return next(
                (f for s in (expression.this, expression.expression) if (f := _unproven_part(s.unnest()))), None
            )
        return expression
    if type(expression) not in PORTABLE:
        return expression
    for child in expression.iter_expressions():
        if not isinstance(child, exp.DataType) and (found := _unproven_part(child)) is not None:
            return found
    return None
