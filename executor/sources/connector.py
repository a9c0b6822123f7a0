"""The interface of a connector, which reads on from the positions of its splits."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from sparkwave.catalog.errors import Error
from sparkwave.catalog.lake.ducklake import Cursor
from sparkwave.catalog.source_model import Split

# The name of a batch's Arrow table in the batch's SQL.
READ = "read_rows"


@dataclass(frozen=True)
class Batch:
    """Rows, and the positions of their splits after these rows.

    `sql` selects the rows with the connector's columns, in order, from `arrow` under the name `READ` if there is such a
    table. It gives the same rows whenever it runs. `removed` is SQL of the keys of rows to delete first; no row of the
    batch has such a key. With `clears` all rows are deleted first.
    """

    sql: str
    splits: tuple[Split, ...]
    arrow: Any = None  # pyarrow.Table
    removed: str | None = None
    clears: bool = False


class SplitError(Exception):
    """A split cannot be read on, for the reason `error`; other splits can."""

    def __init__(self, split: Split, error: Error) -> None:
        super().__init__(error.message)
        self.split = split
        self.error = error


class Connector(Protocol):
    """The connector of one source.

    Its creation has no outside effect. Only one reader uses it; it may keep files open.
    """

    @property
    def rows_per_second(self) -> int | None:
        """The rows a second that the connector delivers by itself; None for as many as it can."""

    def check(self) -> Mapping[str, str]:
        """Return options that are settled when the source is made, so that it reads on in the same way after a restart.

        Raises Error when the data is missing or cannot be reached.
        """

    def read(self, splits: Mapping[str, Split], held_back: Collection[str], rows: int, most: int) -> Batch | None:
        """Return at most `rows` rows of at most `most` splits from their positions on; None when there are none now.

        `splits` are those with delivered rows. Splits named in `held_back` are not read. Raises SplitError when a split
        cannot be read, Error when none can.
        """

    def blame(self, cursor: Cursor, batch: Batch, error: Error) -> SplitError | None:
        """Return the split at fault when the SQL of a batch fails with `error`, if its rows tell."""

    def forget(self) -> None:
        """Clean up after the source is dropped. Raises Error when remains elsewhere cannot be removed."""
