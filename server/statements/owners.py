"""ALTER … OWNER TO."""

from __future__ import annotations

from collections.abc import Sequence

from sparkwave.catalog.lake.ducklake import Cursor
from sparkwave.catalog.stores.placing import set_owner
from sparkwave.catalog.users import Securable
from sparkwave.planner.bind.privileges import check, find_owner, permission_denied
from sparkwave.planner.statements import AlterOwner
from sparkwave.server.session.session import Session
from sparkwave.server.statements.create_types import find_owned
from sparkwave.server.statements.databases import find_database
from sparkwave.server.statements.named_connections import owned_connection
from sparkwave.server.statements.renames import altered, find_altered
from sparkwave.server.statements.schemas import find_schema
from sparkwave.server.statements.secrets import owned_secret
from sparkwave.server.wire.result import Notice, Result


def alter_owner(session: Session, statement: AlterOwner) -> Result:
    """Change the owner of an object; the indexes of a table follow.

    As in Postgres, the new owner needs the right to create the object there. Raises Error 42704, 42809, 42501, 3F000 or
    3D000.
    """
    store = session.context.store
    with store.change() as cursor:
        catalog, me = store.catalog, session.user
        if statement.kind == "database":
            thing = find_database(session, statement.name.name, statement.name.position)
            if not (me.is_super or me.create_db):
                raise permission_denied("permission denied to change owner of database")
            owner = find_owner(catalog, me, statement.owner, statement.owner_position)
            set_owner(cursor, thing, owner.name)
            return altered(statement.kind)
        if statement.kind in ("connection", "secret"):
            find = owned_connection if statement.kind == "connection" else owned_secret
            found = find(session, statement.name)
            schemas = {schema.id: schema for schema in catalog.securables.values()}
            thing, holder = found.securable, schemas[found.schema_id]
        elif statement.kind == "schema":
            thing, holder = find_schema(session, statement.name), catalog.securables[session.database,]
        elif statement.kind in ("type", "domain"):
            made = find_owned(session, statement.name)
            thing, holder = made.securable, catalog.securables[made.database, made.schema]
        else:
            relation = find_altered(session, statement)
            if isinstance(relation, Notice):
                return altered(statement.kind, relation)
            thing, holder = relation.securable, catalog.securables[relation.database, relation.schema]
        along = (index.securable for index in catalog.indexes(thing.id))
        give(session, cursor, (thing, *along), holder, statement.owner, statement.owner_position)
    return altered(statement.kind)


def give(
    session: Session, cursor: Cursor, things: Sequence[Securable], holder: Securable, name: str, position: int
) -> None:
    """Give an object, the first of `things`, another owner, and the other things along; `holder` is where it is.

    Raises Error 42704 for an unknown role, 42501.
    """
    catalog, me = session.context.store.catalog, session.user
    owner = find_owner(catalog, me, name, position)
    if owner.name != things[0].owner:
        if not me.is_super:
            check(catalog, owner, holder, "CREATE")
        for each in things:
            set_owner(cursor, each, owner.name)
