"""Stages the rows of a write in a temporary table of the cursor, and writes them from there to the table."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from contextlib import AbstractContextManager

from sparkwave.catalog import errors
from sparkwave.catalog.errors import Error
from sparkwave.catalog.lake.ducklake import Cursor
from sparkwave.catalog.model import Column, Relation
from sparkwave.catalog.names import quote
from sparkwave.planner.batch.query import Environment
from sparkwave.planner.batch.sequence_calls import Draws
from sparkwave.planner.batch.values import default_batch, generated_columns, generated_value, given_columns
from sparkwave.planner.batch.write import INSERTED
from sparkwave.planner.parse.constant_rows import has_constant_default
from sparkwave.server.writes.conflicts import drop_late, resolve
from sparkwave.server.writes.row_checks import check_rows
from sparkwave.server.writes.stores import Store

# A context in which the cursor's statement may draw from sequences. Raises Error 2200H for one at its end.
Drawing = Callable[[Cursor, Draws], AbstractContextManager[object]]


def target_columns(target: Relation, names: tuple[str, ...]) -> tuple[Column, ...]:
    """Return the columns that an INSERT or COPY fills: the named ones, or all but generated ones.

    Raises Error 42703 or 42701.
    """
    for index, name in enumerate(names):
        if name not in [column.name for column in target.visible]:
            raise Error(f'column "{name}" of relation "{target.name}" does not exist', errors.UNDEFINED_COLUMN)
        if name in names[:index]:
            raise Error(f'column "{name}" specified more than once', errors.DUPLICATE_COLUMN)
    by_name = {column.name: column for column in target.visible}
    return tuple(by_name[name] for name in names) if names else given_columns(target)


def create_staging(cursor: Cursor, target: Relation, rows: str = INSERTED) -> None:
    """Create an empty temporary table with the target's columns, under the lake's names, and constant defaults."""

    def definition(column: Column) -> str:
        default = f" DEFAULT {column.default}" if has_constant_default(column) else ""
        return f"{quote(column.lake_name)} {column.type.duckdb()}{default}"

    columns = ", ".join(map(definition, target.visible))
    cursor.execute(f"CREATE OR REPLACE TEMPORARY TABLE {rows} ({columns})")


def fill_staging(columns: Sequence[Column], query: str, rows: str = INSERTED) -> str:
    """Return the INSERT of a query's rows into columns of the staging table. VALUES get the types of the columns."""
    return f"INSERT INTO {rows} ({', '.join(quote(column.lake_name) for column in columns)}) {query}"


def late_defaults(target: Relation, given: Collection[Column]) -> list[Column]:
    """Return the columns not given whose defaults are not constant, so that `create_staging` omits them."""
    return [c for c in target.visible if c.default is not None and c not in given and not has_constant_default(c)]


def compute_defaults(
    environment: Environment,
    cursor: Cursor,
    target: Relation,
    given: Collection[Column],
    drawing: Drawing,
    rows: str = INSERTED,
) -> None:
    """Compute the `late_defaults` of staged rows."""
    columns = late_defaults(target, given)
    if columns:
        batches = [default_batch(column, environment) for column in columns]
        values = ", ".join(f"{quote(c.lake_name)} = {b.sql}" for c, b in zip(columns, batches, strict=True))
        with drawing(cursor, Draws(tuple(dict.fromkeys(id_ for batch in batches for id_ in batch.draws.nexts)))):
            cursor.execute(f"UPDATE {rows} SET {values}")


def compute_generated(environment: Environment, cursor: Cursor, target: Relation, rows: str = INSERTED) -> None:
    """Compute the generated columns of staged rows."""
    columns = generated_columns(target)
    if columns:
        names = {c.name: c.lake_name for c in target.visible}
        values = (f"{quote(c.lake_name)} = {generated_value(c, target.visible, environment, names)}" for c in columns)
        cursor.execute(f"UPDATE {rows} SET {', '.join(values)}")


def store_new(cursor: Cursor, target: Relation) -> int:
    """Write the staged rows into a table that the open transaction has created. Returns their number."""
    return scalar(cursor, f"INSERT INTO {target.lake_name} FROM {INSERTED}")


def take_in(environment: Environment, cursor: Cursor, store: Store) -> None:
    """Write the staged rows, inside a transaction, by the table's rules for late rows and existing keys.

    Raises the errors of `check_rows`.
    """
    if settle(environment, cursor, store):
        store.merge(cursor)
    else:
        store.insert(cursor)


def settle(environment: Environment, cursor: Cursor, store: Store) -> bool:
    """Reduce the staged rows to the rows to write. Returns whether one of them replaces a stored row.

    Raises the errors of `check_rows`.
    """
    target = store.target
    check_rows(environment, cursor, target, INSERTED, target.primary_key if target.fills_up else None)
    if target.watermark is not None:
        drop_late(cursor, store, target.watermark)
    replaces = resolve(cursor, store, environment.settings)
    if target.fills_up:
        compute_generated(environment, cursor, target)
        check_rows(environment, cursor, target, INSERTED)
    return replaces


def scalar(cursor: Cursor, sql: str, values: dict[str, object] | None = None) -> int:
    row = cursor.execute(sql, values).fetchone()
    return row[0] if row else 0
