"""DECLARE, FETCH, MOVE and CLOSE. A cursor is a portal that has been started: it reads one snapshot and streams it."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa

from catalog import errors
from catalog.errors import Error
from planner.batch.query import plan_query
from planner.statements import CloseCursor, DeclareCursor, Fetch, Query
from server.portal import Portal, Rows, Statement
from server.prepared import Prepared
from server.result import Result
from server.session import Session


def declare(session: Session, statement: DeclareCursor, oids: tuple[int, ...], values: tuple[object, ...]) -> Result:
    """Start the query; its rows wait to be fetched. Raises Error 42P03 for a name that is taken.

    PostgreSQL wants a transaction around it unless it holds. Here it may stand alone, and lives until it is closed.
    """
    names = session.names
    names.free_portal(statement.name)
    query = Prepared(session, Query(statement.query), oids, session.running_text)
    result = session.query(plan_query(statement.query, session.environment, oids), values, keeps=True)
    result.is_binary = statement.is_binary
    names.portals[statement.name] = Portal(
        Statement(query),
        format_codes=(int(statement.is_binary),),
        result=result,
        rows=Rows(result.batches),
        is_cursor=True,
        holds=statement.holds,
        survives=statement.holds and not names.in_block,
    )
    return Result("DECLARE CURSOR")


def fetch(session: Session, statement: Fetch) -> Result:
    """The next rows of a cursor, or their number when it only moves.

    Raises Error 34000 for an unknown cursor, 55000 for rows that are already behind it.
    """
    portal = session.names.portal(statement.cursor, "cursor")
    result, rows = portal.result, portal.rows
    if result is None or rows is None or result.columns is None or portal.finished:
        raise Error(f'portal "{statement.cursor}" cannot be run', errors.NOT_IN_PREREQUISITE_STATE)
    skipped, wanted = _forward(statement, rows)
    for _ in _taken(portal, rows, skipped):
        pass
    batches = _taken(portal, rows, wanted)
    if statement.moves:
        return Result(f"MOVE {sum(batch.num_rows for batch in batches)}")
    return Result("FETCH", result.columns, batches, counts_rows=True, is_binary=result.is_binary)


def _forward(statement: Fetch, rows: Rows) -> tuple[int, int | None]:
    """How many rows to pass over, and how many to take then; None is all."""
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
    # Zero is the row it stands on once more.
    if (count < 0 and (rows.taken or rows.ended)) or (count == 0 and stands_on_row):
        raise _only_forward()
    if way == "relative" and count > 0:
        return count - 1, 1
    return 0, max(count, 0)


def _only_forward() -> Error:
    return Error(
        "cursor can only scan forward",
        errors.NOT_IN_PREREQUISITE_STATE,
        hint="Declare another cursor to read the rows once more.",
    )


def _taken(portal: Portal, rows: Rows, count: int | None) -> Iterator[pa.RecordBatch]:
    """Up to `count` rows. A cursor that has failed stays so: what it would go on with is not what it has promised."""
    if count == 0:
        return
    try:
        yield from rows.take(count or 0)
    except Exception:
        portal.close()
        raise
    if rows.ended and portal.result is not None:
        portal.result.close()  # the query; the cursor still has its name


def close(session: Session, statement: CloseCursor) -> Result:
    """Raises Error 34000 for an unknown cursor."""
    if statement.name is None:
        session.names.close_portals()
        return Result("CLOSE CURSOR ALL")
    session.names.portal(statement.name, "cursor")
    session.names.close_portal(statement.name)
    return Result("CLOSE CURSOR")
