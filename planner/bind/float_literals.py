"""Numbers of many digits beside floats are the nearest floats, as in PostgreSQL: DuckDB (1.5.5) rounds them twice."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from sqlglot import exp

from sparkwave.planner.bind.wide_literals import ARITHMETIC
from sparkwave.planner.functions.typed import in_float_text, type_of_part
from sparkwave.planner.parse.constant_runs import ConstantRun

_COMPARISONS = (exp.EQ, exp.NEQ, exp.GT, exp.GTE, exp.LT, exp.LTE, exp.NullSafeEQ, exp.NullSafeNEQ)


def long_constants(tree: exp.Expr) -> list[tuple[exp.Expr, exp.Expr]]:
    """Return the numbers of many digits of comparisons and arithmetic in a tree, each with the other operand."""
    found = (pair for node in tree.find_all(*_COMPARISONS, *ARITHMETIC, exp.In, exp.Between) for pair in _pairs(node))
    return [(constant, other) for constant, other in found if in_float_text(constant) is not constant]


def _pairs(node: exp.Expr) -> Iterator[tuple[exp.Expr, exp.Expr]]:
    if isinstance(node, exp.Binary):
        yield from ((node.this, node.expression), (node.expression, node.this))
        return
    constants = node.expressions if isinstance(node, exp.In) else (node.args["low"], node.args["high"])
    yield from ((constant, node.this) for constant in constants)


def as_floats(pairs: Iterable[tuple[exp.Expr, exp.Expr | None]]) -> bool:
    """Make floats of the constants beside a typed operand that is one, in place. Returns whether there is one."""
    found = [constant for constant, other in pairs if (known := other and type_of_part(other)) and known.is_float]
    for constant in found:
        text = in_float_text(constant).copy()
        constant.replace(text if isinstance(text, ConstantRun) else exp.cast(text, exp.DType.DOUBLE))
    return bool(found)
