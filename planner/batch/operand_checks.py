"""Conditions are booleans, and the outputs of set operations are of types that PostgreSQL makes one of.

DuckDB casts instead: a number to boolean, and a text to a number. Only stored definitions, which are not checked, may
still rely on that.
"""

from __future__ import annotations

from collections.abc import Iterator

from sqlglot import exp

from sparkwave.catalog import errors
from sparkwave.catalog.errors import Error
from sparkwave.catalog.types import BOOLEAN, Type
from sparkwave.planner.batch.declared_checks import TypesOf, no_operator, shown, unmatched
from sparkwave.planner.batch.typer import Typer
from sparkwave.planner.functions.assignment import NUMBERS, TEXTS, group_of
from sparkwave.planner.functions.declared import have_common
from sparkwave.planner.functions.typed import type_of_part
from sparkwave.planner.parse.identifiers import folded
from sparkwave.planner.parse.operator_places import TEXT, operator_position
from sparkwave.planner.parse.strict import OF_TEXTS, SIGN
from sparkwave.planner.parse.trees import column_type, position_of

_NUMERIC = (exp.Add, exp.Sub, exp.Mul, exp.Div, exp.Mod, exp.Neg, exp.Count, exp.Sum, exp.Length)


def check_operands(tree: exp.Expr, types_of: TypesOf, typed: Typer) -> None:
    """Raise Error 42804 for a condition that is no boolean, and for a set operation without types in common.

    And Error 42883 for `~<~` and its like, which compare texts alone.
    Types are worked out only where those of the columns with an operand's name leave a doubt.
    """
    conditions = [(what, node) for what, node in _conditions(tree) if not _groups(node, types_of) <= {"boolean"}]
    unions = [node for node in tree.find_all(exp.SetOperation) if not node.args.get("by_name")]
    _check_patterns(tree, typed)
    if not conditions and not unions:
        return
    found = typed(tree, [*unions, *(node for _, node in conditions)])
    for union in found[: len(unions)]:
        if isinstance(union, exp.SetOperation):
            _check_outputs(union, types_of)
    types = [_type_of(node) for node in found[len(unions) :]]
    for (what, node), type_ in zip(conditions, types, strict=True):
        if type_ is not None and type_ != BOOLEAN and not type_.labels and not type_.fields:
            message = f"argument of {what} must be type boolean, not type {shown(node, type_, types_of)}"
            raise Error(message, errors.DATATYPE_MISMATCH, position=position_of(node))


def _check_patterns(tree: exp.Expr, typed: Typer) -> None:
    nodes = [node for node in tree.find_all(*OF_TEXTS.values()) if SIGN in node.meta]
    found = typed(tree, [part for node in nodes for part in (node.this, node.expression)]) if nodes else []
    types = [None if part is None or part.is_string else type_of_part(part) for part in found]
    for node, left, right in zip(nodes, types[::2], types[1::2], strict=True):
        if any(type_ is not None and group_of(type_) != TEXTS for type_ in (left, right)):
            message = no_operator(node.meta[SIGN], (left, right))
            position = operator_position(node, tree.meta.get(TEXT))
            raise Error(message, errors.UNDEFINED_FUNCTION, hint=errors.NO_OPERATOR, position=position)


def _check_outputs(union: exp.SetOperation, types_of: TypesOf) -> None:
    """Raise Error 42804 for queries of a typed set operation whose outputs have types without a common one."""
    for left, right in zip(union.left.selects, union.right.selects, strict=False):
        own, other = _type_of(left.unalias()), _type_of(right.unalias())
        if not have_common(own, other):
            names = shown(left.unalias(), own, types_of), shown(right.unalias(), other, types_of)
            raise unmatched(union.key.upper(), (own, other), names, position_of(right))


def _type_of(node: exp.Expr | None) -> Type | None:
    return type_of_part(node) if node is not None else None


def _conditions(tree: exp.Expr) -> Iterator[tuple[str, exp.Expr]]:
    """Yield what has to be boolean, with the clause as PostgreSQL's errors name it."""
    for node in tree.find_all(exp.Where, exp.Having, exp.Join, exp.And, exp.Or, exp.Not, exp.Is, exp.Case):
        match node:
            case exp.Where():
                yield from _leaf("FILTER" if isinstance(node.parent, exp.Filter) else "WHERE", node.this)
            case exp.Having():
                yield from _leaf("HAVING", node.this)
            case exp.Join() if node.args.get("on") is not None:
                yield from _leaf("JOIN/ON", node.args["on"])
            case exp.And() | exp.Or():
                yield from _leaf(node.key.upper(), node.this)
                yield from _leaf(node.key.upper(), node.expression)
            case exp.Not():
                yield from _leaf("NOT", node.this)
            case exp.Is(expression=exp.Boolean(this=is_true)):
                negated = "NOT " if isinstance(node.parent, exp.Not) else ""
                yield from _leaf(f"IS {negated}{str(is_true).upper()}", node.this)
            case exp.Case() if node.args.get("this") is None:
                for branch in node.args["ifs"]:
                    yield from _leaf("CASE/WHEN", branch.this)


def _leaf(what: str, node: exp.Expr) -> Iterator[tuple[str, exp.Expr]]:
    node = _inner(node)
    if isinstance(node, (exp.Column, exp.Cast, *_NUMERIC)) or (isinstance(node, exp.Literal) and not node.is_string):
        yield what, node


def _inner(node: exp.Expr) -> exp.Expr:
    while isinstance(node, exp.Paren):
        node = node.this
    return node


def _groups(node: exp.Expr, types_of: TypesOf) -> set[str]:
    """Return the groups that the type of an operand may be of; none where nothing is known."""
    if isinstance(node, exp.Column):
        own = types_of.get(folded(node.this), set()) if isinstance(node.this, exp.Identifier) else set()
        return {_group(type_) or "" for type_ in own}
    if isinstance(node, exp.Literal):
        return set() if node.is_string else {NUMBERS}
    if isinstance(node, exp.Boolean):
        return {"boolean"}
    if isinstance(node, exp.Cast):
        try:
            return {_group(column_type(node.to)) or ""}
        except Error:
            return set()
    return {NUMBERS} if isinstance(node, _NUMERIC) else set()


def _group(type_: Type) -> str | None:
    return None if type_.dimensions else group_of(type_)
