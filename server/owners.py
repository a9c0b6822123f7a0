"""ALTER … OWNER TO."""

from __future__ import annotations

from catalog.placing import set_owner
from planner.privileges import check, find_owner
from planner.statements import AlterOwner
from server.naming import altered, find_altered
from server.result import Notice, Result
from server.schemas import find_schema
from server.session import Session


def alter_owner(session: Session, statement: AlterOwner) -> Result:
    """Raises Error 42704, 42809, 42501 or 3F000. As in Postgres the new owner must be allowed to create it
    there, and indexes are whose their table is."""
    store = session.context.store
    with store.change() as cursor:
        catalog, me = store.catalog, session.user
        if statement.kind == "schema":
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
