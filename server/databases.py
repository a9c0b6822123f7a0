"""CREATE, DROP and ALTER DATABASE."""

from __future__ import annotations

from catalog import errors
from catalog.errors import Error
from catalog.model import DEFAULT_GROUP
from planner.privileges import check_owner, find_user, permission_denied
from planner.statements import AlterDatabase, CreateDatabase, DropDatabase
from server.result import Notice, Result
from server.session import Session


def create_database(session: Session, statement: CreateDatabase) -> Result:
    """A database with the schema `public`, whose views run in a resource group. Raises Error 42P04, 42704 or 42501."""
    me = session.user
    if not (me.is_super or me.create_db):
        raise permission_denied("permission denied to create database")
    group = statement.group or DEFAULT_GROUP
    session.context.groups.check_exists(group)
    store = session.context.store
    with store.change() as cursor:
        if statement.name not in store.catalog.databases:
            store.create_database(cursor, statement.name, group, _owner(session, statement.owner))
            return Result("CREATE_DATABASE")
    if not statement.if_not_exists:
        raise Error(
            f'database "{statement.name}" already exists', errors.DUPLICATE_DATABASE, position=statement.position
        )
    return Result("CREATE_DATABASE", notices=[Notice(f'database "{statement.name}" already exists, skipping')])


def drop_database(session: Session, statement: DropDatabase) -> Result:
    """Drop an empty database. Raises Error 3D000, 42501, 55006 for the current one, 2BP01 when it has relations."""
    store = session.context.store
    if statement.name not in store.catalog.databases:
        if statement.if_exists:
            return Result("DROP_DATABASE", notices=[Notice(f'database "{statement.name}" does not exist, skipping')])
        raise _unknown(statement.name, statement.position)
    check_owner(session.user, store.catalog.securables[statement.name,], statement.position)
    if statement.name == session.database:
        raise Error("cannot drop the currently open database", errors.OBJECT_IN_USE, position=statement.position)
    with store.change() as cursor:
        relations = [r.qualified_name for r in store.catalog.relations if r.database == statement.name]
        relations += [f.qualified_name for f in store.catalog.functions if f.database == statement.name]
        if relations:
            raise Error(
                f'cannot drop database "{statement.name}" because it is not empty',
                errors.DEPENDENT_OBJECTS_STILL_EXIST,
                detail=f"It has {', '.join(relations[:10])}{', …' if len(relations) > 10 else ''}.",
                hint="Drop them first.",
                position=statement.position,
            )
        store.drop_database(cursor, statement.name)
    return Result("DROP_DATABASE")


def alter_database(session: Session, statement: AlterDatabase) -> Result:
    """Move a database, and its views without a resource group of their own, to one. Raises Error 3D000 or 42704."""
    group = statement.group or DEFAULT_GROUP
    session.context.groups.check_exists(group)
    store = session.context.store
    with store.change() as cursor:
        if statement.name not in store.catalog.databases:
            raise _unknown(statement.name, statement.position)
        check_owner(session.user, store.catalog.securables[statement.name,], statement.position)
        store.set_database_group(cursor, statement.name, group)
    return Result("ALTER_DATABASE")


def _owner(session: Session, name: str | None) -> str:
    """Who will own a new database; another than the session's user only if a superuser says so."""
    me = session.user
    if name is None or name == me.name:
        return me.name
    if not me.is_super:
        raise permission_denied(f'must be superuser to create a database owned by "{name}"')
    return find_user(session.context.store.catalog, name).name


def _unknown(name: str, position: int) -> Error:
    return Error(f'database "{name}" does not exist', errors.INVALID_CATALOG_NAME, position=position)
