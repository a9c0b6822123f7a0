"""AUDIT and SHOW CHECKSUM: proof that the rows of a view are those of its query."""

from __future__ import annotations

from sparkwave.catalog import errors
from sparkwave.catalog.errors import Error
from sparkwave.catalog.model import Relation
from sparkwave.catalog.types import BIGINT, DOUBLE, VARCHAR
from sparkwave.executor.maintenance.audits import Client, is_auditable
from sparkwave.planner.bind.privileges import check_owner, check_relation
from sparkwave.planner.statements import AuditView, Name, ShowChecksum
from sparkwave.server.reads.result_columns import rows_result
from sparkwave.server.session.session import Session
from sparkwave.server.statements.named_relations import find_named, find_to_alter
from sparkwave.server.wire.result import Result

_AUDIT = {
    "Name": VARCHAR, "Result": VARCHAR, "Checksum": VARCHAR, "Rows": BIGINT, "Engine": VARCHAR, "Seconds": DOUBLE,
    "Detail": VARCHAR,
}  # fmt: skip
_CHECKSUM = {"Name": VARCHAR, "Checksum": VARCHAR, "Rows": BIGINT}


def audit(session: Session, statement: AuditView) -> Result:
    """Compare a view or an index with its query, computed anew.

    Raises Error 42P01 or 42704 for an unknown name, 42809 for another kind, 42501 for another user's view, 55000 while
    it is being created.
    """
    relation = find_to_alter(session, statement.name, statement.kind)
    check_owner(session.user, relation.securable)
    _check_created(relation, statement.name)
    done = session.context.audits.audit(relation, _client(session))
    checksum = done.checksum
    row = (
        relation.qualified_name, done.result, str(checksum) if checksum else None, checksum.rows if checksum else None,
        done.engine, round(done.seconds, 3), done.detail,
    )  # fmt: skip
    return rows_result("AUDIT", tuple(_AUDIT), [row], tuple(_AUDIT.values()))


def show_checksum(session: Session, statement: ShowChecksum) -> Result:
    """Return the checksum and the number of the rows of a view or index, as they are now.

    Raises the errors of `audit`, and Error 42501 without the privilege to read it.
    """
    relation = find_named(session, statement.name, "materialized view")
    if not is_auditable(relation) and not relation.is_index and relation.kind != "materialized view":
        message = f'"{statement.name}" is not a materialized view or an index'
        raise Error(message, errors.WRONG_OBJECT_TYPE, position=statement.name.position)
    check_relation(session.context.store.catalog, session.user, relation, "SELECT", statement.name.position)
    _check_created(relation, statement.name)
    checksum = session.context.audits.checksum(relation, _client(session))
    row = (relation.qualified_name, str(checksum), checksum.rows)
    return rows_result("SHOW_COMMAND", tuple(_CHECKSUM), [row], tuple(_CHECKSUM.values()))


def _client(session: Session) -> Client:
    return Client(session.interrupting, session.running.check, starts_spark=True)


def _check_created(relation: Relation, name: Name) -> None:
    if not relation.created:
        message = f'{relation.kind} "{name}" is still being created'
        raise Error(message, errors.NOT_IN_PREREQUISITE_STATE, position=name.position)
