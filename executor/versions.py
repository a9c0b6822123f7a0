"""Which versions of its upstreams a view advances between."""

from __future__ import annotations

from dataclasses import dataclass

from catalog.lake import at_version
from catalog.model import ROW_ID, Relation
from catalog.names import quote
from planner.nodes import Scan


@dataclass(frozen=True)
class Version:
    """An upstream of a view goes from snapshot `old` to `new`, then by the rows of `pending`.

    `pending` is a temporary relation with the changes of a view that this epoch has computed and not yet committed:
    all stored columns and `_weight`.
    """

    relation: Relation
    old: int
    new: int
    pending: str | None = None


def rows_at(scan: Scan, snapshot: int) -> str:
    """SQL of the scanned columns at a snapshot."""
    return f"SELECT {_columns(scan)} FROM {at_version(scan.relation.lake_name, snapshot)}"


def rows_old(scan: Scan, version: Version) -> str:
    return rows_at(scan, version.old)


def rows_new(scan: Scan, version: Version) -> str:
    """SQL of the scanned columns as they will be after the epoch."""
    committed = rows_at(scan, version.new)
    if version.pending is None:
        return committed
    key = " AND ".join(f"c.{quote(k)} IS NOT DISTINCT FROM s.{quote(k)}" for k in scan.relation.key) or "TRUE"
    columns = ", ".join(map(quote, scan.columns))
    return (
        f"SELECT {columns} FROM (FROM {at_version(scan.relation.lake_name, version.new)}) AS s "
        f"WHERE NOT EXISTS (SELECT 1 FROM {version.pending} c WHERE c._weight < 0 AND {key}) "
        f"UNION ALL SELECT {columns} FROM {version.pending} WHERE _weight > 0"
    )


def rows_changed(scan: Scan, version: Version, feed: str | None) -> str | None:
    """SQL of the scanned columns and `_weight` of the changed rows; None when there can be none.

    `feed` is the relation's change feed between the two snapshots, if it changed: see `executor.feeds`.
    """
    parts = []
    if feed is not None:
        parts.append(f"SELECT {_columns(scan)}, _weight FROM {feed}")
    if version.pending is not None:
        parts.append(f"SELECT {', '.join(map(quote, scan.columns))}, _weight FROM {version.pending}")
    return " UNION ALL ".join(parts) or None


def _columns(scan: Scan) -> str:
    """The scanned columns; a table's `_row_id` is the lake's row id."""
    is_row_id = scan.relation.is_table
    return ", ".join(
        f"rowid AS {quote(ROW_ID)}" if is_row_id and name == ROW_ID else quote(name) for name in scan.columns
    )
