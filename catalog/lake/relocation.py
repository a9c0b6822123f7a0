"""Moves a lake to another place: records in its catalog where its files are now.

DuckLake 1.0 (ducklake.select/docs, "Tables"): `ducklake_metadata` has the path above all files, and
`ducklake_data_file` has absolute paths of registered files. All other paths are relative, so nothing else depends on
the place; the paths inside delete files are not read (found by experiment, with 1.5.5).
"""

from __future__ import annotations

import logging
from pathlib import Path

from sparkwave.catalog.lake.memory_transactions import in_transaction
from sparkwave.catalog.lake.places import Place
from sparkwave.catalog.lake.translation import Cursor
from sparkwave.catalog.names import literal

logger = logging.getLogger(__name__)

_WITH_PATHS = ("ducklake_data_file", "ducklake_delete_file", "ducklake_files_scheduled_for_deletion")


def relocate(cursor: Cursor, catalog: Path, data_path: Place) -> None:
    """Make a catalog file that is not attached name the directory of the files that were moved with it."""
    cursor.execute(f"ATTACH {literal(str(catalog))} AS moved")
    try:
        old = _data_path(cursor, "moved")
        if old not in (None, f"{data_path}/") and isinstance(data_path, Path) and data_path.is_dir():
            logger.warning("the files that were in %s are in %s now", old, data_path)
            move_files(cursor, "moved", data_path)
    finally:
        cursor.execute("DETACH moved")


def move_files(cursor: Cursor, name: str, data_path: Place) -> None:
    """Record in an attached catalog, in one transaction, that its files are below another path."""
    old, new = _data_path(cursor, name), f"{data_path}/"
    assert old is not None, "a DuckLake has a data path"
    with in_transaction(cursor):
        for table in _WITH_PATHS:
            cursor.execute(
                f"UPDATE {name}.{table} SET path = ? || substr(path, length(?) + 1) "
                "WHERE NOT path_is_relative AND starts_with(path, ?)",
                [new, old, old],
            )
        cursor.execute(f"UPDATE {name}.ducklake_metadata SET value = ? WHERE key = 'data_path'", [new])


def _data_path(cursor: Cursor, name: str) -> str | None:
    rows = cursor.execute(f"SELECT value FROM {name}.ducklake_metadata WHERE key = 'data_path'").fetchall()
    return rows[0][0] if rows else None
