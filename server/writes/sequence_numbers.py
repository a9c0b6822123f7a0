"""The numbers that statements take from sequences.

They are given out in memory, and reserved in the lake by the block before anybody gets them, so that a crash repeats
none; the rest of a block may be left out then. As in PostgreSQL a number that was given is not given again when the
transaction is rolled back.
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

# How many numbers are reserved at once: twice as many each time, up to the last.
_FIRST_BLOCK, _LAST_BLOCK = 32, 8192


@dataclass
class Counter:
    """A sequence as this server counts; `reserved` is what is stored. Its lock is held while a statement draws."""

    lock: RankedLock
    given: Position
    reserved: Position
    block: int = _FIRST_BLOCK


@dataclass
class SequenceNumbers:
    """The numbers of all sequences, which are given out here."""

    store: Store
    _counters: dict[int, Counter] = field(default_factory=dict)

    @contextmanager
    def drawing(self, cursor: Cursor, ids: tuple[int, ...]) -> Iterator[dict[int, int]]:
        """While entered the cursor has a temporary sequence for each of these, from which one statement draws.

        Yields a dictionary that has the last number of each at the end, once it is sure that nobody else gets it.
        Raises Error 2200H when a sequence is at its end, 55000 for one that has been dropped.
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
        """Have a sequence go on from there. Raises Error 22003 for a number beyond its bounds."""
        relation = self._relation(id_)
        low, high = relation.sequence.minimum, relation.sequence.maximum
        if not low <= position.last <= high:
            message = f'setval: value {position.last} is out of bounds for sequence "{relation.name}" ({low}..{high})'
            raise Error(message, errors.NUMERIC_VALUE_OUT_OF_RANGE)
        with self.holding(id_) as counter:
            self._reserve(id_, counter, position)
            counter.given = position

    def restart(self, tables: Iterable[Relation]) -> None:
        """Let the sequences that go with tables begin anew."""
        for table in tables:
            for relation in self.store.catalog.sequences_of(table):
                self.set(relation.id, Position(relation.sequence.start, False))

    @contextmanager
    def holding(self, id_: int) -> Iterator[Counter]:
        """While entered nobody else draws from a sequence."""
        counter = self._counters.get(id_)
        if counter is None:
            with closing(self.store.lake.cursor()) as cursor:
                position = load_position(cursor, id_)
            made = Counter(RankedLock(Rank.SEQUENCE, f"{id_:020}"), position, position)
            counter = self._counters.setdefault(id_, made)
        with counter.lock:
            yield counter

    def close(self) -> None:
        """Give back what is reserved and was not given."""
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
        """Have it that these have been given, and reserve more if they were not reserved yet."""
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
        """The error with the sequence's name instead of the temporary one's."""
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
    """Have the cursor's temporary sequence begin behind the last number."""
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
    if is_over and not sequence.cycles:  # so that the next number is an error
        cursor.execute(f"SELECT {call_of(NEXT, id_)}").fetchall()


def _last(cursor: Cursor, id_: int) -> int | None:
    """The last number that the cursor has drawn, None if none."""
    try:
        [(last,)] = cursor.execute(f"SELECT {call_of(LAST, id_)}").fetchall()
    except DuckDBError:  # "is not yet defined in this session"
        return None
    return int(last)


def describe_with(cursor: Cursor, draws: Draws) -> None:
    """Give a cursor what a statement that draws needs to be described."""
    for id_ in draws.nexts:
        cursor.execute(f"CREATE OR REPLACE TEMPORARY SEQUENCE {quote(drawing_name(id_))}")
