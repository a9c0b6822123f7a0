"""The progress of the views that `make demo` creates, as text: bars on a terminal, lines of a table elsewhere."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

BAR_WIDTH = 24
# The rate covers the last seconds, so that it follows the work and does not jump with each slice.
RATE_WINDOW_S = 6.0


@dataclass(frozen=True)
class Progress:
    """The parts of a progress text of SHOW JOBS. `read` and `total` are rows of the tables that the backfill reads."""

    phase: str
    read: int = 0
    total: int = 0

    @property
    def fraction(self) -> float:
        """The part that is done, 0 to 1."""
        if self.phase in ("catching up", "created"):
            return 1.0
        return self.read / self.total if self.total else 0.0


PLANNED = Progress("planned")
STARTING = Progress("starting Spark")
CREATED = Progress("created")


def parse_progress(text: str) -> Progress:
    """Read RisingWave's progress: `0.0%`, `Snapshot [12.34% (1234/10000)]` or `LogStore […]`.

    >>> parse_progress("Snapshot [12.34% (1234/10000)]")
    Progress(phase='backfill', read=1234, total=10000)
    """
    if text.startswith("LogStore"):
        return Progress("catching up")
    if not text.startswith("Snapshot"):
        return STARTING
    match = re.search(r"\((\d+)/(\d+)\)", text)
    return Progress("backfill", int(match[1]), int(match[2])) if match else Progress("backfill")


@dataclass
class Track:
    """One view's progress over time, in seconds since the start of the creation."""

    name: str
    progress: Progress = PLANNED
    node: str = ""
    started_s: float = 0.0
    finished_s: float | None = None
    _samples: list[tuple[float, int]] = field(default_factory=list)

    def update(self, now_s: float, progress: Progress, node: str = "") -> None:
        """Note the server's present progress."""
        if self.progress == PLANNED and progress != PLANNED:
            self.started_s = now_s
        self.progress = progress
        self.node = node or self.node
        if progress == CREATED and self.finished_s is None:
            self.finished_s = now_s
        if progress.total:
            self._samples.append((now_s, progress.read))

    def rate(self) -> float:
        """Return the rows a second of the last seconds."""
        if not self._samples:
            return 0.0
        end_s, read = self._samples[-1]
        # The last sample before the window, so that the rate covers at least the window, if there are samples for it.
        start_s, before = next(
            (sample for sample in reversed(self._samples) if sample[0] <= end_s - RATE_WINDOW_S), self._samples[0]
        )
        return (read - before) / (end_s - start_s) if end_s > start_s else 0.0

    def left_s(self) -> float | None:
        """Return the seconds until the backfill ends at this rate; None when no rate is known."""
        rate = self.rate()
        return (self.progress.total - self.progress.read) / rate if rate and self.progress.total else None

    def status(self) -> str:
        """Return the rate and time left, or the phase."""
        match self.progress.phase:
            case "backfill":
                left_s = self.left_s()
                return f"{self.rate():>9,.0f} rows/s  {left_s:>3.0f} s left" if left_s is not None else ""
            case "created":
                return f"created in {(self.finished_s or 0) - self.started_s:.1f} s"
            case phase:
                return phase


def bar(fraction: float, width: int = BAR_WIDTH) -> str:
    """Return a progress bar; it is full only at the very end.

    >>> bar(0.5, 4)
    '██░░'
    """
    full = int(fraction * width)
    return "█" * full + "░" * (width - full)


def bar_line(track: Track, name_width: int) -> str:
    """Return the line of one view, for a terminal that is redrawn."""
    progress = track.progress
    counts = f"{progress.read:,} / {progress.total:,}" if progress.total else ""
    percent = f"{100 * progress.fraction:5.1f} %"
    line = f"  {track.name:<{name_width}}  {bar(progress.fraction)}  {percent}  {counts:>17}  {track.status():<28}"
    return f"{line}  {track.node}".rstrip()


def cell(track: Track) -> str:
    """Return one view's progress in a few characters, for a row of the plain table."""
    match track.progress.phase:
        case "planned":
            return "·"
        case "backfill":
            rate = track.rate()
            short = f"{rate:.0f}" if rate < 1000 else f"{rate / 1000:,.0f}k"
            return f"{100 * track.progress.fraction:3.0f} %" + (f"  {short}/s" if rate else "")
        case phase:
            return phase
