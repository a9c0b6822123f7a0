"""Prints expressions as RisingWave does: `(t.a > 1:Int32)`, `t.a::Float64`, `Coalesce(t.a, 0:Int32)`.

Unknown expressions are printed as SQL.
"""

from __future__ import annotations

from collections.abc import Mapping

from sqlglot import exp

from sparkwave.catalog.types import Type, duckdb_type
from sparkwave.planner.functions.aggregates import is_aggregate
from sparkwave.planner.functions.python_call import PythonCall
from sparkwave.planner.plan.nodes import Order, conjuncts

TYPES: dict[str, str] = {
    "boolean": "Boolean",
    "smallint": "Int16",
    "integer": "Int32",
    "bigint": "Int64",
    "real": "Float32",
    "double precision": "Float64",
    "numeric": "Decimal",
    "character varying": "Varchar",
    "text": "Varchar",
    "bytea": "Bytea",
    "date": "Date",
    "time without time zone": "Time",
    "timestamp without time zone": "Timestamp",
    "timestamp with time zone": "Timestamptz",
    "interval": "Interval",
    "json": "Json",
    "jsonb": "Jsonb",
}

_BINARY: dict[type[exp.Expr], str] = {
    exp.And: "AND",
    exp.Or: "OR",
    exp.EQ: "=",
    exp.NEQ: "<>",
    exp.GT: ">",
    exp.GTE: ">=",
    exp.LT: "<",
    exp.LTE: "<=",
    exp.Add: "+",
    exp.Sub: "-",
    exp.Mul: "*",
    exp.Div: "/",
    exp.IntDiv: "/",
    exp.Mod: "%",
    exp.NullSafeEQ: "IS NOT DISTINCT FROM",
    exp.NullSafeNEQ: "IS DISTINCT FROM",
}

# RisingWave's names of functions and operators where they differ from sqlglot's.
_FUNCTIONS: dict[type[exp.Expr], str] = {
    exp.DPipe: "ConcatOp",
    exp.Explode: "Unnest",
    exp.ExplodingGenerateSeries: "GenerateSeries",
    exp.GroupConcat: "string_agg",
    exp.TimestampTrunc: "DateTrunc",
}

_RANKING = (exp.RowNumber, exp.Rank, exp.DenseRank, exp.PercentRank, exp.CumeDist, exp.Ntile)


def prints_as_value(node: exp.Expr) -> bool:
    """Return whether an expression is printed as a value."""
    inner = node.unnest()
    if isinstance(inner, exp.Cast):
        return isinstance(inner.this, exp.Literal | exp.Null)
    return isinstance(inner, exp.Literal | exp.Null | exp.Boolean | exp.Interval)


def type_name(type_: Type) -> str:
    """Return RisingWave's name of a type in a plan."""
    name = TYPES.get(type_.name, type_.name)
    for _ in range(type_.dimensions):
        name = f"List({name})"
    return name


def show(node: exp.Expr, names: Mapping[str, str]) -> str:
    """Return an expression over fields with these names in the plan."""

    def each(expression: object) -> str:
        return show(expression, names) if isinstance(expression, exp.Expr) else str(expression)

    binary = _BINARY.get(type(node))
    if binary is not None:
        return f"({each(node.this)} {binary} {each(node.expression)})"
    match node:
        case exp.Column():
            return names.get(node.name, node.name)
        case exp.Paren():
            return each(node.this)
        case exp.Literal() | exp.Boolean() | exp.Null() | exp.Interval():
            return _constant(node)
        case exp.Dot(expression=exp.Identifier() as field):
            return f"({each(node.this)}).{field.name}"
        case exp.Cast():
            return _cast(node, each(node.this))
        case exp.Not(this=exp.Is(this=inner, expression=exp.Null())):
            return f"IsNotNull({each(inner)})"
        case exp.Not():
            return f"Not({each(node.this)})"
        case exp.Neg():
            return f"Neg({each(node.this)})"
        case exp.Is():
            negated = "Not" if node.args.get("negate") else ""
            return f"Is{negated}{node.expression.sql().title()}({each(node.this)})"
        case exp.Between(this=this):
            return f"(({each(this)} >= {each(node.args['low'])}) AND ({each(this)} <= {each(node.args['high'])}))"
        case exp.In() if not node.args.get("query"):
            return f"In({', '.join(map(each, (node.this, *node.expressions)))})"
        case exp.Case():
            arms = [part for arm in node.args["ifs"] for part in (arm.this, arm.args["true"])]
            parts = [node.args.get("this"), *arms, node.args.get("default")]
            return f"Case({', '.join(each(part) for part in parts if part is not None)})"
        case exp.CurrentTimestamp():
            return "now"
        case exp.Star():
            return "*"
        case exp.Filter():
            return f"{each(node.this)} filter({each(node.expression.this)})"
        case exp.Distinct():
            return f"distinct {', '.join(map(each, node.expressions))}"
        case exp.Order() if node.this:
            return f"{each(node.this)} order_by({', '.join(map(each, node.expressions))})"
        case exp.Ordered():
            return f"{each(node.this)} {'DESC' if node.args.get('desc') else 'ASC'}"
        case exp.WithinGroup():
            return f"{each(node.this)} within group({', '.join(map(each, node.expression.expressions))})"
        case exp.IgnoreNulls():
            return f"{each(node.this)} ignore nulls"
        case exp.GroupConcat():
            return _string_agg(node, names)
        case exp.Func() | exp.Binary():
            return _call(node, [each(part) for part in node.iter_expressions()])
    return node.sql(dialect="postgres").replace('"', "")


def show_all(predicate: exp.Expr | None, names: Mapping[str, str], plain: tuple[type[exp.Expr], ...] = ()) -> str:
    """Return a condition's conjuncts, those of the `plain` kinds without parentheses."""
    shown = []
    for part in conjuncts(predicate) if predicate is not None else ():
        text = show(part, names)
        shown.append(text[1:-1] if isinstance(part.unnest(), plain) else text)
    return " AND ".join(shown) or "true"


def show_order(orders: tuple[Order, ...], names: Mapping[str, str]) -> tuple[str, ...]:
    """Return sort columns, with the place of NULLs when it is not last for ASC or first for DESC."""
    shown = []
    for order in orders:
        text = f"{names.get(order.name, order.name)} {'DESC' if order.descending else 'ASC'}"
        if order.nulls_first != order.descending:
            text += f" NULLS {'FIRST' if order.nulls_first else 'LAST'}"
        shown.append(text)
    return tuple(shown)


def _constant(node: exp.Expr) -> str:
    match node:
        case exp.Boolean():
            return f"{str(bool(node.this)).lower()}:Boolean"
        case exp.Null():
            return "null:Varchar"
        case exp.Interval():
            return _interval(node)
        case exp.Literal() if node.is_string:
            return f"'{node.name}':Varchar"
        case exp.Literal() if node.is_int:
            return f"{node.name}:{'Int32' if abs(int(node.name)) < 2**31 else 'Int64'}"
    return f"{node.name}:Decimal"


def _cast(node: exp.Cast, inner: str) -> str:
    """Return a cast; a cast of a constant is the constant with its type."""
    name = type_name(duckdb_type(node.to.sql(dialect="duckdb")))
    return f"{inner.rpartition(':')[0]}:{name}" if prints_as_value(node) else f"{inner}::{name}"


_TIMES = {"HOUR": "{}:00:00", "MINUTE": "00:{}:00", "SECOND": "00:00:{}"}


def _interval(node: exp.Interval) -> str:
    unit = node.args.get("unit")
    name, number = unit.name.upper().rstrip("S") if unit is not None else "", node.this.name
    if name in _TIMES and number.isdigit() and int(number) < 60:
        return f"'{_TIMES[name].format(number.zfill(2))}':Interval"
    return f"'{number}{' ' + name.lower() if name else ''}{'s' if name and number != '1' else ''}':Interval"


def _string_agg(node: exp.GroupConcat, names: Mapping[str, str]) -> str:
    """Return string_agg with its ORDER BY after the separator."""
    ordered = node.this if isinstance(node.this, exp.Order) else None
    separator = node.args.get("separator")
    parts = [show(ordered.this if ordered is not None else node.this, names)]
    if separator is not None:
        parts.append(show(separator, names))
    order = f" order_by({', '.join(show(each, names) for each in ordered.expressions)})" if ordered is not None else ""
    return f"string_agg({', '.join(parts)}{order})"


def _call(node: exp.Expr, arguments: list[str]) -> str:
    if isinstance(node, PythonCall):
        name = node.args["label"]
    elif isinstance(node, exp.Anonymous):
        name = node.name if is_aggregate(node) else node.name.title().replace("_", "")
    elif isinstance(node, exp.Count) and arguments == ["*"]:
        return "count"
    elif isinstance(node, (exp.AggFunc, *_RANKING)):
        name = node.sql_name().lower()
    else:
        name = _FUNCTIONS.get(type(node), type(node).__name__)
    return f"{name}({', '.join(arguments)})"
