"""`python -m bench`: runs the sections of the benchmark, prints their tables and writes RESULTS.md."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import UTC, datetime

import psycopg

from bench import (
    backfill,
    create,
    freshness,
    ingest,
    isolation,
    quotes,
    reads,
    refresh,
    report,
    results,
    scaling,
    start,
    together,
    yielding,
)
from bench.measuring import Settings
from bench.results import Section, Table
from sparkwave.server.demo.local_server import ServerError

SECTIONS: dict[str, Callable[[Settings], Iterator[Table]]] = {
    "start": start.measure,
    "ingest": ingest.measure,
    "reads": reads.measure,
    "freshness": freshness.measure,
    "backfill": backfill.measure,
    "create_tpch": create.measure_tpch,
    "create_nexmark": create.measure_nexmark,
    "refresh_tpch": refresh.measure_tpch,
    "refresh_nexmark": refresh.measure_nexmark,
    "scale": scaling.measure,
    "isolation": isolation.measure,
    "yielding": yielding.measure,
    "together": together.measure,
    "quotes": quotes.measure,
}
# Left out of `make bench`, which is to end within 20 minutes.
ON_REQUEST = ("create_nexmark", "isolation", "yielding", "together", "quotes")
# What `--large` runs: each takes longer than `make bench`, and its results are kept beside the usual ones.
LARGE = ("create_tpch", "create_nexmark", "refresh_tpch", "refresh_nexmark", "scale")
_USUAL = Settings(
    is_quick=False, is_large=False, rows=10_000_000, scale=1, refresh_scale=0.1, events=500_000,
    refresh_events=500_000, runs=3, samples=30, memory_mib=2048,
)  # fmt: skip
_SIZES = {
    "usual": _USUAL,
    "quick": replace(
        _USUAL, is_quick=True, rows=200_000, scale=0.01, refresh_scale=0.01, events=20_000, refresh_events=20_000,
        runs=1, samples=5,
    ),
    "large": replace(
        _USUAL, is_large=True, rows=100_000_000, scale=5, refresh_scale=1, events=10_000_000, refresh_events=2_000_000
    ),
}  # fmt: skip


def main() -> int:
    """Measure, print and write; a section that fails stops no other. Returns the exit code."""
    names, settings = _parse_arguments()
    code = 0
    try:
        for name in names:
            try:
                _run(name, settings)
            except (ServerError, psycopg.Error, TimeoutError) as error:
                print(f"bench: {name}: {error}", file=sys.stderr)
                code = 1
    except KeyboardInterrupt:
        return 130
    finally:
        if not settings.is_quick:
            found = {name: results.load(name) for name in (*SECTIONS, *map(_kept_as_large, LARGE))}
            report.write(
                [of for of in found.values() if of is not None], [name for name, of in found.items() if of is None]
            )
    return code


def _run(name: str, settings: Settings) -> None:
    print(f"== {name}", flush=True)
    date, commit, began, tables = datetime.now(UTC), report.commit(), time.perf_counter(), []
    try:
        for table in SECTIONS[name](settings):
            if settings.is_large and table.plot is not None:
                table = replace(table, plot=replace(table.plot, name=_kept_as_large(table.plot.name)))
            tables.append(table)
            print(report.text(table), flush=True)
    finally:
        took = time.perf_counter() - began
        print(f"{name}: {took:.0f} s\n", flush=True)
        if tables and not settings.is_quick:
            machine = report.machine(settings.memory_mib)
            kept_as = _kept_as_large(name) if settings.is_large else name
            results.save(Section(kept_as, f"{date:%Y-%m-%d %H:%M} UTC", commit, machine, took, tables))


def _kept_as_large(name: str) -> str:
    return f"{name}_large"


def _parse_arguments() -> tuple[list[str], Settings]:
    parser = argparse.ArgumentParser(prog="python -m bench", description="Measures Sparkwave beside others.")
    parser.add_argument("--only", nargs="+", choices=SECTIONS, metavar="SECTION", help=f"of: {', '.join(SECTIONS)}")
    size = parser.add_mutually_exclusive_group()
    size.add_argument("--quick", dest="size", action="store_const", const="quick",
                      help="little data, few runs; nothing is written")  # fmt: skip
    size.add_argument("--large", dest="size", action="store_const", const="large",
                      help=f"ten times the data of {', '.join(LARGE)}, for hours")  # fmt: skip
    parser.add_argument("--rows", type=int, help="rows of the table of orders (default 10,000,000)")
    parser.add_argument("--sf", type=float, help="TPC-H's scale factor (default 1, and 0.1 for refresh)")
    parser.add_argument("--events", type=int, help="Nexmark's events (default 500,000)")
    parser.add_argument("--runs", type=int, help="runs of each backfill that count (default 3)")
    parser.add_argument("--samples", type=int, help="inserts timed for freshness (default 30)")
    parser.add_argument("--memory-mib", type=int, help="memory of Spark (default 2048)")
    given = parser.parse_args()
    usual = LARGE if given.size == "large" else [name for name in SECTIONS if name not in ON_REQUEST]
    if given.size == "large" and not set(given.only or ()) <= set(LARGE):
        parser.error(f"--large is for {', '.join(LARGE)}")
    asked = {
        "rows": given.rows, "scale": given.sf, "refresh_scale": given.sf, "events": given.events,
        "refresh_events": given.events, "runs": given.runs, "samples": given.samples, "memory_mib": given.memory_mib,
    }  # fmt: skip
    sizes = _SIZES[given.size or "usual"]
    return list(given.only or usual), replace(sizes, **{name: value for name, value in asked.items() if value})


if __name__ == "__main__":
    sys.exit(main())
