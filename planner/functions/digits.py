"""The numbers of digits of the decimals that DuckDB computes."""

from __future__ import annotations

from sqlglot import exp

from sparkwave.catalog.types import DEFAULT_NUMERIC, QUOTIENT, Type
from sparkwave.planner.functions.result_types import computed, keeps_digits
from sparkwave.planner.functions.typed import sql_type, type_of_part
from sparkwave.planner.parse.long_numbers import fitted_text

# The digits of a 64-bit decimal in DuckDB.
INT64_DIGITS = 18
# Marks a product that is not to be made wider.
NARROW = "narrow"
# Marks a cast that makes a side of an operator wider.
WIDENING = "widening"
# Marks a sum, difference or product with ten digits after the point, as before `since.EXACT_DIGITS`.
OF_TEN_PLACES = "ten places"


def digits(node: exp.Expr, of_choices: bool = True) -> tuple[int, int] | None:
    """Return width and scale of the decimal that DuckDB computes for an exact number; None where they are unknown.

    `of_choices` tells whether those of CASE and COALESCE are known.
    """
    if isinstance(node, exp.Paren | exp.Neg):
        return digits(node.this, of_choices)
    if isinstance(node, exp.Anonymous) and node.name == "try":
        return digits(node.expressions[0], of_choices)
    if isinstance(node, exp.Literal):
        if node.is_string:
            return None
        whole, _, fraction = fitted_text(node.name).partition(".")
        return len(whole) + len(fraction), len(fraction)
    values = chosen(node) if of_choices else None
    if isinstance(node, exp.Add | exp.Sub | exp.Mul):
        values = list(node.iter_expressions())
    if values:
        known = [digits(value, of_choices) for value in values]
        return digits_of_both(node, [own for own in known if own is not None]) if None not in known else None
    type_ = sql_type(node.to if isinstance(node, exp.Cast) else node.type)
    return digits_of(type_) if isinstance(node, exp.Column | exp.Cast) else None


def digits_of_both(node: exp.Expr, known: list[tuple[int, int]]) -> tuple[int, int]:
    """Return width and scale of the decimal that an operator, CASE or COALESCE needs for parts with such digits."""
    if isinstance(node, exp.Mul):
        width, scale = (sum(counts) for counts in zip(*known, strict=True))
    else:
        scale = max(scale for _, scale in known)
        width = max(width - own for width, own in known) + scale + isinstance(node, exp.Add | exp.Sub)
    return min(width, DEFAULT_NUMERIC[0]), scale


def digits_of(type_: Type | None) -> tuple[int, int] | None:
    """Return width and scale of DuckDB's decimal for a type; None for one that has no exact numbers."""
    if type_ is None or type_.dimensions:
        return None
    if type_.is_integer:
        return {"smallint": 5, "integer": 10}.get(type_.name, 19), 0
    return type_.digits if type_.name == "numeric" else None


def has_many_places(type_: Type) -> bool:
    """Return whether a type is of numerics with more digits after the point than those of DEFAULT_NUMERIC."""
    return type_.name == "numeric" and type_.digits[1] > DEFAULT_NUMERIC[1]


def has_most_digits(type_: Type) -> bool:
    """Return whether a type is of numerics with all digits that there are, of which DuckDB makes floats for more."""
    return type_.name == "numeric" and not type_.dimensions and type_.digits[0] == DEFAULT_NUMERIC[0]


def of_other_digits(node: exp.Expr, type_: Type) -> list[exp.Expr]:
    """Return the values of a CASE, COALESCE, GREATEST, LEAST or ARRAY that are numerics of another type."""
    values = list(node.iter_expressions())
    if isinstance(node, exp.Case):
        values = [branch.args["true"] for branch in node.args["ifs"]]
        values += [default] if (default := node.args.get("default")) is not None else []
    types = [(value, type_of_part(value)) for value in values]
    return [value for value, own in types if own is not None and own.name == "numeric" and own != type_]


def type_of_numerics(node: exp.Add | exp.Sub | exp.Mul) -> Type | None:
    """Return the type of a sum, difference or product of exact numbers, one a numeric; None for other operators.

    It has all digits after the point that PostgreSQL has, up to 19; a sum that needs at most 38 digits and a product
    with a constant integer have more if an operand has more.
    """
    types = [type_of_part(side) for side in node.iter_expressions()]
    if not keeps_digits() or not any(type_ is not None and type_.name == "numeric" for type_ in types):
        return None
    known = [around for side in node.iter_expressions() if (around := _around(side)) is not None]
    if len(known) != len(types):
        return None
    is_product, most = isinstance(node, exp.Mul), QUOTIENT.digits[1]
    if QUOTIENT in types and not is_product:
        return QUOTIENT
    scale = (sum if is_product else max)(scale for _, scale in known)
    is_exact = (
        any(isinstance(side, exp.Literal) and side.is_int for side in node.iter_expressions())
        if is_product
        else max(whole for whole, _ in known) + scale <= DEFAULT_NUMERIC[0]
    )
    return computed(scale) if scale <= most or is_exact else QUOTIENT


def _around(node: exp.Expr) -> tuple[int, int] | None:
    """Return the most digits of an exact number before and after the point; None where they are unknown."""
    if isinstance(node, exp.Literal) and not node.is_string:
        whole, _, fraction = node.name.partition(".")
        return len(whole.lstrip("0")), len(fraction)
    type_ = type_of_part(node)
    if type_ is None or (declared := digits_of(type_)) is None:
        return None
    width, scale = digits(node) or declared
    if scale > declared[1]:  # it is rounded
        width, scale = declared
    return width - scale, scale


def narrow_digits(node: exp.Expr) -> tuple[int, int] | None:
    """Return the digits where no product is made wider, so that more than 64 bits raise; also for CASE and COALESCE."""
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
