"""DECLARE, FETCH, MOVE and CLOSE of cursors.

A cursor is a started portal, which streams the rows of one snapshot. A SCROLL cursor keeps the rows that it has read in
a file. A WITH HOLD cursor keeps all rows in a file once its transaction is over, so that it holds back no snapshot of
the lake.
"""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa

from sparkwave.catalog import errors
from sparkwave.catalog.errors import Error
from sparkwave.planner.statements import CloseCursor, DeclareCursor, Fetch, Query
from sparkwave.server.reads import execution, queries
from sparkwave.server.reads.past_queries import told
from sparkwave.server.session import atomic
from sparkwave.server.session.portal import Portal, Rows, Statement
from sparkwave.server.session.prepared import Prepared
from sparkwave.server.session.session import Session
from sparkwave.server.session.spool import Scroll, Spool
from sparkwave.server.statements import subscription_cursors
from sparkwave.server.wire.result import Result


def declare(session: Session, statement: DeclareCursor, oids: tuple[int, ...], values: tuple[object, ...]) -> Result:
    """Declare a cursor and start its query. Raises Error 42P03 for a name in use.

    PostgreSQL demands a transaction unless the cursor is WITH HOLD. Here a cursor may be declared without one, and
    lives until it is closed. Where transactions are atomic, that is Error 25P01, as in PostgreSQL.
    """
    names = session.names
    if atomic.applies(session) and session.transaction.block is None and not statement.holds:
        message = "DECLARE CURSOR can only be used in transaction blocks"
        raise Error(message, errors.NO_ACTIVE_TRANSACTION)
    names.free_portal(statement.name)
    query = Prepared(session, Query(statement.query), oids, session.running_text)
    planned = queries.plan(session, statement, oids, values)
    with told(session, planned.environment.versions):
        result = execution.run(session, planned, values, keeps=True)
    result.is_binary = statement.is_binary
    rows = Rows(result.batches)
    spool = None
    if statement.holds or statement.scrolls:
        assert result.batches is not None
        spool = Spool(result.batches, session.context.lake.spill_path)
        rows.keep(spool)
    portal = Portal(
        Statement(query),
        format_codes=(int(statement.is_binary),),
        result=result,
        rows=rows,
        is_cursor=True,
        holds=statement.holds,
        spool=spool,
        scroll=Scroll(spool) if statement.scrolls and spool is not None else None,
    )
    if statement.holds and not names.in_block:
        try:
            portal.hold()
        except BaseException:
            portal.close()
            raise
    names.portals[statement.name] = portal
    return Result("DECLARE CURSOR")


def fetch(session: Session, statement: Fetch) -> Result:
    """Return the next rows of a cursor, or for MOVE their number.

    Raises Error 34000 for an unknown cursor, 55000 for a step back in a cursor without SCROLL.
    """
    portal = session.names.portal(statement.cursor, "cursor")
    if portal.feed is not None:
        return subscription_cursors.fetch(portal.feed, statement)
    _start(session, portal)
    result, rows = portal.result, portal.rows
    if result is None or rows is None or result.columns is None or portal.finished:
        raise Error(f'portal "{statement.cursor}" cannot be run', errors.NOT_IN_PREREQUISITE_STATE)
    if portal.scroll is not None:
        batches = _failing(portal, portal.scroll.fetch(statement.way, statement.count))
    else:
        skipped, wanted = _forward(statement, rows)
        for _ in _taken(portal, rows, skipped):
            pass
        batches = _taken(portal, rows, wanted)
    if statement.moves:
        return Result(f"MOVE {sum(batch.num_rows for batch in batches)}")
    return Result("FETCH", result.columns, batches, counts_rows=True, is_binary=result.is_binary)


def _start(session: Session, portal: Portal) -> None:
    """Run the query of a portal that the protocol has bound but not yet executed."""
    prepared = portal.statement.prepared
    if portal.result is None and isinstance(prepared, Prepared) and isinstance(prepared.statement, Query):
        portal.result = queries.select(session, prepared.statement, prepared.oids, portal.values)
    if portal.result is not None and portal.rows is None and portal.result.columns is not None:
        portal.rows = Rows(portal.result.batches)


def _forward(statement: Fetch, rows: Rows) -> tuple[int, int | None]:
    """Return the number of rows to skip, and the number of rows to take after them; None for all."""
    way, count = statement.way, statement.count
    stands_on_row = rows.taken > 0 and not rows.ended
    if way == "backward":
        way, count = "forward", None if count is None else -count
        if count is None and rows.taken:
            raise _only_forward()
        count = count or 0
    if way == "absolute":
        assert count is not None
        if count > rows.taken and not rows.ended:
            return count - 1 - rows.taken, 1
        if count < 0 or rows.taken or rows.ended:
            raise _only_forward()
        return 0, 0
    if count is None:
        return 0, None
    # FETCH 0 is the current row once more, which is gone.
    if (count < 0 and (rows.taken or rows.ended)) or (count == 0 and stands_on_row):
        raise _only_forward()
    if way == "relative" and count > 0:
        return count - 1, 1
    return 0, max(count, 0)


def _only_forward() -> Error:
    return Error(
        "cursor can only scan forward",
        errors.NOT_IN_PREREQUISITE_STATE,
        hint="Declare it with SCROLL option to enable backward scan.",
    )


def _taken(portal: Portal, rows: Rows, count: int | None) -> Iterator[pa.RecordBatch]:
    """Yield up to `count` rows."""
    if count == 0:
        return
    yield from _failing(portal, rows.take(count or 0))
    if rows.ended and portal.result is not None:
        portal.result.close()  # ends the query; the cursor keeps its name


def _failing(portal: Portal, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Close a cursor whose query fails, since its next rows would not be the right ones."""
    try:
        yield from batches
    except Exception:
        portal.close()
        raise


def close(session: Session, statement: CloseCursor) -> Result:
    """Close a cursor, or all. Raises Error 34000 for an unknown cursor."""
    if statement.name is None:
        session.names.close_portals()
        return Result("CLOSE CURSOR ALL")
    session.names.portal(statement.name, "cursor")
    session.names.close_portal(statement.name)
    return Result("CLOSE CURSOR")
