"""A connector of generated rows: every row follows from its number."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from sparkwave.catalog.errors import Error
from sparkwave.catalog.lake.ducklake import Cursor
from sparkwave.catalog.source_model import Split
from sparkwave.executor.sources.connector import Batch, SplitError
from sparkwave.planner.definitions.generators import NUMBER


@dataclass(frozen=True)
class Generator:
    """Generates `select` for each `NUMBER` below `count`, without an end if that is None. Its split counts the rows."""

    select: str
    count: int | None
    rows_per_second: int | None

    def check(self) -> Mapping[str, str]:
        return {}

    def read(self, splits: Mapping[str, Split], held_back: Collection[str], rows: int, most: int) -> Batch | None:
        split = splits.get("0", Split("0"))
        start = split.position
        stop = start + rows if self.count is None else min(start + rows, self.count)
        if split.is_finished or rows <= 0:
            return None
        moved = Split("0", stop, stop, is_finished=stop == self.count)
        return Batch(f"SELECT {self.select} FROM range({start}, {stop}) AS numbers({NUMBER})", (moved,))

    def blame(self, cursor: Cursor, batch: Batch, error: Error) -> SplitError | None:
        return None

    def forget(self) -> None:
        pass
