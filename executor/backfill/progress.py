"""How many rows a creating job has read. For running steps, each task writes its progress to a file.

Reported numbers never fall, even when a step fails, is retried or interrupted, or the server restarts.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from sparkwave.catalog.locks import RankedLock

# Rows by fragment.
Rows = Mapping[int, int]
NO_ROWS: Rows = {}


@dataclass(frozen=True, eq=False)
class _Step:
    rows: Rows
    says: tuple[Path, ...]

    @property
    def part(self) -> float:
        """The finished part, from 0 to 1; 0 where tasks do not say it."""
        return sum(map(_part, self.says)) / len(self.says) if self.says else 0.0


class Progress:
    """The progress of one job. `kept` is a file with the numbers reported so far, by earlier servers too.

    `kept` is None where there are no directories.
    """

    def __init__(self, kept: Path | None) -> None:
        self._kept = kept
        self._finished: Counter[int] = Counter()
        self._running: list[_Step] = []
        self._told = _told(kept) if kept is not None else Counter()
        self._lock = RankedLock()

    def resume(self, finished: Rows) -> None:
        """Set the rows of finished steps, by this server or an earlier one."""
        with self._lock:
            self._finished = Counter(finished)

    def start_again(self) -> None:
        """Start from no rows, because new steps read everything again."""
        with self._lock:
            self._finished, self._told = Counter(), Counter()
            self._keep()

    def finish(self, rows: Rows) -> None:
        """Count the rows of a committed step."""
        with self._lock:
            self._finished.update(rows)

    def end(self) -> None:
        """Keep nothing any more, because the job is over."""
        with self._lock:
            self._kept = None

    @contextmanager
    def running(self, rows: Rows, says: Sequence[Path | None]) -> Iterator[None]:
        """While entered, tasks read `rows`, and have read them all when it is left without an error.

        Each file of `says` has one task's finished part, once the task writes it.
        """
        step = _Step(rows, tuple(path for path in says if path is not None))
        with self._lock:
            self._running.append(step)
        try:
            yield
            with self._lock:
                self._tell(read=step)  # its commit may take long
        finally:
            with self._lock:
                self._running.remove(step)

    def rows(self) -> dict[int, int]:
        """Return the rows read so far, by fragment."""
        with self._lock:
            self._tell()
            return dict(self._told)

    def _tell(self, read: _Step | None = None) -> None:
        """Take up what running steps have read; `read` is one that has read all of its rows."""
        now = Counter(self._finished)
        for step in self._running:
            part = 1.0 if step is read else step.part
            now.update({fragment: int(rows * part) for fragment, rows in step.rows.items()})
        if not now <= self._told:
            self._told |= now
            self._keep()

    def _keep(self) -> None:
        if self._kept is not None:
            with suppress(OSError):  # the disk is full; after a restart the numbers may be lower
                self._kept.parent.mkdir(parents=True, exist_ok=True)
                new = self._kept.with_suffix(".new")
                new.write_text(json.dumps(self._told))
                new.replace(self._kept)


def _told(kept: Path) -> Counter[int]:
    with suppress(OSError, ValueError):
        return Counter({int(fragment): rows for fragment, rows in json.loads(kept.read_text()).items()})
    return Counter()


def _part(says: Path) -> float:
    """Return a task's finished part, from 0 to 1; 0 before the task has written it."""
    with suppress(OSError, ValueError):
        return min(max(float(says.read_text()), 0.0), 1.0)
    return 0.0
