"""ALTER FRAGMENT: the settings of the jobs that fragments are parts of.

A limit and a parallelism are those of a whole job here (docs/jobs.md), so that all of its fragments have them.
"""

from __future__ import annotations

from contextlib import closing

from sparkwave.catalog import errors
from sparkwave.catalog.errors import Error
from sparkwave.catalog.model import CREATING, INITIAL, Relation
from sparkwave.planner.plan.parallelism import ADAPTIVE, DEFAULT
from sparkwave.planner.statements import (
    AlterBackfillParallelism,
    AlterDmlRateLimit,
    AlterFragments,
    AlterParallelism,
    AlterRateLimit,
    AlterSinkRateLimit,
    AlterSourceRateLimit,
    FragmentParallelism,
    FragmentRateLimit,
    Name,
)
from sparkwave.server.session.session import Session
from sparkwave.server.statements import alter_jobs, sources, streaming_settings
from sparkwave.server.wire.result import Result

_TABLE_OF = "SELECT table_id FROM memory.rwc.rw_fragments WHERE fragment_id = ?"


def alter_fragments(session: Session, statement: AlterFragments) -> Result:
    """Set the rate limit, or the parallelism, of the jobs of some fragments.

    Raises Error 42704 for an unknown fragment, 42501, and the errors of ALTER … SET of the job.
    """
    relations = [_relation(session, *each) for each in statement.ids]
    for relation, (_, position) in dict(zip(relations, statement.ids, strict=True)).items():
        match statement.setting:
            case FragmentRateLimit(limit):
                _set_rate_limit(session, relation, limit, position)
            case FragmentParallelism(parallelism):
                _set_parallelism(session, relation, parallelism, position)
    return Result("ALTER_FRAGMENT")


def _relation(session: Session, id_: int, position: int) -> Relation:
    """Return the relation of a fragment, whose job has it, in the session's database."""
    with closing(session.context.system_views.cursor("rwc.rw_fragments")) as cursor:
        row = cursor.execute(_TABLE_OF, [id_]).fetchone()
    relation = session.context.store.catalog.by_id.get(row[0]) if row is not None else None
    if relation is None or relation.database != session.scope.database:
        hint = "rw_catalog.rw_fragments has those of all jobs."
        raise Error(f"fragment id not found: {id_}", errors.UNDEFINED_OBJECT, hint=hint, position=position)
    return relation


def _set_rate_limit(session: Session, relation: Relation, limit: int | None, position: int) -> None:
    kind, name = relation.kind, _name(relation, position)
    if relation.is_streaming and (not relation.is_sink or _is_creating(session, relation)):
        alter_jobs.set_rate_limit(session, AlterRateLimit(kind, name, limit))
    elif relation.is_sink:
        alter_jobs.set_sink_rate_limit(session, AlterSinkRateLimit(kind, name, limit))
    elif relation.id in session.context.store.catalog.sources:
        sources.set_rate_limit(session, AlterSourceRateLimit(kind, name, limit))
    else:
        streaming_settings.set_dml_rate_limit(session, AlterDmlRateLimit(kind, name, limit))


def _set_parallelism(session: Session, relation: Relation, parallelism: str, position: int) -> None:
    """Set the parallelism of a job, or of its backfill while the job is being created."""
    kind, name = relation.kind, _name(relation, position)
    if _is_creating(session, relation):
        number = int(parallelism) if parallelism.isdigit() else None
        alter_jobs.set_backfill_parallelism(session, AlterBackfillParallelism(kind, name, number))
    else:
        parallelism = ADAPTIVE if parallelism == DEFAULT else parallelism
        alter_jobs.set_parallelism(session, AlterParallelism(kind, name, parallelism))


def _is_creating(session: Session, relation: Relation) -> bool:
    job = session.context.store.catalog.job_by_id.get(relation.id)
    return job is not None and job.status in (INITIAL, CREATING)


def _name(relation: Relation, position: int) -> Name:
    return Name(relation.database, relation.schema, relation.name, position)
