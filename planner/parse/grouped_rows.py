"""Groups by the rows of a set-returning function: `SELECT unnest(a) AS x, count(*) … GROUP BY x` reads it in FROM.

PostgreSQL computes such a function before the groups (documentation 7.2.3 and 38.5.9), so the rows are those of a join.
A function that no group is made of is computed for each group.
"""

from __future__ import annotations

from sqlglot import exp

from sparkwave.planner.parse.set_returning import ROW_FUNCTIONS

_TABLE, _COLUMN = "_grouped_rows", "_row"


def with_grouped_rows(tree: exp.Expr) -> exp.Expr:
    """Return the tree, changed in place; a SELECT with several such functions, whose rows go side by side, stays."""
    for select in tree.find_all(exp.Select):
        if select.args.get("group") is not None:
            _group_rows(select)
    return tree


def _group_rows(select: exp.Select) -> None:
    calls = [
        call
        for item in select.expressions
        for call in item.find_all(*ROW_FUNCTIONS)
        if call.find_ancestor(exp.Select) is select and call.find_ancestor(exp.AggFunc, exp.Select) is select
    ]
    if len(calls) != 1 or not _is_grouped(select, calls[0]):
        return
    [call] = calls
    if call.parent is select:
        call.replace(exp.alias_(call.copy(), _name(call)))
    parts = [*select.expressions, *map(select.args.get, ("group", "having", "order"))]
    found = [place for part in parts if part is not None for place in part.find_all(type(call))]
    for place in found:
        if place == call:
            place.replace(exp.column(_COLUMN, _TABLE))
    named = exp.TableAlias(this=exp.to_identifier(_TABLE), columns=[exp.to_identifier(_COLUMN)])
    rows: exp.Expr = exp.Table(this=call.copy(), alias=named)
    if isinstance(call, exp.Explode):
        rows = exp.Unnest(expressions=[call.this.copy()], alias=named, offset=False)
        rows.meta.update(call.meta)
    if select.args.get("from_") is None:
        select.set("from_", exp.From(this=rows))
    else:
        select.append("joins", exp.Join(this=rows))


def _name(call: exp.Expr) -> str:
    return call.meta.get("name") or ("unnest" if isinstance(call, exp.Explode) else "generate_series")


def _is_grouped(select: exp.Select, call: exp.Expr) -> bool:
    """Return whether the groups are made of the output of a call, or of what is computed from it."""
    place, item = next(
        (place, item)
        for place, item in enumerate(select.expressions, start=1)
        if any(part is call for part in item.walk())
    )
    names = (str(place), (item.alias or _name(call)).lower())
    return any(
        part == call or (isinstance(part, exp.Column | exp.Literal) and part.name.lower() in names)
        for part in select.args["group"].walk()
    )
