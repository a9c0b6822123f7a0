"""ALTER MATERIALIZED VIEW … AS: fills a view with another query beside the running view, then replaces it.

The running view goes on until then, and stays if the job fails or is cancelled. RisingWave replaces the query without
computing the view's rows again (reference §8.4).
"""

from __future__ import annotations

from sparkwave.catalog import errors
from sparkwave.catalog.errors import Error
from sparkwave.planner.statements import AlterQuery
from sparkwave.server.session.session import Session
from sparkwave.server.statements.planned_jobs import creation_of
from sparkwave.server.statements.renames import altered, check_created, find_altered
from sparkwave.server.statements.streaming_jobs import run_job
from sparkwave.server.wire.result import Notice, Result


def alter_query(session: Session, statement: AlterQuery) -> Result:
    """Fill the view with its new query, and wait for it unless `background_ddl` is on.

    Its name, id, owner and privileges stay, and the column names that CREATE listed; its options do not. Raises Error
    42704, 42809, 42501, 55000 for a view that is being created, and the errors of `run_job`.
    """
    view = find_altered(session, statement)
    if isinstance(view, Notice):
        return altered(statement.kind, view)
    check_created(view, statement.name)
    if view.streaming.refresh_s is not None:
        message = "ALTER MATERIALIZED VIEW is not supported for batch refresh materialized views"
        raise Error(message, errors.FEATURE_NOT_SUPPORTED, position=statement.name.position)
    return run_job(session, creation_of(view, statement), "ALTER MATERIALIZED VIEW", view)
