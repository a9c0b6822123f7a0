"""Statements that read and write rows."""

from __future__ import annotations

from dataclasses import dataclass

from sqlglot import exp

from sparkwave.planner.parse.constant_rows import ConstantRows
from sparkwave.planner.statements.relation_names import Name


@dataclass(frozen=True)
class Query:
    """SELECT, VALUES, WITH … SELECT; `reads_past` if a table has FOR SYSTEM_TIME AS OF.

    `reads_internal` if a table has the name of an internal one.
    """

    tree: exp.Expr
    reads_past: bool = False
    reads_internal: bool = False


@dataclass(frozen=True)
class Upsert:
    """PostgreSQL's ON CONFLICT of an INSERT: `target` are its columns, None without any.

    `tree` has the assignments and the condition of DO UPDATE; None is DO NOTHING.
    """

    target: tuple[str, ...] | None
    constraint: str | None
    tree: exp.OnConflict | None
    position: int | None = None


@dataclass(frozen=True)
class Insert:
    """INSERT. `columns` is empty when the statement names none; `source` None is DEFAULT VALUES.

    `alias` is the table's name in RETURNING. For constant `rows`, the source has one row like the first of them.
    `overrides_identity` is OVERRIDING SYSTEM VALUE.
    """

    table: Name
    columns: tuple[str, ...]
    source: exp.Expr | None
    alias: str | None = None
    returning: tuple[exp.Expr, ...] = ()
    upsert: Upsert | None = None
    rows: ConstantRows | None = None
    overrides_identity: bool = False


@dataclass(frozen=True)
class Update:
    table: Name
    tree: exp.Update
    returning: tuple[exp.Expr, ...] = ()


@dataclass(frozen=True)
class Delete:
    table: Name
    tree: exp.Delete
    returning: tuple[exp.Expr, ...] = ()


@dataclass(frozen=True)
class Merge:
    table: Name
    tree: exp.Merge


@dataclass(frozen=True)
class WrittenRows:
    """A CTE that changes rows: its name, the names of its columns, and the statement whose RETURNING are its rows."""

    name: str
    columns: tuple[str, ...]
    statement: Insert | Update | Delete


@dataclass(frozen=True)
class WithWrites:
    """`WITH w AS (DELETE … RETURNING …) SELECT …`: the writes in turn, then the statement that may read their rows."""

    writes: tuple[WrittenRows, ...]
    main: Query | Insert | Update | Delete


@dataclass(frozen=True)
class Truncate:
    tables: tuple[Name, ...]
    restarts_identity: bool = False


@dataclass(frozen=True)
class Condition:
    """The condition of COPY's WHERE: its tree, with positions in the statement, and its text."""

    tree: exp.Expr
    sql: str


@dataclass(frozen=True)
class Copy:
    """COPY of a table (with its columns) or, only for output, of a query."""

    table: Name | None
    columns: tuple[str, ...]
    query: exp.Expr | None
    is_from: bool
    format: str  # "text", "csv" or "binary"
    options: dict[str, str | bool | tuple[str, ...]]
    where: Condition | None = None  # the condition of stored rows
