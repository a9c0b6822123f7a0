"""Adds and drops constraints of a table, and checks that its stored rows meet them."""

from __future__ import annotations

from dataclasses import replace

from sparkwave.catalog import errors
from sparkwave.catalog.errors import Error
from sparkwave.catalog.lake.ducklake import Cursor
from sparkwave.catalog.model import Column, Relation
from sparkwave.catalog.names import quote
from sparkwave.catalog.relation_details import Check
from sparkwave.planner.batch.values import condition_text
from sparkwave.planner.definitions.table_definition import with_constraints
from sparkwave.planner.parse.constraints import named_checks
from sparkwave.planner.parse.generated import columns_read
from sparkwave.server.session.session import Session
from sparkwave.server.statements.tables import try_check
from sparkwave.server.writes.row_checks import too_long


def add_check(session: Session, cursor: Cursor, table: Relation, check: Check) -> Relation:
    """Return the table with a CHECK. Raises Error 23514 for a stored row, 42710 for a name in use, 42703, 42804."""
    there = table.constraints
    taken = [each.name for each in there.checks] + [table.key_index or ""]
    if check.name in taken:
        message = f'constraint "{check.name}" for relation "{table.name}" already exists'
        raise Error(message, errors.DUPLICATE_OBJECT)
    [made] = named_checks(table.name, [check], [column.name for column in table.visible], taken)
    listed = ", ".join(f"{quote(column.lake_name)} AS {quote(column.name)}" for column in table.visible)
    rows = f"(SELECT {listed} FROM {table.lake_name}) AS stored"
    try_check(session, cursor, made, table.visible, rows)
    condition = condition_text(made.condition, table.visible, session.environment)
    if cursor.execute(f"SELECT 1 FROM {rows} WHERE NOT ({condition}) LIMIT 1").fetchone() is not None:
        message = f'check constraint "{made.name}" of relation "{table.name}" is violated by some row'
        raise Error(message, errors.CHECK_VIOLATION)
    return with_constraints(table, replace(there, checks=(*there.checks, made)))


def without_check(table: Relation, name: str, position: int) -> Relation:
    """Return the table without a CHECK. Raises Error 42704 for an unknown constraint, 0A000 for the primary key."""
    there = table.constraints
    if name == table.key_index:
        message = "dropping the primary key is not supported"
        raise Error(message, errors.FEATURE_NOT_SUPPORTED, position=position)
    if name not in [check.name for check in there.checks]:
        message = f'constraint "{name}" of relation "{table.name}" does not exist'
        raise Error(message, errors.UNDEFINED_OBJECT, position=position)
    return with_constraints(table, replace(there, checks=tuple(check for check in there.checks if check.name != name)))


def without_column(table: Relation, column: Column) -> Relation:
    """Return the table without the constraints that read a column: like PostgreSQL, DROP COLUMN drops them too."""
    there = table.constraints
    checks = tuple(check for check in there.checks if column.name not in columns_read(check.condition))
    lengths = tuple((name, length) for name, length in there.lengths if name != column.lake_name)
    return with_constraints(table, replace(there, checks=checks, lengths=lengths))


def with_length(table: Relation, column: Column, length: int | None) -> Relation:
    """Return the table with a column limited to `length` characters, None for no limit."""
    lengths = dict(table.constraints.lengths)
    lengths.pop(column.lake_name, None)
    if length is not None:
        lengths[column.lake_name] = length
    return with_constraints(table, replace(table.constraints, lengths=tuple(lengths.items())))


def check_lengths(cursor: Cursor, table: Relation, column: Column) -> None:
    """Raise Error 22001 if a stored value is longer than the column's limit."""
    length, name = table.length_of(column), quote(column.lake_name)
    if length is None:
        return
    longer = f"SELECT 1 FROM {table.lake_name} WHERE length({name}) > {length} LIMIT 1"
    if cursor.execute(longer).fetchone() is not None:
        raise too_long(column, length)
