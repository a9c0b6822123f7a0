"""Writes a few rows into the lake's catalog as DuckLake's INSERT, UPDATE, DELETE and COMMIT would, with fewer queries.

DuckLake keeps few rows, and the places of few deleted rows, in tables of its catalog (DuckLake 1.0,
ducklake.select/docs, "Data Inlining"), and for that queries its catalog ten times by SQL that DuckDB plans each time.
Here the catalog is written in the transaction of the rows, and its entries about the table are remembered as long as
no other transaction commits. Unusual cases raise `Unfit` and are left to DuckLake: a table's first row, its first
deleted row of a file, a changed table shape, NaN, a forbidden NULL, two new rows with one key. Found by experiment,
with 1.5.5 (asserted by tests/test_inlined_writes.py): the catalog is then as DuckLake would leave it, but that it still
knows of a column of floats in files without NaN that it has none, and that an INSERT inlines all its rows.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, replace

from sparkwave.catalog.lake.ducklake import Cursor, Snapshot
from sparkwave.catalog.lake.inlining import INLINED_ROWS
from sparkwave.catalog.lake.lake_tables import CATALOG_COLUMNS, inlined_deletes, locate
from sparkwave.catalog.lake.memory_transactions import first_row
from sparkwave.catalog.lake.snapshot_changes import changes_made
from sparkwave.catalog.model import REPLACE, Column, Relation, same_key
from sparkwave.catalog.names import METADATA, PLACES, ROW, LakeTable, literal, quote

# The types whose bounds DuckLake stores as DuckDB prints them.
_TYPES = frozenset(
    {
        "boolean",
        "smallint",
        "integer",
        "bigint",
        "real",
        "double precision",
        "numeric",
        "character varying",
        "text",
        "date",
        "timestamp without time zone",
        "timestamp with time zone",
        "time without time zone",
        "uuid",
        "json",
        "jsonb",
        "enum",
    }
)
_ORDERED = _TYPES - {"boolean", "real", "double precision", "character varying", "text", "json", "jsonb", "enum"}
MOST_TABLES = 256


class Unfit(Exception):
    """DuckLake has to write these rows."""


@dataclass(frozen=True)
class _Bounds:
    """The catalog's statistics of a column: the least and greatest value, and whether there is a NULL."""

    column_id: int
    has_null: bool
    least: str | None
    greatest: str | None

    @property
    def row(self) -> str:
        ends = ("NULL" if end is None else literal(end) for end in (self.least, self.greatest))
        return f"({self.column_id}, {self.has_null}, {', '.join(ends)})"


@dataclass(frozen=True)
class _Place:
    """A row's id, its file or table of the catalog, and its place in the file."""

    id: int
    file: str
    place: int


@dataclass(frozen=True)
class Stored:
    """The catalog's entries about a table at a snapshot.

    `inlined` are its tables with inlined rows, the one for new rows first; `files` are Parquet files and their ids.
    """

    snapshot: int
    schema_version: int
    next_catalog_id: int
    next_file_id: int
    table_id: int
    rows: int
    next_row_id: int
    inlined: tuple[str, ...]
    files: dict[str, int]
    bounds: dict[str, _Bounds]


def may_fit(target: Relation) -> bool:
    """Return whether new rows of a table can ever be inserted here."""
    columns = target.visible
    is_plain = all(c.type.name in _TYPES and c.type.dimensions <= (not c.type.is_float) for c in columns)
    has_own_names = not any(column.lake_name in CATALOG_COLUMNS for column in columns)
    return is_plain and has_own_names and target.conflict == REPLACE and target.watermark is None


def may_fit_places(target: Relation) -> bool:
    """Return whether rows of a table can ever be changed here: no column hides one of PLACES."""
    return may_fit(target) and not any(column.lake_name.lower() in PLACES.values() for column in target.visible)


class InlinedWrites:
    """Remembers the catalog's entries about tables, as the last write left them."""

    def __init__(self) -> None:
        self._stored: dict[LakeTable, Stored] = {}

    def insert(self, cursor: Cursor, target: Relation, staged: str, snapshot: Snapshot) -> Stored:
        """Insert the rows of a temporary table with the table's columns, as `snapshot`, in the open transaction.

        A row whose key is stored replaces the stored row. Returns the entries to `keep` after the commit. Raises Unfit.
        """
        stored = self._before(cursor, target, snapshot)
        rows, may_meet, wider = _check(cursor, target, staged, stored)
        met = _met(cursor, target, staged) if may_meet else {}
        bounds = _widened(cursor, target, staged, stored, wider) if wider else {}
        _remove(cursor, stored, [*met.values()], snapshot)
        if met:
            new_ids = itertools.count(stored.next_row_id)
            ids = ", ".join(f"({row}, {met[row].id if row in met else next(new_ids)})" for row in rows)
            added = f'(SELECT * FROM {staged} AS s JOIN (VALUES {ids}) AS i (place, "{ROW}") ON s.rowid = i.place)'
            new_id = quote(ROW)
        else:
            added, new_id = staged, f"{stored.next_row_id - rows.start} + rowid"
        count, new = len(rows), len(rows) - len(met)
        cursor.execute(
            _added(target, added, new_id, stored, snapshot)
            + _made(stored, snapshot, count, new, ("inlined_insert", "inlined_delete") if met else ("inlined_insert",))
            + _noted(stored, bounds)
        )
        return replace(
            stored,
            snapshot=snapshot.id,
            next_file_id=stored.next_file_id + 1,
            rows=stored.rows + count,
            next_row_id=stored.next_row_id + new,
            bounds=stored.bounds | bounds,
        )

    def change(
        self, cursor: Cursor, target: Relation, changed: str, assigned: Sequence[Column], since: int, snapshot: Snapshot
    ) -> Stored:
        """Delete rows, as `snapshot`, and put rows with other values of the `assigned` columns in their place, if any.

        The temporary table `changed` has the PLACES of the rows at the snapshot `since`, and where columns are assigned
        all columns of the new rows. Returns and raises as `insert`.
        """
        stored = self._before(cursor, target, snapshot)
        if any(change.table_id == stored.table_id for change in changes_made(cursor, since, snapshot.id - 1)):
            raise Unfit  # the rows may be elsewhere
        query = f"SELECT {', '.join(map(quote, PLACES))} FROM {changed}"
        places = [_Place(*row) for row in cursor.execute(query).fetchall()]
        if not 0 < len(places) <= INLINED_ROWS or len({place.id for place in places}) < len(places):
            raise Unfit
        bounds = {}
        if assigned:
            tests = ", ".join(f"bool_and({_is_within(target, column, stored)})" for column in assigned)
            [within] = cursor.execute(f"SELECT {tests} FROM {changed}").fetchall()
            wider = [column for column, is_within in zip(assigned, within, strict=True) if not is_within]
            bounds = _widened(cursor, target, changed, stored, wider) if wider else {}
        _remove(cursor, stored, places, snapshot)
        added, kinds = (len(places), ("inlined_insert", "inlined_delete")) if assigned else (0, ("inlined_delete",))
        cursor.execute(
            (_added(target, changed, quote(ROW), stored, snapshot) if added else "")
            + _made(stored, snapshot, added, 0, kinds)
            + _noted(stored, bounds)
        )
        return replace(
            stored,
            snapshot=snapshot.id,
            next_file_id=stored.next_file_id + bool(added),
            rows=stored.rows + added,
            bounds=stored.bounds | bounds,
        )

    def _before(self, cursor: Cursor, target: Relation, snapshot: Snapshot) -> Stored:
        stored = self._stored.get(target.lake_table)
        if stored is None or stored.snapshot != snapshot.id - 1:
            stored = _read(cursor, target.lake_table, snapshot.id - 1)
        return stored

    def keep(self, target: Relation, stored: Stored) -> None:
        """Remember a table's entries. They are valid until another transaction commits, which their snapshot shows."""
        if len(self._stored) >= MOST_TABLES:
            self._stored.clear()
        self._stored[target.lake_table] = stored


def _read(cursor: Cursor, table: LakeTable, snapshot: int) -> Stored:
    located = locate(cursor, table)
    if located is None:
        raise Unfit
    table_id, directory = located
    schema_version, next_catalog_id, next_file_id = _one(
        cursor,
        f"SELECT schema_version, next_catalog_id, next_file_id FROM {METADATA}.ducklake_snapshot "
        f"WHERE snapshot_id = {snapshot}",
    )
    rows, next_row_id = _one(
        cursor, f"SELECT record_count, next_row_id FROM {METADATA}.ducklake_table_stats WHERE table_id = {table_id}"
    )
    inlined = cursor.execute(
        f"SELECT table_name, schema_version FROM {METADATA}.ducklake_inlined_data_tables WHERE table_id = {table_id} "
        "ORDER BY schema_version DESC"
    ).fetchall()
    shape = _one(
        cursor, f"SELECT max(schema_version) FROM {METADATA}.ducklake_schema_versions WHERE table_id = {table_id}"
    )
    if not inlined or inlined[0][1:] != shape:
        raise Unfit
    files = cursor.execute(
        f"SELECT if(path_is_relative, ? || path, path), data_file_id FROM {METADATA}.ducklake_data_file "
        f"WHERE table_id = {table_id} AND end_snapshot IS NULL",
        [directory],
    ).fetchall()
    return Stored(
        snapshot,
        schema_version,
        next_catalog_id,
        next_file_id,
        table_id,
        rows,
        next_row_id,
        tuple(name for name, _ in inlined),
        dict(files),
        _bounds(cursor, table_id),
    )


def _one(cursor: Cursor, query: str) -> tuple:
    row = first_row(cursor.execute(query))
    if row is None:
        raise Unfit
    return row


def _bounds(cursor: Cursor, table_id: int) -> dict[str, _Bounds]:
    """The bounds of columns by their names; those of an array are of its elements."""
    rows = cursor.execute(
        "SELECT coalesce(arrays.column_name, columns.column_name), column_id, contains_null, min_value, max_value "
        f"FROM {METADATA}.ducklake_column AS columns JOIN {METADATA}.ducklake_table_column_stats "
        f"USING (table_id, column_id) LEFT JOIN {METADATA}.ducklake_column AS arrays "
        "ON arrays.table_id = columns.table_id AND arrays.column_id = columns.parent_column "
        "AND arrays.end_snapshot IS NULL "
        f"WHERE table_id = {table_id} AND columns.end_snapshot IS NULL AND contains_nan IS NOT TRUE"
    ).fetchall()
    return {name: _Bounds(*row) for name, *row in rows}


def _check(cursor: Cursor, target: Relation, staged: str, stored: Stored) -> tuple[range, bool, list[Column]]:
    """Return the `rowid`s of the staged rows, whether their keys may be stored, and columns with values outside bounds.

    Raises Unfit.
    """
    key = _key(target)
    tests = [f"coalesce(bool_and({_is_within(target, column, stored)}), true)" for column in target.visible]
    distinct = f"count(DISTINCT ({key}))" if key else "count(*)"
    tests = ["count(*)", "min(rowid)", "max(rowid)", distinct, _is_outside(target, stored), *tests]
    [(count, first, last, keys, are_new, *within)] = cursor.execute(
        f"SELECT {', '.join(tests)} FROM {staged}"
    ).fetchall()
    if not 0 < count <= INLINED_ROWS or last - first != count - 1 or keys < count:
        raise Unfit
    may_meet = bool(key) and not are_new and _may_meet(cursor, target, staged, stored)
    wider = [column for column, is_within in zip(target.visible, within, strict=True) if not is_within]
    return range(first, last + 1), may_meet, wider


def _is_outside(target: Relation, stored: Stored) -> str:
    """SQL that tests that no key has been stored before, as far as the bounds tell; those of texts may be cut short."""
    column = target.column(target.primary_key[0]) if len(target.primary_key) == 1 else None
    bounds = stored.bounds.get(column.lake_name) if column is not None and column.type.name in _ORDERED else None
    if column is None or bounds is None or bounds.least is None or bounds.greatest is None:
        return "false"
    name = quote(column.lake_name)
    return f"min({name}) > {_typed(column, bounds.greatest)} OR max({name}) < {_typed(column, bounds.least)}"


def _key(target: Relation) -> str:
    return ", ".join(map(quote, target.in_lake(target.primary_key)))


def _is_within(target: Relation, column: Column, stored: Stored) -> str:
    """SQL that tests that a value is allowed and within the bounds."""
    bounds = stored.bounds.get(column.lake_name)
    if bounds is None:
        raise Unfit
    least, greatest = _ends(column)
    tests = [f"{quote(column.lake_name)} IS NOT NULL"] if _is_required(target, column) else []
    if not bounds.has_null:
        tests.append(f"NOT {_has_null(column)}")
    if bounds.least is None or bounds.greatest is None:
        tests.append(f"{least} IS NULL")
    else:
        tests.append(f"{least} >= {_typed(column, bounds.least)}")
        tests.append(f"{greatest} <= {_typed(column, bounds.greatest)}")
    return " AND ".join(tests)


def _is_required(target: Relation, column: Column) -> bool:
    return column.not_null or column.name in target.primary_key


def _has_null(column: Column) -> str:
    """SQL that tests whether a value is NULL, or one of an array's elements."""
    value = _in_lake(column)
    return f"(len({value}) > list_count({value}))" if column.type.dimensions else f"({value} IS NULL)"


def _in_lake(column: Column) -> str:
    """SQL of a column's value in a temporary table, in which it need not have the lake's type; documents as texts."""
    name, type_ = quote(column.lake_name), column.type
    if type_.name == "jsonb" or type_.is_text_in_lake:
        return f"{name}::VARCHAR{'[]' * type_.dimensions}"
    return name


def _ends(column: Column) -> tuple[str, str]:
    """SQL of the least and the greatest of what the bounds of a column are about: its value, or an array's elements."""
    value = _in_lake(column)
    return (f"list_min({value})", f"list_max({value})") if column.type.dimensions else (value, value)


def _typed(column: Column, text: str) -> str:
    """SQL of a bound; one of documents may be cut short."""
    type_ = column.type.element if column.type.dimensions else column.type
    return f"CAST({literal(text)} AS {'VARCHAR' if type_.name == 'jsonb' else type_.in_lake()})"


def _may_meet(cursor: Cursor, target: Relation, staged: str, stored: Stored) -> bool:
    """Whether a staged row may have a stored key; deleted rows of files count as stored."""
    key, met = _key(target), same_key(target, "stored", "staged")
    parts = [f"SELECT {key} FROM {METADATA}.{quote(name)} WHERE end_snapshot IS NULL" for name in stored.inlined]
    if stored.files:
        parts.append(
            f"SELECT {key} FROM read_parquet([{', '.join(map(literal, stored.files))}], hive_partitioning => false)"
        )
    found = f"SELECT 1 FROM ({' UNION ALL '.join(parts)}) AS stored SEMI JOIN {staged} AS staged ON {met} LIMIT 1"
    return bool(cursor.execute(found).fetchall())


def _met(cursor: Cursor, target: Relation, staged: str) -> dict[int, _Place]:
    """Return where the rows with the keys of staged rows are stored, by the staged rows' `rowid`."""
    if not may_fit_places(target):
        raise Unfit
    places = ", ".join(f"stored.{column}" for column in PLACES.values())
    joined = f"{target.lake_name} AS stored JOIN {staged} AS staged ON {same_key(target, 'stored', 'staged')}"
    found = cursor.execute(f"SELECT staged.rowid, {places} FROM {joined}").fetchall()
    return {row: _Place(*place) for row, *place in found}


def _widened(
    cursor: Cursor, target: Relation, staged: str, stored: Stored, columns: Sequence[Column]
) -> dict[str, _Bounds]:
    """The bounds of some columns with the staged values. Raises Unfit for a forbidden NULL, and for NaN."""
    noted = [stored.bounds[column.lake_name] for column in columns]
    tests = ", ".join(_wider(target, column, bounds) for column, bounds in zip(columns, noted, strict=True))
    [found] = cursor.execute(f"SELECT {tests} FROM {staged}").fetchall()
    widened = {}
    for place, (column, bounds) in enumerate(zip(columns, noted, strict=True)):
        is_forbidden, has_null, least, greatest = found[4 * place : 4 * place + 4]
        if is_forbidden:
            raise Unfit
        widened[column.lake_name] = _Bounds(bounds.column_id, bounds.has_null or bool(has_null), least, greatest)
    return widened


def _wider(target: Relation, column: Column, bounds: _Bounds) -> str:
    """SQL of whether a value may not be here, whether there is a NULL, and of the new bounds."""
    if bounds.least is None or bounds.greatest is None:
        raise Unfit
    name, (least, greatest) = quote(column.lake_name), _ends(column)
    forbidden = [f"{name} IS NULL"] if _is_required(target, column) else []
    forbidden += [f"coalesce(isnan({name}), false)"] if column.type.is_float else []
    return (
        f"bool_or({' OR '.join(forbidden) or 'false'}), bool_or({_has_null(column)}), "
        f"if(min({least}) < {_typed(column, bounds.least)}, {_text(column, f'min({least})')}, "
        f"{literal(bounds.least)}), "
        f"if(max({greatest}) > {_typed(column, bounds.greatest)}, {_text(column, f'max({greatest})')}, "
        f"{literal(bounds.greatest)})"
    )


def _text(column: Column, value: str) -> str:
    """SQL of a bound as DuckLake stores it, always in UTC."""
    if column.type.name != "timestamp with time zone":
        return f"{value}::VARCHAR"
    return f"if(isfinite({value}), ({value} AT TIME ZONE 'UTC')::VARCHAR || '+00', {value}::VARCHAR)"


def _remove(cursor: Cursor, stored: Stored, places: Sequence[_Place], snapshot: Snapshot) -> None:
    """Note that stored rows have gone. Raises Unfit."""
    for name in stored.inlined:
        if rows := [str(place.id) for place in places if place.file == name]:
            ended = cursor.execute(
                f"UPDATE {METADATA}.{quote(name)} SET end_snapshot = {snapshot.id} "
                f"WHERE row_id IN ({', '.join(rows)}) AND end_snapshot IS NULL"
            )
            if first_row(ended) != (len(rows),):
                raise Unfit
    in_files = [place for place in places if place.file not in stored.inlined]
    if not in_files:
        return
    table = inlined_deletes(cursor, stored.table_id)
    if table is None or not all(place.file in stored.files for place in in_files):
        raise Unfit
    values = ", ".join(f"({stored.files[place.file]}, {place.place}, {snapshot.id})" for place in in_files)
    cursor.execute(f"INSERT INTO {METADATA}.{table} (file_id, row_id, begin_snapshot) VALUES {values}")


def _added(target: Relation, rows: str, row_id: str, stored: Stored, snapshot: Snapshot) -> str:
    """SQL that inlines rows, whose ids are the SQL `row_id`."""
    names = ", ".join(quote(column.lake_name) for column in target.visible)
    return (
        f"INSERT INTO {METADATA}.{quote(stored.inlined[0])} ({', '.join(CATALOG_COLUMNS)}, {names}) "
        f"SELECT {row_id}, {snapshot.id}, NULL, {names} FROM {rows};"
    )


def _made(stored: Stored, snapshot: Snapshot, rows: int, ids: int, changes: Sequence[str]) -> str:
    """SQL that makes the snapshot, in which `rows` have been added, with `ids` new row ids."""
    made = ",".join(f"{change}:{stored.table_id}" for change in changes)
    counted = (
        f"UPDATE {METADATA}.ducklake_table_stats SET record_count = {stored.rows + rows}, "
        f"next_row_id = {stored.next_row_id + ids} WHERE table_id = {stored.table_id};"
    )
    return (
        f"{counted if rows else ''}"
        f"INSERT INTO {METADATA}.ducklake_snapshot VALUES ({snapshot.id}, now(), {stored.schema_version}, "
        f"{stored.next_catalog_id}, {stored.next_file_id + bool(rows)});"
        f"INSERT INTO {METADATA}.ducklake_snapshot_changes VALUES ({snapshot.id}, '{made}', "
        f"NULL, NULL, '{snapshot.time_us}');"
    )


def _noted(stored: Stored, bounds: dict[str, _Bounds]) -> str:
    """SQL that stores wider bounds, if any."""
    if not bounds:
        return ""
    values = ", ".join(noted.row for noted in bounds.values())
    return (
        f"UPDATE {METADATA}.ducklake_table_column_stats AS noted SET contains_null = has_null, min_value = least, "
        f"max_value = greatest FROM (VALUES {values}) AS now_known (id, has_null, least, greatest) "
        f"WHERE noted.table_id = {stored.table_id} AND noted.column_id = now_known.id"
    )
