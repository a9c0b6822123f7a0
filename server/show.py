"""SHOW, SET and ALTER SYSTEM SET."""

from __future__ import annotations

import fnmatch

from catalog import errors
from catalog.errors import Error
from catalog.types import BIGINT, VARCHAR, Type
from planner.batch.query import Batch
from planner.bind import resolve
from planner.privileges import permission_denied
from planner.statements import SetVariable, Show, ShowCreate, ShowVariable
from server.result import Notice, Result
from server.session import Session, rows_result
from server.variables import SESSION, SYSTEM, find, normalise

CREATE_COLUMNS = ("Name", "Create Sql")
_JOBS = ("Id", "Statement", "Create Type", "Progress")


def columns_of(statement: Show) -> tuple[tuple[str, ...], tuple[Type, ...]]:
    """Names and types of what a SHOW returns."""
    match statement.what:
        case "JOBS":
            return _JOBS, (BIGINT, VARCHAR, VARCHAR, VARCHAR)
        case "ALL":
            names: tuple[str, ...] = ("Name", "Setting", "Description")
        case "PARAMETERS":
            names = ("Name", "Value", "Description", "Mutable")
        case "CLUSTER":
            names = ("Id", "Addr", "Type", "State", "Parallelism", "Started At")
        case _:
            names = ("Name",)
    return names, (VARCHAR,) * len(names)


def show(session: Session, statement: Show) -> Result:
    """One of the SHOW lists."""
    if statement.what == "JOBS":
        result = session.query(Batch("SELECT * FROM memory.rwc._show_jobs", ()), tag="SHOW_COMMAND")
        result.counts_rows = False
        return result
    names, types = columns_of(statement)
    rows = [row for row in _rows(session, statement) if _is_like(row[0], statement.like)]
    return rows_result("SHOW_COMMAND", names, rows, types)


def _rows(session: Session, statement: Show) -> list[tuple[object, ...]]:
    catalog = session.context.store.catalog
    match statement.what:
        case "TABLES" | "VIEWS" | "MATERIALIZED VIEWS":
            kind = statement.what.removesuffix("S").lower()
            wanted = [statement.schema] if statement.schema else session.scope.path
            found = [r for r in catalog.relations if r.kind == kind and r.created and r.database == session.database]
            return [
                (relation.qualified_name,)
                for schema in wanted
                for relation in sorted((r for r in found if r.schema == schema), key=lambda r: r.name)
            ]
        case "DATABASES":
            return [(database,) for database in sorted(catalog.databases)]
        case "SCHEMAS":
            own = {schema for database, schema in catalog.schemas if database == session.database}
            return [(schema,) for schema in sorted(own | {"information_schema", "pg_catalog", "rw_catalog"})]
        case "ALL":
            return [(v.name, session.get(v.name), v.description) for v in SESSION.values()]
        case "PARAMETERS":
            return [(v.name, session.get(v.name), v.description, "t") for v in SYSTEM.values()]
        case "CLUSTER":
            return _nodes(session)
    raise Error(f"SHOW {statement.what} is not supported", errors.FEATURE_NOT_SUPPORTED)


def _nodes(session: Session) -> list[tuple[object, ...]]:
    rows = session.context.lake.cursor().execute(
        "SELECT id, host || ':' || port, type, state, parallelism, started_at::VARCHAR FROM memory.rwc.rw_worker_nodes"
    )
    return [tuple(map(str, row)) for row in rows.fetchall()]


def _is_like(name: object, pattern: str | None) -> bool:
    """LIKE on the bare name."""
    if pattern is None:
        return True
    bare = str(name).rpartition(".")[2]
    return fnmatch.fnmatchcase(bare, pattern.replace("%", "*").replace("_", "?"))


def show_create(session: Session, statement: ShowCreate) -> Result:
    """The statement that made a relation."""
    relation = resolve(session.context.store.catalog, session.scope, statement.name, statement.kind)
    if relation.kind != statement.kind:
        raise Error(f'"{statement.name}" is not a {statement.kind}', errors.WRONG_OBJECT_TYPE)
    row = (relation.qualified_name, relation.definition)
    return rows_result("SHOW_COMMAND", CREATE_COLUMNS, [row], (VARCHAR, VARCHAR))


def show_variable(session: Session, statement: ShowVariable) -> Result:
    return rows_result("SHOW_VARIABLE", ("Name",), [(session.get(statement.name),)], (VARCHAR,))


def set_variable(session: Session, statement: SetVariable) -> Result:
    """SET, RESET of one variable, and ALTER SYSTEM SET: of a system parameter, or of a session variable's default."""
    if not statement.system:
        session.set(statement.name, statement.value)
        return Result("SET_VARIABLE")
    if not session.user.is_super:
        raise permission_denied("must be superuser to execute ALTER SYSTEM")
    variable = find(statement.name, system=True)
    value = normalise(variable, statement.value) if statement.value is not None else None
    session.context.config.check_parameter(variable.name, value)
    with session.context.store.change() as cursor:
        session.context.store.set_parameter(cursor, variable.name, value)
    notices = []
    if variable.name in SESSION:
        session.set(variable.name, value)
        state = f"set to {value}" if value is not None else "reset to default"
        notices.append(Notice(f"The config {variable.name} of the current session has already been {state}"))
    return Result("ALTER_SYSTEM", notices=notices)
