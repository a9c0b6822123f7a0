"""Reads and writes the relation `connections`.

Writing functions take the cursor of an open lake transaction, as the methods of `catalog.stores.store` do.
"""

from __future__ import annotations

import json

from sparkwave.catalog.lake.ducklake import Cursor
from sparkwave.catalog.model import Connection
from sparkwave.catalog.names import system_table
from sparkwave.catalog.stores.user_store import forget_grants

_TABLE = system_table("connections")


def load_connections(cursor: Cursor, stored: str) -> dict[int, Connection]:
    """Return all connections by id, from SQL of the relation `connections`."""
    rows = cursor.execute(
        f"SELECT id, schema_id, name, owner, kind, options, secrets FROM {stored} ORDER BY id"
    ).fetchall()
    return {
        id_: Connection(id_, schema_id, name, owner, kind, json.loads(options), json.loads(secrets))
        for id_, schema_id, name, owner, kind, options, secrets in rows
    }


def add_connection(cursor: Cursor, connection: Connection) -> None:
    cursor.execute(
        f"INSERT INTO {_TABLE} VALUES (?, ?, ?, ?, ?, ?, ?)",
        [
            connection.id,
            connection.schema_id,
            connection.name,
            connection.owner,
            connection.kind,
            json.dumps(dict(connection.options)),
            json.dumps(dict(connection.secrets)),
        ],
    )


def set_connection(cursor: Cursor, connection: Connection) -> None:
    """Store a connection's present schema, options and secrets."""
    cursor.execute(
        f"UPDATE {_TABLE} SET schema_id = ?, options = ?, secrets = ? WHERE id = ?",
        [
            connection.schema_id,
            json.dumps(dict(connection.options)),
            json.dumps(dict(connection.secrets)),
            connection.id,
        ],
    )


def drop_connection(cursor: Cursor, connection: Connection) -> None:
    forget_grants(cursor, (connection.id,))
    cursor.execute(f"DELETE FROM {_TABLE} WHERE id = ?", [connection.id])
