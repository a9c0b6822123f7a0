"""The two snapshots of an epoch: most views advance from the first to the second.

Statements over copies stay prepared, so they cannot name snapshots. DuckDB 1.5.5 plans a statement with parameters anew
each time, and uses no index below a join with a table that has the numbers. So two sequences of DuckDB hold
the two numbers.
"""

from __future__ import annotations

from sparkwave.catalog.lake.ducklake import Cursor
from sparkwave.catalog.lake.prepared_statements import define_shared, run
from sparkwave.catalog.names import BUFFER, EPOCHS_SCHEMA

_SEQUENCES = tuple(f"{BUFFER}.{EPOCHS_SCHEMA}.moment_{name}" for name in ("old", "new"))
# SQL of the two snapshots.
OLD, NEW = (f"currval('{name}')" for name in _SEQUENCES)
# A sequence is made anew instead of being advanced by more.
_MOST_STEPS = 100_000


class Moment:
    """The snapshots; None before `set`. Only the coordinator's thread uses the object, with its own cursor."""

    def __init__(self) -> None:
        self.snapshots: tuple[int, int] | None = None

    def set(self, cursor: Cursor, old: int, new: int) -> None:
        """Set the two snapshots, in the sequences too; an epoch advances views from `old` to `new`."""
        # Sequences know no transactions: after an interruption their numbers are unknown.
        known, self.snapshots = self.snapshots, None
        advances = []
        for name, at, to in zip(_SEQUENCES, known or (None, None), (old, new), strict=True):
            steps = to - at if at is not None else -1
            if not 0 <= steps <= _MOST_STEPS:
                define_shared(cursor, f"CREATE OR REPLACE SEQUENCE {name} MINVALUE 0 START {to}")
                steps = 1
            if steps:
                advances.append(f"SELECT max(nextval('{name}')) FROM range({steps})")
        if advances:
            run(cursor, *advances).fetchall()
        self.snapshots = old, new
