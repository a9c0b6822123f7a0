"""The result of a statement for the wire: columns, rows, a tag, or a COPY in progress."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Protocol

import pyarrow as pa

from sparkwave.catalog.errors import Error
from sparkwave.catalog.types import Type
from sparkwave.server.wire.client_encoding import Encoding


@dataclass(frozen=True)
class ResultColumn:
    """A field of a RowDescription.

    `table_oid` and `attnum` are 0 unless the field is a plain column of a relation. `typmod` is -1 unless the field is
    a plain column or a cast, of a type with a precision.
    """

    name: str
    type: Type
    table_oid: int = 0
    attnum: int = 0
    typmod: int = -1


@dataclass(frozen=True)
class CopyOptions:
    """COPY's options with their defaults filled in by `text_copy()`, `csv_copy()` or `binary_copy()`."""

    format: str  # "text", "csv" or "binary"; "binary" has no other options
    delimiter: str = ""
    null: str = ""
    header: bool = False
    header_match: bool = False  # whether a header that is read has to have the names of the columns
    quote: str = '"'
    escape: str = '"'
    encoding: Encoding | None = None  # of the data; None: the session's encoding
    force_quote: tuple[str, ...] = ()  # columns whose values are always quoted; "*" for all columns
    force_not_null: tuple[str, ...] = ()  # columns whose values are never NULL
    force_null: tuple[str, ...] = ()  # columns whose values are NULL also where the text of NULL is quoted

    @property
    def is_binary(self) -> bool:
        return self.format == "binary"


class BadValue(Error):
    """A value that does not fit its column, in a row of a batch of COPY, counted from 0."""

    row = 0


class CopySink(Protocol):
    """Receives the rows of a COPY FROM STDIN into a table. Nothing is stored until `finish`."""

    table: str
    columns: tuple[ResultColumn, ...]
    options: CopyOptions

    def write(self, batch: pa.RecordBatch) -> None:
        """Stage rows, in the order of `columns`.

        Columns are `string` (or null), or the types that `server.wire.copy_binary` decodes to. Raises BadValue, whose
        context is the column and the value.
        """

    def finish(self) -> int:
        """Store all staged rows in one transaction and return their number."""

    def abort(self) -> None:
        """Drop the staged rows."""


@dataclass
class Result:
    """The outcome of one executed statement.

    `tag` is the whole command tag. If `counts_rows` is set, the wire appends the number of rows that it sent (`SELECT`
    becomes `SELECT 3`). `is_binary` asks for binary rows where the client has not chosen a format. `batches` yields
    Arrow record batches with the columns in the order of `columns`, in DuckDB's Arrow types.
    """

    tag: str
    columns: tuple[ResultColumn, ...] | None = None
    batches: Iterator[pa.RecordBatch] | None = None
    counts_rows: bool = False
    copy_in: CopySink | None = None
    copy_out: CopyOptions | None = None
    is_binary: bool = False
    notices: list[Notice] = field(default_factory=list)

    def close(self) -> None:
        """Release the resources behind the batches (an open DuckDB result). Safe to call twice."""
        if self.batches is not None and hasattr(self.batches, "close"):
            self.batches.close()


@dataclass(frozen=True)
class Notice:
    """A NoticeResponse. The default `sqlstate` 00000 is RisingWave's."""

    message: str
    severity: str = "NOTICE"
    sqlstate: str = "00000"
    detail: str | None = None

    def is_shown_at(self, level: str) -> bool:
        """Return whether a client with the `client_min_messages` `level` gets the notice."""
        least = _LEVELS.index("debug2" if level == "debug" else level)
        own = "debug1" if self.severity == "DEBUG" else self.severity.lower()
        return own == "info" or _LEVELS.index(own) >= least


# In rising order of importance. INFO, which answers a client's request, is sent at every level.
_LEVELS = ("debug5", "debug4", "debug3", "debug2", "debug1", "log", "info", "notice", "warning", "error")


class Prepared(Protocol):
    """A parsed and planned statement that has not run."""

    @property
    def text(self) -> str:
        """The statement as the client sent it."""

    @property
    def is_empty(self) -> bool:
        """Whether the text has no statement: only white space, comments or a semicolon."""

    @property
    def kind(self) -> str:
        """The statement's kind, one of a few words, for the metrics."""

    @property
    def parameters(self) -> tuple[Type, ...]:
        """The types of $1, $2, …, given or inferred."""

    @property
    def columns(self) -> tuple[ResultColumn, ...] | None:
        """The columns that the statement returns, None when it returns no rows. Inferred at each call; raises Error."""
