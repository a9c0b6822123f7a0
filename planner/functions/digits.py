"""The numbers of digits of the decimals that DuckDB computes."""

from __future__ import annotations

from sqlglot import exp

from sparkwave.catalog.types import DEFAULT_NUMERIC
from sparkwave.planner.functions.typed import sql_type

# The digits of a 64-bit decimal in DuckDB.
INT64_DIGITS = 18
# Marks a product that is not to be made wider.
NARROW = "narrow"


def digits(node: exp.Expr) -> tuple[int, int] | None:
    """Return width and scale of the decimal that DuckDB computes for an exact number; None where they are unknown."""
    if isinstance(node, exp.Paren | exp.Neg):
        return digits(node.this)
    if isinstance(node, exp.Anonymous) and node.name == "try":
        return digits(node.expressions[0])
    if isinstance(node, exp.Literal):
        whole, _, fraction = node.name.partition(".")
        return (len(whole) + len(fraction), len(fraction)) if not node.is_string else None
    if isinstance(node, exp.Add | exp.Sub | exp.Mul):
        sides = [digits(side) for side in node.iter_expressions()]
        known = [side for side in sides if side is not None]
        if len(known) != len(sides):
            return None
        if isinstance(node, exp.Mul):
            return min(sum(width for width, _ in known), DEFAULT_NUMERIC[0]), sum(scale for _, scale in known)
        scale = max(scale for _, scale in known)
        return min(max(width - own for width, own in known) + scale + 1, DEFAULT_NUMERIC[0]), scale
    type_ = sql_type(node.to if isinstance(node, exp.Cast) else node.type)
    if type_ is None or type_.dimensions or not isinstance(node, exp.Column | exp.Cast):
        return None
    if type_.is_integer:
        return {"smallint": 5, "integer": 10}.get(type_.name, 19), 0
    if type_.name != "numeric":
        return None
    return (type_.precision, type_.scale or 0) if type_.precision is not None else DEFAULT_NUMERIC


def narrow_digits(node: exp.Expr) -> tuple[int, int] | None:
    """As `digits`, where no product is made wider, so that more than 64 bits raise; also for CASE and COALESCE."""
    if isinstance(node, exp.Paren | exp.Neg):
        return narrow_digits(node.this)
    values = chosen(node)
    if values is None and not isinstance(node, exp.Add | exp.Sub | exp.Mul):
        return _of_leaf(node)
    known = [narrow_digits(value) for value in (node.iter_expressions() if values is None else values)]
    parts = [part for part in known if part is not None]
    if not parts or len(parts) != len(known):
        return None
    scale = max(scale for _, scale in parts)
    width = max(width - own for width, own in parts) + scale
    if values is not None:
        return width, scale
    if isinstance(node, exp.Mul):
        width, scale = sum(width for width, _ in parts), sum(scale for _, scale in parts)
    else:
        width += 1
    fit = max(width for width, _ in parts) <= INT64_DIGITS and scale < INT64_DIGITS
    return min(width, INT64_DIGITS if fit else DEFAULT_NUMERIC[0]), scale


def chosen(node: exp.Expr) -> list[exp.Expr] | None:
    """Return the possible values of a CASE or COALESCE, without NULL; None for other expressions."""
    if isinstance(node, exp.Case):
        values = [branch.args["true"] for branch in node.args["ifs"]]
        default = node.args.get("default")
        values += [default] if default is not None else []
    elif isinstance(node, exp.Coalesce):
        values = [node.this, *node.expressions]
    else:
        return None
    return [value for value in values if not isinstance(value, exp.Null)]


def _of_leaf(node: exp.Expr) -> tuple[int, int] | None:
    if not isinstance(node, exp.Literal):
        return digits(node)
    if node.is_string or not node.name.replace(".", "", 1).isdigit():
        return None
    if "." in node.name:
        return digits(node)
    # An integer constant has the digits of DuckDB's type for it.
    length = len(node.name)
    return next(room for most, room in ((2, 3), (4, 5), (9, 10), (length, max(length, 19))) if length <= most), 0
