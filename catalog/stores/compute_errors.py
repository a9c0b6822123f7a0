"""The relation `compute_errors`: counts rows of views in which an expression failed and is NULL.

Writing functions take the cursor of the transaction that commits the rows, so that no row counts twice.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from sparkwave.catalog.lake.ducklake import Cursor
from sparkwave.catalog.lake.memory_transactions import first_row
from sparkwave.catalog.names import SYSTEM_SCHEMA, LakeTable, system_table

COMPUTE_ERRORS = LakeTable(SYSTEM_SCHEMA, "compute_errors")
_TABLE = system_table(COMPUTE_ERRORS.name)
# The rows that may be there beyond one for each relation, before they are summed up.
_SLACK = 100


@dataclass(frozen=True)
class ComputeErrors:
    """The number of failed rows, and the reason for the last one, if known."""

    rows: int
    message: str | None


def add_errors(cursor: Cursor, relation_id: int, errors: ComputeErrors | None) -> None:
    """Count more failed rows of a relation, by a new row: an UPDATE would cost a checkpoint as much as a view does."""
    if errors is not None:
        cursor.execute(f"INSERT INTO {_TABLE} VALUES (?, ?, ?, now())", [relation_id, errors.rows, errors.message])


def compute_errors(cursor: Cursor, relation_id: int | None = None) -> dict[int, tuple[ComputeErrors, datetime]]:
    """Return the counts of one relation or all, by id, each with the time of the last failure."""
    rows = cursor.execute(
        "SELECT relation_id, sum(row_count)::BIGINT, max_by(message, failed_at), max(failed_at) "
        f"FROM {_TABLE} WHERE coalesce(relation_id = $1, true) GROUP BY 1",
        [relation_id],
    ).fetchall()
    return {id_: (ComputeErrors(count, message), failed_at) for id_, count, message, failed_at in rows}


def add_up(cursor: Cursor, stored: str) -> None:
    """Sum the counts up to one row for each relation, if `stored`, SQL of the relation's rows, has many more."""
    row = first_row(cursor.execute(f"SELECT count(*) > count(DISTINCT relation_id) + {_SLACK} FROM {stored}"))
    if row == (True,):
        found = compute_errors(cursor)
        cursor.execute(f"DELETE FROM {_TABLE}")
        for id_, (errors, failed_at) in found.items():
            cursor.execute(f"INSERT INTO {_TABLE} VALUES (?, ?, ?, ?)", [id_, errors.rows, errors.message, failed_at])


def move_errors(cursor: Cursor, made_id: int, relation_id: int) -> None:
    """Give a relation the counts of its replacement, in place of its own."""
    cursor.execute(f"DELETE FROM {_TABLE} WHERE relation_id = ?", [relation_id])
    cursor.execute(f"UPDATE {_TABLE} SET relation_id = ? WHERE relation_id = ?", [relation_id, made_id])
