"""The connector `datagen`: made up rows, each of which follows from its number."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from catalog.errors import Error
from catalog.lake import Cursor
from catalog.model import Column
from catalog.names import quote
from catalog.sources import Source, Split
from executor.sources.connector import Batch, SplitError
from planner.generators import NUMBER, datagen_rows

_DEFAULT_RATE = 10


class Datagen:
    """Its only split counts the rows made."""

    def __init__(self, source: Source, columns: tuple[Column, ...]) -> None:
        made = datagen_rows(source.options, columns)
        values = zip(made.columns, columns, strict=True)
        self._select = ", ".join(f"{value} AS {quote(column.name)}" for value, column in values)
        self._count = made.count
        self.rows_per_second: int | None = int(source.options.get("datagen.rows.per.second", _DEFAULT_RATE))

    def check(self) -> None:
        pass

    def read(self, splits: Mapping[str, Split], held_back: Collection[str], rows: int, most: int) -> Batch | None:
        return sequence(splits, rows, self._count, self._select)

    def blame(self, cursor: Cursor, batch: Batch, error: Error) -> SplitError | None:
        return None

    def forget(self) -> None:
        pass


def sequence(splits: Mapping[str, Split], rows: int, count: int | None, select: str) -> Batch | None:
    """The next rows of a generator that has `count` of them, and one split: what is selected for each number."""
    split = splits.get("0", Split("0"))
    start = split.position
    stop = start + rows if count is None else min(start + rows, count)
    if split.is_finished or rows <= 0:
        return None
    moved = Split("0", stop, stop, is_finished=stop == count)
    return Batch(f"SELECT {select} FROM range({start}, {stop}) AS numbers({NUMBER})", (moved,))
