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


def among_values(tree: exp.Expr) -> list[tuple[exp.Expr, exp.Expr]]:
    """Return an integer constant among values that get one type, with each of the others. One wide constant is enough.

    No pair is given for values that are all constants.
    """
    found = []
    for values in _alternatives(tree):
        constant = next(filter(_is_integer, values), None)
        if constant is not None:
            found += [(constant, other) for other in values if not isinstance(other.unnest(), exp.Literal)]
    return found


def _alternatives(tree: exp.Expr) -> Iterator[list[exp.Expr]]:
    for node in tree.find_all(exp.Case, exp.Coalesce, exp.Greatest, exp.Least, exp.Array, exp.Values):
        if isinstance(node, exp.Case):
            values = [*(branch.args["true"] for branch in node.args["ifs"]), node.args.get("default")]
            yield [value for value in values if value is not None]
        elif isinstance(node, exp.Values):
            rows = [row.expressions for row in node.expressions if isinstance(row, exp.Tuple)]
            yield from ([*column] for column in zip(*rows, strict=False))
        else:
            yield [value for value in node.iter_expressions() if not isinstance(value, exp.Query)]


def _pairs(node: exp.Expr) -> Iterator[tuple[exp.Expr, exp.Expr]]:
    for constant, other in ((node.this, node.expression), (node.expression, node.this)):
        if _is_integer(constant) and not isinstance(other.unnest(), exp.Literal):
            yield constant, other


def _is_integer(constant: exp.Expr) -> bool:
    value = constant.unnest()
    value = value.this if isinstance(value, exp.Neg) else value
    return isinstance(value, exp.Literal) and value.is_int and int(value.name) <= _LARGEST


def widen(pairs: Iterable[tuple[exp.Expr, exp.Expr | None]]) -> bool:
    """Cast the constants beside a typed operand that is a smallint, in place. Returns whether there is one."""
    beside = (constant for constant, other in pairs if other is not None and type_of_part(other) == SMALLINT)
    narrow = list({id(constant): constant for constant in beside}.values())
    for constant in narrow:
        constant.replace(exp.cast(constant.copy(), "int"))
    return bool(narrow)
