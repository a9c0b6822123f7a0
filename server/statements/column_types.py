"""ALTER COLUMN TYPE: a wider type in place, or another one, for which the table is written anew."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from sparkwave.catalog import errors
from sparkwave.catalog.errors import Error
from sparkwave.catalog.lake.ducklake import Cursor
from sparkwave.catalog.lake.translation import DuckDBError
from sparkwave.catalog.model import Column, Relation, former_name
from sparkwave.catalog.names import quote, quote_if_needed
from sparkwave.catalog.stores.column_store import (
    add_lake_column,
    cannot_widen,
    drop_lake_column,
    free_lake_name,
    holds,
    widen_lake_column,
)
from sparkwave.catalog.types import Type
from sparkwave.planner.batch.values import cast_text, transformed_value
from sparkwave.planner.bind.key_resolution import check_types
from sparkwave.planner.definitions.counting import draws
from sparkwave.planner.parse.constraints import no_padded_type
from sparkwave.planner.parse.generated import columns_read, is_column
from sparkwave.planner.statements import SetType
from sparkwave.server.statements.alter_constraints import check_lengths, check_rows, with_lake_column, with_length
from sparkwave.server.statements.table_change import TableChange, drop_unread, evaluated


def set_type(change: TableChange, action: SetType) -> Relation:
    """Give a column a wider type, or another one, for which the table is written anew.

    Raises Error 42703, 0A000 also for a column that a view or generated column reads. Views may read
    a column whose length alone changes.
    """
    column = change.column(action.name, action.position)
    becomes = action.type == column.type or holds(action.type, column.type) or _becomes(column.type, action.type)
    if becomes and action.using is not None and is_column(action.using, column.name, action.type):
        action = replace(action, using=None)
    if action.using is None and (column.type, change.table.length_of(column)) == (action.type, action.length):
        return change.table
    if action.is_padded:
        raise no_padded_type(action.position)
    is_changed = action.type != column.type or action.using is not None
    readers = change.readers(column) if is_changed else []
    if readers and (action.using is not None or not _keeps_former(column.type, action.type, readers)):
        change.release(column)
        if readers := change.readers(column):
            raise Error(
                "cannot alter type of a column used by a view or rule",
                errors.FEATURE_NOT_SUPPORTED,
                detail="\n".join(f'{r.kind} {r.qualified_name} depends on column "{column.name}"' for r in readers),
                position=action.position,
            )
    if computed := change.computed_from(column):
        detail = f'Column "{column.name}" is used by generated column "{computed[0].name}".'
        message = "cannot alter type of a column used by a generated column"
        raise Error(message, errors.FEATURE_NOT_SUPPORTED, detail=detail, position=action.position)
    if action.using is not None or readers or (action.type != column.type and not holds(action.type, column.type)):
        return _rewrite(change, column, action, bool(readers))
    if action.type.duckdb() != column.type.duckdb():
        widen_lake_column(change.cursor, change.table, column, action.type)
    table = with_length(change.replaced(column, replace(column, type=action.type)), column, action.length)
    check_lengths(change.cursor, table, column)
    _check_key_types(change, table)
    return table


def _check_key_types(change: TableChange, table: Relation) -> None:
    """Raise Error 42804 if the types of foreign keys of the altered table, or to it, do not fit any more."""
    change.table = table
    catalog = change.catalog
    for key in table.constraints.foreign_keys:
        check_types(key, table, catalog.by_id[key.parent])
    for other, key in change.foreign_keys():
        check_types(key, other, table)


# The types to which values of another type are assigned without a cast, as in PostgreSQL.
_NUMBERS = frozenset({"smallint", "integer", "bigint", "real", "double precision", "numeric"})
_MOMENTS = frozenset({"date", "timestamp without time zone", "timestamp with time zone"})
_DOCUMENTS = frozenset({"json", "jsonb"})


def _becomes(source: Type, target: Type) -> bool:
    """Return whether values of a type can become those of another type in a table."""
    if target.named is not None or any(type_.dimensions or type_.fields for type_ in (source, target)):
        return False
    return target.is_text or any({source.name, target.name} <= names for names in (_NUMBERS, _MOMENTS, _DOCUMENTS))


def _has_other_fields(source: Type, target: Type) -> bool:
    """Return whether two types differ in the fields of structs alone, and fields of one name have one type."""
    if source == target:
        return True
    if source.dimensions != target.dimensions or source.named is not None or target.named is not None:
        return False
    before, folded = dict(source.fields), {name.lower(): name for name, _ in source.fields}
    same = [(before[name], type_) for name, type_ in target.fields if name in before]
    # DuckDB's cast takes the fields by their names without case, and needs one at least.
    is_clear = all(folded.get(name.lower(), name) == name for name, _ in target.fields)
    return bool(same) and is_clear and all(_has_other_fields(*pair) for pair in same)


def _is_relied_on(change: TableChange, column: Column) -> bool:
    """Return whether a key, a watermark, a version or a sink relies on the type of a column, or it is generated."""
    table = change.table
    names = {*table.key, *table.conflict.versions, *((table.watermark and [table.watermark.column]) or ())}
    is_target = any(relation.target == table.id for relation in change.session.context.store.catalog.relations)
    return column.name in names or column.generated is not None or is_target


def _check_default(change: TableChange, column: Column, target: Type, position: int) -> None:
    """Raise Error 42804 for a default that is no value of a column's new type."""
    try:
        if column.default is not None and not draws(column.default):
            evaluated(change, replace(column, type=target))
    except (Error, DuckDBError) as error:
        message = f'default for column "{column.name}" cannot be cast automatically to type {target.shown}'
        raise Error(message, errors.DATATYPE_MISMATCH, position=position) from error


def _keeps_former(source: Type, target: Type, readers: Iterable[Relation]) -> bool:
    """Return whether a column's values of an earlier type can be kept, and computed by writes, for their readers.

    The fields of its structs alone may change, as in RisingWave.
    """
    is_read = all(reader.kind in ("view", "materialized view", "index", "sink") for reader in readers)
    return (
        is_read and _holds_struct(source) and _has_other_fields(source, target) and source.in_lake() == source.duckdb()
    )


def _holds_struct(type_: Type) -> bool:
    return type_.name == "struct" or any(_holds_struct(field) for _, field in type_.fields)


def _rewrite(change: TableChange, column: Column, action: SetType, is_read: bool = False) -> Relation:
    """Give a column another type: its values are cast into a new column of the lake table, which takes its place.

    If the column `is_read`, its old values stay in a hidden column, which later writes compute.

    Raises Error 0A000 for a type without such values, or a column that other objects rely on, and the cast's errors.
    """
    drop_unread(change)
    table, target = change.table, action.type
    restructures = _has_other_fields(column.type, target)
    formers = [each for each in table.columns if each.is_former and column.name in columns_read(each.generated or "")]
    for each in formers:
        if not _has_other_fields(target, each.type):
            readers = change.readers(each)
            raise Error(
                "cannot alter type of a column used by a view or rule",
                errors.FEATURE_NOT_SUPPORTED,
                detail="\n".join(f"{r.kind} {r.qualified_name} reads it as {each.type}" for r in readers),
                position=action.position,
            )
    becomes = action.using is not None or restructures or _becomes(column.type, target)
    if not becomes and not any(type_.dimensions or type_.fields for type_ in (column.type, target)):
        message = f'column "{column.name}" cannot be cast automatically to type {target.shown}'
        hint = f'You might need to specify "USING {quote_if_needed(column.name)}::{target.shown}".'
        raise Error(message, errors.DATATYPE_MISMATCH, hint=hint, position=action.position)
    if not becomes or _is_relied_on(change, column):
        error = cannot_widen(column, target)
        error.position = action.position
        raise error
    _check_default(change, column, target, action.position)
    if restructures and any(each.since == change.id for each in table.columns):
        # DuckLake (DuckDB 1.5.5) cannot merge the statistics of a second change of rows that adds a struct.
        message = f'changing the fields of column "{column.name}" after another column is not supported'
        hint = "Change them in a statement of their own, or as its first part."
        raise Error(message, errors.FEATURE_NOT_SUPPORTED, hint=hint, position=action.position)
    if action.using is not None:
        names = {each.name: each.lake_name for each in table.visible}
        for unknown in sorted(columns_read(action.using) - names.keys()):
            message = f'column "{unknown}" does not exist'
            raise Error(message, errors.UNDEFINED_COLUMN, position=action.using_position)
        changed = [each.name for each in table.visible if each.since == change.id]
        if not columns_read(action.using).isdisjoint(changed):  # PostgreSQL's expression reads it as it was
            message = f'column "{column.name}" cannot be computed from one that the same statement changes'
            hint = "Change them in statements of their own."
            raise Error(message, errors.FEATURE_NOT_SUPPORTED, hint=hint, position=action.using_position)
        values: str = transformed_value(action.using, target, table.visible, change.session.environment, names)
    elif restructures:
        values = f"CAST({quote(column.lake_name)} AS {target.duckdb()})"
    else:
        values = cast_text(column.from_lake, column.type, target)
    with change.session.context.lake.inlining.off([target]):
        altered, made = rewritten_column(change.cursor, table, column, target, values, change.id, is_read)
    for other in {other.id: other for other, _ in change.foreign_keys()}.values():
        change.put_referencing(with_lake_column(other, table.id, column.lake_name, made.lake_name))
    altered = with_length(with_lake_column(altered, table.id, column.lake_name, made.lake_name), made, action.length)
    check_lengths(change.cursor, altered, made)
    for check in altered.constraints.checks:
        if column.name in columns_read(check.condition):
            check_rows(change.session, change.cursor, altered, check)
    _check_key_types(change, altered)
    return altered


def rewritten_column(
    cursor: Cursor, table: Relation, column: Column, target: Type, values: str, change: int, keeps_former: bool = False
) -> tuple[Relation, Column]:
    """Write a column of a table's rows anew, as another type, from SQL over its lake table.

    Returns the table, and the column that replaces the old one from the change with this id on. `keeps_former` keeps
    the values of the former type in a hidden column.
    """
    made_as = free_lake_name(table, column.name, change)
    made = replace(column, type=target, made_as=None if made_as == column.name else made_as, since=change, former=())
    add_lake_column(cursor, table, made, None)
    cursor.execute(f"UPDATE {table.lake_name} SET {quote(made.lake_name)} = {values}")
    if keeps_former:
        former = replace(
            column,
            name=former_name(column.name, change),
            is_hidden=True,
            not_null=False,
            generated=quote_if_needed(column.name),
            made_as=column.lake_name,
            former=(*column.former, (column.name, change)),
        )
        columns = tuple(new for c in table.columns for new in ((former, made) if c.name == column.name else (c,)))
        return replace(table, columns=columns), made
    drop_lake_column(cursor, table, column)
    columns = tuple(made if each.name == column.name else each for each in table.columns)
    return replace(table, columns=columns, dropped=(*table.dropped, column.lake_name)), made
