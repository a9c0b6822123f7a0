"""System parameters, and defaults of session variables."""

from __future__ import annotations

from collections.abc import Mapping

from sparkwave.catalog.lake.ducklake import Cursor
from sparkwave.catalog.names import system_table


def put_parameter(cursor: Cursor, stored: Mapping[str, str], name: str, value: str | None) -> None:
    """Store a system parameter or a default of a session variable; None removes it.

    `stored` has the stored values by name, the catalog's `parameters`.
    """
    if name in stored:
        cursor.execute(f"DELETE FROM {system_table('parameters')} WHERE name = ?", [name])
    if value is not None:
        cursor.execute(f"INSERT INTO {system_table('parameters')} VALUES (?, ?)", [name, value])
