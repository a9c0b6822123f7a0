"""Adds and drops constraints of a table, and checks that its stored rows meet them."""

from __future__ import annotations

from dataclasses import replace
from typing import TypeVar

from sparkwave.catalog import errors
from sparkwave.catalog.errors import Error
from sparkwave.catalog.lake.ducklake import Cursor
from sparkwave.catalog.model import Catalog, Column, Relation
from sparkwave.catalog.names import quote
from sparkwave.catalog.relation_details import Check, ForeignKey, Unique
from sparkwave.planner.batch.values import condition_text
from sparkwave.planner.bind.key_resolution import check_free, check_no_relation
from sparkwave.planner.definitions.table_definition import with_constraints
from sparkwave.planner.parse.constraints import named_checks
from sparkwave.planner.parse.generated import columns_read
from sparkwave.server.session.session import Session
from sparkwave.server.statements.tables import settled_check, try_check
from sparkwave.server.writes.row_checks import too_long


def add_check(session: Session, cursor: Cursor, table: Relation, check: Check) -> Relation:
    """Return the table with a CHECK. Raises Error 23514 for a stored row, 42710 for a name in use, 42703, 42804."""
    there = table.constraints
    taken = [*there.names, table.key_index or ""]
    check_free(table, check.name, taken)
    check = settled_check(session, check, table.visible)
    [made] = named_checks(table.name, [check], [column.name for column in table.visible], taken)
    check_rows(session, cursor, table, made)
    return with_constraints(table, replace(there, checks=(*there.checks, made)))


def check_rows(session: Session, cursor: Cursor, table: Relation, check: Check) -> None:
    """Check that the stored rows of a table meet a CHECK. Raises Error 23514, and those of the condition."""
    listed = ", ".join(f"{quote(column.lake_name)} AS {quote(column.name)}" for column in table.visible)
    rows = f"(SELECT {listed} FROM {table.lake_name}) AS stored"
    try_check(session, cursor, check, table.visible, rows)
    condition = condition_text(check.condition, table.visible, session.environment)
    if cursor.execute(f"SELECT 1 FROM {rows} WHERE NOT ({condition}) LIMIT 1").fetchone() is not None:
        message = f'check constraint "{check.name}" of relation "{table.name}" is violated by some row'
        raise Error(message, errors.CHECK_VIOLATION)


def without_constraint(table: Relation, name: str, position: int) -> Relation:
    """Return the table without a constraint. Raises Error 42704 for an unknown one, 0A000 for the primary key."""
    if name == table.key_index:
        message = "dropping the primary key is not supported"
        raise Error(message, errors.FEATURE_NOT_SUPPORTED, position=position)
    there = table.constraints
    if name not in there.names:
        message = f'constraint "{name}" of relation "{table.name}" does not exist'
        raise Error(message, errors.UNDEFINED_OBJECT, position=position)
    return with_constraints(
        table,
        replace(
            there,
            checks=_without(there.checks, name),
            uniques=_without(there.uniques, name),
            foreign_keys=_without(there.foreign_keys, name),
        ),
    )


Named = TypeVar("Named", Check, Unique, ForeignKey)


def _without(listed: tuple[Named, ...], name: str) -> tuple[Named, ...]:
    return tuple(each for each in listed if each.name != name)


def _renamed(listed: tuple[Named, ...], name: str, new_name: str) -> tuple[Named, ...]:
    return tuple(replace(each, name=new_name) if each.name == name else each for each in listed)


def with_constraint_name(table: Relation, catalog: Catalog, name: str, new_name: str, position: int) -> Relation:
    """Return the table with a constraint renamed.

    Raises Error 42704 for an unknown one, 42710 or 42P07 for a name in use.
    """
    there = table.constraints
    if name not in (*there.names, table.key_index):
        message = f'constraint "{name}" for table "{table.name}" does not exist'
        raise Error(message, errors.UNDEFINED_OBJECT, position=position)
    check_free(table, new_name, (*there.names, table.key_index or ""))
    if name in (table.key_index, *(unique.name for unique in there.uniques)):
        check_no_relation(table, catalog, new_name)
    if name == table.key_index:
        return with_constraints(table, replace(there, key_name=new_name))
    return with_constraints(
        table,
        replace(
            there,
            checks=_renamed(there.checks, name, new_name),
            uniques=_renamed(there.uniques, name, new_name),
            foreign_keys=_renamed(there.foreign_keys, name, new_name),
        ),
    )


def without_column(table: Relation, column: Column) -> Relation:
    """Return the table without the constraints that read a column: like PostgreSQL, DROP COLUMN drops them too."""
    there, name = table.constraints, column.lake_name
    checks = tuple(check for check in there.checks if column.name not in columns_read(check.condition))
    lengths = tuple((other, length) for other, length in there.lengths if other != name)
    uniques = tuple(unique for unique in there.uniques if name not in (*unique.columns, *unique.included))
    keys = tuple(key for key in there.foreign_keys if name not in key.columns)
    return with_constraints(table, replace(there, checks=checks, lengths=lengths, uniques=uniques, foreign_keys=keys))


def with_lake_column(table: Relation, parent: int, old: str, new: str) -> Relation:
    """Return a table whose keys name a column of the table `parent` that has another name in the lake now."""
    there, is_own = table.constraints, table.id == parent

    def named(columns: tuple[str, ...], are_of_parent: bool) -> tuple[str, ...]:
        return tuple(new if are_of_parent and name == old else name for name in columns)

    uniques = (
        replace(unique, columns=named(unique.columns, is_own), included=named(unique.included, is_own))
        for unique in there.uniques
    )
    keys = (
        replace(
            key,
            columns=named(key.columns, is_own),
            set_columns=named(key.set_columns, is_own),
            parent_columns=named(key.parent_columns, key.parent == parent),
        )
        for key in there.foreign_keys
    )
    return with_constraints(table, replace(there, uniques=tuple(uniques), foreign_keys=tuple(keys)))


def with_length(table: Relation, column: Column, length: int | None) -> Relation:
    """Return the table with a column limited to `length` (`Constraints.lengths`), None for no limit."""
    lengths = dict(table.constraints.lengths)
    lengths.pop(column.lake_name, None)
    if length is not None:
        lengths[column.lake_name] = length
    return with_constraints(table, replace(table.constraints, lengths=tuple(lengths.items())))


def check_lengths(cursor: Cursor, table: Relation, column: Column) -> None:
    """Raise Error 22001 if a stored value is longer than the column's limit, 0A000 for fewer digits of times."""
    length, name = table.length_of(column), quote(column.lake_name)
    if length is None:
        return
    if not column.type.is_text:
        raise Error("changing the digits of a column of times is not supported", errors.FEATURE_NOT_SUPPORTED)
    longer = f"SELECT 1 FROM {table.lake_name} WHERE length({name}) > {length} LIMIT 1"
    if cursor.execute(longer).fetchone() is not None:
        raise too_long(column, length)
