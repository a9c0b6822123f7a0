"""avg(), sum() and sqrt() in clients' statements: an average of integers and numerics comes from the sum and the count.

DuckDB's avg() is of double precision, its sum() of integers has 128 bits and that of reals 64, and sqrt() and the like
know no numerics. So a statement with one of them or a product, or that reads an avg(), is typed. The types of numerics
with many digits after the point, of arithmetic with numerics, and of expressions with them are noted on the statement's
own tree, where `duckdb_spelling` reads them, because DuckDB would keep fewer digits.
"""

from __future__ import annotations

from sqlglot import exp

from sparkwave.catalog.types import BIGINT, DEFAULT_NUMERIC, NUMERIC, QUOTIENT, REAL, Type
from sparkwave.planner.batch.typer import Typer, types_in
from sparkwave.planner.functions.aggregates import (
    SPREADS,
    argument,
    average_type,
    sum_type,
    whole_call,
)
from sparkwave.planner.functions.digits import has_many_places, has_most_digits
from sparkwave.planner.functions.operators import as_call
from sparkwave.planner.functions.result_types import Known
from sparkwave.planner.functions.scalar_functions import REAL_FUNCTIONS, has_varying_places
from sparkwave.planner.functions.sums import is_summed, of_sums, sums_of, with_numeric_spreads
from sparkwave.planner.functions.typed import data_type
from sparkwave.planner.parse.trees import selects_of

_Types = dict[int, Known]  # by the ids of nodes


def with_averages(tree: exp.Expr, typed: Typer, has_places: bool) -> exp.Expr:
    """Replace the averages of an untyped tree, changed in place.

    `has_places` tells whether it may have other numerics with more than ten digits after the point.
    """
    nodes = list(tree.walk())
    if not has_places and not any(map(_is_exact, nodes)):
        return tree
    types = types_in(tree, typed)
    for node in nodes:
        type_ = _type(node, types)
        if type_ is None or type_.name != "numeric":
            continue
        if has_many_places(type_) or has_most_digits(type_) or isinstance(node, _ARITHMETIC) or _rounds(node):
            _note(node, types)
    for node in nodes:
        if isinstance(node, exp.SetOperation) and not isinstance(node.parent, exp.SetOperation):
            _cast_outputs([select.selects for select in selects_of(node)], types)
        elif isinstance(node, exp.In) and isinstance(query := node.args.get("query"), exp.Expr):
            _cast_outputs([[node.this], *(select.selects for select in selects_of(query))], types)
    for node in reversed(nodes):
        if isinstance(node, exp.Avg) or is_summed(node, _argument_type(node, types)):
            _replace(node, types)
        elif isinstance(node, exp.Sum):
            _cast_sum(node, types)
    with_numeric_spreads(tree, lambda node: _type(node, types))
    return tree


_ARITHMETIC = (exp.Add, exp.Sub, exp.Mul, exp.Mod)


def _is_exact(node: exp.Expr) -> bool:
    if isinstance(node, (exp.Avg, exp.Sum, exp.Div, exp.Mul, exp.Mod, *SPREADS)):
        return True
    call = as_call(node)
    return call is not None and (call[0] in REAL_FUNCTIONS or has_varying_places(*call))


def _rounds(node: exp.Expr) -> bool:
    """Return whether a node rounds to a number of places that differs by row."""
    call = as_call(node)
    return call is not None and has_varying_places(*call)


def _cast_sum(call: exp.Sum, types: _Types) -> None:
    """Cast a sum to bigint or real where it is one."""
    type_ = _type(argument(call), types)
    total = sum_type(type_) if type_ is not None and type_.is_numeric else None
    if total in (BIGINT, REAL):
        whole, cast = whole_call(call), exp.cast(exp.null(), data_type(total))
        whole.replace(cast)
        cast.set("this", whole)


def _type(node: exp.Expr, types: _Types) -> Known:
    return types.get(id(node))


def _note(node: exp.Expr, types: _Types) -> None:
    """Note the types of a node, of its parent, and of the expressions beside it."""
    if isinstance(node, exp.Cast) and _type(node, types) == QUOTIENT:
        node.set("to", data_type(QUOTIENT))
    parts, parent = [node], node.parent
    if isinstance(parent, exp.If) and isinstance(parent.parent, exp.Case):
        parent = parent.parent
    if isinstance(parent, exp.Condition):
        parts += [parent, *parent.iter_expressions()]
        parts += [branch.args["true"] for branch in parent.args["ifs"]] if isinstance(parent, exp.Case) else []
    if isinstance(node, (exp.Div, *_ARITHMETIC)) or _rounds(node):
        parts += node.iter_expressions()
    for part in parts:
        type_ = _type(part, types)
        if type_ is not None:
            part.type = data_type(type_)


def _cast_outputs(rows: list[list[exp.Expr]], types: _Types) -> None:
    """Cast the numerics that share an output column with others, of which one has many digits, to one type."""
    if any(item.is_star for row in rows for item in row):
        return
    for items in zip(*rows, strict=False):
        known = [_type(item.unalias(), types) for item in items]
        wanted = _common(known)
        for item, type_ in zip(items, known, strict=True):
            if wanted is not None and type_ is not None and type_.name == "numeric" and type_ != wanted:
                value, cast = item.unalias(), exp.cast(exp.null(), data_type(wanted))
                value.replace(cast)
                cast.set("this", value)  # not a copy: the averages in it are still to be replaced


def _common(known: list[Known]) -> Known:
    """Return the type of numerics that have one output column, for which DuckDB would keep fewer digits; else None."""
    numerics = {type_ for type_ in known if type_ is not None and type_.name == "numeric" and not type_.dimensions}
    if QUOTIENT in numerics or len(numerics) < 2 or not any(map(has_most_digits, numerics)):
        return QUOTIENT if QUOTIENT in numerics else None
    return Type("numeric", DEFAULT_NUMERIC[0], max(type_.digits[1] for type_ in numerics))


def _argument_type(call: exp.Expr, types: _Types) -> Known:
    return _type(argument(call), types) if isinstance(call, (exp.Sum, exp.Avg, *SPREADS)) else None


def _replace(call: exp.Expr, types: _Types) -> None:
    """Compute a call from sums, an average of unknown type by DuckDB's type of the sum."""
    whole = whole_call(call)
    type_ = _type(argument(call), types)
    if type_ is not None and average_type(type_) != QUOTIENT and not is_summed(call, type_):
        return
    if type_ == NUMERIC and not isinstance(argument(call), exp.Column):
        argument(call).replace(exp.cast(argument(call).copy(), data_type(NUMERIC)))  # as in a view
    sums = sums_of(whole, type_)
    made = of_sums(whole, sums, type_) if type_ is not None else exp.Anonymous(this="_avg", expressions=sums)
    types[id(made)] = types.get(id(call))
    whole.replace(made)
