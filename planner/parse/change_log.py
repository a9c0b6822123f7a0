"""The query that `WITH c AS changelog FROM t` is read as."""

from __future__ import annotations

from sqlglot import exp

from sparkwave.planner.parse.from_items import from_items

# The outputs beside the table's columns, and the functions that stand for them.
CODE, TIME = "changelog_op", "_changelog_row_id"
_TYPES = {CODE: "smallint", TIME: "bigint"}


def query_of_changes(table: exp.Expr) -> exp.Select:
    """Return the query of a table's columns and of the code and time of each change."""
    items = [exp.alias_(_call(name, type_), name, quoted=True) for name, type_ in _TYPES.items()]
    return exp.select("*", *items).from_(table)


def _call(name: str, type_: str) -> exp.Cast:
    return exp.cast(exp.Anonymous(this=f"_{name}", expressions=[]), type_)


def calls_in(select: exp.Select) -> list[tuple[str, exp.Expr]]:
    """Return the calls of the select list that stand for a change's code and time, each with its output's name."""
    found = ((name, item.unalias()) for item in select.selects for name in _TYPES)
    return [(name, call) for name, call in found if _is_call(call, name)]


def _is_call(call: exp.Expr, name: str) -> bool:
    return isinstance(call, exp.Cast) and isinstance(call.this, exp.Anonymous) and call.this.name == f"_{name}"


def hide_times(tree: exp.Expr) -> exp.Expr:
    """Let `*` leave out the time of changes, in the tree itself."""
    logs = {
        cte.alias.lower() for cte in tree.find_all(exp.CTE) if isinstance(cte.this, exp.Select) and calls_in(cte.this)
    }
    if not logs:
        return tree
    for select in tree.find_all(exp.Select):
        tables = [item for item in from_items(select) if isinstance(item, exp.Table)]
        names = {table.alias_or_name for table in tables if table.name.lower() in logs}
        for item in select.expressions if names else ():
            star = item.this if isinstance(item, exp.Column) else item
            if isinstance(star, exp.Star) and (star is item or item.table in names):
                left_out = star.args.get("except_") or []
                star.set("except_", [*left_out, exp.to_identifier(TIME, quoted=True)])
    return tree
