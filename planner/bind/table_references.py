"""Resolves `schema.table.column` and `table.column`: each source in FROM gets a name that no other source has.

PostgreSQL finds a source by its alias, or by its table's name; with a schema by the named relation
(scanNameSpaceForRefname and scanNameSpaceForRelid in src/backend/parser/parse_relation.c). sqlglot and DuckDB know
sources by one name without a schema, ignoring case, and see sources of FROM that PostgreSQL hides. So a source that
they would confuse with another gets an alias of its own here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from sqlglot import exp

from sparkwave.catalog import errors
from sparkwave.catalog.errors import Error
from sparkwave.catalog.lazy import lazy
from sparkwave.catalog.model import Catalog, Relation
from sparkwave.planner.bind.corresponding import with_corresponding
from sparkwave.planner.bind.merged_columns import ColumnsOf, columns_in, columns_of_item
from sparkwave.planner.bind.scopes import Scope, find_read
from sparkwave.planner.build.time_windows import is_window, windowed_table
from sparkwave.planner.parse.from_items import columns_written
from sparkwave.planner.parse.identifiers import folded
from sparkwave.planner.parse.row_comparisons import all_null
from sparkwave.planner.parse.row_values import OF_TABLE
from sparkwave.planner.parse.set_returning import ROW_FUNCTIONS
from sparkwave.planner.parse.trees import is_comma, is_cte, name_of, other_tables, position_of
from sparkwave.planner.statements import Name

T = TypeVar("T", bound=exp.Expr)
Find = Callable[[Name], Relation | None]


@dataclass(eq=False)
class _Source:
    """A table, subquery or function in FROM.

    `table` is its name if it has no alias, `users` are the references to it. `may_lack` tells that a join may have
    NULLs in place of its rows.
    """

    node: exp.Expr
    name: str
    columns_of: ColumnsOf
    table: Name | None = None
    relation: Relation | None = None
    users: list[exp.Column] = field(default_factory=list)
    is_renamed: bool = False
    may_lack: bool = False

    @lazy
    def fields(self) -> dict[str, None]:
        """The names of the columns, in order; none if they are not known."""
        columns = columns_of_item(self.node, self.columns_of)
        return dict.fromkeys([column.name for column in columns] if columns is not None else columns_written(self.node))

    def is_named(self, name: Name, relation: Relation | None) -> bool:
        """Return whether `name.column` is a column of the source."""
        if name.schema is None:
            return self.name == name.name
        if self.table is None or self.table.name != name.name:
            return False
        if self.relation is not None and relation is not None:
            return self.relation.id == relation.id
        return self.relation is relation and self.table.schema in (None, name.schema)  # of the system

    def is_another(self, other: _Source) -> bool:
        """Return whether one FROM may have both sources of one name: both are tables, of different schemas."""
        if self.table is None or other.table is None:
            return False
        if self.relation is not None and other.relation is not None:
            return self.relation.id != other.relation.id
        return self.relation is not other.relation or self.table.schema != other.table.schema


@dataclass(eq=False)
class _Level:
    """The sources of one FROM. `is_hidden` tells that a query inside this FROM may not see them."""

    sources: list[_Source] = field(default_factory=list)
    is_hidden: bool = False

    def named(self, name: Name, relation: Relation | None) -> list[_Source]:
        return [source for source in self.sources if source.is_named(name, relation)]


_Levels = Sequence[_Level]


def resolve_references(tree: T, catalog: Catalog, scope: Scope) -> T:
    """Resolve references in the tree itself, so that sources and their columns are known by aliases alone.

    Set operations with CORRESPONDING become ones by place. Raises Error 42P09 for a table reference that is ambiguous,
    42712 for a duplicate name, 42P01, and the errors of `with_corresponding`.
    """
    columns_of = columns_in(catalog, scope)
    with_corresponding(tree, columns_of)
    resolver = _Resolver(lambda name: find_read(catalog, scope, name), scope.database, columns_of, scope.is_stored)
    resolver.visit(tree, ())
    resolver.rename(tree)
    return tree


@dataclass
class _Resolver:
    find: Find
    database: str
    columns_of: ColumnsOf
    is_stored: bool
    renamed: list[_Source] = field(default_factory=list)

    # The walk, with the sources in reach.

    def visit(self, node: exp.Expr, levels: _Levels) -> None:
        pending = [node]
        while pending:
            part = pending.pop()
            match part:
                case exp.Column():
                    self._refer(part, levels)
                case exp.Select():
                    self._select(part, levels)
                case exp.Update() | exp.Delete() | exp.Merge() if part.this is not None:  # not MERGE's UPDATE part
                    self._change(part, levels)
                case _:
                    pending += reversed(list(part.iter_expressions()))

    def _select(self, select: exp.Select, levels: _Levels) -> None:
        from_, joins, laterals = (select.args.get(part) for part in ("from_", "joins", "laterals"))
        level = _Level()
        inner = (*levels, level)
        if select.args.get("with_") is not None:
            self.visit(select.args["with_"], levels)
        if from_ is not None:
            self._source(from_.this, level, levels)
        self._joins([*(joins or ()), *(laterals or ())], level, levels)
        for part in select.iter_expressions():
            if part.arg_key not in ("with_", "from_", "joins", "laterals"):
                self.visit(part, inner)

    def _change(self, tree: exp.Expr, levels: _Levels) -> None:
        level = _Level()
        if tree.args.get("with_") is not None:
            self.visit(tree.args["with_"], levels)
        if isinstance(tree, exp.Merge):
            self._check_merge(tree)
        for source in (tree.this, *other_tables(tree)):
            self._source(source, level, levels)
        for part in tree.iter_expressions():
            if part.arg_key not in ("this", "with_", "using", "from_"):
                self.visit(part, (*levels, level))

    def _check_merge(self, merge: exp.Merge) -> None:
        target, source = self._made(merge.this), self._made(merge.args["using"])
        if target is not None and source is not None and target.name == source.name:
            raise Error(
                f'name "{target.name}" specified more than once',
                errors.DUPLICATE_ALIAS,
                detail="The name is used both as MERGE target table and data source.",
            )

    def _joins(self, joins: Sequence[exp.Expr], level: _Level, levels: _Levels) -> None:
        start = 0  # of the sources that are joined, which a comma parts from those before
        for join in joins:
            if not isinstance(join, exp.Join):
                self._source(join, level, levels)
                continue
            right = len(level.sources)
            start = right if is_comma(join) else start
            self._source(join.this, level, levels)
            if join.args.get("on") is not None:
                self.visit(join.args["on"], (*levels, level))
            side = join.side.upper()
            for source in level.sources[right:] if side in ("LEFT", "FULL") else ():
                source.may_lack = True
            for source in level.sources[start:right] if side in ("RIGHT", "FULL") else ():
                source.may_lack = True

    def _source(self, node: exp.Expr, level: _Level, levels: _Levels) -> None:
        """Add a source, and the joins in its parentheses or before its own ON."""
        joins, first = node.args.get("joins") or (), len(level.sources)
        hidden = (*levels, _Level(level.sources, is_hidden=True))
        if isinstance(node, exp.Subquery) and is_join(node) and node.alias:
            _make_query(node)
        match node:
            case exp.Subquery() if is_join(node):
                self._source(node.this, level, levels)
            case exp.Table() if is_window(node):
                for argument in node.this.expressions:
                    if isinstance(argument, exp.Subquery):  # the other arguments are a table's name and its column
                        self.visit(argument, hidden)
            case exp.Table(this=exp.Func()) | exp.Lateral():
                self.visit(node.this, (*levels, level))
            case exp.Unnest():
                for argument in node.expressions:
                    self.visit(argument, (*levels, level))
            case exp.Subquery() | exp.Values():
                for part in node.iter_expressions():
                    if part.arg_key != "joins":
                        self.visit(part, hidden)
        self._add(self._made(node), level)
        if joins:  # these sources see only each other
            inner = _Level(level.sources[first:])
            outside = _Level(level.sources[:first], is_hidden=True)
            self._joins(joins, inner, (*levels, outside))
            for source in inner.sources[len(level.sources) - first :]:
                self._add(source, level)

    def _made(self, node: exp.Expr) -> _Source | None:
        alias, table = node.args.get("alias"), windowed_table(node) or node
        name = folded(alias.this) if isinstance(alias, exp.TableAlias) and alias.this is not None else ""
        if isinstance(table, exp.Table) and isinstance(table.this, exp.Identifier):
            if name:
                return _Source(node, name, self.columns_of, None, self._relation(table))
            if is_cte(table):
                return _Source(node, folded(table.this), self.columns_of)
            return _Source(node, folded(table.this), self.columns_of, name_of(table), self._relation(table))
        return _Source(node, name, self.columns_of) if name else None

    def _relation(self, table: exp.Table) -> Relation | None:
        return None if is_cte(table) else self.find(name_of(table))

    def _add(self, source: _Source | None, level: _Level) -> None:
        """Add a source. Raises Error 42712 for a name that the level has already."""
        if source is None:
            return
        for other in level.sources:
            if other.name == source.name and not source.is_another(other):
                message = f'table name "{source.name}" specified more than once'
                raise Error(message, errors.DUPLICATE_ALIAS)
            if other.name.lower() == source.name.lower():
                self._rename(source)
        level.sources.append(source)

    # References.

    def _refer(self, column: exp.Column, levels: _Levels) -> None:
        if column.args.get("table") is None:
            self._refer_to_row(column, levels)
            return
        schema, database = column.args.get("db"), column.args.get("catalog")
        name = Name(None, None if schema is None else folded(schema), folded(column.args["table"]), 0)
        if database is not None and folded(database) != self.database:
            written = f"{folded(database)}.{name}.{column.name or '*'}"
            message = f"cross-database references are not implemented: {written}"
            raise Error(message, errors.FEATURE_NOT_SUPPORTED, position=position_of(column))
        relation = self.find(name) if name.schema is not None else None
        source = _found(name, relation, levels, column)
        if source is not None:
            _check_column(source, column)
            self._use(source, column, levels)
            if isinstance(column.this, exp.Star) and source.fields and _is_value(column):
                whole = exp.Column(this=column.args["table"].copy())
                column.replace(whole)
                _put_row(whole, source)
        elif not any(name.schema == each.name for level in levels for each in level.sources):
            self._missing(name, relation, levels, column)  # not `table.column.field`, as DuckDB reads it

    def _refer_to_row(self, column: exp.Column, levels: _Levels) -> None:
        """Let a name alone mean a table's whole row where no source has a column of the name."""
        if not isinstance(column.this, exp.Identifier):
            return
        name = Name(None, None, folded(column.this), 0)
        for level in reversed(levels):
            if level.is_hidden:
                continue
            if any(not source.fields or name.name in source.fields for source in level.sources):
                return
            if level.named(name, None):
                source = _found(name, None, [level], column)
                assert source is not None
                self._use(source, column, levels)
                test = column.parent
                if isinstance(test, exp.Is) and isinstance(test.expression, exp.Null) and source.fields:
                    made = all_null(_columns_of(column, source.fields), bool(test.args.get("negate")))
                    source.users += made.find_all(exp.Column)
                    test.replace(exp.paren(made, copy=False))
                elif source.fields:
                    _put_row(column, source)
                return

    def _use(self, source: _Source, column: exp.Column, levels: _Levels) -> None:
        """Refer to a source by its name, or by a new one if another source would be confused with it."""
        source.users.append(column)
        if column.args.get("table") is not None:
            column.set("db", None)
            column.set("catalog", None)
        for level in reversed(levels):
            alike = [other for other in level.sources if other.name.lower() == source.name.lower()]
            if alike:
                if source is not alike[0]:
                    self._rename(source)
                return

    def _missing(self, name: Name, relation: Relation | None, levels: _Levels, column: exp.Column) -> None:
        """Raise Error 42P01 for a reference to a hidden or misnamed source. The engine reports other unknown names."""
        relation = relation or self.find(name)
        every = [source for level in reversed(levels) for source in level.sources]
        meant = next(
            (s for s in every if s.name == name.name or (relation and s.relation and s.relation.id == relation.id)),
            None,
        )
        is_alike = not self.is_stored and any(s.name.lower() == name.name.lower() for s in every)
        if meant is None and name.schema is None and not is_alike:
            return
        if meant is None:
            message = f'missing FROM-clause entry for table "{name.name}"'
            raise Error(message, errors.UNDEFINED_TABLE, position=position_of(column))
        hint = f'There is an entry for table "{name.name}", but it cannot be referenced from this part of the query.'
        if meant.table is None and meant.name != name.name:
            hint = f'Perhaps you meant to reference the table alias "{meant.name}".'
        message = f'invalid reference to FROM-clause entry for table "{name.name}"'
        raise Error(message, errors.UNDEFINED_TABLE, hint=hint, position=position_of(column))

    # Aliases of our own.

    def _rename(self, source: _Source) -> None:
        if not source.is_renamed:
            source.is_renamed = True
            self.renamed.append(source)

    def rename(self, tree: exp.Expr) -> None:
        if not self.renamed:
            return
        taken = {identifier.name.lower() for identifier in tree.find_all(exp.Identifier)}
        for source in self.renamed:
            name = next(n for i in range(2, 10**6) if (n := f"{source.name}_{i}").lower() not in taken)
            taken.add(name.lower())
            alias = source.node.args.get("alias")
            columns = alias.columns if isinstance(alias, exp.TableAlias) else []
            if not columns and isinstance(source.node.this or source.node, ROW_FUNCTIONS):
                columns = [exp.to_identifier(source.name, quoted=True)]
            made = exp.TableAlias(this=exp.to_identifier(name, quoted=True), columns=columns)
            source.node.set("alias", made)
            for column in source.users:
                _refer_by(column, name)


def is_join(subquery: exp.Subquery) -> bool:
    """Return whether parentheses in FROM contain a join, or a single table, instead of a query."""
    inner = subquery.this
    if isinstance(inner, exp.Subquery):
        return bool(inner.alias or inner.args.get("joins")) or is_join(inner)
    return not isinstance(inner, exp.Query)


def _make_query(join: exp.Subquery) -> None:
    """Make a join with an alias, which hides its sources, into a query of all their columns."""
    inner = join.this
    joins = inner.args.get("joins")
    inner.set("joins", None)
    join.set("this", exp.Select(expressions=[exp.Star()], from_=exp.From(this=inner), joins=joins))


def _found(name: Name, relation: Relation | None, levels: _Levels, column: exp.Column) -> _Source | None:
    """Return the source of a name among those in reach. Raises Error 42P09 if there are several."""
    for level in reversed(levels):
        found = [] if level.is_hidden else level.named(name, relation)
        if len(found) > 1:
            message = f'table reference "{name.name}" is ambiguous'
            raise Error(message, errors.AMBIGUOUS_ALIAS, position=position_of(column))
        if found:
            return found[0]
    return None


def _check_column(source: _Source, column: exp.Column) -> None:
    """Raise Error 42703 for an unknown `schema.table.column`; the engine's error would show an internal name."""
    if source.relation is None or column.args.get("db") is None or isinstance(column.this, exp.Star):
        return
    if source.relation.column(folded(column.this)) is None:
        message = f"column {source.name}.{folded(column.this)} does not exist"
        raise Error(message, errors.UNDEFINED_COLUMN, position=position_of(column))


def _refer_by(column: exp.Column, name: str) -> None:
    """Let a reference name its source by the new name; a row that is an output keeps the name of its table."""
    identifier = exp.to_identifier(name, quoted=True)
    if column.args.get("table") is not None:
        column.set("table", identifier)
        return
    written = column.name
    column.set("this", identifier)
    if isinstance(column.parent, exp.Select) and column.arg_key == "expressions":
        column.replace(exp.alias_(column.copy(), written, quoted=True))


def _is_scalar(node: exp.Expr) -> bool:
    """Return whether a source in FROM has values instead of rows: `unnest(a) AS u`."""
    node = node.this if isinstance(node, exp.Lateral) else node
    return isinstance(node, exp.Unnest) and len(node.expressions) == 1 and not node.args.get("offset")


def _put_row(table: exp.Column, source: _Source) -> None:
    """Put the row of a source in place of its name, made of its columns, whose types are known; or a field of it."""
    around = table.parent if isinstance(table.parent, exp.Paren) else table
    dot = around.parent
    if isinstance(dot, exp.Dot) and dot.this is around and _is_field(dot, source):
        made: exp.Expr = exp.Column(this=dot.expression.copy(), table=table.this.copy())
        dot.replace(made)
    else:
        made = _row_of(table, source) if not _is_scalar(source.node) else _columns_of(table, source.fields)[0]
        made.meta["name"] = table.name
        is_output = isinstance(table.parent, exp.Select) and table.arg_key == "expressions"
        table.replace(exp.alias_(made, folded(table.this), quoted=True, copy=False) if is_output else made)
    source.users += made.find_all(exp.Column)


def _is_value(star: exp.Column) -> bool:
    """Return whether `t.*` is one value, the row, as in `to_jsonb(t.*)`."""
    return isinstance(star.parent, exp.Func | exp.Cast | exp.Paren | exp.Is | exp.Distinct | exp.Order)


def _is_field(dot: exp.Dot, source: _Source) -> bool:
    if isinstance(dot.expression, exp.Star):
        return isinstance(dot.parent, exp.Select)
    return isinstance(dot.expression, exp.Identifier) and folded(dot.expression) in source.fields


def _row_of(table: exp.Column, source: _Source) -> exp.Expr:
    """Return the row of a table; it is NULL where a join has none."""
    columns = _columns_of(table, source.fields)
    fields = [exp.PropertyEQ(this=column.this.copy(), expression=column) for column in columns]
    row = exp.Struct(expressions=fields)
    row.meta[OF_TABLE] = True
    if not source.may_lack:
        return row
    relation = source.relation
    if relation is not None and relation.is_table:
        keys = _columns_of(table, relation.key[:1])  # which no row of the table lacks
        return exp.Case().when(exp.not_(all_null(keys, negate=False), copy=False), row)
    return exp.Case().when(exp.not_(all_null(columns, negate=False), copy=False), row)


def _columns_of(table: exp.Column, fields: Iterable[str]) -> list[exp.Column]:
    return [exp.column(exp.to_identifier(name, quoted=True), table.this.copy()) for name in fields]
