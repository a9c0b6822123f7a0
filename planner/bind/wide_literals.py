"""Integer constants beside smallints are integers, as in PostgreSQL: DuckDB has them as narrow as what they meet."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from sqlglot import exp

from sparkwave.catalog.model import Relation
from sparkwave.catalog.types import SMALLINT
from sparkwave.planner.functions.typed import type_of_part

ARITHMETIC = (exp.Add, exp.Sub, exp.Mul, exp.Div, exp.Mod)
BITWISE = (exp.BitwiseAnd, exp.BitwiseOr, exp.BitwiseXor)  # of these DuckDB takes a constant for a smallint in queries
_LARGEST = 2**31 - 1


def may_hold_smallints(tree: exp.Expr, read: Iterable[Relation]) -> bool:
    """Return whether a tree casts to smallint, or reads a column of it."""
    reads = any(column.type.name == SMALLINT.name for relation in read for column in relation.visible)
    return reads or any(kind.args["this"] == exp.DType.SMALLINT for kind in tree.find_all(exp.DataType))


def beside_constants(tree: exp.Expr, kinds: tuple[type[exp.Expr], ...] = ARITHMETIC) -> list[tuple[exp.Expr, exp.Expr]]:
    """Return the integer constants of arithmetic in a tree, each with the other operand."""
    return [pair for node in tree.find_all(*kinds) for pair in _pairs(node)]


def _pairs(node: exp.Expr) -> Iterator[tuple[exp.Expr, exp.Expr]]:
    for constant, other in ((node.this, node.expression), (node.expression, node.this)):
        value = constant.unnest()
        value = value.this if isinstance(value, exp.Neg) else value
        is_integer = isinstance(value, exp.Literal) and value.is_int and int(value.name) <= _LARGEST
        if is_integer and not isinstance(other.unnest(), exp.Literal):
            yield constant, other


def widen(pairs: Iterable[tuple[exp.Expr, exp.Expr | None]]) -> bool:
    """Cast the constants beside a typed operand that is a smallint, in place. Returns whether there is one."""
    narrow = [constant for constant, other in pairs if other is not None and type_of_part(other) == SMALLINT]
    for constant in narrow:
        constant.replace(exp.cast(constant.copy(), "int"))
    return bool(narrow)
