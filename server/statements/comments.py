"""COMMENT ON: stores comments on objects, for pg_description."""

from __future__ import annotations

from sparkwave.catalog import errors
from sparkwave.catalog.errors import Error, not_found
from sparkwave.catalog.model import KEY_INDEX_IDS, ROW_ID, constraints_id, has_row_id, key_index_id
from sparkwave.catalog.stores.comment_store import put_comment
from sparkwave.catalog.users import Securable
from sparkwave.planner.bind.privileges import check_owner
from sparkwave.planner.statements import Comment, Name
from sparkwave.server.session.session import Session
from sparkwave.server.statements.named_relations import find_to_alter
from sparkwave.server.statements.schemas import find_schema
from sparkwave.server.wire.result import Result


def comment(session: Session, statement: Comment) -> Result:
    """Store or remove a comment. Raises Error 42704, 42809, 42703, 3F000, 3D000 or 42501."""
    store = session.context.store
    with store.change() as cursor:
        thing = _thing(session, statement) if statement.kind != "constraint" else None
        if thing is None:
            put_comment(cursor, *_constraint(session, statement), statement.text)
            return Result("COMMENT")
        column = statement.column[0] if statement.column else None
        put_comment(cursor, thing.id, column, statement.text)
    return Result("COMMENT")


def _index(session: Session, name: Name) -> Securable:
    """Return an index, also of a primary key or UNIQUE, which belongs to the table's owner. Raises Error 42704."""
    catalog = session.context.store.catalog
    path = (name.schema,) if name.schema else session.scope.path
    for schema in path:
        for relation in catalog.relations:
            if (relation.database, relation.schema, relation.key_index) == (session.database, schema, name.name):
                return Securable("index", key_index_id(relation), name.name, relation.owner)
            for unique in relation.constraints.uniques:
                if (relation.database, relation.schema, unique.name) == (session.database, schema, name.name):
                    return Securable("index", unique.id + KEY_INDEX_IDS, name.name, relation.owner)
        found = catalog.find(session.database, schema, name.name)
        if found is not None and found.is_index:
            return found.securable
    raise not_found("index", str(name), position=name.position)


def _constraint(session: Session, statement: Comment) -> tuple[int, str]:
    """Return the id and the name under which the comment on a constraint of a table is stored. Raises Error 42704."""
    table = find_to_alter(session, statement.name, "table")
    check_owner(session.user, table.securable, statement.name.position)
    assert statement.column is not None
    name, position = statement.column
    if name not in (*table.constraints.names, table.key_index):
        message = f'constraint "{name}" for table "{table.name}" does not exist'
        raise Error(message, errors.UNDEFINED_OBJECT, position=position)
    return constraints_id(table), "" if name == table.key_index else name


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
        relation = find_to_alter(session, name, "table" if statement.column else statement.kind)
        known = [column.name for column in relation.visible] + ([ROW_ID] if has_row_id(relation) else [])
        if statement.column and statement.column[0] not in known:
            column, position = statement.column
            message = f'column "{column}" of relation "{relation.name}" does not exist'
            raise Error(message, errors.UNDEFINED_COLUMN, position=position)
        found = relation.securable
    check_owner(session.user, found, name.position)
    return found
