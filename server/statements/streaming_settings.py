"""The streaming settings of new relations, from the session's variables; and ALTER … SET and RESET CONFIG."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from sparkwave.catalog import errors
from sparkwave.catalog.errors import Error
from sparkwave.catalog.relation_details import StreamingSettings
from sparkwave.catalog.stores.relation_store import put_settings
from sparkwave.planner.definitions.streaming_config import SESSION_KEYS, config_text, config_values
from sparkwave.planner.plan.parallelism import BUILT_IN, DEFAULT, check_maximum
from sparkwave.planner.statements import AlterBarrierTarget, AlterConfig, AlterDmlRateLimit
from sparkwave.server.session.session import Session
from sparkwave.server.statements.renames import altered, find_altered
from sparkwave.server.wire.result import Notice, Result

_NO_EFFECT = Notice("the configuration is stored and shown in rw_streaming_job_config, but has no effect here")


def new_settings(session: Session, kind: str) -> StreamingSettings:
    """Return the settings of a new relation. Raises Error 22023 for a parallelism above the session's maximum."""
    maximum = int(session.variables.get("streaming_max_parallelism"))
    names = (f"streaming_parallelism_for_{kind.replace(' ', '_')}", "streaming_parallelism")
    parallelism = next((value for name in names if (value := session.variables.get(name)) != DEFAULT), BUILT_IN[kind])
    backfill = session.variables.get("streaming_parallelism_for_backfill")
    check_parallelism(parallelism, maximum, "parallelism")
    check_parallelism(backfill, maximum, "backfill parallelism")
    rows_a_second = int(session.variables.get("dml_rate_limit"))
    return StreamingSettings(
        parallelism,
        None if backfill == DEFAULT else int(backfill),
        maximum,
        tuple(
            (key, config_text(value)) for name, key in SESSION_KEYS.items() if (value := session.variables.get(name))
        ),
        rows_a_second if kind == "table" and rows_a_second >= 0 else None,
    )


def check_parallelism(parallelism: str, maximum: int, what: str) -> None:
    """Raise Error 22023 for a fixed parallelism above the maximum of a job."""
    try:
        check_maximum(parallelism, maximum, what)
    except ValueError as error:
        hint = "streaming_max_parallelism is the maximum of new jobs; that of a job cannot be changed."
        raise Error(str(error), errors.INVALID_PARAMETER_VALUE, hint=hint) from error


def set_dml_rate_limit(session: Session, statement: AlterDmlRateLimit) -> Result:
    """Set the rows a second that statements may write into a table; waiting ones follow at once.

    Raises Error 42P01, 42809 or 42501.
    """
    return _set(session, statement, lambda old: replace(old, dml_rate_limit=statement.limit))


def set_barrier_target(session: Session, statement: AlterBarrierTarget) -> Result:
    """Set how long barriers may take beside the backfill of a job, which follows at once.

    Raises Error 42P01, 42809 or 42501.
    """
    return _set(session, statement, lambda old: replace(old, barrier_latency_target_ms=statement.target_ms))


def _set(
    session: Session,
    statement: AlterDmlRateLimit | AlterBarrierTarget,
    changed: Callable[[StreamingSettings], StreamingSettings],
) -> Result:
    """Store changed settings of a relation, or of the rows that are to replace those of a view."""
    store = session.context.store
    with store.change() as cursor:
        relation = find_altered(session, statement, is_exact=True)
        if isinstance(relation, Notice):
            return altered(statement.kind, relation)
        relation = store.catalog.replacement(relation.id) or relation
        put_settings(cursor, replace(relation, streaming=changed(relation.streaming)))
    return altered(statement.kind)


def alter_config(session: Session, statement: AlterConfig) -> Result:
    """Store keys of the streaming configuration, or remove them where the value is None.

    Raises Error 42P01, 42704, 42809, 42501, or 22023 for an unknown key or a wrong value.
    """
    store = session.context.store
    with store.change() as cursor:
        relation = find_altered(session, statement, is_exact=True)
        if isinstance(relation, Notice):
            return altered(statement.kind, relation)
        found = dict(relation.streaming.config)
        for key, value in config_values(statement.entries).items():
            found.pop(key, None)
            if value is not None:
                found[key] = value
        settings = replace(relation.streaming, config=tuple(sorted(found.items())))
        put_settings(cursor, replace(relation, streaming=settings))
    return altered(statement.kind, _NO_EFFECT)
