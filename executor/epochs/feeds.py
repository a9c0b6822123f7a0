"""Change feeds: the changed rows of relations, each read from the lake once and shared by all views of an epoch."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from sparkwave.catalog.lake.change_feed import count_inserted, keep_changes
from sparkwave.catalog.lake.ducklake import Cursor, Lake
from sparkwave.catalog.lake.memory_transactions import first_row
from sparkwave.catalog.lake.prepared_statements import run_once
from sparkwave.catalog.lake.snapshot_changes import Change, ChangedTables, changes_made
from sparkwave.catalog.model import Relation
from sparkwave.executor.epochs.versions import columns_read, listed, stored_columns
from sparkwave.executor.memory.delta_tables import drop_tables, fill_table, forget_table, kept_table
from sparkwave.planner.plan.nodes import Scan


class Feeds:
    """Temporary tables of one cursor with a relation's changes between two snapshots: `rowid`, columns and `_weight`.

    The columns are those that `scans` read, the scans of all views that the epoch may take along. Reading a deleted row
    means reading its file, so that further columns cost little here and much in a second reading.
    """

    def __init__(
        self, lake: Lake, cursor: Cursor, scans: Callable[[], Iterable[Scan]], usual: int | None = None
    ) -> None:
        """`usual` is the start snapshot of each epoch's changes.

        Tables for it stay in the cursor for the next epoch.
        """
        self._lake = lake
        self.usual = usual
        self._cursor = cursor
        self._scans = scans
        self._read: dict[tuple[int, int], list[Change]] = {}
        self._changed: dict[tuple[int, int], ChangedTables] = {}
        self._made: dict[tuple[int, int, int], tuple[str, frozenset[str]]] = {}
        self._net: dict[tuple[int, int, int], tuple[str, frozenset[str]]] = {}
        self._inserted: dict[tuple[int, int], dict[tuple[str, str], int]] = {}
        self._rows: dict[str, int] = {}
        self._retracts: dict[str, bool] = {}

    def has_changes(self, relation: Relation, old: int, new: int) -> bool:
        """Whether a relation changed in snapshots `old < s <= new`."""
        return self._key(relation) in self._changes(old, new)

    def has_deletes(self, relation: Relation, old: int, new: int) -> bool:
        """Return whether any of the changes removes a row."""
        return self._changes(old, new).get(self._key(relation), False)

    def expected(self, relation: Relation, old: int, new: int) -> int:
        """Return an estimate of a feed's number of rows, without making the feed.

        Removed rows count as many as inserted ones.
        """
        has_deletes = self._changes(old, new).get(self._key(relation))
        if has_deletes is None:
            return 0
        if (old, new) not in self._inserted:
            counts = count_inserted(self._cursor, self._read[old, new], old, new)
            names = self._lake.names_of(self._cursor, counts)
            self._inserted[old, new] = {names[number]: count for number, count in counts.items() if number in names}
        return self._inserted[old, new].get(self._key(relation), 0) * (1 + has_deletes)

    def feed(self, scan: Scan, old: int, new: int) -> str | None:
        """Return the name of the table with the changes of a scan's relation; None if nothing changed."""
        return self._feed(scan.relation, stored_columns(scan), old, new)

    def made(self, relation: Relation, old: int, new: int) -> str | None:
        """Return the name of a relation's feed, if it has been made."""
        name, _ = self._made.get((relation.id, old, new), (None, None))
        return name

    def _feed(self, relation: Relation, columns: frozenset[str], old: int, new: int) -> str | None:
        has_deletes = self._changes(old, new).get(self._key(relation))
        if has_deletes is None:
            return None
        key = (relation.id, old, new)
        name, made = self._made.get(key, (self._name("feed", *key), frozenset()))
        if key not in self._made or not made >= columns:
            made = made | columns | self.columns(relation)
            form = self._form(relation, made, old)

            def make(cursor: Cursor, table: str, query: str) -> None:
                self._rows[name] = fill_table(cursor, table, query, form, run_once)

            try:
                keep_changes(self._cursor, name, relation.lake_table, old, new, has_deletes, listed(made), make)
            except BaseException:
                forget_table(self._cursor, name)
                raise
            self._made[key] = name, made
        return name

    def count(self, relation: Relation, old: int, new: int) -> int:
        """Return the number of a relation's changed rows; rows that came and went in between may be missing."""
        name = self._feed(relation, frozenset(column.lake_name for column in relation.stored[:1]), old, new)
        return self._rows[name] if name is not None else 0

    def rows(self, feed: str) -> int:
        """Return the number of rows of a feed, by its name."""
        return self._rows[feed]

    def retracts(self, feed: str) -> bool:
        """Return whether any row of a feed is a removal."""
        if feed not in self._retracts:
            row = first_row(self._cursor.execute(f"SELECT EXISTS (FROM {feed} WHERE _weight < 0)"))
            self._retracts[feed] = row == (True,)
        return self._retracts[feed]

    def net(self, relation: Relation, columns: frozenset[str], old: int, new: int) -> str | None:
        """Return the feed with the net change of each row id: its first state and its last, if they differ."""
        feed = self._feed(relation, columns, old, new)
        if feed is None or not self.has_deletes(relation, old, new):
            return feed
        key = (relation.id, old, new)
        name, made = self._net.get(key, (self._name("net", *key), frozenset()))
        if key not in self._net or not made >= columns:
            made = self._made[key][1]
            net = f"SELECT {listed(made)}, sum(_weight)::BIGINT AS _weight FROM {feed} GROUP BY ALL"
            form = self._form(relation, made, old)
            self._rows[name] = fill_table(self._cursor, name, f"{net} HAVING sum(_weight) <> 0", form)
            self._net[key] = name, made
        return name

    def _name(self, kind: str, relation_id: int, old: int, new: int) -> str:
        """Return the name of a table, which is the same for each epoch if the table may stay."""
        return kept_table(f"{kind}_{relation_id}") if old == self.usual else f"{kind}_{relation_id}_{old}_{new}"

    def _form(self, relation: Relation, columns: frozenset[str], old: int) -> object:
        """Return a value that changes with the columns of a table that may stay; None for a table that may not."""
        return (relation.columns, columns) if old == self.usual else None

    def columns(self, relation: Relation) -> frozenset[str]:
        """Return the columns of a relation that views read."""
        return columns_read(self._scans(), relation)

    def close(self) -> None:
        """Drop the temporary tables that do not stay."""
        drop_tables(self._cursor, self.usual is not None)

    def _changes(self, old: int, new: int) -> ChangedTables:
        if (old, new) not in self._changed:
            self._read[old, new] = changes_made(self._cursor, old, new) if new > old else []
            self._changed[old, new] = self._lake.tables_of(self._cursor, self._read[old, new])
        return self._changed[old, new]

    @staticmethod
    def _key(relation: Relation) -> tuple[str, str]:
        return relation.lake_table.schema, relation.lake_table.name
