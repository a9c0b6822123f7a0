"""Statements whose WITH changes rows: all parts in one transaction, at one snapshot.

As in PostgreSQL no part sees what another one has changed. So a table that a part changes may not be read or changed by
another part.
"""

from __future__ import annotations

from collections.abc import Callable

from sparkwave.catalog import errors
from sparkwave.catalog.errors import Error
from sparkwave.catalog.model import Relation
from sparkwave.catalog.types import TEXT, Type
from sparkwave.planner.batch.given_rows import GivenRows, numbers_in, renumbered, tables_in, with_given
from sparkwave.planner.bind.scopes import find_read
from sparkwave.planner.statements import Delete, Insert, Query, Statement, Update, WithWrites
from sparkwave.server.reads import execution, queries
from sparkwave.server.session import atomic
from sparkwave.server.session.session import Session
from sparkwave.server.wire.parameter_values import decode_parameter
from sparkwave.server.wire.result import Result, ResultColumn
from sparkwave.server.wire.text_format import text_array
from sparkwave.server.writes import dml

Run = Callable[[Session, Statement, tuple[int, ...], tuple[object, ...]], Result]
Part = Query | Insert | Update | Delete
_ATTEMPTS = 50  # of transactions in conflict, one commits at each attempt


def with_writes(
    session: Session, statement: WithWrites, oids: tuple[int, ...], values: tuple[object, ...], run: Run
) -> Result:
    """Run the parts by `run`: in the open transaction, or in a transaction of their own, again after a conflict."""
    _check_apart(session, statement)
    if session.transaction.block is not None:
        return _run_parts(session, statement, oids, values, run)
    for attempt in range(1, _ATTEMPTS + 1):
        atomic.begin(session, implicit=True)
        try:
            result = _run_parts(session, statement, oids, values, run)
            atomic.commit(session, ends_block=False)
            return result
        except Error as error:
            atomic.abandon(session, ends_block=False)
            if error.sqlstate != errors.SERIALIZATION_FAILURE or attempt == _ATTEMPTS:
                raise
        except BaseException:
            atomic.abandon(session, ends_block=False)
            raise
    raise AssertionError("unreachable")


def _run_parts(
    session: Session, statement: WithWrites, oids: tuple[int, ...], values: tuple[object, ...], run: Run
) -> Result:
    given: list[GivenRows] = []
    count = len(parameters(session, statement, oids))
    oids, values = oids + (0,) * (count - len(oids)), values[:count]
    for write in statement.writes:
        done = run(session, with_given(write.statement, given), oids, values)
        if done.columns is None:
            continue
        columns = _named(done.columns, write.columns)
        given.append(GivenRows(write.name, columns, len(values) + 1))
        values = (*values, *_arrays(done, [type_ for _, type_ in columns]))
        oids = (*oids, *(0 for _ in columns))
    main = with_given(statement.main, given)
    if isinstance(main, Query):  # a query takes only the values of its own parameters
        main, numbers = renumbered(main)
        oids, values = tuple(oids[n - 1] for n in numbers), tuple(values[n - 1] for n in numbers)
    result = run(session, main, oids, values)
    if result.batches is not None:
        result.batches = iter(list(result.batches))
    return result


def _arrays(result: Result, types: list[Type]) -> list[list[object]]:
    """Return the columns of a result as values of parameters."""
    found: list[list[object]] = [[] for _ in types]
    for batch in result.batches or ():
        for values, array, type_ in zip(found, batch.columns, types, strict=True):
            texts = text_array(array, type_).to_pylist()
            values += (decode_parameter(None if text is None else text.encode(), 0, type_) for text in texts)
    return found


def _named(columns: tuple[ResultColumn, ...], names: tuple[str, ...]) -> tuple[tuple[str, Type], ...]:
    given = [*names, *(column.name for column in columns[len(names) :])]
    for column in columns:
        if column.type.is_struct:
            raise Error("rows in RETURNING in WITH are not supported", errors.FEATURE_NOT_SUPPORTED)
    return tuple((name, column.type) for name, column in zip(given, columns, strict=True))


def _parts(session: Session, statement: WithWrites, oids: tuple[int, ...], count: int) -> list[Part]:
    """Return the parts as they are planned before they run."""
    given: list[GivenRows] = []
    parts: list[Part] = []
    for write in statement.writes:
        parts.append(with_given(write.statement, given))
        columns = dml.returned_columns(session, parts[-1], oids)  # type: ignore[arg-type]
        if columns is not None:
            named = _named(columns, write.columns)
            given.append(GivenRows(write.name, named, count + 1))
            count += len(named)
    return [*parts, with_given(statement.main, given)]


def parameters(session: Session, statement: WithWrites, oids: tuple[int, ...]) -> tuple[Type, ...]:
    """Return the types of the client's parameters: each as at the parameter's first place."""
    numbers = numbers_in(statement)
    count = max(len(oids), *numbers, 0)
    found: dict[int, Type] = {}
    for part in _parts(session, statement, oids, count) if count else ():
        types = queries.plan(session, part, oids).batch.parameters if isinstance(part, Query) else None
        types = types or dml.plan(session, part, oids).parameters  # type: ignore[arg-type]
        for number in numbers_in(part) & numbers:
            found.setdefault(number, types[number - 1])
    return tuple(found.get(number, TEXT) for number in range(1, count + 1))


def columns(session: Session, statement: WithWrites, oids: tuple[int, ...]) -> tuple[ResultColumn, ...] | None:
    """Return the columns of the result, None without rows."""
    main = _parts(session, statement, oids, len(parameters(session, statement, oids)))[-1]
    if isinstance(main, Query):
        return execution.describe(session, queries.plan(session, main, oids))
    return dml.returned_columns(session, main, oids)


def _check_apart(session: Session, statement: WithWrites) -> None:
    """Raise Error 0A000 where a part reads or changes a table that another part changes."""
    parts: list[Part] = [*(write.statement for write in statement.writes), statement.main]
    names = {write.name for write in statement.writes}
    written = [_changed(session, part) for part in parts]
    for place, part in enumerate(parts):
        others = {changed for other, changed in enumerate(written) if changed is not None and other != place}
        own = [] if isinstance(part, Query) else [part.table]
        for table in [*own, *tables_in(part)]:
            relation = None if table.name in names else find_read(session.transaction.catalog, session.scope, table)
            found = others & _stored(session, relation) if relation is not None else set()
            if found:
                changed = session.transaction.catalog.by_id[found.pop()].name
                message = f"a part of WITH with {changed}, which another part changes, is not supported"
                raise Error(message, errors.FEATURE_NOT_SUPPORTED, position=table.position)


def _changed(session: Session, part: Part) -> int | None:
    found = None if isinstance(part, Query) else find_read(session.transaction.catalog, session.scope, part.table)
    return found.id if found is not None else None


def _stored(session: Session, relation: Relation) -> set[int]:
    """Return the ids of a relation and, if it is a plain view, of the relations that it reads."""
    found = {relation.id}
    for id_ in relation.upstreams if relation.is_view else ():
        found |= _stored(session, session.transaction.catalog.by_id[id_])
    return found
