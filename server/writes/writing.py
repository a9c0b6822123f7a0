"""A session's writes: opens their transaction and stores the staged rows."""

from __future__ import annotations

import contextlib
from collections.abc import Collection, Iterator, Sequence
from itertools import accumulate

from sparkwave.catalog import errors
from sparkwave.catalog.errors import Error
from sparkwave.catalog.lake.ducklake import Cursor
from sparkwave.catalog.lake.inlined_writes import Unfit, may_fit, may_fit_places
from sparkwave.catalog.lake.inlining import INLINED_ROWS
from sparkwave.catalog.model import Column, Relation, row_shape
from sparkwave.catalog.names import quote
from sparkwave.catalog.relation_details import NO_CONSTRAINTS
from sparkwave.planner.batch.query import Batch, Environment
from sparkwave.planner.batch.sequence_calls import Draws
from sparkwave.planner.batch.values import default_batch, generated_columns
from sparkwave.planner.batch.write import CHANGED, INSERTED
from sparkwave.planner.definitions.counting import drawn_by
from sparkwave.server.context import Context
from sparkwave.server.reads import execution
from sparkwave.server.session.session import Session
from sparkwave.server.writes.conflicts import meets_stored, refuses
from sparkwave.server.writes.group_commit import Fill, Refused, refusing, together
from sparkwave.server.writes.row_checks import check_rows
from sparkwave.server.writes.sequence_numbers import describe_with
from sparkwave.server.writes.staging import (
    compute_defaults,
    create_staging,
    fill_staging,
    late_defaults,
    scalar,
    take_in,
)
from sparkwave.server.writes.stores import Store, Stored


class Altered(Error):
    """A table was altered since the statement was planned. Nothing was written; the statement can be planned again."""


@contextlib.contextmanager
def steady(session: Session, target: Relation) -> Iterator[None]:
    """While entered, no other session writes or alters a table: its rows are read before the transaction of a write.

    At the end the session learns of what that transaction (`writing`) has committed. Raises Altered
    for a table that was altered since the statement was planned. A table of an atomic transaction is steady anyway.
    """
    if session.transaction.block is not None:
        yield
        return
    with session.context.lake.holding(target.lake_table):
        _check_shape(session.context, target)
        yield
    session.committed()


@contextlib.contextmanager
def writing(
    session: Session, cursor: Cursor, *targets: Relation, is_steady: bool = False, deletes: bool = True
) -> Iterator[tuple[Store, ...]]:
    """A context that yields the stores of tables, in the atomic transaction or in one that ends with the context.

    `deletes` tells whether rows may be deleted or updated. Raises Altered for a table that was altered since the
    statement was planned.
    """
    if session.transaction.block is not None:
        yield tuple(map(session.transaction.block.overlay, targets))
        return
    with _stored(session.context, cursor, *targets, deletes=deletes) as stores:
        yield stores
    if not is_steady:
        session.committed()


@contextlib.contextmanager
def _stored(context: Context, cursor: Cursor, *targets: Relation, deletes: bool = True) -> Iterator[tuple[Stored, ...]]:
    """A transaction of the lake that yields the stores of tables. Raises Altered."""
    with context.lake.table_transaction(cursor, *(target.lake_table for target in targets), deletes=deletes):
        for target in targets:
            _check_shape(context, target)
        yield tuple(map(Stored, targets))


def _check_shape(context: Context, target: Relation) -> None:
    """Raise Altered for an altered table. No session alters it while its lock is held."""
    by_id = context.store.catalog.by_id
    if target.id in by_id and row_shape(by_id[target.id]) != row_shape(target):
        raise Altered(
            f'table "{target.name}" has just been altered',
            errors.SERIALIZATION_FAILURE,
            hint="The statement might succeed if retried.",
        )


def pace(session: Session, target: Relation, rows: int) -> None:
    """Wait until the table's rate limit covers so many rows. Raises Error 57014."""
    session.context.dml_pace.wait(target.id, rows, session.running.check)


def store_staged(session: Session, cursor: Cursor, target: Relation) -> int:
    """Write the staged rows in one transaction. Returns the number of staged rows. Raises Error 23502 for a NULL."""
    count = scalar(cursor, f"SELECT count(*) FROM {INSERTED}")
    pace(session, target, count)
    session.context.lake.threads.provide(lambda: count, cursor)
    is_plain = session.transaction.block is None and not refuses(session.environment.settings, target)
    if is_plain and count <= INLINED_ROWS and _put_alone(session, cursor, target):
        session.committed()
        return count
    with (
        steady(session, target),
        writing(session, cursor, target, is_steady=True, deletes=_replaces(session, cursor, target)) as (store,),
    ):
        take_in(session.environment, cursor, store)
    return count


def _replaces(session: Session, cursor: Cursor, target: Relation) -> bool:
    """Return whether the staged rows may replace stored rows of a steady table.

    Where that matters, the keys of the rows are looked up before the transaction: a look-up may be long, and other
    transactions wait for this one.
    """
    if not target.primary_key or session.transaction.block is not None:
        return False
    return not session.context.lake.dates_deletes([target.lake_table]) or meets_stored(cursor, Stored(target))


def may_share(session: Session, target: Relation, given: Collection[Column]) -> bool:
    """Return whether constant rows for some columns may be stored together with rows of other sessions.

    Expressions that depend on the session's settings need the session: checks, generated columns, and defaults other
    than numbers of sequences. With a watermark, each row may raise it for the next.
    """
    is_known = all(drawn_by(column.default) is not None for column in late_defaults(target, given))
    is_known = is_known and not target.constraints.checks
    is_known = is_known and not refuses(session.environment.settings, target)
    return is_known and not generated_columns(target) and session.transaction.block is None and target.watermark is None


def store_shared(
    session: Session,
    target: Relation,
    columns: tuple[Column, ...],
    rows: str,
    count: int,
    values: dict[str, object] | None,
) -> None:
    """Write rows of constants, SQL that follows VALUES, in a transaction that other sessions may share.

    See `server.writes.group_commit`. Raises Error 23502 for a NULL, and 42501.
    """
    context, environment = session.context, session.environment
    # Each session checks its own right to draw, whichever session draws.
    drawn = {column: default_batch(column, environment).draws.nexts[0] for column in late_defaults(target, columns)}

    def draw(cursor: Cursor, draws: Draws) -> contextlib.AbstractContextManager[object]:
        return context.sequence_numbers.drawing(cursor, draws.nexts)

    def store_all(fills: Sequence[Fill]) -> None:
        with contextlib.closing(session.cursor()) as cursor:  # a cancel of one statement does not reach this cursor
            with refusing():
                create_staging(cursor, target)
                query, given = together(fills)
                cursor.execute(fill_staging(columns, query), given)
                compute_defaults(environment, cursor, target, columns, draw)
                if drawn:
                    _tell_numbers(cursor, drawn, fills)
            if not _put_into_catalog(context, environment, cursor, target):
                deletes = bool(target.primary_key)
                with _stored(context, cursor, target, deletes=deletes) as (store,), refusing():
                    take_in(environment, cursor, store)

    pace(session, target, count)
    fill = Fill(columns, rows, values, session.variables.get("timezone"), count)
    context.group_commit.store(target, fill, store_all)
    session.numbers.note(fill.drawn)
    session.committed()


def _tell_numbers(cursor: Cursor, drawn: dict[Column, int], fills: Sequence[Fill]) -> None:
    """Note in each statement, whose rows are staged in order, its last number of each sequence."""
    names = ", ".join(quote(column.lake_name) for column in drawn)
    ends = [end - 1 for end in accumulate(fill.count for fill in fills)]
    last = f"SELECT {names} FROM {INSERTED} WHERE rowid IN ({', '.join(map(str, ends))}) ORDER BY rowid"
    for fill, numbers in zip(fills, cursor.execute(last).fetchall(), strict=True):
        fill.drawn.update(zip(drawn.values(), numbers, strict=True))


def _put_alone(session: Session, cursor: Cursor, target: Relation) -> bool:
    """Work as `_put_into_catalog` for the rows of one statement, and raise the error of wrong rows."""
    try:
        return _put_into_catalog(session.context, session.environment, cursor, target)
    except Refused as refused:
        raise refused.error from refused


def _put_into_catalog(context: Context, environment: Environment, cursor: Cursor, target: Relation) -> bool:
    """Write the staged rows by `catalog.lake.inlined_writes` if they fit. Returns whether they did.

    Raises the errors of `_stored`.
    """
    if context.lake.storage.catalog is not None or not may_fit(target):
        return False
    if target.constraints != NO_CONSTRAINTS:  # `inlined_writes` does not check constraints
        with refusing():
            check_rows(environment, cursor, target, INSERTED)
    try:
        with context.lake.catalog_transaction(cursor, target.lake_table) as snapshot, refusing():
            _check_shape(context, target)
            stored = context.inlined_writes.insert(cursor, target, INSERTED, snapshot)
    except Unfit:
        return False
    context.inlined_writes.keep(target, stored)
    return True


def most_places(context: Context, target: Relation) -> int:
    """Return how many rows of a table `change_places` can change at most."""
    return INLINED_ROWS if context.lake.storage.catalog is None and may_fit_places(target) else 0


def change_places(
    session: Session, cursor: Cursor, target: Relation, assigned: Collection[str], since: int, count: int
) -> bool:
    """Change the rows of CHANGED by `catalog.lake.inlined_writes`. Returns False if they do not fit.

    CHANGED has `count` whole rows of a steady table, and their places at the snapshot `since` or a later one.
    """
    context, columns = session.context, [column for column in target.visible if column.name in assigned]
    if session.transaction.block is not None:
        return False
    if count:
        try:
            with context.lake.catalog_transaction(cursor, target.lake_table) as snapshot:
                stored = context.inlined_writes.change(cursor, target, CHANGED, columns, since, snapshot)
        except Unfit:
            return False
        context.inlined_writes.keep(target, stored)
    return True


def stage_query(session: Session, cursor: Cursor, target: Relation, batch: Batch, with_rows: bool) -> None:
    """Run a query and stage its rows for a table that is created afterwards."""
    execution.show_system(session, cursor, batch)
    create_staging(cursor, target)
    if with_rows:
        with execution.drawing(session, cursor, batch.draws):
            cursor.execute(f"INSERT INTO {INSERTED} {batch.sql}")
    else:
        describe_with(cursor, batch.draws)
        cursor.execute(f"EXPLAIN {batch.sql}")
