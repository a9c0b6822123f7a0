"""Prepared statements and portals: a client's named objects, whether made by the protocol or in SQL."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Protocol

import pyarrow as pa

from sparkwave.catalog.errors import (
    DUPLICATE_CURSOR,
    DUPLICATE_PREPARED_STATEMENT,
    PROTOCOL_VIOLATION,
    UNDEFINED_CURSOR,
    UNDEFINED_PREPARED_STATEMENT,
    Error,
)
from sparkwave.catalog.lazy import lazy
from sparkwave.catalog.moment_texts import MDY
from sparkwave.catalog.types import TEXT, Type, type_of_oid
from sparkwave.server.session.spool import Scroll, Spool
from sparkwave.server.wire.client_encoding import UTF8, Encoding
from sparkwave.server.wire.messages import Bind, spread_formats
from sparkwave.server.wire.parameter_values import decode_parameter
from sparkwave.server.wire.result import Prepared, Result, ResultColumn
from sparkwave.server.wire.row_messages import slices

# unknown, name, "char": types that Sparkwave lacks and whose binary format is their text.
_TEXT_OIDS = frozenset({705, 19, 18})


@dataclass(frozen=True)
class Statement:
    """A prepared statement with the parameter OIDs that the client gave (0 or missing: inferred)."""

    prepared: Prepared
    oids: tuple[int, ...] = ()
    from_sql: bool = False  # made by PREPARE
    made_at: datetime = field(default_factory=lambda: datetime.now(UTC))
    # The columns of the RowDescription that the client has got, if any.
    described: list[tuple[ResultColumn, ...]] = field(default_factory=list, compare=False)

    @property
    def parameter_oids(self) -> tuple[int, ...]:
        given = self.oids + (0,) * (len(self.prepared.parameters) - len(self.oids))
        inferred = (type.oid for type in self.prepared.parameters)
        return tuple(own or other for own, other in zip(given, inferred, strict=False))

    @lazy
    def wire_types(self) -> tuple[Type, ...]:
        """The type in which the client encodes each parameter, which may differ from the type in the query."""
        return tuple(
            TEXT if oid in _TEXT_OIDS else type_of_oid(oid) or inferred
            for oid, inferred in zip(self.parameter_oids, self.prepared.parameters, strict=True)
        )

    def decode(self, bind: Bind, encoding: Encoding = UTF8, order: str = MDY) -> tuple[object, ...]:
        """Return the parameter values of a Bind.

        Raises Error 08P01 for a wrong number, 22P02 or 22P03 for a bad value.
        """
        types, count = self.wire_types, len(bind.values)
        if count != len(types):
            raise Error(
                f'bind message supplies {count} parameters, but prepared statement "{bind.statement}" '
                f"requires {len(types)}",
                PROTOCOL_VIOLATION,
            )
        formats = spread_formats(bind.formats, count, "parameter formats but {} parameters")
        values = zip(bind.values, formats, types, strict=True)
        return tuple(decode_parameter(*value, encoding, order) for value in values)


class Rows:
    """The rows of a result, taken some at a time.

    `taken` is the number of rows taken so far. `ended` is set once more rows were asked for than there are.
    """

    def __init__(self, batches: Iterator[pa.RecordBatch] | None) -> None:
        self._batches = iter(batches or ())
        self._rest: pa.RecordBatch | None = None
        self.taken = 0
        self.ended = False

    def keep(self, spool: Spool) -> None:
        """Take the remaining rows from a spool that was made of this result's batches."""
        self._batches = spool.rows(1)

    def take(self, limit: int = 0) -> Iterator[pa.RecordBatch]:
        """Yield batches of `limit` rows in total, fewer when the result ends before; 0 takes all rows."""
        left = limit
        while not self.ended and (not limit or left):
            batch = next(self._batches, None) if self._rest is None else self._rest
            self._rest = None
            if batch is None:
                self.ended = True
                return
            if limit and batch.num_rows > left:
                self._rest = batch.slice(left)
                batch = batch.slice(0, left)
            left -= batch.num_rows
            self.taken += batch.num_rows
            yield from slices(batch)


class Feed(Protocol):
    """The changes that a subscription's cursor reads (`server.statements.subscription_cursors`)."""

    columns: tuple[ResultColumn, ...]

    @property
    def subscription_name(self) -> str:
        """The subscription's name in the catalog."""

    @property
    def state(self) -> str:
        """The cursor's state as SHOW SUBSCRIPTION CURSORS prints it."""

    @property
    def idle_ms(self) -> int:
        """The milliseconds since the last FETCH."""

    def wait(self, seconds: float) -> None:
        """Wait for changes, at most so many seconds."""

    def take(self, count: int | None) -> Iterator[pa.RecordBatch]:
        """Yield the next changes, at most `count` rows; None: all changes that there are."""

    def close(self) -> None:
        """Drop changes that were read ahead."""


@dataclass
class Portal:
    """A bound statement. `result` is set once Execute has started the statement, `rows` if it returns rows.

    A cursor is a portal that DECLARE has made and started. It `survives` a ROLLBACK once a COMMIT has kept it (WITH
    HOLD).
    """

    statement: Statement
    values: tuple[object, ...] = ()
    format_codes: tuple[int, ...] = ()
    result: Result | None = None
    rows: Rows | None = None
    finished: bool = False
    is_cursor: bool = False
    holds: bool = False
    survives: bool = False
    spool: Spool | None = None
    scroll: Scroll | None = None
    feed: Feed | None = None  # of a subscription's cursor, whose only rows are these changes
    made_at: datetime = field(default_factory=lambda: datetime.now(UTC))

    def hold(self) -> None:
        """Let the cursor outlive its transaction: all its rows are read and kept. Raises the query's Error."""
        if self.spool is not None and self.result is not None and not self.survives:
            self.spool.fill()
            self.result.close()
        self.survives = True

    @property
    def columns(self) -> tuple[ResultColumn, ...] | None:
        """The columns of the result, inferred without running the statement; None when it returns no rows."""
        return self.statement.prepared.columns if self.result is None else self.result.columns

    def formats(self, columns: tuple[ResultColumn, ...]) -> tuple[int, ...]:
        return spread_formats(self.format_codes, len(columns), "result formats but query has {} columns")

    def close(self) -> None:
        self.finished = True
        if self.result is not None:
            self.result.close()
        if self.spool is not None:
            self.spool.close()
        if self.feed is not None:
            self.feed.close()


class Names:
    """The prepared statements and portals of one client. As in PostgreSQL, SQL and the protocol share them.

    `in_block` is set after BEGIN. Unless transactions are atomic, a block cannot be rolled back; portals stay open in
    it.
    """

    def __init__(self) -> None:
        self.statements: dict[str, Statement] = {}
        self.portals: dict[str, Portal] = {}
        self.in_block = False

    def statement(self, name: str) -> Statement:
        """Return the prepared statement of a name. Raises Error 26000."""
        if name not in self.statements:
            what = f'prepared statement "{name}"' if name else "unnamed prepared statement"
            raise Error(f"{what} does not exist", UNDEFINED_PREPARED_STATEMENT)
        return self.statements[name]

    def add_statement(self, name: str, make: Callable[[], Statement]) -> None:
        """Add a prepared statement. Raises Error 42P05 for a name in use; the unnamed statement is replaced."""
        if name and name in self.statements:
            raise Error(f'prepared statement "{name}" already exists', DUPLICATE_PREPARED_STATEMENT)
        self.statements.pop(name, None)
        self.statements[name] = make()

    def portal(self, name: str, what: str = "portal") -> Portal:
        """Return the portal of a name. Raises Error 34000."""
        if name not in self.portals:
            raise Error(f'{what} "{name}" does not exist', UNDEFINED_CURSOR)
        return self.portals[name]

    def free_portal(self, name: str) -> None:
        """Free a name for a new portal: the unnamed portal is closed. Raises Error 42P03 for a name in use."""
        if name and name in self.portals:
            raise Error(f'cursor "{name}" already exists', DUPLICATE_CURSOR)
        self.close_portal(name)

    def close_portal(self, name: str) -> None:
        portal = self.portals.pop(name, None)
        if portal is not None:
            portal.close()

    def close_portals(self, which: Callable[[Portal], bool] = lambda portal: True) -> None:
        for name in [name for name, portal in self.portals.items() if which(portal)]:
            self.close_portal(name)

    def sync(self) -> None:
        """End the messages' transaction at Sync: outside a block, its portals are closed."""
        if self.portals:
            self.close_portals(lambda portal: not portal.is_cursor and (portal.finished or not self.in_block))

    def commit(self) -> None:
        """Close the portals that do not outlive the block.

        Raises the Error of a query whose rows WITH HOLD has to read first.
        """
        self.in_block = False
        self.close_portals(lambda portal: not portal.holds)
        for portal in self.portals.values():
            try:
                portal.hold()
            except BaseException:
                self.close_portals(lambda portal: not portal.survives)
                raise

    def rollback(self) -> None:
        self.close_portals(lambda portal: not portal.survives)
        self.in_block = False

    @property
    def has_open_portals(self) -> bool:
        """Whether a COMMIT would close a portal."""
        return any(portal.result and not portal.finished and not portal.survives for portal in self.portals.values())
