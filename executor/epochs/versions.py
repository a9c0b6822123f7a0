"""The versions of its inputs between which a view advances, and SQL of their rows."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from sparkwave.catalog.lake.lake_tables import at_version
from sparkwave.catalog.lake.row_ids import ALL, RowIds
from sparkwave.catalog.model import ROW_ID, Relation
from sparkwave.catalog.names import quote
from sparkwave.planner.plan.nodes import Scan


@dataclass(frozen=True)
class Pending:
    """The changes of a view that an epoch has computed and not yet committed.

    `name` is a temporary relation with all stored columns and `_weight`. `removed` and `added` are numbers of rows.
    """

    name: str
    removed: int
    added: int

    @property
    def rows(self) -> int:
        return self.removed + self.added


@dataclass(frozen=True)
class Version:
    """The step of an upstream of a view from the rows `old_rows` at snapshot `old` to `new_rows` at `new`.

    A created view, or one that has read its whole upstream, has ALL rows. A view that is still reading either reads
    more rows or applies changes in one step: either the rows or the snapshot differ. `pending` are the changes of this
    epoch. With `is_net` each row counts with its first and its last state only. `old_copy` and `new_copy` are SQL of
    relations of the cursor that have all rows at the two snapshots under the lake's column names, with `rowid`;
    `old_indexed` and `new_indexed` have the same rows, in a form in which few keys are looked up by an index.
    """

    relation: Relation
    old: int
    new: int
    pending: Pending | None = None
    old_rows: RowIds = ALL
    new_rows: RowIds = ALL
    old_copy: str | None = None
    new_copy: str | None = None
    old_indexed: str | None = None
    new_indexed: str | None = None
    is_net: bool = False

    @property
    def by_index(self) -> Version | None:
        """This version with the rows of the tables that have an index; None without an index."""
        if self.old_indexed is None or self.new_indexed is None:
            return None
        return replace(self, old_copy=self.old_indexed, new_copy=self.new_indexed)

    @property
    def added_rows(self) -> RowIds:
        """The rows that the step reads for the first time."""
        return self.new_rows.minus(self.old_rows)


def rows_at(scan: Scan, snapshot: int, rows: RowIds = ALL, copy: str | None = None) -> str:
    """Return SQL of the scanned columns of some rows at a snapshot.

    `copy` is a relation to read instead of the lake.
    """
    where = "" if rows == ALL else f" WHERE {rows.condition('rowid')}"
    return f"SELECT {_columns(scan)} FROM {copy or at_version(scan.relation.lake_name, snapshot)}{where}"


def rows_old(scan: Scan, version: Version) -> str:
    return rows_at(scan, version.old, version.old_rows, version.old_copy)


def rows_new(scan: Scan, version: Version) -> str:
    """Return SQL of the scanned columns as they are after the epoch."""
    if version.pending is None:
        return rows_at(scan, version.new, version.new_rows, version.new_copy)
    stored_key = [quote(_stored(scan.relation, name)) for name in scan.relation.key]
    key = " AND ".join(f"c.{name} IS NOT DISTINCT FROM s.{name}" for name in stored_key) or "TRUE"
    columns = _columns(scan)
    stored = version.new_copy or at_version(scan.relation.lake_name, version.new)
    return (
        f"SELECT {columns} FROM (FROM {stored}) AS s "
        f"WHERE NOT EXISTS (SELECT 1 FROM {version.pending.name} c WHERE c._weight < 0 AND {key}) "
        f"UNION ALL SELECT {columns} FROM {version.pending.name} WHERE _weight > 0"
    )


def rows_changed(scan: Scan, version: Version, feed: str | None) -> str | None:
    """Return SQL of the scanned columns and `_weight` of the changed rows; None when there can be none.

    `feed` is the relation's change feed between the two snapshots, if it changed (see `executor.epochs.feeds`). Changes
    of rows that the view has not read yet are left out, because it will read their later state.
    """
    parts = []
    if feed is not None:
        where = "" if version.old_rows == ALL else f" WHERE {version.old_rows.condition('rowid')}"
        parts.append(f"SELECT {_columns(scan)}, _weight FROM {feed}{where}")
    if version.pending is not None:
        parts.append(f"SELECT {_columns(scan)}, _weight FROM {version.pending.name}")
    return " UNION ALL ".join(parts) or None


def rows_added(scan: Scan, version: Version) -> str:
    """Return SQL of the scanned columns and `_weight` of the rows that the step reads for the first time."""
    return f"SELECT *, 1 AS _weight FROM ({rows_at(scan, version.new, version.added_rows)})"


def stored_columns(scan: Scan) -> frozenset[str]:
    """Return the scanned columns under the lake's names, without the lake's row id."""
    relation = scan.relation
    return frozenset(_stored(relation, name) for name in scan.columns if not _is_lake_row_id(relation, name))


def columns_read(scans: Iterable[Scan], relation: Relation) -> frozenset[str]:
    """Return the columns of a relation that some scans read, as `stored_columns`."""
    return frozenset().union(*(stored_columns(scan) for scan in scans if scan.relation.id == relation.id))


def stored_names(relation: Relation, columns: Iterable[str]) -> tuple[str, ...]:
    """Return the lake's names of columns."""
    return tuple(_stored(relation, name) for name in columns)


def listed(columns: Iterable[str]) -> str:
    """Return SQL of the row id and the columns, sorted."""
    return ", ".join(["rowid", *map(quote, sorted(columns))])


def _columns(scan: Scan) -> str:
    """Return SQL of the scanned columns under the view's names; a table's `_row_id` is the lake's row id."""
    return ", ".join(_column(scan.relation, name) for name in scan.columns)


def _column(relation: Relation, name: str) -> str:
    if _is_lake_row_id(relation, name):
        return f"rowid AS {quote(ROW_ID)}"
    column = relation.column(name)
    value = column.from_lake if column is not None else quote(name)
    return value if value == quote(name) else f"{value} AS {quote(name)}"


def _stored(relation: Relation, name: str) -> str:
    column = relation.column(name)
    return column.lake_name if column is not None else name


def _is_lake_row_id(relation: Relation, name: str) -> bool:
    return relation.is_table and name == ROW_ID
