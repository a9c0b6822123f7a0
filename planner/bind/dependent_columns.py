"""GROUP BY a table's primary key: the other columns of the table depend on it, and may be read without an aggregate.

They become further keys, which change no group (PostgreSQL: check_functional_grouping in
src/backend/catalog/pg_constraint.c).
"""

from __future__ import annotations

from sqlglot import exp

from sparkwave.catalog.model import Catalog, Relation
from sparkwave.planner.bind.scopes import Scope, find_read
from sparkwave.planner.functions.aggregates import aggregate_calls
from sparkwave.planner.parse.from_items import from_items
from sparkwave.planner.parse.identifiers import folded
from sparkwave.planner.parse.trees import alias_of, is_cte, name_of

_READ = ("expressions", "having", "order")
_Sources = dict[str, Relation | None]


def group_by_dependents(tree: exp.Expr, catalog: Catalog, scope: Scope) -> None:
    """Let the columns that depend on a primary key in GROUP BY be keys, too, in the tree itself."""
    for group in list(tree.find_all(exp.Group)):
        select = group.parent
        if not isinstance(select, exp.Select) or {k for k, v in group.args.items() if v} != {"expressions"}:
            continue
        sources = {alias_of(source): _table(source, catalog, scope) for source in from_items(select)}
        keys = {owned for key in group.expressions if (owned := _owned(_key(key, select), sources)) is not None}
        for alias, table in sources.items():
            if table is None or not table.primary_key or not {(alias, name) for name in table.primary_key} <= keys:
                continue
            for name in _names_read(select, alias, table, sources):
                if (alias, name) not in keys:
                    keys.add((alias, name))
                    group.append(
                        "expressions", exp.column(exp.to_identifier(name, True), exp.to_identifier(alias, True))
                    )


def _table(source: exp.Expr, catalog: Catalog, scope: Scope) -> Relation | None:
    if not isinstance(source, exp.Table) or not isinstance(source.this, exp.Identifier) or is_cte(source):
        return None
    alias = source.args.get("alias")
    relation = find_read(catalog, scope, name_of(source)) if alias is None or not alias.columns else None
    return relation if relation is not None and relation.is_table else None


def _key(key: exp.Expr, select: exp.Select) -> exp.Expr:
    """Return the expression of a key, which may be a position."""
    key = key.unnest()
    if isinstance(key, exp.Literal) and key.is_int and 0 < int(key.name) <= len(select.expressions):
        return select.expressions[int(key.name) - 1].unalias()
    return key


def _owned(column: exp.Expr, sources: _Sources) -> tuple[str, str] | None:
    """Return the alias of a column's table, and the column's name; None where it may be of another source."""
    if not isinstance(column, exp.Column) or not isinstance(column.this, exp.Identifier):
        return None
    name = folded(column.this)
    if column.args.get("table") is not None:
        alias = folded(column.args["table"])
        return (alias, name) if column.args.get("db") is None and alias in sources else None
    if None in sources.values():
        return None
    owners = [alias for alias, table in sources.items() if table is not None and name in _columns(table)]
    return (owners[0], name) if len(owners) == 1 else None


def _columns(table: Relation) -> list[str]:
    return [column.name for column in table.visible]


def _names_read(select: exp.Select, alias: str, table: Relation, sources: _Sources) -> list[str]:
    """Return the columns of a table that outputs, HAVING and ORDER BY read outside of aggregates."""
    parts = [each for name in _READ for each in _listed(select.args.get(name))]
    aggregated = {id(node) for part in parts for call in aggregate_calls(part) for node in call.walk()}
    found: list[str] = []
    for part in parts:
        for column in part.find_all(exp.Column):
            if isinstance(column.this, exp.Star) and folded(column.args["table"]) == alias:
                found += _columns(table)
            owned = _owned(column, sources) if id(column) not in aggregated else None
            if owned is not None and owned[0] == alias and owned[1] in _columns(table):
                found.append(owned[1])
        if isinstance(part, exp.Star) and len(sources) == 1:
            found += _columns(table)
    return found


def _listed(part: object) -> list[exp.Expr]:
    return [each for each in (part if isinstance(part, list) else [part]) if isinstance(each, exp.Expr)]
