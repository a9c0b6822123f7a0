"""ALTER … OWNER TO."""

from __future__ import annotations

from sparkwave.catalog.stores.placing import set_owner
from sparkwave.planner.bind.privileges import check, find_owner, permission_denied
from sparkwave.planner.statements import AlterOwner
from sparkwave.server.session.session import Session
from sparkwave.server.statements.databases import find_database
from sparkwave.server.statements.named_connections import owned_connection
from sparkwave.server.statements.renames import altered, find_altered
from sparkwave.server.statements.schemas import find_schema
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
        if statement.kind == "connection":
            connection = owned_connection(session, statement.name)
            schemas = {schema.id: schema for schema in catalog.securables.values()}
            thing, holder = connection.securable, schemas[connection.schema_id]
        elif statement.kind == "schema":
            thing, holder = find_schema(session, statement.name), catalog.securables[session.database,]
        else:
            relation = find_altered(session, statement)
            if isinstance(relation, Notice):
                return altered(statement.kind, relation)
            thing, holder = relation.securable, catalog.securables[relation.database, relation.schema]
        owner = find_owner(catalog, me, statement.owner, statement.owner_position)
        if owner.name != thing.owner:
            if not me.is_super:
                check(catalog, owner, holder, "CREATE")
            for each in (thing, *(index.securable for index in catalog.indexes(thing.id))):
                set_owner(cursor, each, owner.name)
    return altered(statement.kind)
