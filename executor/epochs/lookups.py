"""The rows in which joins look up matches, from copies in memory where there are some.

For a view these are the rows after the last epoch (`executor.memory.shared_buffer`). A copy of a table
(`executor.memory.copies`) has the row ids, the columns that views read, and the snapshots since and until which a row
exists. An epoch advances the copies that it needs to its own snapshot by their change feeds, and reads the old and the
new rows from them.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from weakref import WeakKeyDictionary

from sparkwave.catalog.lake.ducklake import Cursor
from sparkwave.catalog.lake.lake_tables import NEWEST, at_version
from sparkwave.catalog.lake.memory_transactions import in_transaction
from sparkwave.catalog.lake.prepared_statements import run
from sparkwave.catalog.lake.row_ids import ALL
from sparkwave.catalog.lake.snapshot_changes import is_kept
from sparkwave.catalog.model import Catalog, Relation
from sparkwave.executor.epochs.advance import View
from sparkwave.executor.epochs.feeds import Feeds
from sparkwave.executor.epochs.versions import Version, listed, stored_columns, stored_names
from sparkwave.executor.memory.copies import Copies, Copy, Key
from sparkwave.executor.memory.delta_tables import count_signs, reads_kept
from sparkwave.executor.memory.moment import NEW, OLD, Moment
from sparkwave.executor.memory.shared_buffer import SharedBuffer, state_owner
from sparkwave.planner.delta.looked_up import Columns

# A copy knows at most this many snapshots whose rows it has; a reader of an older snapshot gets another copy.
_MOST_SNAPSHOTS = 1000
# Rows are looked up by an index for at most this many keys.
MOST_INDEXED = 1000
_SINCE, _UNTIL = '"?since"', '"?until"'


@dataclass
class _Contents:
    """The columns and snapshots of a copy, and the snapshot it was made at. The last snapshot is the copy's position.

    The copy has the rows of each listed snapshot. Rows that came and went between two listed ones are missing, so that
    the copy is no answer for a snapshot in between.
    """

    relation: Relation
    columns: frozenset[str]
    made_at: int
    snapshots: list[int]

    @property
    def last(self) -> int:
        return self.snapshots[-1]

    def is_of(self, relation: Relation) -> bool:
        """Return whether the relation is still the copied one, with the same columns."""
        return (self.relation.lake_table, self.relation.columns) == (relation.lake_table, relation.columns)

    def has(self, snapshot: int) -> bool:
        """Return whether the copy has the rows of a snapshot, or can be advanced to it."""
        return snapshot > self.last or snapshot in self.snapshots


class Lookups:
    """Finds and advances copies. Only the coordinator's thread uses it, with its own cursor; jobs make copies ahead."""

    def __init__(self, copies: Copies, buffer: SharedBuffer) -> None:
        self._copies, self._buffer = copies, buffer
        self._contents: WeakKeyDictionary[Copy, _Contents] = WeakKeyDictionary()
        self._moment = Moment()

    def versions(
        self, cursor: Cursor, catalog: Catalog, view: View, versions: Mapping[str, Version], feeds: Feeds,
        read: Collection[str], reads_feeds: bool, lookups: Mapping[str, Sequence[Columns]], wanted: Collection[str],
    ) -> dict[str, Version]:  # fmt: skip
        """Return a created view's versions, with copies for the inputs whose old or new rows are among `read`.

        Without `reads_feeds`, copies are used only for inputs that have not changed. `lookups` are as in
        `planner.delta.program.DeltaProgram`. Missing indexes for look-ups in the `wanted` inputs are made.
        """
        found = dict(versions)
        self._set_moment(cursor, versions.values(), feeds)
        for scan in view.plan.scans:
            version = versions[scan.input]
            if f"{scan.input}_old" not in read and f"{scan.input}_new" not in read:
                continue
            relation = catalog.by_id[scan.relation.id]
            if not relation.is_table:
                if not version.is_net:
                    rows = self._buffer.rows(cursor, relation, relation.lake_table)
                    found[scan.input] = replace(version, old_copy=rows, new_copy=rows)
                continue
            copy = self._copy(cursor, relation, stored_columns(scan), version, feeds, reads_feeds)
            if copy is not None:
                is_usual = (version.old, version.new) == self._moment.snapshots
                moments = (OLD, NEW) if is_usual else (str(version.old), str(version.new))
                old, new = (self._at(copy, at, None) for at in moments)
                found[scan.input] = version = replace(version, old_copy=old, new_copy=new)
                indexed = self._indexed(cursor, copy, relation, lookups.get(scan.input, ()), scan.input in wanted)
                if indexed is not None:
                    old, new = (self._at(copy, at, indexed) for at in moments)
                    found[scan.input] = replace(version, old_indexed=old, new_indexed=new)
        return found

    def copy_ahead(
        self, cursor: Cursor, catalog: Catalog, view: View, versions: Mapping[str, Version], read: Collection[str],
        lookups: Mapping[str, Sequence[Columns]], columns: Callable[[Relation], frozenset[str]],
    ) -> None:  # fmt: skip
        """Copy the tables that the last change of a creating view will look up, with the indexes for few changes.

        Its job calls this. They are copied at the old snapshots of its `versions`, in the name of the view. `columns`
        returns the columns of a relation that created views read; the other arguments are as in `versions`.
        """
        maker = state_owner(view.relation.definition_id)
        for scan in view.plan.scans:
            relation, version, key = catalog.by_id[scan.relation.id], versions[scan.input], _key(scan.relation)
            if not relation.is_table or {f"{scan.input}_old", f"{scan.input}_new"}.isdisjoint(read):
                continue
            present = self._copies.find(key)
            has = self._contents.get(present) if present is not None else None
            if has is not None and has.columns >= stored_columns(scan):
                continue
            wanted = stored_columns(scan) | columns(relation)

            def finish(copy: Copy, made: _Contents, name: str) -> None:
                self._contents[copy] = made
                self._indexed(cursor, copy, made.relation, lookups.get(name, ()), True)

            made = _Contents(relation, wanted, version.old, [version.old])
            rows = _rows(relation, wanted, version.old)
            self._copies.make_ahead(cursor, key, rows, maker, partial(finish, made=made, name=scan.input))

    def _indexed(
        self, cursor: Cursor, copy: Copy, relation: Relation, lookups: Iterable[Columns], is_made: bool
    ) -> str | None:
        """Return a column of a copy by whose index rows are looked up; None if there is none, and none `is_made`."""
        has = self._contents[copy].columns
        groups = ([name for name in stored_names(relation, columns) if name in has] for columns in lookups)
        return self._copies.index(cursor, copy, filter(None, groups), is_made)

    def _at(self, copy: Copy, snapshot: str, indexed: str | None) -> str:
        """Return SQL of a copy's rows at a snapshot, for look-ups by the column `indexed` if it is given."""
        # The sequences of the moment take a lock for each row. Most rows have been there since the copy was made.
        unchanged = f"{_SINCE} <= {self._contents[copy].made_at} AND {_UNTIL} = {NEWEST}"
        present = f"{_SINCE} <= {snapshot} AND {_UNTIL} > {snapshot}"
        where = f" WHERE CASE WHEN {unchanged} THEN true ELSE {present} END"
        if indexed is None:
            return f"(FROM {copy.name}{where})"
        return copy.by(indexed, f"{_SINCE} < {_UNTIL}", where)

    @property
    def snapshots(self) -> tuple[int, int] | None:
        """The snapshots from and to which most views advance."""
        return self._moment.snapshots

    def is_usual(self, version: Version) -> bool:
        """Return whether a version has these snapshots, and all rows."""
        return (version.old, version.new) == self.snapshots and version.old_rows == version.new_rows == ALL

    def has_rows(self, version: Version) -> bool:
        """Return whether a large copy has the rows of an input at these snapshots."""
        copy = self._copies.find(_key(version.relation)) if version.old_copy is not None else None
        is_read = copy is not None and copy.is_large and self._contents[copy].last == version.new
        return is_read and self.is_usual(version)

    def matching(
        self, cursor: Cursor, version: Version, columns: frozenset[str], key: Columns, keys: int, most_rows: int
    ) -> tuple[str, float] | None:
        """Return SQL of the rows of a copy at either of the snapshots, with some columns, for look-ups by a key.

        Also returns about how many rows have one of so many `keys`. None if these are more than `most_rows`.
        """
        copy = self._copies.get(_key(version.relation))
        if copy is None or not columns <= self._contents[copy].columns:
            return None
        count = self._copies.found(cursor, copy, key, keys)
        if count > most_rows:
            return None
        indexed = self._copies.index(cursor, copy, [key]) if keys <= MOST_INDEXED else None
        where = f" WHERE CASE WHEN {_UNTIL} = {NEWEST} THEN true ELSE {_UNTIL} > {OLD} END"
        rows = f"{copy.name}{where}" if indexed is None else copy.by(indexed, f"{_SINCE} < {_UNTIL}", where)
        return f"(SELECT {listed(columns)}, {_SINCE}, {_UNTIL} FROM {rows})", count

    @staticmethod
    def present(rows: str, moment: str) -> str:
        """Return SQL of the rows, among some rows of a copy, that exist at a moment."""
        return f"(FROM {rows} WHERE {_SINCE} <= {moment} AND {_UNTIL} > {moment})"

    def _set_moment(self, cursor: Cursor, versions: Iterable[Version], feeds: Feeds) -> None:
        """Set the snapshots from and to which most views advance, so that SQL over copies stays the same."""
        usual = next((version for version in versions if version.old == feeds.usual), None)
        if usual is not None:
            self._moment.set(cursor, usual.old, usual.new)

    def _copy(
        self, cursor: Cursor, relation: Relation, columns: frozenset[str], version: Version, feeds: Feeds,
        reads_feeds: bool,
    ) -> Copy | None:  # fmt: skip
        """Return a copy that has the rows of both snapshots of a version, or None."""
        key, wanted = _key(relation), columns | feeds.columns(relation)
        while (copy := self._copies.get(key)) is not None:  # there may be another one, made ahead
            if self._is_good(cursor, copy, relation, columns, wanted, version):
                break
            if version.old != feeds.usual and self._contents[copy].is_of(relation):
                return None  # the views that follow each epoch go on with it
            self._copies.forget(key)
        last = self._contents[copy].last if copy is not None else version.old
        if not reads_feeds and feeds.has_changes(relation, last, version.new):
            return None
        copy = copy or self._made(cursor, key, relation, wanted, version.old)
        # Rows are asked for at the old snapshot, so the copy has to stop there first.
        for snapshot in (version.old, version.new):
            if copy is not None and self._contents[copy].last < snapshot:
                copy = self._taken_along(cursor, key, copy, snapshot, feeds)
        return copy

    def _is_good(
        self, cursor: Cursor, copy: Copy, relation: Relation, columns: frozenset[str], wanted: frozenset[str],
        version: Version,
    ) -> bool:  # fmt: skip
        """Return whether a copy is of the present relation, has the wanted columns only, and can be advanced."""
        has = self._contents[copy]
        if (
            not has.is_of(relation)
            or not wanted >= has.columns >= columns
            or not (has.has(version.old) and has.has(version.new))
        ):
            return False
        # The lake keeps all snapshots after the one that created views have applied.
        return has.last >= version.old or is_kept(cursor, has.last, version.old)

    def _made(
        self, cursor: Cursor, key: Key, relation: Relation, columns: frozenset[str], snapshot: int
    ) -> Copy | None:
        copy = self._copies.make(cursor, key, _rows(relation, columns, snapshot))
        if copy is not None:
            self._contents[copy] = _Contents(relation, columns, snapshot, [snapshot])
        return copy

    def _taken_along(self, cursor: Cursor, key: Key, copy: Copy, snapshot: int, feeds: Feeds) -> Copy | None:
        """Return the copy advanced to a later snapshot; None if there is no copy any more."""
        has = self._contents[copy]
        net = feeds.net(has.relation, has.columns, has.last, snapshot)
        if net is not None:
            if self._copies.changes(key, *count_signs(cursor, net)) is None:
                return None
            is_usual = (has.last, snapshot) == self._moment.snapshots and reads_kept(net)
            at, execute = (NEW, run) if is_usual else (str(snapshot), Cursor.execute)
            gone = f"{_UNTIL} = {NEWEST} AND rowid IN (SELECT rowid FROM {net} WHERE _weight < 0)"
            come = f"SELECT {listed(has.columns)}, {at}, {NEWEST} FROM {net} WHERE _weight > 0"
            with in_transaction(cursor):
                execute(cursor, f"UPDATE {copy.name} SET {_UNTIL} = {at} WHERE {gone}")
                execute(cursor, f"INSERT INTO {copy.name} {come}")
        has.snapshots = [*has.snapshots[-_MOST_SNAPSHOTS:], snapshot]
        return copy


def _rows(relation: Relation, columns: frozenset[str], snapshot: int) -> str:
    """Return SQL of the rows of a copy that is made at a snapshot."""
    stored = at_version(relation.lake_name, snapshot)
    return f"SELECT {listed(columns)}, {snapshot} AS {_SINCE}, {NEWEST} AS {_UNTIL} FROM {stored}"


def _key(relation: Relation) -> Key:
    return input_owner(relation), "rows"


def input_owner(relation: Relation) -> Hashable:
    """Return the owner key of the copies of an input."""
    return "input", relation.id
