"""Finds the outputs of a query that are plain columns of relations, as PostgreSQL's RowDescription tells clients.

Of other outputs it finds the type where the engine does not tell it: varchar, text and name are one type there.

A column keeps its origin through joins, subqueries and CTEs; that of a view is the view's own. Other operations, such
as set operations, lose the origin (PostgreSQL: markTargetListOrigins in parse_target.c).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from sqlglot import exp

from sparkwave.catalog.errors import Error
from sparkwave.catalog.model import Column, Relation
from sparkwave.catalog.modifiers import TO_MODIFIER
from sparkwave.catalog.types import CHAR, NAME, Type
from sparkwave.planner.functions.array_aggregates import argument
from sparkwave.planner.parse.from_items import from_items
from sparkwave.planner.parse.identifiers import folded
from sparkwave.planner.parse.time_types import WRITTEN, modifier_of
from sparkwave.planner.parse.trees import alias_of, column_type


@dataclass(frozen=True)
class Origin:
    """A column of a relation, numbered from 1. With `relation_id` 0 there is none, and only the type is known.

    `modifier` is PostgreSQL's `atttypmod`, where the type itself does not tell it: the length of a varchar, or the
    digits of a time's seconds.
    """

    relation_id: int
    number: int
    type: Type
    modifier: int = -1

    @property
    def typmod(self) -> int:
        """PostgreSQL's `atttypmod`, -1 without."""
        return self.modifier if self.modifier >= 0 else self.type.typmod

    @property
    def alone(self) -> Origin | None:
        """What the engine does not tell of the type, without the column it comes from."""
        is_told = self.type.is_text or self.type.named is not None or self.typmod >= 0
        return Origin(0, 0, self.type, self.modifier) if is_told else None

    @property
    def unmodified(self) -> Origin | None:
        """The same origin without the length or the digits of its type."""
        if self.type.typmod >= 0:
            return None
        return replace(self, modifier=-1).alone


# The columns of a source of rows: each name with its origin, None for an expression.
_Columns = list[tuple[str, Origin | None]]


class _Merged(list[tuple[str, Origin | None]]):
    """The columns of a source in a join that merges columns, so that `*` has them in another order."""


# Functions that return a value of their first argument's type.
_KEEPING = (exp.FirstValue, exp.LastValue, exp.NthValue, exp.Lag, exp.Lead, exp.AnyValue)
# Expressions of the type that their values have together, which is the first one's that is no constant.
_CHOOSING = (exp.Coalesce, exp.Greatest, exp.Least, exp.Case)
_NAMES = (exp.CurrentUser, exp.SessionUser, exp.CurrentDatabase, exp.CurrentCatalog, exp.CurrentSchema)
_TYPES_OF_THE_CATALOG = {"name": NAME, '"char"': CHAR}


class _Unknown(Exception):
    """The columns cannot be told."""


@dataclass(frozen=True)
class _Names:
    """The meaning of names in a query: CTEs, and relations by the id of their table's node."""

    ctes: Mapping[str, _Columns]
    relations: Mapping[int, Relation]
    system: Callable[[exp.Table], Mapping[str, Type]]


_NOTHING = _Names({}, {}, lambda table: {})
# The sources of FROM by their aliases; None for one whose columns cannot be told.
_Sources = list[tuple[str, _Columns | None]]


def origins(
    tree: exp.Expr, relations: Mapping[int, Relation], system: Callable[[exp.Table], Mapping[str, Type]]
) -> tuple[Origin | None, ...]:
    """Return the origin of each output, nothing where outputs cannot be counted.

    `relations` are by the id of table nodes; `system` returns the columns of a system relation, as clients see them.
    """
    try:
        return tuple(origin for _, origin in _outputs(tree, _Names({}, relations, system)))
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
        names = replace(names, ctes={**names.ctes, folded(cte.args["alias"].this): columns})
    if isinstance(query, exp.SetOperation):
        return _of_both(query, names)
    if not isinstance(query, exp.Select):
        raise _Unknown
    sources = list(_sources(query, names))
    found: _Columns = []
    for item in query.expressions:
        found += _item(item, sources, names)
    return found


def _of_both(query: exp.SetOperation, names: _Names) -> _Columns:
    """Return the outputs of a set operation, which have the types of the left side, or of the right for constants."""
    left, items = _outputs(query.this, names), query.left.selects
    is_counted = len(items) == len(left) and not any(item.is_star for item in items)
    has_told = any(map(_is_constant, items)) or any(origin is not None and origin.typmod >= 0 for _, origin in left)
    right = _outputs(query.expression, names) if is_counted and has_told else []
    found: _Columns = []
    for number, (name, origin) in enumerate(left):
        other = right[number][1] if number < len(right) else None
        if is_counted and number < len(right) and _is_constant(items[number]):
            found.append((name, other.unmodified if other is not None else None))
        else:
            found.append((name, _shared([origin, other])))
    return found


def _shared(origins: Sequence[Origin | None]) -> Origin | None:
    """Return what is told of the type of values of which the first tells the type: with its digits if all have them."""
    first = origins[0]
    if first is None:
        return None
    told = [(origin.type, origin.typmod) if origin is not None else None for origin in origins]
    return first.alone if all(each == told[0] for each in told) else first.unmodified


def _is_constant(item: exp.Expr) -> bool:
    """Return whether an expression has the type that its place gives it."""
    value = item.unalias()
    return isinstance(value, exp.Null) or (isinstance(value, exp.Literal) and value.is_string)


def _type_alone(origin: Origin | None) -> Origin | None:
    return origin.alone if origin is not None else None


def _sources(select: exp.Select, names: _Names) -> Iterator[tuple[str, _Columns | None]]:
    """Yield the sources of FROM by their aliases; None for one whose columns cannot be told."""
    joins = select.args.get("joins") or []
    merges = any(join.args.get("using") or join.args.get("method") for join in joins)
    for source in from_items(select):
        columns = _source(source, names)
        more = source.args.get("joins") or source.args.get("laterals")
        if merges and columns is not None:
            columns = _Merged((name, _type_alone(origin)) for name, origin in columns)
        yield alias_of(source), None if more else columns


def _source(source: exp.Expr, names: _Names) -> _Columns | None:
    alias = source.args.get("alias")
    if isinstance(source, exp.Subquery):
        try:
            return _renamed(_outputs(source.this, names), alias)
        except _Unknown:
            return None
    if isinstance(source, exp.Values):
        return _renamed([("", _of_column(column)) for column in zip(*_rows(source), strict=False)], alias)
    if not isinstance(source, exp.Table) or not isinstance(source.this, exp.Identifier):
        return None
    relation = names.relations.get(id(source))
    if relation is not None:
        pairs = enumerate(relation.visible, start=1)
        return _renamed([(c.name, Origin(relation.id, n, c.type, _length(relation, c))) for n, c in pairs], alias)
    columns = names.ctes.get(folded(source.this)) if source.args.get("db") is None else None
    if columns is None:
        columns = [(name, Origin(0, 0, type_)) for name, type_ in names.system(source).items()]
    return _renamed(columns, alias) if columns else None


def _length(relation: Relation, column: Column) -> int:
    """Return the modifier of a column with a longest length, -1 for others."""
    length = relation.length_of(column)
    return length + 4 if length is not None else -1


def _rows(values: exp.Values) -> list[list[exp.Expr]]:
    return [row.expressions for row in values.expressions if isinstance(row, exp.Tuple)]


def _of_column(values: Sequence[exp.Expr]) -> Origin | None:
    """Return the type of a column of VALUES."""
    return _type_of(next((value for value in values if not _is_constant(value)), values[0]), [], _NOTHING)


def _renamed(columns: _Columns, alias: exp.Expr | None) -> _Columns:
    given = [folded(name) for name in alias.columns] if isinstance(alias, exp.TableAlias) else []
    return [(given[n] if n < len(given) else name, origin) for n, (name, origin) in enumerate(columns)]


def _item(item: exp.Expr, sources: _Sources, names: _Names) -> _Columns:
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
        return [(folded(alias) if alias is not None else "", _type_of(value, sources, names))]
    return [(folded(alias if alias is not None else value.this), _of_name(value, sources))]


def _of_name(value: exp.Column, sources: _Sources) -> Origin | None:
    """Return the origin of a column that is read."""
    table = folded(value.args["table"]) if value.args.get("table") is not None else None
    for source, columns in sources:
        if table is not None and source != table:
            continue
        origin = next((origin for own, origin in columns or [] if own == folded(value.this)), None)
        if origin is not None:
            return origin
    return None


def _type_of(value: exp.Expr, sources: _Sources, names: _Names) -> Origin | None:
    """Return the type of an expression, as far as it may be another one than the engine tells."""
    match value:
        case exp.Column():
            return _type_alone(_of_name(value, sources))
        case exp.Window() | exp.IgnoreNulls() | exp.RespectNulls():
            return _type_of(value.this, sources, names)
        case exp.Subquery():
            try:
                outputs = _outputs(value.this, names)
            except _Unknown:
                return None
            return _type_alone(outputs[0][1]) if len(outputs) == 1 else None
        case exp.ArrayAgg():
            return _array_of(_type_of(argument(value), sources, names))
        case exp.Array(expressions=[exp.Select() as query]):
            return _array_of(_type_of(exp.Subquery(this=query), sources, names))
        case exp.Array(expressions=[exp.Column() as first, *_]):
            return _array_of(_type_of(first, sources, names))
        case exp.Cast() | exp.Array():
            return _cast(value)
        case exp.Anonymous() if value.name == TO_MODIFIER:
            return _cast(value)
    if isinstance(value, _NAMES) or (isinstance(value, exp.Anonymous) and value.name.lower() == "pg_get_userbyid"):
        return Origin(0, 0, NAME)
    if isinstance(value, exp.Collate | exp.Paren):
        return _type_of(value.this, sources, names)
    if isinstance(value, _KEEPING):
        kept = _type_of(value.this, sources, names)
        return kept.unmodified if kept is not None else None
    if isinstance(value, _CHOOSING):
        choices = _choices(value)
        found = [_type_of(each, sources, names) for each in choices if not _is_constant(each)]
        is_null = isinstance(value, exp.Case) and value.args.get("default") is None
        if is_null or len(found) < len(choices):  # constants have no length
            return found[0].unmodified if found and found[0] is not None else None
        return _shared(found)
    return None


def _array_of(item: Origin | None) -> Origin | None:
    """Return the type of an array of such values, if it is one of the catalog's or a user's."""
    if item is None or item.type.named is None:
        return None
    return Origin(0, 0, replace(item.type, dimensions=item.type.dimensions + 1))


def _choices(value: exp.Expr) -> list[exp.Expr]:
    """Return the values of which an expression has one, in the order in which their types count."""
    if not isinstance(value, exp.Case):
        return [value.this, *value.expressions]
    default = value.args.get("default")
    results = [branch.args["true"] for branch in value.args["ifs"]]
    return results if default is None else [default, *results]


def _cast(value: exp.Expr) -> Origin | None:
    """Return the type of a cast: its precision, or a user's type; also for an array that begins with a cast."""
    if isinstance(value, exp.Array) and value.expressions:
        return _array_of(_cast(value.expressions[0]))
    if isinstance(value, exp.Anonymous) and value.name == TO_MODIFIER:
        value = value.expressions[0]
    if not isinstance(value, exp.Cast):
        return None
    of_the_catalog = _TYPES_OF_THE_CATALOG.get(value.to.sql(dialect="postgres").lower())
    if of_the_catalog is not None:
        return Origin(0, 0, of_the_catalog)
    try:
        type_ = column_type(value.to)
    except Error:
        return None
    return Origin(0, 0, type_, _modifier(value.meta.get(WRITTEN, value.to))).alone


def _modifier(kind: exp.Expr) -> int:
    """Return the modifier of a written type, or of an array's elements: a length, or the digits of a time's seconds."""
    while kind.this == exp.DType.ARRAY and kind.expressions:
        kind = kind.expressions[0]
    if (modifier := modifier_of(kind)) is not None:
        return modifier
    given = [part.this for part in kind.expressions if isinstance(part, exp.DataTypeParam)]
    if len(given) != 1 or not given[0].is_int:
        return -1
    return int(given[0].name) + 4 if kind.this in exp.DataType.TEXT_TYPES else -1


def _all(sources: list[_Columns | None]) -> _Columns:
    found: _Columns = []
    for columns in sources:
        if columns is None or isinstance(columns, _Merged):
            raise _Unknown
        found += columns
    if not sources:
        raise _Unknown
    return found
