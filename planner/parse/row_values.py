"""Row values: `ROW(a, b)` and `(a, b)` become one kind of node, a call of `row` (PostgreSQL documentation 4.2.13)."""

from __future__ import annotations

from sqlglot import exp

from sparkwave.catalog import errors
from sparkwave.catalog.errors import Error

_COMPARISONS = (exp.EQ, exp.NEQ, exp.GT, exp.GTE, exp.LT, exp.LTE, exp.NullSafeEQ, exp.NullSafeNEQ)
# Nodes in which parentheses around several expressions are one value; elsewhere they are a list, as in GROUP BY.
_TAKE_VALUES = (
    *_COMPARISONS, exp.Alias, exp.Cast, exp.TryCast, exp.Paren, exp.Between, exp.Is, exp.Case, exp.If, exp.Coalesce,
    exp.Nullif, exp.Greatest, exp.Least, exp.Array, exp.Anonymous, exp.Min, exp.Max, exp.ArrayAgg, exp.JSONArrayAgg,
    exp.JSONObjectAgg,
)  # fmt: skip

# Marks the row that stands for a table's name, whose fields have names.
OF_TABLE = "row of table"


def row(values: list[exp.Expr]) -> exp.Anonymous:
    return exp.Anonymous(this="ROW", expressions=values)


def is_row(node: exp.Expr) -> bool:
    """Return whether a node is a row constructor, whose fields have no names of their own."""
    return isinstance(node, exp.Anonymous) and node.name.lower() == "row"


def with_rows(tree: exp.Expr) -> exp.Expr:
    """Return the tree, changed in place, with every row value as a call of `row`.

    Raises Error 0A000 for an empty row.
    """
    for node in list(tree.walk()):  # from the root, so that outer rows come first
        if isinstance(node, exp.Tuple) and _is_value(node):
            node.replace(row(node.expressions))
        elif isinstance(node, exp.Overlaps):
            node.replace(_of_spans(node))
        elif is_row(node) and not node.expressions:
            raise Error("a row without fields is not supported", errors.FEATURE_NOT_SUPPORTED)
    return tree


def _of_spans(node: exp.Overlaps) -> exp.Expr:
    """Return `(start, end) OVERLAPS (start, length)` as a call."""
    for side, span in (("left", node.this), ("right", node.expression)):
        if not isinstance(span, exp.Tuple) or len(span.expressions) != 2:
            message = f"wrong number of parameters on {side} side of OVERLAPS expression"
            raise Error(message, errors.SYNTAX_ERROR)
    return exp.Anonymous(this="overlaps", expressions=[*node.this.expressions, *node.expression.expressions])


def _is_value(node: exp.Tuple) -> bool:
    parent = node.parent
    if isinstance(parent, exp.Select):
        return node.arg_key == "expressions"
    if isinstance(parent, exp.Tuple):
        return isinstance(parent.parent, exp.Values)
    if isinstance(parent, exp.In):
        return not parent.args.get("query")
    if isinstance(parent, exp.EQ) and isinstance(parent.parent, exp.Update | exp.OnConflict):
        return node.arg_key == "expression" and not isinstance(parent.this, exp.Tuple)
    if isinstance(parent, exp.Order | exp.Distinct) and isinstance(parent.parent, exp.JSONArrayAgg):
        return parent.this is node or isinstance(parent, exp.Distinct)
    return isinstance(parent, _TAKE_VALUES)
