"""Finds the outputs of a query that are plain columns of relations, as PostgreSQL's RowDescription tells clients.

A column keeps its origin through joins, subqueries and CTEs; that of a view is the view's own. Other operations, such
as set operations, lose the origin (PostgreSQL: markTargetListOrigins in parse_target.c).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from sqlglot import exp

from sparkwave.catalog.errors import Error
from sparkwave.catalog.model import Relation
from sparkwave.catalog.types import CHAR, Type
from sparkwave.planner.parse.from_items import from_items
from sparkwave.planner.parse.trees import alias_of, column_type, folded


@dataclass(frozen=True)
class Origin:
    """A column of a relation, numbered from 1. With `relation_id` 0 there is none, and the type is that of a cast."""

    relation_id: int
    number: int
    type: Type


# The columns of a source of rows: each name with its origin, None for an expression.
_Columns = list[tuple[str, Origin | None]]


class _Some(list[tuple[str, Origin | None]]):
    """Some of the columns of a source, whose other columns are unknown."""


_LETTER = Origin(0, 0, CHAR)
# Catalog columns of PostgreSQL's type "char".
_LETTERS = {
    "pg_type": ("typtype", "typcategory", "typdelim", "typalign", "typstorage"),
    "pg_class": ("relkind", "relpersistence", "relreplident"),
    "pg_attribute": ("attalign", "attstorage", "attcompression", "attidentity", "attgenerated"),
    "pg_constraint": ("contype", "confupdtype", "confdeltype", "confmatchtype"),
    "pg_proc": ("prokind", "provolatile", "proparallel"),
}


class _Unknown(Exception):
    """The columns cannot be told."""


@dataclass(frozen=True)
class _Names:
    """The meaning of names in a query: CTEs, and relations by the id of their table's node."""

    ctes: Mapping[str, _Columns]
    relations: Mapping[int, Relation]


def origins(tree: exp.Expr, relations: Mapping[int, Relation]) -> tuple[Origin | None, ...]:
    """Return the origin of each output, nothing where outputs cannot be counted.

    `relations` are by the id of table nodes.
    """
    try:
        return tuple(origin for _, origin in _outputs(tree, _Names({}, relations)))
    except _Unknown:
        return ()


def _outputs(query: exp.Expr, names: _Names) -> _Columns:
    query = query.unnest() if isinstance(query, exp.Subquery) else query
    with_ = query.args.get("with_")
    for cte in with_.expressions if with_ is not None else ():
        try:
            columns = _renamed(_outputs(cte.this, names), cte.args["alias"])
        except _Unknown:
            columns = []
        names = _Names({**names.ctes, folded(cte.args["alias"].this): columns}, names.relations)
    if isinstance(query, exp.SetOperation):
        return [(name, origin if origin == _LETTER else None) for name, origin in _outputs(query.this, names)]
    if not isinstance(query, exp.Select):
        raise _Unknown
    sources = list(_sources(query, names))
    found: _Columns = []
    for item in query.expressions:
        found += _item(item, sources)
    return found


def _sources(select: exp.Select, names: _Names) -> Iterator[tuple[str, _Columns | None]]:
    """Yield the sources of FROM by their aliases; None for one whose columns cannot be told."""
    joins = select.args.get("joins") or []
    merges = any(join.args.get("using") or join.args.get("method") for join in joins)
    for source in from_items(select):
        columns = _source(source, names)
        more = source.args.get("joins") or source.args.get("laterals")
        yield alias_of(source), None if merges or more else columns


def _source(source: exp.Expr, names: _Names) -> _Columns | None:
    alias = source.args.get("alias")
    if isinstance(source, exp.Subquery):
        try:
            return _renamed(_outputs(source.this, names), alias)
        except _Unknown:
            return None
    if not isinstance(source, exp.Table) or not isinstance(source.this, exp.Identifier):
        return None
    relation = names.relations.get(id(source))
    if relation is not None:
        pairs = enumerate(relation.visible, start=1)
        return _renamed([(c.name, Origin(relation.id, n, c.type)) for n, c in pairs], alias)
    columns = names.ctes.get(folded(source.this)) if source.args.get("db") is None else None
    letters = _LETTERS.get(folded(source.this)) if columns is None and source.text("db") in ("", "pg_catalog") else None
    if letters is not None and not (isinstance(alias, exp.TableAlias) and alias.columns):
        return _Some((name, _LETTER) for name in letters)
    return _renamed(columns, alias) if columns else None


def _renamed(columns: _Columns, alias: exp.Expr | None) -> _Columns:
    given = [folded(name) for name in alias.columns] if isinstance(alias, exp.TableAlias) else []
    return [(given[n] if n < len(given) else name, origin) for n, (name, origin) in enumerate(columns)]


def _item(item: exp.Expr, sources: list[tuple[str, _Columns | None]]) -> _Columns:
    """Return the outputs of one item of a select list."""
    value = item.unalias()
    if isinstance(value, exp.Column) and isinstance(value.this, exp.Star):
        return _all([columns for alias, columns in sources if alias == folded(value.args["table"])])
    if isinstance(value, exp.Star):
        if value.args.get("except_") or value.args.get("replace"):
            raise _Unknown
        return _all([columns for _, columns in sources])
    if item.is_star or isinstance(item, exp.Aliases):
        raise _Unknown
    alias = item.args["alias"] if isinstance(item, exp.Alias) else None
    if not isinstance(value, exp.Column):
        return [(folded(alias) if alias is not None else "", _cast(value))]
    name = folded(alias if alias is not None else value.this)
    table = folded(value.args["table"]) if value.args.get("table") is not None else None
    for source, columns in sources:
        if table is not None and source != table:
            continue
        origin = next((origin for own, origin in columns or [] if own == folded(value.this)), None)
        if origin is not None:
            return [(name, origin)]
    return [(name, None)]


def _cast(value: exp.Expr) -> Origin | None:
    """Return the type of a cast: its precision, or a user's type; also for an array that begins with a cast."""
    if isinstance(value, exp.Array) and value.expressions:
        item = _cast(value.expressions[0])
        if item is None or item.type.named is None:
            return None
        return replace(item, type=replace(item.type, dimensions=item.type.dimensions + 1))
    if not isinstance(value, exp.Cast):
        return None
    try:
        type_ = column_type(value.to)
    except Error:
        return None
    return Origin(0, 0, type_) if type_.precision is not None or type_.named is not None else None


def _all(sources: list[_Columns | None]) -> _Columns:
    found: _Columns = []
    for columns in sources:
        if columns is None or isinstance(columns, _Some):
            raise _Unknown
        found += columns
    if not sources:
        raise _Unknown
    return found
