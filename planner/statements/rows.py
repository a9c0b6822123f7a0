"""Statements that read and write rows."""

from __future__ import annotations

from dataclasses import dataclass

from sqlglot import exp

from sparkwave.planner.parse.constant_rows import ConstantRows
from sparkwave.planner.statements.relation_names import Name


@dataclass(frozen=True)
class Query:
    """SELECT, VALUES, WITH … SELECT; `reads_past` if a table has FOR SYSTEM_TIME AS OF."""

    tree: exp.Expr
    reads_past: bool = False


@dataclass(frozen=True)
class Upsert:
    """PostgreSQL's ON CONFLICT of an INSERT: `target` are the columns it names, None for none.

    `tree` has the assignments and the condition of DO UPDATE; None is DO NOTHING.
    """

    target: tuple[str, ...] | None
    constraint: str | None
    tree: exp.OnConflict | None
    position: int | None = None


@dataclass(frozen=True)
class Insert:
    """`columns` is empty when the statement names none; `source` None is DEFAULT VALUES.

    `alias` is what RETURNING may call the table. Of constant `rows` the source has one like the first.
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
class Truncate:
    tables: tuple[Name, ...]
    restarts_identity: bool = False


@dataclass(frozen=True)
class Condition:
    """What is behind COPY's WHERE: its tree, with places in the statement, and its text."""

    tree: exp.Expr
    sql: str


@dataclass(frozen=True)
class Copy:
    """COPY of a table (with its columns) or, outwards only, of a query."""

    table: Name | None
    columns: tuple[str, ...]
    query: exp.Expr | None
    is_from: bool
    format: str  # "text", "csv" or "binary"
    options: dict[str, str | bool | tuple[str, ...]]
    where: Condition | None = None  # that of the rows that are stored
