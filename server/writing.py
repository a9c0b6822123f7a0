"""A session's writes: where they go, and the statements' staged rows on their way there."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence

import pyarrow as pa

from catalog import errors
from catalog.errors import Error
from catalog.lake import Cursor
from catalog.model import Relation
from planner.batch.query import Batch
from planner.batch.write import INSERTED
from server.context import Context
from server.session import Session
from server.staging import create_staging, scalar, take_in
from server.stores import Store, Stored

# More rows than these go by themselves: a transaction of their own is little of what they cost.
MOST_SHARED = 10_000


@contextlib.contextmanager
def writing(session: Session, cursor: Cursor, *targets: Relation) -> Iterator[tuple[Store, ...]]:
    """Where the rows of some tables are written, as part of the atomic transaction or in one that ends here.

    Raises Error 40001 for a table that has been altered since the statement was planned.
    """
    if session.block is not None:
        yield tuple(map(session.block.overlay, targets))
        return
    with _stored(session.context, cursor, *targets) as stores:
        yield stores
    session.committed()


@contextlib.contextmanager
def _stored(context: Context, cursor: Cursor, *targets: Relation) -> Iterator[tuple[Stored, ...]]:
    """A transaction of the lake; raises as `writing`."""
    with context.lake.table_transaction(cursor, *(target.lake_table for target in targets)):
        by_id = context.store.catalog.by_id
        for target in targets:  # nobody alters it while its lock is held
            if target.id in by_id and by_id[target.id].row_shape != target.row_shape:
                raise Error(
                    f'table "{target.name}" has just been altered',
                    errors.SERIALIZATION_FAILURE,
                    hint="The statement might succeed if retried.",
                )
        yield tuple(map(Stored, targets))


def store_staged(session: Session, cursor: Cursor, target: Relation) -> int:
    """Write the staged rows in one transaction, which few of them share with other sessions' (`server.group_commit`).

    Returns how many were staged. Raises Error 23502 for a NULL.
    """
    count = scalar(cursor, f"SELECT count(*) FROM {INSERTED}")
    if count <= MOST_SHARED and _may_share(session, target):
        _store_shared(session, target, cursor.execute(f"FROM {INSERTED}").to_arrow_table())
    else:
        with writing(session, cursor, target) as (store,):
            take_in(session.environment, cursor, store)
    return count


def _may_share(session: Session, target: Relation) -> bool:
    """Whether a table's rows may be stored with those of other sessions: what it fills up is computed by the settings
    of the session, each row may raise its watermark for the next, and Arrow has no room for every interval."""
    has_interval = any("interval" in str(column.type) for column in target.visible)
    return session.block is None and not (has_interval or target.fills_up or target.watermark is not None)


def _store_shared(session: Session, target: Relation, rows: pa.Table) -> None:
    context, environment = session.context, session.environment

    def store_all(tables: Sequence[pa.Table]) -> None:
        with contextlib.closing(context.lake.cursor()) as cursor:  # which no cancel of one of them reaches
            create_staging(cursor, target)
            # A session's time zone is in its schema.
            cursor.register("given_rows", pa.concat_tables([table.cast(rows.schema) for table in tables]))
            cursor.execute(f"INSERT INTO {INSERTED} FROM given_rows")
            with _stored(context, cursor, target) as (store,):
                take_in(environment, cursor, store)

    context.group_commit.store(target, rows, store_all)
    session.committed()


def stage_query(session: Session, cursor: Cursor, target: Relation, batch: Batch, with_rows: bool) -> None:
    """Run a query whose rows a table that is yet to be made will have."""
    if batch.reads_system:
        session.context.system_views.refresh()
    create_staging(cursor, target)
    cursor.execute(f"INSERT INTO {INSERTED} {batch.sql}" if with_rows else f"EXPLAIN {batch.sql}")
