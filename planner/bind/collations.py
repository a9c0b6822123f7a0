"""COLLATE of expressions: all collations here order text by its bytes, so that it changes nothing."""

from __future__ import annotations

from sqlglot import exp

from sparkwave.catalog import errors
from sparkwave.catalog.errors import Error
from sparkwave.catalog.types import Type
from sparkwave.planner.functions.assignment import TEXTS, group_of
from sparkwave.planner.functions.typed import type_of_part
from sparkwave.planner.parse.constraints import is_by_bytes
from sparkwave.planner.parse.identifiers import folded
from sparkwave.planner.parse.operator_places import TEXT, operator_position
from sparkwave.planner.parse.trees import position_of

_COLLATED = "collated"  # marks an operand with the position of its COLLATE


def without_collations(tree: exp.Expr) -> None:
    """Remove each COLLATE from a tree; the operands are marked for `check_collated`.

    Raises Error 42704 for a collation with another order.
    """
    for node in list(tree.find_all(exp.Collate)):
        position = position_of_collation(node)
        operand = operand_of(node)
        operand.meta[_COLLATED] = position
        node.replace(operand)


def operand_of(node: exp.Collate) -> exp.Expr:
    """Return the operand of COLLATE. Raises Error 42704 for a collation with another order."""
    parts = _parts(node.expression)
    if not is_by_bytes(parts[-1]) or parts[:-1] not in ([], ["pg_catalog"]):
        raise Error(
            f'collation "{".".join(parts)}" for encoding "UTF8" does not exist',
            errors.UNDEFINED_OBJECT,
            hint='Text is ordered by its bytes, as COLLATE "C" has it.',
            position=position_of_collation(node),
        )
    operand: exp.Expr = node.this
    return operand


def _parts(name: exp.Expr) -> list[str]:
    """Return the schema and the name of a collation."""
    if isinstance(name, exp.Column | exp.Dot):
        return [folded(part) for part in name.parts]
    return [folded(name) if isinstance(name, exp.Identifier) else name.name.lower()]


def position_of_collation(node: exp.Collate) -> int | None:
    """Return the position of the word COLLATE, or of the collation where the text is not known."""
    return operator_position(node, node.root().meta.get(TEXT)) or position_of(node.expression)


def check_collated(tree: exp.Expr) -> None:
    """Raise Error 42804 for a marked operand in a typed tree that is no text."""
    for node in tree.walk():
        if _COLLATED in node.meta:
            check_text(type_of_part(node), node.meta[_COLLATED])


def check_text(type_: Type | None, position: int | None) -> None:
    """Raise Error 42804 for the type of an operand that is known and no text."""
    if type_ is not None and group_of(type_) not in (None, TEXTS):
        message = f"collations are not supported by type {type_.without_digits}"
        raise Error(message, errors.DATATYPE_MISMATCH, position=position)
