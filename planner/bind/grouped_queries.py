"""Scalar subqueries that are grouped by their place in the select list, as in `SELECT (SELECT 1), … GROUP BY 1`."""

from __future__ import annotations

from sqlglot import exp


def with_grouped_queries(tree: exp.Expr) -> None:
    """Put parentheses around such subqueries, in place: sqlglot (30.30) takes no bare one for an output."""
    for select in tree.find_all(exp.Select):
        group = select.args.get("group")
        places = [key for key in group.find_all(exp.Literal) if key.is_int] if group is not None else []
        for place in {int(key.name) - 1 for key in places}:
            item = select.expressions[place] if 0 <= place < len(select.expressions) else None
            if isinstance(item, exp.Subquery):
                inner, alias = item.copy(), item.alias
                inner.set("alias", None)
                made: exp.Expr = exp.Paren(this=inner)
                item.replace(exp.alias_(made, alias, quoted=True) if alias else made)
