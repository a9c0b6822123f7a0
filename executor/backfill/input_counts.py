"""The numbers of rows of a job's inputs."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing

from sparkwave.catalog.lake.ducklake import Cursor, Lake, at_one_moment
from sparkwave.catalog.lake.table_contents import contents, count_rows
from sparkwave.catalog.lazy import lazy
from sparkwave.catalog.model import Relation
from sparkwave.catalog.names import LakeTable
from sparkwave.executor.backfill.slicing import row_count
from sparkwave.planner.plan.nodes import Scan


class InputCounts:
    """Counts the rows of the relations that `scans` returns, all together, and keeps the counts."""

    def __init__(self, lake: Lake, scans: Callable[[], tuple[Scan, ...]]) -> None:
        self._lake = lake
        self._scans = scans
        self._counted: dict[tuple[LakeTable, int], int] = {}  # by table and snapshot

    @lazy
    def total(self) -> int:
        """The rows of all inputs, as of the first use."""
        cursor = self._lake.cursor()
        snapshot = self._lake.newest(cursor)
        with at_one_moment(cursor):  # else each query reads the lake's catalog anew
            return sum(self.of(cursor, scan.relation, snapshot) for scan in self._scans())

    def of(self, cursor: Cursor, relation: Relation, snapshot: int) -> int:
        """Count rows as `executor.backfill.slicing.row_count` does."""
        counted = relation.lake_table, snapshot
        if counted not in self._counted:
            tables = {scan.relation.lake_table for scan in self._scans()}
            with closing(self._lake.cursor()) as own, at_one_moment(own):  # `cursor` may be in a transaction
                found = contents(own, tables, snapshot)
                self._counted |= {(table, snapshot): count_rows(own, table, found[table]) for table in found}
        if counted not in self._counted:  # no input, or dropped just now, which DuckLake tells
            self._counted[counted] = row_count(cursor, relation, snapshot)
        return self._counted[counted]
