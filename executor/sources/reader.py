"""One thread that reads all sources and commits the rows that they deliver.

The rows of a batch and the new positions of its splits are one transaction of the lake. So after a crash at any moment
each row is there exactly once: uncommitted rows are read again from the old positions.
"""

from __future__ import annotations

import contextlib
import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing
from dataclasses import dataclass, field, replace
from typing import Protocol

from sparkwave.catalog.errors import Error
from sparkwave.catalog.lake.ducklake import Cursor
from sparkwave.catalog.lake.translation import DuckDBError, is_conflict
from sparkwave.catalog.model import Catalog, Column, Relation, Secret
from sparkwave.catalog.sealing import named, opened
from sparkwave.catalog.source_model import Source, Split
from sparkwave.catalog.stores.event_store import add_event
from sparkwave.catalog.stores.source_store import Moved, clear_failures, load_splits, move_splits, put_failure
from sparkwave.catalog.stores.store import Store
from sparkwave.executor.backfill.throttle import Throttle
from sparkwave.executor.faults import error_of
from sparkwave.executor.sources.connector import READ, Batch, Connector, SplitError
from sparkwave.executor.sources.datagen import datagen
from sparkwave.executor.sources.files import Files
from sparkwave.executor.sources.kafka import Kafka
from sparkwave.executor.sources.nexmark import nexmark
from sparkwave.executor.sources.postgres_cdc import PostgresCdc
from sparkwave.planner.batch.values import given_columns

logger = logging.getLogger(__name__)

# Seconds between two reads of a source without new rows. A source with more than a batch is read again at once.
TICK_S = 0.5
# The most rows of one commit, and the most splits that they come from.
BATCH_ROWS, BATCH_SPLITS = 1 << 16, 1000
# A failed read is tried again after a second, then after twice as long each time, up to this many seconds.
LONGEST_RETRY_S = 60.0
# How often a commit that conflicts with others is tried.
MAX_CONFLICTS = 10
_WHOLE = ""  # stands for all splits of a source

_CONNECTORS: dict[str, Callable[[Source, tuple[Column, ...]], Connector]] = {
    "datagen": datagen,
    "nexmark": nexmark,
    "posix_fs": Files,
    "kafka": Kafka,
    "s3": Files,
    "postgres-cdc": PostgresCdc,
}


def open_connector(store: Store, source: Source, columns: tuple[Column, ...]) -> Connector:
    """Return the connector of a source that delivers these columns. Raises Error 42704 or XX001 for its secrets."""
    options = opened(source.options, source.secrets, store.catalog.secrets, store.cipher)
    return _CONNECTORS[source.connector](replace(source, options=options), columns)


class Writer(Protocol):
    """Writes rows into a table by the rules of INSERT."""

    def stage(self, cursor: Cursor, target: Relation, rows: str) -> int:
        """Run SQL of rows with the target's columns, except generated ones, and keep the rows. Returns their number."""

    def store(self, cursor: Cursor, target: Relation, removed: str | None, clears: bool) -> None:
        """Write the kept rows in a transaction of the cursor.

        Rows whose keys the SQL `removed` gives are deleted first, or all rows with `clears`.
        """


class Sources:
    """The sources of one server."""

    def __init__(
        self,
        store: Store,
        writer: Writer,
        notify: Callable[[], None],
        applied: Callable[[], int],
        most_rows: Callable[[], int],
    ) -> None:
        """`notify` is called when rows have been committed.

        A source pauses while it has delivered `most_rows` rows that are newer than `applied`, the snapshot of the
        views.
        """
        self._lead = Lead(applied, most_rows)
        self._store = store
        self._writer = writer
        self._notify = notify
        self._readers: dict[int, _Reader] = {}
        self._leaving: list[_Reader] = []  # of dropped sources, until their remains are removed
        self._stopping = threading.Event()
        self._wake = threading.Event()
        self._thread = threading.Thread(target=self._run, name="sources", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """End after the batch in progress."""
        self._stopping.set()
        self._wake.set()
        if self._thread.is_alive():
            self._thread.join(30)

    def changed(self) -> None:
        """Take up that a source was made, altered or dropped."""
        self._wake.set()

    def _run(self) -> None:
        is_busy = False
        while not self._stopping.is_set():
            wait = TICK_S if self._store.catalog.sources or self._readers or self._leaving else None
            self._wake.wait(0 if is_busy else wait)
            self._wake.clear()
            is_busy = self._round()

    def _round(self) -> bool:
        """Let every source deliver a batch. Returns whether any source has more."""
        catalog = self._store.catalog
        for id_ in self._readers.keys() - catalog.sources.keys():
            gone = self._readers.pop(id_)
            gone.retries.clear()
            self._leaving.append(gone)
        self._leaving = [gone for gone in self._leaving if not gone.forget()]
        is_busy = False
        for id_, source in catalog.sources.items():
            if self._stopping.is_set():
                break
            reader = self._readers.get(id_)
            if reader is None or not reader.is_of(catalog):
                relation, secrets = catalog.by_id[id_], named(source.secrets, catalog.secrets)
                reader = self._readers[id_] = _Reader(self._store, self._writer, source, relation, secrets, self._lead)
            try:
                delivered = reader.step(source.rate_limit)
            except Exception:
                # An error that the reader cannot even store, such as a full disk; its next step tries again.
                logger.exception("source %s cannot be read", reader.relation.qualified_name)
                reader.rest()
                continue
            if delivered:
                self._notify()
            is_busy = is_busy or reader.has_more
        return is_busy


@dataclass(frozen=True)
class Lead:
    """How far a source may be ahead of the views."""

    applied: Callable[[], int]
    most_rows: Callable[[], int]

    def left(self, delivered: deque[tuple[int, int]]) -> int:
        """Return how many more rows a source may deliver.

        `delivered` are its pairs of a snapshot and a number of rows. Pairs that the views have applied are removed.
        """
        applied = self.applied()
        while delivered and delivered[0][0] <= applied:
            delivered.popleft()
        return max(self.most_rows() - sum(rows for _, rows in delivered), 0)


class _Unclear(Exception):
    """One of several splits is at fault."""


@dataclass
class _Retry:
    """A failed split: the time of its next try, and its error."""

    due: float
    delay: float
    reason: str


@dataclass
class _Reader:
    """One source and its positions. After anything unexpected it begins again from the stored positions."""

    store: Store
    writer: Writer
    source: Source
    relation: Relation
    secrets: tuple[Secret, ...]
    lead: Lead
    has_more: bool = False
    connector: Connector | None = None
    splits: dict[str, Split] = field(default_factory=dict)
    retries: dict[str, _Retry] = field(default_factory=dict)
    throttle: Throttle = field(default_factory=Throttle)
    delivered: deque[tuple[int, int]] = field(default_factory=deque)  # rows that the views may not have applied yet
    conflicts: int = 0
    is_alone: bool = False  # the next batch is of one split, to find out which is at fault

    def is_of(self, catalog: Catalog) -> bool:
        """Return whether the reader fits its source in a catalog; the rate limit may differ."""
        source = catalog.sources.get(self.source.relation_id)
        if source is None:
            return False
        relation, secrets = catalog.by_id[source.relation_id], named(source.secrets, catalog.secrets)
        same = replace(self.source, rate_limit=None) == replace(source, rate_limit=None) and self.secrets == secrets
        return same and (self.relation.columns, self.relation.made_as) == (relation.columns, relation.made_as)

    def step(self, rate_limit: int | None) -> bool:
        """Deliver a batch if there is one. Returns whether there was one."""
        self.has_more = False
        if _WHOLE in self._held_back():
            return False
        try:
            connector = self.connector or self._open()
            most = min(self.lead.left(self.delivered), BATCH_ROWS)
            rows = self.throttle.grant(_lower(rate_limit, connector.rows_per_second), most) if most else 0
            if rows == 0:
                return False
            batch = connector.read(self.splits, self._held_back(), rows, 1 if self.is_alone else BATCH_SPLITS)
            if batch is None:
                self._recovered((_WHOLE,))
                return False
            if not self.is_of(self.store.catalog):  # altered while it waited for rows, which are read again
                self._begin_again()
                self.has_more = True
                return False
            self._deliver(connector, batch)
        except Moved:
            self._begin_again()
            return False
        except _Unclear:
            self.is_alone = self.has_more = True
            return False
        except SplitError as failure:
            self.is_alone, self.has_more = False, True  # other splits go on
            self._failed(failure.split.name, failure.error)
            return False
        except DuckDBError as error:
            if is_conflict(error) and self.conflicts < MAX_CONFLICTS:
                self.conflicts += 1
                self.has_more = True
            else:
                self._failed(_WHOLE, error_of(error))
            return False
        except Exception as error:
            if not isinstance(error, Error):
                logger.exception("source %s cannot be read", self.relation.qualified_name)
            self._failed(_WHOLE, error_of(error))
            return False
        self.conflicts, self.is_alone = 0, False
        self.has_more = rows == most or not all(split.is_finished for split in batch.splits)
        return True

    def rest(self) -> None:
        """Do nothing for a while, then begin again."""
        self._begin_again()
        self.retries[_WHOLE] = _Retry(time.monotonic() + 1, 1.0, "")

    def forget(self) -> bool:
        """Clean up after the source was dropped. Returns whether it is done; else call it again."""
        if _WHOLE in self._held_back():
            return False
        try:
            (self.connector or self._connector()).forget()
        except Error as error:
            self.connector = None
            if self._hold_back(_WHOLE, error):
                logger.warning(
                    "source %s is dropped, but not its remains: %s", self.relation.qualified_name, error.message
                )
            return False
        return True

    def _open(self) -> Connector:
        with closing(self.store.lake.cursor()) as cursor:
            self.splits = load_splits(cursor, self.source.relation_id)
            if not self.retries:
                self._forget_failures(cursor)
        self.connector = self._connector()
        return self.connector

    def _connector(self) -> Connector:
        return open_connector(self.store, self.source, given_columns(self.relation))

    def _forget_failures(self, cursor: Cursor) -> None:
        """Forget the stored failures of an earlier server; this one finds them out itself."""
        with self.store.lake.transaction(cursor):
            clear_failures(cursor, self.source.relation_id)

    def _begin_again(self) -> None:
        self.connector = None
        self.splits = {}

    def _deliver(self, connector: Connector, batch: Batch) -> None:
        lake, id_ = self.store.lake, self.source.relation_id
        with closing(lake.cursor()) as cursor:
            if batch.arrow is not None:
                cursor.register(READ, batch.arrow)
            try:
                count = self.writer.stage(cursor, self.relation, batch.sql)
                with lake.table_transaction(cursor, self.relation.lake_table):
                    self.writer.store(cursor, self.relation, batch.removed, batch.clears)
                    names = [split.name for split in batch.splits]
                    move_splits(cursor, id_, (self.splits[n] for n in names if n in self.splits), batch.splits)
                    recovered = self.retries.keys() & {_WHOLE, *names}
                    clear_failures(cursor, id_, recovered)
            except (DuckDBError, Error) as error:
                if isinstance(error, DuckDBError) and is_conflict(error):
                    raise
                raise self._blamed(connector, cursor, batch, error_of(error)) from error
            self.delivered.append((lake.newest(cursor), count))
        self.splits |= {split.name: split for split in batch.splits}
        self.retries = {name: retry for name, retry in self.retries.items() if name not in recovered}

    def _blamed(self, connector: Connector, cursor: Cursor, batch: Batch, error: Error) -> Exception:
        """Return the error of a batch that could not be delivered."""
        if error.sqlstate.startswith("53"):  # a full disk is not the data's fault
            return error
        blamed = connector.blame(cursor, batch, error)
        if blamed is None and len(batch.splits) > 1:
            return _Unclear()
        if blamed is None and self.is_alone:
            [split] = batch.splits
            return SplitError(split, Error(f"{split.name}: {error.message}", error.sqlstate))
        return blamed or error

    def _held_back(self) -> set[str]:
        now = time.monotonic()
        return {name for name, retry in self.retries.items() if retry.due > now}

    def _failed(self, split: str, error: Error) -> None:
        """Hold a split back for a while, and store the reason, once for each reason."""
        if split == _WHOLE:
            self._begin_again()
        if not self._hold_back(split, error):
            return
        with self.store.lake.exclusive():  # so that the source is not dropped in between
            if self.source.relation_id not in self.store.catalog.sources:
                return
            logger.warning("source %s: %s", self.relation.qualified_name, error.message)
            with self._written() as cursor:
                put_failure(cursor, self.source.relation_id, split, error.message)
                info = {"name": self.relation.name, "split": split, "error": error.message}
                add_event(cursor, "SOURCE_FAIL", self.source.relation_id, info)

    def _hold_back(self, split: str, error: Error) -> bool:
        """Delay the next try of a split, twice as long each time. Returns whether the reason is a new one."""
        before = self.retries.get(split)
        delay = min(before.delay * 2, LONGEST_RETRY_S) if before else 1.0
        self.retries[split] = _Retry(time.monotonic() + delay, delay, error.message)
        return before is None or before.reason != error.message

    def _recovered(self, names: Iterable[str]) -> None:
        gone = self.retries.keys() & set(names)
        if gone:
            with self._written() as cursor:
                clear_failures(cursor, self.source.relation_id, gone)
            self.retries = {name: retry for name, retry in self.retries.items() if name not in gone}

    @contextlib.contextmanager
    def _written(self) -> Iterator[Cursor]:
        with closing(self.store.lake.cursor()) as cursor, self.store.lake.transaction(cursor):
            yield cursor


def _lower(one: int | None, other: int | None) -> int | None:
    """Return the lower of two limits, None being no limit."""
    return min((limit for limit in (one, other) if limit is not None), default=None)
