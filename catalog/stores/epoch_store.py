"""The stored epoch, which every created view has applied in the lake."""

from __future__ import annotations

from sparkwave.catalog.lake.ducklake import Cursor
from sparkwave.catalog.lake.memory_transactions import first_row
from sparkwave.catalog.model import Epoch
from sparkwave.catalog.names import system_table


def stored_epoch(cursor: Cursor) -> Epoch:
    """Return the epoch that every created view has applied; neither of its numbers ever falls."""
    row = first_row(cursor.execute(f"SELECT max(snapshot), max(time_us) FROM {system_table('epoch')}"))
    assert row is not None
    return Epoch(*row)


def store_epoch(cursor: Cursor, epoch: Epoch) -> None:
    """Store a new epoch in a new row: a DELETE of the old one would cost a checkpoint as much as a view does."""
    cursor.execute(f"INSERT INTO {system_table('epoch')} VALUES (?, ?)", [epoch.snapshot, epoch.time_us])
