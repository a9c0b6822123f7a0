"""Group commit: stores rows of several sessions that wait for the same table in one transaction.

Source: DeWitt et al., "Implementation Techniques for Main Memory Database Systems", SIGMOD 1984. A session stores its
rows at once if no other session is storing rows in the table. Otherwise it waits; the first session that waits then
stores the rows of all, in their order of arrival. Before that it waits a moment for as many sessions as the last group
had: clients that load data return right after their answers.
"""

from __future__ import annotations

import re
import threading
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

from sparkwave.catalog.errors import Error
from sparkwave.catalog.lake.translation import DuckDBError
from sparkwave.catalog.locks import check_free
from sparkwave.catalog.model import Column, Relation
from sparkwave.catalog.names import LakeTable

# The longest wait of a group's first session for others: less than a transaction takes.
PATIENCE_SECONDS = 0.01


# A parameter in DuckDB's text of rows, and the tokens that might contain a similar text.
_PARAMETER = re.compile(r"""'(?:[^']|'')*+'|"(?:[^"]|"")*+"|\$(\d++)""")


@dataclass(frozen=True)
class Fill:
    """A statement's `count` rows of constants and parameters: SQL that follows VALUES, and parameter values by name.

    The rows fill `columns`; their dates and times are in `time_zone`. `drawn` gets the last number that the rows draw
    from each sequence, by id.
    """

    columns: tuple[Column, ...]
    rows: str
    values: dict[str, object] | None
    time_zone: str
    count: int = 1
    drawn: dict[int, int] = field(default_factory=dict)


def together(fills: Sequence[Fill]) -> tuple[str, dict[str, object] | None]:
    """Return the rows of statements that fill the same columns, in order, and the parameters of all."""
    rows: list[str] = []
    values: dict[str, object] = {}
    for number, fill in enumerate(fills):
        given, prefix = fill.values or {}, f"s{number}_"
        rows.append(_renamed(fill.rows, prefix) if given else fill.rows)
        values |= {f"{prefix}{name}": value for name, value in given.items()}
    return f"VALUES {', '.join(rows)}", values or None


def _renamed(rows: str, prefix: str) -> str:
    return _PARAMETER.sub(lambda found: f"${prefix}{found[1]}" if found[1] else found[0], rows)


# Stores the rows of several statements in one transaction. Raises Refused.
Store = Callable[[Sequence[Fill]], None]


class Refused(Exception):
    """The rows of a statement are wrong, for the reason `error`; nothing is stored."""

    def __init__(self, error: Exception) -> None:
        super().__init__(str(error))
        self.error = error


@contextmanager
def refusing() -> Iterator[None]:
    """A context in which every error is a fault of the rows."""
    try:
        yield
    except (Error, DuckDBError) as error:
        raise Refused(error) from error


@dataclass(eq=False)
class _Insert:
    """A statement's rows and its outcome. `alone`: a group with these rows was refused."""

    target: Relation
    fill: Fill
    woken: threading.Event = field(default_factory=threading.Event)
    alone: bool = False
    ended: bool = False
    error: Exception | None = None

    def may_join(self, leader: _Insert) -> bool:
        """Return whether the leader's group may store these rows too."""
        own, other = self.fill, leader.fill
        is_like = self.target == leader.target and own.columns == other.columns and own.time_zone == other.time_zone
        return is_like and not self.alone


@dataclass
class _Queue:
    """The sessions that wait for a table, in order of arrival, and the size of the last group."""

    waiting: list[_Insert] = field(default_factory=list)
    is_led: bool = False
    last: int = 1


class GroupCommit:
    """The groups of all tables, shared by all sessions."""

    def __init__(self) -> None:
        self._queues: defaultdict[LakeTable, _Queue] = defaultdict(_Queue)
        self._changed = threading.Condition()

    def store(self, target: Relation, fill: Fill, store: Store) -> None:
        """Store a statement's rows. Raises the error for which they are refused, and other errors of `store`."""
        check_free()
        own = _Insert(target, fill)
        if not self._may_lead(own):
            own.woken.wait()
        if not own.ended:
            try:
                self._lead(own, store)
            finally:
                self._pass_on(target.lake_table)
        if own.error is not None:
            raise own.error

    def _may_lead(self, own: _Insert) -> bool:
        """Return whether no session is storing rows in the table; else the statement joins the queue."""
        with self._changed:
            queue = self._queues[own.target.lake_table]
            if not queue.is_led:
                queue.is_led = True
                return True
            queue.waiting.append(own)
            self._changed.notify_all()
            return False

    def _pass_on(self, table: LakeTable) -> None:
        """Let the next waiting session lead."""
        with self._changed:
            queue = self._queues[table]
            if queue.waiting:
                queue.waiting.pop(0).woken.set()
            elif queue.last > 1:
                queue.is_led = False
            else:
                del self._queues[table]

    def _lead(self, own: _Insert, store: Store) -> None:
        group = self._group(own)
        try:
            store([insert.fill for insert in group])
        except Refused as refused:
            if len(group) > 1:
                self._part(group)
                self._lead(own, store)
                return
            own.error = refused.error
        except Exception as error:
            for insert in group:
                insert.error = error
        for insert in group:
            insert.ended = True
            insert.woken.set()

    def _group(self, own: _Insert) -> list[_Insert]:
        """Return the statements to store now, removed from the queue."""
        if own.alone:
            return [own]
        with self._changed:
            queue = self._queues[own.target.lake_table]
            self._changed.wait_for(lambda: len(queue.waiting) >= queue.last - 1, PATIENCE_SECONDS)
            others = [insert for insert in queue.waiting if insert.may_join(own)]
            queue.waiting = [insert for insert in queue.waiting if insert not in others]
            queue.last = 1 + len(others)
        return [own, *others]

    def _part(self, group: list[_Insert]) -> None:
        """Have each statement of a refused group stored separately, before all later ones."""
        for insert in group:
            insert.alone = True
        with self._changed:
            self._queues[group[0].target.lake_table].waiting[:0] = group[1:]
