"""INSERT, UPDATE, DELETE and what RETURNING gives, for DuckDB; MERGE is in merge.py.

What DuckLake cannot do by itself (RETURNING, other tables beside the one it changes, MERGE), and what an atomic
transaction does, goes in steps: a query of the rows to change, whose result is staged, and the changes by row ids.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from sqlglot import exp

from catalog import errors
from catalog.errors import Error
from catalog.model import Column, Relation
from catalog.types import Type
from planner.batch.parameters import assigned_values, parameter_number
from planner.batch.query import (
    Batch,
    Environment,
    check_reads,
    finish,
    infer,
    plan_query,
    prepared,
    qualify_columns,
    resolve_tables,
    staged_table,
    stored_table,
)
from planner.batch.structs import other_tables, with_row_types
from planner.bind import data_type, resolve
from planner.parse.rows import is_row
from planner.parse.trees import folded, parse_tree, position_of, unsupported
from planner.privileges import check_relation
from planner.statements import Delete, Insert, Name, Update

# Temporary tables of the cursor that writes: the rows to insert, and the rows to change.
INSERTED, CHANGED = "staged_rows", "changed_rows"
# Columns of CHANGED besides those of the table: the row's id in the lake, the number of what is done with it, and the
# rows of the other tables.
ROW, WHEN, SOURCE = "?row", "?when", "?source"


@dataclass(frozen=True)
class Change:
    """An UPDATE, DELETE or MERGE: its text where DuckLake can do it alone, else a query of the rows to change.

    `whens` are what is done with those whose `?when` is 1, 2, …: "UPDATE", "DELETE" or "INSERT". `assigned` are the
    columns that an UPDATE sets.
    """

    batch: Batch
    is_direct: bool
    whens: tuple[str, ...]
    assigned: tuple[str, ...]

    def numbers(self, action: str) -> str:
        """The numbers in `?when` that stand for an action, as a list of SQL; empty when there are none."""
        return ", ".join(str(number) for number, name in enumerate(self.whens, start=1) if name == action)


def resolve_target(name: Name, privilege: str, environment: Environment) -> Relation:
    """The table a write names. Raises Error 42809 for a view, 42P01 for nothing, 42501 without the privilege."""
    relation = resolve(environment.catalog, environment.scope, name, "table")
    if not relation.is_table:
        raise Error(f'cannot change {relation.kind} "{name}"', errors.WRONG_OBJECT_TYPE, position=name.position)
    check_relation(environment.catalog, environment.user, relation, privilege, name.position)
    return relation


def refuse_append_only(target: Relation, name: Name) -> None:
    """Raise Error 0A000 for a table that only grows."""
    if target.append_only:
        message = "append-only table does not support update or delete"
        raise Error(message, errors.FEATURE_NOT_SUPPORTED, position=name.position)


def plan_insert(
    statement: Insert, target: Relation, columns: tuple[Column, ...], environment: Environment, oids: tuple[int, ...]
) -> Batch:
    """The rows of an INSERT; a parameter in VALUES takes its column's type."""
    source = statement.source or exp.select(*(default_of(column) for column in columns))
    check_reads(source, environment)
    if statement.returning:
        check_relation(environment.catalog, environment.user, target, "SELECT", statement.table.position)
    source = prepared(source, environment)
    types = [column.type for column in columns]
    assigned = assigned_values(source, lambda name, place: types[place] if place < len(types) else None)
    for row in source.find_all(exp.Tuple) if isinstance(source, exp.Values) else ():
        for value, column in zip(row.expressions, columns, strict=False):
            type_ = column.type
            if is_default(value):
                value.replace(default_of(column))
            elif is_row(value) or ((type_.name in ("bytea", "struct") or type_.dimensions) and value.is_string):
                value.replace(exp.cast(value.copy(), data_type(type_)))
    source = with_row_types(source, environment.catalog, environment.scope)
    parameters = _parameters(source, statement, target, environment, oids, assigned)
    return Batch(finish(resolve_tables(source, environment), environment, parameters), parameters)


def plan_change(
    statement: Update | Delete, target: Relation, environment: Environment, oids: tuple[int, ...] = ()
) -> Change:
    """An UPDATE or DELETE. Raises Error 0A000 for a table that only grows or a column of the key, 42703."""
    refuse_append_only(target, statement.table)
    check_reads(statement.tree, environment, statement.tree.this)
    if statement.returning or _reads_columns(statement.tree):
        check_relation(environment.catalog, environment.user, target, "SELECT", statement.table.position)
    tree = with_row_types(prepared(statement.tree, environment), environment.catalog, environment.scope)
    types = {column.name: column.type for column in target.visible}
    assigned_types = assigned_values(tree, lambda name, place: types.get(name)) if isinstance(statement, Update) else {}
    parameters = _parameters(tree, statement, target, environment, oids, assigned_types)
    values = assignments(tree.expressions, target) if isinstance(statement, Update) else {}
    whens, assigned = (tree.key.upper(),), tuple(values)
    if statement.returning or other_tables(tree) or environment.overlays:
        query = _changed_rows(statement, tree, target, values)
        return Change(staged_batch(query, target, environment, parameters), False, whens, assigned)
    if values:
        tree.set("expressions", [exp.EQ(this=_identifier(name), expression=value) for name, value in values.items()])
    qualify_columns(tree, tree.this)
    tree.this.replace(stored_table(target, alias_of(tree.this), environment))
    batch = Batch(finish(resolve_tables(tree, environment), environment, parameters), parameters)
    return Change(batch, True, whens, assigned)


def _changed_rows(
    statement: Update | Delete, tree: exp.Expr, target: Relation, values: dict[str, exp.Expr]
) -> exp.Select:
    """The rows to change: each as it will be, or as it was if it is deleted."""
    alias, others = alias_of(tree.this), other_tables(tree)
    kept = [column for column in target.visible if statement.returning or column.name in values]
    items = [named(exp.Literal.number(1), WHEN), named(column_of("rowid", alias), ROW)]
    items += [named(values.get(column.name, column_of(column.name, alias)), column.name) for column in kept]
    for number, name in enumerate(_names(others) if statement.returning else ()):
        fields = exp.Columns(this=exp.Column(this=exp.Star(), table=_identifier(name)), unpack=True)
        items.append(named(exp.Anonymous(this="struct_pack", expressions=[fields]), f"{SOURCE}{number}"))
    query = exp.select(*items)
    # The others come first, so that their joins are not joins with the table.
    for number, each in enumerate([*others, marked(tree.this)]):
        query = query.from_(each.copy()) if number == 0 else query.join(each.copy(), join_type="cross")
    query.set("where", tree.args.get("where"))
    query.set("with_", tree.args.get("with_"))
    if others:  # which of the rows that it meets counts is not said (PostgreSQL documentation, UPDATE)
        window = exp.Window(this=exp.RowNumber(), partition_by=[column_of("rowid", alias)])
        query.set("qualify", exp.Qualify(this=exp.EQ(this=window, expression=exp.Literal.number(1))))
    return query


def staged_batch(query: exp.Select, target: Relation, environment: Environment, parameters: tuple[Type, ...]) -> Batch:
    """A query over the `marked` table and others."""
    table = next(each for each in query.find_all(exp.Table) if each.meta.get(_TARGET))
    qualify_columns(query, table)
    table.replace(stored_table(target, alias_of(table), environment))
    return Batch(finish(resolve_tables(query, environment), environment, parameters), parameters)


# RETURNING.


def plan_returning(
    statement: Insert | Update | Delete,
    target: Relation,
    environment: Environment,
    parameters: tuple[Type, ...],
    is_staged: bool,
) -> Batch:
    """What RETURNING gives, over the staged rows, or over all rows to be described."""
    query = with_row_types(_returning(statement, target), environment.catalog, environment.scope)
    if is_staged:
        _read_staged(query, statement, target)
    return plan_query(query, environment, parameters=parameters)


def _returning(statement: Insert | Update | Delete, target: Relation) -> exp.Select:
    table = exp.table_(statement.table.name, db=statement.table.schema, catalog=statement.table.database, quoted=True)
    table.set("alias", exp.TableAlias(this=_identifier(_alias(statement, target))))
    query = exp.select(*(item.copy() for item in statement.returning)).from_(table)
    for other in () if isinstance(statement, Insert) else other_tables(statement.tree):
        query = query.join(other.copy(), join_type="cross")
    if not isinstance(statement, Insert) and statement.tree.args.get("with_"):
        query.set("with_", statement.tree.args["with_"].copy())
    return query


def _read_staged(query: exp.Expr, statement: Insert | Update | Delete, target: Relation) -> None:
    """Put the staged rows in the place of the tables; those of the others are beside the ones they met."""
    others = () if isinstance(statement, Insert) else _names(other_tables(statement.tree))
    rows = exp.select(*(column_of(column.name) for column in target.visible))
    rows = rows.from_(staged_table(INSERTED if isinstance(statement, Insert) else CHANGED))
    query.set("from_", exp.From(this=rows.subquery(_identifier(_alias(statement, target)))))
    query.set("joins", None)
    query.set("with_", None)
    for number, name in enumerate(others):
        fields = exp.Anonymous(this="unnest", expressions=[column_of(f"{SOURCE}{number}")])
        source = exp.select(fields).from_(staged_table(CHANGED)).subquery(_identifier(name))
        query.append("joins", exp.Join(this=source, method="POSITIONAL"))


def _parameters(
    query: exp.Expr,
    statement: Insert | Update | Delete,
    target: Relation,
    environment: Environment,
    oids: tuple[int, ...],
    assigned: Mapping[int, Type] | None = None,
) -> tuple[Type, ...]:
    """The types of the parameters in a query and RETURNING together."""
    own = infer(query, environment, oids, assigned)
    if not statement.returning:
        return own
    more = infer(_returning(statement, target), environment, oids)
    used = {parameter_number(node) for node in query.find_all(exp.Parameter)}
    count = max(len(own), len(more))
    return tuple(own[n] if n + 1 in used or n >= len(more) else more[n] for n in range(count))


def _alias(statement: Insert | Update | Delete, target: Relation) -> str:
    if isinstance(statement, Insert):
        return statement.alias or statement.table.name
    return alias_of(statement.tree.this)


def _names(sources: list[exp.Expr]) -> tuple[str, ...]:
    """What the tables of a FROM are called. Raises Error 0A000 for a join in parentheses."""

    def each(source: exp.Expr) -> Iterator[str]:
        if not source.alias_or_name:
            raise unsupported("RETURNING with a join in parentheses", source)
        alias = source.args.get("alias")
        yield folded(alias.this if alias else source.this)
        for join in source.args.get("joins") or ():
            yield from each(join.this)

    return tuple(name for source in sources for name in each(source))


# Values.


def assignments(items: list[exp.Expr], target: Relation) -> dict[str, exp.Expr]:
    """The value of each column in SET, as the column's type. Raises Error 42703, 42601, 0A000."""
    found: dict[str, exp.Expr] = {}
    for item in items:
        for place, value in _pairs(item):
            column = target_column(target, place)
            if column.name in found:
                raise Error(f'multiple assignments to same column "{column.name}"', errors.SYNTAX_ERROR)
            if column.name in target.primary_key:
                raise Error("update modifying the PK column is unsupported", errors.FEATURE_NOT_SUPPORTED)
            found[column.name] = as_column(value, column)
    return found


def _pairs(item: exp.Expr) -> Iterator[tuple[exp.Expr, exp.Expr]]:
    """`a = 1`, `(a, b) = (1, 2)` and `(a, b) = (SELECT 1, 2)`, whose query is asked once for each column."""
    places, value = item.this, item.expression
    if not isinstance(places, exp.Tuple | exp.Paren):
        yield places, value
        return
    listed = places.expressions if isinstance(places, exp.Tuple) else [places.this]
    query = value.this if isinstance(value, exp.Subquery) else None
    if query is not None and query.is_star:
        raise unsupported("SELECT * in SET", value)
    values = query.selects if query else value.expressions or [value.unnest()]
    if len(values) != len(listed):
        raise Error("number of columns does not match number of values", errors.SYNTAX_ERROR)
    for number, (place, single) in enumerate(zip(listed, values, strict=True)):
        yield place, _output(query, number) if query else single


def _output(query: exp.Query, number: int) -> exp.Expr:
    """The value of one output of a query."""
    names = [_identifier(f"?{place}") for place in range(len(query.selects))]
    rows = exp.Subquery(this=query.copy(), alias=exp.TableAlias(this=_identifier("?values"), columns=names))
    return exp.select(exp.Column(this=names[number].copy())).from_(rows).subquery()


def as_column(value: exp.Expr, column: Column) -> exp.Expr:
    """A value of a column; DEFAULT is the column's."""
    return exp.cast((default_of(column) if is_default(value) else value).copy(), data_type(column.type))


def is_default(value: exp.Expr) -> bool:
    return isinstance(value, exp.Column | exp.Var) and value.sql().upper() == "DEFAULT"


def default_of(column: Column) -> exp.Expr:
    """The value of a column that is given none."""
    default = parse_tree(f"SELECT {column.default or 'NULL'}").expressions[0]
    return exp.cast(default, data_type(column.type))


def default_text(column: Column, environment: Environment) -> str:
    """DuckDB's text of a column's default."""
    return finish(default_of(column), environment, ())


def target_column(target: Relation, place: exp.Expr) -> Column:
    """The column a SET or a list of columns names. Raises Error 42703."""
    identifier = place.this if isinstance(place, exp.Column) else place
    name = folded(identifier)
    column = next((column for column in target.visible if column.name == name), None)
    if column is None:
        message = f'column "{name}" of relation "{target.name}" does not exist'
        raise Error(message, errors.UNDEFINED_COLUMN, position=position_of(place))
    return column


def _reads_columns(tree: exp.Expr) -> bool:
    """Whether a write asks for values that are stored, so that its effect would tell them."""
    read = [tree.args.get("where"), *(assignment.expression for assignment in tree.expressions)]
    return any(part is not None and part.find(exp.Column) for part in read)


# Syntax.

_TARGET = "target"


def marked(table: exp.Expr) -> exp.Expr:
    """The table a statement changes, so that it is found again in a query."""
    table.meta[_TARGET] = True
    return table


def alias_of(table: exp.Expr) -> str:
    """What a statement calls the table it changes."""
    alias = table.args.get("alias")
    return folded(alias.this if alias else table.this)


def named(value: exp.Expr, name: str) -> exp.Expr:
    return exp.alias_(value, name, quoted=True)


def column_of(name: str, table: str | None = None) -> exp.Column:
    return exp.Column(this=_identifier(name), table=_identifier(table) if table is not None else None)


def _identifier(name: str) -> exp.Identifier:
    return exp.to_identifier(name, quoted=True)
