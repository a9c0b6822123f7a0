"""The columns of VALUES are column1, column2, …; DuckDB calls them col0, col1, …"""

from __future__ import annotations

from sqlglot import exp

from sparkwave.planner.parse.trees import query_of

# Clauses of VALUES that become those of the SELECT in its place.
_CLAUSES = ("order", "limit", "offset", "with_")


def named_query(tree: exp.Expr) -> exp.Expr:
    """Return a query that may be VALUES as one with PostgreSQL's names."""
    return _query(tree.copy(), None) if isinstance(tree, exp.Values) and _has_rows(tree) else tree


def name_values(tree: exp.Expr) -> None:
    """Give VALUES within a statement PostgreSQL's names, in place; those of INSERT have the names of its columns."""
    for values in list(tree.find_all(exp.Values)):
        parent = values.parent
        if not _has_rows(values):
            continue
        if isinstance(parent, exp.From | exp.Join):
            _complete(values)
        elif isinstance(parent, exp.SetOperation | exp.Subquery | exp.CTE):
            _query(values, parent)


def _has_rows(values: exp.Values) -> bool:
    return bool(values.expressions) and isinstance(values.expressions[0], exp.Tuple)


def _complete(values: exp.Values) -> None:
    alias = values.args.get("alias")
    if isinstance(alias, exp.TableAlias):
        width = len(values.expressions[0].expressions)
        more = (exp.to_identifier(f"column{number + 1}") for number in range(len(alias.columns), width))
        alias.set("columns", [*alias.columns, *more])


def _query(values: exp.Values, parent: exp.Expr | None) -> exp.Expr:
    clauses = {name: values.args[name] for name in _CLAUSES if values.args.get(name) is not None}
    bare = values.copy() if parent is not None else values
    for name in clauses:
        bare.set(name, None)
    made = query_of(bare)
    for name, clause in clauses.items():
        made.set(name, clause)
    if parent is not None:
        values.replace(made)
    return made
