"""`ON COMMIT DROP` and `ON COMMIT DELETE ROWS` of temporary tables."""

from __future__ import annotations

from sparkwave.catalog.names import TEMPORARY_SCHEMA
from sparkwave.planner.statements import DROP, Drop, Name, Truncate
from sparkwave.server.session.session import Session
from sparkwave.server.statements.plain_views import drop
from sparkwave.server.writes.dml import truncate


def end_transaction(session: Session) -> None:
    """Drop or empty the temporary tables that say so, unless a transaction block is open.

    Outside of a block each statement is a transaction.
    """
    if session.transaction.is_open:
        return
    by_id = session.context.store.catalog.by_id
    tables = {by_id[id_]: action for id_, action in session.temporary.on_commit.items() if id_ in by_id}
    session.temporary.on_commit = {table.id: action for table, action in tables.items() if action != DROP}
    for table, action in tables.items():
        name = Name(None, TEMPORARY_SCHEMA, table.name, 0)
        if action == DROP:
            drop(session, Drop("table", (name,), if_exists=True, cascade=True))
        else:
            truncate(session, Truncate((name,)))
