"""SHOW, DESCRIBE, SET and ALTER SYSTEM SET (RisingWave: src/frontend/src/handler/show.rs, describe.rs)."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import closing
from datetime import UTC, datetime

from sparkwave.catalog import errors
from sparkwave.catalog.errors import Error, not_found
from sparkwave.catalog.model import Catalog, Function, Relation
from sparkwave.catalog.names import literal
from sparkwave.catalog.relation_details import with_article
from sparkwave.catalog.stores.parameter_store import put_parameter
from sparkwave.catalog.system.system_views import is_system
from sparkwave.catalog.types import BIGINT, BOOLEAN, INTEGER, TIMESTAMPTZ, VARCHAR, Type
from sparkwave.planner.batch.pg_names import IMPLICIT_SCHEMAS
from sparkwave.planner.batch.query import Batch
from sparkwave.planner.bind.binder import resolve
from sparkwave.planner.bind.privileges import holds_any, permission_denied
from sparkwave.planner.definitions.counting import drawn_by, next_of
from sparkwave.planner.definitions.function_definition import function_text
from sparkwave.planner.functions.emit import Sql
from sparkwave.planner.parse.describe import FRAGMENT, FRAGMENTS
from sparkwave.planner.statements import Name, SetVariable, Show, ShowCreate, ShowVariable
from sparkwave.server.reads import execution
from sparkwave.server.reads.internal_tables import readable_tables
from sparkwave.server.reads.result_columns import rows_result
from sparkwave.server.session.backends import Backend
from sparkwave.server.session.portal import Portal
from sparkwave.server.session.session import Session
from sparkwave.server.session.variables import SESSION, SIZING, SYSTEM, find, normalise
from sparkwave.server.statements.described_fragments import describe_fragments
from sparkwave.server.statements.functions import find_functions
from sparkwave.server.statements.named_connections import connections_in
from sparkwave.server.wire.result import Notice, Result

CREATE_COLUMNS = ("Name", "Create Sql")
_NAME = (("Name", VARCHAR),)
_COLUMN = (("Name", VARCHAR), ("Type", VARCHAR), ("Is Hidden", VARCHAR), ("Description", VARCHAR))
_SESSION = (("Session Id", VARCHAR), ("User", VARCHAR), ("Host", VARCHAR), ("Database", VARCHAR))

# The columns of each SHOW; a SHOW that is missing here has the column `Name` only.
_COLUMNS: dict[str, tuple[tuple[str, Type], ...]] = {
    "ALL": (("Name", VARCHAR), ("Setting", VARCHAR), ("Description", VARCHAR)),
    "PARAMETERS": (("Name", VARCHAR), ("Value", VARCHAR), ("Description", VARCHAR), ("Mutable", VARCHAR)),
    "JOBS": (("Id", BIGINT), ("Statement", VARCHAR), ("Create Type", VARCHAR), ("Progress", VARCHAR)),
    "CLUSTER": (
        ("Id", INTEGER), ("Addr", VARCHAR), ("Type", VARCHAR), ("State", VARCHAR), ("Parallelism", INTEGER),
        ("Is Streaming", BOOLEAN), ("Is Serving", BOOLEAN), ("Started At", TIMESTAMPTZ),
    ),
    "COLUMNS": _COLUMN,
    "DESCRIBE": _COLUMN,
    FRAGMENTS: (("Fragments", VARCHAR),),
    FRAGMENT: (("Fragment", VARCHAR),),
    "INDEXES": tuple((name, VARCHAR) for name in ("Name", "On", "Key", "Include", "Distributed By")),
    "FUNCTIONS": tuple((name, VARCHAR) for name in ("Name", "Arguments", "Return Type", "Language", "Link")),
    "CONNECTIONS": tuple((name, VARCHAR) for name in ("Name", "Type", "Properties")),
    "SUBSCRIPTIONS": (("Name", VARCHAR), ("Retention Seconds", BIGINT)),
    "PROCESSLIST": tuple(
        (name, VARCHAR) for name in ("Worker Id", "Id", "User", "Host", "Database", "Time", "Info")
    ),
    "CURSORS": (*_SESSION, ("Cursor Name", VARCHAR)),
    "SUBSCRIPTION CURSORS": (
        *_SESSION, ("Cursor Name", VARCHAR), ("Subscription Name", VARCHAR), ("State", VARCHAR),
        ("Idle Duration Ms", BIGINT),
    ),
}  # fmt: skip

# The SHOWs that are a relation of rw_catalog.
_QUERIES = {
    "JOBS": "_show_jobs",
    "CLUSTER": "_show_cluster",
}

_Rows = list[tuple[object, ...]]


def columns_of(statement: Show) -> tuple[tuple[str, ...], tuple[Type, ...]]:
    """Return the names and types of a SHOW's columns."""
    columns = _COLUMNS.get(statement.what, _NAME)
    return tuple(name for name, _ in columns), tuple(type_ for _, type_ in columns)


def show(session: Session, statement: Show) -> Result:
    """Run a SHOW or DESCRIBE. Raises Error 42P01 for an unknown relation."""
    if statement.what in ("COLUMNS", "DESCRIBE"):
        return _describe(session, statement)
    if statement.what in (FRAGMENTS, FRAGMENT):
        names, types = columns_of(statement)
        return rows_result("DESCRIBE", names, describe_fragments(session, statement), types)
    if statement.what == "INDEXES":
        return _indexes(session, statement)
    if statement.what in _QUERIES:
        return _query(session, _QUERIES[statement.what])
    names, types = columns_of(statement)
    rows = _LISTS.get(statement.what, _nothing)(session, statement)
    return rows_result("SHOW_COMMAND", names, [row for row in rows if _is_like(row[0], statement.like)], types)


def _query(session: Session, relation: str, columns: str = "*", clauses: str = "") -> Result:
    """Run a query of one relation of rw_catalog."""
    batch = Batch(Sql(f"SELECT {columns} FROM memory.rwc.{relation} {clauses}", (f"rwc.{relation}",)), ())
    result = execution.query(session, batch, tag="SHOW_COMMAND")
    result.counts_rows = False
    return result


def _describe(session: Session, statement: Show) -> Result:
    """Return the columns of a relation; for DESCRIBE also its keys and comment."""
    name = statement.relation
    assert name is not None
    schema, bare = _placed(session, name)
    conditions = [f"schema = {literal(schema)}", f"relation = {literal(bare)}"]
    if statement.what == "COLUMNS":
        conditions.append("is_column")
    if statement.like:
        conditions.append(f"""regexp_full_match("Name", {literal(statement.like)})""")
    columns = ", ".join(f'"{column}"' for column, _ in _COLUMN)
    where = " AND ".join(conditions)
    result = _query(session, "_describe", columns, f"WHERE {where} ORDER BY place")
    result.tag = "DESCRIBE" if statement.what == "DESCRIBE" else result.tag
    return result


def _placed(session: Session, name: Name) -> tuple[str, str]:
    """Return the schema and the name of a relation, which may be a system relation."""
    catalog, scope = session.context.store.catalog, session.scope
    schemas = IMPLICIT_SCHEMAS if name.schema is None else (name.schema,)
    system = next((schema for schema in schemas if is_system(schema, name.name)), None)
    if system is not None:
        return system, name.name
    relation = resolve(catalog, scope, name)
    return relation.schema, relation.name


def _relations(session: Session, statement: Show) -> _Rows:
    """Return the relations of a kind that the user has a privilege on, by search path and name."""
    catalog, user = session.context.store.catalog, session.user
    kind = statement.what.removesuffix("S").lower()
    path = (statement.schema,) if statement.schema else session.scope.path
    found = [
        relation
        for relation in catalog.named
        if relation.kind == kind
        and relation.created
        and relation.database == session.database
        and relation.schema in path
        and any(holds_any(catalog, user, relation, privilege) for privilege in _ANY_PRIVILEGE)
    ]
    return [(r.qualified_name,) for r in sorted(found, key=lambda r: (path.index(r.schema), r.name))]


_ANY_PRIVILEGE = ("SELECT", "INSERT", "UPDATE", "DELETE")


def _databases(session: Session, statement: Show) -> _Rows:
    return [(database,) for database in sorted(session.context.store.catalog.databases)]


def _schemas(session: Session, statement: Show) -> _Rows:
    own = {schema for database, schema in session.context.store.catalog.schemas if database == session.database}
    return [(schema,) for schema in sorted(own | {"information_schema", "pg_catalog", "rw_catalog"})]


def _variables(session: Session, statement: Show) -> _Rows:
    return [(v.name, session.variables.get(v.name), v.description) for v in SESSION.values()]


def _parameters(session: Session, statement: Show) -> _Rows:
    return [(v.name, session.variables.get(v.name), v.description, "t") for v in SYSTEM.values()]


def _indexes(session: Session, statement: Show) -> Result:
    """Return the indexes of a relation, without primary keys, as in RisingWave."""
    assert statement.relation is not None
    relation = resolve(session.context.store.catalog, session.scope, statement.relation, "table")
    columns = ", ".join(f'"{column}"' for column, _ in _COLUMNS["INDEXES"])
    conditions = f"schema = {literal(relation.schema)} AND relation = {literal(relation.name)}"
    if statement.like:
        conditions += f""" AND regexp_full_match("Name", {literal(statement.like)})"""
    return _query(session, "_show_indexes", columns, f"WHERE {conditions} ORDER BY 1")


def _processes(session: Session, statement: Show) -> _Rows:
    """Return the user's sessions; all for a superuser. Both ids are the one that KILL and pg_cancel_backend take."""
    rows: _Rows = []
    for backend in session.context.backends.all():
        if not session.user.is_super and backend.session.login.name != session.user.name:
            continue
        time, info = None, None
        if backend.state == "active" and backend.query_start is not None:
            elapsed = datetime.now(UTC) - backend.query_start
            time, info = f"{elapsed.total_seconds() * 1000:.0f}ms", backend.shown_query
        id_, host = str(backend.process_id), f"{backend.address[0]}:{backend.address[1]}"
        rows.append((id_, id_, backend.session.login.name, host, backend.session.database, time, info))
    return rows


def _cursors(session: Session, statement: Show) -> _Rows:
    rows: _Rows = []
    for backend, name, portal in _own_cursors(session):
        if portal.feed is None:
            other, host = backend.session, f"{backend.address[0]}:{backend.address[1]}"
            rows.append((str(backend.process_id), other.login.name, host, other.database, name))
    return rows


def _subscription_cursors(session: Session, statement: Show) -> _Rows:
    rows: _Rows = []
    for backend, name, portal in _own_cursors(session):
        other, feed = backend.session, portal.feed
        if feed is not None:
            host = f"{backend.address[0]}:{backend.address[1]}"
            row = (str(backend.process_id), other.login.name, host, other.database, name)
            rows.append((*row, feed.subscription_name, feed.state, feed.idle_ms))
    return rows


def _own_cursors(session: Session) -> Iterator[tuple[Backend, str, Portal]]:
    """Yield the cursors of the user's sessions, or for a superuser of all."""
    for backend in session.context.backends.all():
        other = backend.session
        if session.user.is_super or other.login.name == session.user.name:
            yield from ((backend, *item) for item in list(other.names.portals.items()) if item[1].is_cursor)


def _subscriptions(session: Session, statement: Show) -> _Rows:
    catalog = session.context.store.catalog
    path = (statement.schema,) if statement.schema else session.scope.path
    found = [r for r in catalog.relations if r.is_subscription and r.database == session.database and r.schema in path]
    return [(r.name, catalog.subscriptions[r.id].retention_s) for r in sorted(found, key=lambda r: r.name)]


def _functions(session: Session, statement: Show) -> _Rows:
    path = (statement.schema,) if statement.schema else session.scope.path
    found = [
        function
        for function in session.context.store.catalog.functions
        if function.database == session.database and function.schema in path
    ]
    return [
        (f.name, ", ".join(str(type_) for _, type_ in f.arguments), _returned(f), f.language, None)
        for f in sorted(found, key=lambda f: (f.name, len(f.arguments)))
    ]


def _returned(function: Function) -> str:
    if function.columns is None:
        return str(function.result)
    if function.columns == ("",):
        return f"SETOF {function.result}"
    return f"TABLE({', '.join(f'{name} {type_}' for name, type_ in function.outputs)})"


def _secrets(session: Session, statement: Show) -> _Rows:
    schemas = (statement.schema,) if statement.schema else session.scope.path
    catalog = session.context.store.catalog
    known = {(session.database, schema) for schema in schemas} & catalog.securables.keys()
    by_id = {catalog.securables[key].id: key[1] for key in known}
    secrets = [secret for secret in catalog.secrets.values() if secret.schema_id in by_id]
    return [(f"{by_id[secret.schema_id]}.{secret.name}",) for secret in sorted(secrets, key=lambda s: s.name)]


def _connections(session: Session, statement: Show) -> _Rows:
    """Return the connections with their types and options, as rw_connections has them."""
    found = connections_in(session, (statement.schema,) if statement.schema else session.scope.path)
    with closing(session.context.system_views.cursor("rwc._connection_params")) as cursor:
        rows = cursor.execute("SELECT id, connection_params FROM memory.rwc._connection_params").fetchall()
    shown = dict(rows)
    return [(each.name, f"CONNECTION_TYPE_{each.kind.upper()}", shown.get(each.id)) for each in found]


def _internal_tables(session: Session, statement: Show) -> _Rows:
    schemas = (statement.schema,) if statement.schema else tuple(session.scope.path)
    return [(f"{schema}.{name}",) for schema, name in readable_tables(session, schemas)]


def _nothing(session: Session, statement: Show) -> _Rows:
    """Return no rows, for kinds of objects that Sparkwave does not have."""
    return []


_LISTS: dict[str, Callable[[Session, Show], _Rows]] = {
    "TABLES": _relations,
    "SOURCES": _relations,
    "VIEWS": _relations,
    "MATERIALIZED VIEWS": _relations,
    "SINKS": _relations,
    "DATABASES": _databases,
    "SCHEMAS": _schemas,
    "ALL": _variables,
    "PARAMETERS": _parameters,
    "SUBSCRIPTIONS": _subscriptions,
    "SUBSCRIPTION CURSORS": _subscription_cursors,
    "FUNCTIONS": _functions,
    "SECRETS": _secrets,
    "CONNECTIONS": _connections,
    "INTERNAL TABLES": _internal_tables,
    "PROCESSLIST": _processes,
    "CURSORS": _cursors,
}


def _is_like(name: object, pattern: str | None) -> bool:
    """LIKE on the name without its schema."""
    return pattern is None or re.fullmatch(pattern, str(name).rpartition(".")[2], re.DOTALL) is not None


def show_create(session: Session, statement: ShowCreate) -> Result:
    """Return the statement that made a relation, or the statements of all functions of a name."""
    if statement.kind == "function":
        functions = find_functions(session, statement.name)
        if not functions:
            raise not_found("function", str(statement.name), position=statement.name.position)
        ordered = sorted(functions, key=lambda function: function.signature)
        rows: _Rows = [(function.qualified_name, function_text(function)) for function in ordered]
    else:
        relation = resolve(session.context.store.catalog, session.scope, statement.name, statement.kind)
        if relation.kind != statement.kind:
            raise Error(f'"{statement.name}" is not {with_article(statement.kind)}', errors.WRONG_OBJECT_TYPE)
        rows = [(relation.qualified_name, _with_sequences(relation, session.context.store.catalog))]
    return rows_result("SHOW_COMMAND", CREATE_COLUMNS, rows, (VARCHAR, VARCHAR))


def _with_sequences(relation: Relation, catalog: Catalog) -> str:
    """Return a relation's definition in a form that can be run: with identity columns, and names of sequences."""
    text = relation.shown or relation.definition
    drawn = {id_ for column in relation.columns if (id_ := drawn_by(column.default)) is not None}
    for sequence in (catalog.by_id[id_] for id_ in drawn if id_ in catalog.by_id):
        name = literal(sequence.qualified_name)
        identity = sequence.sequence.identity if sequence.sequence.table == relation.id else None
        counting = f"DEFAULT nextval({name})" if identity is None else f"GENERATED {identity} AS IDENTITY"
        text = text.replace(f"DEFAULT {next_of(sequence.id)}", counting)
    return text


def show_variable(session: Session, statement: ShowVariable) -> Result:
    return rows_result("SHOW_VARIABLE", ("Name",), [(session.variables.get(statement.name),)], (VARCHAR,))


def set_variable(session: Session, statement: SetVariable) -> Result:
    """Run SET, RESET, and ALTER SYSTEM SET of a system parameter or of a session variable's default."""
    if statement.is_local:
        if not session.names.in_block:
            find(statement.name, system=False)
            message = "SET LOCAL can only be used in transaction blocks"
            return Result("SET_VARIABLE", notices=[Notice(message, "WARNING", errors.NO_ACTIVE_TRANSACTION)])
        session.variables.set_local(statement.name, statement.value)
        return Result("SET_VARIABLE")
    if not statement.system:
        session.variables.set(statement.name, statement.value)
        return Result("RESET" if statement.is_reset else "SET_VARIABLE")
    if not session.user.is_super:
        raise permission_denied("must be superuser to execute ALTER SYSTEM")
    variable = find(statement.name, system=True)
    value = normalise(variable, statement.value) if statement.value is not None else None
    session.context.config.check_parameter(variable.name, value)
    store = session.context.store
    with store.change() as cursor:
        put_parameter(cursor, store.catalog.parameters, variable.name, value)
    notices = []
    if variable.name in SESSION:
        session.variables.set(variable.name, value)
        state = f"set to {value}" if value is not None else "reset to default"
        notices.append(Notice(f"The config {variable.name} of the current session has already been {state}"))
    lacking = session.context.shortage() if variable.name in SIZING else None
    if lacking is not None:
        notices.append(Notice(lacking, "WARNING"))
    return Result("ALTER_SYSTEM", notices=notices)
