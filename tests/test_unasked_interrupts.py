"""A query that DuckDB interrupts itself, since it fails in another thread, tells its error."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
import pytest
from test_law import opened

from sparkwave.catalog.errors import Error
from sparkwave.server.reads.batches import BATCH_ROWS, Batches
from sparkwave.server.session.session import Session


class Interrupted:
    """A reader of a result that hands out some batches, and then is interrupted as DuckDB (1.5.5) says it."""

    def __init__(self, batches: int) -> None:
        self._left = batches

    def read_next_batch(self) -> pa.RecordBatch:
        if not self._left:
            raise OSError("INTERRUPT Error: Interrupted!")
        self._left -= 1
        return pa.record_batch({"n": [0]})


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Session]:
    with opened(tmp_path_factory.mktemp("interrupts") / "lake") as (context, _):
        yield Session(context, {"user": "root"})


def read(session: Session, first: int, sql: str) -> list[int]:
    """The rows of a query whose first run hands out so many batches before it is interrupted."""
    cursor = session.cursor()
    made = Batches(session, cursor, Interrupted(first), None, lambda: cursor.execute(sql).to_arrow_reader(BATCH_ROWS))
    return [value for batch in made for value in batch.column(0).to_pylist()]


def test_the_rows_come_of_a_second_run(session: Session) -> None:
    assert read(session, 0, "SELECT unnest([1, 2])") == [1, 2]


@pytest.mark.parametrize("first", [0, 1])
def test_the_error_is_found(session: Session, first: int) -> None:
    with pytest.raises(Error, match="division by zero"):
        read(
            session,
            first,
            "SELECT CASE WHEN i < 99999 THEN i ELSE error('division by zero') END FROM range(100000) r(i)",
        )


def test_rows_are_not_told_twice(session: Session) -> None:
    with pytest.raises(Error, match="nobody asked for that"):
        read(session, 1, "SELECT unnest([1, 2])")


def test_a_cancel_is_a_cancel(session: Session) -> None:
    session.running.cancel()
    with pytest.raises(Error, match="canceling statement due to user request"):
        read(session, 0, "SELECT 1")
    session.running.forget_cancel()
