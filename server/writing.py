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
    """Write the staged rows in one transaction. Returns how many were staged. Raises Error 23502 for a NULL."""
    count = scalar(cursor, f"SELECT count(*) FROM {INSERTED}")
    with writing(session, cursor, target) as (store,):
        take_in(session.environment, cursor, store)
    return count


def may_share(session: Session, target: Relation) -> bool:
    """Whether `store_shared` takes rows of a table: what it fills up is computed by the settings of the session, each
    row may raise its watermark for the next, and Arrow has no room for every interval."""
    is_plain = all(column.generated is None and column.type.name != "interval" for column in target.visible)
    return is_plain and session.block is None and not target.fills_up and target.watermark is None


def store_shared(session: Session, target: Relation, rows: pa.Table) -> None:
    """Write rows that have the target's columns in a transaction that other sessions' may share.

    Raises Error 23502 for a NULL.
    """
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
