"""RESULTS.md and its plots, written from what the last run of each section has found."""

from __future__ import annotations

import os
import platform
import subprocess
from collections.abc import Iterator, Sequence
from importlib.metadata import version
from pathlib import Path

from bench.bars import svg as bars
from bench.measuring import digits
from bench.results import Bars, Cell, Lines, Section, Table
from bench.scale.plot import svg as lines

FOLDER = Path(__file__).parent
PAGE = FOLDER / "RESULTS.md"
PLOTS = FOLDER / "plots"
CHANGES = FOLDER / "changes.md"  # what was made of what earlier runs had found
_PACKAGES = (("Spark", "pyspark"), ("DuckDB", "duckdb"))


def machine(memory_mib: int) -> str:
    """The machine and the versions in one sentence each."""
    gib = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    versions = ", ".join(f"{name} {version(package)}" for name, package in _PACKAGES)
    return (
        f"{os.cpu_count()} cores, {gib:.0f} GiB, {platform.system()} {platform.machine()}; "
        f"Spark has {os.cpu_count()} cores and {memory_mib} MiB. Python {platform.python_version()}, {versions}."
    )


def commit() -> str:
    """The commit that is measured; with "+" when files differ from it."""
    git = ["git", "-C", str(FOLDER)]
    found = subprocess.run([*git, "rev-parse", "--short", "HEAD"], capture_output=True, text=True).stdout.strip()
    but_results = ("..", ":!results", ":!plots", ":!RESULTS.md")
    changed = subprocess.run([*git, "diff", "--quiet", "HEAD", "--", *but_results], capture_output=True).returncode
    return f"{found}+" if changed else found


def write(sections: Sequence[Section], missing: Sequence[str] = ()) -> None:
    """Write the page and its plots; it names the sections that are missing."""
    PLOTS.mkdir(exist_ok=True)
    for section in sections:
        for table in section.tables:
            if table.plot is not None:
                (PLOTS / f"{table.plot.name}.svg").write_text(_svg(table))
    PAGE.write_text("\n".join(_page(sections, missing)) + "\n")


def text(table: Table) -> str:
    """A table for the terminal."""
    shown = [list(table.columns), *([_shown(cell) for cell in row] for row in table.rows)]
    widths = [max(len(row[place]) for row in shown) for place in range(len(table.columns))]
    rows = ["  " + "  ".join(_padded(cell, width) for cell, width in zip(row, widths, strict=True)) for row in shown]
    aims = [f"  {'met   ' if aim.is_met else 'MISSED'} {aim.what}: {aim.measured} ({aim.target})" for aim in table.aims]
    return "\n".join([table.title, *rows, *aims, ""])


def _page(sections: Sequence[Section], missing: Sequence[str]) -> Iterator[str]:
    yield "# Results\n"
    yield "Written by `python -m bench` ([how](README.md)); each section is of the last run that measured it.\n"
    if missing:
        yield f"Not measured yet: {', '.join(missing)}.\n"
    for described in dict.fromkeys(section.machine for section in sections):
        yield f"Machine: {described}\n"
    aims = [(section, aim) for section in sections for table in section.tables for aim in table.aims]
    yield f"## Aims: {sum(aim.is_met for _, aim in aims)} of {len(aims)} met\n"
    yield from _rows(
        ("section", "what", "aim", "measured", ""),
        [(s.name, a.what, a.target, a.measured, "met" if a.is_met else "**missed**") for s, a in aims],
    )
    yield "## Where Sparkwave loses\n"
    missed = [f"- {aim.what}: {aim.measured}, where the aim is {aim.target}." for _, aim in aims if not aim.is_met]
    yield "\n".join(missed or ["- No aim was missed."]) + "\n"
    behind = [f"- {loss}" for section in sections for table in section.tables for loss in table.losses]
    yield "Another system is ahead of it in:\n"
    yield "\n".join(behind or ["- nothing that was measured."]) + "\n"
    for section in sections:
        yield f"## {section.name.replace('_', ' ').capitalize()}\n"
        yield f"{section.date}, commit {section.commit}, {section.seconds:.0f} s.\n"
        for table in section.tables:
            yield f"### {table.title}\n"
            if table.note:
                yield f"{table.note}\n"
            yield from _rows(table.columns, table.rows)
            if table.plot is not None:
                yield f"![{table.title}](plots/{table.plot.name}.svg)\n"
    yield CHANGES.read_text().rstrip()


def _rows(columns: Sequence[str], rows: Sequence[Sequence[Cell]]) -> Iterator[str]:
    yield f"| {' | '.join(columns)} |"
    yield f"|{'---|' * len(columns)}"
    for row in rows:
        yield f"| {' | '.join(_shown(cell) for cell in row)} |"
    yield ""


def _shown(cell: Cell) -> str:
    match cell:
        case None:
            return "-"
        case float():
            return digits(cell)
        case int():
            return f"{cell:,}"
    return cell


def _padded(cell: str, width: int) -> str:
    is_number = cell[:1].isdigit() and " " not in cell
    return cell.rjust(width) if is_number else cell.ljust(width)


def _svg(table: Table) -> str:
    match table.plot:
        case Bars() as plot:
            return bars(table.title, plot)
        case Lines() as plot:
            return lines(table.title, plot.x_label, plot.y_label, plot.series)
    raise AssertionError(table.title)
