"""sqlglot trees to DuckDB's SQL."""

from __future__ import annotations

from sqlglot import exp

from planner.functions.duckdb_spelling import for_duckdb


def to_sql(tree: exp.Expr, lenient: bool = True) -> str:
    """The text of a planner-made tree; `lenient` is for views, where a row's error is NULL."""
    return for_duckdb(tree.transform(_divided, lenient), lenient).sql(dialect="duckdb", identify=True)


def _divided(node: exp.Expr, lenient: bool) -> exp.Expr:
    """A division by zero in a view gives NULL, as in RisingWave's streams, instead of stopping the job."""
    if lenient and isinstance(node, exp.Div) and not isinstance(node.expression, exp.Nullif | exp.Literal):
        divisor = exp.Nullif(this=node.expression.copy(), expression=exp.Literal.number(0))
        divisor.type = node.expression.type
        safe = exp.Div(this=node.this, expression=divisor, typed=node.args.get("typed"), safe=node.args.get("safe"))
        safe.type = node.type
        return safe
    return node
