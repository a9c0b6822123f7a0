"""Reads Sparkwave's own relations as one `Catalog`; the `*_store` modules write them.

Their functions take the cursor of an open lake transaction, so that a change commits with the rows that it belongs to.
`catalog` is the newest committed catalog once `reload` has run after a commit.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import replace
from itertools import chain, count
from pathlib import Path
from typing import Any

from sparkwave.catalog.lake.ducklake import Cursor, Lake, at_one_moment
from sparkwave.catalog.lake.snapshot_changes import changes_made, is_kept
from sparkwave.catalog.lake.system_rows import SystemRows
from sparkwave.catalog.model import (
    OVERWRITE,
    Barriers,
    Catalog,
    Column,
    Conflict,
    Relation,
    SystemColumns,
    Watermark,
)
from sparkwave.catalog.names import SYSTEM_SCHEMA, LakeTable, system_table
from sparkwave.catalog.relation_details import load_details, load_settings
from sparkwave.catalog.sealing import KEY_FILE, load_secrets, open_cipher
from sparkwave.catalog.stores.column_store import load_columns, replace_columns
from sparkwave.catalog.stores.comment_store import load_commented
from sparkwave.catalog.stores.connection_store import load_connections
from sparkwave.catalog.stores.function_store import load_functions
from sparkwave.catalog.stores.job_store import load_jobs
from sparkwave.catalog.stores.source_store import load_sources
from sparkwave.catalog.stores.subscription_store import load_subscriptions
from sparkwave.catalog.stores.type_store import load_types
from sparkwave.catalog.stores.user_store import (
    load_default_grants,
    load_grants,
    load_memberships,
    load_users,
)
from sparkwave.catalog.users import Securable

# From the lowest OID of a relation of pg_catalog (pg_tablespace) to the first of users' objects in PostgreSQL.
_FIRST_FREE_OID = 16384
_CATALOG_OIDS = range(1213, _FIRST_FREE_OID)

_IDENTIFIERS = system_table("identifiers")
# So many ids are stored as used at a time; those that are never given are lost at a restart.
_IDS_AT_A_TIME = 32
# The system tables with the progress of jobs and sources.
PROGRESS = {
    "jobs", "slices", "finished_slices", "positions", "epoch", "events", "applications", "source_splits",
    "source_failures", "compute_errors", "view_checksums", "view_audits", "sequences", "measured_backfills",
}  # fmt: skip
# The system tables that a store holds in memory.
LOADED = {
    "relations", "columns", "jobs", "schemas", "databases", "parameters", "users", "memberships", "grants",
    "default_grants", "subscriptions", "functions", "types", "sources", "secrets", "connections", "comments",
    "states", "identifiers",
}  # fmt: skip

# By system table what reads it for the catalog's field of the same name, from SQL of its present rows.
_LOADERS: dict[str, Callable[[Cursor, str], Any]] = {
    "grants": load_grants,
    "default_grants": load_default_grants,
    "subscriptions": load_subscriptions,
    "functions": load_functions,
    "types": load_types,
    "sources": load_sources,
    "secrets": load_secrets,
    "connections": load_connections,
    "jobs": load_jobs,
}


class Store:
    """Holds the catalog in memory; reads it at the start and after each change."""

    def __init__(self, lake: Lake, key_file: Path | None = None) -> None:
        """Raise Error F0000 when the file with the key of secrets is unfit; None is the file in the data directory."""
        self.lake = lake
        self.cipher = open_cipher(key_file or lake.directory / KEY_FILE)
        self._cursor = lake.cursor_under_lock()
        self._rows = SystemRows(LOADED)
        self._columns: dict[int, tuple[Column, ...]] = {}
        self._relations: dict[int, tuple[tuple[Any, ...], Relation]] = {}  # with the rows that they are made of
        self.commented: frozenset[int] = frozenset()  # the ids of objects with comments
        self.states: dict[int, list[str]] = {}  # the internal tables of jobs
        self._next_id = 0  # the least that this server may give, once it has given an id
        self._first_unused = 0  # smaller ids are stored as used
        self.catalog = Catalog()
        self.version = 0  # grows with each change except the progress of jobs
        self._changed: dict[str, int] = {}  # the version of the last change of each system table
        self._watchers: list[Callable[[Catalog], None]] = []
        with lake.exclusive():
            self._snapshot = lake.snapshot(self._cursor)
            self._load(LOADED)

    def watch(self, watcher: Callable[[Catalog], None]) -> None:
        """Call the watcher with the present catalog, and with each new one before any other reader sees it."""
        with self.lake.exclusive():
            watcher(self.catalog)
            self._watchers.append(watcher)

    def show_system(self, columns: SystemColumns) -> None:
        """Let the catalog, and each later one, have the columns of system relations."""
        with self.lake.exclusive():
            self.catalog = replace(self.catalog, system_columns=columns)

    @property
    def snapshot(self) -> int:
        """The snapshot of `catalog`."""
        return self._snapshot

    def reload(self) -> None:
        """Read the changes committed since the last time, by reading the changed tables again."""
        with self.lake.exclusive():
            snapshot = self.lake.newest(self._cursor)
            if is_kept(self._cursor, self._snapshot, snapshot):
                changes = changes_made(self._cursor, self._snapshot, snapshot)
                self._rows.follow(changes)
                tables = self.lake.tables_of(self._cursor, changes)
                changed = {table for schema, table in tables if schema == SYSTEM_SCHEMA}
            else:  # another server has written meanwhile and expired those snapshots
                self._rows.forget()
                changed = LOADED
            if self.lake.read_only and "columns" in changed:
                self._columns = {}  # only the writer knows whose columns have changed
            self._load(changed)
            self._snapshot = snapshot

    def changed_since(self, version: int) -> set[str]:
        """Return the system tables, other than those with progress, whose rows have changed since a version."""
        return {table for table, changed in self._changed.items() if changed > version}

    def follow(self) -> None:
        """Call `reload` if another server has committed since."""
        with self.lake.exclusive():
            if self.lake.newest(self._cursor) != self._snapshot:
                self.reload()

    def _load(self, changed: Collection[str]) -> None:
        """Read the changed system tables in one transaction, so that all rows are of one snapshot."""
        found: dict[str, Any] = {}
        with at_one_moment(self._cursor):
            for tables, load in (
                ({"relations", "columns"}, self._load_relations),
                ({"schemas", "databases"}, self._load_databases),
                ({"parameters"}, self._load_parameters),
                ({"users", "memberships"}, self._load_users),
            ):
                if not tables.isdisjoint(changed):
                    found |= load()
            for table, read in _LOADERS.items():
                if table in changed:
                    found[table] = read(self._cursor, self._stored(table))
            if "identifiers" in changed:
                [(self._first_unused,)] = self._cursor.execute(
                    f"SELECT max(next_id) FROM {self._stored('identifiers')}"
                ).fetchall()
            if "comments" in changed:
                self.commented = load_commented(self._cursor, self._stored("comments"))
            if "states" in changed:
                query = f"SELECT job_id, list(name) FROM {self._stored('states')} GROUP BY job_id"
                self.states = dict(self._cursor.execute(query).fetchall())
                found["internal_tables"] = {name: id_ for id_, names in self.states.items() for name in names}
        version = self.version + (not PROGRESS.issuperset(changed))
        self._changed |= dict.fromkeys(changed, version)
        self.version = version
        catalog = replace(self.catalog, **found)
        for watcher in self._watchers:
            watcher(catalog)
        self.catalog = catalog

    def _stored(self, table: str) -> str:
        """Return SQL of a system table's present rows, to be read in the transaction of `_load`."""
        return self._rows.relation(self._cursor, table)

    def _load_relations(self) -> dict[str, Any]:
        rows = self._cursor.execute(
            "SELECT id, database, schema, name, kind, definition, key, upstreams, created, initialized_at, "
            "append_only, watermark_column, watermark_delay_us, owner, lake_schema, lake_name, "
            f"coalesce(conflict, '{OVERWRITE}'), coalesce(version_columns, []), coalesce(dropped_columns, []), "
            "shown, details, replaces, defined_by, coalesce(planner, 1), fingerprint, streaming "
            f"FROM {self._stored('relations')} ORDER BY id"
        ).fetchall()
        self._load_columns({row[0] for row in rows})
        self._relations = {row[0]: (row, self._relation(row)) for row in rows}
        return {"relations": tuple(relation for _, relation in self._relations.values())}

    def _relation(self, row: tuple[Any, ...]) -> Relation:
        """Return the relation of a row of `relations`: the present one, unless the row or the columns have changed."""
        columns = self._columns[row[0]]
        before, relation = self._relations.get(row[0], ((), None))
        if relation is not None and before == row and relation.columns is columns:
            return relation
        (
            id_, database, schema, name, kind, definition, key, upstreams, created, initialized_at, append_only,
            column, delay, owner, lake_schema, lake_name, conflict, versions, dropped, shown, details, replaces,
            defined_by, planner, fingerprint, streaming,
        ) = row  # fmt: skip
        return Relation(
            id_, database, schema, name, kind, columns, tuple(key), definition, created, tuple(upstreams),
            initialized_at, append_only, Watermark(column, delay) if column else None, owner,
            LakeTable(lake_schema, lake_name), Conflict(conflict, tuple(versions)), tuple(dropped), shown,
            load_details(kind, details), replaces, defined_by, planner, fingerprint, load_settings(streaming),
        )  # fmt: skip

    def _load_databases(self) -> dict[str, Any]:
        schemas = self._cursor.execute(f"SELECT database, name, id, owner FROM {self._stored('schemas')}").fetchall()
        databases = self._cursor.execute(
            "SELECT name, resource_group, id, owner, barrier_interval_ms, checkpoint_frequency "
            f"FROM {self._stored('databases')}"
        ).fetchall()
        securables: dict[tuple[str, ...], Securable] = {
            (name,): Securable("database", id_, name, owner) for name, _, id_, owner, *_ in databases
        }
        securables |= {
            (database, name): Securable("schema", id_, name, owner) for database, name, id_, owner in schemas
        }
        return {
            "schemas": frozenset((database, name) for database, name, *_ in schemas),
            "databases": {name: group for name, group, *_ in databases},
            "barriers": {name: Barriers(interval, frequency) for name, *_, interval, frequency in databases},
            "securables": securables,
        }

    def _load_users(self) -> dict[str, Any]:
        memberships = load_memberships(self._cursor, self._stored("memberships"))
        return {"memberships": memberships, "users": load_users(self._cursor, self._stored("users"), memberships)}

    def _load_parameters(self) -> dict[str, Any]:
        rows = self._cursor.execute(f"SELECT name, value FROM {self._stored('parameters')}").fetchall()
        return {"parameters": dict(rows)}

    def _load_columns(self, ids: set[int]) -> None:
        """Load the columns of relations that are new or were altered."""
        self._columns = {id_: columns for id_, columns in self._columns.items() if id_ in ids}
        new = ids - set(self._columns)
        if new:
            self._columns |= load_columns(self._cursor, new, self._stored("columns"))

    @contextlib.contextmanager
    def change(self, cursor: Cursor | None = None, writes: Iterable[LakeTable] = ()) -> Iterator[Cursor]:
        """A transaction of catalog changes, on `cursor` if given; afterwards `catalog` includes the changes.

        `writes` is as in `Lake.transaction`.
        """
        with self.lake.exclusive():
            with self.lake.transaction(cursor or self.lake.cursor(), writes) as opened:
                yield opened
            self.reload()

    def next_id(self, cursor: Cursor, least: int = 0) -> int:
        """Return an id that no object has had, from `least` on, and store in the cursor's transaction that it is used.

        Clients see ids as OIDs, so the OIDs of PostgreSQL's own catalogs are skipped.
        """
        id_ = self.new_id(least)
        self.store_ids(cursor)
        return id_

    def new_id(self, least: int = 0) -> int:
        """Return the next id for an object that is stored later, together with `store_ids`."""
        with self.lake.exclusive():
            self._next_id = self._next_id or self._first_unused
            id_ = _FIRST_FREE_OID if self._next_id in _CATALOG_OIDS else max(self._next_id, least)
            self._next_id = id_ + 1  # even if the object is never stored
        return id_

    def store_ids(self, cursor: Cursor) -> None:
        """Store that all ids given so far are used, and the next ones, unless that is stored already."""
        if self._next_id > self._first_unused:
            cursor.execute(f"INSERT INTO {_IDENTIFIERS} VALUES (?)", [self._next_id + _IDS_AT_A_TIME])

    def next_type_id(self, cursor: Cursor) -> int:
        """Return an id that is no OID of PostgreSQL's types; the next two ids are reserved too."""
        first, _, _ = (self.next_id(cursor, _FIRST_FREE_OID) for _ in range(3))
        return first

    def replace_columns(self, cursor: Cursor, relation: Relation) -> None:
        """Store the columns of a relation in place of its old ones."""
        self._columns.pop(relation.id, None)
        replace_columns(cursor, relation)

    def free_lake_table(self, relation: Relation) -> LakeTable:
        """The relation's own name, with its id at the end if a lake table of another relation has the name already."""
        own = relation.lake_table
        # If two spellings of a name differ in case, the lake uses the first.
        spelled = {schema.lower(): schema for schema in self.lake.schemas(self._cursor)}
        own = replace(own, schema=spelled.get(own.schema, own.schema))
        taken = {(t.schema, t.name.lower()) for t in (r.lake_table for r in self.catalog.relations)}
        names = chain((own.name, f"{own.name}_{relation.id}"), (f"{own.name}_{relation.id}_{n}" for n in count()))
        return replace(own, name=next(name for name in names if (own.schema, name.lower()) not in taken))
