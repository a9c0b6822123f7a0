"""The lake's small files are made into larger ones in the background: see `catalog.compaction` for how."""

from __future__ import annotations

import contextlib

from catalog import compaction
from catalog.compaction import Table
from catalog.lake import Cursor, Lake, at_one_moment


def compact_once(lake: Lake) -> bool:
    """Do what there is to do for each table, one step each. Returns whether there was any."""
    with contextlib.closing(lake.cursor()) as cursor:
        with at_one_moment(cursor):
            tables = compaction.tables_to_compact(cursor, str(lake.data_path))
        for table in tables:
            _compact(lake, cursor, table)
        return bool(tables)


def _compact(lake: Lake, cursor: Cursor, table: Table) -> None:
    name = table.name
    if table.flush or table.drop:
        with lake.transaction(cursor, shared=[name]):
            compaction.flush(cursor, name)
    if table.drop:
        with lake.transaction(cursor, shared=[name]):
            compaction.drop_dead(cursor, name)
    if table.rewrite:
        with lake.transaction(cursor, shared=[name]):
            compaction.rewrite(cursor, name, table.rewrite)
    if table.merge:
        compaction.forget_row_id_starts(lake, cursor, name, table.merge)
        with lake.transaction(cursor, shared=[name]):
            compaction.merge(cursor, name, table.below)
