"""The connector `postgres-cdc`: a table of a PostgreSQL server, its rows first and then its changes.

Each table has a replication slot of its own, made before the first row is read, and two splits. `snapshot` counts the
blocks of the table that have been read; `wal` is the position (LSN) up to which its changes have been delivered. A
block may already have later changes when it is read. These changes are delivered with the block or after it; they are
whole rows, so they bring every row to its final state. The slot releases delivered changes with the next read, when the
lake has them for certain, so that a change is neither lost nor delivered twice. The slot is never ahead of the lake. If
it is, the lake was restored from a backup, and the changes in between are unknown.
"""

from __future__ import annotations

import io
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import numpy as np
import psycopg
import pyarrow as pa
from psycopg import sql
from pyarrow import csv as arrow_csv

from sparkwave.catalog import errors
from sparkwave.catalog.errors import Error
from sparkwave.catalog.lake.ducklake import Cursor
from sparkwave.catalog.model import Column
from sparkwave.catalog.names import quote
from sparkwave.catalog.source_model import Source, Split
from sparkwave.executor.sources.connector import READ, Batch, SplitError
from sparkwave.executor.sources.file_formats import from_text
from sparkwave.executor.sources.pgoutput import Changes, read_changes

_IS_THERE, _ORDER = '"?is_there"', '"?order"'
_BLOCK_BYTES = 8192
_ROWS_A_BLOCK = 100  # about; a batch may be larger than was asked for
# Seconds; short, because one thread serves all sources.
_CONNECT_S = 3
_SETTINGS = "-c statement_timeout=10s -c datestyle=ISO -c timezone=UTC"
_WAL, _SNAPSHOT = "wal", "snapshot"
# Changes of other tables are released in steps of this many bytes, because each step is a commit of the lake.
_IDLE_BYTES = 1 << 20


class PostgresCdc:
    """One table. A source without `table.name` only provides the connection of tables and delivers nothing."""

    rows_per_second: int | None = None

    def __init__(self, source: Source, columns: tuple[Column, ...]) -> None:
        options = source.options
        self._options = options
        self._columns = tuple(column.name for column in columns)
        self._key = tuple(filter(None, options.get("table.key", "").split("\0")))
        name = options.get("table.name")
        self._schema, _, self._table = name.rpartition(".") if name else ("", "", "")
        self._schema = self._schema or options.get("schema.name", "public")
        self._slot = options.get("table.slot", "")
        self._publication = options.get("publication.name", "rw_publication")
        self._connection: psycopg.Connection[Any] | None = None
        values = (f"{from_text(column.type, quote(column.name)).sql} AS {quote(column.name)}" for column in columns)
        keys = ", ".join(map(quote, self._key))
        newest = f"FROM {READ} QUALIFY row_number() OVER (PARTITION BY {keys or 'NULL'} ORDER BY {_ORDER} DESC) = 1"
        self._sql = f"SELECT {', '.join(values)} FROM ({newest}) WHERE {_IS_THERE}"
        of_key = (column for column in columns if column.name in self._key)
        gone = (f"{from_text(column.type, quote(column.name)).sql} AS {quote(column.name)}" for column in of_key)
        self._removed = f"SELECT {', '.join(gone)} FROM ({newest}) WHERE NOT {_IS_THERE}"

    def check(self) -> Mapping[str, str]:
        """Prepare the server: make the publication, or add the table to it, if need be."""
        with self._server() as connection:
            self._check(connection)
            connection.close()
        return {}

    def read(self, splits: Mapping[str, Split], held_back: Collection[str], rows: int, most: int) -> Batch | None:
        if not self._table:
            return None
        with self._server() as connection:
            wal = self._advanced(connection, splits.get(_WAL))
            snapshot = splits.get(_SNAPSHOT, Split(_SNAPSHOT))
            # The flushed position: changes that are only written are not given out yet.
            upto = _number(connection, "SELECT pg_current_wal_flush_lsn() - '0/0'::pg_lsn")
            changes, is_all = self._changes(connection, rows)
            block, moved = None, []
            if is_all and not snapshot.is_finished:
                block, snapshot = self._block(connection, snapshot, rows)
                moved.append(snapshot)
                changes, _ = self._changes(connection, None)
        end = max(changes.end or 0, wal.position)
        if block is None and not changes.rows and not changes.is_cleared:
            # The server must not keep changes of other tables for this slot.
            end = max(end, upto) if is_all else end
            if end - wal.position < (_IDLE_BYTES if is_all else 1):
                return None
        moved.append(Split(_WAL, end, wal.row_count + len(changes.rows)))
        read = pa.concat_tables([*([block] if block is not None and not changes.is_cleared else []), _arrow(changes)])
        read = read.append_column(_ORDER.strip('"'), pa.array(np.arange(read.num_rows)))
        return Batch(self._sql, tuple(moved), read, self._removed, changes.is_cleared)

    def blame(self, cursor: Cursor, batch: Batch, error: Error) -> SplitError | None:
        return None

    def forget(self) -> None:
        """Drop the slot of a dropped table on the server."""
        if self._slot:
            with self._server() as connection:
                where = "FROM pg_replication_slots WHERE slot_name = %s"
                connection.execute(f"SELECT pg_drop_replication_slot(slot_name) {where}", (self._slot,))
                connection.close()

    # The server.

    @contextmanager
    def _server(self) -> Iterator[psycopg.Connection[Any]]:
        """Yield the connection, made when there is none. Raises Error for any failure of the server."""
        try:
            if self._connection is None or self._connection.closed:
                self._connection = psycopg.connect(
                    host=self._options["hostname"],
                    port=self._options.get("port", "5432"),
                    user=self._options["username"],
                    password=self._options.get("password"),
                    dbname=self._options["database.name"],
                    autocommit=True,
                    connect_timeout=_CONNECT_S,
                    options=_SETTINGS,
                )
            yield self._connection
        except psycopg.Error as error:
            if self._connection is not None:
                self._connection.close()
            message = (error.diag.message_primary or str(error).strip() or type(error).__name__).splitlines()[0]
            raise Error(f"PostgreSQL: {message}", error.sqlstate or errors.CONNECTION_FAILURE) from error

    def _check(self, connection: psycopg.Connection[Any]) -> None:
        [(level,)] = connection.execute("SHOW wal_level").fetchall()
        if level != "logical":
            raise Error(
                f"PostgreSQL: wal_level is {level}, it has to be logical",
                errors.NOT_IN_PREREQUISITE_STATE,
                hint="ALTER SYSTEM SET wal_level = logical there, and restart it.",
            )
        if not self._table:
            return
        found = connection.execute(
            "SELECT attname FROM pg_attribute a JOIN pg_class c ON c.oid = a.attrelid JOIN pg_namespace n "
            "ON n.oid = c.relnamespace WHERE n.nspname = %s AND c.relname = %s AND c.relkind = 'r' AND attnum > 0 "
            "AND NOT attisdropped",
            (self._schema, self._table),
        ).fetchall()
        names = {name for (name,) in found}
        if not names:
            message = f'table "{self._schema}.{self._table}" does not exist upstream'
            raise Error(message, errors.UNDEFINED_TABLE)
        missing = next((name for name in self._columns if name not in names), None)
        if missing is not None:
            raise Error(f'column "{missing}" does not exist upstream', errors.UNDEFINED_COLUMN)
        self._publish(connection)

    def _publish(self, connection: psycopg.Connection[Any]) -> None:
        """Add the table to the publication, which is made when there is none."""
        table, publication = sql.Identifier(self._schema, self._table), sql.Identifier(self._publication)
        if not connection.execute("SELECT FROM pg_publication WHERE pubname = %s", (self._publication,)).fetchall():
            connection.execute(sql.SQL("CREATE PUBLICATION {} FOR TABLE {}").format(publication, table))
        published = connection.execute(
            "SELECT FROM pg_publication_tables WHERE pubname = %s AND schemaname = %s AND tablename = %s",
            (self._publication, self._schema, self._table),
        ).fetchall()
        if not published:
            connection.execute(sql.SQL("ALTER PUBLICATION {} ADD TABLE {}").format(publication, table))

    def _advanced(self, connection: psycopg.Connection[Any], wal: Split | None) -> Split:
        """Return the split of changes, after the slot is advanced to its position.

        A missing slot is made for a new split.
        """
        query = "SELECT confirmed_flush_lsn - '0/0'::pg_lsn FROM pg_replication_slots WHERE slot_name = %s"
        found = connection.execute(query, (self._slot,)).fetchall()
        if wal is None:
            if not found:
                make = "SELECT pg_create_logical_replication_slot(%s, 'pgoutput')"
                connection.execute(make, (self._slot,))
                found = connection.execute(query, (self._slot,)).fetchall()
            return Split(_WAL, int(found[0][0]))
        if not found:
            raise Error(
                f'replication slot "{self._slot}" does not exist any more',
                errors.NOT_IN_PREREQUISITE_STATE,
                hint="What has changed since is not known: drop the table and create it again.",
            )
        if int(found[0][0]) > wal.position:
            raise Error(
                f'replication slot "{self._slot}" is ahead of the table',
                errors.NOT_IN_PREREQUISITE_STATE,
                hint="What has changed in between is not known: drop the table and create it again.",
            )
        if int(found[0][0]) < wal.position:
            self._advance(connection, wal.position)
        return wal

    def _advance(self, connection: psycopg.Connection[Any], position: int) -> None:
        connection.execute("SELECT pg_replication_slot_advance(%s, %s::pg_lsn)", (self._slot, _lsn(position)))

    def _changes(self, connection: psycopg.Connection[Any], most: int | None) -> tuple[Changes, bool]:
        """Return the next changes, about `most` in whole transactions, and whether these are all."""
        messages = connection.execute(
            "SELECT data FROM pg_logical_slot_peek_binary_changes(%s, NULL, %s::int, 'proto_version', '1', "
            "'publication_names', %s)",
            (self._slot, most, sql.Identifier(self._publication).as_string(connection)),
        ).fetchall()
        found = read_changes((data for (data,) in messages), self._schema, self._table, self._columns, self._key)
        return found, most is None or len(messages) < most

    def _block(self, connection: psycopg.Connection[Any], snapshot: Split, rows: int) -> tuple[Any, Split]:
        """Return the next blocks of the table, as Arrow, and the split after them."""
        table = sql.Identifier(self._schema, self._table)
        size = _number(connection, "SELECT pg_relation_size(%s::regclass)", table.as_string(connection))
        stop = snapshot.position + max(rows // _ROWS_A_BLOCK, 1)
        selected = sql.SQL(", ").join(sql.Identifier(name) for name in self._columns)
        query = sql.SQL(
            "COPY (SELECT {} FROM {} WHERE ctid >= {}::tid AND ctid < {}::tid) TO STDOUT (FORMAT csv, FORCE_QUOTE *)"
        ).format(selected, table, f"({snapshot.position},0)", f"({stop},0)")
        data = io.BytesIO()
        with connection.cursor() as cursor, cursor.copy(query) as copy:
            for chunk in copy:
                data.write(chunk)
        values = _from_csv(data, self._columns)
        read = values.append_column(_IS_THERE.strip('"'), pa.repeat(pa.scalar(True), values.num_rows))
        is_last = stop * _BLOCK_BYTES >= size
        return read, Split(_SNAPSHOT, stop, snapshot.row_count + values.num_rows, is_last)


def _from_csv(data: io.BytesIO, columns: tuple[str, ...]) -> Any:
    """Read COPY's CSV, where values are quoted and NULL is not."""
    schema = pa.schema([(name, pa.string()) for name in columns])
    if not data.tell():
        return schema.empty_table()
    data.seek(0)
    return arrow_csv.read_csv(
        data,
        arrow_csv.ReadOptions(column_names=list(columns), block_size=len(data.getbuffer()) + 1),
        arrow_csv.ParseOptions(newlines_in_values=True),
        arrow_csv.ConvertOptions(
            column_types=schema, null_values=[""], strings_can_be_null=True, quoted_strings_can_be_null=False
        ),
    )


def _arrow(changes: Changes) -> Any:
    columns = list(zip(*changes.rows, strict=True)) or [()] * len(changes.columns)
    arrays = [pa.array(values, pa.string()) for values in columns]
    return pa.table([*arrays, pa.array(changes.is_there, pa.bool_())], names=[*changes.columns, _IS_THERE.strip('"')])


def _number(connection: psycopg.Connection[Any], query: str, *values: object) -> int:
    [(number,)] = connection.execute(query, values).fetchall()
    return int(number)


def _lsn(position: int) -> str:
    return f"{position >> 32:X}/{position & 0xFFFFFFFF:X}"
