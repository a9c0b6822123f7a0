"""The last step of ALTER MATERIALIZED VIEW … AS: newly made rows replace a view's rows, inside a barrier.

For the readers of the view, the difference between its old and new rows is a change of that epoch like any other.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from sparkwave.catalog.lake.ducklake import Cursor
from sparkwave.catalog.lake.lake_tables import at_version
from sparkwave.catalog.model import Catalog, Relation
from sparkwave.catalog.names import quote
from sparkwave.catalog.stores.placing import place
from sparkwave.catalog.stores.replace_view import put_replaced, replaced
from sparkwave.catalog.stores.store import Store
from sparkwave.executor.epochs.plans import Plans
from sparkwave.executor.epochs.versions import Pending, Version, rows_new
from sparkwave.executor.memory.delta_tables import count_signs, make_table
from sparkwave.planner.definitions.stored_definitions import shown
from sparkwave.planner.plan.nodes import Scan
from sparkwave.planner.plan.replacement import Readers, check_readers, scanned_columns, with_relation


class ReadersChanged(Exception):
    """A reader of the view was made or dropped while its barrier ran; the next barrier takes it into account."""


@dataclass(frozen=True)
class Replacement:
    """The view `before` and the relation `made` that replaces it."""

    before: Relation
    made: Relation
    readers: Readers

    @property
    def replanned(self) -> set[int]:
        """Ids of the relations whose plans change."""
        return {self.before.id, self.made.id, *self.readers.plans, *(r.id for r in self.readers.direct)}


def replacement(catalog: Catalog, made: Relation) -> Replacement:
    """Return the replacement by a made relation. Raises the Error of `check_readers`."""
    assert made.replaces is not None
    before = catalog.by_id[made.replaces]
    later = max(relation.id for relation in catalog.relations) + 1
    return Replacement(before, made, check_readers(before, replaced(before, made, later), catalog))


def bind_difference(
    cursor: Cursor, item: Replacement, plans: Plans, catalog: Catalog, snapshot: int, pending: Pending | None
) -> Pending | None:
    """Make a temporary table of the rows that leave and arrive, with `_weight`; None without readers.

    The table has the columns that readers read. `pending` has the changes of the new rows in this epoch.
    """
    before, made = item.before, item.made
    columns = scanned_columns(before, [plans.view(r, catalog).plan for r in item.readers.direct if r.is_streaming])
    if not columns:
        return None
    types = {column.name: column.type for column in made.columns}
    old_columns = {column.lake_name: column for column in before.columns}
    same = {name: c.name for name in columns if types.get((c := old_columns[name]).name) == c.type}
    scan = Scan("made", made, "made", tuple(same.values()) or (made.columns[0].name,))
    # Nobody reads a key column that the new rows lack, but it identifies the old rows.
    listed = (
        f"{quote(same[c]) if c in same else f'CAST(NULL AS {old_columns[c].type.duckdb()})'} AS {quote(c)}"
        for c in columns
    )
    new = f"SELECT {', '.join(listed)} FROM ({rows_new(scan, Version(made, snapshot, snapshot, pending))})"
    old = f"SELECT {', '.join(map(quote, columns))} FROM {at_version(before.lake_name, snapshot)}"
    name = f"j{made.id}_difference"
    gone, come = f"{old} EXCEPT ALL {new}", f"{new} EXCEPT ALL {old}"
    make_table(cursor, name, f"SELECT *, 1 AS _weight FROM ({come}) UNION ALL SELECT *, -1 FROM ({gone})")
    return Pending(name, *count_signs(cursor, name))


def put(store: Store, cursor: Cursor, item: Replacement) -> None:
    """Store the replacement in the transaction that ends the epoch. Raises ReadersChanged."""
    catalog = store.catalog
    before, made = catalog.by_id[item.before.id], catalog.by_id[item.made.id]
    if replacement(catalog, made).replanned != item.replanned:
        raise ReadersChanged
    for relaxed in item.readers.relaxed:
        store.replace_columns(cursor, relaxed)
    after = replaced(before, made, store.next_id(cursor))
    put_replaced(store, cursor, after, catalog.steady_group(catalog.job_by_id[made.id]))
    changed = with_relation(catalog, after)
    direct = (catalog.by_id[reader.id] for reader in item.readers.direct)
    place(cursor, (replace(reader, shown=shown(reader, changed)) for reader in direct))
