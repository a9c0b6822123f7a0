"""Text literals without a type take that of what they meet, as a parameter would (PostgreSQL documentation 10.2, 10.5).

The engines do so too, but read the text in their own way: an array's not at all, other bytes, fewer dates.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from sqlglot import exp

from catalog.errors import Error
from catalog.types import BYTEA, DATE, TIMESTAMP, TIMESTAMPTZ, Type
from planner.batch.parameters import Seen, type_by_place, typed_nodes
from planner.bind import BoundQuery, annotate_again, data_type
from planner.parse.literals import engine_text

_PLACES = (
    exp.EQ, exp.NEQ, exp.GT, exp.GTE, exp.LT, exp.LTE, exp.NullSafeEQ, exp.NullSafeNEQ, exp.Nullif, exp.In, exp.Between,
    exp.Coalesce, exp.Greatest, exp.Least, exp.Case, exp.If,
)  # fmt: skip
_READ_OTHERWISE = (BYTEA, DATE, TIMESTAMP, TIMESTAMPTZ)


def type_literals(bound: BoundQuery) -> None:
    """Give the literals of a bound query their types, and what is computed from them the types that follow."""
    seen: Seen = {}
    types = [(literal, type_by_place(literal, seen)) for literal in _untyped(bound.tree)]
    given = [_give(literal, type_) for literal, type_ in types]
    if any(given):
        annotate_again(bound)


def with_literals_of(tree: exp.Expr, typed: Callable[[exp.Expr], exp.Expr]) -> exp.Expr:
    """A tree without types, changed in place; `typed` makes a typed one of it."""
    literals = list(_untyped(tree))
    if not literals:
        return tree
    seen: Seen = {}
    places = typed_nodes(tree, literals, typed)
    types = [type_by_place(place, seen) if place is not None else None for place in places]
    for literal, type_ in zip(literals, types, strict=True):
        _give(literal, type_)
    return tree


def _untyped(tree: exp.Expr) -> Iterator[exp.Expr]:
    for literal in tree.find_all(exp.Literal):
        parent = literal.parent
        is_assigned = isinstance(parent, exp.EQ) and isinstance(parent.parent, exp.Update)
        if literal.is_string and isinstance(parent, _PLACES) and not is_assigned and _may_be_misread(literal.name):
            yield literal


def _may_be_misread(text: str) -> bool:
    """Whether a text is an array, bytes, or a time that is put in another way for the engines."""
    if text[:1] in ("{", "\\"):
        return True
    try:
        return text.strip()[:1].isdigit() and engine_text(text, "TIMESTAMPTZ") != text
    except Error:
        return False


def _give(literal: exp.Expr, type_: Type | None) -> bool:
    """Cast a literal to a type whose texts the engines misread; whether it is one."""
    if type_ is None or not (type_.dimensions or type_ in _READ_OTHERWISE):
        return False
    to = data_type(type_)
    text = literal.name if type_.dimensions else engine_text(literal.name, to.sql(dialect="postgres").upper())
    cast = exp.Cast(this=exp.Literal.string(text), to=to)
    literal.replace(cast)
    return True
