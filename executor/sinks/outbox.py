"""One thread that sends the rows of sinks' logs to other servers.

An epoch's rows are sent before the transaction that takes them from the log. After a crash between the two they are
sent again: an S3 object under the same name with the same rows, so that it exists once; Kafka messages a second time.
An unreachable server holds up neither views nor other sinks: meanwhile the log, a table, grows.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass, field
from typing import Protocol

from sparkwave.catalog import sealing
from sparkwave.catalog.errors import Error
from sparkwave.catalog.lake.ducklake import Cursor
from sparkwave.catalog.lake.translation import DuckDBError
from sparkwave.catalog.model import Relation, Secret
from sparkwave.catalog.names import quote
from sparkwave.catalog.relation_details import S3
from sparkwave.catalog.stores.event_store import add_event
from sparkwave.catalog.stores.store import Store
from sparkwave.executor.faults import error_of
from sparkwave.executor.sinks.deliveries import EPOCH, copy_changes, file_name, log_columns, log_of
from sparkwave.executor.sinks.kafka_sink import KafkaSink
from sparkwave.executor.sources.file_storage import bucket

logger = logging.getLogger(__name__)

TICK_S = 1.0
# The most epochs that are sent in one step.
MOST_EPOCHS = 100
LONGEST_RETRY_S = 60.0


class Receiver(Protocol):
    """The destination of one sink's rows. Its creation has no outside effect."""

    def check(self) -> None:
        """Raise Error when the destination does not exist or cannot be reached."""

    def send(self, cursor: Cursor, changes: str, epoch: int) -> None:
        """Store the rows of an epoch durably at the destination: those of `changes`, with `_weight`. Raises Error."""


@dataclass(frozen=True)
class S3Sink:
    """Objects, one for each epoch with changes."""

    store: Store
    relation: Relation
    options: dict[str, str]

    def check(self) -> None:
        bucket(self.options).check()

    def send(self, cursor: Cursor, changes: str, epoch: int) -> None:
        name = file_name(self.relation, epoch)
        file = self.store.lake.spill_path / f"sink_{self.relation.id}" / name
        try:
            if copy_changes(cursor, self.relation, changes, file):
                path = self.relation.sink.path
                bucket(self.options).put(file, f"{path}/{name}" if path else name)
        finally:
            file.unlink(missing_ok=True)


def receiver(store: Store, relation: Relation) -> Receiver:
    """Return the destination of a sink's rows. Raises Error 0A000, 22023, XX001 for its options."""
    sink = relation.sink
    options = sealing.opened(dict(sink.options), dict(sink.secrets), store.catalog.secrets, store.cipher)
    return S3Sink(store, relation, options) if sink.connector == S3 else KafkaSink(relation, options)


@dataclass
class Pace:
    """How many sent rows a rate limit has not covered yet; below zero, how many may go at once."""

    clock: Callable[[], float] = time.monotonic
    _owed: float = 0.0
    _at: float | None = None

    def allows(self, limit: int | None) -> bool:
        """Return whether an epoch may be sent now.

        An epoch is sent as a whole; the next one waits until the limit, in rows a second, allows the rows of this one.
        """
        now = self.clock()
        elapsed = 0.0 if self._at is None else now - self._at
        self._at = now
        if limit is None:
            self._owed = 0.0
            return True
        self._owed = max(self._owed - limit * elapsed, -limit * TICK_S)
        return limit > 0 and self._owed <= 0

    def spend(self, rows: int) -> None:
        self._owed += rows


@dataclass
class _Sink:
    """One sink: its destination, its pace, and the delay after a failure."""

    secrets: tuple[Secret, ...] = ()
    options: tuple[tuple[str, str], ...] = ()
    receiver: Receiver | None = None
    pace: Pace = field(default_factory=Pace)
    due: float = 0.0
    delay: float = 0.0
    reason: str = ""
    is_pending: bool = True  # its log may have rows


@dataclass
class Outbox:
    """The sinks of one server that send to other servers."""

    store: Store
    _sinks: dict[int, _Sink] = field(default_factory=dict)
    _seen: int = 0  # the snapshot up to which changes of logs are known; at first any log may have rows
    _stopping: threading.Event = field(default_factory=threading.Event)
    _thread: threading.Thread | None = None

    def start(self) -> None:
        self._thread = threading.Thread(target=self._run, name="outbox", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """End after the epoch in progress."""
        self._stopping.set()
        self.store.lake.wake()
        if self._thread is not None:
            self._thread.join(30)

    def _run(self) -> None:
        lake = self.store.lake
        while not self._stopping.is_set():
            commits = lake.commits
            try:
                self._round()
            except Exception:
                logger.exception("the logs of sinks cannot be sent")
                self._stopping.wait(TICK_S)
            lake.wait_for_commit(commits, TICK_S, self._stopping.is_set)

    def _round(self) -> None:
        relations = {r.id: r for r in self.store.catalog.relations if r.is_sink and r.sink.is_remote and r.created}
        self._sinks = {id_: self._kept(relation) for id_, relation in relations.items()}
        if not relations:
            return
        with closing(self.store.lake.cursor()) as cursor:
            self._look(cursor, relations)
            for id_, relation in relations.items():
                sink = self._sinks[id_]
                if sink.is_pending and sink.due <= time.monotonic() and not self._stopping.is_set():
                    self._hand_on(cursor, relation, sink)

    def _kept(self, relation: Relation) -> _Sink:
        """Return a sink's state, a new one if its options or secrets have changed."""
        kept = self._sinks.get(relation.id)
        named = sealing.named(dict(relation.sink.secrets), self.store.catalog.secrets)
        made = _Sink(named, relation.sink.options)
        is_same = kept is not None and (kept.secrets, kept.options) == (made.secrets, made.options)
        return kept if kept is not None and is_same else made

    def _look(self, cursor: Cursor, relations: dict[int, Relation]) -> None:
        """Find the logs that have been written."""
        snapshot = self.store.lake.snapshot(cursor)
        seen, self._seen = self._seen or snapshot, snapshot
        changed = self.store.lake.changed_tables(cursor, seen, snapshot)
        for id_, relation in relations.items():
            log = log_of(relation)
            if (log.schema, log.name) in changed:
                self._sinks[id_].is_pending = True

    def _hand_on(self, cursor: Cursor, relation: Relation, sink: _Sink) -> None:
        try:
            sink.receiver = sink.receiver or receiver(self.store, relation)
            sink.is_pending = self._send(cursor, relation, sink.receiver, sink.pace)
            sink.delay, sink.reason = 0.0, ""
        except (Error, DuckDBError, OSError) as error:
            if relation.id in self.store.catalog.by_id:
                self._failed(relation, sink, error_of(error))

    def _send(self, cursor: Cursor, relation: Relation, receiver: Receiver, pace: Pace) -> bool:
        """Send the oldest epochs of a log, as many as the rate limit allows. Returns whether there are more."""
        log, limit = log_of(relation), relation.sink.rate_limit
        if not pace.allows(limit):
            return True
        epochs = cursor.execute(
            f"SELECT {quote(EPOCH)}, count(*) FROM {log.sql} GROUP BY ALL ORDER BY 1 LIMIT {MOST_EPOCHS}"
        ).fetchall()
        listed = ", ".join(f"{c.from_lake} AS {quote(c.lake_name)}" for c in log_columns(relation))
        sent: list[int] = []
        for epoch, rows in epochs:
            if sent and not pace.allows(limit):
                break
            receiver.send(cursor, f"(SELECT {listed} FROM {log.sql} WHERE {quote(EPOCH)} = {epoch})", epoch)
            pace.spend(rows)
            sent.append(epoch)
        if sent:
            with self.store.lake.transaction(cursor, [log]):
                cursor.execute(f"DELETE FROM {log.sql} WHERE {quote(EPOCH)} <= {sent[-1]}")
        return len(sent) < len(epochs) or len(epochs) == MOST_EPOCHS

    def _failed(self, relation: Relation, sink: _Sink, error: Error) -> None:
        """Delay the next try, and store the reason, once for each reason."""
        sink.receiver = None
        sink.delay = min(sink.delay * 2, LONGEST_RETRY_S) if sink.delay else 1.0
        sink.due = time.monotonic() + sink.delay
        if sink.reason == error.message:
            return
        sink.reason = error.message
        logger.warning("sink %s: %s", relation.qualified_name, error.message)
        with closing(self.store.lake.cursor()) as cursor, self.store.lake.transaction(cursor):
            add_event(cursor, "SINK_FAIL", relation.id, {"name": relation.name, "error": error.message})
