"""Reads and writes the relation `functions`.

Writing functions take the cursor of an open lake transaction, as the methods of `catalog.stores.store` do.
"""

from __future__ import annotations

from sparkwave.catalog.lake.ducklake import Cursor
from sparkwave.catalog.model import Function
from sparkwave.catalog.names import system_table
from sparkwave.catalog.stores.user_store import forget_grants
from sparkwave.catalog.types import parse_type

_TABLE = system_table("functions")


def load_functions(cursor: Cursor, stored: str) -> tuple[Function, ...]:
    """Return all functions, from SQL of the relation `functions`."""
    rows = cursor.execute(
        "SELECT id, database, schema, name, argument_names, argument_types, result_type, body, definition, owner, "
        "coalesce(language, 'sql'), coalesce(is_strict, false), column_names, coalesce(is_aggregate, false) "
        f"FROM {stored} ORDER BY id"
    ).fetchall()
    return tuple(
        Function(
            id_, database, schema, name, tuple(zip(names, map(parse_type, types), strict=True)), parse_type(result),
            body, definition, owner, language, is_strict, None if columns is None else tuple(columns), is_aggregate,
        )
        for (
            id_, database, schema, name, names, types, result, body, definition, owner, language, is_strict, columns,
            is_aggregate,
        ) in rows
    )  # fmt: skip


def add_function(cursor: Cursor, function: Function) -> None:
    cursor.execute(
        f"INSERT INTO {_TABLE} VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        [
            function.id,
            function.database,
            function.schema,
            function.name,
            function.owner,
            [name for name, _ in function.arguments],
            [type_.stored for _, type_ in function.arguments],
            function.result.stored,
            function.body,
            function.definition,
            function.language,
            function.is_strict,
            None if function.columns is None else list(function.columns),
            function.is_aggregate,
        ],
    )


def move_function(cursor: Cursor, function: Function) -> None:
    """Store a function's present schema."""
    cursor.execute(f"UPDATE {_TABLE} SET schema = ? WHERE id = ?", [function.schema, function.id])


def replace_function(cursor: Cursor, function: Function) -> None:
    """Give an existing function another body or language, and other names of its arguments."""
    names = [name for name, _ in function.arguments]
    cursor.execute(
        f"UPDATE {_TABLE} SET argument_names = ?, body = ?, definition = ?, language = ?, is_strict = ? WHERE id = ?",
        [names, function.body, function.definition, function.language, function.is_strict, function.id],
    )


def drop_function(cursor: Cursor, function: Function) -> None:
    cursor.execute(f"DELETE FROM {_TABLE} WHERE id = ?", [function.id])
    forget_grants(cursor, (function.id,))


def drop_functions_in(cursor: Cursor, database: str, schema: str) -> None:
    """Remove the functions of a dropped schema."""
    where = "WHERE database = ? AND schema = ?"
    gone = cursor.execute(f"SELECT id FROM {_TABLE} {where}", [database, schema]).fetchall()
    forget_grants(cursor, (id_ for (id_,) in gone))
    cursor.execute(f"DELETE FROM {_TABLE} {where}", [database, schema])


def put_functions(cursor: Cursor, database: str, schema: str, renamed: str) -> None:
    """Move the functions of a renamed schema."""
    cursor.execute(f"UPDATE {_TABLE} SET schema = ? WHERE database = ? AND schema = ?", [renamed, database, schema])
