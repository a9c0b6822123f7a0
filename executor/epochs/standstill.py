"""Holds a table still: nobody writes it, and the views have applied all that was written."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager

from sparkwave.catalog import errors
from sparkwave.catalog.errors import Error, canceled
from sparkwave.catalog.lake.ducklake import Lake
from sparkwave.catalog.model import Relation
from sparkwave.catalog.names import LakeTable
from sparkwave.catalog.stores.store import Store
from sparkwave.executor.epochs.coordinator import Coordinator
from sparkwave.executor.sinks.deliveries import targets

# Seconds that epochs wait at a time for a writer of a table.
PATIENCE_S = 1.0


@contextmanager
def standing_still(
    coordinator: Coordinator, store: Store, table: Relation, is_cancelled: Callable[[], bool]
) -> Iterator[None]:
    """While entered, nobody writes the table and no epoch begins; the views have applied all earlier writes.

    Epochs go on while somebody writes the table for long. Raises as `Coordinator.flush`, and Error 55006 when the
    table's rows change by themselves.
    """
    coordinator.flush(is_cancelled)
    with ExitStack() as held:
        while not _hold(held, coordinator, store, table):
            if is_cancelled():
                raise canceled()
            time.sleep(0.05)
        _take_up(coordinator, store.lake, table, len(store.catalog.relations))
        yield


def _hold(held: ExitStack, coordinator: Coordinator, store: Store, table: Relation) -> bool:
    """Take the locks, or none if somebody writes the table. Returns whether they are taken."""
    with ExitStack() as taken:
        taken.enter_context(coordinator.barrier_lock)
        taken.enter_context(coordinator.checkpoints.between())
        coordinator.checkpoints.run()  # takes locks of tables, too
        try:
            taken.enter_context(store.lake.holding(*_tables(store, table), patience_s=PATIENCE_S))
        except TimeoutError:
            return False
        held.push(taken.pop_all())
        return True


def _tables(store: Store, table: Relation) -> set[LakeTable]:
    """Return the tables to lock: the table, the sources of sinks into it, and all others that an epoch may write.

    With these locks held, an epoch takes no more locks.
    """
    catalog = store.catalog
    sources = {catalog.by_id[id_] for id_ in catalog.closure([table.id])}
    return {source.lake_table for source in sources if source.is_table} | {*targets(catalog, catalog.relations)}


def _take_up(coordinator: Coordinator, lake: Lake, table: Relation, most: int) -> None:
    """Run epochs until none has written the table: one for each sink on the way of its rows."""
    with closing(lake.cursor()) as cursor:
        for _ in range(most):
            coordinator.barrier(is_stored=True)  # stored, because after a crash views go on from it
            if not lake.has_changed(cursor, [table.lake_table], coordinator.snapshot):
                return
    message = f'{table.kind} "{table.name}" is being written all the time'
    raise Error(message, errors.OBJECT_IN_USE, hint="Drop the sink that writes it first.")
