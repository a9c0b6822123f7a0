"""INSERT, UPDATE, DELETE and RETURNING for DuckDB; MERGE is in merge.py.

Writes that DuckLake lacks (RETURNING, other tables beside the changed one, MERGE), and all writes of an atomic
transaction, take two steps: a query of the rows to change, whose result is staged, and the changes by row ids.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache

from sqlglot import exp

from sparkwave.catalog import errors
from sparkwave.catalog.errors import Error
from sparkwave.catalog.model import Column, Relation, for_writing, lacks_columns
from sparkwave.catalog.names import PLACES, ROW
from sparkwave.catalog.relation_details import ALWAYS
from sparkwave.catalog.types import VARCHAR, Type
from sparkwave.planner.batch.assigned_fields import with_whole_columns
from sparkwave.planner.batch.assigned_types import fit_values, read_in_fields
from sparkwave.planner.batch.parameters import assigned_values, read_assigned
from sparkwave.planner.batch.query import (
    Batch,
    Environment,
    check_columns_read,
    check_reads,
    infer,
    origins_of,
    place,
    plan_query,
    prepared,
    resolve_tables,
    row_id,
    staged_table,
    stored_rows,
    stored_table,
    typed_for_writing,
    typer,
    with_given_types,
    written_batch,
)
from sparkwave.planner.batch.row_structs import with_row_types
from sparkwave.planner.batch.values import (
    assignments,
    check_given,
    column_of,
    default_of,
    generated_columns,
    identifier,
    is_default,
    is_default_at,
    named,
    never_null,
    read_by,
)
from sparkwave.planner.bind.binder import data_type, resolve
from sparkwave.planner.bind.privileges import check_relation
from sparkwave.planner.bind.table_references import resolve_references
from sparkwave.planner.bind.user_types import check_label
from sparkwave.planner.functions.typed import has_exponent, in_float_text, stored_value, text_name
from sparkwave.planner.parse.generated import columns_read
from sparkwave.planner.parse.identifiers import folded
from sparkwave.planner.parse.literals import engine_text, moment_value
from sparkwave.planner.parse.parameter_runs import parameter_numbers, rows_of
from sparkwave.planner.parse.row_values import is_row
from sparkwave.planner.parse.text_values import MOMENTS
from sparkwave.planner.parse.trees import alias_of, at, other_tables, position_of, unsupported
from sparkwave.planner.plan.nodes import conjuncts
from sparkwave.planner.statements import Delete, Insert, Name, Update

# Temporary tables of the writing cursor: the rows to insert, and the rows to change.
INSERTED, CHANGED = "staged_rows", "changed_rows"
# Columns of CHANGED besides those of the table, which have the lake's names, and the row's PLACES: the number of the
# row's action, and the rows of the other tables.
WHEN, SOURCE = "?when", "?source"


@dataclass(frozen=True)
class Change:
    """An UPDATE, DELETE or MERGE: its text where DuckLake can run it alone, else a query of the rows to change.

    `whens` are the actions of rows whose `?when` is 1, 2, …: "UPDATE", "DELETE" or "INSERT". `assigned` are the columns
    that an UPDATE sets. With `has_places` the query has all columns of an UPDATE's rows, and their PLACES.
    """

    batch: Batch
    is_direct: bool
    whens: tuple[str, ...]
    assigned: tuple[str, ...]
    has_places: bool = False

    def numbers(self, action: str) -> str:
        """Return the numbers of an action in `?when`, as a list of SQL; empty when there are none."""
        return ", ".join(str(number) for number, name in enumerate(self.whens, start=1) if name == action)


def resolve_target(name: Name, privilege: str, environment: Environment, columns: Collection[str] = ()) -> Relation:
    """Return the table of a write.

    Raises Error 42809 for a view, 42P01 for an unknown name, 42501 without the privilege. The privilege on the
    `columns`, which are all that is written, is enough; an INSERT that names none writes all.
    """
    relation = resolve(environment.catalog, environment.scope, name)
    if relation.kind != "table":
        raise Error(f'cannot change {relation.kind} "{name}"', errors.WRONG_OBJECT_TYPE, position=name.position)
    if privilege == "INSERT" and not columns:
        columns = [column.name for column in relation.visible]
    check_relation(environment.catalog, environment.user, relation, privilege, name.position, columns)
    return for_writing(relation)


def written_columns(statement: Insert | Update | Delete) -> tuple[str, ...]:
    """Return the columns that a write names; none for a DELETE, or an INSERT of all."""
    match statement:
        case Insert(columns=columns):
            return columns
        case Update(tree=tree):
            targets = (part for each in tree.expressions for part in (each.this.expressions or [each.this]))
            return tuple(folded(target.this) for target in targets if isinstance(target, exp.Column))
    return ()


def refuse_append_only(target: Relation, name: Name) -> None:
    """Raise Error 0A000 for an append-only table."""
    if target.append_only:
        message = "append-only table does not support update or delete"
        raise Error(message, errors.FEATURE_NOT_SUPPORTED, position=name.position)


def plan_insert(
    statement: Insert,
    target: Relation,
    columns: tuple[Column, ...],
    environment: Environment,
    oids: tuple[int, ...],
    *others: exp.Expr,
) -> Batch:
    """Plan the rows of an INSERT; a parameter in VALUES takes its column's type.

    `others` are trees with more parameters.
    """
    source = statement.source or exp.select(*(default_of(column, environment) for column in columns))
    environment = with_given_types(environment, oids)
    check_reads(source, environment)
    if statement.returning:
        check_relation(environment.catalog, environment.user, target, "SELECT", statement.table.position)
    rows = source.expressions if isinstance(source, exp.Values) else None
    if (
        lacks_columns(target)
        and statement.source is not None
        and (rows or (isinstance(source, exp.Query) and source.selects))
    ):
        raise Error("INSERT has more expressions than target columns", errors.SYNTAX_ERROR)
    identity = () if statement.overrides_identity or statement.source is None else always_identity(target, environment)
    check_given(columns, lambda place: rows is None or not all(is_default_at(row, place) for row in rows), identity)
    typed = typer(environment)
    source = prepared(source, environment, typed)
    if statement.source is not None and not lacks_columns(target):
        fit_values(source, target, columns, typed)
        read_in_fields(source, target, columns)
    types = [column.type for column in columns]

    def type_at(name: str, place: int) -> Type | None:
        return types[place] if place < len(types) else None

    assigned = assigned_values(source, type_at)
    if not isinstance(source, exp.Values):
        read_assigned(source, type_at, environment.scope.order)
    for row in source.find_all(exp.Tuple) if isinstance(source, exp.Values) else ():
        for value, column in zip(row.expressions, columns, strict=False):
            if is_default(value):
                value.replace(default_of(column, environment))
            elif value.is_string and column.type != VARCHAR:
                if not column.type.dimensions:
                    check_label(value.name, column.type, position_of(value))
                to, name = _cast_to(column.type)
                if not value.name:  # which stands for the texts of rows that are constants
                    read: exp.Expr = exp.Literal.string("")
                elif column.type in MOMENTS:
                    with at(value):
                        read = moment_value(value.name, column.type, environment.scope.order)
                else:
                    with at(value):
                        read = exp.Literal.string(engine_text(value.name, name, environment.scope.order))
                value.replace(exp.Cast(this=read, to=to.copy()))
            elif has_exponent(value) and column.type.name == "numeric":
                value.replace(exp.cast(exp.Literal.string(value.sql()), data_type(column.type)))
            elif column.type.is_float and (read := in_float_text(value)) is not value:
                value.replace(exp.cast(read, data_type(column.type)))
            elif is_row(value):
                value.replace(exp.cast(value.copy(), data_type(column.type)))
    is_constant = isinstance(source, exp.Values) and all(isinstance(node, _CONSTANT) for node in source.walk())
    constant_rows = rows_of(source) if is_constant else 0
    source = typed_for_writing(source, environment)
    parameters = _parameters(source, statement, target, environment, oids, assigned, *others)
    return written_batch(resolve_tables(source, environment), environment, parameters, constant_rows)


def checked_with(target: Relation, assigned: Collection[str]) -> set[str]:
    """Return the columns that are checked when some are assigned, for lengths and CHECK constraints."""
    limited = {column.name for column in target.visible if target.length_of(column) is not None}
    read = [columns_read(check.condition) for check in target.constraints.checks]
    return (limited & set(assigned)).union(*(names for names in read if names & set(assigned)))


def always_identity(target: Relation, environment: Environment) -> set[str]:
    """Return the columns that only take numbers of their sequences."""
    found = {s.sequence.column for s in environment.catalog.sequences_of(target) if s.sequence.identity == ALWAYS}
    return {column.name for column in target.visible if column.lake_name in found}


_CONSTANT = (
    exp.Values, exp.Tuple, exp.Literal, exp.Boolean, exp.Null, exp.Neg, exp.Paren, exp.Parameter, exp.Cast,
    exp.DataType, exp.DataTypeParam,
)  # fmt: skip


@lru_cache
def _cast_to(type_: Type) -> tuple[exp.DataType, str]:
    """Return a type for casts of text, and its name for `engine_text`; both take longer to make than to use."""
    return data_type(type_), text_name(type_)


def plan_change(
    statement: Update | Delete,
    target: Relation,
    environment: Environment,
    oids: tuple[int, ...] = (),
    most_places: int = 0,
    in_steps: bool = False,
) -> Change:
    """Plan an UPDATE or DELETE.

    Its query has the places of the rows if it names at most `most_places` keys. With `in_steps` it is a query of the
    rows to change in any case.

    Raises Error 0A000 for an append-only table or a column of the key, 42703.
    """
    refuse_append_only(target, statement.table)
    environment = with_given_types(environment, oids)
    check_reads(statement.tree, environment, statement.tree.this)
    if statement.returning:
        check_relation(environment.catalog, environment.user, target, "SELECT", statement.table.position)
    elif _reads_columns(statement.tree):
        check_columns_read(statement.tree, environment, [(statement.tree.this, target)])
    typed = typer(environment)
    written: exp.Expr = statement.tree
    if isinstance(statement, Update):
        written = with_whole_columns(written, target, alias_of(written.this))
    tree = prepared(written, environment, typed)
    if isinstance(statement, Update):
        fit_values(tree, target, (), typed)
    tree = typed_for_writing(tree, environment)
    types = {column.name: column.type for column in target.visible}
    assigned_types = assigned_values(tree, lambda name, place: types.get(name)) if isinstance(statement, Update) else {}
    parameters = _parameters(tree, statement, target, environment, oids, assigned_types)
    values = assignments(tree.expressions, target, environment) if isinstance(statement, Update) else {}
    defaults = {folded(item.this.this) for item in tree.expressions if is_default(item.expression)} if values else set()
    for name in (values.keys() - defaults) & always_identity(target, environment):
        detail = f'Column "{name}" is an identity column defined as GENERATED ALWAYS.'
        raise Error(f'column "{name}" can only be updated to DEFAULT', errors.GENERATED_ALWAYS, detail=detail)
    computed = generated_columns(target) if values else ()
    whens, assigned = (tree.key.upper(),), (*values, *(column.name for column in computed))
    needs_steps = (
        in_steps or bool(computed or checked_with(target, values)) or (isinstance(statement, Update) and not values)
    )
    is_alone = not other_tables(tree) and not environment.overlays
    changes = bool(values) or isinstance(statement, Delete)
    has_places = is_alone and changes and _names_keys(tree, target, most_places)
    if has_places or statement.returning or not is_alone or needs_steps or not _suits_ducklake(tree, target):
        query = _changed_rows(statement, tree, target, values, has_places)
        batch = staged_batch(query, target, environment, parameters, has_places)
        return Change(batch, False, whens, assigned, has_places)
    if values:
        columns = ((column, values[column.name]) for column in target.visible if column.name in values)
        items = [exp.EQ(this=identifier(c.name), expression=never_null(v, c, target)) for c, v in columns]
        tree.set("expressions", items)
    _read_values(tree, target)
    tree.this.replace(stored_table(target, alias_of(tree.this), environment))
    batch = written_batch(resolve_tables(tree, environment), environment, parameters)
    return Change(batch, True, whens, assigned)


def _suits_ducklake(tree: exp.Expr, target: Relation) -> bool:
    """Return whether DuckLake can run an UPDATE or DELETE, whose columns have the lake's names and types."""
    if any(column.lake_name != column.name or column.type.is_text_in_lake for column in target.columns):
        return False
    where = tree.args.get("where")
    return not target.is_renamed or where is None or where.find(exp.Query) is None


def _read_values(tree: exp.Expr, target: Relation) -> None:
    """Let the condition of an UPDATE or DELETE read columns by `Type.from_lake`."""
    types = {column.name: column.type for column in target.visible if not column.type.is_read_as_stored}
    where = tree.args.get("where")
    for column in [*where.find_all(exp.Column)] if where is not None and types else ():
        if (type_ := types.get(folded(column.this))) is not None:
            value = stored_value(type_, column)
            value.type = column.type
            column.replace(value)


def _names_keys(tree: exp.Expr, target: Relation, most: int) -> bool:
    """Return whether the condition of a statement has a key's columns as at most so many constants each."""
    where = tree.args.get("where")
    named = {_named_column(part, most) for part in conjuncts(where.this)} if where is not None else set()
    return bool(target.primary_key) and named >= {*target.primary_key}


def _named_column(condition: exp.Expr, most: int) -> str | None:
    """Return the column that is to have one of at most so many constants, if the condition is of this form."""
    match condition:
        case (
            exp.EQ(this=exp.Column() as column, expression=value)
            | exp.EQ(this=value, expression=exp.Column() as column)
        ):
            values = [value]
        case exp.In(this=exp.Column() as column):
            values = condition.expressions
        case _:
            return None
    is_constant = all(isinstance(node, _CONSTANT) for value in values for node in value.walk())
    return folded(column.this) if is_constant and 0 < len(values) <= most else None


def _changed_rows(
    statement: Update | Delete,
    tree: exp.Expr,
    target: Relation,
    values: dict[str, exp.Expr],
    has_places: bool,
) -> exp.Select:
    """Return the rows to change: updated rows in their new form, deleted ones in their old form."""
    alias, others = alias_of(tree.this), other_tables(tree)
    needed = {name for column in generated_columns(target) for name in (column.name, *read_by(column))}
    needed |= checked_with(target, values)
    is_whole = statement.returning or (has_places and values)
    kept = [column for column in target.visible if is_whole or column.name in needed | values.keys()]
    places = PLACES.items() if has_places else [(ROW, PLACES[ROW])]
    items = [named(exp.Literal.number(1), WHEN), *(named(place(name, target, alias), as_) for as_, name in places)]
    for column in kept:
        value = values.get(column.name, column_of(column.name, alias))
        read = in_float_text(value) if column.type.is_float else value
        items.append(named(read if read is value else exp.cast(read, data_type(column.type)), column.lake_name))
    for number, name in enumerate(_names(others) if statement.returning else ()):
        fields = exp.Columns(this=exp.Column(this=exp.Star(), table=identifier(name)), unpack=True)
        items.append(named(exp.Anonymous(this="struct_pack", expressions=[fields]), f"{SOURCE}{number}"))
    query = exp.select(*items)
    # The other tables come first, so that their joins are not joins with the changed table.
    for number, each in enumerate([*others, marked(tree.this)]):
        query = query.from_(each.copy()) if number == 0 else query.join(each.copy(), join_type="cross")
    query.set("where", tree.args.get("where"))
    query.set("with_", tree.args.get("with_"))
    if others:  # any one of the rows that match counts (PostgreSQL documentation, UPDATE)
        window = exp.Window(this=exp.RowNumber(), partition_by=[row_id(target, alias)])
        query.set("qualify", exp.Qualify(this=exp.EQ(this=window, expression=exp.Literal.number(1))))
    return query


def staged_batch(
    query: exp.Select,
    target: Relation,
    environment: Environment,
    parameters: tuple[Type, ...],
    has_places: bool = False,
) -> Batch:
    """Plan a query over the `marked` table and others. `has_places` tells whether it has the table's PLACES."""
    table = next(each for each in query.find_all(exp.Table) if each.meta.get(_TARGET))
    table.replace(stored_rows(target, alias_of(table), environment, has_places))
    return written_batch(resolve_tables(query, environment), environment, parameters)


# RETURNING.


def plan_returning(
    statement: Insert | Update | Delete,
    target: Relation,
    environment: Environment,
    parameters: tuple[Type, ...],
    is_staged: bool,
) -> Batch:
    """Plan RETURNING over the staged rows, or over all rows to describe it."""
    query = with_row_types(_returning(statement, environment), environment.catalog, environment.scope)
    found = origins_of(query, environment)
    if is_staged:
        _read_staged(query, statement, target)
    return replace(plan_query(query, environment, parameters=parameters), origins=found)


def _returning(statement: Insert | Update | Delete, environment: Environment) -> exp.Select:
    """Return RETURNING as a query over the table and the statement's other tables."""
    table = written_table(statement) if isinstance(statement, Insert) else statement.tree.this.copy()
    query = exp.select(*(item.copy() for item in statement.returning)).from_(table)
    for other in () if isinstance(statement, Insert) else other_tables(statement.tree):
        query = query.join(other.copy(), join_type="cross")
    if not isinstance(statement, Insert) and statement.tree.args.get("with_"):
        query.set("with_", statement.tree.args["with_"].copy())
    return resolve_references(query, environment.catalog, environment.scope)


def written_table(statement: Insert) -> exp.Table:
    """Return the table of an INSERT under the name that the rest of the statement uses."""
    name = statement.table
    table = exp.table_(name.name, db=name.schema, catalog=name.database, quoted=True)
    if statement.alias is not None:
        table.set("alias", exp.TableAlias(this=identifier(statement.alias)))
    return table


def _read_staged(query: exp.Expr, statement: Insert | Update | Delete, target: Relation) -> None:
    """Replace the tables by the staged rows, which also have the matching rows of the other tables."""
    alias = alias_of(query.args["from_"].this)
    others = _names([join.this for join in query.args.get("joins") or ()])
    rows = staged_rows(INSERTED if isinstance(statement, Insert) else CHANGED, target)
    query.set("from_", exp.From(this=rows.subquery(identifier(alias))))
    query.set("joins", None)
    query.set("with_", None)
    for number, name in enumerate(others):
        fields = exp.Anonymous(this="unnest", expressions=[column_of(f"{SOURCE}{number}")])
        source = exp.select(fields).from_(staged_table(CHANGED)).subquery(identifier(name))
        query.append("joins", exp.Join(this=source, method="POSITIONAL"))


def staged_rows(staged: str, target: Relation) -> exp.Select:
    """Return the rows of a temporary table under the table's column names; the temporary table has the lake's."""
    shown = (column for column in target.visible if not column.is_former)
    columns = (named(column_of(column.lake_name), column.name) for column in shown)
    return exp.select(*columns).from_(staged_table(staged))


def _parameters(
    query: exp.Expr,
    statement: Insert | Update | Delete,
    target: Relation,
    environment: Environment,
    oids: tuple[int, ...],
    assigned: Mapping[int, Type] | None = None,
    *others: exp.Expr,
) -> tuple[Type, ...]:
    """Return the types of the parameters in a query, in `others` and in RETURNING together."""
    types = [infer(query, environment, oids, assigned)]
    more = [*others, *([_returning(statement, environment)] if statement.returning else [])]
    types += [infer(each, environment, oids) for each in more]
    used = [{n for node in each.find_all(exp.Parameter) for n in parameter_numbers(node)} for each in (query, *more)]

    def type_of(number: int) -> Type:
        longest = max(types, key=len)
        return next(
            (each[number - 1] for each, own in zip(types, used, strict=True) if number in own), longest[number - 1]
        )

    return tuple(map(type_of, range(1, max(map(len, types)) + 1)))


def _names(sources: list[exp.Expr]) -> tuple[str, ...]:
    """Return the names of the tables in a FROM. Raises Error 0A000 for a join in parentheses."""

    def each(source: exp.Expr) -> Iterator[str]:
        if not source.alias_or_name:
            raise unsupported("RETURNING with a join in parentheses", source)
        alias = source.args.get("alias")
        yield folded(alias.this if alias else source.this)
        for join in source.args.get("joins") or ():
            yield from each(join.this)

    return tuple(name for source in sources for name in each(source))


def _reads_columns(tree: exp.Expr) -> bool:
    """Return whether a write reads stored values, which its effect would reveal."""
    read = [tree.args.get("where"), *(assignment.expression for assignment in tree.expressions)]
    return any(part is not None and part.find(exp.Column) for part in read)


# Syntax.

_TARGET = "target"


def marked(table: exp.Expr) -> exp.Expr:
    """Mark the table that a statement changes, to find it in a query later."""
    table.meta[_TARGET] = True
    return table
