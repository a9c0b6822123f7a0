"""The operator, or the list of values, whose types an engine has refused, in the client's tree."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from sqlglot import exp

from sparkwave.catalog import errors
from sparkwave.catalog.errors import Error
from sparkwave.catalog.types import Type
from sparkwave.planner.batch.declared_checks import no_operator, shown_operand
from sparkwave.planner.batch.query import Environment, typer
from sparkwave.planner.bind.sql_functions import with_functions
from sparkwave.planner.functions.assignment import DOCUMENTS, NUMBERS, TEXTS, group_of
from sparkwave.planner.functions.typed import type_of_part, with_written_numerics
from sparkwave.planner.functions.written_json import with_json
from sparkwave.planner.parse.operator_places import SPELLINGS, operator_position
from sparkwave.planner.parse.strict import SIGN
from sparkwave.planner.parse.trees import position_of

_ARITHMETIC = (exp.Add, exp.Sub, exp.Mul, exp.Div, exp.Mod, exp.Pow, exp.BitwiseAnd, exp.BitwiseOr, exp.BitwiseXor)
_SIGNS = (exp.Neg, exp.BitwiseNot, exp.Abs)
_COMPARISONS = (exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE, exp.Between, exp.NullSafeEQ, exp.NullSafeNEQ)
_PATTERNS = (exp.Like, exp.ILike, exp.RegexpLike, exp.RegexpILike)
# Lists of values that must have one type, by the words of PostgreSQL's error.
_LISTS: dict[type[exp.Expr], str] = {
    exp.Array: "ARRAY", exp.Coalesce: "COALESCE", exp.Greatest: "GREATEST", exp.Least: "LEAST", exp.Case: "CASE",
}  # fmt: skip

_Typed = Callable[[exp.Expr | None], Type | None]


def operator_of(error: Error) -> str | None:
    """Return the operator that an error names; None for other errors."""
    found = re.fullmatch(r"operator (?:does not exist|is not unique): (?:.* )?([-+*/<>=~!@#%^&|?]+) .+", error.message)
    return found[1] if found is not None else None


def mistyped(tree: exp.Expr, error: Error, text: str | None, environment: Environment) -> Error | None:
    """Return an error for the operator or the list in a tree to which an engine's error belongs; None without one.

    The error belongs to the operator with the types that the message names, or else to the first operator whose
    operands do not fit.
    """
    tree = with_json(with_written_numerics(with_functions(tree, environment.catalog, environment.scope).copy()))
    nodes = list(tree.find_all(*SPELLINGS, *_LISTS, bfs=False))
    parts = [part for node in nodes for part in (node, *_values(node))]
    found = dict(zip(map(id, parts), typer(environment)(tree, parts), strict=True)) if parts else {}

    def type_of(node: exp.Expr | None) -> Type | None:
        typed = found.get(id(node))
        if isinstance(node, exp.Literal | exp.Null) and not (isinstance(node, exp.Literal) and node.is_number):
            return None
        return type_of_part(typed.unnest()) if typed is not None else None

    name = operator_of(error)
    named = [node for node in nodes if name is not None and name in _names(node)]
    exact = [node for node in named if _message(node, name, type_of) == error.message]
    for node in exact or (named if len(named) == 1 else ()):
        error.position = operator_position(node, text)
        return error
    for node in nodes:
        wrong = _list_error(node, type_of) if type(node) in _LISTS else _operator_error(node, type_of, text)
        if wrong is not None:
            return wrong
    return None


def _names(node: exp.Expr) -> tuple[str, ...]:
    """Return the names of an operator in errors; that of a pattern may be negated."""
    name = SPELLINGS.get(type(node), ("",))[0]
    return (name, f"!{name}") if isinstance(node, _PATTERNS) else (name,)


def _values(node: exp.Expr) -> list[exp.Expr]:
    """Return the operands of an operator, or the values of a list."""
    match node:
        case exp.Case():
            results = [branch.args["true"] for branch in node.args["ifs"]]
            default = node.args.get("default")  # PostgreSQL takes it first
            values = [default, *results] if default is not None else results
        case exp.Array():
            values = node.expressions
        case exp.Between():
            values = [node.this, node.args["low"], node.args["high"]]
        case exp.In():
            values = [node.this, *node.expressions[:1]]
        case exp.Neg() | exp.BitwiseNot() | exp.Abs():
            values = [node.this]
        case exp.Binary():
            values = [node.this, _quantified(node) or node.expression]
        case _:
            values = list(node.iter_expressions())
    return [value.unnest() if isinstance(value, exp.Paren) else value for value in values]


def _quantified(node: exp.Expr) -> exp.Expr | None:
    """Return the array of an operator with ANY or ALL."""
    right = node.args.get("expression")
    return right.this.unnest() if isinstance(right, exp.Any | exp.All) else None


def _message(node: exp.Expr, name: str | None, type_of: _Typed) -> str:
    return no_operator(name, [type_of(value) for value in _values(node)[:2]])


def _list_error(node: exp.Expr, type_of: _Typed) -> Error | None:
    """Return Error 42804 for a list with values of types without a common one."""
    first: Type | None = None
    for value in _values(node):
        own = type_of(value)
        if own is None or _kind(own) is None:
            continue
        if first is not None and _kind(own) != _kind(first):
            message = f"{_LISTS[type(node)]} types {shown_operand(first)} and {shown_operand(own)} cannot be matched"
            return Error(message, errors.DATATYPE_MISMATCH, position=position_of(value))
        first = first or own
    return None


def _kind(type_: Type) -> str | None:
    return None if type_.dimensions else group_of(type_)


def _operator_error(node: exp.Expr, type_of: _Typed, text: str | None) -> Error | None:
    """Return Error 42883, or 42809, for an operator that PostgreSQL has not for the types of its operands."""
    values = _values(node)
    array = type_of(values[-1]) if _quantified(node) is not None else None
    if array is not None and not array.dimensions:
        message = "op ANY/ALL (array) requires array on right side"
        return Error(message, errors.WRONG_OBJECT_TYPE, position=operator_position(node, text))
    kinds = [_kind(type_) if (type_ := type_of(value)) is not None else None for value in values[:2]]
    if _fits(node, kinds):
        return None
    message = _message(node, node.meta.get(SIGN) or SPELLINGS[type(node)][0], type_of)
    position = operator_position(node, text)
    return Error(message, errors.UNDEFINED_FUNCTION, hint=errors.NO_OPERATOR, position=position)


def _fits(node: exp.Expr, kinds: Sequence[str | None]) -> bool:
    """Return whether an operator may have operands of these groups of types; true where nothing is known of one."""
    if isinstance(node, _SIGNS):
        return kinds[0] not in (TEXTS, DOCUMENTS, "boolean")
    if None in kinds:
        return True
    if isinstance(node, _ARITHMETIC):
        return not {TEXTS, "boolean"} & set(kinds) and (DOCUMENTS not in kinds or isinstance(node, exp.Sub))
    if isinstance(node, _PATTERNS) or SIGN in node.meta:
        return set(kinds) == {TEXTS}
    if isinstance(node, _COMPARISONS):
        return kinds[0] == kinds[1] or {NUMBERS} == set(kinds)
    return True
