"""Metrics that a scrape reads from the catalog, the lake and the nodes; counters are in catalog/counters.py.

Dropped jobs, relations and nodes lose their series. The lake is read on a separate thread and with a time limit: a
scrape while the lake is busy returns the last result, and its age.
"""

from __future__ import annotations

import logging
import shutil
import threading
import time
from collections import Counter as Tally
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing
from itertools import islice

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from sparkwave.catalog.counters import BACKFILL_BYTES, REGISTRY, VIEW_ROWS
from sparkwave.catalog.lake.ducklake import Cursor
from sparkwave.catalog.lake.sizes import relation_sizes
from sparkwave.catalog.lake.snapshot_changes import ROW_CHANGES, changes_made
from sparkwave.catalog.locks import RankedLock
from sparkwave.catalog.model import CREATED, FAILED, Catalog, Relation
from sparkwave.catalog.names import METADATA, literal, system_table
from sparkwave.catalog.redaction import redact
from sparkwave.catalog.stores.compute_errors import compute_errors
from sparkwave.catalog.stores.view_audits import DIFFERENT
from sparkwave.server.context import Context
from sparkwave.server.reads.live_catalog import backfill_rows

logger = logging.getLogger(__name__)

# How long a scrape waits for the lake before it returns the last result. If there is none, or it is older than
# OLD_SECONDS and thus not shown, the scrape waits for LONG_PATIENCE_SECONDS. Prometheus' scrape_timeout is 10 s.
PATIENCE_SECONDS = 2.0
LONG_PATIENCE_SECONDS = 8.0
OLD_SECONDS = 60.0
# The most jobs, relations and sources with their own series; the lowest ids have them.
MOST_SERIES = 1000
MOST_REASON = 120  # characters

Labels = tuple[str, ...]


def _family(kind: type[Metric], name: str, help_: str, labels: Labels, rows: Iterable[tuple[Labels, object]]) -> Metric:
    """Return a metric with one series for each row; a value of None makes no series."""
    family = kind(name, help_, labels=labels)
    for values, value in rows:
        if value is not None:
            family.add_metric(values, float(value))  # type: ignore[arg-type]
    return family


def gauge(name: str, help_: str, labels: Labels, rows: Iterable[tuple[Labels, object]]) -> Metric:
    return _family(GaugeMetricFamily, name, help_, labels, rows)


def counter(name: str, help_: str, labels: Labels, rows: Iterable[tuple[Labels, object]]) -> Metric:
    return _family(CounterMetricFamily, name, help_, labels, rows)


class ServerCollector(Collector):
    """All metrics that a scrape reads from the running server: catalog and nodes, which answer at once, and lake."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._lake = _Patient(lambda: list(_from_lake(context)))

    def collect(self) -> Iterator[Metric]:
        context = self._context
        yield from _nodes(context)
        yield from _sessions(context)
        yield from _jobs(context)
        yield from _disk(context)
        yield from _serving(context)
        families, age = self._lake.get()
        yield from families
        name = "sparkwave_metrics_lake_age_seconds"
        yield gauge(name, "How old those numbers are that are read from the lake", (), [((), age)])


class _Patient:
    """Calls a slow function on a thread, and returns its newest result within a time limit."""

    def __init__(self, read: Callable[[], list[Metric]]) -> None:
        self._read = read
        self._lock = RankedLock()
        self._done = threading.Event()
        self._is_running = False
        self._latest: list[Metric] = []
        self._read_at: float | None = None

    def get(self) -> tuple[list[Metric], float | None]:
        """Return the newest result unless it is too old, and its age in seconds; None before the first result."""
        with self._lock:
            if not self._is_running:
                self._is_running, self._done = True, threading.Event()
                threading.Thread(target=self._run, args=(self._done,), name="metrics", daemon=True).start()
            done, age = self._done, self._age
        done.wait(LONG_PATIENCE_SECONDS if age is None or age > OLD_SECONDS else PATIENCE_SECONDS)
        with self._lock:
            age = self._age
            return self._latest if age is not None and age <= OLD_SECONDS else [], age

    @property
    def _age(self) -> float | None:
        return None if self._read_at is None else time.monotonic() - self._read_at

    def _run(self, done: threading.Event) -> None:
        try:
            found = self._read()
            with self._lock:
                self._latest, self._read_at = found, time.monotonic()
        except Exception:
            logger.warning("the lake's metrics cannot be read", exc_info=True)
        finally:
            with self._lock:
                self._is_running = False
            done.set()


# Metrics without the lake


def _nodes(context: Context) -> Iterator[Metric]:
    """Yield CPU and memory of the nodes, under the names of RisingWave's processes, with the node as `pod`."""
    samples = context.usage.now()
    for make, name, help_, value in (
        (counter, "process_cpu_seconds", "Processor time that the node has used", lambda s: s.cpu_seconds),
        (gauge, "process_resident_memory_bytes", "Resident memory of the node", lambda s: s.memory_bytes),
        (gauge, "sparkwave_node_cpu_cores", "Cores that the node has used in the last 2 seconds", lambda s: s.cores),
    ):
        yield make(name, help_, ("pod",), [((pod,), value(sample)) for pod, sample in samples.items()])


def _sessions(context: Context) -> Iterator[Metric]:
    states = Tally(backend.state for backend in context.backends.all())
    rows = [((state,), states[state]) for state in ("active", "idle", "idle in transaction")]
    rows.append((("idle in transaction (aborted)",), states["idle in transaction (aborted)"]))
    yield gauge("sparkwave_sessions", "Connected clients by what their sessions do", ("state",), rows)


def _label(relation: Relation) -> Labels:
    return str(relation.id), f"{relation.database}.{relation.schema}.{relation.name}"


def _jobs(context: Context) -> Iterator[Metric]:
    catalog = context.store.catalog
    jobs = {job.id: job for job in islice(catalog.jobs, MOST_SERIES)}
    statuses = Tally(job.status for job in catalog.jobs)
    rows = [((status,), statuses[status]) for status in ("INITIAL", "CREATING", CREATED, FAILED)]
    yield gauge("sparkwave_jobs", "Views, indexes and sinks by the status of their job", ("status",), rows)
    # All names come from one catalog object, which keeps jobs that are dropped meanwhile.
    name = {id_: _label(catalog.by_id[id_]) for id_ in jobs}
    failed = [(name[id_], 1) for id_, job in jobs.items() if job.status == FAILED]
    yield gauge("sparkwave_job_failed", "A job that has failed and not caught up since", ("job_id", "job"), failed)
    results = context.audits.results
    audited = [(name[id_], results[id_][0] == DIFFERENT) for id_ in jobs if id_ in results]
    different = "1 for a view whose last audit found other rows than its query's"
    yield gauge("sparkwave_view_different", different, ("job_id", "job"), audited)
    behind = [
        (name[id_], job.is_behind and not job.is_resting) for id_, job in jobs.items() if catalog.by_id[id_].created
    ]
    yield gauge(
        "sparkwave_job_behind", "1 for a created job that the others have left behind", ("job_id", "job"), behind
    )
    changed = VIEW_ROWS.of({job.id for job in catalog.jobs})
    yield counter(
        "sparkwave_view_changed_rows",
        "Rows that barriers have removed from or added to what a job stores",
        ("job_id", "job"),
        [(name[id_], count) for (id_, _), count in changed.items() if id_ in name],
    )
    shares = [(name[id_], share) for id_, share in context.jobs.shares().items() if id_ in name]
    part = "The part of its machines that a creating job takes; below 1 while it gives way to views"
    yield gauge("sparkwave_backfill_share", part, ("job_id", "job"), shares)
    written = BACKFILL_BYTES.of({job.id for job in catalog.jobs if job.status not in (CREATED, FAILED)})
    yield counter(
        "sparkwave_backfill_written_bytes",
        "Bytes of files that Spark has written for a fragment since the server started; fragment 0: for several",
        ("job_id", "job", "fragment_id"),
        [((*name[id_], str(fragment)), count) for (id_, fragment), count in written.items() if id_ in name],
    )


def _disk(context: Context) -> Iterator[Metric]:
    try:
        disk = shutil.disk_usage(context.lake.directory)
    except OSError:
        return
    yield gauge("sparkwave_data_disk_free_bytes", "Free on the disk of the data directory", (), [((), disk.free)])
    yield gauge("sparkwave_data_disk_size_bytes", "Size of the disk of the data directory", (), [((), disk.total)])


def _serving(context: Context) -> Iterator[Metric]:
    _, copies = context.serving.copies
    size = sum(copy.bytes for copy in copies)
    yield gauge("sparkwave_serving_cache_bytes", "Memory that copies of relations take", (), [((), size)])
    yield gauge("sparkwave_serving_cache_relations", "Relations that have a copy in memory", (), [((), len(copies))])


# Metrics from the lake


def _from_lake(context: Context) -> Iterator[Metric]:
    context.system_views.refresh()
    with closing(context.lake.cursor()) as cursor:
        cursor.execute(f"SET VARIABLE backfill_rows = {literal(backfill_rows(context))}")
        yield from _backfills(cursor)
        yield from _lag(context, cursor)
        yield from _stored(context.store.catalog, cursor)
        yield from _lake(cursor)
        yield from _sources(cursor)
        yield from _compute_errors(context.store.catalog, cursor)
        yield from _node_limits(cursor)


_BACKFILL_STATES = (
    "WAITING", "PROVISIONING", "RUNNING", "PAUSED", "RETRYING", "FINISHED", "CATCHING UP", "FINISHING"
)  # fmt: skip


def _backfills(cursor: Cursor) -> Iterator[Metric]:
    """Yield the rows of rw_backfill_status as metrics."""
    labels = ("job_id", "job", "fragment_id")
    rows = cursor.execute(
        "SELECT s.job_id::VARCHAR, r.database || '.' || s.job_name, "
        "coalesce(s.fragment_id - memory.rwc._fragment_id(s.job_id, 0), 0)::VARCHAR, s.rows_done, s.rows_total, "
        "s.rows_per_second, s.seconds_left_low, s.seconds_left_high, s.state, s.reason, "
        "epoch_ms(now() - s.reason_since) / 1e3, epoch_ms(now() - s.updated_at) / 1e3 "
        f"FROM memory.rwc.rw_backfill_status s JOIN {system_table('relations')} r ON r.id = s.job_id "
        f"ORDER BY s.job_id, s.fragment_id LIMIT {MOST_SERIES}"
    ).fetchall()
    keyed = [(tuple(row[:3]), row[3:]) for row in rows]
    done = [(key, row[0]) for key, row in keyed]
    yield counter("sparkwave_backfill_rows", "Upstream rows that a creating job has read", labels, done)
    total = [(key, row[1]) for key, row in keyed]
    yield gauge("sparkwave_backfill_expected_rows", "Upstream rows that it is to read", labels, total)
    ratios = [(key, min(row[0] / row[1], 1) if row[1] else 1) for key, row in keyed if row[1] is not None]
    yield gauge("sparkwave_backfill_progress_ratio", "The part of them that is read, from 0 to 1", labels, ratios)
    rates = [(key, row[2]) for key, row in keyed]
    yield gauge("sparkwave_backfill_rows_per_second", "Rows a second over its last steps", labels, rates)
    left = [((*key, bound), row[at]) for key, row in keyed for bound, at in (("low", 3), ("high", 4))]
    yield gauge("sparkwave_backfill_left_seconds", "How long it may still take", (*labels, "bound"), left)
    states = [((*key, state), row[5] == state) for key, row in keyed for state in _BACKFILL_STATES]
    yield gauge("sparkwave_backfill_state", "1 for the state that it is in", (*labels, "state"), states)
    # A slowed job is not held up, and the numbers in its reason would make ever new series.
    held_up = [(key, row) for key, row in keyed if row[6] is not None and not row[6].startswith("slowed")]
    waiting = [((*key, _short(row[6])), row[7]) for key, row in held_up]
    yield gauge(
        "sparkwave_backfill_waiting_seconds", "For how long a reason has held it up", (*labels, "reason"), waiting
    )
    ages = [(key, row[8]) for key, row in keyed]
    yield gauge("sparkwave_backfill_last_step_age_seconds", "Time since its last step, or since CREATE", labels, ages)


def _short(reason: str) -> str:
    return redact(reason.partition("\n")[0])[:MOST_REASON]


def _lag(context: Context, cursor: Cursor) -> Iterator[Metric]:
    """Yield the age of the oldest change that each created job has not applied."""
    catalog, applied = context.store.catalog, context.coordinator.snapshot
    pending = {applied: _pending(cursor, catalog, applied)}
    lags: dict[int, float] = {}
    # Upstreams come before their readers. A view's changes are stored in its readers' checkpoints: only its lag counts.
    for relation in catalog.in_dependency_order([r.id for r in catalog.relations if r.is_streaming and r.created]):
        job = catalog.job_by_id[relation.id]
        if job.is_behind and job.position is None:
            continue  # its position is unknown
        since = job.position.epoch.snapshot if job.position is not None else applied
        if since not in pending:
            pending[since] = _pending(cursor, catalog, since)
        lags[relation.id] = max((lags.get(up, pending[since].get(up, 0.0)) for up in relation.upstreams), default=0.0)
    yield gauge(
        "sparkwave_view_lag_seconds",
        "Age of the oldest committed change that a created job has not applied; 0 without one",
        ("job_id", "job"),
        [(_label(catalog.by_id[id_]), lag) for id_, lag in islice(sorted(lags.items()), MOST_SERIES)],
    )


def _pending(cursor: Cursor, catalog: Catalog, applied: int) -> dict[int, float]:
    """Return the age in seconds of the first change of each relation's rows after a snapshot, by relation id."""
    changes = [change for change in changes_made(cursor, applied, 1 << 62) if change.kind in ROW_CHANGES]
    if not changes:
        return {}
    first = {change.table_id: change.snapshot for change in sorted(changes, key=lambda change: -change.snapshot)}
    snapshots, tables = ", ".join(map(str, set(first.values()))), ", ".join(map(str, first))
    ages = dict(
        cursor.execute(
            "SELECT snapshot_id, greatest(epoch_ms(now()) - epoch_ms(snapshot_time), 0) / 1e3 "
            f"FROM {METADATA}.ducklake_snapshot WHERE snapshot_id IN ({snapshots})"
        ).fetchall()
    )
    ids = {(r.lake_table.schema, r.lake_table.name): r.id for r in catalog.relations if r.is_stored}
    named = cursor.execute(
        f"SELECT t.table_id, s.schema_name, t.table_name FROM {METADATA}.ducklake_table t "
        f"JOIN {METADATA}.ducklake_schema s USING (schema_id) WHERE t.table_id IN ({tables})"
    ).fetchall()
    return {
        ids[schema, table]: ages.get(first[table_id], 0.0)
        for table_id, schema, table in named
        if (schema, table) in ids
    }


def _stored(catalog: Catalog, cursor: Cursor) -> Iterator[Metric]:
    sizes = relation_sizes(cursor)
    known = [(catalog.by_id[id_], sizes[id_]) for id_ in sorted(sizes) if id_ in catalog.by_id]
    keyed = [((*_label(relation), relation.kind), size) for relation, size in islice(known, MOST_SERIES)]
    labels = ("relation_id", "relation", "kind")
    rows = [(key, size["rows"]) for key, size in keyed]
    yield gauge("sparkwave_relation_rows", "Rows that a relation stores", labels, rows)
    in_bytes = [(key, size["total"]) for key, size in keyed]
    yield gauge("sparkwave_relation_bytes", "Bytes of its files, with the state of its operators", labels, in_bytes)
    omitted = sum(max(count - MOST_SERIES, 0) for count in (len(sizes), len(catalog.jobs)))
    help_ = f"Relations and jobs, beyond {MOST_SERIES} of each, that have no series of their own"
    yield gauge("sparkwave_metrics_omitted", help_, (), [((), omitted)])


def _lake(cursor: Cursor) -> Iterator[Metric]:
    for name, help_, query in (
        ("sparkwave_lake_snapshots", "Snapshots that the lake keeps", "SELECT count(*) FROM {}.ducklake_snapshot"),
        (
            "sparkwave_lake_data_files",
            "Data files of the newest snapshot",
            "SELECT count(*) FROM {}.ducklake_data_file WHERE end_snapshot IS NULL",
        ),
        (
            "sparkwave_lake_data_bytes",
            "Bytes of the newest snapshot's data files",
            "SELECT coalesce(sum(file_size_bytes), 0) FROM {}.ducklake_data_file WHERE end_snapshot IS NULL",
        ),
        (
            "sparkwave_lake_delete_files",
            "Files of the newest snapshot that list deleted rows",
            "SELECT count(*) FROM {}.ducklake_delete_file WHERE end_snapshot IS NULL",
        ),
    ):
        row = cursor.execute(query.format(METADATA)).fetchone()
        yield gauge(name, help_, (), [((), row[0] if row else None)])


def _sources(cursor: Cursor) -> Iterator[Metric]:
    rows = cursor.execute(
        "SELECT r.id::VARCHAR, r.database || '.' || r.schema || '.' || r.name, s.connector, coalesce(p.n, 0), "
        f"coalesce(f.n, 0) FROM {system_table('sources')} s "
        f"JOIN {system_table('relations')} r ON r.id = s.relation_id "
        f"LEFT JOIN (SELECT relation_id, sum(row_count) AS n FROM {system_table('source_splits')} GROUP BY ALL) p "
        "USING (relation_id) "
        f"LEFT JOIN (SELECT relation_id, count(*) AS n FROM {system_table('source_failures')} GROUP BY ALL) f "
        f"USING (relation_id) ORDER BY r.id LIMIT {MOST_SERIES}"
    ).fetchall()
    labels = ("source_id", "source", "connector")
    consumed = [(tuple(row[:3]), row[3]) for row in rows]
    yield counter("sparkwave_source_rows", "Rows that a source has delivered", labels, consumed)
    failing = [(tuple(row[:3]), row[4]) for row in rows]
    yield gauge("sparkwave_source_failing_splits", "Splits of a source that fail and are tried again", labels, failing)


def _compute_errors(catalog: Catalog, cursor: Cursor) -> Iterator[Metric]:
    """RisingWave's user_compute_error."""
    found = {id_: errors.rows for id_, (errors, _) in sorted(compute_errors(cursor).items()) if id_ in catalog.by_id}
    yield counter(
        "sparkwave_compute_errors",
        "Rows for which an expression of a view failed and is NULL, since it was made",
        ("relation_id", "relation"),
        [(_label(catalog.by_id[id_]), rows) for id_, rows in islice(found.items(), MOST_SERIES)],
    )


def _node_limits(cursor: Cursor) -> Iterator[Metric]:
    rows = cursor.execute(
        "SELECT host, system_total_cpu_cores, system_total_memory_bytes FROM memory.rwc.rw_worker_nodes"
    ).fetchall()
    cores = [((host,), cores) for host, cores, _ in rows]
    yield gauge("sparkwave_node_cpu_limit_cores", "Cores that a worker node may use", ("pod",), cores)
    memory = [((host,), memory) for host, _, memory in rows]
    yield gauge("sparkwave_node_memory_limit_bytes", "Memory that a worker node's JVM may use", ("pod",), memory)


def register(context: Context) -> None:
    """Add the server's metrics to the registry of the counters."""
    REGISTRY.register(ServerCollector(context))
