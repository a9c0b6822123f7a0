"""Comparisons of row values, which compare their fields from left to right (PostgreSQL documentation 9.24.5).

The result is NULL where a field that decides is NULL. DuckDB compares rows as structs, in which NULL is a value.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from sqlglot import exp

from sparkwave.catalog import errors
from sparkwave.catalog.errors import Error
from sparkwave.planner.parse.row_values import is_row

Pair = tuple[exp.Expr, exp.Expr]

# The most rows of IN that are compared field by field. Longer lists, and lists of parameters, are looked up as structs.
MOST_ROWS = 32
# The comparison that decides at the first fields that differ.
_STRICT: dict[type[exp.Expr], type[exp.Expr]] = {exp.LT: exp.LT, exp.LTE: exp.LT, exp.GT: exp.GT, exp.GTE: exp.GT}


def with_row_comparisons(tree: exp.Expr) -> exp.Expr:
    """Return the tree, changed in place, with comparisons of fields for those of two row constructors.

    Raises Error 42601 for rows with unequal numbers of fields.
    """
    for node in reversed(list(tree.find_all(exp.EQ, exp.NEQ, *_STRICT, exp.In, exp.Between, exp.Is))):
        made = _compared(node)
        if made is not None:
            node.replace(exp.paren(made, copy=False))
    return tree


def _compared(node: exp.Expr) -> exp.Expr | None:
    left = node.this.unnest()
    if not is_row(left):
        return None
    if isinstance(node, exp.Is):
        is_null = isinstance(node.expression, exp.Null)
        return all_null(left.expressions, bool(node.args.get("negate"))) if is_null else None
    if isinstance(node, exp.In):
        rows = [row.unnest() for row in node.expressions]
        if not 0 < len(rows) <= MOST_ROWS or not all(map(is_row, rows)) or node.find(exp.Parameter) is not None:
            return None
        return exp.or_(*(_equal(left, row) for row in rows), copy=False)
    if isinstance(node, exp.Between):
        low, high = node.args["low"].unnest(), node.args["high"].unnest()
        if node.args.get("symmetric") or not (is_row(low) and is_row(high)):
            return None
        return exp.and_(_ordered(exp.GTE, _pairs(left, low)), _ordered(exp.LTE, _pairs(left, high)), copy=False)
    right = node.expression.unnest()
    if not is_row(right):
        return None
    if isinstance(node, exp.EQ):
        return _equal(left, right)
    if isinstance(node, exp.NEQ):
        return exp.or_(*(_comparison(exp.NEQ, pair) for pair in _pairs(left, right)), copy=False)
    return _ordered(type(node), _pairs(left, right))


def all_null(fields: Iterable[exp.Expr], negate: bool) -> exp.Expr:
    """Return that all fields of a row are NULL, or with `negate` that none is, which is not the contrary."""
    tests = (exp.Is(this=exp.paren(field.copy(), copy=False), expression=exp.null()) for field in fields)
    return exp.and_(*(exp.not_(test, copy=False) if negate else test for test in tests), copy=False)


def _pairs(left: exp.Expr, right: exp.Expr) -> list[Pair]:
    if len(left.expressions) != len(right.expressions):
        raise Error("unequal number of entries in row expressions", errors.SYNTAX_ERROR)
    return list(zip(left.expressions, right.expressions, strict=True))


def _equal(left: exp.Expr, right: exp.Expr) -> exp.Expr:
    return exp.and_(*(_comparison(exp.EQ, pair) for pair in _pairs(left, right)), copy=False)


def _ordered(kind: type[exp.Expr], pairs: Sequence[Pair]) -> exp.Expr:
    """Return that the first fields that differ are in order, or that none differ if `kind` allows this."""
    (first, *rest) = pairs
    if not rest:
        return _comparison(kind, first)
    later = exp.and_(_comparison(exp.EQ, first), _ordered(kind, rest), copy=False)
    return exp.or_(_comparison(_STRICT[kind], first), later, copy=False)


def _comparison(kind: type[exp.Expr], pair: Pair) -> exp.Expr:
    left, right = pair
    return kind(this=exp.paren(left.copy(), copy=False), expression=exp.paren(right.copy(), copy=False))
