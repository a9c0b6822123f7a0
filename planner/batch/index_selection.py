"""Reads indexes instead of their relations, where a query asks for few rows by their key.

An index is read if WHERE compares a prefix of its key with constants, by equality and last perhaps by a range, and if
it has every column that the query uses. A partial index is read if WHERE has its condition, too. Its rows are stored
in the order of its key, so that DuckDB finds the few rows by the statistics of files and row groups.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from sqlglot import exp

from sparkwave.catalog.model import CREATED, Catalog, Relation
from sparkwave.catalog.relation_details import IndexKey
from sparkwave.catalog.types import DATE, INTERVAL, TIME, TIMESTAMP, TIMESTAMPTZ
from sparkwave.planner.functions.aggregates import canonical
from sparkwave.planner.parse.identifiers import folded
from sparkwave.planner.parse.trees import parse_tree
from sparkwave.planner.plan.nodes import conjuncts

# Returns the user's relation that a table of a query names, or None.
Find = Callable[[exp.Table], Relation | None]
# Returns the rows of the given relation, to be read in FROM.
Source = Callable[[Relation], exp.Expr]

_EQUAL = (exp.EQ, exp.In)
_MOMENTS = frozenset(type_.name for type_ in (DATE, INTERVAL, TIME, TIMESTAMP, TIMESTAMPTZ))
_RANGE = (exp.GT, exp.GTE, exp.LT, exp.LTE, exp.Between)


@dataclass(frozen=True)
class _Use:
    """A table of a SELECT. `names` are at least those of its columns that are used there."""

    select: exp.Select
    table: exp.Table
    relation: Relation
    is_alone: bool
    names: frozenset[str]
    has_star: bool

    def names_in(self, index: Relation) -> dict[str, str]:
        """Return the index's names of the table's columns that it has, by their present names."""
        has = {column.name for column in index.visible} - {key.name for key in index.index.keys if key.is_expression}
        names = {column.name: column.name_for(index.definition_id) for column in self.relation.visible}
        return {now: then for now, then in names.items() if then in has}

    def is_over(self, node: exp.Expr) -> bool:
        """Return whether an expression of the SELECT, whose only table this is, reads no row of a query around."""
        qualifiers = (column.args.get("table") for column in node.find_all(exp.Column))
        return self.is_alone and all(owner is None or folded(owner) == self.alias for owner in qualifiers)

    def is_zoned(self, node: exp.Expr) -> bool:
        """Return whether an expression may depend on the session's time zone, which is UTC for an index."""
        casts = (kind.this == exp.DType.TIMESTAMPTZ for kind in node.find_all(exp.DataType))
        return TIMESTAMPTZ.name in self.types_in(node) or any(casts)

    def types_in(self, node: exp.Expr) -> set[str]:
        """Return the names of the types of the table's columns that an expression reads."""
        names = {folded(column.this) for column in node.find_all(exp.Column)}
        return {column.type.name for column in self.relation.visible if column.name in names}

    @property
    def alias(self) -> str:
        alias = self.table.args.get("alias")
        return folded(alias.this if alias else self.table.this)


def select_indexes(tree: exp.Expr, catalog: Catalog, find: Find, source: Source) -> tuple[Relation, ...]:
    """Replace relations in a query by indexes, in the tree itself. Returns these indexes."""
    replaced = []
    for use in list(_uses(tree, find)):
        rated = ((_rating(use, index), index) for index in catalog.indexes(use.relation.id))
        usable = [(rating, -index.id) for rating, index in rated if rating and is_kept(catalog, index.id)]
        if usable:
            index = catalog.by_id[-max(usable)[1]]
            _replace(use, index, source)
            replaced.append(index)
    return tuple(replaced)


def is_kept(catalog: Catalog, index_id: int) -> bool:
    """Return whether an index exists, is created and is up to date."""
    job = catalog.job_by_id.get(index_id)
    return job is not None and job.status == CREATED and not job.is_behind


def _uses(tree: exp.Expr, find: Find) -> Iterator[_Use]:
    """Yield the tables of SELECTs with a WHERE whose columns can be told."""
    for select in tree.find_all(exp.Select):
        source, joins = select.args.get("from_"), select.args.get("joins") or []
        if source is None or select.args.get("where") is None or any(join.method for join in joins):
            continue
        sources = [source.this, *(join.this for join in joins)]
        is_alone = len(sources) == 1 and not select.args.get("laterals")
        for table in sources:
            if not isinstance(table, exp.Table) or not isinstance(table.this, exp.Identifier):
                continue
            alias = table.args.get("alias")
            relation = None if alias is not None and alias.columns else find(table)
            if relation is not None:
                yield from _use(select, table, relation, is_alone, joins)


def _use(
    select: exp.Select, table: exp.Table, relation: Relation, is_alone: bool, joins: list[exp.Join]
) -> Iterator[_Use]:
    use = _Use(select, table, relation, is_alone, frozenset(), False)
    visible = {column.name for column in relation.visible}
    names: set[str] = set()
    for column in select.find_all(exp.Column):
        if isinstance(column.this, exp.Star):
            continue
        name, owner = folded(column.this), column.args.get("table")
        if owner is None and name == use.alias:
            return  # the row as a value
        if owner is None or folded(owner) == use.alias:
            names.add(name)
    names |= {folded(name) for join in joins for name in join.args.get("using") or ()}
    has_star = any(not isinstance(star.parent, exp.Count) for star in select.find_all(exp.Star))
    used = visible if has_star else names & visible
    yield _Use(select, table, relation, is_alone, frozenset(used), has_star)


def _rating(use: _Use, index: Relation) -> tuple[int, int] | None:
    """Return how much of an index's key the query uses: columns by equality, then by a range.

    None if it is of no use.
    """
    if not _holds(use, index.index.condition):
        return None
    compared = _compared(use, index)
    keys = index.index.keys
    equal = next((n for n, key in enumerate(keys) if "=" not in compared.get(key.name, "")), len(keys))
    ranged = equal < len(keys) and bool(compared.get(keys[equal].name))
    if not equal and not ranged:
        return None
    return (equal, int(ranged)) if use.names <= use.names_in(index).keys() else None


def _holds(use: _Use, condition: str) -> bool:
    """Return whether WHERE has each part of the condition of a partial index, as it is written there."""
    if not condition:
        return True
    wanted = list(conjuncts(_expression(condition)))
    if any(_is_of_session(use, part) for part in wanted):
        return False
    written = {_text(part) for part in conjuncts(use.select.args["where"].this) if use.is_over(part)}
    return {_text(part) for part in wanted} <= written


def _is_of_session(use: _Use, part: exp.Expr) -> bool:
    """Return whether sessions with another time zone or order of dates may read a condition in another way."""
    part = part.this if isinstance(part, exp.Not) else part
    if isinstance(part, exp.Is):
        return not isinstance(part.this, exp.Column) and use.is_zoned(part)
    has_text = any(text.is_string and not isinstance(text.parent, exp.Cast) for text in part.find_all(exp.Literal))
    return use.is_zoned(part) or (has_text and bool(use.types_in(part) & _MOMENTS))


def _compared(use: _Use, index: Relation) -> dict[str, str]:
    """Return how WHERE compares key columns of an index with constants: `=` or `<`."""
    found: dict[str, str] = {}
    for part in conjuncts(use.select.args["where"].this):
        sides = [part.this, part.expression] if isinstance(part, exp.Binary) else [part.this]
        others = [part.expression, part.this] if isinstance(part, exp.Binary) else [part]
        for side, other in zip(sides, others, strict=True):
            key = _key_of(use, index, side)
            if key is not None and _is_compared_with_known(part, side, other):
                how = "=" if isinstance(part, _EQUAL) else "<" if isinstance(part, _RANGE) else ""
                found[key.name] = found.get(key.name, "") + how
    return found


def _key_of(use: _Use, index: Relation, node: exp.Expr) -> IndexKey | None:
    """Return the key column that equals an expression over the table."""
    if isinstance(node, exp.Column):
        owner = node.args.get("table")
        is_own = use.is_alone if owner is None else folded(owner) == use.alias
        name = folded(node.this) if is_own and isinstance(node.this, exp.Identifier) else None
        then = use.names_in(index).get(name or "")
        return next((key for key in index.index.keys if not key.is_expression and key.name == then), None)
    if not use.is_over(node) or use.has_star or use.is_zoned(node):
        return None
    expressions = (key for key in index.index.keys if key.is_expression)
    return next((key for key in expressions if _text(node) == _text(_expression(key.source))), None)


def _is_compared_with_known(part: exp.Expr, side: exp.Expr, other: exp.Expr) -> bool:
    """Return whether the other side of a comparison in WHERE is known before any row is read."""
    if isinstance(part, exp.In):
        values = part.expressions
        return bool(values) and not part.args.get("query") and all(map(_is_known, values))
    if isinstance(part, exp.Between):
        return _is_known(part.args["low"]) and _is_known(part.args["high"])
    return isinstance(part, (*_EQUAL, *_RANGE)) and other is not side and _is_known(other)


def _is_known(node: exp.Expr) -> bool:
    return node.find(exp.Column, exp.Query, exp.Anonymous) is None


def _expression(text: str) -> exp.Expr:
    return canonical(parse_tree(f"SELECT {text}")).expressions[0]


def _text(node: exp.Expr) -> str:
    """Return an expression over the columns of one table as text, independent of their quotes."""
    copy = node.copy()
    for column in copy.find_all(exp.Column):
        column.replace(exp.column(exp.to_identifier(folded(column.this), quoted=True)))
    return (copy if not isinstance(node, exp.Column) else node).sql(dialect="postgres")


def _replace(use: _Use, index: Relation, source: Source) -> None:
    """Read the index under the table's name: the columns that it has, in the table's order."""
    where, keys = use.select.args["where"], index.index.keys
    known = use.names_in(index)
    items = [
        exp.alias_(_column(known[c.name]), c.name, quoted=True) for c in use.relation.visible if c.name in use.names
    ]
    found: dict[str, exp.Expr] = {}
    for key in (key for key in keys if key.is_expression):
        text = _text(_expression(key.source))
        for node in list(where.walk()):
            if use.is_over(node) and not use.has_star and not isinstance(node, exp.Column) and _text(node) == text:
                node.replace(_column(key.name))
                found[key.name] = _column(key.name)
    items = [*items, *found.values()] or [_column(keys[0].name)]
    rows = exp.select(*items).from_(source(index))
    alias = use.table.args.get("alias")
    subquery = exp.Subquery(this=rows, alias=alias.copy() if alias is not None else _alias(use.alias))
    use.table.replace(subquery)


def _alias(name: str) -> exp.TableAlias:
    return exp.TableAlias(this=exp.to_identifier(name, quoted=True))


def _column(name: str) -> exp.Column:
    return exp.column(exp.to_identifier(name, quoted=True))
