"""Resolves staged rows whose key exists already, by the table's ON CONFLICT or the statement's own.

It changes the staged rows with set operations, before the one statement that writes the table: rows of one statement
have the effect of rows written one by one. Among staged rows, a higher `rowid` means a later row.
"""

from __future__ import annotations

from collections.abc import Mapping

from sparkwave.catalog.errors import UNIQUE_VIOLATION, Concerned, Error
from sparkwave.catalog.lake.ducklake import Cursor
from sparkwave.catalog.model import IGNORE, REPLACE, UPDATE_IF_NOT_NULL, Relation, Watermark, same_key
from sparkwave.catalog.names import quote
from sparkwave.planner.batch.write import INSERTED
from sparkwave.server.writes.stores import Store, key_of, listed, names_of

_MERGED = "merged_rows"


def refuses(settings: Mapping[str, str], target: Relation) -> bool:
    """Return whether a row whose key exists is an error, as in PostgreSQL, by a session's settings."""
    return settings.get("unique_violations") == "true" and bool(target.primary_key) and target.conflict == REPLACE


def refuse(cursor: Cursor, store: Store) -> None:
    """Raise Error 23505 if a staged row has the key of another staged or a stored row."""
    target, key, met = store.target, listed(key_of(store.target)), same_key(store.target, "stored", "staged")
    texts = ", ".join(f"memory.pg.text_out({quote(name)})" for name in key_of(target))
    found = cursor.execute(
        f"SELECT {texts} FROM (FROM {INSERTED} SELECT {key} GROUP BY {key} HAVING count(*) > 1 UNION ALL "
        f"SELECT {key} FROM {INSERTED} AS staged SEMI JOIN {store.rows} AS stored ON {met}) LIMIT 1"
    ).fetchone()
    if found is not None:
        message = f'duplicate key value violates unique constraint "{target.key_index}"'
        detail = f"Key ({', '.join(target.primary_key)})=({', '.join(found)}) already exists."
        error = Error(message, UNIQUE_VIOLATION, detail=detail)
        error.concerned = Concerned(target.schema, target.name, constraint=target.key_index)
        raise error


def resolve(cursor: Cursor, store: Store, settings: Mapping[str, str]) -> bool:
    """Reduce the staged rows to the rows to write, one for each key. Returns whether one replaces a stored row.

    Raises Error 23505 for a key that exists, if the settings say so.
    """
    target = store.target
    if not target.primary_key:
        return False
    if refuses(settings, target):
        refuse(cursor, store)
        return False
    if target.conflict.action == IGNORE:
        keep_new(cursor, store)
        return False
    if target.conflict.versions:
        _drop_older(cursor, store)
    if target.conflict.action == UPDATE_IF_NOT_NULL:
        _fill_up(cursor, store)
    else:
        _keep_last(cursor, store)
    return meets_stored(cursor, store)


def meets_stored(cursor: Cursor, store: Store) -> bool:
    """Return whether a staged row has the key of a stored row."""
    met = same_key(store.target, "stored", "staged")
    query = f"SELECT 1 FROM {store.rows} AS stored SEMI JOIN {INSERTED} AS staged ON {met} LIMIT 1"
    return cursor.execute(query).fetchone() is not None


def keep_new(cursor: Cursor, store: Store) -> None:
    """Keep the first staged row of each key, without keys that are stored."""
    if store.target.primary_key:
        key = listed(key_of(store.target))
        cursor.execute(f"DELETE FROM {INSERTED} WHERE rowid NOT IN (SELECT min(rowid) FROM {INSERTED} GROUP BY {key})")
        drop_stored(cursor, store)


def drop_stored(cursor: Cursor, store: Store) -> None:
    """Drop the staged rows whose key is stored."""
    met = same_key(store.target, "stored", "staged")
    stored = f"SELECT staged.rowid FROM {INSERTED} AS staged SEMI JOIN {store.rows} AS stored ON {met}"
    cursor.execute(f"DELETE FROM {INSERTED} WHERE rowid IN ({stored})")


def drop_late(cursor: Cursor, store: Store, watermark: Watermark) -> None:
    """Drop the staged rows below the stored rows' watermark, and rows with NULL once there is a watermark.

    The lake's statistics have the maximum, so no stored row is read.
    """
    [column] = map(quote, store.target.in_lake([watermark.column]))
    is_number = any(c.name == watermark.column and c.type.is_integer for c in store.target.visible)
    delay = f"{watermark.delay}::HUGEINT" if is_number else f"to_microseconds({watermark.delay})"
    highest = f"max({column}) - {delay}" if watermark.delay else f"max({column})"
    cursor.execute(
        f"DELETE FROM {INSERTED} USING (SELECT {highest} AS watermark FROM {store.rows} AS all_rows) "
        f"AS stored WHERE watermark IS NOT NULL AND coalesce({INSERTED}.{column} < watermark, true)"
    )


def _keep_last(cursor: Cursor, store: Store) -> None:
    key = listed(key_of(store.target))
    cursor.execute(f"DELETE FROM {INSERTED} WHERE rowid NOT IN (SELECT max(rowid) FROM {INSERTED} GROUP BY {key})")


def _met(store: Store, names: tuple[str, ...]) -> str:
    """Return SQL of some columns of the staged rows and of stored rows with the same keys; `?place` is their order."""
    met, columns = same_key(store.target, "stored", "staged"), listed(names)
    by_name = {column.lake_name: column for column in store.target.visible}
    stored = ", ".join(by_name[name].from_lake for name in names)
    return (
        f'SELECT rowid AS "?place", {columns} FROM {INSERTED} UNION ALL SELECT -1, {stored} '
        f"FROM {store.rows} AS stored SEMI JOIN {INSERTED} AS staged ON {met}"
    )


def _drop_older(cursor: Cursor, store: Store) -> None:
    """Drop staged rows with a lower version than an earlier row of the key; NULL is the lowest version.

    (RisingWave: src/stream/src/executor/mview/materialize.rs, version_is_newer_or_equal.)
    """
    target = store.target
    key = listed(key_of(target))
    order = ", ".join(f"{quote(name)} NULLS FIRST" for name in target.in_lake(target.conflict.versions))
    names = names_of(target, (*target.primary_key, *target.conflict.versions))
    ranked = f'SELECT *, dense_rank() OVER (PARTITION BY {key} ORDER BY {order}) AS "?rank" FROM ({_met(store, names)})'
    before = f'PARTITION BY {key} ORDER BY "?place" ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING'
    older = f'SELECT "?place" FROM ({ranked}) QUALIFY "?rank" < max("?rank") OVER ({before})'
    cursor.execute(f"DELETE FROM {INSERTED} WHERE rowid IN ({older})")


def _fill_up(cursor: Cursor, store: Store) -> None:
    """Merge the rows of each key: each column gets its last value that is not NULL; the stored row is the first."""
    names = names_of(store.target)
    key = key_of(store.target)
    values = ", ".join(
        quote(n) if n in key else f'last({quote(n)} ORDER BY "?place") FILTER ({quote(n)} IS NOT NULL) AS {quote(n)}'
        for n in names
    )
    query = f"SELECT {values} FROM ({_met(store, names)}) AS met GROUP BY {listed(key)}"
    cursor.execute(f"CREATE OR REPLACE TEMPORARY TABLE {_MERGED} AS {query}")
    cursor.execute(f"DELETE FROM {INSERTED}")
    cursor.execute(f"INSERT INTO {INSERTED} SELECT {listed(names)} FROM {_MERGED}")
