"""Reads and writes the relation `columns`, and applies ALTER TABLE to the columns of a lake table.

Writing functions take the cursor of an open lake transaction, as the methods of `catalog.stores.store` do.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from itertools import chain

from sparkwave.catalog import errors
from sparkwave.catalog.column_names import escaped
from sparkwave.catalog.errors import Error
from sparkwave.catalog.lake.ducklake import Cursor
from sparkwave.catalog.lake.translation import DuckDBError
from sparkwave.catalog.model import Column, Relation
from sparkwave.catalog.names import METADATA, literal, quote, system_table
from sparkwave.catalog.types import Type, parse_type

_TABLE = system_table("columns")
_STORED = (
    "relation_id, position, name, type, is_hidden, not_null, column_default, generated, lake_name, since, "
    "former_names, former_until"
)


def load_columns(cursor: Cursor, ids: Collection[int], stored: str) -> dict[int, tuple[Column, ...]]:
    """Return the columns of the relations with these ids, from SQL of the relation `columns`."""
    found: dict[int, list[Column]] = {id_: [] for id_ in ids}
    listed = ", ".join(map(str, ids))
    for id_, _, name, type_, is_hidden, not_null, default, generated, lake_name, since, names, until in cursor.execute(
        f"SELECT {_STORED} FROM {stored} WHERE relation_id IN ({listed}) ORDER BY relation_id, position"
    ).fetchall():
        former = tuple(zip(names or (), until or (), strict=True))
        column = Column(name, parse_type(type_), is_hidden, not_null, default, generated, lake_name, since or 0, former)
        found[id_].append(column)
    return {id_: tuple(columns) for id_, columns in found.items()}


def put_columns(cursor: Cursor, relation_id: int, columns: Sequence[Column]) -> None:
    """Store the columns of a relation that has no stored columns."""
    rows = [
        [
            relation_id,
            position,
            column.name,
            column.type.stored,
            column.is_hidden,
            column.not_null,
            column.default,
            column.generated,
            column.made_as,
            column.since or None,
            [name for name, _ in column.former] or None,
            [until for _, until in column.former] or None,
        ]
        for position, column in enumerate(columns, start=1)
    ]
    if rows:
        values = ", ".join([f"({', '.join('?' * len(rows[0]))})"] * len(rows))
        cursor.execute(f"INSERT INTO {_TABLE} ({_STORED}) VALUES {values}", list(chain.from_iterable(rows)))


def replace_columns(cursor: Cursor, relation: Relation) -> None:
    """Store the columns of an altered relation in place of its old ones."""
    cursor.execute(f"DELETE FROM {_TABLE} WHERE relation_id = ?", [relation.id])
    put_columns(cursor, relation.id, relation.columns)


def free_lake_name(relation: Relation, name: str, change: int) -> str:
    """Return a name for a new column of the lake table; with the change's id at the end if the name was used."""
    had = {name.lower() for name in (*relation.dropped, *(column.lake_name for column in relation.columns))}
    name = escaped(name)
    while name.lower() in had:
        name = f"{name}_{change}"
    return name


def add_lake_column(cursor: Cursor, relation: Relation, column: Column, value: str | None) -> None:
    """Add a column to a lake table; stored rows get a value, given as text.

    Raises Error 0A000 for a value of an array or struct, since DuckLake accepts values as literals only.
    """
    default = f" DEFAULT {literal(value)}" if value is not None else ""
    if value is not None and (column.type.dimensions or column.type.fields):
        message = f"adding a column of type {column.type.shown} with a value for the stored rows is not supported"
        hint = "Add the column without DEFAULT, UPDATE the table, and then ALTER COLUMN … SET DEFAULT."
        raise Error(message, errors.FEATURE_NOT_SUPPORTED, hint=hint)
    cursor.execute(
        f"ALTER TABLE {relation.lake_name} ADD COLUMN {quote(column.lake_name)} {column.type.in_lake()}{default}"
    )


def drop_lake_column(cursor: Cursor, relation: Relation, column: Column) -> None:
    cursor.execute(f"ALTER TABLE {relation.lake_name} DROP COLUMN {quote(column.lake_name)}")


def widen_lake_column(cursor: Cursor, relation: Relation, column: Column, type_: Type) -> None:
    """Give a column of a lake table a wider type.

    Raises Error 0A000 for a type that does not have all values of the old.
    """
    try:
        cursor.execute(
            f"ALTER TABLE {relation.lake_name} ALTER COLUMN {quote(column.lake_name)} SET DATA TYPE {type_.duckdb()}"
        )
    except DuckDBError as error:
        if "widening" not in str(error):
            raise
        raise cannot_widen(column, type_) from error


_WIDER = {
    "smallint": ("integer", "bigint"),
    "integer": ("bigint",),
    "real": ("double precision",),
    "character varying": ("text",),
    "text": ("character varying",),
}


def holds(wide: Type, narrow: Type) -> bool:
    """Return whether a type has all values of another, stored so that both engines read the files with either type."""
    if wide.dimensions or narrow.dimensions or wide.fields or narrow.fields:
        return False
    if wide.name == narrow.name == "numeric":
        return wide.digits[1] == narrow.digits[1] and wide.digits[0] >= narrow.digits[0]
    return wide.name in _WIDER.get(narrow.name, ())


def cannot_widen(column: Column, type_: Type) -> Error:
    return Error(
        f'column "{column.name}" of type {column.type.shown} cannot be made {type_}',
        errors.FEATURE_NOT_SUPPORTED,
        hint="A column can get a wider type. One that is not of a key can become text; numbers can become other "
        "numbers, dates timestamps, json jsonb, and the other way round; structs get and lose fields.",
    )


def allow_lake_nulls(cursor: Cursor, relation: Relation, column: Column) -> None:
    """Remove NOT NULL from a column of the lake table, if it is there: ALTER TABLE does not add it there."""
    table = relation.lake_table
    row = cursor.execute(
        f"SELECT c.nulls_allowed FROM {METADATA}.ducklake_column c "
        f"JOIN {METADATA}.ducklake_table t USING (table_id) JOIN {METADATA}.ducklake_schema s USING (schema_id) "
        "WHERE s.schema_name = ? AND t.table_name = ? AND c.column_name = ? AND c.parent_column IS NULL "
        "AND s.end_snapshot IS NULL AND t.end_snapshot IS NULL AND c.end_snapshot IS NULL",
        [table.schema, table.name, column.lake_name],
    ).fetchone()
    if row == (False,):
        cursor.execute(f"ALTER TABLE {relation.lake_name} ALTER COLUMN {quote(column.lake_name)} DROP NOT NULL")
