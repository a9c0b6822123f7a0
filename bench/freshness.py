"""How long after an INSERT was acknowledged does a SELECT on another connection see it in a view."""

from __future__ import annotations

import random
import time
from collections.abc import Iterator
from dataclasses import dataclass

import psycopg

from bench.measuring import Settings, percentile
from bench.results import Aim, Bars, Table
from bench.sql import scalar
from sparkwave.server.demo.local_server import local_server

ROWS = 100_000
# Several epochs long, so that samples fall anywhere in one.
PAUSE_S = (0.1, 0.3)
POLL_S = 0.001
# The most that the samples of a case may take; it has three at least.
CASE_S = 15
# The first epochs after a view has been created compile its program, copy it into memory and prepare its statements.
WARM_UP = 3
TIMEOUT_S = 30
SPARK_MS = 1200
TABLE = "CREATE TABLE orders (id bigint PRIMARY KEY, customer int, price double precision)"
FILL = f"INSERT INTO orders SELECT i, i % 1000, i % 97 FROM range({ROWS}) r(i)"
AGGREGATION = "SELECT customer, count(*) AS orders, sum(price) AS total FROM orders GROUP BY customer"
PROBE = "SELECT orders FROM {view} WHERE customer = 1"


@dataclass(frozen=True)
class Case:
    """Views over one table; `read` is the one that is polled, one row of it for each customer.

    `aims` are the most milliseconds, p50 and p99.
    """

    title: str
    views: dict[str, str]
    read: str
    aims: tuple[int, int]
    engine: str = "auto"


def measure(settings: Settings) -> Iterator[Table]:
    """Every case with small epochs, then one whose epochs run on Spark."""
    with (
        local_server("--spark-start", "on_demand", "--spark-memory-mib", str(settings.memory_mib)) as server,
        server.connect() as writer,
        server.connect() as reader,
    ):
        writer.execute("ALTER SYSTEM SET barrier_interval_ms = 50")
        writer.execute("ALTER SYSTEM SET checkpoint_frequency = 20")
        writer.execute("ALTER SYSTEM SET backfill_engine = auto")
        writer.execute(TABLE)
        writer.execute(FILL)
        found = []
        for case in _cases(settings.is_quick):
            samples = settings.samples if case.engine == "auto" else max(settings.samples // 5, 3)
            found.append((case, *_measure(writer, reader, case, samples)))
            print(f"  {case.title}: {1000 * percentile(found[-1][2], 50):.0f} ms", flush=True)
    yield _table(found)


def _cases(is_quick: bool) -> list[Case]:
    counts = {1: (15, 40), 10: (30, 60)} | ({} if is_quick else {50: (90, 200)})
    cases = [
        Case(f"{n} view{'s' * (n > 1)}", {f"v{i}": AGGREGATION for i in range(n)}, f"v{n - 1}", aims)
        for n, aims in counts.items()
    ]
    chain = {"v0": AGGREGATION}
    for step in range(1, 5):
        chain[f"v{step}"] = f"SELECT customer, orders, total + {step} AS total FROM v{step - 1}"
    cases.append(Case("a chain of 5", chain, "v4", (35, 70)))
    on_spark = Case("1 view, epochs on Spark", {"v0": AGGREGATION}, "v0", (SPARK_MS, SPARK_MS), "spark")
    return cases if is_quick else [*cases, on_spark]


def _measure(
    writer: psycopg.Connection, reader: psycopg.Connection, case: Case, samples: int
) -> tuple[list[float], list[float]]:
    """Seconds of each INSERT, and from its end until the view showed it."""
    for name, query in case.views.items():
        writer.execute(f"CREATE MATERIALIZED VIEW {name} AS {query}")
    writer.execute(f"ALTER SYSTEM SET streaming_engine = {case.engine}")
    choice = random.Random(13)
    inserts, seen = [], []
    deadline = time.perf_counter() + CASE_S
    for sample in range(samples + WARM_UP):
        if sample > WARM_UP + 2 and time.perf_counter() > deadline:
            break
        time.sleep(choice.uniform(*PAUSE_S))
        insert_s, seen_s = _sample(writer, reader, case.read)
        if sample >= WARM_UP:
            inserts.append(insert_s)
            seen.append(seen_s)
    writer.execute("ALTER SYSTEM SET streaming_engine = DEFAULT")
    for name in reversed(case.views):
        writer.execute(f"DROP MATERIALIZED VIEW {name}")
    return inserts, seen


def _sample(writer: psycopg.Connection, reader: psycopg.Connection, view: str) -> tuple[float, float]:
    probe = PROBE.format(view=view)
    before = scalar(reader, probe)
    start = time.perf_counter()
    writer.execute(f"INSERT INTO orders VALUES ({time.time_ns()}, 1, 1.0)")
    acknowledged = time.perf_counter()
    while scalar(reader, probe) == before:
        if time.perf_counter() - acknowledged > TIMEOUT_S:
            raise TimeoutError(f"{view} has not shown a row within {TIMEOUT_S} s")
        time.sleep(POLL_S)
    return acknowledged - start, time.perf_counter() - acknowledged


def _table(found: list[tuple[Case, list[float], list[float]]]) -> Table:
    rows, aims = [], []
    for case, inserts, seen in found:
        p50, p99 = (1000 * percentile(seen, percent) for percent in (50, 99))
        rows.append((case.title, len(seen), 1000 * percentile(inserts, 50), p50, p99, 1000 * max(seen)))
        if case.engine == "spark":
            aims.append(Aim(case.title, f"p50 <= {SPARK_MS:,} ms", f"{p50:.0f} ms", p50 <= SPARK_MS))
        else:
            for name, found_ms, most_ms in zip(("p50", "p99"), (p50, p99), case.aims, strict=True):
                aims.append(Aim(f"{case.title}, {name}", f"<= {most_ms} ms", f"{found_ms:.0f} ms", found_ms <= most_ms))
    labels = [case.title for case, *_ in found]
    series = {"p50": [float(row[3]) for row in rows], "p99": [float(row[4]) for row in rows]}
    return Table(
        "From an acknowledged INSERT to its row in a view, ms",
        f"Views are aggregations by customer over {ROWS:,} rows, or the last of a chain of views; all of them change. "
        "barrier_interval_ms = 50, checkpoint_frequency = 20. "
        f"Another connection polls one view each {1000 * POLL_S:g} ms.",
        ("views", "samples", "INSERT p50", "visible p50", "p99", "max"),
        rows,
        Bars("freshness", "ms", labels, series),
        aims,
    )
