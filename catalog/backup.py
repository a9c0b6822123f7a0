"""A lake's catalog for another place: copied as of a moment, and told where its files are.

DuckLake 1.0 (ducklake.select/docs, "Tables"): `ducklake_metadata` has the path that files are below, and those that
were registered have their whole path in `ducklake_data_file`. The rest are relative, so nothing else of a lake says
where it is; the paths in files of deletes are not read (found by trying, with 1.5.5).
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from catalog.lake import METADATA, Cursor, DuckDBError
from catalog.model import CREATING
from catalog.names import literal, system_table

_WITH_PATHS = ("ducklake_data_file", "ducklake_delete_file", "ducklake_files_scheduled_for_deletion")


@contextmanager
def attached(cursor: Cursor, file: Path) -> Iterator[str]:
    """A database file, which may be new, under the name that is given. It is whole, without a log, afterwards."""
    name = f"backup_{uuid.uuid4().hex}"
    cursor.execute(f"ATTACH {literal(str(file))} AS {name}")
    try:
        yield name
        cursor.execute(f"CHECKPOINT {name}")
    finally:
        with suppress(DuckDBError):
            cursor.execute(f"DETACH {name}")


def copy_catalog(cursor: Cursor, name: str) -> None:
    """Copy the catalog, as the cursor's transaction sees it, into an empty attached database."""
    cursor.execute(f"COPY FROM DATABASE {METADATA} TO {name}")


def forget_deleted_files(cursor: Cursor, name: str) -> None:
    """Have a copied catalog not name the files that are to be deleted: no snapshot of it has them."""
    cursor.execute(f"DELETE FROM {name}.ducklake_files_scheduled_for_deletion")


def move_files(cursor: Cursor, name: str, data_path: Path) -> None:
    """Note in a copied catalog that its files are below another path than they were."""
    new = f"{data_path}/"
    row = cursor.execute(f"SELECT value FROM {name}.ducklake_metadata WHERE key = 'data_path'").fetchone()
    assert row is not None, "a DuckLake has a data path"
    [old] = row
    cursor.execute("BEGIN")
    for table in _WITH_PATHS:
        cursor.execute(
            f"UPDATE {name}.{table} SET path = ? || substr(path, length(?) + 1) "
            "WHERE NOT path_is_relative AND starts_with(path, ?)",
            [new, old, old],
        )
    cursor.execute(f"UPDATE {name}.ducklake_metadata SET value = ? WHERE key = 'data_path'", [new])
    cursor.execute("COMMIT")


def finished_steps(cursor: Cursor) -> list[tuple[int, int, int]]:
    """What creating jobs have done: job, fragment and slice."""
    return cursor.execute(
        f"SELECT DISTINCT job_id, fragment_id, slice_id FROM {system_table('finished_slices')} "
        f"JOIN {system_table('jobs')} j ON j.id = job_id WHERE j.status = '{CREATING}' ORDER BY ALL"
    ).fetchall()
