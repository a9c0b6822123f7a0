"""Reads and writes the relation `sequences`: the positions of sequences.

A row is a sequence's last number and whether it has been used, as in PostgreSQL (src/include/commands/sequence.h,
FormData_pg_sequence_data). Numbers are reserved in blocks before they are used, so the stored number may not be used
yet.
"""

from __future__ import annotations

from dataclasses import dataclass

from sparkwave.catalog.lake.ducklake import Cursor
from sparkwave.catalog.names import system_table


@dataclass(frozen=True)
class Position:
    """A sequence's last number; `is_called` is whether it has been used, so that the next number follows it."""

    last: int
    is_called: bool


def load_position(cursor: Cursor, sequence_id: int) -> Position:
    query = f"SELECT last_value, is_called FROM {system_table('sequences')} WHERE relation_id = ?"
    [row] = cursor.execute(query, [sequence_id]).fetchall()
    return Position(*row)


def add_position(cursor: Cursor, sequence_id: int, position: Position) -> None:
    """Store the position of a new sequence, in the open transaction."""
    query = f"INSERT INTO {system_table('sequences')} VALUES (?, ?, ?)"
    cursor.execute(query, [sequence_id, position.last, position.is_called])


def put_position(cursor: Cursor, sequence_id: int, position: Position) -> None:
    """Store a sequence's new position, in the open transaction."""
    query = f"UPDATE {system_table('sequences')} SET last_value = ?, is_called = ? WHERE relation_id = ?"
    cursor.execute(query, [position.last, position.is_called, sequence_id])
