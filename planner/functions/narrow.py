"""Sums of numerics in 64-bit arithmetic, which takes DuckDB a quarter of the time of 128 bits.

By their declared types results would not fit: numeric(15,2) times numeric(15,2) has up to 30 digits. The actual values
nearly always fit. So the summed expressions are computed in 64 bits, where DuckDB raises for longer values; then the
caller runs the unchanged query.
"""

from __future__ import annotations

from collections.abc import Iterator

from sqlglot import exp

from sparkwave.catalog.types import DEFAULT_NUMERIC
from sparkwave.planner.functions.digits import INT64_DIGITS, NARROW, WIDENING, chosen, narrow_digits
from sparkwave.planner.functions.safe import AROUND_CALL
from sparkwave.planner.functions.typed import sql_type

# Parts of a SELECT that only computes columns from those below.
_PLAIN = {"expressions", "from_", "joins", "where"}


def narrow_sums(query: exp.Expr) -> exp.Expr:
    """Return a copy that returns the same rows or raises.

    Only columns that nothing but sums and counts read get another type, with the same values.
    """
    query = query.copy()
    for outer in list(query.find_all(exp.Select)):
        from_ = outer.args.get("from_")
        inner = from_.this.this if from_ is not None and isinstance(from_.this, exp.Subquery) else None
        if isinstance(inner, exp.Select) and {key for key, value in inner.args.items() if value} <= _PLAIN:
            _narrow_read(outer, inner)
    return query


def narrow_totals(query: exp.Expr) -> exp.Expr | None:
    """Return a copy of a client's query, spelled for DuckDB, that returns the same rows or raises before the first.

    None if its sums are in 64 bits already.
    """
    if not _widenings(query):
        return None
    query = query.copy()
    for cast in _widenings(query):
        cast.replace(cast.this)
    return query


def _widenings(query: exp.Expr) -> list[exp.Cast]:
    """Return the casts to 128 bits in a query's own sums: it has no row before it has added all."""
    if not isinstance(query, exp.Select):
        return []
    totals = [total for item in query.selects for total in item.find_all(exp.Sum)]
    totals = [t for t in totals if t.parent_select is query and not isinstance(t.parent, exp.Window)]
    return [cast for total in totals for cast in total.find_all(exp.Cast) if cast.meta.get(WIDENING)]


def _narrow_read(outer: exp.Select, inner: exp.Select) -> None:
    read: dict[str, list[exp.Column]] = {}
    for part in outer.iter_expressions():
        if not isinstance(part, exp.From):
            for column in part.find_all(exp.Column):
                read.setdefault(column.name, []).append(column)
    for item in inner.selects:
        columns = read.get(item.alias_or_name, [])
        sums = [total for column in columns if (total := _sum_of(column)) is not None]
        counts = [column for column in columns if isinstance(column.parent, exp.Count)]
        # Where only counts read it, DuckDB might not compute it, so that it would not raise.
        if sums and len(sums) + len(counts) == len(columns):
            _narrow_item(item, sums)


def _sum_of(column: exp.Column) -> exp.Sum | None:
    """Return the sum whose argument is a column, unchanged or cast to numeric without a scale; else None."""
    around = column.parent if _is_wide(column.parent) else column
    total = around.parent if around is not None else None
    return total if isinstance(total, exp.Sum) and not isinstance(total.parent, AROUND_CALL) else None


def _is_wide(node: exp.Expr | None) -> bool:
    if not isinstance(node, exp.Cast) or isinstance(node, exp.TryCast):
        return False
    type_ = sql_type(node.to)
    return (
        type_ is not None and type_.name == "numeric" and not type_.dimensions and type_.digits[0] == DEFAULT_NUMERIC[0]
    )


def _narrow_item(item: exp.Expr, sums: list[exp.Sum]) -> None:
    """Remove the cast of an item, which is cast when it is summed."""
    cast = item.this
    if not isinstance(item, exp.Alias) or not _is_wide(cast):
        return
    known = narrow_digits(cast.this)
    if known is None or known[0] > INT64_DIGITS or known[1] > DEFAULT_NUMERIC[1]:
        return
    for product in _products(cast.this):
        product.meta[NARROW] = True
    for total in sums:
        column = total.find(exp.Column)
        assert column is not None
        total.replace(exp.cast(exp.Sum(this=column.copy()), cast.to.copy()))
    item.set("this", cast.this)


def _products(value: exp.Expr) -> Iterator[exp.Mul]:
    """Yield the products in a value."""
    if isinstance(value, exp.Mul):
        yield value
    values = chosen(value)
    is_arithmetic = isinstance(value, exp.Paren | exp.Neg | exp.Add | exp.Sub | exp.Mul)
    for part in values if values is not None else value.iter_expressions() if is_arithmetic else ():
        yield from _products(part)
