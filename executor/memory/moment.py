"""The two snapshots from and to which most views of an epoch advance.

Statements over copies stay prepared, so they cannot name snapshots. DuckDB 1.5.5 plans a statement with parameters anew
each time, and uses no index below a join with a table that has the numbers. So two sequences have them.
"""

from __future__ import annotations

from sparkwave.catalog.lake.ducklake import Cursor
from sparkwave.catalog.lake.prepared_statements import define_shared
from sparkwave.catalog.names import BUFFER, EPOCHS_SCHEMA

# SQL of the two snapshots.
OLD, NEW = (f"currval('{BUFFER}.{EPOCHS_SCHEMA}.moment_{name}')" for name in ("old", "new"))
# A sequence is made anew instead of being advanced by more.
_MOST_STEPS = 100_000


class Moment:
    """Only the coordinator's thread uses it, with its own cursor."""

    def __init__(self) -> None:
        self._at: dict[str, int] = {}

    @property
    def snapshots(self) -> tuple[int, int] | None:
        """The old and the new snapshot; None before `set`."""
        return (self._at[OLD], self._at[NEW]) if self._at else None

    def set(self, cursor: Cursor, old: int, new: int) -> None:
        for current, to in ((OLD, old), (NEW, new)):
            steps = to - self._at.get(current, -1)
            if current not in self._at or not 0 <= steps <= _MOST_STEPS:
                name = current.split("'")[1]
                define_shared(cursor, f"CREATE OR REPLACE SEQUENCE {name} MINVALUE 0 START {to}")
                steps = 1
            if steps:
                nextval = current.replace("currval", "nextval")
                cursor.execute(f"SELECT max({nextval}) FROM range({steps})").fetchall()
            self._at[current] = to
