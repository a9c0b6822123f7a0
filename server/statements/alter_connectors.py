"""ALTER {SINK | SOURCE | TABLE} … CONNECTOR WITH: other options for a running connector."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from sparkwave.catalog import errors
from sparkwave.catalog.errors import Error
from sparkwave.catalog.lake.ducklake import Cursor
from sparkwave.catalog.model import Relation
from sparkwave.catalog.sealing import sealed
from sparkwave.catalog.stores.placing import place
from sparkwave.catalog.stores.source_store import set_options
from sparkwave.planner.definitions.altered_options import check_alterable, with_options
from sparkwave.planner.statements import AlterConnector
from sparkwave.server.session.session import Session
from sparkwave.server.statements.renames import altered, find_altered, with_shown
from sparkwave.server.statements.secrets import named_secrets
from sparkwave.server.wire.result import Notice, Result


def alter_connector(session: Session, statement: AlterConnector) -> Result:
    """Store the options, also in the definition; the connector's next client uses them.

    Raises Error 42704, 42809, 42501, 0A000 without a connector, or 22023 for an option that cannot change.
    """
    store = session.context.store
    with store.change() as cursor:
        relation = find_altered(session, statement)
        if isinstance(relation, Notice):
            return altered(statement.kind, relation)
        given = {option.name: option.value for option in statement.options if option.secret is None}
        values = sealed(given, session.context.store.cipher)
        secrets = named_secrets(session, statement.options)
        if relation.is_sink:
            relation = _altered_sink(statement, relation, values, secrets)
        else:
            _alter_source(session, cursor, statement, relation, values, secrets)
        definition = with_options(relation.definition, statement.options)
        place(cursor, with_shown([replace(relation, definition=definition)], store.catalog))
    session.context.sources.changed()
    return altered(statement.kind)


def _altered_sink(
    statement: AlterConnector, relation: Relation, values: dict[str, str], secrets: dict[str, int]
) -> Relation:
    sink = relation.sink
    check_alterable("sink", sink.connector, statement.options)
    _check_own(statement, sink.connection)
    options, named = _merged(dict(sink.options), dict(sink.secrets), values, secrets)
    return replace(relation, details=replace(sink, options=tuple(options.items()), secrets=tuple(named.items())))


def _alter_source(
    session: Session, cursor: Cursor, statement: AlterConnector, relation: Relation,
    values: dict[str, str], secrets: dict[str, int],
) -> None:  # fmt: skip
    source = session.context.store.catalog.sources.get(relation.id)
    if source is None:
        message = f'{relation.kind} "{relation.name}" has no connector'
        raise Error(message, errors.FEATURE_NOT_SUPPORTED, position=statement.name.position)
    check_alterable("source", source.connector, statement.options)
    _check_own(statement, source.connection)
    options, named = _merged(source.options, source.secrets, values, secrets)
    set_options(cursor, replace(source, options=options, secrets=named))


def _merged(
    options: Mapping[str, str], named: Mapping[str, int], values: dict[str, str], secrets: dict[str, int]
) -> tuple[dict[str, str], dict[str, int]]:
    """Return options and named secrets; the given ones replace options and secrets of the same names."""
    given = values.keys() | secrets.keys()
    kept = {name: value for name, value in options.items() if name not in given}
    return kept | values, {name: id_ for name, id_ in named.items() if name not in given} | secrets


def _check_own(statement: AlterConnector, connection: int | None) -> None:
    """Raise Error 0A000 for a relation with the options of a connection, which ALTER CONNECTION changes."""
    if connection is not None:
        message = f'the options of {statement.kind} "{statement.name}" come from a connection'
        hint = "ALTER CONNECTION … CONNECTOR WITH changes them."
        raise Error(message, errors.FEATURE_NOT_SUPPORTED, hint=hint, position=statement.name.position)
