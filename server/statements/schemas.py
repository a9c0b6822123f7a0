"""CREATE, DROP and ALTER SCHEMA."""

from __future__ import annotations

from collections.abc import Collection

from sparkwave.catalog import errors
from sparkwave.catalog.errors import Error, used
from sparkwave.catalog.lake.ducklake import Cursor
from sparkwave.catalog.model import Catalog, Function, UserType
from sparkwave.catalog.sealing import drop_secret
from sparkwave.catalog.stores.function_store import drop_functions_in, put_functions
from sparkwave.catalog.stores.placing import create_schema as add_schema
from sparkwave.catalog.stores.placing import drop_schema as remove_schema
from sparkwave.catalog.stores.placing import rename_schema as put_schema_name
from sparkwave.catalog.stores.type_store import drop_types_in
from sparkwave.catalog.system.system_views import SCHEMAS
from sparkwave.catalog.users import Securable
from sparkwave.planner.bind.privileges import check, check_owner, find_owner
from sparkwave.planner.definitions.stored_definitions import calling, described, users_of_type
from sparkwave.planner.statements import CreateSchema, DropSchema, Name, RenameSchema
from sparkwave.server.session.session import Session
from sparkwave.server.statements.cascades import cascaded, check_cascade
from sparkwave.server.statements.named_connections import connections_in, drop_unused, users_of
from sparkwave.server.statements.plain_views import refuse_creating, with_dependents
from sparkwave.server.statements.renames import store_places
from sparkwave.server.statements.secrets import secrets_in, users_listed
from sparkwave.server.wire.result import Notice, Result


def create_schema(session: Session, statement: CreateSchema) -> Result:
    """Create a schema in the session's database. Raises Error 42P06, 42939, 42704 or 42501."""
    store = session.context.store
    with store.change() as cursor:
        catalog, me = store.catalog, session.user
        name = _own(session, statement.name)
        check(catalog, me, catalog.securables[session.database,], "CREATE", statement.name.position)
        owner = find_owner(catalog, me, *statement.owner) if statement.owner else me
        if statement.if_not_exists and _exists(catalog, session.database, name):
            notice = Notice(f'schema "{name}" already exists, skipping', sqlstate=errors.DUPLICATE_SCHEMA)
            return Result("CREATE_SCHEMA", notices=[notice])
        _check_name(catalog, session.database, name, statement.name.position)
        add_schema(store, cursor, session.database, name, owner.name)
    return Result("CREATE_SCHEMA")


def drop_schema(session: Session, statement: DropSchema) -> Result:
    """Drop schemas: empty ones, or with CASCADE all their objects and dependents.

    Raises Error 3F000, 42501 or 2BP01.
    """
    store = session.context.store
    notices: list[Notice] = []
    schemas: list[Securable] = []
    for name in statement.names:
        try:
            schemas.append(find_schema(session, name))
        except Error as error:
            if not statement.if_exists or error.sqlstate != errors.INVALID_SCHEMA_NAME:
                raise
            notices.append(Notice(f'schema "{name.name}" does not exist, skipping'))
    names = {schema.name for schema in schemas}
    inside = [r for r in store.catalog.named if r.database == session.database and r.schema in names]
    functions, secrets, types = _functions(session, names), secrets_in(session, names), _types(session, names)
    connections = connections_in(session, names)
    if (inside or functions or secrets or connections or types) and not statement.cascade:
        things = [f"{r.kind} {r.qualified_name}" for r in inside] + [f"function {f.qualified_name}" for f in functions]
        things += [f"type {made.qualified_name}" for made in types]
        things += [f"secret {secret.name}" for secret in secrets]
        things += [f"connection {connection.name}" for connection in connections]
        raise Error(
            "schema is not empty",
            errors.DEPENDENT_OBJECTS_STILL_EXIST,
            detail="\n".join(f"{thing} is in it" for thing in things),
            hint="Use DROP ... CASCADE to drop the dependent objects too.",
            position=statement.names[0].position,
        )
    dropped = with_dependents(session, inside, cascade=True)
    if statement.cascade and schemas:
        kinds = ["schema"] * len(schemas) + [relation.kind for relation in dropped]
        kinds += ["function"] * len(functions) + ["type"] * len(types) + ["secret"] * len(secrets)
        kinds += ["connection"] * len(connections)
        check_cascade(session, "DROP SCHEMA", kinds)
    notices += cascaded(session, dropped, (), [*functions, *types, *secrets, *connections])
    refuse_creating(dropped)
    ids = {relation.id for relation in dropped}

    def remove(cursor: Cursor) -> None:
        now = (r for r in store.catalog.relations if r.database == session.database and r.schema in names)
        if any(relation.id not in ids for relation in now):
            message = "something has just been made in what is to be dropped"
            raise Error(message, errors.NOT_IN_PREREQUISITE_STATE, hint="Try again.")
        _check_uncalled(session, names, ids)
        _check_unused(session, names, ids)
        drop_unused(session, cursor, connections_in(session, names), ids)
        for secret in secrets_in(session, names):
            drop_secret(cursor, secret)
        _check_untyped(session, names, {*map(described, dropped), *map(described, functions)})
        for schema in schemas:
            drop_functions_in(cursor, session.database, schema.name)
            drop_types_in(cursor, session.database, schema.name)
            remove_schema(store, cursor, schema, ids)

    session.context.jobs.drop(dropped, remove)
    return Result("DROP_SCHEMA", notices=notices)


def rename_schema(session: Session, statement: RenameSchema) -> Result:
    """Rename a schema. Raises Error 3F000, 42P06, 42939 or 42501."""
    store = session.context.store
    with store.change() as cursor:
        catalog = store.catalog
        schema = find_schema(session, statement.name)
        check(catalog, session.user, catalog.securables[session.database,], "CREATE", statement.name.position)
        _check_name(catalog, session.database, statement.new_name, statement.new_position)
        _check_uncalled(session, {schema.name})
        if _types(session, {schema.name}):
            message = "a schema with types cannot be renamed"
            raise Error(message, errors.FEATURE_NOT_SUPPORTED, position=statement.name.position)
        put_schema_name(cursor, schema, statement.new_name)
        put_functions(cursor, session.database, schema.name, statement.new_name)
        inside = [r for r in catalog.relations if (r.database, r.schema) == (session.database, schema.name)]
        store_places(session, cursor, {r.id: (statement.new_name, r.name) for r in inside})
    return Result("ALTER_SCHEMA")


def _types(session: Session, schemas: set[str]) -> list[UserType]:
    catalog = session.context.store.catalog
    return [t for t in catalog.types if t.database == session.database and t.schema in schemas]


def _check_untyped(session: Session, schemas: set[str], dropped: Collection[str] = ()) -> None:
    """Raise Error 2BP01 if a type in the schemas is used by an object that is not, as `described`, dropped too."""
    catalog, types = session.context.store.catalog, _types(session, schemas)
    ids = {made.id for made in types}
    users = (user for made in types for user in users_of_type(catalog, made, ids))
    found = [user for user in users if user not in dropped]
    if found:
        raise used("type", found, "DROP the dependent objects first.")


def _functions(session: Session, schemas: set[str]) -> list[Function]:
    catalog = session.context.store.catalog
    return [f for f in catalog.functions if f.database == session.database and f.schema in schemas]


def _check_uncalled(session: Session, schemas: set[str], dropped: Collection[int] = ()) -> None:
    """Raise Error 2BP01 if a function in the schemas is called from outside, where it names the schema."""
    called = calling(session.context.store.catalog, _functions(session, schemas))
    found = [described(each) for each in called if each.id not in dropped and each.schema not in schemas]
    if found:
        raise Error(
            "functions in the schema are used by other objects.",
            errors.DEPENDENT_OBJECTS_STILL_EXIST,
            detail="\n".join(f"{each} depends on it" for each in found),
            hint="DROP the dependent objects first.",
        )


def _check_unused(session: Session, schemas: set[str], dropped: Collection[int]) -> None:
    """Raise Error 2BP01 if a secret or connection in the schemas is used by an object that is not dropped too."""
    catalog, connections = session.context.store.catalog, connections_in(session, schemas)
    of_secrets = users_listed(catalog, secrets_in(session, schemas), {*dropped, *(each.id for each in connections)})
    of_connections = [f"{each.kind} {each.qualified_name}" for each in users_of(catalog, connections, dropped)]
    for kind, users in (("secrets", of_secrets), ("connections", of_connections)):
        if users:
            raise Error(
                f"{kind} in the schema are used by other objects.",
                errors.DEPENDENT_OBJECTS_STILL_EXIST,
                detail="\n".join(f"{each} depends on it" for each in users),
                hint="DROP the dependent objects first.",
            )


def find_schema(session: Session, name: Name) -> Securable:
    """Return the schema of a name, if the user owns it. Raises Error 3F000, 42501, 0A000 or 2BP01."""
    own = _own(session, name)
    if own in SCHEMAS:
        message = f"schema {own} is required by the database system"
        raise Error(message, errors.DEPENDENT_OBJECTS_STILL_EXIST, position=name.position)
    found = session.context.store.catalog.securables.get((session.database, own))
    if found is None:
        raise Error(f'schema "{own}" does not exist', errors.INVALID_SCHEMA_NAME, position=name.position)
    check_owner(session.user, found, name.position)
    return found


def _own(session: Session, name: Name) -> str:
    """Return the schema's bare name. Raises Error 0A000 for another database's, 42601 for more than two parts."""
    if name.database:
        message = f"improper qualified name (too many dotted names): {name}"
        raise Error(message, errors.SYNTAX_ERROR, position=name.position)
    if name.schema and name.schema != session.database:
        message = f'cross-database references are not implemented: "{name}"'
        raise Error(message, errors.FEATURE_NOT_SUPPORTED, position=name.position)
    return name.name


def _exists(catalog: Catalog, database: str, name: str) -> bool:
    return name in SCHEMAS or (database, name) in catalog.schemas


def _check_name(catalog: Catalog, database: str, name: str, position: int) -> None:
    if _exists(catalog, database, name):
        raise Error(f'schema "{name}" already exists', errors.DUPLICATE_SCHEMA, position=position)
    if name.startswith("pg_"):
        raise Error(
            f'unacceptable schema name "{name}"',
            errors.RESERVED_NAME,
            detail='The prefix "pg_" is reserved for system schemas.',
            position=position,
        )
