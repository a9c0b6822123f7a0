"""Holds tables still: nobody writes them, and the views have applied all that was written."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterator
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
    coordinator: Coordinator, store: Store, tables: Collection[Relation], is_cancelled: Callable[[], bool]
) -> Iterator[None]:
    """While entered, nobody writes the tables and no epoch begins; the views have applied all earlier writes.

    Epochs go on while somebody writes a table for long. Raises as `Coordinator.flush`, and Error 55006 when the rows of
    a table change by themselves.
    """
    coordinator.flush(is_cancelled)
    with ExitStack() as held:
        while not _hold(held, coordinator, store, tables):
            if is_cancelled():
                raise canceled()
            time.sleep(0.05)
        _take_up(coordinator, store.lake, tables, len(store.catalog.relations))
        yield


def _hold(held: ExitStack, coordinator: Coordinator, store: Store, tables: Collection[Relation]) -> bool:
    """Take the locks, or none if somebody writes a table. Returns whether they are taken."""
    with ExitStack() as taken:
        taken.enter_context(coordinator.barrier_lock)
        taken.enter_context(coordinator.checkpoints.between())
        coordinator.checkpoints.run()  # takes locks of tables, too
        try:
            taken.enter_context(store.lake.holding(*_locked(store, tables), patience_s=PATIENCE_S))
        except TimeoutError:
            return False
        held.push(taken.pop_all())
        return True


def _locked(store: Store, tables: Collection[Relation]) -> set[LakeTable]:
    """Return the tables to lock: the tables, the sources of sinks into them, and all others that an epoch may write.

    With these locks held, an epoch takes no more locks.
    """
    catalog = store.catalog
    sources = {catalog.by_id[id_] for id_ in catalog.closure([table.id for table in tables])}
    return {source.lake_table for source in sources if source.is_table} | {*targets(catalog, catalog.relations)}


def _take_up(coordinator: Coordinator, lake: Lake, tables: Collection[Relation], most: int) -> None:
    """Run epochs until none has written the tables: one for each sink on the way of their rows."""
    lake_tables = [table.lake_table for table in tables]
    with closing(lake.cursor()) as cursor:
        for _ in range(most):
            coordinator.barrier(is_stored=True)  # stored, because after a crash views go on from it
            if not lake.has_changed(cursor, lake_tables, coordinator.snapshot):
                return
    listed = ", ".join(f'{table.kind} "{table.name}"' for table in tables)
    message = f"{listed} is being written all the time"
    raise Error(message, errors.OBJECT_IN_USE, hint="Drop the sink that writes it first.")
