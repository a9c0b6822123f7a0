"""Merges the lake's small files into larger ones in the background: see `catalog.lake.compaction`."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping

from sparkwave.catalog.lake import compaction
from sparkwave.catalog.lake.compaction import Table
from sparkwave.catalog.lake.ducklake import Cursor, Lake, at_one_moment
from sparkwave.catalog.lake.lake_tables import locate
from sparkwave.catalog.names import LakeTable

NO_TIMES: Mapping[LakeTable, bool] = {}


def compact_once(lake: Lake, timed: Mapping[LakeTable, bool] = NO_TIMES) -> bool:
    """Run one step of compaction for each table that needs it. Returns whether there was any.

    `timed` are the tables whose rows' times of writing are kept: see `compaction.rewrite`.
    """
    with contextlib.closing(lake.cursor()) as cursor:
        with at_one_moment(cursor):
            tables = compaction.tables_to_compact(cursor, str(lake.data_path))
        for table in tables:
            compact(lake, cursor, table, timed)
        return bool(tables)


def compact(lake: Lake, cursor: Cursor, table: Table, timed: Mapping[LakeTable, bool] = NO_TIMES) -> None:
    """Run one step of compaction for a table; nothing if the table is gone."""
    name = table.name

    def run(step: Callable[[], None]) -> None:
        with lake.transaction(cursor, shared=[name]):
            if locate(cursor, name) is not None:
                step()

    if table.flush or table.drop:
        run(lambda: compaction.flush(cursor, name))
    if table.drop:
        run(lambda: compaction.drop_dead(cursor, name))
    if table.rewrite:
        run(lambda: compaction.rewrite(cursor, name, table.rewrite, timed))
    if table.merge:
        compaction.forget_row_id_starts(lake, cursor, name, table.merge)
        run(lambda: compaction.merge(cursor, name, table.below))
