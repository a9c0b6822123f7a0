"""Subscription cursors: return the changes of a relation, commit by commit, from a point in time on.

Between two FETCHes a cursor holds no snapshot of the lake: changes that were read ahead are in a file, and the lake
keeps later ones for the retention of the subscription. `rw_timestamp`, the millisecond of a commit, is the position of
a row, so that another cursor can go on from there, also after a restart.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import closing
from itertools import chain

import pyarrow as pa

from sparkwave.catalog import errors
from sparkwave.catalog.errors import Error, not_found
from sparkwave.catalog.lake import history
from sparkwave.catalog.lake.ducklake import Cursor
from sparkwave.catalog.lake.translation import DuckDBError, translate
from sparkwave.catalog.model import Column, Relation, Subscription
from sparkwave.catalog.stores.subscription_store import first_kept
from sparkwave.catalog.types import BIGINT, VARCHAR
from sparkwave.planner.batch.query import failed_job
from sparkwave.planner.bind.privileges import check_relation
from sparkwave.planner.statements import DeclareSubscriptionCursor, Fetch
from sparkwave.server.reads import execution
from sparkwave.server.session.portal import Feed, Portal, Statement
from sparkwave.server.session.prepared import Prepared
from sparkwave.server.session.session import Session
from sparkwave.server.session.spool import Spool
from sparkwave.server.statements.named_relations import find_named
from sparkwave.server.wire.result import Result, ResultColumn

# The most snapshots that one query of changes spans.
MOST_SNAPSHOTS = 1000


class ChangeFeed:
    """The position of a cursor: it has read all changes up to the snapshot `position`.

    Rows that were read and not yet fetched are in `_next` and `_batches`.
    """

    def __init__(self, session: Session, relation: Relation, subscription: Subscription, position: int) -> None:
        self._session = session
        self._id = subscription.id
        self._visible: tuple[Column, ...] = relation.visible
        self._position = position
        self._batches: Iterator[pa.RecordBatch] = iter(())
        self._next: pa.RecordBatch | None = None
        self._spool: Spool | None = None
        self._used_at = time.monotonic()
        self.columns = (
            *(
                ResultColumn(c.name, c.type, relation.id, number, c.type.typmod)
                for number, c in enumerate(relation.visible, start=1)
            ),
            ResultColumn("op", VARCHAR),
            ResultColumn("rw_timestamp", BIGINT),
        )

    @property
    def state(self) -> str:
        return "InitLogStoreQuery" if self._next is None else "Fetch"

    @property
    def idle_ms(self) -> int:
        return round((time.monotonic() - self._used_at) * 1000)

    @property
    def subscription_name(self) -> str:
        """The subscription's present name; empty once it is dropped."""
        found = self._session.context.store.catalog.by_id.get(self._id)
        return found.name if found is not None else ""

    def read_all(self) -> None:
        """Start with all rows of the relation at `position`."""
        self._read(history.all_rows(self._relation(), self._position))

    def wait(self, seconds: float) -> None:
        """Read ahead until there is a row, at most so many seconds. Raises Error 57014 when cancelled."""
        lake, deadline = self._session.context.lake, time.monotonic() + seconds
        while True:
            commits = lake.commits
            if self._has_more():
                return
            left = deadline - time.monotonic()
            if left <= 0:
                return
            self._session.running.check()
            lake.wait_for_commit(commits, min(left, 0.1))

    def take(self, count: int | None) -> Iterator[pa.RecordBatch]:
        """Yield `count` rows, or for None all, as far as there are rows now."""
        left = count
        while left != 0 and self._has_more():
            assert self._next is not None
            batch, rest = self._next, None
            if left is not None:
                batch, rest = batch.slice(0, left), batch.slice(left)
                left -= batch.num_rows
            self._next = rest if rest is not None and rest.num_rows else None
            yield batch

    def _has_more(self) -> bool:
        """Return whether there is a row, after reading ahead if needed."""
        self._used_at = time.monotonic()
        while self._next is None:
            self._next = next(self._batches, None)
            if self._next is None:
                relation = self._relation()
                if relation.is_streaming:
                    self._session.store_views()  # since changes are read from the stored view
                with closing(self._session.context.lake.cursor()) as cursor:
                    if not self._read_on(cursor, relation):
                        return False
        return True

    def _relation(self) -> Relation:
        """Return the followed relation.

        Raises Error 42704 when the subscription was dropped, 55000 when the columns have changed.
        """
        catalog = self._session.context.store.catalog
        subscription = catalog.by_id.get(self._id)
        if subscription is None:
            raise not_found("subscription", str(self._id), hint="It has been dropped. Close the cursor.")
        relation = catalog.by_id[subscription.upstreams[0]]
        check_relation(catalog, self._session.user, relation, "SELECT")
        failed_job(catalog, relation)
        if relation.visible != self._visible:
            raise Error(
                f"the columns of {relation.kind} {relation.name} have changed",
                errors.NOT_IN_PREREQUISITE_STATE,
                hint="Close the cursor and declare it again, SINCE the last rw_timestamp.",
            )
        return relation

    def _read_on(self, cursor: Cursor, relation: Relation) -> bool:
        """Read the changes of the next snapshots. Returns whether there were any snapshots."""
        lake = self._session.context.lake
        newest = lake.snapshot(cursor)
        if newest <= self._position:
            return False
        upto = min(newest, self._position + MOST_SNAPSHOTS)
        table = relation.lake_table
        has_deletes = lake.changed_tables(cursor, self._position, upto).get((table.schema, table.name))
        if has_deletes is not None:
            self._read(history.change_log(relation, self._position, upto, has_deletes))
        if history.oldest(cursor).snapshot > self._position:
            self._drop_rows()
            raise _recycled()
        self._position = upto
        return True

    def _read(self, sql: str) -> None:
        cursor = self._session.context.lake.cursor()
        try:
            with self._session.interrupting(cursor):
                cursor.execute(sql)
            result = execution.stream(self._session, cursor, "FETCH", self.columns)
        except DuckDBError as error:
            cursor.close()
            self._session.running.check()
            raise (_recycled() if "No snapshot found" in str(error) else translate(error)) from error
        try:
            assert result.batches is not None
            self._keep(result.batches)
        finally:
            result.close()

    def _keep(self, batches: Iterator[pa.RecordBatch]) -> None:
        """Keep a query's rows: one batch in memory, more in a file."""
        filled = (batch for batch in batches if batch.num_rows)
        first, second = next(filled, None), next(filled, None)
        self._drop_rows()
        if first is None:
            return
        self._batches = iter((first,))
        if second is not None:
            self._spool = Spool(chain((first, second), filled), self._session.context.lake.spill_path)
            self._spool.fill()
            self._batches = self._spool.rows(1)

    def _drop_rows(self) -> None:
        self._batches, self._next = iter(()), None
        if self._spool is not None:
            self._spool.close()
            self._spool = None

    def close(self) -> None:
        self._drop_rows()


def _recycled() -> Error:
    return Error(
        "the changes that come next have been recycled",
        errors.SNAPSHOT_TOO_OLD,
        detail="The cursor has not been fetched from for longer than the retention of its subscription.",
        hint="Close it and declare it again.",
    )


def declare(session: Session, statement: DeclareSubscriptionCursor) -> Result:
    """Declare a subscription cursor.

    Raises Error 42704 for an unknown subscription, 42P03 for a name in use, 22023 for a time out of reach, 42501.
    """
    names = session.names
    names.free_portal(statement.name)
    catalog = session.context.store.catalog
    found = find_named(session, statement.subscription, "subscription")
    if not found.is_subscription:
        message = f'"{statement.subscription}" is not a subscription'
        raise Error(message, errors.WRONG_OBJECT_TYPE, position=statement.subscription.position)
    check_relation(catalog, session.user, found, "SELECT", statement.subscription.position)
    subscription, relation = catalog.subscriptions[found.id], catalog.by_id[found.upstreams[0]]
    with closing(session.context.lake.cursor()) as cursor:
        position = _start(session, cursor, statement, subscription)
    feed = ChangeFeed(session, relation, subscription, position)
    if statement.since == "full":
        feed.read_all()
    prepared = Statement(Prepared(session, statement, (), session.running_text))
    result = Result("FETCH", feed.columns)
    # The cursor belongs to no transaction: it lives until it is closed.
    names.portals[statement.name] = Portal(
        prepared, result=result, is_cursor=True, holds=True, survives=True, feed=feed
    )
    return Result("DECLARE CURSOR")


def _start(session: Session, cursor: Cursor, statement: DeclareSubscriptionCursor, subscription: Subscription) -> int:
    """Return the snapshot after which the cursor reads changes."""
    now_us = time.time_ns() // 1000
    if statement.since in ("now", "full"):
        return session.context.lake.snapshot(cursor)
    first = first_kept(cursor, subscription, now_us)
    if statement.since == "begin":
        return first
    assert isinstance(statement.since, int)
    problem = None
    if statement.since * 1000 > max(now_us, session.context.lake.commit_time_us):
        problem = "rw_timestamp is too large, need to be less than the current unix_millis"
    elif statement.since * 1000 <= now_us - subscription.retention_s * 1_000_000:
        problem = "rw_timestamp is too small, need to be large than the current unix_millis - retention"
    if problem is not None:
        raise Error(problem, errors.INVALID_PARAMETER_VALUE, position=statement.since_position)
    return max(first, history.snapshot_at(cursor, statement.since * 1000 - 1) or 0)


def fetch(feed: Feed, statement: Fetch) -> Result:
    """Return the next changes; if there are none, wait for them until the timeout.

    Raises Error 55000 for a direction other than forward, and errors of a dropped subscription.
    """
    if statement.way != "forward" or (statement.count is not None and statement.count < 0):
        raise Error("cursor can only scan forward", errors.NOT_IN_PREREQUISITE_STATE)
    if statement.count != 0:
        feed.wait(statement.timeout_s)
    batches = feed.take(statement.count)
    if statement.moves:
        return Result(f"MOVE {sum(batch.num_rows for batch in batches)}")
    return Result("FETCH", feed.columns, batches, counts_rows=True)
