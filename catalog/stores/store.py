"""Reads Sparkwave's own relations as one `Catalog`, and writes those that have no `*_store` module.

Methods take the cursor of an open lake transaction, so that a change commits with the rows that it belongs to.
`catalog` is the newest committed catalog once `reload` has run after a commit.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import replace
from itertools import chain, count
from pathlib import Path
from typing import Any

from sparkwave.catalog import errors
from sparkwave.catalog.column_names import escaped
from sparkwave.catalog.errors import Error
from sparkwave.catalog.lake.ducklake import Cursor, Lake, at_one_moment, changes_made, first_row, is_kept
from sparkwave.catalog.lake.system_rows import SystemRows
from sparkwave.catalog.model import (
    CREATED,
    NO_BARRIERS,
    OVERWRITE,
    ROW_ID,
    Barriers,
    Catalog,
    Column,
    Conflict,
    Epoch,
    Relation,
    Watermark,
)
from sparkwave.catalog.names import DEFAULT_SCHEMA, SYSTEM_SCHEMA, LakeTable, quote, system_table
from sparkwave.catalog.redaction import redact
from sparkwave.catalog.relation_details import dump_details, dump_settings, load_details, load_settings
from sparkwave.catalog.sealing import KEY_FILE, load_secrets, open_cipher
from sparkwave.catalog.stores.column_store import load_columns, put_columns, replace_columns
from sparkwave.catalog.stores.comment_store import forget_comments, load_commented
from sparkwave.catalog.stores.connection_store import load_connections
from sparkwave.catalog.stores.function_store import load_functions
from sparkwave.catalog.stores.job_store import load_jobs
from sparkwave.catalog.stores.source_store import load_sources
from sparkwave.catalog.stores.subscription_store import load_subscriptions
from sparkwave.catalog.stores.type_store import load_types
from sparkwave.catalog.stores.user_store import (
    forget_grants,
    load_default_grants,
    load_grants,
    load_memberships,
    load_users,
    put_default_grants,
    put_grants,
)
from sparkwave.catalog.users import PUBLIC, ROOT, Grant, Securable, first_grants


def already_exists(relation: Relation) -> Error:
    """Return PostgreSQL's error for a name in use."""
    suffix = "" if relation.created else " and is still being created"
    return Error(f'relation "{relation.name}" already exists{suffix}', errors.DUPLICATE_TABLE)


def _made(column: Column) -> Column:
    """A column of a new table with its name in the lake."""
    name = column.lake_name if column.name == ROW_ID else escaped(column.lake_name)
    return column if name == column.name else replace(column, made_as=name)


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


class Store:
    """Holds the catalog in memory; reads it at the start and after each change."""

    def __init__(self, lake: Lake, key_file: Path | None = None) -> None:
        """Raise Error F0000 when the file with the key of secrets is unfit; None is the file in the data directory."""
        self.lake = lake
        self.cipher = open_cipher(key_file or lake.directory / KEY_FILE)
        self._cursor = lake.cursor_under_lock()
        self._rows = SystemRows(("relations", "columns", "jobs"))  # those that each CREATE changes
        self._columns: dict[int, tuple[Column, ...]] = {}
        self._commented: frozenset[int] = frozenset()  # the ids of objects with comments
        self._states: dict[int, list[str]] = {}  # the internal tables of jobs
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
                ({"grants"}, lambda: {"grants": load_grants(self._cursor)}),
                ({"default_grants"}, lambda: {"default_grants": load_default_grants(self._cursor)}),
                ({"subscriptions"}, lambda: {"subscriptions": load_subscriptions(self._cursor)}),
                ({"functions"}, lambda: {"functions": load_functions(self._cursor)}),
                ({"types"}, lambda: {"types": load_types(self._cursor)}),
                ({"sources"}, lambda: {"sources": load_sources(self._cursor)}),
                ({"secrets"}, lambda: {"secrets": load_secrets(self._cursor)}),
                ({"connections"}, lambda: {"connections": load_connections(self._cursor)}),
                ({"jobs"}, lambda: {"jobs": load_jobs(self._cursor, self._rows.relation(self._cursor, "jobs"))}),
            ):
                if not tables.isdisjoint(changed):
                    found |= load()
            if "identifiers" in changed:
                [(self._first_unused,)] = self._cursor.execute(f"SELECT max(next_id) FROM {_IDENTIFIERS}").fetchall()
            if "comments" in changed:
                self._commented = load_commented(self._cursor)
            if "states" in changed:
                query = f"SELECT job_id, list(name) FROM {system_table('states')} GROUP BY job_id"
                self._states = dict(self._cursor.execute(query).fetchall())
                found["internal_tables"] = {name: id_ for id_, names in self._states.items() for name in names}
        version = self.version + (not PROGRESS.issuperset(changed))
        self._changed |= dict.fromkeys(changed, version)
        self.version = version
        catalog = replace(self.catalog, **found)
        for watcher in self._watchers:
            watcher(catalog)
        self.catalog = catalog

    def _load_relations(self) -> dict[str, Any]:
        rows = self._cursor.execute(
            "SELECT id, database, schema, name, kind, definition, key, upstreams, created, initialized_at, "
            "append_only, watermark_column, watermark_delay_us, owner, lake_schema, lake_name, "
            f"coalesce(conflict, '{OVERWRITE}'), coalesce(version_columns, []), coalesce(dropped_columns, []), "
            "shown, details, replaces, defined_by, coalesce(planner, 1), fingerprint, streaming "
            f"FROM {self._rows.relation(self._cursor, 'relations')} ORDER BY id"
        ).fetchall()
        self._load_columns({row[0] for row in rows})
        relations = tuple(
            Relation(id_, database, schema, name, kind, self._columns[id_], tuple(key), definition, created,
                     tuple(upstreams), initialized_at, append_only, Watermark(column, delay) if column else None,
                     owner, LakeTable(lake_schema_, lake_name), Conflict(conflict, tuple(versions)), tuple(dropped),
                     shown, load_details(kind, details), replaces, defined_by, planner, fingerprint,
                     load_settings(streaming))
            for id_, database, schema, name, kind, definition, key, upstreams, created, initialized_at, append_only,
                column, delay, owner, lake_schema_, lake_name, conflict, versions, dropped, shown, details, replaces,
                defined_by, planner, fingerprint, streaming in rows
        )  # fmt: skip
        return {"relations": relations}

    def _load_databases(self) -> dict[str, Any]:
        schemas = self._cursor.execute(f"SELECT database, name, id, owner FROM {system_table('schemas')}").fetchall()
        databases = self._cursor.execute(
            "SELECT name, resource_group, id, owner, barrier_interval_ms, checkpoint_frequency "
            f"FROM {system_table('databases')}"
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
        memberships = load_memberships(self._cursor)
        return {"memberships": memberships, "users": load_users(self._cursor, memberships)}

    def _load_parameters(self) -> dict[str, Any]:
        rows = self._cursor.execute(f"SELECT name, value FROM {system_table('parameters')}").fetchall()
        return {"parameters": dict(rows)}

    def _load_columns(self, ids: set[int]) -> None:
        """Load the columns of relations that are new or were altered."""
        self._columns = {id_: columns for id_, columns in self._columns.items() if id_ in ids}
        new = ids - set(self._columns)
        if new:
            self._columns |= load_columns(self._cursor, new, self._rows.relation(self._cursor, "columns"))

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
        """As `next_id`, for an object that is stored later, together with `store_ids`."""
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

    def create_database(
        self, cursor: Cursor, name: str, resource_group: str, owner: str = ROOT, barriers: Barriers = NO_BARRIERS
    ) -> None:
        """Add a database with the schema `public`; every user may connect to the database and use the schema."""
        database, schema = self.next_id(cursor), self.next_id(cursor)
        cursor.execute(
            f"INSERT INTO {system_table('databases')} VALUES (?, ?, ?, ?, ?, ?)",
            [database, name, owner, resource_group, barriers.interval_ms, barriers.checkpoint_frequency],
        )
        cursor.execute(
            f"INSERT INTO {system_table('schemas')} VALUES (?, ?, '{DEFAULT_SCHEMA}', ?)", [schema, name, owner]
        )
        put_grants(cursor, (), (Grant(database, PUBLIC, "CONNECT", owner), Grant(schema, PUBLIC, "USAGE", owner)))

    def drop_database(self, cursor: Cursor, name: str, dropped: Collection[int]) -> None:
        """Remove a database and its schemas, whose relations (`dropped`, by id) this transaction has dropped."""
        gone = [s.id for key, s in self.catalog.securables.items() if key[0] == name]
        put_default_grants(cursor, (each for each in self.catalog.default_grants if each.database_id in gone), ())
        forget_grants(cursor, gone)
        forget_comments(cursor, gone)
        cursor.execute(f"DELETE FROM {system_table('schemas')} WHERE database = ?", [name])
        cursor.execute(f"DELETE FROM {system_table('databases')} WHERE name = ?", [name])
        self.drop_lake_schemas(cursor, dropped)

    def drop_lake_schemas(self, cursor: Cursor, dropped: Collection[int] = ()) -> None:
        """Drop the lake schemas that are empty once this transaction has dropped the relations `dropped` (ids)."""
        used = {r.lake_table.schema for r in self.catalog.relations if r.id not in dropped and r.is_stored}
        for schema in self.lake.schemas(cursor):
            if schema not in used:
                cursor.execute(f"DROP SCHEMA lake.{quote(schema)}")

    def set_database_group(self, cursor: Cursor, name: str, resource_group: str) -> None:
        """Move a database to a resource group, with its jobs that have no group of their own."""
        cursor.execute(
            f"UPDATE {system_table('databases')} SET resource_group = ? WHERE name = ?", [resource_group, name]
        )
        cursor.execute(
            f"UPDATE {system_table('jobs')} SET resource_group = ? WHERE specific_group IS NULL "
            f"AND (status = '{CREATED}' OR NOT is_serverless) "
            f"AND id IN (SELECT id FROM {system_table('relations')} WHERE database = ?)",
            [resource_group, name],
        )

    def set_barriers(self, cursor: Cursor, database: str, barriers: Barriers) -> None:
        """Store a database's own intervals."""
        cursor.execute(
            f"UPDATE {system_table('databases')} SET barrier_interval_ms = ?, checkpoint_frequency = ? WHERE name = ?",
            [barriers.interval_ms, barriers.checkpoint_frequency, database],
        )

    def create_relation(self, cursor: Cursor, relation: Relation) -> Relation:
        """Add a relation and its empty lake table, if it stores rows, and returns it with the lake table's name.

        Raises Error 42P07 for a name in use, 3F000.
        """
        taken = self.catalog.find(relation.database, relation.schema, relation.name)
        if taken is not None and taken.id != relation.replaces:
            raise already_exists(taken)
        if self.catalog.names_key(relation.database, relation.schema, relation.name):
            raise Error(f'relation "{relation.name}" already exists', errors.DUPLICATE_TABLE)
        is_there = (relation.database, relation.schema) in self.catalog.schemas
        if not is_there and not relation.is_temporary:  # this transaction may create the schema
            raise Error(f'schema "{relation.schema}" does not exist', errors.INVALID_SCHEMA_NAME)
        relation = replace(relation, made_as=self._free_lake_table(relation))
        if relation.is_table:
            relation = replace(relation, columns=tuple(map(_made, relation.columns)))
        cursor.execute(
            f"INSERT INTO {system_table('relations')} "
            "(id, database, schema, name, kind, definition, key, upstreams, created, owner, initialized_at, "
            "created_at, append_only, watermark_column, watermark_delay_us, lake_schema, lake_name, conflict, "
            "version_columns, details, replaces, planner, fingerprint, streaming) "
            f"VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, now(), {'now()' if relation.created else 'NULL'}, "
            "?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            [
                relation.id,
                relation.database,
                relation.schema,
                relation.name,
                relation.kind,
                relation.definition,
                list(relation.key),
                list(relation.upstreams),
                relation.created,
                relation.owner,
                relation.append_only,
                relation.watermark.column if relation.watermark else None,
                relation.watermark.delay if relation.watermark else None,
                relation.lake_table.schema,
                relation.lake_table.name,
                relation.conflict.action,
                list(relation.conflict.versions),
                dump_details(relation.details),
                relation.replaces,
                relation.planner,
                relation.fingerprint,
                dump_settings(relation.streaming) if relation.is_stored else None,
            ],
        )
        put_columns(cursor, relation.id, relation.columns)
        if relation.replaces is None:
            self.grant_first(cursor, relation.securable, relation.database, relation.schema)
        if relation.is_stored:
            # A view needs no constraints: its query guarantees them.
            stored = relation.stored if relation.is_table else [replace(c, not_null=False) for c in relation.stored]
            cursor.execute(f"CREATE SCHEMA IF NOT EXISTS lake.{quote(relation.lake_table.schema)}")
            self.create_table(cursor, relation.lake_name, tuple(stored))
        return relation

    def grant_first(self, cursor: Cursor, thing: Securable, database: str, schema: str | None) -> None:
        """Store the grants that a new object has from the start."""
        holders = [self.catalog.securables.get(key) for key in ((database,), (database, schema or ""))]
        database_id, schema_id = (holder.id if holder is not None else None for holder in holders)
        put_grants(cursor, (), first_grants(self.catalog.default_grants, thing, database_id, schema_id))

    def replace_columns(self, cursor: Cursor, relation: Relation) -> None:
        """Store the columns of a relation in place of its old ones."""
        self._columns.pop(relation.id, None)
        replace_columns(cursor, relation)

    def put_fingerprint(self, cursor: Cursor, relation_id: int, text: str) -> None:
        """Store the fingerprint of a relation's plan."""
        cursor.execute(f"UPDATE {system_table('relations')} SET fingerprint = ? WHERE id = ?", [text, relation_id])

    def put_settings(self, cursor: Cursor, relation: Relation) -> None:
        """Store the streaming settings of a relation."""
        query = f"UPDATE {system_table('relations')} SET streaming = ? WHERE id = ?"
        cursor.execute(query, [dump_settings(relation.streaming), relation.id])

    def put_details(self, cursor: Cursor, relation: Relation) -> None:
        """Store the details of a relation."""
        query = f"UPDATE {system_table('relations')} SET details = ? WHERE id = ?"
        cursor.execute(query, [dump_details(relation.details), relation.id])

    def alter_columns(self, cursor: Cursor, relation: Relation) -> None:
        """Store a table after ALTER TABLE: its columns, and the fields that name columns."""
        self.replace_columns(cursor, relation)
        cursor.execute(
            f"UPDATE {system_table('relations')} SET key = ?, definition = ?, watermark_column = ?, "
            "watermark_delay_us = ?, version_columns = ?, dropped_columns = ?, details = ? WHERE id = ?",
            [
                list(relation.key),
                relation.definition,
                relation.watermark.column if relation.watermark else None,
                relation.watermark.delay if relation.watermark else None,
                list(relation.conflict.versions),
                list(relation.dropped),
                dump_details(relation.details),
                relation.id,
            ],
        )

    def put_view(self, cursor: Cursor, relation: Relation) -> None:
        """Store a plain view after CREATE OR REPLACE VIEW: its query and columns."""
        self.replace_columns(cursor, relation)
        query = f"UPDATE {system_table('relations')} SET definition = ?, upstreams = ?, planner = ? WHERE id = ?"
        cursor.execute(query, [relation.definition, list(relation.upstreams), relation.planner, relation.id])

    def _free_lake_table(self, relation: Relation) -> LakeTable:
        """The relation's own name, with its id at the end if a lake table of another relation has the name already."""
        own = relation.lake_table
        # If two spellings of a name differ in case, the lake uses the first.
        spelled = {schema.lower(): schema for schema in self.lake.schemas(self._cursor)}
        own = replace(own, schema=spelled.get(own.schema, own.schema))
        taken = {(t.schema, t.name.lower()) for t in (r.lake_table for r in self.catalog.relations)}
        names = chain((own.name, f"{own.name}_{relation.id}"), (f"{own.name}_{relation.id}_{n}" for n in count()))
        return replace(own, name=next(name for name in names if (own.schema, name.lower()) not in taken))

    def create_table(self, cursor: Cursor, name: str, columns: tuple[Column, ...]) -> None:
        """Create a lake table without a relation, for the state of an operator."""
        listed = ", ".join(
            f"{quote(column.lake_name)} {column.type.in_lake()}{' NOT NULL' if column.not_null else ''}"
            for column in columns
        )
        cursor.execute(f"CREATE TABLE {name} ({listed})")

    def add_state(self, cursor: Cursor, job: Relation, internal: str, columns: tuple[Column, ...]) -> None:
        """Create an internal table of a job."""
        self.create_table(cursor, replace(job.lake_table, name=internal).sql, columns)
        cursor.execute(f"INSERT INTO {system_table('states')} VALUES (?, ?)", [job.id, internal])

    def drop_tables(self, cursor: Cursor, relation: Relation) -> None:
        """Drop the lake tables of a relation and its job."""
        for state in self._states.get(relation.id, ()):
            cursor.execute(f"DROP TABLE IF EXISTS {replace(relation.lake_table, name=state).sql}")
        cursor.execute(f"DROP TABLE IF EXISTS {relation.lake_name}")

    def drop_relation(self, cursor: Cursor, relation: Relation) -> None:
        """Remove a relation, its job and all their rows.

        DELETE is the slowest statement of a lake, so it runs only where there are rows. Rows of the dropped relation
        that no query reads are deleted later (`catalog.lake.leftovers`).
        """
        id_ = relation.id
        self.drop_tables(cursor, relation)
        for table, column, has_rows in (
            ("relations", "id", True),
            ("columns", "relation_id", True),
            ("jobs", "id", relation.is_streaming),
            ("states", "job_id", id_ in self._states),
            ("subscriptions", "relation_id", relation.is_subscription),
            ("sequences", "relation_id", relation.is_sequence),
            ("sources", "relation_id", id_ in self.catalog.sources),
            ("source_splits", "relation_id", id_ in self.catalog.sources),
            ("source_failures", "relation_id", id_ in self.catalog.sources),
        ):
            if has_rows:
                cursor.execute(f"DELETE FROM {system_table(table)} WHERE {column} = ?", [id_])
        if any(grant.object_id == id_ for grant in self.catalog.grants):
            forget_grants(cursor, (id_,))
        forget_comments(cursor, self._commented & relation.commented_ids)

    def epoch(self, cursor: Cursor) -> Epoch:
        """Return the epoch that every created view has applied; neither of its numbers ever falls."""
        row = first_row(cursor.execute(f"SELECT max(snapshot), max(time_us) FROM {system_table('epoch')}"))
        assert row is not None
        return Epoch(*row)

    def set_epoch(self, cursor: Cursor, epoch: Epoch) -> None:
        """Store a new epoch in a new row: a DELETE of the old one would cost a checkpoint as much as a view does."""
        cursor.execute(f"INSERT INTO {system_table('epoch')} VALUES (?, ?)", [epoch.snapshot, epoch.time_us])

    def set_parameter(self, cursor: Cursor, name: str, value: str | None) -> None:
        """Store a system parameter or a default of a session variable; None removes it."""
        cursor.execute(f"DELETE FROM {system_table('parameters')} WHERE name = ?", [name])
        if value is not None:
            cursor.execute(f"INSERT INTO {system_table('parameters')} VALUES (?, ?)", [name, value])

    def add_event(self, cursor: Cursor, event_type: str, job_id: int | None, info: Mapping[str, object]) -> None:
        """Add an event to RisingWave's event log (proto/meta.proto, EventLog)."""
        shown = {name: redact(value) if isinstance(value, str) else value for name, value in info.items()}
        cursor.execute(
            f"INSERT INTO {system_table('events')} VALUES (now(), ?, ?, ?)", [event_type, job_id, json.dumps(shown)]
        )
