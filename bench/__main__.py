"""`python -m bench`: runs the sections of the benchmark, prints their tables and writes RESULTS.md."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime

import psycopg

from bench import backfill, freshness, ingest, isolation, reads, refresh, report, results, scaling, start, tpch
from bench.measuring import Settings
from bench.results import Section, Table
from examples.local_server import ServerError

SECTIONS: dict[str, Callable[[Settings], Iterator[Table]]] = {
    "start": start.measure,
    "ingest": ingest.measure,
    "reads": reads.measure,
    "freshness": freshness.measure,
    "backfill": backfill.measure,
    "tpch": tpch.measure,
    "refresh": refresh.measure_tpch,
    "nexmark": refresh.measure_nexmark,
    "scale": scaling.measure,
    "isolation": isolation.measure,
}
# Takes minutes for itself, and compares nothing.
ON_REQUEST = ("isolation",)


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
            found = {name: results.load(name) for name in SECTIONS}
            report.write(
                [of for of in found.values() if of is not None], [name for name, of in found.items() if of is None]
            )
    return code


def _run(name: str, settings: Settings) -> None:
    print(f"== {name}", flush=True)
    date, commit, began, tables = datetime.now(UTC), report.commit(), time.perf_counter(), []
    try:
        for table in SECTIONS[name](settings):
            tables.append(table)
            print(report.text(table), flush=True)
    finally:
        took = time.perf_counter() - began
        print(f"{name}: {took:.0f} s\n", flush=True)
        if tables and not settings.is_quick:
            machine = report.machine(settings.memory_mib)
            results.save(Section(name, f"{date:%Y-%m-%d %H:%M} UTC", commit, machine, took, tables))


def _parse_arguments() -> tuple[list[str], Settings]:
    parser = argparse.ArgumentParser(prog="python -m bench", description="Measures Sparkwave beside others.")
    parser.add_argument("--only", nargs="+", choices=SECTIONS, metavar="SECTION", help=f"of: {', '.join(SECTIONS)}")
    parser.add_argument("--quick", action="store_true", help="little data, few runs; nothing is written")
    parser.add_argument("--rows", type=int, help="rows of the table of orders (default 10,000,000)")
    parser.add_argument("--sf", type=float, help="TPC-H's scale factor (default 0.5, and 0.1 for refresh)")
    parser.add_argument("--events", type=int, help="Nexmark's events (default 500,000)")
    parser.add_argument("--runs", type=int, help="runs of each backfill that count (default 4)")
    parser.add_argument("--samples", type=int, help="inserts timed for freshness (default 30)")
    parser.add_argument("--memory-mib", type=int, default=2048, help="memory of Spark (default 2048)")
    given = parser.parse_args()
    quick = given.quick
    return given.only or [name for name in SECTIONS if name not in ON_REQUEST], Settings(
        is_quick=quick,
        rows=given.rows or (200_000 if quick else 10_000_000),
        scale=given.sf or (0.01 if quick else 0.5),
        refresh_scale=given.sf or (0.01 if quick else 0.1),
        events=given.events or (20_000 if quick else 500_000),
        runs=given.runs or (1 if quick else 4),
        samples=given.samples or (5 if quick else 30),
        memory_mib=given.memory_mib,
    )


if __name__ == "__main__":
    sys.exit(main())
