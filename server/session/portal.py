"""Prepared statements and portals: what a client has named, by the protocol or in SQL, and how far it has read."""

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
from sparkwave.catalog.types import TEXT, Type, type_of_oid
from sparkwave.server.session.spool import Scroll, Spool
from sparkwave.server.wire.client_encoding import UTF8, Encoding
from sparkwave.server.wire.messages import Bind, spread_formats
from sparkwave.server.wire.parameter_values import decode_parameter
from sparkwave.server.wire.result import Prepared, Result, ResultColumn
from sparkwave.server.wire.row_messages import slices

# json, unknown, name, "char": types we do not have whose binary format is their text.
_TEXT_OIDS = frozenset({114, 705, 19, 18})


@dataclass(frozen=True)
class Statement:
    """A prepared statement with the parameter OIDs the client gave (0 or missing: inferred)."""

    prepared: Prepared
    oids: tuple[int, ...] = ()
    from_sql: bool = False  # named by PREPARE
    made_at: datetime = field(default_factory=lambda: datetime.now(UTC))

    @property
    def parameter_oids(self) -> tuple[int, ...]:
        given = self.oids + (0,) * (len(self.prepared.parameters) - len(self.oids))
        inferred = (type.oid for type in self.prepared.parameters)
        return tuple(own or other for own, other in zip(given, inferred, strict=False))

    @lazy
    def wire_types(self) -> tuple[Type, ...]:
        """How the client encodes each parameter, which may differ from the type it is used as."""
        return tuple(
            TEXT if oid in _TEXT_OIDS else type_of_oid(oid) or inferred
            for oid, inferred in zip(self.parameter_oids, self.prepared.parameters, strict=True)
        )

    def decode(self, bind: Bind, encoding: Encoding = UTF8) -> tuple[object, ...]:
        """The values of a Bind. Raises Error 08P01 for a wrong number, 22P02 or 22P03 for a bad value."""
        types, count = self.wire_types, len(bind.values)
        if count != len(types):
            raise Error(
                f'bind message supplies {count} parameters, but prepared statement "{bind.statement}" '
                f"requires {len(types)}",
                PROTOCOL_VIOLATION,
            )
        formats = spread_formats(bind.formats, count, "parameter formats but {} parameters")
        values = zip(bind.values, formats, types, strict=True)
        return tuple(decode_parameter(*value, encoding) for value in values)


class Rows:
    """The rows of a result, taken some at a time.

    `taken` is how many have been, `ended` whether more were asked for than there are.
    """

    def __init__(self, batches: Iterator[pa.RecordBatch] | None) -> None:
        self._batches = iter(batches or ())
        self._rest: pa.RecordBatch | None = None
        self.taken = 0
        self.ended = False

    def keep(self, spool: Spool) -> None:
        """Take what is left from a spool that has been made of this result's batches."""
        self._batches = spool.rows(1)

    def take(self, limit: int = 0) -> Iterator[pa.RecordBatch]:
        """Batches of `limit` rows in all, fewer when the result ends before; 0 takes everything."""
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
        """Of the subscription in the catalog."""

    @property
    def state(self) -> str:
        """What SHOW SUBSCRIPTION CURSORS calls it."""

    @property
    def idle_ms(self) -> int:
        """For how many milliseconds nobody has fetched."""

    def wait(self, seconds: float) -> None:
        """Wait for changes, so long at most."""

    def take(self, count: int | None) -> Iterator[pa.RecordBatch]:
        """The next changes, so many rows at most; None: all that there are."""

    def close(self) -> None:
        """Forget what has been read ahead."""


@dataclass
class Portal:
    """A bound statement. `result` is there once Execute has started it, `rows` if it returns any.

    A cursor is a portal that DECLARE has made and started. It `survives` a ROLLBACK when an earlier COMMIT has let it.
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
    feed: Feed | None = None  # of a subscription's cursor, which has no other rows
    made_at: datetime = field(default_factory=lambda: datetime.now(UTC))

    def hold(self) -> None:
        """Let it outlive its transaction: its rows are kept and the query is over. Raises the query's Error."""
        if self.spool is not None and self.result is not None and not self.survives:
            self.spool.fill()
            self.result.close()
        self.survives = True

    @property
    def columns(self) -> tuple[ResultColumn, ...] | None:
        """What it returns, worked out without running it; None when it returns no rows."""
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

    `in_block` is whether BEGIN has been said. It starts nothing that could be rolled back, but portals live on in it.
    """

    def __init__(self) -> None:
        self.statements: dict[str, Statement] = {}
        self.portals: dict[str, Portal] = {}
        self.in_block = False

    def statement(self, name: str) -> Statement:
        """Raises Error 26000."""
        if name not in self.statements:
            what = f'prepared statement "{name}"' if name else "unnamed prepared statement"
            raise Error(f"{what} does not exist", UNDEFINED_PREPARED_STATEMENT)
        return self.statements[name]

    def add_statement(self, name: str, make: Callable[[], Statement]) -> None:
        """Raises Error 42P05 for a name that is taken; the unnamed statement gives way to the next."""
        if name and name in self.statements:
            raise Error(f'prepared statement "{name}" already exists', DUPLICATE_PREPARED_STATEMENT)
        self.statements.pop(name, None)
        self.statements[name] = make()

    def portal(self, name: str, what: str = "portal") -> Portal:
        """Raises Error 34000."""
        if name not in self.portals:
            raise Error(f'{what} "{name}" does not exist', UNDEFINED_CURSOR)
        return self.portals[name]

    def free_portal(self, name: str) -> None:
        """Make way for a new one: the unnamed portal gives way. Raises Error 42P03 for a name that is taken."""
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
        """A Sync ends the transaction of its messages, and with it the portals, unless they are in a block."""
        if self.portals:
            self.close_portals(lambda portal: not portal.is_cursor and (portal.finished or not self.in_block))

    def commit(self) -> None:
        """Raises the Error of a query that a cursor WITH HOLD has yet to read."""
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
        """Whether a COMMIT would close anything."""
        return any(portal.result and not portal.finished and not portal.survives for portal in self.portals.values())
