"""The law: after any changes, cut into any epochs, a view equals its query over the tables.

Here is how tests hold it; `test_differential.py` holds it of random views.
"""

from __future__ import annotations

import random
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest import mock

import pyarrow as pa
import pytest
from fuzz import standard
from servers import DUCKDB_THREADS, with_lake

from sparkwave.catalog.errors import Error
from sparkwave.catalog.model import Relation
from sparkwave.catalog.types import Type
from sparkwave.executor.epochs import reductions, side_by_side
from sparkwave.executor.epochs.behind import Behind, Left
from sparkwave.executor.memory import copies
from sparkwave.server.context import Context, open_context
from sparkwave.server.dispatch import Client
from sparkwave.server.operations.config import Config
from sparkwave.server.wire.text_format import text_array


@contextmanager
def opened(directory: Path, **parameters: str) -> Iterator[tuple[Context, Client]]:
    config = Config(
        data=with_lake(directory),
        spark_start="on_demand",
        spark_cores=2,
        spark_memory_mib=1024,
        duckdb_threads=DUCKDB_THREADS,
    )
    given = {"barrier_interval_ms": "3600000", "refresh_mode": "incremental", **parameters}
    if parameters.get("streaming_engine") == "spark":
        given = {"backfill_engine": "spark", **given}
    with small_tables_as_large(), side_by_side_at_once():
        context = open_context(config, given)
        try:
            yield context, Client(context, {"user": "root"})
        finally:
            context.close()


@contextmanager
def small_tables_as_large() -> Iterator[None]:
    """A context in which tables of any size have indexes and reductions."""
    with mock.patch.object(copies, "LARGE_ROWS", 1), mock.patch.object(reductions, "LEAST_USES", 1):
        yield


@contextmanager
def side_by_side_at_once() -> Iterator[None]:
    """A context in which views have one of three cursors, whatever the machine's cores."""
    with mock.patch.object(side_by_side, "_cores", lambda: 3):
        yield


@contextmanager
def no_failures() -> Iterator[None]:
    """A context in which no view may fail: it would be computed in full, and be right all the same."""
    failures: list[str] = []
    usual = Behind.failed

    def failed(self: Behind, relation: Relation, error: Error, *rest: Any) -> Left:
        failures.append(f"{relation.name}: {error.message}")
        return usual(self, relation, error, *rest)

    with mock.patch.object(Behind, "failed", failed):
        yield
    assert not failures


class NoEpochs:
    """No barrier runs from `begin` to `end`. A thread holds its lock, so that others may take what comes before."""

    def __init__(self, context: Context) -> None:
        self._context = context

    def begin(self) -> None:
        is_held, self._is_over = threading.Event(), threading.Event()
        self._holder = threading.Thread(target=self._hold, args=(is_held, self._is_over), daemon=True)
        self._holder.start()
        is_held.wait()

    def _hold(self, is_held: threading.Event, is_over: threading.Event) -> None:
        with self._context.coordinator.barrier_lock:
            is_held.set()
            is_over.wait()

    def end(self) -> None:
        self._is_over.set()
        self._holder.join()


@contextmanager
def without_epochs(context: Context) -> Iterator[NoEpochs]:
    """While entered no barrier runs, unless one is let in between."""
    held = NoEpochs(context)
    held.begin()
    try:
        yield held
    finally:
        held.end()


def run(client: Client, sql: str) -> list[tuple[object, ...]]:
    result = client.execute(client.prepare(sql, ()), ())
    types = [column.type for column in result.columns or ()]
    return [
        row
        for batch in result.batches or ()
        for row in zip(*(values(c, t) for c, t in zip(batch.columns, types, strict=True)), strict=True)
    ]


def values(array: pa.Array, type_: Type) -> list[object]:
    """Python values; of rows, whose fields may have no names, their text."""
    return (text_array(array, type_) if type_.fields else array).to_pylist()


def as_bag(rows: list[tuple[object, ...]]) -> Counter[tuple[object, ...]]:
    """Rows as a multiset. Sums here are exact in binary; variances agree to 9 digits, whatever the order."""
    return Counter(tuple(map(comparable, row)) for row in rows)


def comparable(value: object) -> object:
    if isinstance(value, list):
        return tuple(map(comparable, value))
    return f"{value + 0.0:.9g}" if isinstance(value, float) else value


def check(client: Client, views: dict[str, str], moment: str) -> None:
    for name, query in views.items():
        maintained, computed = as_bag(run(client, f"SELECT * FROM {name}")), as_bag(run(client, query))
        missing, extra = computed - maintained, maintained - computed
        assert not missing and not extra, f"{moment}: {name} = {query}\nmissing {missing}\nextra {extra}"


COMBINED = Path(__file__).parent / "queries" / "combined.sql"


@pytest.mark.long
def test_combined_operators(tmp_path: Path) -> None:
    """Queries in which operators meet that the random views seldom put together."""
    queries = {f"v{n}": query for n, query in enumerate(filter(None, COMBINED.read_text().split(";\n")))}
    changes = standard.changes(random.Random(1))
    options = {"streaming_engine": "duckdb", "backfill_engine": "auto"}
    with no_failures(), opened(tmp_path / "lake", **options) as (context, client):
        for table in standard.TABLES:
            run(client, table.create())
        for _ in range(12):
            run(client, changes.change())
        for name, query in queries.items():
            run(client, f"CREATE MATERIALIZED VIEW {name} AS {query}")
        for epoch in range(4):
            context.coordinator.flush(lambda: False)
            check(client, queries, f"epoch {epoch}")
            for _ in range(4):
                run(client, changes.change())
        for name in queries:
            [(_, result, _, _, _, _, detail)] = run(client, f"AUDIT MATERIALIZED VIEW {name}")
            assert (result == "PROVEN" and detail is None) or "temporal" in str(detail), (name, result, detail)


def test_a_wrong_view_is_noticed(tmp_path: Path) -> None:
    """The check itself can fail."""
    with opened(tmp_path / "lake") as (_, client):
        run(client, "CREATE TABLE t (a int)")
        run(client, "INSERT INTO t VALUES (1), (1)")
        with pytest.raises(AssertionError, match="missing"):
            check(client, {"t": "SELECT a FROM t UNION ALL SELECT 1"}, "now")
