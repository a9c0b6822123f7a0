"""CREATE and ALTER SUBSCRIPTION: keeps the changes of a table or materialized view, for cursors to read."""

from __future__ import annotations

from dataclasses import replace

from sparkwave.catalog import errors
from sparkwave.catalog.errors import Error
from sparkwave.catalog.model import Relation, Subscription
from sparkwave.catalog.stores.placing import place
from sparkwave.catalog.stores.relation_store import create_relation
from sparkwave.catalog.stores.subscription_store import add_subscription, set_retention
from sparkwave.planner.batch.query import failed_job
from sparkwave.planner.bind.binder import resolve_readable
from sparkwave.planner.bind.privileges import check_relation
from sparkwave.planner.definitions.stored_definitions import settled
from sparkwave.planner.parse.statement import parse_statement
from sparkwave.planner.parse.subscription import subscription_definition
from sparkwave.planner.statements import AlterRetention, CreateSubscription, Name
from sparkwave.server.session.session import Session
from sparkwave.server.statements.new_relations import existing_notice, refuse_temporary, target_schema
from sparkwave.server.statements.renames import altered, find_altered, with_shown
from sparkwave.server.wire.result import Notice, Result


def create_subscription(session: Session, statement: CreateSubscription) -> Result:
    """Create a subscription.

    Raises Error 42P01, 42809 for a plain view, 55000 for a view that is being created or has failed, 42710, 42501.
    """
    existing = existing_notice(session, statement)
    if existing is not None:
        return Result("CREATE_SUBSCRIPTION", notices=[existing])
    session.store_views()  # so that rows that are visible now are stored, and no later change
    store = session.context.store
    with store.change() as cursor:  # no other commit comes between the snapshot and this transaction
        environment = session.environment
        upstream = followed(session, statement.upstream)
        refuse_temporary(session, (upstream.id,))
        schema = target_schema(session, statement)
        relation = Relation(
            id=store.next_id(cursor),
            database=session.database,
            schema=schema,
            name=statement.name.name,
            kind="subscription",
            columns=(),
            key=(),
            definition=settled(statement.definition, schema, environment),
            created=True,
            owner=session.user.name,
            upstreams=(upstream.id,),
        )
        create_relation(store, cursor, relation)
        snapshot = store.lake.snapshot(cursor)
        add_subscription(cursor, Subscription(relation.id, statement.retention_s, snapshot))
    return Result("CREATE_SUBSCRIPTION")


def alter_retention(session: Session, statement: AlterRetention) -> Result:
    """Store how long a subscription keeps changes; what has been given up already stays away.

    Raises Error 42704, 42809 or 42501.
    """
    store = session.context.store
    with store.change() as cursor:
        relation = find_altered(session, statement)
        if isinstance(relation, Notice):
            return altered(statement.kind, relation)
        made = parse_statement(relation.definition)
        assert isinstance(made, CreateSubscription)
        definition = subscription_definition(made.name, made.upstream, statement.text)
        set_retention(cursor, relation.id, statement.retention_s)
        place(cursor, with_shown([replace(relation, definition=definition)], store.catalog))
    return altered(statement.kind)


def followed(session: Session, name: Name) -> Relation:
    """Return the table or materialized view of a name, if the user may read its rows."""
    catalog = session.context.store.catalog
    relation = resolve_readable(catalog, session.scope, name)
    if not relation.is_stored:
        message = f'"{name}" is not a table or materialized view'
        raise Error(message, errors.WRONG_OBJECT_TYPE, position=name.position)
    check_relation(catalog, session.user, relation, "SELECT", name.position)
    failed_job(catalog, relation)
    return relation
