"""COMMENT ON: stores comments on objects, for pg_description."""

from __future__ import annotations

from sparkwave.catalog import errors
from sparkwave.catalog.errors import Error, not_found
from sparkwave.catalog.stores.comment_store import put_comment
from sparkwave.catalog.users import Securable
from sparkwave.planner.bind.privileges import check_owner
from sparkwave.planner.statements import Comment, Name
from sparkwave.server.session.session import Session
from sparkwave.server.statements.named_relations import find_to_alter
from sparkwave.server.statements.schemas import find_schema
from sparkwave.server.wire.result import Notice, Result


def comment(session: Session, statement: Comment) -> Result:
    """Store or remove a comment. Raises Error 42704, 42809, 42703, 3F000, 3D000 or 42501."""
    if statement.kind == "constraint":
        _thing(session, statement)
        return Result("COMMENT", notices=[Notice("comments on constraints are not kept")])
    store = session.context.store
    with store.change() as cursor:
        thing = _thing(session, statement)
        column = statement.column[0] if statement.column else None
        put_comment(cursor, thing.id, column, statement.text)
    return Result("COMMENT")


def _index(session: Session, name: Name) -> Securable:
    """An index, or the index of a primary key, which belongs to its table's owner. Raises Error 42704."""
    catalog = session.context.store.catalog
    path = (name.schema,) if name.schema else session.scope.path
    for schema in path:
        for relation in catalog.relations:
            if (relation.database, relation.schema, relation.key_index) == (session.database, schema, name.name):
                return Securable("index", relation.key_index_id, name.name, relation.owner)
        found = catalog.find(session.database, schema, name.name)
        if found is not None and found.is_index:
            return found.securable
    raise not_found("index", str(name), position=name.position)


def _thing(session: Session, statement: Comment) -> Securable:
    name = statement.name
    if statement.kind == "schema":
        return find_schema(session, name)
    if statement.kind == "database":
        found = session.context.store.catalog.securables.get((name.name,))
        if found is None or name.schema:
            message = f'database "{name}" does not exist'
            raise Error(message, errors.INVALID_CATALOG_NAME, position=name.position)
    elif statement.kind == "index":
        found = _index(session, name)
    else:
        is_part = statement.column or statement.kind == "constraint"
        relation = find_to_alter(session, name, "table" if is_part else statement.kind)
        if statement.column and statement.column[0] not in [column.name for column in relation.visible]:
            column, position = statement.column
            message = f'column "{column}" of relation "{relation.name}" does not exist'
            raise Error(message, errors.UNDEFINED_COLUMN, position=position)
        found = relation.securable
    check_owner(session.user, found, name.position)
    return found
