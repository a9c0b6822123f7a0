"""What DuckLake's catalog has of a table as long as the lake's schema stays the same."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from weakref import WeakKeyDictionary

from sparkwave.catalog.lake.translation import Cursor
from sparkwave.catalog.names import METADATA, LakeTable, quote


@dataclass(frozen=True)
class StoredColumn:
    """A column with its type in DuckDB's words, and the snapshot since which it has the type."""

    name: str
    type: str
    begin: int


@dataclass(frozen=True)
class Shape:
    """A table's number in the lake, the directory of its files with a slash at the end, and its columns in order.

    `inlined` is the table of the catalog with inlined rows of this shape, None if there is none yet. `earlier` are
    those of earlier shapes.
    """

    number: int
    directory: str
    columns: tuple[StoredColumn, ...]
    inlined: str | None
    earlier: tuple[str, ...]


@dataclass(frozen=True)
class _Known:
    shape: Shape
    schema_version: int
    since: int


_KNOWN: WeakKeyDictionary[Cursor, dict[LakeTable, _Known]] = WeakKeyDictionary()
_MOST_KNOWN = 1000


def known_shape(cursor: Cursor, table: LakeTable, snapshot: int, schema_version: int) -> Shape | None:
    """Return a shape that was kept for the newest snapshot's schema version, if a snapshot has the table."""
    known = _KNOWN.get(cursor, {}).get(table)
    is_same = known is not None and known.schema_version == schema_version and known.since <= snapshot
    return known.shape if known is not None and is_same else None


def keep_shape(cursor: Cursor, table: LakeTable, snapshot: int, schema_version: int, shape: Shape) -> None:
    """Keep the shape of a table that is the same from a snapshot to the newest one.

    It is not kept without a table for inlined rows, which DuckLake may make with the next rows; nor with those of
    earlier shapes, which DuckLake drops when it writes their rows into files; nor for an unknown version (-1).
    """
    if shape.inlined is None or shape.earlier or schema_version < 0:
        return
    known = _KNOWN.setdefault(cursor, {})
    if len(known) >= _MOST_KNOWN:
        known.clear()
    known[table] = _Known(shape, schema_version, snapshot)


def read_shape(cursor: Cursor, number: int, directory: str, snapshot: int) -> Shape:
    """Read the shape of a table at a snapshot."""
    tables = cursor.execute(
        f"SELECT table_name, schema_version = (SELECT max(schema_version) FROM {METADATA}.ducklake_schema_versions "
        f"WHERE table_id = {number}) FROM {METADATA}.ducklake_inlined_data_tables WHERE table_id = {number}"
    ).fetchall()
    present = next((name for name, is_present in tables if is_present), None)
    earlier = tuple(name for name, is_present in tables if not is_present)
    return Shape(number, directory, _columns(cursor, number, snapshot), present, earlier)


# DuckDB's names of DuckLake's types, where they differ.
_NAMES = {
    "int8": "TINYINT",
    "int16": "SMALLINT",
    "int32": "INTEGER",
    "int64": "BIGINT",
    "int128": "HUGEINT",
    "uint8": "UTINYINT",
    "uint16": "USMALLINT",
    "uint32": "UINTEGER",
    "uint64": "UBIGINT",
    "uint128": "UHUGEINT",
    "float32": "FLOAT",
    "float64": "DOUBLE",
}


def _columns(cursor: Cursor, number: int, snapshot: int) -> tuple[StoredColumn, ...]:
    """The columns of a table at a snapshot; a column begins again when its type is changed."""
    rows = cursor.execute(
        f"SELECT column_id, parent_column, column_name, column_type, begin_snapshot FROM {METADATA}.ducklake_column "
        f"WHERE table_id = {number} AND begin_snapshot <= {snapshot} AND coalesce(end_snapshot > {snapshot}, true) "
        "ORDER BY column_order"
    ).fetchall()
    parts = defaultdict[int | None, list[tuple[int, str, str, int]]](list)
    for id_, parent, *column in rows:
        parts[parent].append((id_, *column))

    def type_of(id_: int, name: str) -> str:
        inner = [(part, type_of(part_id, kind)) for part_id, part, kind, _ in parts[id_]]
        if name == "list":
            return f"{inner[0][1]}[]"
        if name == "map":
            return f"MAP({inner[0][1]}, {inner[1][1]})"
        if name == "struct":
            return f"STRUCT({', '.join(f'{quote(part)} {kind}' for part, kind in inner)})"
        return _NAMES.get(name, name)

    def begin_of(id_: int, begin: int) -> int:
        return max([begin, *(begin_of(part_id, first) for part_id, _, _, first in parts[id_])])

    return tuple(StoredColumn(name, type_of(id_, kind), begin_of(id_, begin)) for id_, name, kind, begin in parts[None])
