"""Finds the part of a view that DuckDB refuses to run, for an error message. The caller asks DuckDB."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from sqlglot import exp

from sparkwave.catalog import errors
from sparkwave.catalog.errors import Error
from sparkwave.catalog.wording import in_postgres_words
from sparkwave.planner.functions.aggregates import canonical
from sparkwave.planner.functions.emit import to_sql
from sparkwave.planner.functions.operators import as_call
from sparkwave.planner.functions.undefined import called, undefined_call
from sparkwave.planner.parse.trees import position_of
from sparkwave.planner.plan.nodes import Field, OverWindow, walk
from sparkwave.planner.plan.stream_plan import StreamPlan

# `Asked` takes the fields of the table REFUSED and SQL over this table. Returns DuckDB's error text, or None.
REFUSED = "refused"
Asked = Callable[[tuple[Field, ...], str], str | None]
_Fault = Callable[[exp.Expr], str | None]

# The kinds of expression that have a meaning on their own.
_VALUES = (exp.Func, exp.Binary, exp.Unary, exp.Bracket, exp.Between, exp.In)


def refusal(plan: StreamPlan, asked: Asked) -> Error:
    """Return the error for the smallest part of a view that DuckDB refuses on its own."""
    for node in reversed(list(walk(plan.root))):
        fields = tuple(dict.fromkeys(field for below in node.inputs for field in below.fields))

        def fault(part: exp.Expr, fields: tuple[Field, ...] = fields) -> str | None:
            return asked(fields, to_sql(exp.select(part.copy()).from_(REFUSED)))

        for expression in node.expressions:
            is_window = isinstance(node, OverWindow)
            found = fault(canonical(exp.Window(this=expression.copy())) if is_window else expression)
            if found is not None:
                return _worded(*_smallest(expression, found, fault), expression)
    return _unsupported("this query", None)


def _smallest(part: exp.Expr, text: str, fault: _Fault) -> tuple[exp.Expr, str]:
    for inner in _values_in(part):
        found = fault(inner)
        if found is not None:
            return _smallest(inner, found, fault)
    return part, text


def _values_in(part: exp.Expr) -> Iterator[exp.Expr]:
    """Return the parts directly below an expression that have a meaning on their own."""
    for inner in part.iter_expressions():
        if isinstance(inner, _VALUES):
            yield inner
        elif not isinstance(inner, exp.Lambda | exp.Query | exp.Subquery):
            yield from _values_in(inner)


def _worded(part: exp.Expr, text: str, expression: exp.Expr) -> Error:
    """Return PostgreSQL's error where it has one for a value, a cast, an operator or a call.

    Else name what is not supported.
    """
    position = position_of(part) or position_of(expression)
    worded = in_postgres_words(text)
    is_value = worded is not None and (worded.sqlstate[:2] == "22" or worded.sqlstate == errors.CANNOT_COERCE)
    is_operator = worded is not None and worded.message.startswith("operator does not exist")
    is_type = worded is not None and worded.sqlstate == errors.UNDEFINED_OBJECT and worded.message.startswith("type ")
    if worded is not None and is_type:
        position = min(
            (place for kind in part.find_all(exp.DataType) if (place := position_of(kind))), default=position
        )
    if worded is not None and (is_value or is_operator or is_type):
        worded.position = position
        return worded
    if worded is not None and worded.sqlstate == errors.UNDEFINED_FUNCTION and called(part) is not None:
        return undefined_call(part)
    return _unsupported(_called(part), position)


def _called(part: exp.Expr) -> str:
    """Return the name of a part of an expression for a message."""
    call = as_call(part)
    if call is not None:
        return f"{call[0]} with these arguments"
    if isinstance(part, exp.Anonymous | exp.AnonymousAggFunc):
        return f"{part.name.lower()} with these arguments"
    if isinstance(part, exp.Func) and not isinstance(part, exp.Binary | exp.Cast | exp.Case):
        return f"{part.sql_name().lower()} with these arguments"
    return "an operator with these operands" if isinstance(part, exp.Binary | exp.Unary) else "this expression"


def _unsupported(what: str, position: int | None) -> Error:
    return Error(f"{what} is not supported in a materialized view", errors.FEATURE_NOT_SUPPORTED, position=position)
