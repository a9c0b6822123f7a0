"""CREATE, DROP, ALTER and USE DATABASE."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace

from sparkwave.catalog import errors
from sparkwave.catalog.errors import Error
from sparkwave.catalog.lake.ducklake import Cursor
from sparkwave.catalog.model import DEFAULT_GROUP, NO_BARRIERS, Barriers, Catalog, Relation
from sparkwave.catalog.names import DEFAULT_DATABASE
from sparkwave.catalog.sealing import drop_secret
from sparkwave.catalog.stores.connection_store import drop_connection
from sparkwave.catalog.stores.database_store import forget_database, put_database, set_barriers, set_database_group
from sparkwave.catalog.stores.function_store import drop_functions_in
from sparkwave.catalog.stores.placing import place
from sparkwave.catalog.stores.placing import rename_database as put_database_name
from sparkwave.catalog.stores.type_store import drop_types_in
from sparkwave.catalog.users import Securable
from sparkwave.planner.bind.privileges import check_owner, find_user, permission_denied
from sparkwave.planner.definitions.stored_definitions import in_database
from sparkwave.planner.statements import (
    AlterDatabase,
    AlterDatabaseParameter,
    CreateDatabase,
    DatabaseParameter,
    DropDatabase,
    RenameDatabase,
    UseDatabase,
)
from sparkwave.server.session.backends import Backend
from sparkwave.server.session.session import Session
from sparkwave.server.session.variables import SYSTEM, normalise
from sparkwave.server.wire.result import Notice, Result


def create_database(session: Session, statement: CreateDatabase) -> Result:
    """Create a database with the schema `public` and a resource group for its views.

    Raises Error 42P04, 42704, 22023 or 42501.
    """
    me = session.user
    if not (me.is_super or me.create_db):
        raise permission_denied("permission denied to create database")
    group = statement.group or DEFAULT_GROUP
    session.context.groups.check_exists(group)
    store, barriers = session.context.store, _barriers(NO_BARRIERS, statement.parameters)
    with store.change() as cursor:
        if statement.name not in store.catalog.databases:
            put_database(store, cursor, statement.name, group, _owner(session, statement.owner), barriers)
            return Result("CREATE_DATABASE", notices=_told(statement.parameters))
    if not statement.if_not_exists:
        raise Error(
            f'database "{statement.name}" already exists', errors.DUPLICATE_DATABASE, position=statement.position
        )
    return Result("CREATE_DATABASE", notices=[Notice(f'database "{statement.name}" already exists, skipping')])


def drop_database(session: Session, statement: DropDatabase) -> Result:
    """Drop a database with all its objects; no session may be connected to it.

    Raises Error 3D000, 42501, 55006, or 2BP01 when an object in another database depends on one in it.
    """
    store = session.context.store
    if statement.name not in store.catalog.databases:
        if statement.if_exists:
            return Result("DROP_DATABASE", notices=[Notice(f'database "{statement.name}" does not exist, skipping')])
        raise _unknown(statement.name, statement.position)
    check_owner(session.user, store.catalog.securables[statement.name,], statement.position)
    if statement.name == session.database:
        raise Error("cannot drop the currently open database", errors.OBJECT_IN_USE, position=statement.position)
    _wait_until_unused(session, statement.name)
    _refuse_in_use(session, statement.name, statement.position)
    inside = [relation for relation in store.catalog.relations if relation.database == statement.name]
    _refuse_referenced(store.catalog, inside, statement)
    ids = {relation.id for relation in inside}

    def remove(cursor: Cursor) -> None:
        _refuse_in_use(session, statement.name, statement.position)
        if any(r.database == statement.name and r.id not in ids for r in store.catalog.relations):
            message = "something has just been made in what is to be dropped"
            raise Error(message, errors.NOT_IN_PREREQUISITE_STATE, hint="Try again.")
        for schema in {f.schema for f in store.catalog.functions if f.database == statement.name}:
            drop_functions_in(cursor, statement.name, schema)
        for schema in {t.schema for t in store.catalog.types if t.database == statement.name}:
            drop_types_in(cursor, statement.name, schema)
        schemas = {s.id for key, s in store.catalog.securables.items() if key[0] == statement.name}
        for secret in store.catalog.secrets.values():
            if secret.schema_id in schemas:
                drop_secret(cursor, secret)
        for connection in store.catalog.connections.values():
            if connection.schema_id in schemas:
                drop_connection(cursor, connection)
        forget_database(store, cursor, statement.name, ids)

    session.context.jobs.drop(inside, remove)
    return Result("DROP_DATABASE")


def _refuse_referenced(catalog: Catalog, inside: list[Relation], statement: DropDatabase) -> None:
    """Raise Error 2BP01, in RisingWave's words, when an object in another database reads one of the relations."""
    found = [d for r in inside for d in catalog.dependents(r.id) if d.database != statement.name]
    if found:
        raise Error(
            f"Referenced by other objects in database {found[0].database}, please drop them manually",
            errors.DEPENDENT_OBJECTS_STILL_EXIST,
            detail="\n".join(f"{d.kind} {d.database}.{d.qualified_name} depends on it" for d in found),
            position=statement.position,
        )


def alter_database(session: Session, statement: AlterDatabase) -> Result:
    """Move a database to a resource group, with its views that have no group of their own.

    Raises Error 3D000 or 42704.
    """
    group = statement.group or DEFAULT_GROUP
    session.context.groups.check_exists(group)
    store = session.context.store
    with store.change() as cursor:
        if statement.name not in store.catalog.databases:
            raise _unknown(statement.name, statement.position)
        check_owner(session.user, store.catalog.securables[statement.name,], statement.position)
        set_database_group(cursor, statement.name, group)
    return Result("ALTER_DATABASE")


def alter_database_parameter(session: Session, statement: AlterDatabaseParameter) -> Result:
    """Give a database its own barrier interval or checkpoint frequency, or remove it.

    Raises Error 3D000, 42501 or 22023.
    """
    store = session.context.store
    with store.change() as cursor:
        found = find_database(session, statement.name, statement.position)
        barriers = _barriers(store.catalog.barriers[found.name], (statement.parameter,))
        set_barriers(cursor, found.name, barriers)
    return Result("ALTER_DATABASE", notices=_told((statement.parameter,)))


_FIELDS = {"barrier_interval_ms": "interval_ms", "checkpoint_frequency": "checkpoint_frequency"}
# From these values on RisingWave warns (src/common/src/system_param/mod.rs).
_LARGE = {
    "barrier_interval_ms": (300_000, "Barrier interval is set to {} ms >= {} ms."),
    "checkpoint_frequency": (60, "Checkpoint frequency is set to {} >= {}."),
}


def _barriers(before: Barriers, parameters: Sequence[DatabaseParameter]) -> Barriers:
    """Return the intervals with these parameters. Raises Error 22023 for a value that a parameter cannot have."""
    found = before
    for each in parameters:
        try:
            value = None if each.value is None else int(normalise(SYSTEM[each.name], each.value))
        except Error as error:
            error.position = each.position
            raise
        found = replace(found, **{_FIELDS[each.name]: value})
    return found


def _told(parameters: Sequence[DatabaseParameter]) -> list[Notice]:
    notices = []
    for each in parameters:
        least, text = _LARGE[each.name]
        if each.value is not None and int(each.value) >= least:
            hurts = "This can hurt freshness and potentially cause OOM."
            notices.append(Notice(f"{text.format(each.value, least)} {hurts}"))
    return notices


def rename_database(session: Session, statement: RenameDatabase) -> Result:
    """Rename a database, also in the definitions that name it; no session may be connected to it.

    Raises Error 3D000, 42501, 42P04, 55006, or 0A000 for the session's database and the default database.
    """
    store = session.context.store
    with store.change() as cursor:
        catalog = store.catalog
        thing = find_database(session, statement.name, statement.position)
        me = session.user
        if not (me.is_super or me.create_db):
            raise permission_denied("permission denied to rename database")
        if statement.new_name in catalog.databases:
            message = f'database "{statement.new_name}" already exists'
            raise Error(message, errors.DUPLICATE_DATABASE, position=statement.new_position)
        if thing.name in (session.database, DEFAULT_DATABASE):
            which = "current" if thing.name == session.database else "default"
            message = f"{which} database cannot be renamed"
            raise Error(message, errors.FEATURE_NOT_SUPPORTED, position=statement.position)
        _refuse_in_use(session, thing.name, statement.position)
        inside = in_database(catalog, thing.name, statement.new_name)
        _refuse_creating(inside, statement.position)
        put_database_name(cursor, thing, statement.new_name)
        place(cursor, inside)
    return Result("ALTER_DATABASE")


def _refuse_creating(relations: list[Relation], position: int) -> None:
    creating = [relation for relation in relations if not relation.created]
    if creating:
        raise Error(
            "a database with streaming jobs that are still being created cannot be renamed",
            errors.OBJECT_IN_USE,
            detail="\n".join(f"{r.kind} {r.qualified_name} is still being created" for r in creating),
            hint=f"WAIT for them, or CANCEL JOBS {', '.join(str(r.id) for r in creating)}",
            position=position,
        )


def _backends(session: Session, name: str) -> list[Backend]:
    return [backend for backend in session.context.backends.all() if backend.session.database == name]


def _wait_until_unused(session: Session, name: str) -> None:
    """Wait up to five seconds for ending sessions, as PostgreSQL does (CountOtherDBBackends)."""
    deadline = time.monotonic() + 5
    while _backends(session, name) and time.monotonic() < deadline:
        session.running.check()
        time.sleep(0.1)


def _refuse_in_use(session: Session, name: str, position: int) -> None:
    others = _backends(session, name)
    if others:
        raise Error(
            f'database "{name}" is being accessed by other users',
            errors.OBJECT_IN_USE,
            detail=f"There {'is 1 other session' if len(others) == 1 else f'are {len(others)} other sessions'} "
            "using the database.",
            position=position,
        )


def find_database(session: Session, name: str, position: int) -> Securable:
    """Return the database of a name, if the user owns it. Raises Error 3D000 or 42501."""
    found = session.context.store.catalog.securables.get((name,))
    if found is None:
        raise _unknown(name, position)
    check_owner(session.user, found, position)
    return found


def use_database(session: Session, statement: UseDatabase) -> Result:
    """Go on in another database. Raises Error 3D000, 42501, 25001, or 55006 for a session with temporary tables."""
    try:
        session.use_database(statement.name)
    except Error as error:
        error.position = statement.position
        raise
    return Result(statement.tag)


def _owner(session: Session, name: str | None) -> str:
    """Return the owner of a new database. Only a superuser may name another user."""
    me = session.user
    if name is None or name == me.name:
        return me.name
    if not me.is_super:
        raise permission_denied(f'must be superuser to create a database owned by "{name}"')
    return find_user(session.context.store.catalog, name).name


def _unknown(name: str, position: int) -> Error:
    return Error(f'database "{name}" does not exist', errors.INVALID_CATALOG_NAME, position=position)
