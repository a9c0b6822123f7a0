"""One ALTER TABLE in progress: what its actions know and do together."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass, replace

from sparkwave.catalog import errors
from sparkwave.catalog.errors import Error
from sparkwave.catalog.lake.ducklake import Cursor
from sparkwave.catalog.model import Catalog, Column, Relation, check_column_name
from sparkwave.catalog.relation_details import ForeignKey
from sparkwave.catalog.stores.column_store import drop_lake_column
from sparkwave.catalog.stores.relation_store import drop_relation
from sparkwave.planner.batch.values import default_batch
from sparkwave.planner.definitions.dependence import readers_of
from sparkwave.planner.definitions.indexes import has_beside_keys
from sparkwave.planner.definitions.table_definition import with_constraints, without_foreign_keys
from sparkwave.planner.parse.generated import columns_read
from sparkwave.server.reads import execution
from sparkwave.server.session.session import Session
from sparkwave.server.statements.plain_views import refuse_creating, with_dependents
from sparkwave.server.statements.table_keys import described, with_table
from sparkwave.server.wire.result import Notice
from sparkwave.server.writes.sequence_numbers import describe_with


@dataclass
class TableChange:
    """One ALTER TABLE in progress: the table after the actions so far, in the transaction of the cursor."""

    session: Session
    cursor: Cursor
    table: Relation
    id: int
    notices: list[Notice]
    dropped: list[Relation]  # the views dropped with columns
    referencing: dict[int, Relation]  # by id, the tables whose foreign keys to this table change
    released: list[Relation]  # indexes that are dropped, to be made again without a column, or with another type of it

    @property
    def catalog(self) -> Catalog:
        """The catalog with the table as it is after the actions, and without what this ALTER TABLE drops."""
        catalog, gone = with_table(self.session.context.store.catalog, self.table), {each.id for each in self.dropped}
        return replace(catalog, relations=tuple(each for each in catalog.relations if each.id not in gone))

    def column(self, name: str, position: int) -> Column:
        """Return a column. Raises Error 42703."""
        found = next((column for column in self.table.visible if column.name == name), None)
        if found is None:
            message = f'column "{name}" of relation "{self.table.name}" does not exist'
            raise Error(message, errors.UNDEFINED_COLUMN, position=position)
        return found

    def readers(self, column: Column) -> list[Relation]:
        """Return the views that read a column, without those that this ALTER TABLE drops."""
        gone = {relation.id for relation in self.dropped}
        found = readers_of(self.session.context.store.catalog, self.table, column.lake_name)
        return [reader for reader in found if reader.id not in gone]

    def release(self, column: Column, is_dropped: bool = False) -> None:
        """Drop the indexes that have a column, to be made again after the statement.

        If the column `is_dropped`, an index by it goes for good, as in PostgreSQL.
        """
        catalog = self.session.context.store.catalog
        indexes = [reader for reader in self.readers(column) if reader.is_index]
        released = [index for index in indexes if not any(catalog.dependents(index.id))]
        drop_views(self, released)
        self.released += [index for index in released if not is_dropped or has_beside_keys(index, self.table, column)]

    def foreign_keys(self) -> Iterator[tuple[Relation, ForeignKey]]:
        """Yield the foreign keys of this and other tables that reference this table, as they are after the actions."""
        catalog = self.catalog
        found = {self.table.id: self.table} | {t.id: t for t, _ in catalog.foreign_keys_to(self.table.id)}
        for table in (found | self.referencing).values():
            yield from ((table, key) for key in table.constraints.foreign_keys if key.parent == self.table.id)

    def drop_foreign_keys(self, found: list[tuple[Relation, ForeignKey]]) -> None:
        """Drop foreign keys that reference this table."""
        ids = {key.id for _, key in found}
        for table, key in found:
            self.notices.append(Notice(f"drop cascades to {described(self.session, key, table)}"))
            self.put_referencing(without_foreign_keys(self.referencing.get(table.id, table), lambda k: k.id in ids))

    def put_referencing(self, table: Relation) -> None:
        """Take over a table whose foreign keys change, which may be this table."""
        if table.id == self.table.id:
            self.table = with_constraints(self.table, table.constraints)
        else:
            self.referencing[table.id] = table

    def computed_from(self, column: Column) -> list[Column]:
        """Return the generated columns that read a column."""
        return [c for c in self.table.visible if c.generated is not None and column.name in columns_read(c.generated)]

    def replaced(self, column: Column, after: Column) -> Relation:
        columns = tuple(after if each.name == column.name else each for each in self.table.columns)
        return replace(self.table, columns=columns)

    def check_free(self, name: str, position: int) -> None:
        """Raise Error 42701 for a column name in use (DuckDB ignores case), 42611 for a system column's name."""
        check_column_name(name, position)
        if name.lower() in [column.name.lower() for column in self.table.visible]:
            message = f'column "{name}" of relation "{self.table.name}" already exists'
            raise Error(message, errors.DUPLICATE_COLUMN, position=position)


def drop_views(change: TableChange, readers: list[Relation]) -> None:
    """Drop views and their readers, in the transaction. Raises Error 55006 for a view that is being created."""
    if not readers:
        return
    gone = {relation.id for relation in change.dropped}
    dropped = [r for r in with_dependents(change.session, readers, True) if r.id not in gone]
    refuse_creating(dropped)
    for relation in sorted(dropped, key=lambda r: -r.id):
        drop_relation(change.session.context.store, change.cursor, relation)
    change.dropped += dropped


def drop_unread(change: TableChange) -> None:
    """Drop the columns of earlier types that no definition reads any more."""
    unread = [column for column in change.table.columns if column.is_former and not change.readers(column)]
    for column in unread:
        drop_lake_column(change.cursor, change.table, column)
        columns = tuple(each for each in change.table.columns if each is not column)
        change.table = replace(change.table, columns=columns, dropped=(*change.table.dropped, column.lake_name))


def evaluated(change: TableChange, column: Column) -> str | None:
    """Return the value of a column's default as text. Raises its errors, and those of the column's type."""
    with contextlib.closing(change.session.cursor()) as cursor:
        batch = default_batch(column, change.session.environment)
        execution.show_system(change.session, cursor, batch)
        describe_with(cursor, batch.draws)
        row = cursor.execute(f"SELECT CAST({batch.sql} AS VARCHAR)").fetchone()
    return row[0] if row else None
