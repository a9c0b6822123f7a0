"""The temporary tables of one session."""

from __future__ import annotations

from sparkwave.catalog.stores.temporary import drop_temporary_schemas
from sparkwave.server.context import Context


class TemporaryTables:
    """The tables of a session in a schema of its own, which is None before the first table.

    `on_commit` has what ON COMMIT says of a table, by the table's id.
    """

    def __init__(self, context: Context) -> None:
        self._context = context
        self.schema: str | None = None
        self.on_commit: dict[int, str] = {}

    def drop(self, database: str) -> None:
        """Drop the tables, which are all in one database."""
        schema, self.schema = self.schema, None
        self.on_commit.clear()
        if schema is not None:
            store = self._context.store
            with self._context.coordinator.barrier_lock, store.change() as cursor:
                drop_temporary_schemas(store, cursor, [(database, schema)])
