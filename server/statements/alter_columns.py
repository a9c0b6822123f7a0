"""ALTER TABLE of columns and constraints.

Existing views stay as they are: they read the table with the columns of the time when they were made
(`catalog.model.Relation.as_of`), and a column that a view reads cannot be dropped or get another type.

A rename changes the catalog only. An action that changes the lake's table runs while no other session writes the table
or makes a view over it, after all views have applied the table's changes, in one transaction with the catalog.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

from sparkwave.catalog import errors
from sparkwave.catalog.errors import Error, used
from sparkwave.catalog.model import NO_COLUMN, Column, Relation, constraints_id, lacks_columns, no_column
from sparkwave.catalog.names import quote
from sparkwave.catalog.relation_details import Check, ForeignKey
from sparkwave.catalog.stores.column_store import add_lake_column, allow_lake_nulls, drop_lake_column, free_lake_name
from sparkwave.catalog.stores.comment_store import forget_constraints, put_comment, rename_comment
from sparkwave.catalog.stores.placing import place
from sparkwave.catalog.stores.relation_store import alter_columns, drop_relation
from sparkwave.catalog.stores.user_store import move_column_grants
from sparkwave.executor.epochs.standstill import standing_still
from sparkwave.planner.batch.interval_fields import in_fields, modifier_of_column
from sparkwave.planner.batch.values import default_of
from sparkwave.planner.bind.privileges import check_owner
from sparkwave.planner.definitions.counting import draws
from sparkwave.planner.definitions.indexes import with_names
from sparkwave.planner.definitions.sinks import leaves_out_numbers, written_columns
from sparkwave.planner.definitions.table_definition import rename_column, with_text
from sparkwave.planner.functions.unstable import random_call
from sparkwave.planner.parse.generated import columns_read
from sparkwave.planner.parse.statement import parse_statement
from sparkwave.planner.parse.table import check_watermark_type, shown_default
from sparkwave.planner.parse.trees import parse_tree
from sparkwave.planner.plan.replacement import relaxed_readers
from sparkwave.planner.statements import (
    AddColumn,
    AddConstraint,
    AlterTable,
    ColumnAction,
    CreateIndex,
    CreateMaterializedView,
    CreateSink,
    DeclaredKey,
    DropColumn,
    DropConstraint,
    Name,
    RenameColumn,
    RenameConstraint,
    SetDefault,
    SetNotNull,
    SetType,
    SetWatermark,
)
from sparkwave.server.session.session import Session
from sparkwave.server.statements.alter_constraints import (
    add_check,
    with_constraint_name,
    with_length,
    without_column,
    without_constraint,
)
from sparkwave.server.statements.column_types import set_type
from sparkwave.server.statements.named_relations import find_to_alter
from sparkwave.server.statements.new_relations import refuse_padded
from sparkwave.server.statements.renames import with_shown
from sparkwave.server.statements.sequences import settled_default
from sparkwave.server.statements.sources import check_altered, refuse_altering
from sparkwave.server.statements.streaming_jobs import create_streaming
from sparkwave.server.statements.table_change import TableChange, drop_unread, drop_views, evaluated
from sparkwave.server.statements.table_keys import depended_on, described, unenforced, with_keys, with_table
from sparkwave.server.wire.result import Notice, Result


def alter_table(session: Session, statement: AlterTable) -> Result:
    """Run all actions of an ALTER TABLE, or none.

    Raises Error 42P01, 42809, 42501; 55006 while a view over the table is being created; the errors of each action.
    """
    tag = f"ALTER_{statement.kind.upper()}"
    try:
        table = _find(session, statement)
    except Error as error:
        if not statement.if_exists or error.sqlstate not in errors.MISSING:
            raise
        return Result(tag, notices=[Notice(f'relation "{statement.name}" does not exist, skipping')])
    in_lake = any(_is_in_lake(action, table) for action in statement.actions)
    context = session.context
    alone = standing_still(context.coordinator, context.store, [table], session.running.is_cancelled)
    with alone if in_lake else contextlib.nullcontext():
        with context.store.change() as cursor:
            found = _find(session, statement)  # again, since another session may have changed it meanwhile
            if found.id != table.id:
                message = f'another table has just become "{statement.name}"'
                raise Error(message, errors.NOT_IN_PREREQUISITE_STATE, hint="Try again.")
            change = TableChange(session, cursor, found, session.context.store.next_id(cursor), [], [], {}, [])
            if in_lake:
                _refuse_creating_readers(change)
            refuse_altering(session, found, statement.actions)
            for action in statement.actions:
                change.table = _ACTIONS[type(action)](change, action)
            altered = with_text(change.table, with_table(session.context.store.catalog, change.table))
            check_altered(session, altered)
            alter_columns(session.context.store, cursor, altered)
            _show_anew(change, found, altered)
            _store_referencing(change, found, altered)
        for relation in change.dropped:
            session.context.plans.forget(relation.id)
    _make_again(session, change)
    return Result(tag, notices=[*change.notices, *unenforced(_declared(statement))])


def _make_again(session: Session, change: TableChange) -> None:
    """Make the indexes that had to go for the change. The table has changed, so that a failure is a WARNING."""
    for index in change.released:
        made = parse_statement(index.shown or index.definition)
        assert isinstance(made, CreateIndex)
        name, table = (Name(None, each.schema, each.name, 0) for each in (index, change.table))
        try:
            create_streaming(session, replace(made, name=name, table=table))
        except Error as error:
            message = f'index "{index.name}" is gone, because it could not be made again: {error.message}'
            change.notices.append(Notice(message, "WARNING", error.sqlstate))


def _declared(statement: AlterTable) -> Iterator[DeclaredKey]:
    for action in statement.actions:
        if isinstance(action, AddColumn):
            yield from action.column.keys
        elif isinstance(action, AddConstraint) and not isinstance(action.constraint, Check):
            yield action.constraint


def _store_referencing(change: TableChange, before: Relation, table: Relation) -> None:
    """Store the tables whose foreign keys to the altered table have changed, or name a column that is renamed.

    Comments on dropped constraints are dropped, too.
    """
    catalog = with_table(change.session.context.store.catalog, table)
    names = {column.lake_name: column.name for column in before.columns}
    is_renamed = any(names.get(column.lake_name, column.name) != column.name for column in table.columns)
    found = {each.id: each for each, _ in catalog.foreign_keys_to(table.id) if is_renamed and each.id != table.id}
    place(change.cursor, (with_text(each, catalog) for each in (found | change.referencing).values()))
    forget_constraints(change.cursor, before, table)
    for each in change.referencing.values():
        forget_constraints(change.cursor, catalog.by_id[each.id], each)


def _show_anew(change: TableChange, before: Relation, table: Relation) -> None:
    """Store the definitions of relations that name the table, as SHOW CREATE prints them from now on."""
    after = with_table(change.catalog, table)
    present = {column.lake_name: column.name for column in table.columns}
    names = {column.name: present.get(column.lake_name, column.name) for column in before.columns}
    readers = (replace(r, details=with_names(r.index, names)) if r.is_index else r for r in after.dependents(table.id))
    place(change.cursor, with_shown(readers, after))


def _find(session: Session, statement: AlterTable) -> Relation:
    name = statement.name
    table = find_to_alter(session, name, statement.kind)
    if table.kind != statement.kind:
        raise Error(f'"{name}" is not a {statement.kind}', errors.WRONG_OBJECT_TYPE, position=name.position)
    check_owner(session.user, table.securable, name.position)
    return table


def _is_in_lake(action: ColumnAction, table: Relation) -> bool:
    checks = [check.name for check in table.constraints.checks]
    match action:
        case RenameColumn() | SetDefault() | SetWatermark():
            return False
        case AddConstraint(constraint):
            return isinstance(constraint, Check)
        case DropConstraint(name) | RenameConstraint(name):
            return name in checks  # every writer of the table enforces CHECKs
    return True


def _refuse_creating_readers(change: TableChange) -> None:
    catalog = change.session.context.store.catalog
    creating = [r for r in catalog.dependents(change.table.id) if not r.created]
    if creating:
        raise Error(
            f'cannot alter table "{change.table.name}" because a view that reads it is still being created',
            errors.OBJECT_IN_USE,
            detail="\n".join(f"{r.kind} {r.qualified_name} is still being created" for r in creating),
            hint=f"WAIT waits for it, CANCEL JOBS {', '.join(str(r.id) for r in creating)} ends it.",
        )


def _add(change: TableChange, action: AddColumn) -> Relation:
    """Add a column; stored rows get its default, computed once.

    Raises Error 42701, 0A000, and the default's errors.
    """
    definition = action.column
    try:
        change.check_free(definition.name, action.position)
    except Error as error:
        if not action.if_not_exists or error.sqlstate != errors.DUPLICATE_COLUMN:
            raise
        change.notices.append(Notice(f"{error.message}, skipping"))
        return change.table
    table = change.table
    refuse_padded([definition])
    if definition.counts is not None:
        message = f"adding a column that counts, as {definition.name} does, is not supported"
        raise Error(message, errors.FEATURE_NOT_SUPPORTED, hint="Make another table with it, and INSERT the rows.")
    if definition.length is not None and definition.default is not None and not definition.type.is_text:
        message = "adding a column of times with digits and a default is not supported"
        raise Error(message, errors.FEATURE_NOT_SUPPORTED, hint="Set the default afterwards.")
    made_as = free_lake_name(table, definition.name, change.id)
    default = definition.default
    default = default if draws(default) else settled_default(change.session, default)
    made_as_ = None if made_as == definition.name else made_as
    column = replace(definition.column, default=default, made_as=made_as_, since=change.id)
    add_lake_column(change.cursor, table, column, _stored_value(change, column))
    if lacks_columns(table):
        (none,) = table.visible
        drop_lake_column(change.cursor, table, none)
        columns = tuple(each for each in table.columns if each is not none)
        table = replace(table, columns=columns, dropped=(*table.dropped, none.lake_name))
    hidden = tuple(each for each in table.columns if each.is_hidden)
    change.table = with_length(replace(table, columns=(*table.visible, column, *hidden)), column, definition.length)
    for check in definition.checks:
        change.table = add_check(change.session, change.cursor, change.table, check)
    return with_keys(change.session, change.cursor, change.table, definition.keys)


def _stored_value(change: TableChange, column: Column) -> str | None:
    """Return the default's value as text.

    Raises Error 0A000 for a default that differs from row to row, 23502 for a missing value.
    """
    if column.default is None:
        return None
    if random_call(default_of(column, change.session.environment)) is not None or draws(column.default):
        raise Error(
            f"adding a column with the default {column.default} is not supported",
            errors.FEATURE_NOT_SUPPORTED,
            hint="Add the column without DEFAULT, UPDATE the table, and then ALTER COLUMN … SET DEFAULT.",
        )
    row = evaluated(change, column)
    if row is None and column.not_null:
        message = f'column "{column.name}" of relation "{change.table.name}" contains null values'
        raise Error(message, errors.NOT_NULL_VIOLATION)
    return row


def _drop(change: TableChange, action: DropColumn) -> Relation:
    """Drop a column.

    Raises Error 42703, 2BP01 without CASCADE for a column that a view reads or a sink writes, 0A000 for one of the key.
    """
    try:
        column = change.column(action.name, action.position)
    except Error as error:
        if not action.if_exists:
            raise
        change.notices.append(Notice(f"{error.message}, skipping"))
        return change.table
    _refuse_drop(change, column, action.position)
    change.release(column, is_dropped=True)
    drop_unread(change)
    formers = [c for c in change.table.columns if c.is_former and column.name in columns_read(c.generated or "")]
    readers, computed = change.readers(column), change.computed_from(column)
    readers += [reader for former in formers for reader in change.readers(former)]
    keys = [(t, key) for t, key in change.foreign_keys() if _references(key, change.table, column)]
    if (readers or computed or keys) and not action.cascade:
        _refuse_written(readers, change.table, action.position)
        on = f"column {column.name} of table {change.table.name}"
        depending = [f"column {c.name} of table {change.table.name}" for c in computed]
        depending += [described(change.session, key, table) for table, key in keys]
        depending += [f"{r.kind} {r.qualified_name}" for r in readers]
        raise depended_on(on, [f"{each} depends on {on}" for each in depending], position=action.position)
    change.drop_foreign_keys(keys)
    for each in computed:
        change.table = _drop(change, DropColumn(each.name, action.position, cascade=True))
    drop_views(change, readers)
    drop_unread(change)
    if change.table.visible == (column,):
        change.table = _with_no_column(change)
    drop_lake_column(change.cursor, change.table, column)
    for sequence in change.session.context.store.catalog.sequences_of(change.table, column):
        drop_relation(change.session.context.store, change.cursor, sequence)
    put_comment(change.cursor, change.table.id, column.name, None)
    move_column_grants(change.cursor, change.table.id, column.name, None)
    columns = tuple(each for each in change.table.columns if each.name != column.name)
    table = without_column(change.table, column)
    return replace(table, columns=columns, dropped=(*change.table.dropped, column.lake_name))


def _references(key: ForeignKey, table: Relation, column: Column) -> bool:
    """Return whether a foreign key to the table depends on a column, also by a UNIQUE that goes with the column."""
    name, uniques = column.lake_name, table.constraints.uniques
    gone = [unique.id for unique in uniques if name in (*unique.columns, *unique.included)]
    return name in key.parent_columns or key.parent_key in gone


def _with_no_column(change: TableChange) -> Relation:
    """Add the hidden column of a table without columns, before the last column is dropped."""
    name = free_lake_name(change.table, NO_COLUMN, change.id)
    none = replace(no_column(), made_as=name, since=change.id)
    add_lake_column(change.cursor, change.table, none, None)
    return replace(change.table, columns=(none, *change.table.columns))


def _refuse_written(readers: list[Relation], table: Relation, position: int) -> None:
    """Raise Error 2BP01 if one of the `readers` is a sink into the table."""
    sinks = [reader for reader in readers if reader.target == table.id]
    if sinks:
        raise Error(
            "dropping columns in target table of sinks is not supported",
            errors.DEPENDENT_OBJECTS_STILL_EXIST,
            detail="\n".join(f"sink {sink.qualified_name} writes it" for sink in sinks),
            hint="Drop the sink first; or use DROP ... CASCADE to drop it too.",
            position=position,
        )


def _refuse_drop(change: TableChange, column: Column, position: int) -> None:
    table, why = change.table, None
    if column.name in table.primary_key:
        why = "it is part of the primary key"
    elif table.watermark is not None and table.watermark.column == column.name:
        why = "the table's watermark is on it"
    elif column.name in table.conflict.versions:
        why = "it is a version column"
    if why is not None:
        message = f'cannot drop column "{column.name}" of table "{table.name}": {why}'
        raise Error(message, errors.FEATURE_NOT_SUPPORTED, position=position)


def _rename(change: TableChange, action: RenameColumn) -> Relation:
    """Rename a column; views keep their own names for it. Raises Error 42703, 42701, 42611."""
    column = change.column(action.name, action.position)
    if action.new_name.lower() != column.name.lower() or action.new_name == column.name:
        change.check_free(action.new_name, action.new_position)
    rename_comment(change.cursor, change.table.id, column.name, action.new_name)
    move_column_grants(change.cursor, change.table.id, column.name, action.new_name)
    return rename_column(change.table, column, action.new_name, change.id)


def _set_default(change: TableChange, action: SetDefault) -> Relation:
    """Set the default of future rows. Raises Error 42703, 42601 for a generated column, and the default's errors."""
    column = change.column(action.name, action.position)
    if column.generated is not None:
        message = f'column "{column.name}" of relation "{change.table.name}" is a generated column'
        raise Error(message, errors.SYNTAX_ERROR, position=action.position)
    after = replace(column, default=settled_default(change.session, _in_fields(action.default, column, change.table)))
    if after.default is not None:
        evaluated(change, after)  # raises if the value does not fit the type
        sinks = (r for r in change.session.context.store.catalog.relations if r.target == change.table.id)
        if draws(after.default) and any(column not in written_columns(sink, change.table) for sink in sinks):
            raise leaves_out_numbers(column, action.position)
    return change.replaced(column, after)


def _in_fields(default: str | None, column: Column, table: Relation) -> str | None:
    """Return a default; a text for a column of intervals is read by the fields of the column."""
    if default is None or modifier_of_column(column, table) is None:
        return default
    value = parse_tree(f"SELECT {default}").expressions[0]
    made = in_fields(value, column, table)
    return default if made is value else shown_default(made)


def _set_not_null(change: TableChange, action: SetNotNull) -> Relation:
    """Set or drop NOT NULL.

    What reads a column that can be NULL from now on may have NULLs, too. Raises Error 42703, 23502 for stored NULLs,
    42P16 for a key, and 2BP01 as `relaxed_readers`.
    """
    column = change.column(action.name, action.position)
    if action.not_null:
        where = f"{quote(column.lake_name)} IS NULL"
        query = f"SELECT 1 FROM {change.table.lake_name} WHERE {where} LIMIT 1"
        if change.cursor.execute(query).fetchone() is not None:
            message = f'column "{column.name}" of relation "{change.table.name}" contains null values'
            raise Error(message, errors.NOT_NULL_VIOLATION, position=action.position)
    else:
        if column.name in change.table.primary_key:
            message = f'column "{column.name}" is in a primary key'
            raise Error(message, errors.INVALID_TABLE_DEFINITION, position=action.position)
        if column.not_null:
            after = change.replaced(column, replace(column, not_null=False))
            for reader in relaxed_readers(change.table, after, change.catalog):
                change.session.context.store.replace_columns(change.cursor, reader)
            allow_lake_nulls(change.cursor, change.table, column)
    return change.replaced(column, replace(column, not_null=action.not_null))


def _add_constraint(change: TableChange, action: AddConstraint) -> Relation:
    """Add a CHECK, or a key as `with_keys` does. Raises Error 23514 for a stored row, 42710, 42703, 42804."""
    if isinstance(action.constraint, Check):
        return add_check(change.session, change.cursor, change.table, action.constraint)
    return with_keys(change.session, change.cursor, change.table, [action.constraint])


def _drop_constraint(change: TableChange, action: DropConstraint) -> Relation:
    """Drop a constraint.

    Raises Error 42704, 0A000 for the primary key, 2BP01 without CASCADE for a UNIQUE that a foreign key references.
    """
    ids = [unique.id for unique in change.table.constraints.uniques if unique.name == action.name]
    keys = [(table, key) for table, key in change.foreign_keys() if key.parent_key in ids]
    if keys and not action.cascade:
        lines = [f"{described(change.session, key, table)} depends on index {action.name}" for table, key in keys]
        what = f"constraint {action.name} on table {change.table.name}"
        raise depended_on(what, lines, position=action.position)
    change.drop_foreign_keys(keys)
    try:
        return without_constraint(change.table, action.name, action.position)
    except Error as error:
        if not action.if_exists or error.sqlstate != errors.UNDEFINED_OBJECT:
            raise
        change.notices.append(Notice(f"{error.message}, skipping"))
        return change.table


def _rename_constraint(change: TableChange, action: RenameConstraint) -> Relation:
    """Rename a constraint. Raises the errors of `with_constraint_name`."""
    catalog = change.session.context.store.catalog
    rename_comment(change.cursor, constraints_id(change.table), action.name, action.new_name)
    return with_constraint_name(change.table, catalog, action.name, action.new_name, action.position)


def _set_watermark(change: TableChange, action: SetWatermark) -> Relation:
    """Give the watermark another delay.

    Raises Error 42704 for a column without one, 42804, 0A000 for adding or leaving out WITH TTL, and 2BP01 where a view
    emits its rows by the watermark: its plan has the delay.
    """
    table, name = change.table, action.watermark.column
    if table.watermark is None or table.watermark.column != name:
        message = f'no watermark defined on column "{name}"'
        raise Error(message, errors.UNDEFINED_OBJECT, position=action.position)
    check_watermark_type(action.watermark, action.text, change.column(name, action.position).type, action.position)
    if action.has_ttl == table.append_only:
        message = "toggling WITH TTL of a watermark is not supported"
        raise Error(message, errors.FEATURE_NOT_SUPPORTED, position=action.position)
    waiting = [r for r in change.session.context.store.catalog.dependents(table.id) if _emits_on_window_close(r)]
    if waiting and table.watermark != action.watermark:
        raise used("watermark", [f"{r.kind} {r.qualified_name}" for r in waiting], "Drop them first.", action.position)
    return replace(table, watermark=action.watermark)


def _emits_on_window_close(relation: Relation) -> bool:
    statement = parse_statement(relation.definition)
    return isinstance(statement, CreateMaterializedView | CreateSink) and statement.emit_on_window_close


_ACTIONS: dict[type, Callable[[TableChange, Any], Relation]] = {
    AddColumn: _add,
    DropColumn: _drop,
    RenameColumn: _rename,
    SetType: set_type,
    SetDefault: _set_default,
    SetNotNull: _set_not_null,
    AddConstraint: _add_constraint,
    DropConstraint: _drop_constraint,
    RenameConstraint: _rename_constraint,
    SetWatermark: _set_watermark,
}
