"""Queries of the past: finds the snapshots that a statement names, and words the errors for expired snapshots."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from dataclasses import replace
from datetime import UTC, datetime

from sparkwave.catalog import errors
from sparkwave.catalog.errors import Error
from sparkwave.catalog.lake import history
from sparkwave.catalog.lake.ducklake import Cursor
from sparkwave.catalog.lake.lake_tables import at_version
from sparkwave.catalog.lake.translation import DuckDBError, translate
from sparkwave.catalog.model import Catalog
from sparkwave.catalog.names import LakeTable, system_table
from sparkwave.planner.batch.query import Environment
from sparkwave.planner.batch.time_travel import Point
from sparkwave.server.session.session import Session


def environment_at(session: Session, asked: Mapping[str, Point]) -> Environment:
    """Return the session's environment with the snapshots of the points in time that a statement names.

    Raises Error 72000 for a time or snapshot that is too old, 22023 for one that does not exist.
    """
    if not asked:
        return session.environment
    session.store_views()
    cursor = session.cursor()
    try:
        versions = {key: _version(cursor, point) for key, point in asked.items()}
        absent = {snapshot: _absent(cursor, session.environment.catalog, snapshot) for snapshot in versions.values()}
    except DuckDBError as error:
        found = translate(error)
        found.position = next(iter(asked.values())).position
        raise found from error
    finally:
        cursor.close()
    return replace(session.environment, versions=versions, absent=absent)


# RisingWave's epochs: milliseconds since this time (src/common/src/util/epoch.rs), and 16 bits that count within one.
_EPOCHS_SINCE_MS, _EPOCH_BITS = 1_617_235_200_000, 16


def at_epoch(session: Session, environment: Environment, epoch: int) -> Environment:
    """Return the environment with all relations as they were at an epoch, for `query_epoch`. Raises Error 72000."""
    session.store_views()
    time_us = ((epoch >> _EPOCH_BITS) + _EPOCHS_SINCE_MS) * 1000
    with contextlib.closing(session.context.lake.cursor()) as cursor:
        found = history.snapshot_at(cursor, time_us)
        if found is None:
            raise expired(cursor, f"epoch {epoch}", None)
        absent = {found: _absent(cursor, environment.catalog, found)}
    return replace(environment, snapshot=found, overlays={}, absent=absent)


def _absent(cursor: Cursor, catalog: Catalog, snapshot: int) -> frozenset[int]:
    """Return the ids of relations that were not yet filled at a snapshot, or whose rows of that time are gone."""
    then = at_version(system_table("relations"), snapshot)
    try:
        rows = cursor.execute(f"SELECT id, lake_schema, lake_name FROM {then} WHERE created").fetchall()
    except DuckDBError as error:
        if "lake_schema" not in str(error):
            raise
        rows = []  # the snapshot is by an older server, which did not store these columns
    filled = {id_: LakeTable(schema, name) for id_, schema, name in rows}
    return frozenset(r.id for r in catalog.relations if r.is_streaming and filled.get(r.id) != r.lake_table)


def _version(cursor: Cursor, point: Point) -> int:
    if point.version is not None:
        return _checked(cursor, point.version, point)
    row = cursor.execute(f"SELECT {point.time}").fetchone()
    assert row is not None
    found = history.snapshot_at(cursor, row[0])
    if found is None:
        raise expired(cursor, f"of {_text(row[0])}", point.position)
    return found


def _checked(cursor: Cursor, version: int, point: Point) -> int:
    row = cursor.execute("FROM ducklake_current_snapshot('lake')").fetchone()
    assert row is not None
    if version > row[0]:
        message = f"snapshot {version} does not exist"
        raise Error(message, errors.INVALID_PARAMETER_VALUE, detail=f"The newest is {row[0]}.", position=point.position)
    if version < history.oldest(cursor).snapshot:
        raise expired(cursor, str(version), point.position)
    return version


def expired(cursor: Cursor, what: str, position: int | None) -> Error:
    """Return the error for a snapshot that has expired."""
    oldest = history.oldest(cursor)
    return Error(
        f"Time-travel version expired: {what}",
        errors.SNAPSHOT_TOO_OLD,
        detail=f"The oldest version that is left is {oldest.snapshot}, of {_text(oldest.time_us)}.",
        hint="ALTER SYSTEM SET time_travel_retention_ms keeps versions for longer.",
        position=position,
    )


def _text(time_us: int) -> str:
    try:
        return datetime.fromtimestamp(time_us / 1e6, UTC).strftime("%Y-%m-%d %H:%M:%S.%f+00:00")
    except (ValueError, OverflowError, OSError):
        return f"{time_us} µs since 1970"


@contextlib.contextmanager
def told(session: Session, versions: Mapping[str, int]) -> Iterator[None]:
    """A context that rewords DuckDB's errors about tables missing in the past, and about expired snapshots."""
    try:
        yield
    except DuckDBError as error:
        if not versions:
            raise
        with contextlib.closing(session.context.lake.cursor()) as cursor:
            if "No snapshot found" in str(error):
                raise expired(cursor, ", ".join(map(str, versions.values())), None) from error
            found = translate(error)
            if found.sqlstate == errors.UNDEFINED_TABLE:
                found.hint = "It may not have been there at the time that is asked for."
            raise found from error
