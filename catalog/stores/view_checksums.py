"""The relation `view_checksums`: the checksum of each view's rows, kept by the changes that epochs make to the view.

A checksum is the sum of a hash of each row, modulo 2**64, so it does not depend on the order of the rows, and a change
of rows adds or subtracts the hashes of these rows alone (Bellare and Micciancio, "A New Paradigm for Collision-free
Hashing: Incrementality at Reduced Cost", 1997, AdHash). A row of the relation is an addend. A view's checksum is the
sum of its addends: one for the rows that the view had once, and one for each later checkpoint with changes. The first
one has a `version`, that of DuckDB: another version may hash otherwise, and then the rows are read again. Writing
functions take the cursor of the transaction that commits the rows.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from sparkwave.catalog.lake.ducklake import ENGINE_VERSION, Cursor
from sparkwave.catalog.lake.memory_transactions import first_row
from sparkwave.catalog.names import SYSTEM_SCHEMA, LakeTable, quote, system_table
from sparkwave.catalog.types import Type

VIEW_CHECKSUMS = LakeTable(SYSTEM_SCHEMA, "view_checksums")
_TABLE = system_table(VIEW_CHECKSUMS.name)
_MODULUS = 1 << 64
# The later addends that there may be beyond one for each relation, before they are summed up.
_SLACK = 1000


@dataclass(frozen=True)
class Checksum:
    """The checksum and the number of some rows. Of a change, the number may be negative."""

    value: int = 0
    rows: int = 0

    def __add__(self, other: Checksum) -> Checksum:
        return Checksum((self.value + other.value) % _MODULUS, self.rows + other.rows)

    def __sub__(self, other: Checksum) -> Checksum:
        return Checksum((self.value - other.value) % _MODULUS, self.rows - other.rows)

    def __str__(self) -> str:
        return f"{self.value:016x}"


def row_hash(types: Mapping[str, Type]) -> str:
    """Return SQL of the hash (unsigned, 64 bits) of a row with these columns, as they are or as they are stored."""
    return f"hash({', '.join(f'CAST({quote(name)} AS {type_.in_lake()})' for name, type_ in types.items()) or '1'})"


def checksum_of(cursor: Cursor, rows: str, types: Mapping[str, Type]) -> Checksum:
    """Return the checksum of a relation or a subquery with these columns. Raises DuckDB's errors."""
    row = first_row(cursor.execute(f"SELECT sum({row_hash(types)}), count(*) FROM {rows}"))
    assert row is not None
    return Checksum((row[0] or 0) % _MODULUS, row[1])


def add_changes(cursor: Cursor, changes: Iterable[tuple[int, Checksum]]) -> None:
    """Add changes to the checksums of relations, by id, in one statement."""
    summed: dict[int, Checksum] = {}
    for relation_id, change in changes:
        summed[relation_id] = summed.get(relation_id, Checksum()) + change
    if summed:
        rows = ", ".join(f"({id_}, {change.value}::UBIGINT, {change.rows}, NULL)" for id_, change in summed.items())
        cursor.execute(f"INSERT INTO {_TABLE} VALUES {rows}")


def changed(cursor: Cursor, relation_id: int) -> Checksum:
    """Return the sum of a relation's addends without the first one."""
    return _sums(cursor, relation_id, "version IS NULL").get(relation_id, Checksum())


def put_first(cursor: Cursor, relation_id: int, first: Checksum) -> None:
    """Let a relation's checksum begin with `first`, in place of an earlier first addend.

    It is the checksum of the relation's rows in a snapshot without what `changed` returns there.
    """
    has_one = f"FROM {_TABLE} WHERE relation_id = ? AND version IS NOT NULL"
    if cursor.execute(f"SELECT 1 {has_one}", [relation_id]).fetchone():
        cursor.execute(f"DELETE {has_one}", [relation_id])
    cursor.execute(
        f"INSERT INTO {_TABLE} VALUES (?, ?::UBIGINT, ?, ?)", [relation_id, first.value, first.rows, ENGINE_VERSION]
    )


def forget(cursor: Cursor, relation_id: int) -> None:
    """Forget the checksum of a relation, because its rows are replaced by others."""
    cursor.execute(f"DELETE FROM {_TABLE} WHERE relation_id = ?", [relation_id])


def checksums(cursor: Cursor, relation_id: int | None = None) -> dict[int, Checksum]:
    """Return the known checksums of one relation or all, by id, as of the last checkpoint that the cursor sees."""
    began = cursor.execute(f"SELECT relation_id FROM {_TABLE} WHERE version = ?", [ENGINE_VERSION]).fetchall()
    sums = _sums(cursor, relation_id)
    return {id_: sums[id_] for (id_,) in began if id_ in sums}


def _sums(cursor: Cursor, relation_id: int | None, where: str = "true") -> dict[int, Checksum]:
    rows = cursor.execute(
        f"SELECT relation_id, sum(checksum), sum(row_count)::BIGINT FROM {_TABLE} "
        f"WHERE coalesce(relation_id = $1, true) AND {where} GROUP BY relation_id",
        [relation_id],
    ).fetchall()
    return {id_: Checksum(value % _MODULUS, count) for id_, value, count in rows}


def add_up(cursor: Cursor, stored: str) -> None:
    """Sum the later addends up to one for each relation, if `stored`, SQL of the relation's rows, has many more."""
    row = first_row(
        cursor.execute(f"SELECT count(*) > count(DISTINCT relation_id) + {_SLACK} FROM {stored} WHERE version IS NULL")
    )
    if row == (True,):
        sums = _sums(cursor, None, "version IS NULL")
        cursor.execute(f"DELETE FROM {_TABLE} WHERE version IS NULL")
        add_changes(cursor, sums.items())
