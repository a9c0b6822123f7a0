"""The share of its machines that a job takes: at once, and in running queries.

Tasks of Spark follow it (`executor.spark.task_share`). In process the thread that fills follows, and DuckDB's own
threads with it (`catalog.lake.duckdb_threads`).
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from sparkwave.catalog.lake.duckdb_threads import ALL_ROOM, Room, Threads
from sparkwave.catalog.lake.places import Place
from sparkwave.executor.backfill.pace import WHOLE, Pace
from sparkwave.executor.spark.task_share import Share, cores_of, niceness_of


class MachineShare:
    """The pace of a job. `staging` returns the job's directory, where a file tells its tasks of the share."""

    def __init__(self, staging: Callable[[], Place], threads: Threads) -> None:
        self._staging, self._threads = staging, threads
        self.filling: int | None = None  # the native id of the thread that fills in process
        self._told: float | None = None  # an earlier server may have left another in the file
        self.pace = WHOLE
        self.is_beside_views = False  # whether there are barriers to give way to

    @property
    def is_by_pauses(self) -> bool:
        """Whether a fill in process pauses between its steps, because its threads cannot leave any core."""
        return self.filling is not None and len(ALL_ROOM.cores) < 2

    @property
    def of_tasks(self) -> Share | None:
        """The file that tasks look at; None in a bucket, where each look would be a request."""
        return Share(str(self._file)) if self._file is not None else None

    @property
    def _file(self) -> Path | None:
        staging = self._staging()
        return staging / "share" if isinstance(staging, Path) else None

    def set(self, pace: Pace) -> None:
        """Let the job take this share of its machines from now on."""
        self.pace = pace
        if self.filling is not None:
            self._threads.confine(self.filling, _room(pace.share) if pace.is_slowed else None)
        file, told, self._told = self._file, self._told, pace.share
        if file is None or pace.share == told:
            return
        with suppress(OSError):  # the disk is full; the tasks keep their share
            if not pace.is_slowed:
                file.unlink(missing_ok=True)
                return
            file.parent.mkdir(parents=True, exist_ok=True)
            new = file.with_suffix(".new")
            new.write_text(str(pace.share))
            new.replace(file)


def _room(share: float) -> Room:
    """Return where the threads of a slowed fill run, as `executor.spark.task_share` says it of a slowed task."""
    return Room(frozenset(cores_of(sorted(ALL_ROOM.cores), share)), niceness_of(ALL_ROOM.niceness))
