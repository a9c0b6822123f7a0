"""Reads and writes the relation `types`: the users' types.

Writing functions take the cursor of an open lake transaction, as the methods of `catalog.stores.store` do.
"""

from __future__ import annotations

import json
from dataclasses import asdict

from sparkwave.catalog.lake.ducklake import Cursor
from sparkwave.catalog.model import UserType
from sparkwave.catalog.names import system_table
from sparkwave.catalog.relation_details import Domain, load_checks
from sparkwave.catalog.types import parse_type

_TABLE = system_table("types")


def load_types(cursor: Cursor, stored: str) -> tuple[UserType, ...]:
    """Return all users' types, from SQL of the relation `types`."""
    query = f"SELECT id, database, schema, name, owner, type, domain FROM {stored} ORDER BY id"
    return tuple(
        UserType(id_, database, schema, name, owner, parse_type(type_), _domain(domain))
        for id_, database, schema, name, owner, type_, domain in cursor.execute(query).fetchall()
    )


def _domain(text: str | None) -> Domain | None:
    if text is None:
        return None
    found = json.loads(text)
    return Domain(load_checks(found["checks"]), found["not_null"], found["default"])


def add_type(cursor: Cursor, made: UserType, field_oids: list[int]) -> None:
    """Store a new type with the OIDs of its fields' types as the user wrote them.

    They may differ from the stored types: text fields are stored as varchar. A domain has one OID, its base type's.
    """
    type_, names = made.type, [name for name, _ in made.type.fields]
    values = [
        made.id, made.database, made.schema, made.name, made.owner, type_.stored, [*type_.labels[:-1]], names,
        field_oids, None if made.domain is None else json.dumps(asdict(made.domain)),
    ]  # fmt: skip
    cursor.execute(f"INSERT INTO {_TABLE} VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", values)


def drop_type(cursor: Cursor, made: UserType) -> None:
    cursor.execute(f"DELETE FROM {_TABLE} WHERE id = ?", [made.id])


def drop_types_in(cursor: Cursor, database: str, schema: str) -> None:
    """Remove the types of a dropped schema."""
    cursor.execute(f"DELETE FROM {_TABLE} WHERE database = ? AND schema = ?", [database, schema])


def replace_type(cursor: Cursor, before: UserType, after: UserType) -> None:
    """Replace a type by its next version, in types and functions, too."""
    domain = None if after.domain is None else json.dumps(asdict(after.domain))
    labels, names = [*after.type.labels[:-1]], [name for name, _ in after.type.fields]
    place = [after.schema, after.name, labels, names, domain, after.id]
    listed = "schema = ?, name = ?, labels = ?, field_names = ?, domain = ?"
    cursor.execute(f"UPDATE {_TABLE} SET {listed} WHERE id = ?", place)
    values = [before.type.stored, after.type.stored]
    for table, column in (("types", "type"), ("functions", "result_type")):
        name = system_table(table)
        cursor.execute(f"UPDATE {name} SET {column} = replace({column}, $1, $2) WHERE contains({column}, $1)", values)
    name, listed = system_table("functions"), "list_transform(argument_types, lambda t: replace(t, $1, $2))"
    cursor.execute(
        f"UPDATE {name} SET argument_types = {listed} WHERE contains(array_to_string(argument_types, ''), $1)", values
    )


def field_oids_of(cursor: Cursor, made: UserType) -> list[int]:
    """Return the OIDs of the types of a composite type's fields, as the user wrote them."""
    [(oids,)] = cursor.execute(f"SELECT field_oids FROM {_TABLE} WHERE id = ?", [made.id]).fetchall()
    return list(oids)


def put_field_oids(cursor: Cursor, made: UserType, oids: list[int]) -> None:
    cursor.execute(f"UPDATE {_TABLE} SET field_oids = ? WHERE id = ?", [oids, made.id])
