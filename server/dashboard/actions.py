"""The changes that the dashboard makes: statements, run as the logged-in user."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from sparkwave.catalog import errors
from sparkwave.catalog.errors import Error, not_found
from sparkwave.catalog.names import literal, quote
from sparkwave.server.context import Context
from sparkwave.server.dashboard.contents import BACKFILLING
from sparkwave.server.dashboard.pages import Reader, run, session
from sparkwave.server.dashboard.quoting import quoted


def cancel(context: Context, reader: Reader, body: Mapping[str, Any]) -> dict[str, Any]:
    """Run CANCEL JOBS for `id`. Raises Error 42501 for another user's job, 22023 if `id` is no number."""
    id_ = _number(body.get("id"), "the id of a job")
    with session(context, reader) as client:
        cancelled = run(client, f"CANCEL JOBS {id_}")
    return {"cancelled": [int(row["Id"]) for row in cancelled]}


def limit(context: Context, reader: Reader, body: Mapping[str, Any]) -> dict[str, Any]:
    """Set the BACKFILL_RATE_LIMIT of the creating job `id` to `rows` a second; 0 pauses it, None is no limit.

    Raises Error 42501 for another user's job, 42704 if there is none, 22023 if `id` or `rows` is no number.
    """
    id_, rows = _number(body.get("id"), "the id of a job"), body.get("rows")
    given = "DEFAULT" if rows is None else str(_number(rows, "the limit"))
    relation = context.store.catalog.by_id.get(id_)
    if relation is None or not relation.is_streaming or relation.created:
        raise not_found("job", str(id_))
    name = f"{quote(relation.schema)}.{quote(relation.name)}"
    with session(context, Reader(reader.user, relation.database)) as client:
        run(client, f"ALTER {relation.kind.upper()} {name} SET BACKFILL_RATE_LIMIT TO {given}")
    return {"id": id_, "rows": rows}


def end(context: Context, reader: Reader, body: Mapping[str, Any]) -> dict[str, Any]:
    """Cancel the statement of the session `pid`. Raises Error 42501 for another user's session."""
    pid = _number(body.get("pid"), "the process id of a session")
    with session(context, reader) as client:
        (row,) = run(client, f"SELECT pg_catalog.pg_cancel_backend({pid}) AS is_done")
    return {"is_done": bool(row["is_done"])}


def audit(context: Context, reader: Reader, body: Mapping[str, Any]) -> dict[str, Any]:
    """Compare the view or index `id` with its query.

    Raises Error 42501 for another user's, 42704 if there is none, 57014 if it takes longer than a page may.
    """
    id_ = _number(body.get("id"), "the id of a view")
    relation = context.store.catalog.by_id.get(id_)
    if relation is None or relation.kind not in ("materialized view", "index"):
        raise not_found("view", str(id_))
    name = f"{quote(relation.schema)}.{quote(relation.name)}"
    with session(context, Reader(reader.user, relation.database)) as client:
        (row,) = run(client, f"AUDIT {relation.kind.upper()} {name}")
    return {"result": row["Result"], "seconds": row["Seconds"]}


def quote_statement(context: Context, reader: Reader, body: Mapping[str, Any]) -> dict[str, Any]:
    """Return what the backfill of the CREATE statement `sql` would take, or why it cannot be quoted.

    Raises Error 22023 if `sql` is no text.
    """
    sql = body.get("sql")
    if not isinstance(sql, str):
        raise Error("the statement is a text", errors.INVALID_PARAMETER_VALUE)
    with session(context, reader, default_transaction_read_only="on") as client:
        return quoted(client, sql)


def set_parameter(context: Context, reader: Reader, body: Mapping[str, Any]) -> dict[str, Any]:
    """Run ALTER SYSTEM SET for one of `BACKFILLING`.

    Raises Error 42501 unless a superuser asks, 22023 for a wrong value.
    """
    name, value = body.get("name"), body.get("value")
    if name not in BACKFILLING:
        raise Error(f'"{name}" cannot be set here', errors.UNDEFINED_OBJECT)
    if not isinstance(value, str):
        raise Error("the value is a text", errors.INVALID_PARAMETER_VALUE)
    with session(context, reader) as client:
        run(client, f"ALTER SYSTEM SET {name} = {literal(value)}")
    return {"name": name, "value": context.parameter(name)}


def _number(value: object, what: str) -> int:
    """Return a whole number from 0 to 2**31 - 1. Raises Error 22023."""
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value < 1 << 31:
        raise Error(f"{what} is a number", errors.INVALID_PARAMETER_VALUE)
    return value


ACTIONS: dict[str, Callable[[Context, Reader, Mapping[str, Any]], dict[str, Any]]] = {
    "cancel": cancel,
    "limit": limit,
    "end": end,
    "audit": audit,
    "quote": quote_statement,
    "parameter": set_parameter,
}
