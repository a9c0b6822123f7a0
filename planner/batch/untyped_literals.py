"""Texts without a type take that of what they are computed with, and have to be values of it.

In a query DuckDB finds out; a view that is made would have NULL for each row.
"""

from __future__ import annotations

from collections.abc import Iterator

from sqlglot import exp

from sparkwave.catalog.types import DOUBLE
from sparkwave.planner.batch.typer import Typer
from sparkwave.planner.functions.assignment import MOMENTS, NUMBERS, group_of
from sparkwave.planner.functions.typed import type_of_part
from sparkwave.planner.parse.text_values import decode_text
from sparkwave.planner.parse.trees import at

_CHECKED = (NUMBERS, MOMENTS, "boolean", "uuid")
_BINARY = (exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE, exp.Add, exp.Sub, exp.Mul, exp.Div, exp.Mod)


def check_literals(tree: exp.Expr, typed: Typer) -> None:
    """Raise Error 22P02, 22003 or 22007 for a text that is no value of the type that it has to be.

    That is a number, boolean, uuid, date or time; those with digits in them are read elsewhere (`bind.untyped`).
    """
    for call in tree.find_all(exp.Anonymous):
        for given in call.expressions if call.name.lower() == "approx_percentile" else ():
            if given.is_string:
                with at(given):
                    decode_text(given.name, DOUBLE)
    pairs = [
        (literal, part) for literal in tree.find_all(exp.Literal) if literal.is_string for part in _partners(literal)
    ]
    parts = list({id(part): part for _, part in pairs}.values())
    counterparts = dict(zip(map(id, parts), typed(tree, parts), strict=True)) if parts else {}
    for literal, part in pairs:
        found = counterparts[id(part)]
        type_ = type_of_part(found) if found is not None else None
        if type_ is None or type_.dimensions or group_of(type_) not in _CHECKED:
            continue
        if group_of(type_) == MOMENTS and any(character.isdigit() for character in literal.name):
            continue
        with at(literal):
            decode_text(literal.name, type_)


def _partners(literal: exp.Literal) -> Iterator[exp.Expr]:
    """Yield the other operands of an operator, or values beside a text, whose type the text takes."""
    node: exp.Expr = literal
    while isinstance(node.parent, exp.Paren):
        node = node.parent
    match node.parent:
        case exp.In() as parent if node.arg_key == "expressions":
            yield parent.this
        case exp.Coalesce() | exp.Array() as parent:
            yield from (part for part in parent.iter_expressions() if part is not node)
        case exp.If() as branch if node.arg_key == "true" and isinstance(branch.parent, exp.Case):
            yield from _values(branch.parent, node)
        case exp.Case() as parent if node.arg_key == "default":
            yield from _values(parent, node)
        case parent if isinstance(parent, _BINARY):
            parts = (part for part in (parent.this, parent.expression) if part is not node)
            yield from (part for part in parts if not isinstance(part, exp.Any | exp.All))  # of the elements' type


def _values(case: exp.Case, but: exp.Expr) -> Iterator[exp.Expr]:
    values = [branch.args["true"] for branch in case.args["ifs"]] + [case.args.get("default")]
    yield from (value for value in values if value is not None and value is not but)
