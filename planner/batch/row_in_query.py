"""`(a, b) IN (SELECT …)` with PostgreSQL's NULLs: two rows differ if any field differs, whatever the others are.

DuckDB (1.5.5) returns NULL as soon as any field is NULL, so that NOT IN loses rows.
"""

from __future__ import annotations

from sqlglot import exp


def expand_row_in_query(tree: exp.Expr) -> exp.Expr:
    """Return the tree, changed in place, with EXISTS where false and NULL have different effects."""
    for node in reversed(list(tree.find_all(exp.In))):  # inner ones first, because replaced nodes are copied
        query, left = node.args.get("query"), node.this
        if not isinstance(query, exp.Subquery) or not isinstance(left, exp.Tuple) or _is_filter(node):
            continue
        outer = node.parent
        if isinstance(outer, exp.Not) and _is_filter(outer):
            outer.set("this", _exists(query, left.expressions, may_be=True))
            continue
        found = exp.Case().when(_exists(query, left.expressions, may_be=False), exp.true())
        node.replace(found.when(_exists(query, left.expressions, may_be=True), exp.null()).else_(exp.false()))
    return tree


def _is_filter(node: exp.Expr) -> bool:
    """Return whether a condition keeps only rows for which it is true, so that false and NULL have the same effect."""
    parent = node.parent
    while isinstance(parent, exp.And | exp.Paren):
        parent = parent.parent
    return isinstance(parent, exp.Where | exp.Having)


def _exists(query: exp.Subquery, fields: list[exp.Expr], may_be: bool) -> exp.Expr:
    """Return whether the query has an equal row, or with `may_be` one that may be equal."""
    names = [exp.to_identifier(f"_field_{number}", quoted=True) for number in range(len(fields))]
    alias = exp.TableAlias(this=exp.to_identifier("_rows", quoted=True), columns=names)
    rows = exp.Subquery(this=query.this.copy(), alias=alias)
    equal: list[exp.Expr] = [
        exp.EQ(this=exp.paren(field.copy()), expression=exp.column(name.copy(), "_rows", quoted=True))
        for field, name in zip(fields, names, strict=True)
    ]
    if may_be:
        equal = [exp.not_(exp.Is(this=exp.paren(part), expression=exp.false())) for part in equal]
    return exp.Exists(this=exp.select("1").from_(rows).where(*equal, copy=False))
