"""Replaces RisingWave's session frames: `OVER (PARTITION BY k ORDER BY at SESSION WITH GAP INTERVAL '10 minutes')`.

A session is a run of rows each of which follows the one before within the gap (RisingWave documentation, "Window
functions"). A query with such frames becomes one over its rows with the number of their session, by two more windows.
"""

from __future__ import annotations

from sqlglot import exp

from sparkwave.catalog import errors
from sparkwave.catalog.errors import Error
from sparkwave.planner.parse.calls import GAP
from sparkwave.planner.parse.named_windows import expand_named_windows
from sparkwave.planner.parse.trees import position_of

_WHOLE = {"start": "UNBOUNDED", "start_side": "PRECEDING", "end": "UNBOUNDED", "end_side": "FOLLOWING"}


def expand_sessions(tree: exp.Expr) -> exp.Expr:
    """Return the tree, changed in place.

    Raises Error 42P20 for an ORDER BY that is not of one ascending value. Rows of joins and groups have to be those of
    a subquery (`planner.bind.session_rows`).
    """
    if not has_sessions(tree):
        return tree
    for select in list(expand_named_windows(tree).find_all(exp.Select)):
        windows = windows_of_sessions(select)
        if windows:
            _expand(select, windows)
    return tree


def has_sessions(tree: exp.Expr) -> bool:
    return any(GAP in order.meta for order in tree.find_all(exp.Order))


def windows_of_sessions(select: exp.Select) -> list[exp.Window]:
    """Return a query's own windows with a session frame."""
    return [w for w in select.find_all(exp.Window) if w.parent_select is select and _gap(w) is not None]


def _gap(window: exp.Window) -> exp.Expr | None:
    order = window.args.get("order")
    found: exp.Expr | None = order.meta.get(GAP) if order is not None else None
    return found


def _expand(select: exp.Select, windows: list[exp.Window]) -> None:
    found = select.args.get("from_")
    source = found.this if found is not None else exp.values([(0,)], alias="_rows", columns=["_row"])
    alias = source.alias_or_name or "_rows"
    rows = exp.select("*").from_(source)
    rows.set("where", select.args.get("where"))
    select.set("where", None)
    numbers: dict[str, str] = {}
    for window in windows:
        key = " ".join(part.sql() for part in (*_partition(window), window.args["order"], _length(window)))
        if key not in numbers:
            numbers[key] = f"_session{len(numbers)}"
            rows = _numbered(rows, alias, window, numbers[key])
        window.set("partition_by", [*_partition(window), exp.column(numbers[key], quoted=True)])
        spec = exp.WindowSpec(kind="ROWS", **_WHOLE)
        spec.meta[GAP] = _length(window)
        window.args["order"].meta.pop(GAP)
        window.set("spec", spec)
    for item in select.expressions:
        star = item.this if isinstance(item, exp.Column) else item
        if isinstance(star, exp.Star):
            added = [exp.to_identifier(name, quoted=True) for n in numbers.values() for name in (n, _before(n))]
            star.set("except_", [*(star.args.get("except_") or []), *added])
    select.set("from_", exp.From(this=_as(rows, alias)))


def _numbered(rows: exp.Select, alias: str, window: exp.Window, name: str) -> exp.Select:
    """Return rows with the number of their session: how many have begun since the partition's first row."""
    ordered, *others = window.args["order"].expressions
    if others or ordered.args.get("desc"):
        message = "a session frame needs an ORDER BY of one ascending value"
        raise Error(message, errors.WINDOWING_ERROR, position=position_of(window))
    value = ordered.this

    def over(function: exp.Expr) -> exp.Window:
        partition = [part.copy() for part in _partition(window)]
        return exp.Window(this=function, partition_by=partition, order=exp.Order(expressions=[ordered.copy()]))

    def within(query: exp.Select, added: exp.Window, column: str) -> exp.Select:
        return exp.select("*", exp.alias_(added, column, quoted=True)).from_(_as(query, alias))

    rows = within(rows, over(exp.Lag(this=value.copy())), _before(name))
    end = exp.Add(this=exp.column(_before(name), quoted=True), expression=_length(window).copy())
    begins = exp.Case().when(exp.LT(this=value.copy(), expression=end), exp.Literal.number(0))
    return within(rows, over(exp.Sum(this=begins.else_(exp.Literal.number(1)))), name)


def _as(query: exp.Select, alias: str) -> exp.Subquery:
    return exp.Subquery(this=query, alias=exp.TableAlias(this=exp.to_identifier(alias, quoted=True)))


def _partition(window: exp.Window) -> list[exp.Expr]:
    return window.args.get("partition_by") or []


def _length(window: exp.Window) -> exp.Expr:
    gap = _gap(window)
    assert gap is not None
    return exp.cast(gap, "interval") if gap.is_string else gap


def _before(number: str) -> str:
    """Return the name of the column with the value before, for the column with a session's number."""
    return f"{number}_before"
