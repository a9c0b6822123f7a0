"""Draws numbers from sequences for statements.

Numbers are counted in memory, and reserved in the lake in blocks before they are used, so that no number repeats after
a crash; the rest of a block is lost then. As in PostgreSQL, a rolled-back transaction does not return its numbers.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, field

from sparkwave.catalog import errors
from sparkwave.catalog.errors import Error
from sparkwave.catalog.lake.ducklake import Cursor
from sparkwave.catalog.lake.translation import DuckDBError, translate
from sparkwave.catalog.locks import Rank, RankedLock
from sparkwave.catalog.model import Relation
from sparkwave.catalog.names import quote
from sparkwave.catalog.relation_details import Sequence
from sparkwave.catalog.stores.sequence_store import Position, load_position, put_position
from sparkwave.catalog.stores.store import Store
from sparkwave.planner.batch.sequence_calls import Draws, call_of, drawing_name
from sparkwave.planner.definitions.counting import LAST, NEXT

# The numbers that are reserved at once: twice as many each time, up to the last.
_FIRST_BLOCK, _LAST_BLOCK = 32, 8192


@dataclass
class Counter:
    """This server's position in a sequence; `reserved` is the stored position.

    The lock is held while a statement draws.
    """

    lock: RankedLock
    given: Position
    reserved: Position
    block: int = _FIRST_BLOCK


@dataclass
class SequenceNumbers:
    """The counters of all sequences."""

    store: Store
    _counters: dict[int, Counter] = field(default_factory=dict)

    @contextmanager
    def drawing(self, cursor: Cursor, ids: tuple[int, ...]) -> Iterator[dict[int, int]]:
        """A context in which the cursor has a temporary sequence for each id, from which one statement draws.

        Yields a dictionary, which at the end has each sequence's last number by id, once those numbers are reserved.
        Raises Error 2200H when a sequence is at its end, 55000 for a dropped sequence.
        """
        found: dict[int, int] = {}
        with ExitStack() as held:
            counters = {id_: held.enter_context(self.holding(id_)) for id_ in sorted(ids)}
            try:
                for id_, counter in counters.items():
                    _begin(cursor, id_, self._sequence(id_), counter.given)
                yield found
            except DuckDBError as error:
                raise self._named(error, ids) from error
            for id_, counter in counters.items():
                last = _last(cursor, id_)
                if last is not None:
                    self._give(id_, counter, Position(last, True))
                    found[id_] = last

    def set(self, id_: int, position: Position) -> None:
        """Set a sequence's position (`setval`). Raises Error 22003 for a number out of its bounds."""
        relation = self._relation(id_)
        low, high = relation.sequence.minimum, relation.sequence.maximum
        if not low <= position.last <= high:
            message = f'setval: value {position.last} is out of bounds for sequence "{relation.name}" ({low}..{high})'
            raise Error(message, errors.NUMERIC_VALUE_OUT_OF_RANGE)
        with self.holding(id_) as counter:
            self._reserve(id_, counter, position)
            counter.given = position

    def restart(self, tables: Iterable[Relation]) -> None:
        """Restart the sequences behind columns of tables."""
        for table in tables:
            for relation in self.store.catalog.sequences_of(table):
                self.set(relation.id, Position(relation.sequence.start, False))

    @contextmanager
    def holding(self, id_: int) -> Iterator[Counter]:
        """A context in which no other session draws from the sequence."""
        counter = self._counters.get(id_)
        if counter is None:
            with closing(self.store.lake.cursor()) as cursor:
                position = load_position(cursor, id_)
            made = Counter(RankedLock(Rank.SEQUENCE, f"{id_:020}"), position, position)
            counter = self._counters.setdefault(id_, made)
        with counter.lock:
            yield counter

    def close(self) -> None:
        """Return reserved numbers that were not used."""
        for id_, counter in self._counters.items():
            if counter.given != counter.reserved and id_ in self.store.catalog.by_id:
                self._reserve(id_, counter, counter.given)

    def _relation(self, id_: int) -> Relation:
        relation = self.store.catalog.by_id.get(id_)
        if relation is None:
            raise Error(f"the sequence with OID {id_} has been dropped", errors.NOT_IN_PREREQUISITE_STATE)
        return relation

    def _sequence(self, id_: int) -> Sequence:
        return self._relation(id_).sequence

    def _give(self, id_: int, counter: Counter, given: Position) -> None:
        """Move a sequence's position, and reserve more numbers if needed."""
        sequence = self._sequence(id_)
        step = sequence.increment
        if sequence.cycles:
            self._reserve(id_, counter, given)
        elif not counter.reserved.is_called or (given.last - counter.reserved.last) * step > 0:
            ahead = given.last + step * counter.block
            bounded = min(ahead, sequence.maximum) if step > 0 else max(ahead, sequence.minimum)
            self._reserve(id_, counter, Position(bounded, True))
            counter.block = min(2 * counter.block, _LAST_BLOCK)
        counter.given = given

    def _reserve(self, id_: int, counter: Counter, position: Position) -> None:
        lake = self.store.lake
        with closing(lake.cursor()) as cursor, lake.transaction(cursor):
            put_position(cursor, id_, position)
        counter.reserved = position

    def _named(self, error: DuckDBError, ids: tuple[int, ...]) -> Error:
        """Return the error with the sequence's name in place of the temporary sequence's."""
        translated = translate(error)
        for id_ in ids:
            own = f'"{drawing_name(id_)}"'
            if own in translated.message and "reached m" in translated.message:
                message = translated.message.replace(own, f'"{self._relation(id_).name}"')
                return Error(
                    message.partition("Sequence Error: ")[2] or message, errors.SEQUENCE_GENERATOR_LIMIT_EXCEEDED
                )
        return translated


def _begin(cursor: Cursor, id_: int, sequence: Sequence, given: Position) -> None:
    """Start the cursor's temporary sequence after the last number."""
    begin = given.last + sequence.increment if given.is_called else given.last
    is_over = not sequence.minimum <= begin <= sequence.maximum
    if is_over and sequence.cycles:
        begin = sequence.minimum if sequence.increment > 0 else sequence.maximum
    own = drawing_name(id_)
    cursor.execute(
        f"CREATE OR REPLACE TEMPORARY SEQUENCE {quote(own)} INCREMENT {sequence.increment} "
        f"MINVALUE {sequence.minimum} MAXVALUE {sequence.maximum} "
        f"START {given.last if is_over and not sequence.cycles else begin} {'CYCLE' if sequence.cycles else 'NO CYCLE'}"
    )
    if is_over and not sequence.cycles:  # so that the next number raises an error
        cursor.execute(f"SELECT {call_of(NEXT, id_)}").fetchall()


def _last(cursor: Cursor, id_: int) -> int | None:
    """Return the last number that the cursor has drawn, None if it has drawn none."""
    try:
        [(last,)] = cursor.execute(f"SELECT {call_of(LAST, id_)}").fetchall()
    except DuckDBError:  # "is not yet defined in this session"
        return None
    return int(last)


def describe_with(cursor: Cursor, draws: Draws) -> None:
    """Make the sequences that a cursor needs to describe a statement that draws."""
    for id_ in draws.nexts:
        cursor.execute(f"CREATE OR REPLACE TEMPORARY SEQUENCE {quote(drawing_name(id_))}")
