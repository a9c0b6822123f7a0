"""Reads and writes the relations `sources`, `source_splits` and `source_failures`.

Writing functions take the cursor of an open lake transaction, as the methods of `catalog.stores.store` do.
"""

from __future__ import annotations

import json
from collections.abc import Iterable

from sparkwave.catalog.lake.ducklake import Cursor
from sparkwave.catalog.names import system_table
from sparkwave.catalog.source_model import Source, Split

_SOURCES, _SPLITS, _FAILURES = (system_table(name) for name in ("sources", "source_splits", "source_failures"))


class Moved(Exception):
    """A split's stored position is not its reader's, or its source was dropped."""


def load_sources(cursor: Cursor, stored: str) -> dict[int, Source]:
    """Return all sources by the id of their relation, from SQL of the relation `sources`."""
    rows = cursor.execute(
        "SELECT relation_id, connector, options, format, encode, encode_options, includes, rate_limit, "
        "coalesce(secrets, '{}'), connection_id "
        f"FROM {stored} ORDER BY relation_id"
    ).fetchall()
    return {
        id_: Source(
            id_,
            connector,
            json.loads(options),
            format_,
            encode,
            json.loads(encode_options),
            tuple((what, column) for what, column in json.loads(includes)),
            limit,
            json.loads(secrets),
            connection,
        )
        for id_, connector, options, format_, encode, encode_options, includes, limit, secrets, connection in rows
    }


def add_source(cursor: Cursor, source: Source) -> None:
    cursor.execute(
        f"INSERT INTO {_SOURCES} VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        [
            source.relation_id,
            source.connector,
            json.dumps(dict(source.options)),
            source.format,
            source.encode,
            json.dumps(dict(source.encode_options)),
            json.dumps(source.includes),
            source.rate_limit,
            json.dumps(dict(source.secrets)),
            source.connection,
        ],
    )


def set_options(cursor: Cursor, source: Source) -> None:
    """Store a source's present options and secrets."""
    cursor.execute(
        f"UPDATE {_SOURCES} SET options = ?, secrets = ? WHERE relation_id = ?",
        [json.dumps(dict(source.options)), json.dumps(dict(source.secrets)), source.relation_id],
    )


def set_rate_limit(cursor: Cursor, relation_id: int, limit: int | None) -> None:
    """Store the rows a second of a source; None is no limit, 0 a pause."""
    cursor.execute(f"UPDATE {_SOURCES} SET rate_limit = ? WHERE relation_id = ?", [limit, relation_id])


def load_splits(cursor: Cursor, relation_id: int) -> dict[str, Split]:
    """Return by name the splits of a source that have delivered rows."""
    rows = cursor.execute(
        f"SELECT split, position, row_count, is_finished FROM {_SPLITS} WHERE relation_id = ?", [relation_id]
    ).fetchall()
    return {row[0]: Split(*row) for row in rows}


def move_splits(cursor: Cursor, relation_id: int, old: Iterable[Split], new: Iterable[Split]) -> None:
    """Replace the stored positions `old` by `new`; new splits are in `new` only.

    Raises Moved when the stored positions differ from `old`, so that the transaction is rolled back.
    """
    stood, stands = list(old), list(new)
    if stood:
        places = ", ".join(["(?, ?)"] * len(stood))
        row = cursor.execute(
            f"DELETE FROM {_SPLITS} WHERE relation_id = ? AND (split, position) IN ({places})",
            [relation_id, *(value for split in stood for value in (split.name, split.position))],
        ).fetchone()
        if row != (len(stood),):
            raise Moved
    if stands:
        values = ", ".join(["(?, ?, ?, ?, ?, now())"] * len(stands))
        rows = ([relation_id, s.name, s.position, s.row_count, s.is_finished] for s in stands)
        cursor.execute(f"INSERT INTO {_SPLITS} VALUES {values}", [value for row in rows for value in row])


def put_failure(cursor: Cursor, relation_id: int, split: str, reason: str) -> None:
    """Store why a split does not go on; "" stands for the whole source."""
    clear_failures(cursor, relation_id, (split,))
    cursor.execute(f"INSERT INTO {_FAILURES} VALUES (?, ?, ?, now())", [relation_id, split, reason])


def clear_failures(cursor: Cursor, relation_id: int, splits: Iterable[str] | None = None) -> None:
    """Remove the failures of these splits, for None of all."""
    named = None if splits is None else list(splits)
    listed = "" if named is None else f" AND split IN ({', '.join('?' for _ in named)})"
    if named is None or named:
        cursor.execute(f"DELETE FROM {_FAILURES} WHERE relation_id = ?{listed}", [relation_id, *(named or ())])
