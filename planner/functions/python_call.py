"""The node for a call of a user's function in Python, by its name in DuckDB."""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp
from sqlglot.dialects.dialect import Dialect
from sqlglot.generator import Generator

from sparkwave.catalog.model import HAS_FAILED, Function
from sparkwave.catalog.types import BYTEA, JSON, JSONB, VARCHAR, Type, parse_type
from sparkwave.planner.functions.result_types import array_type


class PythonCall(exp.Expression, exp.Func):
    """A node for a call: `this` is the name in DuckDB, `label` the user's, `returns` the type as stored text.

    `form` is the form of the function (`catalog.model`), that which raises by default.
    """

    arg_types = {"this": True, "label": True, "returns": True, "form": False, "expressions": False}  # noqa: RUF012 - sqlglot's own form
    is_var_len_args = True


def python_call(function: Function, arguments: Sequence[exp.Expr]) -> PythonCall:
    """Return a call with arguments of the declared types, of an aggregate with arrays. Its type is `carried_result`."""
    returns = carried_result(function).stored
    return PythonCall(this=function.name_in_duckdb, label=function.name, returns=returns, expressions=list(arguments))


def in_form(call: PythonCall, form: str) -> PythonCall:
    """Return a call of another form of a function."""
    made: PythonCall = call.copy()
    made.set("form", form)
    return made


def result_of(call: exp.Expr) -> Type:
    """Return the type of a call."""
    return parse_type(call.args["returns"])


def carried_result(function: Function) -> Type:
    """Return the type of what a function gives: of one that returns rows an array."""
    found = as_carried(function.result)
    return found if function.columns is None else array_type(found)


def carried_arguments(function: Function) -> tuple[Type, ...]:
    """Return the types of what a function gets: of an aggregate arrays."""
    found = (as_carried(type_) for _, type_ in function.arguments)
    return tuple(array_type(type_) for type_ in found) if function.is_aggregate else tuple(found)


# Types of texts, each with an empty one.
_EMPTY = {VARCHAR: "''", BYTEA: "''::BLOB"}


def as_carried(type_: Type) -> Type:
    """Return the type as which a value of a type goes to and from Python: json and jsonb as a text."""
    return VARCHAR if type_ in (JSON, JSONB) else type_


def _written(self: Generator, node: PythonCall) -> str:
    """Return the text of a call, with one more argument that has no meaning.

    For a function of one argument that is no constant, DuckDB (1.5.5) would take all values of a dictionary of a file,
    among them NULL and those that no row has, and would then fail for values that the query does not read. A text is
    joined with an empty one, which copies it: DuckDB forgets it too early behind CASE and coalesce.
    """
    arguments = list(node.expressions)
    more = [exp.Anonymous(this="hash", expressions=[each.copy() for each in arguments])] if arguments else []
    form = node.args.get("form") or ""
    called = self.func(f'"{node.this}{form}"', *arguments, *more, normalize=False)
    empty = _EMPTY.get(result_of(node)) if form != HAS_FAILED else None
    return called if empty is None else f"({called} || {empty})"


for _dialect in ("", "postgres", "duckdb"):
    Dialect.get_or_raise(_dialect).generator_class.TRANSFORMS[PythonCall] = _written
