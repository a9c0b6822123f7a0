"""The lake: DuckDB with a DuckLake attached as `lake`. Opens it, locks it, and runs its transactions.

Facts about DuckLake are from its specification 1.0 (ducklake.select/docs, "Tables"): snapshot ids, row ids, the
metadata tables `ducklake_data_file`, `ducklake_snapshot_changes` and the functions `ducklake_*`.
"""

from __future__ import annotations

import contextlib
import shutil
import threading
import time
import uuid
from collections.abc import Callable, Collection, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, replace
from pathlib import Path
from typing import cast

import duckdb

from sparkwave.catalog import errors
from sparkwave.catalog.counters import COMMIT_SECONDS, LAKE_COMMITS, LAKE_CONFLICTS
from sparkwave.catalog.errors import Error
from sparkwave.catalog.lake import identity
from sparkwave.catalog.lake.duckdb_threads import Threads
from sparkwave.catalog.lake.extensions import load_extensions
from sparkwave.catalog.lake.inlining import Inlining
from sparkwave.catalog.lake.lake_tables import locate, made_at
from sparkwave.catalog.lake.memory_transactions import first_row, rollback
from sparkwave.catalog.lake.migrating import migrate, version_of
from sparkwave.catalog.lake.places import Place, below
from sparkwave.catalog.lake.prepared_statements import DISABLED_OPTIMIZERS
from sparkwave.catalog.lake.relocation import relocate
from sparkwave.catalog.lake.row_estimates import RowEstimates
from sparkwave.catalog.lake.schema_gate import GatedCursor, SchemaGate
from sparkwave.catalog.lake.snapshot_changes import ROW_CHANGES, Change, ChangedTables, changes_made, is_kept
from sparkwave.catalog.lake.storage import Lease, Storage, lock_directory
from sparkwave.catalog.lake.text_bounds import TextBounds
from sparkwave.catalog.lake.translation import DISK_FULL, Cursor, disk_full, first_line, is_conflict
from sparkwave.catalog.lake.vacuum import BLOCK_BYTES, vacuum
from sparkwave.catalog.lazy import lazy
from sparkwave.catalog.locks import Rank, RankedLock, RankedRLock
from sparkwave.catalog.names import BUFFER, COPIES, METADATA, SYSTEM_SCHEMA, LakeTable, literal, system_table
from sparkwave.catalog.stores.migrations import MIGRATIONS

_CONFIG: dict[str, str | bool | int | float | list[str]] = {
    "autoinstall_known_extensions": "false",
    "default_block_size": str(BLOCK_BYTES),
    "checkpoint_threshold": "1TB",  # never within a COMMIT: see `catalog.lake.catalog_log`
    # DuckDB takes 0.15 s to verify the signature of an extension; those that are loaded are installed as DuckDB is.
    "allow_unsigned_extensions": "true",
}
ENGINE_VERSION = duckdb.__version__
# For all queries. As in Postgres, integer division gives an integer. The disabled optimizer would compute an expression
# that two TRYs share before both of them, where its error would stop the view.
SETTINGS = (
    "SET GLOBAL TimeZone = 'UTC'; SET GLOBAL integer_division = true; "
    f"SET GLOBAL disabled_optimizers = '{','.join(DISABLED_OPTIMIZERS)}'; "
    # Nobody sees DuckDB's suggestions for a missing table, for which it reads the lake's whole schema.
    "SET GLOBAL catalog_error_max_schemas = 0"
)
# A COMMIT that began before another one is tried again by DuckLake, which waits before. Commits are made one by one, so
# that the second try meets no other, and all others wait for it.
COMMIT_SETTINGS = "SET GLOBAL ducklake_retry_wait_ms = 1"
FILE_SIZE = "64MB"
# Stands for all tables that a short transaction writes.
_ANY_TABLE = LakeTable("", "")


@dataclass(frozen=True)
class Snapshot:
    """A snapshot that is about to be committed, and its commit time (`catalog.lake.history`)."""

    id: int
    time_us: int


class Lake:
    """An open data directory, which one process holds at a time; each thread uses a separate `cursor()`."""

    def __init__(
        self,
        storage: Storage,
        memory_limit: str | None = None,
        lease: Lease | None = None,
        spill_limit: str | None = None,
        read_only: bool = False,
        threads: int | None = None,
    ) -> None:
        """Open or create the lake; read-only if asked, or while another server holds the lease.

        `threads` is the most that a query has; None is a thread a core.

        Raises Error 55006 if another server holds the directory, XX001 if its catalog cannot be read, 53100 if its disk
        is full, 57P03 if the writing server has not yet migrated it to this version; Refused if the directory is no
        server's, or the files do not belong to the catalog.
        """
        self.storage = storage
        self.directory = storage.directory.absolute()
        self.data_path = storage.data_path
        self.staging_path = storage.staging_path
        self.spill_path = self.directory / "spill"
        self.lease = lease
        self.read_only = read_only or (lease is not None and not lease.is_held)
        self._lock_file = lock_directory(self.directory)
        self._commit_lock = RankedRLock(Rank.COMMIT)
        self._end_lock = RankedLock(Rank.END)  # held during a COMMIT
        self._newest: int | None = None
        self._table_names: dict[int, tuple[str, str]] = {}  # a table never changes its schema and name
        self._table_locks: dict[LakeTable, RankedRLock] = {}
        self._writing: dict[LakeTable, float] = {}
        self.identity: identity.Identity | None = None  # of the files; None for a read-only lake
        self.instance = uuid.uuid4().hex[:8]
        self.pinned: list[int] = []  # snapshots that clients go on reading
        self._keepers = 0
        self._gate = SchemaGate()
        self._schema_reader = ThreadPoolExecutor(1, thread_name_prefix="schema")
        self._schema_read: Future[None] | None = None  # of the last change of the schema
        self._committed = threading.Condition()
        self.commits = 0  # number of committed transactions, for `wait_for_commit`
        self.commit_time_us = 0  # the newest commit's recorded time
        try:
            self._connection = self._open(memory_limit, spill_limit, threads)
        except BaseException:
            self._lock_file.close()
            raise
        try:
            self.confirm_identity()
        except BaseException:
            self._connection.close()
            self._lock_file.close()
            raise
        self.row_estimates = RowEstimates(self.cursor(), METADATA)

    @lazy
    def memory_bytes(self) -> int:
        """The memory limit of all queries together, in bytes."""
        row = self.cursor().execute("SELECT current_setting('memory_limit')").fetchone()
        assert row is not None
        number, unit = row[0].split()
        return int(float(number) * _UNITS[unit])

    def _open(self, memory_limit: str | None, spill_limit: str | None, threads: int | None) -> Cursor:
        connection = self._connect(memory_limit, spill_limit, threads)
        try:
            self._attach(connection)
        except BaseException as error:
            connection.close()
            if isinstance(error, duckdb.Error):
                raise self._unusable(error) from error
            raise
        return connection

    def _connect(self, memory_limit: str | None, spill_limit: str | None, threads: int | None) -> Cursor:
        config = dict(_CONFIG)
        config["temp_directory"] = str(self.spill_path)  # for queries larger than memory
        if memory_limit:
            config["memory_limit"] = memory_limit
        if spill_limit:
            config["max_temp_directory_size"] = spill_limit
        if threads:
            config["threads"] = threads
        connection = duckdb.connect(config=config)
        self.threads = Threads(connection.cursor())
        connection.execute(f"{SETTINGS}; ATTACH ':memory:' AS {BUFFER}; ATTACH ':memory:' AS {COPIES}")
        load_extensions(connection, self.storage)
        connection.execute(f"SET GLOBAL allow_unsigned_extensions = false; {COMMIT_SETTINGS}")
        return connection

    def _attach(self, connection: Cursor) -> None:
        has_file = self.storage.catalog is None and not self.read_only and self.storage.catalog_file.exists()
        if has_file:
            vacuum(connection, self.storage.catalog_file)
        if self.read_only:
            identity.verify(connection, self.storage, self.lease is not None)
        else:
            self.identity = identity.claim(connection, self.storage)
        self._clear_spill()
        if has_file:
            relocate(connection, self.storage.catalog_file, self.data_path)
        target = literal(self.storage.target(self.read_only))
        options = f"DATA_PATH {literal(str(self.data_path))}{', READ_ONLY' if self.read_only else ''}"
        connection.execute(f"ATTACH {target} AS lake ({options})")
        gated = cast(Cursor, GatedCursor(connection.cursor(), self._gate))
        self.inlining = Inlining(connection.cursor(), gated, is_in_postgres=self.storage.catalog is not None)
        self.text_bounds = TextBounds(connection.cursor())
        if self.identity is not None:
            identity.establish(connection, METADATA, self.storage, self.identity)
            # Small files: deleted rows cost a read of their whole file (`catalog.lake.change_feed`), and so does a
            # slice of a backfill.
            connection.execute(f"CALL lake.set_option('target_file_size', '{FILE_SIZE}')")
            # Numbers and times as differences: less than half the bytes, and a scan takes a third less processor time.
            connection.execute("CALL lake.set_option('parquet_version', '2')")
            migrate(connection)
            self.inlining.start()
            self.text_bounds.mend(_last_commit_time(connection) + 1000)
        elif self.lease is not None:
            self._check_version(connection)
        self.commit_time_us = _last_commit_time(connection)

    def _unusable(self, error: duckdb.Error) -> Error:
        if DISK_FULL in str(error):
            reason = disk_full(str(error))
            return Error(f"{self.storage.name} cannot be opened: {reason.message}", reason.sqlstate, hint=reason.hint)
        return Error(
            f"{self.storage.name} cannot be opened: {first_line(error)}",
            errors.DATA_CORRUPTED,
            hint="Restore the directory from a backup, or serve another one with --data.",
        )

    def confirm_identity(self) -> None:
        """Record the catalog's newest snapshot beside the files.

        Raises Error when the files no longer belong to this lake, or its lease is lost.
        """
        if self.identity is None:  # read-only
            return
        if self.lease is not None:
            self.lease.check()
        if identity.read(self.data_path) != self.identity:
            message = f'the files in "{self.data_path}" have become another lake\'s'
            raise Error(message, errors.DATA_CORRUPTED)
        with contextlib.closing(self.cursor()) as cursor:
            identity.replace(self.data_path, replace(self.identity, snapshot=self.snapshot(cursor)))

    def _clear_spill(self) -> None:
        """Delete spilled data and files of sinks that a crash has left."""
        for path in self.spill_path.glob("duckdb_temp_*"):
            path.unlink(missing_ok=True)
        for path in self.spill_path.glob("sink_*"):
            shutil.rmtree(path, ignore_errors=True)

    def _check_version(self, connection: Cursor) -> None:
        if version_of(connection) != len(MIGRATIONS):
            message = f"{self.storage.name} is not of this version; it waits for the server that writes"
            raise Error(message, errors.CANNOT_CONNECT_NOW)

    def close(self) -> None:
        """Run a checkpoint and close the lake; then another server may use the directory."""
        if isinstance(self.data_path, Path):  # a bucket may be unreachable, and the older record stays valid
            with contextlib.suppress(Error, duckdb.Error):
                self.confirm_identity()
        self._schema_reader.shutdown()
        self.threads.close()
        with self._commit_lock:
            self._connection.close()
            self._lock_file.close()

    @property
    def writer(self) -> str | None:
        """For a read-only server, the address of the writing server; None while there is none."""
        return self.lease.holder() if self.lease is not None else None

    def new_temporary(self, purpose: str) -> Place:
        """Return a path for a temporary directory below the staging path; the caller creates and removes it.

        Its name identifies this server among others (`catalog.lake.orphans`).
        """
        return self.staging_path / f"{purpose}_{self.instance}_{uuid.uuid4().hex[:8]}"

    def cursor(self) -> Cursor:
        """Return a new connection, with its own temporary relations and transaction.

        Its statements wait while the schema changes (`catalog.lake.schema_gate`).
        """
        return cast(Cursor, GatedCursor(self._connection.cursor(), self._gate))

    def cursor_under_lock(self) -> Cursor:
        """Return a cursor for a thread that holds the commit lock: its statements do not wait."""
        return self._connection.cursor()

    def _read_schema(self) -> None:
        try:
            with contextlib.suppress(duckdb.Error), contextlib.closing(self._connection.cursor()) as cursor:
                cursor.execute(f"FROM {system_table('epoch')} LIMIT 0")
        finally:
            self._gate.open()

    def _wait_for_schema(self) -> None:
        """Wait until the present schema is read: what a transaction refers to is not replaced from then on."""
        if self._schema_read is not None:
            wait((self._schema_read,))

    @contextlib.contextmanager
    def keeping_files(self) -> Iterator[None]:
        """A context in which no file is deleted that a snapshot has had since its start, even an expired one."""
        with self._commit_lock:  # deletion of old files holds it too
            self._keepers += 1
        try:
            yield
        finally:
            with self._commit_lock:
                self._keepers -= 1

    @property
    def keeps_files(self) -> bool:
        return self._keepers > 0

    def exclusive(self) -> RankedRLock:
        """Return the commit lock.

        While it is held, no other thread commits, between a commit and the work that follows it.
        """
        return self._commit_lock

    @contextlib.contextmanager
    def transaction(
        self, cursor: Cursor, writes: Iterable[LakeTable] = (), shared: Iterable[LakeTable] = ()
    ) -> Iterator[Cursor]:
        """A short transaction of the catalog or a checkpoint; only one runs at a time.

        To run them one by one avoids conflicts at commit between two writers of one table, and is fair. `writes` are
        tables that may get many rows and that no other transaction writes: after a failure, their unfinished files are
        deleted. `shared` are such tables that clients write too; their transactions are waited for.
        """
        writes, began = (*writes, *shared), time.time()
        with contextlib.ExitStack() as held:
            held.enter_context(self.holding(*shared))
            held.enter_context(self._commit_lock)
            self._note(held, _ANY_TABLE)
            self._wait_for_schema()
            cursor.execute("BEGIN")
            try:
                yield cursor
                self._commit(cursor)
            except BaseException as error:
                rollback(cursor)
                _count_conflict(error)
                for table in writes:
                    self._delete_unfinished_files(cursor, table, began)
                raise

    @contextlib.contextmanager
    def table_transaction(self, cursor: Cursor, *tables: LakeTable, deletes: bool = True) -> Iterator[Cursor]:
        """A transaction of any length that writes some tables: writers of the same tables wait, others do not.

        `deletes` tells whether it may delete or update rows. Then others wait, too, if it `dates_deletes`.
        """
        with self.holding(*tables), self.late_transaction(cursor, lambda: tables, deletes):
            yield cursor

    @contextlib.contextmanager
    def catalog_transaction(self, cursor: Cursor, table: LakeTable) -> Iterator[Snapshot]:
        """A short transaction that writes a table without DuckLake, directly into the tables of the lake's catalog.

        The caller has to create the yielded snapshot. No other transaction commits meanwhile.
        """
        with self.holding(table), self._commit_lock:
            made = Snapshot(self.newest(cursor) + 1, self._next_time_us())
            cursor.execute("BEGIN")
            try:
                yield made
                self._end(cursor, made.time_us, made.id)
            except BaseException:
                rollback(cursor)
                raise

    @contextlib.contextmanager
    def late_transaction(
        self, cursor: Cursor, tables: Callable[[], Collection[LakeTable]], deletes: bool = True
    ) -> Iterator[bool]:
        """Work as `table_transaction`, but asks for the tables after BEGIN, before it reads the lake.

        Yields whether all others wait.
        """
        began = time.time()
        written: Collection[LakeTable] = ()
        self._wait_for_schema()
        cursor.execute("BEGIN")
        try:
            written = tables()
            with self.holding(*written), contextlib.ExitStack() as alone:
                is_alone = deletes and self.dates_deletes(written)
                if is_alone:
                    alone.enter_context(self._commit_lock)
                    self._wait_for_schema()
                yield is_alone
                with self._commit_lock:
                    self._commit(cursor)
        except BaseException as error:
            rollback(cursor)
            _count_conflict(error)
            for table in sorted(set(written), key=_name):
                self._delete_unfinished_files(cursor, table, began)
            raise

    def dates_deletes(self, tables: Collection[LakeTable]) -> bool:
        """Whether a transaction that deletes rows of some tables needs the commit lock from its beginning.

        Where a file has deleted rows already, DuckLake (1.5.5) notes beside each further one the snapshot that follows
        the transaction's, and COMMIT leaves that as it is when another one has come first. Then the rows would be gone
        before the commit, and its changes would lack them (asserted by tests/test_dated_deletes.py).
        """
        listed = ", ".join(f"({literal(table.schema)}, {literal(table.name)})" for table in tables)
        if not listed:
            return False
        with contextlib.closing(self._connection.cursor()) as cursor:
            found = cursor.execute(
                f"SELECT 1 FROM {METADATA}.ducklake_delete_file AS d "
                f"JOIN {METADATA}.ducklake_table AS t USING (table_id) "
                f"JOIN {METADATA}.ducklake_schema AS s USING (schema_id) WHERE d.end_snapshot IS NULL "
                f"AND t.end_snapshot IS NULL AND (s.schema_name, t.table_name) IN ({listed}) LIMIT 1"
            )
            return found.fetchone() is not None

    def _commit(self, cursor: Cursor) -> None:
        """Commit with the commit time in the snapshot (`catalog.lake.history`), while the commit lock is held."""
        time_us = self._next_time_us()
        cursor.execute(f"CALL lake.set_commit_message(NULL, NULL, extra_info => '{time_us}')")
        self._end(cursor, time_us)

    def _next_time_us(self) -> int:
        return max(time.time_ns() // 1000, (self.commit_time_us // 1000 + 1) * 1000)

    def _end(self, cursor: Cursor, time_us: int, newest: int | None = None) -> None:
        """Commit; afterwards the newest snapshot is `newest`, if known."""
        if self.lease is not None:
            self.lease.check()
        self.commit_time_us = time_us
        changes_schema = isinstance(cursor, GatedCursor) and cursor.changes_schema
        with self._end_lock, COMMIT_SECONDS.time(), self._reading_schema_after(cursor):
            self._newest = None
            cursor.commit()
            self._newest = newest
            if newest is None:  # DuckLake may have written files
                self._mend_bounds()
        LAKE_COMMITS.inc()
        if changes_schema:
            self.inlining.limit_new_tables()
        with self._committed:
            self.commits += 1
            self._committed.notify_all()

    def _mend_bounds(self) -> None:
        time_us = self._next_time_us()
        if self.text_bounds.mend(time_us):
            self.commit_time_us = time_us

    @contextlib.contextmanager
    def _reading_schema_after(self, cursor: Cursor) -> Iterator[None]:
        """A context of a COMMIT, in which no other query reads a new schema; then a thread of its own begins to."""
        if not isinstance(cursor, GatedCursor) or not cursor.changes_schema:
            yield
            return
        self._gate.close()
        try:
            cursor.changes_schema = False
            yield
        finally:
            try:
                self._schema_read = self._schema_reader.submit(self._read_schema)
            except RuntimeError:  # the lake is closing
                self._gate.open()

    def wait_for_commit(self, commits: int, seconds: float, is_over: Callable[[], bool] = lambda: False) -> None:
        """Wait for more than `commits` transactions, or so many seconds, or until `is_over` (`wake`)."""
        with self._committed:
            self._committed.wait_for(lambda: self.commits > commits or is_over(), seconds)

    def wake(self) -> None:
        """Have threads in `wait_for_commit` check whether their wait is over."""
        with self._committed:
            self._committed.notify_all()

    @contextlib.contextmanager
    def holding(self, *tables: LakeTable, patience_s: float = -1) -> Iterator[None]:
        """A context in which no other thread writes these tables' rows.

        Raises TimeoutError when another thread holds a table for longer than `patience_s` seconds, unless that is
        -1.
        """
        with contextlib.ExitStack() as held:
            for table in sorted(set(tables), key=_name):
                self._hold(held, table, patience_s)
            yield

    def _hold(self, held: contextlib.ExitStack, table: LakeTable, patience_s: float) -> None:
        lock = self._table_locks.get(table)
        if lock is None:
            lock = self._table_locks.setdefault(table, RankedRLock(Rank.TABLE, _name(table)))
        if not lock.acquire(timeout=patience_s):
            raise TimeoutError
        held.callback(lock.release)
        self._note(held, table)

    def _note(self, held: contextlib.ExitStack, table: LakeTable) -> None:
        """Record an open write (`oldest_write_s`)."""
        if table not in self._writing:  # unless an outer context has
            self._writing[table] = time.monotonic()
            held.callback(self._writing.pop, table)

    def newest(self, cursor: Cursor, patience_s: float = -1) -> int:
        """Return the id of the newest committed snapshot, without a query of the lake if it is known.

        Waits for a running COMMIT, since other threads may see its changes already; raises TimeoutError when that takes
        longer than `patience_s` seconds, unless that is -1. The known id is right because only transactions of this
        class write the lake; a read-only server always queries the lake.
        """
        if not self._end_lock.acquire(timeout=patience_s):
            raise TimeoutError
        try:
            if self._newest is None or self.read_only:
                row = first_row(cursor.execute(f"SELECT max(snapshot_id) FROM {METADATA}.ducklake_snapshot"))
                assert row is not None
                self._newest = row[0]
            return self._newest
        finally:
            self._end_lock.release()

    def _delete_unfinished_files(self, cursor: Cursor, table: LakeTable, began: float) -> None:
        """Delete a table's files made since `began` that no snapshot knows, while no other thread writes the table.

        DuckLake (1.5.5) leaves an unfinished file behind, which is large when the disk is full.
        """
        with contextlib.suppress(duckdb.Error, OSError):
            directory = self._directory(cursor, table)
            files: list[Place] = [*directory.glob("*.parquet")] if directory else []
            present = [file for file in files if (made := made_at(file.name)) is not None and made >= began - 0.001]
            if present:
                tables = ("ducklake_data_file", "ducklake_delete_file", "ducklake_files_scheduled_for_deletion")
                query = " UNION ALL ".join(f"SELECT path FROM {METADATA}.{name}" for name in tables)
                known = {Path(path).name for (path,) in cursor.execute(query).fetchall()}
                for path in present:
                    if path.name not in known:
                        path.unlink(missing_ok=True)

    def _directory(self, cursor: Cursor, table: LakeTable) -> Place | None:
        """The directory where DuckLake writes a table's files; None for an unknown table."""
        located = locate(cursor, table)
        return below(self.data_path, located[1].rstrip("/")) if located is not None else None

    def schemas(self, cursor: Cursor) -> list[str]:
        """Return the committed schemas that hold users' relations."""
        rows = cursor.execute(
            f"SELECT schema_name FROM {METADATA}.ducklake_schema "
            f"WHERE end_snapshot IS NULL AND schema_name NOT IN ('main', '{SYSTEM_SCHEMA}')"
        ).fetchall()
        return [name for (name,) in rows]

    def oldest_write_s(self) -> float:
        """Return the age of the oldest open transaction, in seconds: DuckLake checks for conflicts since its start."""
        started = list(self._writing.values())
        return time.monotonic() - min(started) if started else 0.0

    def snapshot(self, cursor: Cursor) -> int:
        """Return the id of the newest committed snapshot."""
        row = first_row(cursor.execute("FROM ducklake_current_snapshot('lake')"))
        assert row is not None
        return row[0]

    def pin(self, before: int | None = None) -> int:
        """Return the newest snapshot, or an earlier one, and keeps it and all later ones until `unpin`.

        No lock is needed: snapshots as young as this one are kept anyway
        (`executor.maintenance.retention.Pace.settle_s`).
        """
        with contextlib.closing(self.cursor()) as cursor:
            newest = self.snapshot(cursor)
        snapshot = newest if before is None else min(before, newest)
        self.pinned.append(snapshot)
        return snapshot

    def unpin(self, snapshot: int | None) -> None:
        """Undo one `pin`; None does nothing."""
        if snapshot is not None:
            self.pinned.remove(snapshot)

    def changed_tables(self, cursor: Cursor, after: int, upto: int) -> ChangedTables:
        """Return the tables whose rows changed in snapshots `after < s <= upto`.

        Keys are (lake schema, table); a value is True if rows were deleted or updated.
        """
        return self.tables_of(cursor, changes_made(cursor, after, upto))

    def tables_of(self, cursor: Cursor, changes: Iterable[Change]) -> ChangedTables:
        """Return the tables whose rows changed, as `changed_tables`."""
        kinds: dict[int, bool] = {}
        for change in changes:
            if change.kind in ROW_CHANGES:
                kinds[change.table_id] = kinds.get(change.table_id, False) or ROW_CHANGES[change.kind]
        names = self.names_of(cursor, kinds)
        return {names[id_]: has_deletes for id_, has_deletes in kinds.items() if id_ in names}

    def names_of(self, cursor: Cursor, numbers: Collection[int]) -> dict[int, tuple[str, str]]:
        """Return (lake schema, table) by the lake's numbers of tables, without unknown ones."""
        if unknown := set(numbers) - self._table_names.keys():
            names = cursor.execute(
                f"SELECT t.table_id, s.schema_name, t.table_name FROM {METADATA}.ducklake_table t "
                f"JOIN {METADATA}.ducklake_schema s USING (schema_id) "
                f"WHERE t.table_id IN ({', '.join(map(str, unknown))})"
            ).fetchall()
            self._table_names |= {table_id: (schema, table) for table_id, schema, table in names}
        return {number: self._table_names[number] for number in numbers if number in self._table_names}

    def has_changed(self, cursor: Cursor, tables: Collection[LakeTable], after: int, upto: int | None = None) -> bool:
        """Return whether rows of these tables changed in snapshots `after < s <= upto`; None is the newest one.

        It reads in the cursor's transaction. Returns True also if some of the snapshots have expired.
        """
        if not tables:
            return False
        last = self.snapshot(cursor) if upto is None else upto
        if last <= after:
            return False
        if upto is not None and not is_kept(cursor, after, upto):
            return True
        changed = self.changed_tables(cursor, after, last)
        return any((table.schema, table.name) in changed for table in tables)


def without_lake() -> Cursor:
    """Return a DuckDB connection with no database attached."""
    return duckdb.connect(config=dict(_CONFIG))


def _last_commit_time(cursor: Cursor) -> int:
    """The commit time of Sparkwave's newest transaction, in microseconds since 1970; 0 without one."""
    cursor.execute(
        f"SELECT coalesce(max(try_cast(commit_extra_info AS BIGINT)), 0) FROM {METADATA}.ducklake_snapshot_changes"
    )
    row = first_row(cursor)
    return row[0] if row else 0


def _name(table: LakeTable) -> str:
    """The unique name by which the locks of tables are ordered."""
    return table.sql


@contextlib.contextmanager
def at_one_moment(cursor: Cursor) -> Iterator[None]:
    """A context in which the cursor reads one snapshot; else tables of the lake's catalog may appear and vanish."""
    cursor.execute("BEGIN")
    try:
        yield
    finally:
        rollback(cursor)


_UNITS = {"bytes": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30, "TiB": 1 << 40}


def _count_conflict(error: BaseException) -> None:
    if isinstance(error, duckdb.Error) and is_conflict(error):
        LAKE_CONFLICTS.inc()
