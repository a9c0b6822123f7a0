"""CREATE and DROP TYPE and DOMAIN."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from sparkwave.catalog import errors
from sparkwave.catalog.errors import Error, not_found, used
from sparkwave.catalog.model import Catalog, UserType
from sparkwave.catalog.relation_details import Check, Domain
from sparkwave.catalog.stores.type_store import add_type, drop_type
from sparkwave.catalog.types import Named, enum_type, struct_type
from sparkwave.planner.bind.privileges import check_owner
from sparkwave.planner.bind.stored_calls import refuse_calls
from sparkwave.planner.bind.user_types import find_type
from sparkwave.planner.definitions.object_names import object_name
from sparkwave.planner.definitions.stored_definitions import users_of_type
from sparkwave.planner.parse.constraints import named_checks
from sparkwave.planner.parse.generated import renamed
from sparkwave.planner.statements import ColumnDefinition, CreateDomain, CreateType, DropType, Name
from sparkwave.server.session.session import Session
from sparkwave.server.statements.new_relations import target_schema
from sparkwave.server.statements.sequences import settled_default
from sparkwave.server.statements.tables import try_expressions
from sparkwave.server.wire.result import Notice, Result

_MOST_BYTES = 63  # of a label (PostgreSQL: NAMEDATALEN - 1)


def create_type(session: Session, statement: CreateType) -> Result:
    """Create an enum or a composite type.

    Raises Error 42710 for a name in use, 42602 for labels, 42701 for fields, 3F000 or 42501.
    """
    store, name = session.context.store, statement.name
    with store.change() as cursor:
        schema = _free_schema(session, statement)
        id_ = store.next_type_id(cursor)
        named = Named(id_, schema, name.name)
        if statement.labels is not None:
            check_labels(statement.labels)
            type_ = enum_type((*statement.labels, named.mark))
        else:
            if not statement.fields:
                message = "a composite type without fields is not supported"
                raise Error(message, errors.FEATURE_NOT_SUPPORTED, position=name.position)
            type_ = replace(struct_type(statement.fields), named=named)
        made = UserType(id_, session.database, schema, name.name, session.user.name, type_)
        add_type(cursor, made, [field.oid for _, field in statement.fields or ()])
    return Result("CREATE_TYPE")


def create_domain(session: Session, statement: CreateDomain) -> Result:
    """Create a domain. Raises Error 42710, 0A000 for a domain over a user's type, and the errors of its conditions.

    A domain over a domain has the conditions of both.
    """
    store, name, value = session.context.store, statement.name, statement.value
    with store.change() as cursor:
        schema = _free_schema(session, statement)
        value = _over_domain(value, store.catalog)
        if value.type.named is not None or value.type.dimensions or value.type.is_struct:
            message = f"a domain over {value.type.shown} is not supported"
            raise Error(message, errors.FEATURE_NOT_SUPPORTED, position=name.position)
        checks = named_checks(name.name, with_names(value.checks, name.name), ["value"])
        refuse_calls((check.condition for check in checks), store.catalog, "conditions of domains")
        value = replace(value, default=settled_default(session, value.default))
        try_expressions(session, (value.column,), checks)
        id_ = store.next_type_id(cursor)
        type_ = replace(value.type, named=Named(id_, schema, name.name))
        domain = Domain(checks, value.not_null, value.default)
        made = UserType(id_, session.database, schema, name.name, session.user.name, type_, domain)
        add_type(cursor, made, [value.type.oid])
    return Result("CREATE_DOMAIN")


def _over_domain(value: ColumnDefinition, catalog: Catalog) -> ColumnDefinition:
    """Return a domain's type, conditions and default; a domain over a domain has those of that domain, too."""
    oid = value.type.named.oid if value.type.named is not None else None
    base = next((made for made in catalog.types if made.id == oid and made.domain is not None), None)
    if base is None or base.domain is None or value.type.dimensions:
        return value
    return replace(
        value,
        type=replace(base.type, named=None),
        checks=(*base.domain.checks, *value.checks),
        not_null=value.not_null or base.domain.not_null,
        default=value.default or base.domain.default,
    )


def with_names(checks: tuple[Check, ...], domain: str) -> Iterator[Check]:
    """Yield the checks of a domain with the names that PostgreSQL gives to unnamed ones."""
    taken = {check.name for check in checks}
    for check in checks:
        name = check.name or object_name(domain, None, "check", lambda own: own not in taken)
        taken.add(name)
        yield Check(name, renamed(check.condition, {}))


def _free_schema(session: Session, statement: CreateType | CreateDomain) -> str:
    """Return the schema of a new type. Raises Error 42710 if the schema has the name already."""
    catalog, name, schema = session.context.store.catalog, statement.name, target_schema(session, statement)
    check_free(catalog, session.database, schema, name.name, name.position)
    return schema


def check_free(catalog: Catalog, database: str, schema: str, name: str, position: int) -> None:
    """Raise Error 42710 if a type or a relation of the schema has the name."""
    is_relation = catalog.find(database, schema, name) is not None
    if is_relation or (database, schema, name) in catalog.types_by_name:
        raise Error(f'type "{name}" already exists', errors.DUPLICATE_OBJECT, position=position)


def check_labels(labels: Iterable[str]) -> None:
    """Raise Error 42602 for a text that cannot be a label, 42710 for a label that is given twice."""
    seen: set[str] = set()
    for label in labels:
        if not label.isprintable() or len(label.encode()) > _MOST_BYTES:
            detail = f"Labels must be {_MOST_BYTES} bytes or less."
            raise Error(f'invalid enum label "{label}"', errors.INVALID_NAME, detail=detail)
        if label in seen:
            raise Error(f'enum label "{label}" used more than once', errors.DUPLICATE_OBJECT)
        seen.add(label)


def drop_types(session: Session, statement: DropType) -> Result:
    """Drop types. Raises Error 42704, 42501, or 2BP01 for a type in use, even with CASCADE."""
    store, notices, dropped = session.context.store, list[Notice](), dict[int, UserType]()
    with store.change() as cursor:
        for name in statement.names:
            try:
                made = find_owned(session, name)
            except Error as error:
                is_missing = error.sqlstate in (errors.UNDEFINED_OBJECT, errors.INVALID_SCHEMA_NAME)
                if not (statement.if_exists and is_missing):
                    raise
                notices.append(Notice(f'type "{name}" does not exist, skipping'))
                continue
            dropped[made.id] = made
        for made in dropped.values():
            users = users_of_type(store.catalog, made, dropped)
            if users:
                raise used("type", users, "DROP the dependent objects first.", statement.names[0].position)
            drop_type(cursor, made)
    return Result("DROP_DOMAIN" if statement.are_domains else "DROP_TYPE", notices=notices)


def find_owned(session: Session, name: Name) -> UserType:
    """Return the type of a name, which the user owns. Raises Error 42704, 42501, 3F000."""
    catalog = session.context.store.catalog
    if name.schema is not None and (session.database, name.schema) not in catalog.schemas:
        raise not_found("schema", name.schema, sqlstate=errors.INVALID_SCHEMA_NAME, position=name.position)
    made = find_type(catalog, session.scope, name.schema, name.name)
    if made is None:
        raise not_found("type", str(name), position=name.position)
    check_owner(session.user, made.securable, name.position)
    return made
