"""CREATE, ALTER and DROP USER (RisingWave: src/frontend/src/handler/create_user.rs, alter_user.rs, drop_user.rs)."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime
from typing import Any
from zoneinfo import ZoneInfo

from sparkwave.catalog import errors
from sparkwave.catalog.errors import Error
from sparkwave.catalog.model import Catalog
from sparkwave.catalog.stores.user_store import drop_user as forget_user
from sparkwave.catalog.stores.user_store import put_user
from sparkwave.catalog.types import TIMESTAMPTZ
from sparkwave.catalog.users import PUBLIC, ROOT, User
from sparkwave.planner.bind.privileges import find_user, permission_denied
from sparkwave.planner.statements import AlterUser, CreateUser, DropUser, RenameUser, UserOption
from sparkwave.server.session.session import Session
from sparkwave.server.wire.authentication import make_verifier, read_verifier
from sparkwave.server.wire.parameter_values import decode_parameter
from sparkwave.server.wire.result import Notice, Result

BUILT_IN = (ROOT, "postgres")
_RESERVED = (PUBLIC, "none")
_EMPTY = Notice("empty string is not a valid password, clearing password")


def create_user(session: Session, statement: CreateUser) -> Result:
    """Create a user, or a role, which may not log in. Raises Error 42710, 42939 or 42501."""
    _check_name(statement.name, statement.position)
    store = session.context.store
    with store.change() as cursor:
        me = session.user
        if not me.is_super:
            if any(option.field == "is_super" and option.value for option in statement.options):
                raise permission_denied("must be superuser to create superusers")
            if not me.create_user:
                raise permission_denied("permission denied to create user")
            if not me.create_db and any(option.field == "create_db" and option.value for option in statement.options):
                raise permission_denied("must have CREATEDB to give it to others")
        _refuse_duplicate(store.catalog, statement.name, statement.position)
        user = User(store.next_id(cursor), statement.name, can_login=not statement.is_role)
        put_user(cursor, _changed(session, user, statement.options))
    return Result("CREATE_USER", notices=_notices(statement.options))


def alter_user(session: Session, statement: AlterUser) -> Result:
    """Change a user's rights or password; all users may change their own password. Raises Error 42704 or 42501."""
    store = session.context.store
    with store.change() as cursor:
        me, user = session.user, find_user(store.catalog, statement.name, statement.position)
        fields = {option.field for option in statement.options}
        if not me.is_super:
            if user.is_super or "is_super" in fields:
                raise permission_denied("must be superuser to alter superuser roles or change superuser attribute")
            if not me.create_user and not (user.id == me.id and fields == {"password"}):
                raise permission_denied("permission denied to alter user")
            if not me.create_db and "create_db" in fields:
                raise permission_denied("must have CREATEDB to give it to others")
        changed = _changed(session, user, statement.options)
        if user.name == ROOT and not (changed.is_super and changed.can_login):
            raise permission_denied(f"{ROOT} must stay a superuser who can log in")
        put_user(cursor, changed)
    return Result("UPDATE_USER", notices=_notices(statement.options))


def rename_user(session: Session, statement: RenameUser) -> Result:
    """Rename a user, who keeps objects and privileges. Raises Error 42704, 42710, 42501 or 0A000."""
    _check_name(statement.new_name, statement.new_position)
    store = session.context.store
    with store.change() as cursor:
        me, user = session.user, find_user(store.catalog, statement.name, statement.position)
        for whose, own in (("session", session.session_user), ("current", me)):
            if user.id == own.id:
                message = f"{whose} user cannot be renamed"
                raise Error(message, errors.FEATURE_NOT_SUPPORTED, position=statement.position)
        if not me.is_super:
            raise permission_denied("must be superuser to rename users")
        _refuse_built_in(user, "rename", statement.position)
        _refuse_duplicate(store.catalog, statement.new_name, statement.new_position)
        put_user(cursor, replace(user, name=statement.new_name))
    return Result("UPDATE_USER")


def drop_user(session: Session, statement: DropUser) -> Result:
    """Drop users who own nothing and hold no privileges. Raises Error 42704, 42501, 55006 or 2BP01."""
    store = session.context.store
    notices = []
    with store.change() as cursor:
        me = session.user
        if not (me.is_super or me.create_user):
            raise permission_denied("permission denied to drop user")
        for name, position in statement.names:
            if statement.if_exists and name not in store.catalog.users:
                notices.append(Notice(f'role "{name}" does not exist, skipping'))
                continue
            user = find_user(store.catalog, name, position)
            for whose, own in (("current", me), ("session", session.session_user)):
                if user.id == own.id:
                    raise Error(f"{whose} user cannot be dropped", errors.OBJECT_IN_USE, position=position)
            if user.is_super and not me.is_super:
                raise permission_denied("must be superuser to drop superusers")
            _refuse_built_in(user, "drop", position)
            _refuse_with_dependents(store.catalog, user, position)
            forget_user(cursor, user)
    return Result("DROP_USER", notices=notices)


def _changed(session: Session, user: User, options: tuple[UserOption, ...]) -> User:
    """Return the user with its options; a password becomes a verifier unless it is one already.

    Raises Error 22007 for a bad time.
    """
    fields: dict[str, Any] = {option.field: option.value for option in options}
    if "password" in fields:
        password = fields.pop("password")
        fields["verifier"] = str(read_verifier(password) or make_verifier(password)) if password else None
    for option in options:
        if option.field == "valid_until":
            fields["valid_until"] = _moment(session, str(option.value), option.position)
    return replace(user, **fields)


def _moment(session: Session, text: str, position: int) -> datetime | None:
    """Return the time of a text, by default in the session's time zone; None for infinity. Raises Error 22007."""
    if text.strip().lower() == "infinity":
        return None
    try:
        value = decode_parameter(text.encode(), 0, TIMESTAMPTZ)
    except Error as error:
        error.position = position
        raise
    if not isinstance(value, datetime):
        message = f'invalid input syntax for type timestamp with time zone: "{text}"'
        raise Error(message, errors.INVALID_DATETIME_FORMAT, position=position)
    return value if value.tzinfo is not None else value.replace(tzinfo=ZoneInfo(session.variables.get("timezone")))


def _notices(options: tuple[UserOption, ...]) -> list[Notice]:
    return [_EMPTY] if any(option.field == "password" and option.value == "" for option in options) else []


def _check_name(name: str, position: int) -> None:
    if name in _RESERVED or name.startswith("pg_"):
        raise Error(f'role name "{name}" is reserved', errors.RESERVED_NAME, position=position)


def _refuse_duplicate(catalog: Catalog, name: str, position: int) -> None:
    if name in catalog.users:
        raise Error(f'role "{name}" already exists', errors.DUPLICATE_OBJECT, position=position)


def _refuse_built_in(user: User, verb: str, position: int) -> None:
    if user.name in BUILT_IN:
        message = f"cannot {verb} role {user.name} because it is required by the database system"
        raise Error(message, errors.DEPENDENT_OBJECTS_STILL_EXIST, position=position)


def _refuse_with_dependents(catalog: Catalog, user: User, position: int) -> None:
    things = [*catalog.securables.values(), *(relation.securable for relation in catalog.named)]
    things += [function.securable for function in catalog.functions]
    things += [secret.securable for secret in catalog.secrets.values()]
    things += [connection.securable for connection in catalog.connections.values()]
    held = {grant.object_id for grant in catalog.grants if user.name in (grant.grantee, grant.grantor)}
    owned = [f"owner of {thing.kind} {thing.name}" for thing in things if thing.owner == user.name]
    found = owned + [f"privileges for {thing.kind} {thing.name}" for thing in things if thing.id in held]
    found += [
        f"default privileges on new {each.kind}s belonging to role {each.role}"
        for each in sorted(catalog.default_grants, key=lambda each: (each.role, each.kind))
        if user.name in (each.role, each.grantee)
    ]
    if found:
        raise Error(
            f'role "{user.name}" cannot be dropped because some objects depend on it',
            errors.DEPENDENT_OBJECTS_STILL_EXIST,
            detail="\n".join(dict.fromkeys(found)),
            hint="Drop what it owns, and REVOKE its privileges; or DROP OWNED.",
            position=position,
        )
