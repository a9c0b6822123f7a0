"""Positions in the client's text for the errors of a statement that has a tree."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from sparkwave.catalog.errors import Error
from sparkwave.catalog.lake.translation import DuckDBError, translate
from sparkwave.planner.batch.error_places import located, trees_of
from sparkwave.planner.statements import Insert, Statement
from sparkwave.server.session.plan_cache import LONGEST_TEXT, parse_all
from sparkwave.server.session.session import Session


@contextmanager
def placed(statement: Statement, session: Session) -> Iterator[None]:
    """A context in which a statement runs: DuckDB's errors become Error, and errors get their position if known."""
    try:
        yield
    except DuckDBError as error:
        raise _located(translate(error), statement, session) from error
    except Error as error:
        if error.position is None:
            _located(error, statement, session)
        raise


def _located(error: Error, statement: Statement, session: Session) -> Error:
    """Return an error with its position; a long INSERT of constant rows is not parsed for it."""
    if isinstance(statement, Insert) and statement.rows is not None:
        if len(statement.rows.sql) > LONGEST_TEXT:
            return error
        statement = parse_all(statement.rows.sql)
    return located(error, trees_of(statement), session.environment)
