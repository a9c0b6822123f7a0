"""sqlglot trees to the SQL text of an engine."""

from __future__ import annotations

from sqlglot import exp

from planner.functions.duckdb_spelling import for_duckdb
from planner.functions.spark_dialect import for_spark as planned_for_spark
from planner.functions.spark_spelling import for_spark

DUCKDB, SPARK = "duckdb", "spark"


def to_sql(tree: exp.Expr, engine: str, lenient: bool = True) -> str:
    """The text of a planner-made tree for `duckdb` or `spark`; `lenient` is for views, where a row's error is NULL."""
    tree = tree.transform(_for_engine, engine, lenient)
    is_spark = engine == SPARK
    spelled = for_spark(tree.transform(planned_for_spark), lenient) if is_spark else for_duckdb(tree, lenient)
    return spelled.sql(dialect=engine, identify=True)


def _for_engine(node: exp.Expr, engine: str, lenient: bool) -> exp.Expr:
    # In sqlglot's Spark dialect TIMESTAMP is the type with a time zone.
    if engine == SPARK and isinstance(node, exp.DataType) and node.this == exp.DataType.Type.TIMESTAMP:
        return exp.DataType(this=exp.DataType.Type.TIMESTAMPNTZ)
    # Nor has it a TIME.
    if engine == SPARK and isinstance(node, exp.DataType) and node.this == exp.DataType.Type.TIME:
        return exp.DataType(this=exp.DataType.Type.USERDEFINED, kind="TIME(6)")
    # A division by zero in a view gives NULL, as in RisingWave's streams, instead of stopping the job.
    if lenient and isinstance(node, exp.Div) and not isinstance(node.expression, exp.Nullif | exp.Literal):
        divisor = exp.Nullif(this=node.expression.copy(), expression=exp.Literal.number(0))
        divisor.type = node.expression.type
        safe = exp.Div(this=node.this, expression=divisor, typed=node.args.get("typed"), safe=node.args.get("safe"))
        safe.type = node.type
        return safe
    return node
