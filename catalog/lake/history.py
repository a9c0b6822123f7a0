"""The lake's past: the commit time of each snapshot, the newest snapshot at a time, and the changes in a snapshot.

DuckLake (1.5.5) records the time when a transaction began. Sparkwave's transactions record in `commit_extra_info` of
their snapshot when they committed, in microseconds since 1970. These times grow with the snapshots, and no two are in
one millisecond, so a millisecond identifies a commit.
"""

from __future__ import annotations

from dataclasses import dataclass

from sparkwave.catalog.commit_times import TIMES
from sparkwave.catalog.lake.change_feed import table_changes
from sparkwave.catalog.lake.ducklake import Cursor
from sparkwave.catalog.model import ROW_ID, Relation
from sparkwave.catalog.names import quote


@dataclass(frozen=True)
class Commit:
    """A snapshot and its commit time in microseconds since 1970."""

    snapshot: int
    time_us: int


def oldest(cursor: Cursor) -> Commit:
    """Return the oldest snapshot that has not expired."""
    row = cursor.execute(f"{TIMES} ORDER BY snapshot_id LIMIT 1").fetchone()
    assert row is not None
    return Commit(*row)


def snapshot_at(cursor: Cursor, time_us: int) -> int | None:
    """Return the newest snapshot at a time; None for a time before all remaining ones."""
    row = cursor.execute(
        f"WITH t AS ({TIMES}) SELECT max(snapshot_id) FROM t "
        "WHERE snapshot_id < coalesce((SELECT min(snapshot_id) FROM t WHERE time_us > ?), 9223372036854775807)",
        [time_us],
    ).fetchone()
    return row[0] if row else None


OPERATIONS = ("Insert", "UpdateInsert", "UpdateDelete", "Delete")  # RisingWave's names of the operations


def change_log(relation: Relation, after: int, upto: int, has_deletes: bool) -> str:
    """Return SQL of the changes of a relation in snapshots `after < s <= upto`.

    Its columns are the visible ones, `op`, and `rw_timestamp`, the millisecond of the commit; rows are in the order of
    commits and, in each commit, of keys. If a commit removes and adds a row of one key, the two rows are an update.
    """
    columns = [column for column in relation.columns if not column.is_hidden]
    is_row_id = relation.is_table and relation.key == (ROW_ID,)
    key = [f"net.{_ROW}"] if is_row_id else [f"net.{quote(name)}" for name in relation.in_lake(relation.key)]
    hidden = [] if is_row_id else [c for c in relation.columns if c.is_hidden and c.name in relation.key]
    read = [*columns, *hidden]
    # A column that the relation did not have at the time is NULL.
    empty = ", ".join(f"NULL::{c.type.in_lake()} AS {quote(c.lake_name)}" for c in read)
    names = ", ".join(quote(c.lake_name) for c in read)
    visible = ", ".join(
        f"{c.type.from_lake(f'net.{quote(c.lake_name)}')}::{c.type.duckdb()} AS {quote(c.name)}" for c in columns
    )
    grouped = f"{_SNAPSHOT}, {f'{_ROW}, ' if is_row_id else ''}{names}"
    changes = table_changes(
        relation.lake_table, after, upto, has_deletes, f"snapshot_id AS {_SNAPSHOT}, rowid AS {_ROW}, *"
    )
    shape = f"SELECT NULL::BIGINT AS {_SNAPSHOT}, NULL::BIGINT AS {_ROW}, {empty}, NULL::INTEGER AS _weight WHERE false"
    return (
        f"WITH change AS ({shape} UNION ALL BY NAME {changes}), "
        f"net AS (SELECT {grouped}, sum(_weight) AS {_SUM} FROM change GROUP BY {grouped} HAVING sum(_weight) <> 0) "
        f"SELECT {visible}, "
        f"CASE WHEN {_SUM} > 0 THEN if(min({_SUM}) OVER of_key < 0, 'UpdateInsert', 'Insert') "
        f"ELSE if(max({_SUM}) OVER of_key > 0, 'UpdateDelete', 'Delete') END AS op, "
        f"t.time_us // 1000 AS rw_timestamp "
        f"FROM net JOIN ({TIMES}) t ON t.snapshot_id = {_SNAPSHOT} "
        f"WINDOW of_key AS (PARTITION BY {', '.join((_SNAPSHOT, *key))}) "
        f"ORDER BY {', '.join((_SNAPSHOT, *key, _SUM))}"
    )


# Names that no column of a user has.
_SNAPSHOT, _ROW, _SUM = (quote(f"\u2009{name}") for name in ("snapshot", "row", "weight"))


def all_rows(relation: Relation, snapshot: int) -> str:
    """Return SQL of a relation's rows at a snapshot, in the order of its key, with the columns of `change_log`."""
    columns = ", ".join(f"{column.from_lake} AS {quote(column.name)}" for column in relation.visible)
    is_row_id = relation.is_table and relation.key == (ROW_ID,)
    key = [_ROW] if is_row_id else [quote(name) for name in relation.in_lake(relation.key)]
    order = f" ORDER BY {', '.join(f'stored.{part}' for part in key)}" if key else ""  # a view of one row has no key
    return (
        f"SELECT {columns}, 'Insert' AS op, NULL::BIGINT AS rw_timestamp "
        f"FROM (SELECT rowid AS {_ROW}, * FROM {relation.lake_name} AT (VERSION => {snapshot})) AS stored{order}"
    )
