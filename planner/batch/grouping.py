"""GROUP BY in a form for DuckDB, which lacks GROUP BY DISTINCT and ALL, and makes one group of several empty sets."""

from __future__ import annotations

from sqlglot import exp

from sparkwave.planner.build.aggregate import grouping_sets


def expand_grouping(tree: exp.Expr) -> exp.Expr:
    """Return the tree, changed in place, with GROUP BY DISTINCT and several empty grouping sets in DuckDB's form."""
    for select in list(tree.find_all(exp.Select)):
        group = select.args.get("group")
        if group is None or not group.expressions:
            continue
        is_distinct = group.args.get("all") is False
        sets = grouping_sets(select)
        group.set("all", None)
        if len(sets) > 1 and not any(sets):
            _keep_apart(select, group, len(sets))
        elif is_distinct and len(sets) > 1:
            group.set("expressions", [_sets_of(sets)])
    return tree


def _sets_of(sets: list[list[exp.Expr]]) -> exp.GroupingSets:
    made = (exp.Tuple(expressions=[key.copy() for key in keys]) for keys in sets)
    return exp.GroupingSets(expressions=list(made))


def _keep_apart(select: exp.Select, group: exp.Group, number: int) -> None:
    """Let DuckDB keep each of several empty sets, by one further set of a constant, whose groups are left out."""
    constant = exp.cast(exp.null(), "boolean")
    group.set("expressions", [_sets_of([*[[] for _ in range(number)], [constant]])])
    having = select.args.get("having")
    is_empty = exp.EQ(this=exp.Grouping(expressions=[constant.copy()]), expression=exp.Literal.number(1))
    select.set("having", exp.Having(this=exp.and_(is_empty, having.this) if having is not None else is_empty))
