"""Prepared statements and portals: what a client has named in the extended protocol, and how far it has read."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import pyarrow as pa

from catalog.errors import PROTOCOL_VIOLATION, Error
from catalog.types import TEXT, Type, type_of_oid
from server.encoding import slices
from server.messages import Bind, spread_formats
from server.parameters import decode_parameter
from server.result import Prepared, Result, ResultColumn

# json, unknown, name, "char": types we do not have whose binary format is their text.
_TEXT_OIDS = frozenset({114, 705, 19, 18})


@dataclass(frozen=True)
class Statement:
    """A prepared statement with the parameter OIDs the client gave (0 or missing: inferred)."""

    prepared: Prepared
    oids: tuple[int, ...] = ()

    @property
    def parameter_oids(self) -> tuple[int, ...]:
        given = self.oids + (0,) * (len(self.prepared.parameters) - len(self.oids))
        inferred = (type.oid for type in self.prepared.parameters)
        return tuple(own or other for own, other in zip(given, inferred, strict=False))

    @property
    def wire_types(self) -> tuple[Type, ...]:
        """How the client encodes each parameter, which may differ from the type it is used as."""
        return tuple(
            TEXT if oid in _TEXT_OIDS else type_of_oid(oid) or inferred
            for oid, inferred in zip(self.parameter_oids, self.prepared.parameters, strict=True)
        )

    def decode(self, bind: Bind) -> tuple[object, ...]:
        """The values of a Bind. Raises Error 08P01 for a wrong number, 22P02 or 22P03 for a bad value."""
        types, count = self.wire_types, len(bind.values)
        if count != len(types):
            raise Error(
                f'bind message supplies {count} parameters, but prepared statement "{bind.statement}" '
                f"requires {len(types)}",
                PROTOCOL_VIOLATION,
            )
        formats = spread_formats(bind.formats, count, "parameter formats but {} parameters")
        return tuple(map(decode_parameter, bind.values, formats, types))


class Rows:
    """The rows of a result, taken some at a time."""

    def __init__(self, batches: Iterator[pa.RecordBatch] | None) -> None:
        self._batches = iter(batches or ())
        self._rest: pa.RecordBatch | None = None

    def take(self, limit: int = 0) -> Iterator[pa.RecordBatch]:
        """Batches of `limit` rows in all, fewer when the result ends before; 0 takes everything."""
        left = limit
        while not limit or left:
            batch = next(self._batches, None) if self._rest is None else self._rest
            self._rest = None
            if batch is None:
                return
            if limit and batch.num_rows > left:
                self._rest = batch.slice(left)
                batch = batch.slice(0, left)
            left -= batch.num_rows
            yield from slices(batch)


@dataclass
class Portal:
    """A bound statement. `result` is there once Execute has started it, `rows` if it returns any."""

    statement: Statement
    values: tuple[object, ...] = ()
    format_codes: tuple[int, ...] = ()
    result: Result | None = None
    rows: Rows | None = None
    finished: bool = False

    def formats(self, columns: tuple[ResultColumn, ...]) -> tuple[int, ...]:
        return spread_formats(self.format_codes, len(columns), "result formats but query has {} columns")

    def close(self) -> None:
        self.finished = True
        if self.result is not None:
            self.result.close()
