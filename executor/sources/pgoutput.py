"""Reads the changes of one table from messages of PostgreSQL's logical replication plugin `pgoutput`, version 1.

Source: PostgreSQL's documentation, "Logical Replication Message Formats".
"""

from __future__ import annotations

import struct
from collections.abc import Iterable
from dataclasses import dataclass, field

from sparkwave.catalog import errors
from sparkwave.catalog.errors import Error

Values = list[str | None]
_UNCHANGED = object()  # a value that is stored out of line and was not sent


@dataclass
class Changes:
    """The changes of a table, in order.

    `rows` are the values of `columns`. `is_there` tells present rows from keys of deleted rows. `is_cleared` tells that
    all earlier rows were deleted. `end` is the position after the last transaction.
    """

    columns: tuple[str, ...]
    rows: list[Values] = field(default_factory=list)
    is_there: list[bool] = field(default_factory=list)
    is_cleared: bool = False
    end: int | None = None


def read_changes(
    messages: Iterable[bytes], schema: str, table: str, columns: tuple[str, ...], key: tuple[str, ...]
) -> Changes:
    """Return the changes of a table in the messages of whole transactions.

    Raises Error 0A000 for a change without all values, 42703 when the table has lost a column.
    """
    changes = Changes(columns)
    places: dict[int, list[int]] = {}  # places of the columns in the tuples, by the id of the table
    keys = [columns.index(name) for name in key]
    for message in messages:
        kind, body = message[:1], _Reader(message, 1)
        if kind == b"R":
            oid, where, name = body.integer("!I"), body.text(), body.text()
            if (where, name) == (schema, table):
                places = {oid: _places(body, columns)}
        elif kind == b"C":
            body.skip(1 + 8)
            changes.end = body.integer("!Q")
        elif kind in b"IUD":
            oid = body.integer("!I")
            if oid in places:
                _row(body, places[oid], keys, changes)
        elif kind == b"T":
            count = body.integer("!I")
            body.skip(1)
            if any(body.integer("!I") in places for _ in range(count)):
                changes.rows, changes.is_there, changes.is_cleared = [], [], True
    return changes


def _places(body: _Reader, columns: tuple[str, ...]) -> list[int]:
    body.skip(1)
    names = []
    for _ in range(body.integer("!H")):
        body.skip(1)
        names.append(body.text())
        body.skip(8)
    gone = next((name for name in columns if name not in names), None)
    if gone is not None:
        raise Error(f'column "{gone}" does not exist upstream any more', errors.UNDEFINED_COLUMN)
    return [names.index(name) for name in columns]


def _row(body: _Reader, places: list[int], keys: list[int], changes: Changes) -> None:
    """Read an INSERT, UPDATE or DELETE, after the table's id."""
    old: list[object] | None = None
    tag = body.byte()
    if tag in b"KO":
        old = body.values()
        has_all = tag == b"O"
        tag = body.byte()
    if tag != b"N":
        assert old is not None
        changes.rows.append([_text(old[place]) for place in places])
        changes.is_there.append(False)
        return
    new = body.values()
    if old is not None:
        if has_all:
            new = [before if value is _UNCHANGED else value for before, value in zip(old, new, strict=True)]
        if any(old[places[k]] != new[places[k]] for k in keys):
            changes.rows.append([_text(old[place]) for place in places])
            changes.is_there.append(False)
    if any(new[place] is _UNCHANGED for place in places):
        raise Error(
            "an UPDATE came without a large value that it did not change",
            errors.FEATURE_NOT_SUPPORTED,
            hint="ALTER TABLE … REPLICA IDENTITY FULL upstream sends them; then create this table again.",
        )
    changes.rows.append([_text(new[place]) for place in places])
    changes.is_there.append(True)


def _text(value: object) -> str | None:
    return value if isinstance(value, str) else None


class _Reader:
    """A cursor over the bytes of a message."""

    def __init__(self, data: bytes, offset: int) -> None:
        self._data = data
        self._offset = offset

    def skip(self, count: int) -> None:
        self._offset += count

    def byte(self) -> bytes:
        """Return one byte; none at the end."""
        self._offset += 1
        return self._data[self._offset - 1 : self._offset]

    def integer(self, format_: str) -> int:
        [value] = struct.unpack_from(format_, self._data, self._offset)
        self._offset += struct.calcsize(format_)
        return value

    def text(self) -> str:
        end = self._data.index(b"\0", self._offset)
        found = self._data[self._offset : end].decode()
        self._offset = end + 1
        return found

    def values(self) -> list[object]:
        """Return a tuple: texts, None for NULL, `_UNCHANGED`."""
        found: list[object] = []
        for _ in range(self.integer("!H")):
            kind = self.byte()
            if kind == b"t":
                length = self.integer("!I")
                found.append(self._data[self._offset : self._offset + length].decode())
                self._offset += length
            else:
                found.append(None if kind == b"n" else _UNCHANGED)
        return found
