"""Metrics of a real server; dashboard, rules and docs name what there is; a slow lake holds up no scrape."""

from __future__ import annotations

import json
import re
import shutil
import socket
import subprocess
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import psycopg
import pytest
from prometheus_client.metrics_core import Metric
from scrapes import Scrape, scrape
from servers import Server, free_port, refused, wait_until
from test_backfill_status import add_job, add_slices, add_steps, cursor, lake  # noqa: F401
from test_law import run, without_epochs

from sparkwave.catalog.counters import BACKFILL_BYTES, PerJob
from sparkwave.catalog.lake.ducklake import Cursor
from sparkwave.catalog.model import Position
from sparkwave.catalog.stores.job_store import leave_behind
from sparkwave.server.command_line.run_server import serve_metrics
from sparkwave.server.context import Context, open_context
from sparkwave.server.dispatch import Client
from sparkwave.server.operations import metrics
from sparkwave.server.operations.config import Config

ROOT = Path(__file__).parent.parent
DASHBOARD = ROOT / "deploy" / "grafana" / "sparkwave.json"
PROMETHEUS = ROOT / "deploy" / "prometheus"


class Observed:
    """A server with a view, kept up on DuckDB, and where its metrics are."""

    def __init__(self, directory: Path) -> None:
        self.port = free_port()
        self.server = Server(directory / "data", metrics=f"127.0.0.1:{self.port}")
        with self.server.connect() as session:
            session.execute("ALTER SYSTEM SET backfill_engine = auto")
            session.execute("CREATE TABLE t (a int PRIMARY KEY, b int)")
            session.execute("INSERT INTO t SELECT i, i % 7 FROM range(1000) AS r (i)")
            session.execute("CREATE MATERIALIZED VIEW v AS SELECT b, count(*) AS n FROM t GROUP BY b")

    def scrape(self) -> Scrape:
        return scrape(self.port)


@pytest.fixture(scope="module")
def observed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Observed]:
    started = Observed(tmp_path_factory.mktemp("observed"))
    yield started
    started.server.kill()


@pytest.fixture
def session(observed: Observed) -> Iterator[psycopg.Connection[Any]]:
    with observed.server.connect() as opened:
        yield opened


def grown(before: Scrape, after: Scrape, name: str, **labels: str) -> float:
    return (after.value(name, **labels) or 0) - (before.value(name, **labels) or 0)


def test_statements_and_errors(observed: Observed, session: psycopg.Connection[Any]) -> None:
    before = observed.scrape()
    session.execute("SELECT 1")
    session.execute("SELECT 2")
    refused(session, "SELECT * FROM nowhere")
    refused(session, "SELECT 1 / 0")
    after = observed.scrape()
    assert grown(before, after, "sparkwave_statement_duration_seconds_count", kind="select") == 4
    assert grown(before, after, "sparkwave_errors_total", sqlstate_class="42") == 1
    assert grown(before, after, "sparkwave_errors_total", sqlstate_class="22") == 1
    assert sum(after.series("sparkwave_sessions").values()) >= 1
    assert grown(before, after, "sparkwave_connections_total") == 0
    observed.server.connect().close()
    assert grown(after, observed.scrape(), "sparkwave_connections_total") == 1


def test_an_epoch(observed: Observed, session: psycopg.Connection[Any]) -> None:
    before = observed.scrape()
    session.execute("INSERT INTO t VALUES (5001, 1), (5002, 2), (5003, 2)")
    session.execute("FLUSH")
    after = observed.scrape()
    assert grown(before, after, "sparkwave_epoch_changed_rows_sum", engine="duckdb") == 3
    assert grown(before, after, "sparkwave_epoch_advance_duration_seconds_count", engine="duckdb") >= 1
    # A barrier is counted when it is over, a moment after FLUSH has what it waited for.
    barriers = "sparkwave_barrier_duration_seconds_count"
    assert wait_until(lambda: grown(before, observed.scrape(), barriers, kind="changed") >= 1, 20)
    assert grown(before, after, "sparkwave_barrier_interval_seconds_count") >= 1
    after = observed.scrape()
    # Two groups, of which each loses a row and gets one.
    assert grown(before, after, "sparkwave_view_changed_rows_total", job="dev.public.v") == 4
    commits = "sparkwave_lake_commits_total"  # one of the rows, and one of the checkpoint
    assert wait_until(lambda: grown(before, observed.scrape(), commits) >= 2, 20)
    assert after.value("sparkwave_view_lag_seconds", job="dev.public.v") == 0
    assert after.value("sparkwave_relation_rows", relation="dev.public.v") == 7
    assert after.value("sparkwave_relation_rows", relation="dev.public.t") >= 1003


def test_nodes_and_lake(observed: Observed) -> None:
    found = observed.scrape()
    assert (found.value("process_cpu_seconds_total", pod="sparkwave-server") or 0) > 0
    assert (found.value("process_resident_memory_bytes", pod="sparkwave-server") or 0) > 50 << 20
    disk = shutil.disk_usage(observed.server.data)
    assert found.value("sparkwave_data_disk_size_bytes") == disk.total
    assert (found.value("sparkwave_lake_snapshots") or 0) > 5
    assert found.value("sparkwave_jobs", status="CREATED") == 1


def test_series_end_with_what_they_are_of(observed: Observed, session: psycopg.Connection[Any]) -> None:
    session.execute("CREATE TABLE gone (a int PRIMARY KEY)")
    session.execute("CREATE MATERIALIZED VIEW gone_view AS SELECT a + 1 AS b FROM gone")
    session.execute("CREATE SOURCE gone_source (a int) WITH (connector = 'datagen', fields.a.kind = 'sequence')")
    session.execute("INSERT INTO gone VALUES (1)")
    session.execute("FLUSH")
    assert observed.scrape().value("sparkwave_view_changed_rows_total", job="dev.public.gone_view") == 1
    assert wait_until(lambda: bool(observed.scrape().value("sparkwave_source_rows_total", connector="datagen")), 20)
    session.execute("DROP SOURCE gone_source")
    session.execute("DROP TABLE gone CASCADE")

    def is_gone() -> bool:
        after = observed.scrape()
        text = " ".join(str(labels) for name in after.names for labels in after.series(name))
        assert "dev.public.v" in text
        return "gone" not in text

    assert wait_until(is_gone, 30)  # what is read from the lake may be of the scrape before


def test_copies(observed: Observed, session: psycopg.Connection[Any]) -> None:
    before = observed.scrape()

    def is_served() -> bool:
        session.execute("SELECT * FROM t WHERE b = 1")
        return grown(before, observed.scrape(), "sparkwave_serving_cache_hits_total") > 0

    assert wait_until(is_served, 30, 0.2)
    after = observed.scrape()
    assert grown(before, after, "sparkwave_serving_cache_misses_total") >= 2
    assert (after.value("sparkwave_serving_cache_relations") or 0) >= 1
    assert (after.value("sparkwave_serving_cache_bytes") or 0) > 0


def test_only_metrics_are_served(observed: Observed) -> None:
    with pytest.raises(urllib.error.HTTPError) as caught:
        urllib.request.urlopen(f"http://127.0.0.1:{observed.port}/", timeout=10)
    assert caught.value.code == 404


# What is written about metrics.


def named_in(text: str) -> set[str]:
    return set(re.findall(r"\b(?:sparkwave|process)_\w+", text))


def test_dashboard_names_what_there_is(observed: Observed) -> None:
    dashboard = json.loads(DASHBOARD.read_text())
    expressions = [target["expr"] for panel in dashboard["panels"] for target in panel.get("targets", ())]
    queries = [v["query"]["query"] for v in dashboard["templating"]["list"] if v["type"] == "query"]
    assert len(expressions) > 30
    assert all(named_in(expression) for expression in expressions)
    assert named_in(" ".join(expressions + queries)) <= observed.scrape().names


def test_rules_name_what_there_is(observed: Observed) -> None:
    text = (PROMETHEUS / "sparkwave.rules.yml").read_text()
    expressions = re.findall(r"expr:(.*?)(?=\n +(?:for|labels):)", text, re.DOTALL)
    assert len(expressions) == text.count("- alert:")
    assert named_in(" ".join(expressions)) <= observed.scrape().names


def test_page_lists_what_there_is(observed: Observed) -> None:
    """The table of docs/operations.md: name, type, labels, and the very help text, in the order of the scrape."""
    found = {}
    for family in observed.scrape().families.values():
        name = f"{family.name}_total" if family.type == "counter" else family.name
        found[name] = (family.type, family.documentation)
    rows = re.findall(
        r"^\| `(\w+)` \| (\w+) \| (.*?) \| (.*?) \|$", (ROOT / "docs" / "operations.md").read_text(), re.M
    )
    assert {name: (kind, text) for name, kind, _, text in rows} == found
    labels = {name: set(re.findall(r"`(\w+)`", given)) for name, _, given, _ in rows}
    for family in observed.scrape().families.values():
        for sample in family.samples:
            name = f"{family.name}_total" if family.type == "counter" else family.name
            assert set(sample.labels) - {"le"} == labels[name], name


@pytest.mark.skipif(shutil.which("promtool") is None, reason="promtool is in Debian's package prometheus")
def test_promtool(observed: Observed) -> None:
    """Prometheus' own tool finds nothing wrong with the configuration, the rules and a scrape."""
    config = subprocess.run(
        ["promtool", "check", "config", str(PROMETHEUS / "prometheus.yml")], capture_output=True, text=True, check=False
    )
    assert config.returncode == 0, config.stdout + config.stderr
    assert f"{(PROMETHEUS / 'sparkwave.rules.yml').read_text().count('- alert:')} rules found" in config.stdout
    with urllib.request.urlopen(f"http://127.0.0.1:{observed.port}/metrics", timeout=20) as answer:
        lint = subprocess.run(
            ["promtool", "check", "metrics"], input=answer.read(), capture_output=True, timeout=30, check=False
        )
    assert lint.returncode == 0, lint.stderr.decode()


# Parts.


def families(found: Iterator[Metric]) -> dict[str, list[tuple[dict[str, str], float]]]:
    return {family.name: [(sample.labels, sample.value) for sample in family.samples] for family in found}


def test_a_backfill(cursor: Cursor) -> None:  # noqa: F811
    add_job(cursor, waiting="retrying after an error: password=hunter2", waiting_since=None)
    add_slices(cursor, 100, 100, 100, 100)
    add_steps(cursor, (100, 60))
    found = families(metrics._backfills(cursor))
    key = {"job_id": "20", "job": "dev.public.mv", "fragment_id": "1"}
    assert found["sparkwave_backfill_rows"] == [(key, 100)]
    assert found["sparkwave_backfill_expected_rows"] == [(key, 400)]
    assert found["sparkwave_backfill_progress_ratio"] == [(key, 0.25)]
    assert found["sparkwave_backfill_last_step_age_seconds"] == [(key, 60)]
    assert [labels["state"] for labels, value in found["sparkwave_backfill_state"] if value] == ["RETRYING"]
    cursor.execute("UPDATE lake.sparkwave.jobs SET waiting_since = now() - INTERVAL 90 SECOND")
    [(labels, value)] = families(metrics._backfills(cursor))["sparkwave_backfill_waiting_seconds"]
    assert (labels["reason"], value) == ("retrying after an error: password=***", 90)


def test_time_left(cursor: Cursor) -> None:  # noqa: F811
    add_job(cursor)
    add_slices(cursor, *[100] * 8)
    add_steps(cursor, (100, 50), (100, 40), (100, 30), (100, 20), (100, 10))
    found = families(metrics._backfills(cursor))["sparkwave_backfill_left_seconds"]
    left = {labels["bound"]: value for labels, value in found}
    # 300 rows are left at 10 a second, of which some were read since the last step; with the time since, at 7.5.
    assert left == {"low": 20, "high": 40}


def test_lag_while_barriers_wait(tmp_path: Path) -> None:
    """What waits is a view and what reads it, not another; a scrape waits neither for barriers nor for commits."""
    config = Config(data=tmp_path / "lake", spark_start="on_demand", metrics="")
    context = open_context(config, {"backfill_engine": "auto"})
    try:
        client = Client(context, {"user": "root"})
        for name in "tu":
            run(client, f"CREATE TABLE {name} (a int PRIMARY KEY)")
            run(client, f"CREATE MATERIALIZED VIEW {name}1 AS SELECT a + 1 AS b FROM {name}")
        run(client, "CREATE MATERIALIZED VIEW t2 AS SELECT b + 1 AS c FROM t1")

        def scraped(name: str) -> dict[str, float]:
            found = families(iter(list(metrics.ServerCollector(context).collect())))
            return {labels["job"].rpartition(".")[2]: value for labels, value in found[name]}

        run(client, "FLUSH")
        assert scraped("sparkwave_view_lag_seconds") == {"t1": 0, "t2": 0, "u1": 0}
        with without_epochs(context):
            run(client, "INSERT INTO t VALUES (1)")
            time.sleep(0.3)
            # As in a transaction that takes long to write.
            with context.lake.exclusive(), context.lake.transaction(context.lake.cursor()) as writing:
                writing.execute("UPDATE lake.sparkwave.jobs SET waiting = NULL")
                lags = scraped("sparkwave_view_lag_seconds")
        assert lags["t1"] == lags["t2"] >= 0.3
        assert lags["u1"] == 0
        run(client, "FLUSH")
        assert scraped("sparkwave_view_lag_seconds") == {"t1": 0, "t2": 0, "u1": 0}
        with context.coordinator.barrier_lock:
            with context.store.change() as cursor:
                position = Position(context.coordinator.epoch, context.lake.snapshot(cursor))
                leave_behind(cursor, context.store.catalog.find("dev", "public", "u1").id, position, "it broke", True)
            assert scraped("sparkwave_job_failed") == {"u1": 1}
            assert scraped("sparkwave_job_behind") == {"t1": 0, "t2": 0, "u1": 1}
            assert set(scraped("sparkwave_view_lag_seconds")) == {"t1", "t2", "u1"}
    finally:
        context.close()


def test_counts_of_gone_jobs_are_forgotten() -> None:
    counts = PerJob()
    counts.add(1, 5.0, 2)
    counts.add(1, 5.0, 2)
    counts.add(3, 1.0)
    assert counts.of({1, 3}) == {(1, 2): 10.0, (3, 0): 1.0}
    assert counts.of({3}) == {(3, 0): 1.0}
    assert counts.of({1, 3}) == {(3, 0): 1.0}
    assert BACKFILL_BYTES.of(()) == {}


def test_a_slow_lake_holds_up_no_scrape(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(metrics, "PATIENCE_SECONDS", 0.1)
    is_free = threading.Event()
    reads: list[Metric] = []

    def read() -> list[Metric]:
        if reads:
            assert is_free.wait(20)
        reads.append(metrics.gauge("reads", "", (), [((), len(reads) + 1)]))
        return reads[-1:]

    patient = metrics._Patient(read)
    [first], age = patient.get()
    assert age is not None and age < 5
    started = time.monotonic()
    for _ in range(3):
        stale, age = patient.get()
        assert stale == [first]
    assert 0.3 <= time.monotonic() - started < 5
    assert age is not None and age >= 0.3
    monkeypatch.setattr(metrics, "OLD_SECONDS", 0.0)
    monkeypatch.setattr(metrics, "LONG_PATIENCE_SECONDS", 0.1)
    assert patient.get()[0] == []  # rather nothing than what was true long ago
    monkeypatch.undo()
    is_free.set()
    assert wait_until(lambda: patient.get()[0] != [first], 5)
    assert len(reads) < 4  # one at a time


def test_a_taken_port_is_warned_of(caplog: pytest.LogCaptureFixture) -> None:
    with socket.socket() as holder:
        holder.bind(("127.0.0.1", 0))
        holder.listen()
        port = holder.getsockname()[1]
        assert serve_metrics(("127.0.0.1", port), cast(Context, None)) is None
    expected = f"no metrics: cannot listen on 127.0.0.1:{port}: the port is in use; choose another with --metrics"
    assert caplog.messages == [expected]
    assert serve_metrics(None, cast(Context, None)) is None
