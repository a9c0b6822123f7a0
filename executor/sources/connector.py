"""What a connector is: something that reads on from where its splits stand."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from sparkwave.catalog.errors import Error
from sparkwave.catalog.lake.ducklake import Cursor
from sparkwave.catalog.source_model import Split

# What a batch's SQL calls its Arrow table.
READ = "read_rows"


@dataclass(frozen=True)
class Batch:
    """Rows, and where the splits that they come from stand after them.

    `sql` gives them with the columns that the connector delivers, in their order, from `arrow` under the name `READ` if
    there is such a table. It has to give the same rows whenever it runs. `removed` gives the keys of rows that are to
    be deleted first, none of which it has; with `clears` all rows are.
    """

    sql: str
    splits: tuple[Split, ...]
    arrow: Any = None  # pyarrow.Table
    removed: str | None = None
    clears: bool = False


class SplitError(Exception):
    """A split cannot be read on, for the reason `error`; others can."""

    def __init__(self, split: Split, error: Error) -> None:
        super().__init__(error.message)
        self.split = split
        self.error = error


class Connector(Protocol):
    """Of one source. Making one touches nothing outside. Only its reader uses it; it may keep open what it reads."""

    @property
    def rows_per_second(self) -> int | None:
        """How fast it delivers by itself; None as fast as it can."""

    def check(self) -> Mapping[str, str]:
        """Options that are settled when the source is made, so that it goes on the same after a restart.

        Raises Error when what is to be read is not there or cannot be reached.
        """

    def read(self, splits: Mapping[str, Split], held_back: Collection[str], rows: int, most: int) -> Batch | None:
        """At most `rows` rows of at most `most` splits from where these stand; None when there are none now.

        `splits` are those that something was delivered from. Those named in `held_back` are to be left alone.
        Raises SplitError when a split cannot be read, Error when none can.
        """

    def blame(self, cursor: Cursor, batch: Batch, error: Error) -> SplitError | None:
        """Which split is at fault when the SQL of a batch fails with `error`, if its rows tell."""

    def forget(self) -> None:
        """The source is dropped. Raises Error when what it has left elsewhere cannot be removed."""
