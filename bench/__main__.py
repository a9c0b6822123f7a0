"""`python -m bench`: prints the measurements of one run and the machine they were made on."""

from __future__ import annotations

import argparse
import os
import platform
import sys
import time
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path

import psycopg

from bench.backfill import Comparison, compare
from bench.epochs import measure as epoch_costs
from bench.freshness import Freshness, measure
from bench.isolation import Isolation, percentile
from bench.isolation import measure as isolation
from bench.latency import Latency
from bench.latency import measure as latencies
from bench.plain_spark import PlainSpark, table_files
from bench.sql import scalar
from bench.wire import Target, clients, postgres, prepare, rates
from bench.workload import INSERTS, TABLES, VIEWS, WARM_UP, insert_orders
from examples.local_server import LocalServer, ServerError, local_server

FRESHNESS_VIEWS = VIEWS[:2]
DEFAULT_GROUP_PORT = "SELECT port FROM rw_catalog.rw_worker_nodes WHERE resource_group = 'default'"


def main() -> int:
    """Measure and print. Returns the exit code."""
    arguments = _parse_arguments()
    try:
        with local_server(
            "--spark-start", "on_demand" if arguments.wire else "eager", "--spark-memory-mib", str(arguments.memory_mib)
        ) as server:
            _print_machine(arguments.memory_mib)
            if not arguments.wire:
                _bench(server, arguments)
            _bench_wire(server)
    except (ServerError, psycopg.Error, TimeoutError) as error:
        print(f"bench: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130
    return 0


def _parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench", description="Backfill against plain Spark, and freshness.")
    parser.add_argument("--rows", type=int, help="rows of the table (default 10,000,000)")
    parser.add_argument("--runs", type=int, default=3, help="runs of each backfill that count (default 3)")
    parser.add_argument("--samples", type=int, help="inserts timed for freshness (default 50)")
    parser.add_argument("--memory-mib", type=int, default=2048, help="memory of Spark (default 2048)")
    parser.add_argument("--quick", action="store_true", help="500,000 rows and 10 samples")
    parser.add_argument("--wire", action="store_true", help="only what is measured over the wire")
    arguments = parser.parse_args()
    arguments.rows = arguments.rows or (500_000 if arguments.quick else 10_000_000)
    arguments.samples = arguments.samples or (10 if arguments.quick else 50)
    return arguments


def _bench(server: LocalServer, arguments: argparse.Namespace) -> None:
    with server.connect() as connection, server.connect() as reader:
        seconds = _fill(connection, arguments.rows)
        connection.execute(f"CREATE MATERIALIZED VIEW warm_up AS {WARM_UP}")
        files = {table: table_files(server.data, table) for table in ("orders", "customers")}
        size = sum(Path(file).stat().st_size for file in files["orders"])
        print(
            f"Table: {arguments.rows:,} rows, {len(files['orders'])} Parquet files, {size / 2**20:.0f} MiB, "
            f"inserted in {seconds:.1f} s\n",
            flush=True,
        )
        plain = PlainSpark(int(scalar(connection, DEFAULT_GROUP_PORT)), files, server.directory / "plain")
        _print_comparisons(connection, plain, arguments.runs)
        plain.close()
        _print_latencies(latencies(connection, VIEWS[0], arguments.samples))
        _print_isolation(isolation(server.connect, FRESHNESS_VIEWS, arguments.samples / 3))
        _print_freshness(measure(connection, reader, FRESHNESS_VIEWS, arguments.samples))
        for view in VIEWS:
            connection.execute(f"DROP MATERIALIZED VIEW {view.name}")
        _print_epochs(connection, arguments.rows)


def _bench_wire(server: LocalServer) -> None:
    targets = {"Sparkwave": Target(server.port, "root", "dev")}
    with postgres() as other:
        if other is not None:
            targets["PostgreSQL"] = other
        for name, target in targets.items():
            with target.connect() as connection:
                prepare(connection, is_postgres=name == "PostgreSQL")
        print("\nOver the wire, a second, best of three turns")
        print(f"  {'what':<18} {'how':<22} " + " ".join(f"{name:>11}" for name in targets) + f" {'ratio':>7}")
        for rate in rates(targets):
            ours, *others = rate.per_second.values()
            numbers = " ".join(f"{value:>11,.0f}" for value in (ours, *others))
            ratio = f"{ours / others[0]:>7.2f}" if others else ""
            print(f"  {rate.what:<18} {rate.how:<22} {numbers} {ratio}", flush=True)
    found = clients(server)
    print(f"  an idle client takes {found.idle_kib:.0f} KiB; beside a client that does not read, the slowest of 50")
    print(f"  queries took {1000 * found.beside_slow_reader_s:.0f} ms", flush=True)


def _fill(connection: psycopg.Connection, rows: int) -> float:
    for create in TABLES:
        connection.execute(create)
    connection.execute(INSERTS[0])
    start = time.perf_counter()
    connection.execute(insert_orders(rows))
    return time.perf_counter() - start


def _print_comparisons(connection: psycopg.Connection, plain: PlainSpark, runs: int) -> None:
    print(f"CREATE MATERIALIZED VIEW against one plain Spark job, best of {runs} in turn, s")
    print(f"  {'view':<20} {'strategy':<12} {'backfill':>9} {'plain':>7} {'ratio':>6}  {'spread':<11}  aim")
    for comparison in compare(connection, plain, VIEWS, runs):
        print(f"  {_comparison_line(comparison)}", flush=True)
    print()


def _comparison_line(comparison: Comparison) -> str:
    low, high = comparison.spread
    aim = comparison.view.aims[comparison.strategy]
    return (
        f"{comparison.view.title:<20} {comparison.strategy:<12} {min(comparison.backfill_s):>9.2f} "
        f"{min(comparison.plain_s):>7.2f} {comparison.ratio:>6.2f}  {f'{low:.2f} - {high:.2f}':<11}  "
        f"{aim} {'met' if comparison.ratio <= aim else 'missed'}"
    )


def _print_latencies(found: Sequence[Latency]) -> None:
    print("An INSERT of one row into the upstream, ms")
    print(f"  {'while filled by':<20} {'samples':>9} {'p50':>7} {'p99':>7}")
    for latency in found:
        p50, p99 = (1000 * latency.percentile(percent) for percent in (50, 99))
        print(f"  {latency.while_:<20} {len(latency.seconds):>9} {p50:>7.0f} {p99:>7.0f}")
    print(flush=True)


def _print_isolation(found: Sequence[Isolation]) -> None:
    print("What running views feel of a backfill: FLUSH after an INSERT, and a query of a view, ms")
    times = " ".join(f"{title:>9} {'p99':>6}" for title in ("FLUSH p50", "query p50"))
    print(f"  {'backfill':<24} {'engine':<7} {'samples':>7} {times} {'took, s':>8}")
    for case in found:
        percentiles = ((1000 * percentile(of, p) for p in (50, 99)) for of in (case.barriers, case.queries))
        times = " ".join(f"{p50:>9.0f} {p99:>6.0f}" for p50, p99 in percentiles)
        backfill = f"{case.backfill_s:>8.1f}" if case.case != found[0].case else ""
        print(f"  {case.case:<24} {case.engine:<7} {len(case.barriers):>7} {times} {backfill}")
    print(flush=True)


def _print_freshness(found: Sequence[Freshness]) -> None:
    print(f"From the start of an INSERT of one row to seeing it, {len(found[0].seconds)} samples at rest, ms")
    print(f"  {'view':<20} {'p50':>9} {'p99':>9} {'max':>7}")
    for freshness in found:
        p50, p99, highest = (
            1000 * s for s in (freshness.percentile(50), freshness.percentile(99), max(freshness.seconds))
        )
        print(f"  {freshness.view.title:<20} {p50:>9.0f} {p99:>9.0f} {highest:>7.0f}")


def _print_epochs(connection: psycopg.Connection, rows: int) -> None:
    sizes = (rows // 100, rows // 10, rows)
    print("\nFLUSH after some changes (half inserts, half updates), by rows of the table, median ms")
    print(f"  {'operator':<12} {'engine':<7} {'changes':>8} " + " ".join(f"{size:>11,}" for size in sizes))
    for epochs in epoch_costs(connection, sizes):
        times = " ".join(f"{epochs.ms[size]:>11.0f}" for size in sizes)
        print(f"  {epochs.operator:<12} {epochs.engine:<7} {epochs.changes:>8,} {times}", flush=True)


def _print_machine(memory_mib: int) -> None:
    versions = ", ".join(f"{name} {version(package)}" for name, package in _PACKAGES)
    pages = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    print(
        f"Machine: {os.cpu_count()} cores, {pages / 2**30:.0f} GiB, {platform.system()} {platform.machine()}; ", end=""
    )
    print(f"Spark has {os.cpu_count()} cores and {memory_mib} MiB")
    print(f"Versions: Python {platform.python_version()}, {versions}")


_PACKAGES = (("Spark", "pyspark"), ("DuckDB", "duckdb"), ("Sparkwave", "sparkwave"))

if __name__ == "__main__":
    sys.exit(main())
