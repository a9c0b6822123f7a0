"""Views after some changes: an epoch of all of them, beside PostgreSQL's REFRESH, Spark's pipelines and recomputing."""

from __future__ import annotations

import itertools
import statistics
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psycopg

from bench import datasets, pipelines
from bench.answers import are_same
from bench.datasets import Change, Dataset, Workload
from bench.measuring import Settings, digits, geometric_mean, seconds, spread
from bench.postgres import NOTE, postgres
from bench.results import Aim, Bars, Lines, Table
from sparkwave.server.demo.local_server import local_server

Connection = psycopg.Connection[Any]
# The changed fractions, and how often each of them changes.
FRACTIONS, SAMPLES = (0.0001, 0.001, 0.01, 0.1), 3
AIMED = 0.001
FASTER_THAN_POSTGRES, FASTER_THAN_PIPELINES = 50, 100
LONGEST_S = 60
# Epochs before one counts. They show what each way of refreshing takes, copy what is looked up, and prepare statements.
WARM_UP = 4


@dataclass
class Found:
    """Seconds of FLUSH and of each view's REFRESH, by fraction and alone; of recomputing and of a pipeline run."""

    changed: dict[float, int] = field(default_factory=dict)
    flush: dict[float, list[float]] = field(default_factory=dict)
    refresh: dict[float, dict[str, float]] = field(default_factory=dict)
    recompute: dict[str, float] = field(default_factory=dict)
    alone: dict[str, float] = field(default_factory=dict)
    refresh_alone: dict[str, float] = field(default_factory=dict)
    pipeline: pipelines.PipelineRun | None = None
    refused: dict[str, str] = field(default_factory=dict)
    wrong: list[str] = field(default_factory=list)


def measure_tpch(settings: Settings) -> Iterator[Table]:
    """The 22 queries."""
    yield from _measure(datasets.TPCH, settings.refresh_scale, settings)


def measure_nexmark(settings: Settings) -> Iterator[Table]:
    """Nexmark's queries that other databases have too."""
    yield from _measure(datasets.NEXMARK, settings.refresh_events, settings)


def _measure(workload: Workload, size: float, settings: Settings) -> Iterator[Table]:
    title, name = workload.title(size), workload.name
    samples = 1 if settings.is_quick else SAMPLES
    together = [*[min(FRACTIONS)] * WARM_UP, *(fraction for fraction in FRACTIONS for _ in range(samples))]
    with (
        tempfile.TemporaryDirectory(prefix="bench-refresh-") as folder,
        local_server("--spark-memory-mib", str(settings.memory_mib)) as server,
        postgres() as other,
        server.connect() as connection,
    ):
        alone = [AIMED] * (WARM_UP + 1) * len(list((datasets.QUERIES / name).glob("q*.sql")))
        data = workload.make(Path(folder), size, [*alone, *together])
        found = Found()
        load_s = seconds(_prepare, connection, data)
        beside = other.connect() if other else None
        if beside is not None:
            data.load(beside, is_postgres=True)
            found.refused = _create(beside, data)
        _alone(connection, beside, data, data.changes[: len(alone)], found)
        yield _by_view(title, name, found)
        for query in data.queries.items():
            connection.execute("CREATE MATERIALIZED VIEW {} AS {}".format(*query))
        _together(connection, beside, data, data.changes[len(alone) :], found)
        try:
            found.pipeline = pipelines.run(Path(folder) / "pipeline", data.parquet, data.queries, settings.memory_mib)
        except RuntimeError as error:
            print(error, flush=True)
        yield _by_change(title, name, data, found, load_s)


def _prepare(connection: Connection, data: Dataset) -> None:
    """The tables, on a server that fills views in process and has no epoch but FLUSH's."""
    connection.execute("ALTER SYSTEM SET backfill_engine = auto")
    connection.execute("ALTER SYSTEM SET barrier_interval_ms = 3600000")
    data.load(connection)


def _create(other: Connection, data: Dataset) -> dict[str, str]:
    """PostgreSQL's views. Returns why there are some it does not have."""
    refused = {}
    other.execute(f"SET statement_timeout = '{LONGEST_S}s'")
    for name, query in data.queries.items():
        try:
            other.execute(f"CREATE MATERIALIZED VIEW {name} AS {query}")
        except psycopg.errors.QueryCanceled:
            refused[name] = f"more than {LONGEST_S} s"
        except psycopg.Error as error:
            refused[name] = str(error).splitlines()[0]
    return refused


def _together(
    connection: Connection, other: Connection | None, data: Dataset, changes: Sequence[Change], found: Found
) -> None:
    """All views at once: change after change; PostgreSQL refreshes after the last one of each fraction."""
    for place, change in enumerate(changes):
        change.apply(connection)
        flush_s = seconds(connection.execute, "FLUSH")
        if other is not None:
            change.apply(other)
        if place < WARM_UP:
            continue
        found.changed[change.fraction] = change.rows
        found.flush.setdefault(change.fraction, []).append(flush_s)
        print(f"  {100 * change.fraction:g} %: {change.rows:,} rows, FLUSH {flush_s:.2f} s", flush=True)
        is_last = place + 1 == len(changes) or changes[place + 1].fraction != change.fraction
        if is_last and other is not None and change.fraction >= AIMED:
            found.refresh[change.fraction] = {
                name: seconds(other.execute, f"REFRESH MATERIALIZED VIEW {name}")
                for name in data.queries
                if name not in found.refused
            }
            print(f"  REFRESH {sum(found.refresh[change.fraction].values()):.2f} s", flush=True)
            found.wrong += [
                f"{name} at {100 * change.fraction:g} %"
                for name in found.refresh[change.fraction]
                if not are_same(connection, other, name)
            ]


def _alone(
    connection: Connection, other: Connection | None, data: Dataset, changes: Sequence[Change], found: Found
) -> None:
    """One view at a time: made, then change after change; and its query into a table, which is recomputing."""
    ahead = iter(changes)
    for name, query in data.queries.items():
        found.recompute[name] = seconds(connection.execute, f"CREATE TABLE recomputed AS {query}")
        connection.execute("DROP TABLE recomputed")
        connection.execute(f"CREATE MATERIALIZED VIEW {name} AS {query}")
        for change in itertools.islice(ahead, WARM_UP + 1):
            change.apply(connection)
            found.alone[name] = seconds(connection.execute, "FLUSH")
            if other is not None:
                change.apply(other)
        if other is not None and name not in found.refused:
            found.refresh_alone[name] = seconds(other.execute, f"REFRESH MATERIALIZED VIEW {name}")
            found.wrong += [] if are_same(connection, other, name) else [f"{name} alone"]
        connection.execute(f"DROP MATERIALIZED VIEW {name}")


def _by_change(title: str, name: str, data: Dataset, found: Found, load_s: float) -> Table:
    recompute_s = sum(found.recompute.values())
    pipeline_s = found.pipeline.seconds if found.pipeline else None
    rows, aims = [], []
    for fraction, flush in found.flush.items():
        ours = statistics.median(flush)
        theirs = sum(found.refresh[fraction].values()) if fraction in found.refresh else None
        rows.append((
            f"{100 * fraction:g} %", found.changed[fraction], ours, spread(flush), theirs, theirs and theirs / ours,
            pipeline_s, pipeline_s and pipeline_s / ours, recompute_s, recompute_s / ours,
        ))  # fmt: skip
        what = f"{title}, {100 * fraction:g} % changed"
        if fraction == AIMED and theirs is not None:
            aims.append(_faster(f"{what}, to REFRESH", theirs / ours, FASTER_THAN_POSTGRES))
        if fraction == AIMED and pipeline_s is not None:
            aims.append(_faster(f"{what}, to spark-pipelines", pipeline_s / ours, FASTER_THAN_PIPELINES))
        aims.append(_faster(f"{what}, to recomputing", recompute_s / ours, 1))
    lines = {
        "Sparkwave": [(100 * fraction, statistics.median(flush)) for fraction, flush in found.flush.items()],
        "PostgreSQL, REFRESH": [(100 * fraction, sum(of.values())) for fraction, of in found.refresh.items()],
        "recomputing in Sparkwave": [(100 * fraction, recompute_s) for fraction in found.flush],
        "spark-pipelines run": [(100 * fraction, pipeline_s) for fraction in found.flush if pipeline_s is not None],
    }
    refused = "".join(f" PostgreSQL has no {view} ({why})." for view, why in found.refused.items())
    wrong = f"differ in {', '.join(found.wrong)}" if found.wrong else "are the same"
    flows = f" ({found.pipeline.flows_s:.1f} s of it after its start)" if found.pipeline else ""
    if found.pipeline and found.pipeline.left_out:
        flows += f", but {', '.join(found.pipeline.left_out)}, for which Spark has no function"
    return Table(
        f"{title}: all {len(data.queries)} views after a change, s",
        f"{data.rows:,} {data.counted}, loaded by COPY in {load_s:.0f} s. Half of a change of TPC-H are new orders "
        "with their lines, half old ones that go; a change of Nexmark is new events. FLUSH takes all views along, "
        f"after {WARM_UP} other epochs, median of up to three; REFRESH is the sum over the views. "
        f"`spark-pipelines run` computes all from the loaded rows{flows}; "
        "recomputing is each query into a table of Sparkwave's, in process. "
        f"After each REFRESH the rows of ours and of PostgreSQL's views {wrong}.{refused} {NOTE}",
        ("changed", "rows", "FLUSH", "spread", "REFRESH", "times", "pipelines", "times", "recomputing", "times"),
        rows,
        Lines(f"refresh_{name}", "% of the rows changed", "s", {name: line for name, line in lines.items() if line}),
        aims,
    )


def _by_view(title: str, name: str, found: Found) -> Table:
    refresh = found.refresh_alone
    rows = [
        (
            view, alone, refresh.get(view), refresh[view] / alone if view in refresh else None,
            found.recompute[view], found.recompute[view] / alone,
        )
        for view, alone in found.alone.items()
    ]  # fmt: skip
    slower = [f"{row[0]} ({digits(float(row[5] or 0))} x)" for row in rows if float(row[5] or 0) < 1]
    ratios = [refresh[view] / alone for view, alone in found.alone.items() if view in refresh]
    sooner = [view for view, alone in found.alone.items() if refresh.get(view, alone) < alone]
    losses = (
        [f"{title}, {100 * AIMED:g} % changed: PostgreSQL's REFRESH is sooner for {', '.join(sooner)}."]
        if sooner
        else []
    )
    aims = [
        Aim(f"{title}, {100 * AIMED:g} % changed: views slower than recomputing", "none",
            ", ".join(slower) or "none", not slower)
    ]  # fmt: skip
    if ratios:
        mean = geometric_mean(ratios)
        aims.append(
            _faster(
                f"{title}, {100 * AIMED:g} % changed, one view, geometric mean, to REFRESH", mean, FASTER_THAN_POSTGRES
            )
        )
    labels = list(found.alone)
    series: dict[str, list[float | None]] = {
        "Sparkwave": list(found.alone.values()),
        "PostgreSQL, REFRESH": [refresh.get(view) for view in labels],
        "recomputing": [found.recompute[view] for view in labels],
    }
    return Table(
        f"{title}: one view at a time after {100 * AIMED:g} % changed, s",
        f"The only view there is, and its {WARM_UP + 1}th epoch: those before may have shown what each way of "
        "refreshing takes, and made copies of what epochs look up.",
        ("view", "FLUSH", "REFRESH", "times", "recomputing", "times"),
        rows,
        Bars(f"refresh_{name}_views", "s", labels, series),
        aims,
        losses,
    )


def _faster(what: str, ratio: float, least: float) -> Aim:
    return Aim(what, f">= {least} x faster", f"{digits(ratio)} x", ratio >= least)
