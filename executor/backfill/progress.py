"""How many rows a creating job has read, those of running steps among them, whose tasks say it into a file each.

What has been told once is told for good, whatever fails, is tried again or is interrupted, over a restart too.
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


class Progress:
    """Of one job. `kept` is the file that has what was told, by servers before this one too; None where there are no
    directories.
    """

    def __init__(self, kept: Path | None) -> None:
        self._kept = kept
        self._finished: Counter[int] = Counter()
        self._running: list[_Step] = []
        self._told = _told(kept) if kept is not None else Counter()
        self._lock = RankedLock()

    def resume(self, finished: Rows) -> None:
        """Rows of steps are finished: by this server, or by one before it."""
        with self._lock:
            self._finished = Counter(finished)

    def start_again(self) -> None:
        """Other steps are to read everything from the start."""
        with self._lock:
            self._finished, self._told = Counter(), Counter()
            self._keep()

    def finish(self, rows: Rows) -> None:
        """A step with so many rows is committed."""
        with self._lock:
            self._finished.update(rows)

    def end(self) -> None:
        """The job is over: nothing is kept any more."""
        with self._lock:
            self._kept = None

    @contextmanager
    def running(self, rows: Rows, says: Sequence[Path | None]) -> Iterator[None]:
        """While entered, tasks read so many rows, and files say which part each has, if they say anything."""
        step = _Step(rows, tuple(path for path in says if path is not None))
        if not step.says:
            yield
            return
        with self._lock:
            self._running.append(step)
        try:
            yield
        finally:
            with self._lock:
                self._running.remove(step)

    def rows(self) -> dict[int, int]:
        """The rows that are read now."""
        with self._lock:
            now = Counter(self._finished)
            for step in self._running:
                part = sum(map(_part, step.says)) / len(step.says)
                now.update({fragment: int(rows * part) for fragment, rows in step.rows.items()})
            if not now <= self._told:
                self._told |= now
                self._keep()
            return dict(self._told)

    def _keep(self) -> None:
        if self._kept is not None:
            with suppress(OSError):  # a full disk; what cannot be kept is told again after a restart
                self._kept.parent.mkdir(parents=True, exist_ok=True)
                new = self._kept.with_suffix(".new")
                new.write_text(json.dumps(self._told))
                new.replace(self._kept)


def _told(kept: Path) -> Counter[int]:
    with suppress(OSError, ValueError):
        return Counter({int(fragment): rows for fragment, rows in json.loads(kept.read_text()).items()})
    return Counter()


def _part(says: Path) -> float:
    """From 0 to 1; 0 of a task that has not said anything yet."""
    with suppress(OSError, ValueError):
        return min(max(float(says.read_text()), 0.0), 1.0)
    return 0.0
