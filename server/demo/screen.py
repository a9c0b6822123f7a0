"""Prints the output of `make demo`: steps, tables, and progress, live on a terminal and as plain lines elsewhere."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterable, Sequence

from sparkwave.server.demo.progress_lines import Track, bar_line, cell

CELL_WIDTH = 17


class Screen:
    """Writes to standard output; on a terminal it redraws the progress lines."""

    def __init__(self) -> None:
        self.is_live = sys.stdout.isatty() and os.environ.get("TERM") != "dumb"
        self._has_colour = self.is_live and not os.environ.get("NO_COLOR")
        self._started = time.monotonic()
        self._drawn = 0
        self._last_cells: list[str] = []
        self._last_line_s = -1.0

    def bold(self, text: str) -> str:
        return f"\033[1m{text}\033[0m" if self._has_colour else text

    def dim(self, text: str) -> str:
        return f"\033[2m{text}\033[0m" if self._has_colour else text

    def step(self, text: str) -> None:
        """Write a heading."""
        self.write("")
        self.write(self.bold(text))

    def statement(self, sql: str) -> None:
        """Write SQL as it is sent."""
        for line in f"{sql};".splitlines():
            self.write(self.dim(f"    {line}"))

    def write(self, text: str) -> None:
        """Write a line, above the live part if there is one."""
        self._erase()
        print(text, flush=True)

    def table(self, header: Sequence[str], rows: Iterable[Sequence[object]], *, indent: int = 2) -> None:
        """Write aligned columns, numbers to the right."""
        for line in format_table(header, rows):
            self.write(" " * indent + line)

    def progress(self, tracks: Sequence[Track], now_s: float) -> None:
        """Write the progress of all views: redrawn bars on a terminal, else a line when something has changed."""
        if self.is_live:
            width = max(len(track.name) for track in tracks)
            lines = [bar_line(track, width) for track in tracks]
            columns = os.get_terminal_size().columns
            self._erase()
            print("\n".join(line[: columns - 1] for line in lines), flush=True)
            self._drawn = len(lines)
            return
        cells = [cell(track) for track in tracks]
        is_over = all(track.finished_s is not None for track in tracks)
        # Rates change all the time; a line is printed only when another part has changed.
        states = [text.split("  ")[0] for text in cells]
        if states != self._last_cells and (is_over or now_s - self._last_line_s >= 1):
            if not self._last_cells:
                self.write("      time  " + "".join(f"{track.name:<{CELL_WIDTH}}" for track in tracks).rstrip())
            self.write(f"  {now_s:6.1f} s  " + "".join(f"{text:<{CELL_WIDTH}}" for text in cells).rstrip())
            self._last_cells, self._last_line_s = states, now_s

    def keep_progress(self) -> None:
        """Leave the live part as it is; later output goes below it."""
        self._drawn = 0

    def _erase(self) -> None:
        if self._drawn:
            print(f"\033[{self._drawn}A\033[J", end="")
            self._drawn = 0


def format_table(header: Sequence[str], rows: Iterable[Sequence[object]]) -> list[str]:
    """Return the lines of a table; a column is aligned right when all its values are numbers or times.

    >>> format_table(("view", "rows"), [("a", 12), ("bcd", 3)])
    ['view  rows', 'a       12', 'bcd      3']
    """
    values = list(rows)
    texts = [[f"{value:,}" if isinstance(value, int) else str(value) for value in row] for row in values]
    widths = [max(map(len, column)) for column in zip(header, *texts, strict=True)]
    right = [
        all(isinstance(row[index], int) or str(row[index]).endswith((" s", " ms")) for row in values)
        for index in range(len(header))
    ]
    lines = []
    for row in (list(header), *texts):
        cells = [f"{t:>{w}}" if r else f"{t:<{w}}" for t, w, r in zip(row, widths, right, strict=True)]
        lines.append("  ".join(cells).rstrip())
    return lines
