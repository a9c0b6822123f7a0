"""The changes that the dashboard makes: statements, run as the logged-in user."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from sparkwave.catalog import errors
from sparkwave.catalog.errors import Error
from sparkwave.catalog.names import literal
from sparkwave.server.context import Context
from sparkwave.server.dashboard.pages import BACKFILLING, Reader, run, session


def cancel(context: Context, reader: Reader, body: Mapping[str, Any]) -> dict[str, Any]:
    """Run CANCEL JOBS for `id`. Raises Error 42501 for another user's job, 22023 if `id` is no number."""
    id_ = body.get("id")
    if not isinstance(id_, int) or isinstance(id_, bool):
        raise Error("the id of a job is a number", errors.INVALID_PARAMETER_VALUE)
    with session(context, reader) as client:
        cancelled = run(client, f"CANCEL JOBS {id_}")
    return {"cancelled": [int(row["Id"]) for row in cancelled]}


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


ACTIONS: dict[str, Callable[[Context, Reader, Mapping[str, Any]], dict[str, Any]]] = {
    "cancel": cancel,
    "parameter": set_parameter,
}
