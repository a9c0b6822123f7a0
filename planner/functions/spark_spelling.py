"""Postgres' scalar expressions as Spark spells them, for what `planner.functions.portable` knows to be proven."""

from __future__ import annotations

import re
from functools import cache

import sqlglot
from sqlglot import exp

from catalog.types import DATE, TIMESTAMP, TIMESTAMPTZ
from planner.functions.duckdb_spelling import rewrite_leaves_first
from planner.functions.functions import FUNCTIONS
from planner.functions.operators import as_call, type_of_part
from planner.functions.typed import sql_type

_TRIES: dict[type[exp.Expr], str] = {
    exp.Add: "try_add(_1, _2)",
    exp.Sub: "try_subtract(_1, _2)",
    exp.Mul: "try_multiply(_1, _2)",
    exp.Mod: "try_mod(_1, _2)",
    exp.Neg: "try_subtract(0, _1)",
    # The least integer has no negation.
    exp.Div: "CASE WHEN _2 = -1 THEN try_subtract(0, _1) ELSE _1 DIV _2 END",
}

# The same where an error is to be one: Spark's own operators raise it, as it runs with ANSI's.
_RAISING: dict[type[exp.Expr], str] = {exp.Div: "_1 DIV _2", exp.Neg: "0 - _1"}

# Fields of `extract`, over `_2`; the second row only for timestamps.
DATE_FIELDS: dict[str, str] = {
    "year": "CASE WHEN year(_2) > 0 THEN year(_2) ELSE year(_2) - 1 END", "quarter": "quarter(_2)",
    "month": "month(_2)", "week": "weekofyear(_2)",
    "day": "dayofmonth(_2)", "dow": "dayofweek(_2) - 1", "isodow": "weekday(_2) + 1", "doy": "dayofyear(_2)",
    "epoch": "datediff(_2, DATE '1970-01-01') * 86400L",
}  # fmt: skip
_OF_MINUTE = "pmod(unix_micros(CAST(_2 AS TIMESTAMP)), 60000000)"
TIME_FIELDS: dict[str, str] = {
    "hour": "hour(_2)", "minute": "minute(_2)", "second": f"{_OF_MINUTE} * 0.000001",
    "milliseconds": f"{_OF_MINUTE} * 0.001", "microseconds": _OF_MINUTE,
    "epoch": "unix_micros(CAST(_2 AS TIMESTAMP)) * 0.000001",
}  # fmt: skip
# Units that Spark's date_trunc has by the same name.
UNITS = frozenset({"year", "quarter", "month", "week", "day", "hour", "minute", "second"})


def for_spark(tree: exp.Expr, lenient: bool = True) -> exp.Expr:
    """The tree with calls, casts and operators in Spark's terms; what has no type is the planner's own, and stays.

    `lenient` as in `duckdb_spelling`.
    """
    return rewrite_leaves_first(tree, lambda node: _for_spark(node, lenient))


def spark_form(name: str, arguments: list[exp.Expr]) -> str | None:
    """The proven spelling of a call with arguments of these types; None if there is none."""
    types = [type_of_part(argument) for argument in arguments]
    first = types[0] if types else None
    texts = [str(type_).split("(")[0] if type_ is not None else "character varying" for type_ in types]
    if name in ("extract", "date_part"):
        field = arguments[0].name.lower() if arguments[0].is_string else ""
        fields = DATE_FIELDS if types[1] == DATE else DATE_FIELDS | TIME_FIELDS
        form = fields.get(field) if types[1] in (DATE, TIMESTAMP, TIMESTAMPTZ) else None
        return form and f"CAST({form} AS {'DOUBLE' if name == 'date_part' else 'DECIMAL(38, 10)'})"
    if name == "date_trunc":
        is_proven = arguments[0].is_string and arguments[0].name.lower() in UNITS and len(arguments) == 2
        if not is_proven or types[1] not in (DATE, TIMESTAMP, TIMESTAMPTZ):
            return None
        return "date_trunc(_1, _2)" if types[1] == TIMESTAMPTZ else "CAST(date_trunc(_1, _2) AS TIMESTAMP_NTZ)"
    if name == "substring" and arguments[1].is_string:
        return None  # a pattern
    for spelling in FUNCTIONS[name].spark:
        count = _count(spelling.form)
        if count not in (None, len(arguments)) or (texts[0] if first or types else "") not in spelling.types:
            continue
        if all(text in ("integer", spelling.rest, "character varying", texts[0]) for text in texts[1:]):
            return spelling.form
    return None


def _count(form: str) -> int | None:
    """The number of arguments a form is for; None for a function's name, which is for any."""
    return max((int(number) for number in re.findall(r"\b_(\d)\b", form)), default=0) if "(" in form else None


def _for_spark(node: exp.Expr, lenient: bool) -> exp.Expr | None:
    if type(node) in _TRIES and node.type is not None:
        return _arithmetic(node, lenient)
    if isinstance(node, exp.Cast):
        return _cast(node, lenient)
    call = as_call(node)
    if call is None:
        return None
    name, arguments = call
    form = spark_form(name, arguments)
    if form is None:
        return None
    if name == "concat":
        # Spark's own concat gives NULL for a NULL.
        arguments.insert(0, exp.Literal.string(""))
    return fill(form, arguments) if "(" in form else exp.Anonymous(this=form, expressions=arguments)


def fill(form: str, arguments: list[exp.Expr]) -> exp.Expr:
    """A form with its arguments in place."""
    values = {f"_{number}": argument for number, argument in enumerate(arguments, start=1)}

    def place(part: exp.Expr) -> exp.Expr:
        is_place = isinstance(part, exp.Column | exp.Var) and part.name in values
        return exp.Paren(this=values[part.name].copy()) if is_place else part

    return _parsed(form).transform(place)


@cache
def _parsed(form: str) -> exp.Expr:
    # date_trunc is read as a call of its own, with a unit that must be a constant.
    tree = sqlglot.parse_one(form.replace("date_trunc(", "_date_trunc("), read="spark")
    for part in tree.find_all(exp.Anonymous):
        if part.name.lower() == "_date_trunc":
            part.set("this", "date_trunc")
    return tree


def _arithmetic(node: exp.Expr, lenient: bool) -> exp.Expr | None:
    type_ = sql_type(node.type)
    arguments = list(node.iter_expressions())
    types = [type_of_part(argument) for argument in arguments]
    if isinstance(node, exp.Sub) and types == [DATE, DATE]:
        return fill("datediff(_1, _2)", arguments)
    if DATE in types and type_ == TIMESTAMP:
        return _timestamp_first(node, arguments)
    if type_ is None or not type_.is_integer or DATE in types:
        return None
    form = _TRIES[type(node)] if lenient else _RAISING.get(type(node))
    if form is None:
        return None
    new = fill(form, arguments)
    if isinstance(node, exp.Div | exp.Neg) and type_.name != "bigint":
        return _try_cast(new, exp.DataType.build(type_.spark(), dialect="spark"), lenient)
    return new


def _timestamp_first(node: exp.Expr, arguments: list[exp.Expr]) -> exp.Expr:
    """A date plus an interval, which Spark would take for whole days."""
    for argument in arguments:
        if type_of_part(argument) == DATE:
            argument.replace(exp.cast(argument.copy(), exp.DataType(this=exp.DataType.Type.TIMESTAMPNTZ)))
    return node


def _try_cast(value: exp.Expr, to: exp.Expr, lenient: bool) -> exp.Expr:
    return exp.TryCast(this=value, to=to, safe=True) if lenient else exp.Cast(this=value, to=to)


def _cast(node: exp.Cast, lenient: bool) -> exp.Expr | None:
    """Spark's own casts to integers cut, and fail where there is no value."""
    source = type_of_part(node.this)
    target = sql_type(node.to)
    if target is None or isinstance(node.this, exp.Null) or (node.this.is_string and node.to.expressions == []):
        return None
    to = node.to
    if target.name == "numeric" and not to.expressions and not target.dimensions:
        to = exp.DataType.build(target.spark(), dialect="spark")
    if source is None:
        return None if to is node.to else exp.cast(node.this, to)
    value = node.this
    if target.is_integer and source.name in ("real", "double precision"):
        value = exp.Anonymous(this="rint", expressions=[value])
    elif target.is_integer and source.name == "numeric":
        value = exp.Anonymous(this="round", expressions=[value])
    return _try_cast(value, to, lenient)
