"""INSERT … ON CONFLICT as in PostgreSQL: replaces the staged rows by the rows to write."""

from __future__ import annotations

from sparkwave.catalog import errors
from sparkwave.catalog.errors import Error
from sparkwave.catalog.lake.ducklake import Cursor
from sparkwave.catalog.types import Type
from sparkwave.planner.batch.upsert import plan_upsert
from sparkwave.planner.batch.write import CHANGED, INSERTED
from sparkwave.planner.statements import Insert
from sparkwave.server.reads import execution
from sparkwave.server.reads.batches import bindings
from sparkwave.server.session.session import Session
from sparkwave.server.writes.conflicts import drop_late, drop_stored, keep_new
from sparkwave.server.writes.row_checks import check_rows
from sparkwave.server.writes.staging import compute_generated, scalar
from sparkwave.server.writes.stores import Store, key_of, listed, names_of


def upsert(
    session: Session,
    cursor: Cursor,
    statement: Insert,
    store: Store,
    parameters: tuple[Type, ...],
    values: tuple[object, ...],
) -> int:
    """Reduce the staged rows to new rows and, for DO UPDATE, changed stored rows. Returns their number.

    Raises the errors of `check_rows`, 21000 when DO UPDATE would change a row twice, and the errors of its
    expressions.
    """
    target, upsert_ = store.target, statement.upsert
    assert upsert_ is not None
    check_rows(session.environment, cursor, target, INSERTED)
    if target.watermark is not None:
        drop_late(cursor, store, target.watermark)
    if upsert_.tree is None:
        keep_new(cursor, store)
        return scalar(cursor, f"SELECT count(*) FROM {INSERTED}")
    key = listed(key_of(target))
    if scalar(cursor, f"SELECT count(*) FROM (SELECT 1 FROM {INSERTED} GROUP BY {key} HAVING count(*) > 1)"):
        raise Error(
            "ON CONFLICT DO UPDATE command cannot affect row a second time",
            errors.CARDINALITY_VIOLATION,
            hint="Ensure that no rows proposed for insertion within the same command have duplicate constrained "
            "values.",
        )
    batch = plan_upsert(statement, target, session.environment, parameters)
    execution.show_system(session, cursor, batch)
    given = bindings(cursor, batch.sql, values)
    with execution.drawing(session, cursor, batch.draws):
        cursor.execute(f"CREATE OR REPLACE TEMPORARY TABLE {CHANGED} AS {batch.sql}", given)
    compute_generated(session.environment, cursor, target, CHANGED)
    check_rows(session.environment, cursor, target, CHANGED)
    drop_stored(cursor, store)
    cursor.execute(f"INSERT INTO {INSERTED} SELECT {listed(names_of(target))} FROM {CHANGED}")
    return scalar(cursor, f"SELECT count(*) FROM {INSERTED}")
