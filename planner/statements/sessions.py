"""Statements on the session itself: its variables, transaction, prepared statements and cursors."""

from __future__ import annotations

from dataclasses import dataclass

from sqlglot import exp

from sparkwave.catalog.types import Type
from sparkwave.planner.statements.relation_names import Name
from sparkwave.planner.statements.rows import Delete, Insert, Merge, Query, Update, WithWrites


@dataclass(frozen=True)
class Empty:
    pass


@dataclass(frozen=True)
class ShowVariable:
    name: str


@dataclass(frozen=True)
class SetVariable:
    """SET of a session variable, or ALTER SYSTEM SET when `system`. `value` None stands for DEFAULT.

    With `is_local` it lasts until the transaction block ends. `is_reset`: RESET was written, not SET … TO DEFAULT.
    """

    name: str
    value: str | None
    system: bool = False
    is_local: bool = False
    is_reset: bool = False


@dataclass(frozen=True)
class UseDatabase:
    """USE, or SET DATABASE: the session goes on in another database. `tag` is the command tag."""

    name: str
    position: int
    tag: str


@dataclass(frozen=True)
class Transaction:
    """BEGIN, COMMIT, ROLLBACK, SAVEPOINT, SET TRANSACTION, …

    `tag` is the command tag; `action` is "begin", "commit", "rollback", "set" or, for all later transactions,
    "characteristics"; for savepoints, which `savepoint` names, "savepoint", "release" or "rollback to". `read_only` is
    None where the statement does not set it; `chains` is AND CHAIN. `modes` are "isolation" and "deferrable" with their
    values, where the statement sets them. `constraints` are those that SET CONSTRAINTS names, each with its position.
    """

    tag: str
    action: str
    read_only: bool | None = None
    savepoint: str = ""
    chains: bool = False
    modes: tuple[tuple[str, str], ...] = ()
    constraints: tuple[tuple[str, int], ...] = ()


@dataclass(frozen=True)
class Prepare:
    """PREPARE: `types` are those given for $1, $2, …"""

    name: str
    types: tuple[Type, ...]
    statement: Query | Insert | Update | Delete | Merge | WithWrites


@dataclass(frozen=True)
class Do:
    """DO with the text of one statement; `handled` are the SQLSTATEs of errors that are none then, "" for all."""

    text: str
    handled: tuple[str, ...] = ()


@dataclass(frozen=True)
class Execute:
    name: str
    arguments: tuple[exp.Expr, ...]


@dataclass(frozen=True)
class Deallocate:
    """DEALLOCATE. `name` None is ALL."""

    name: str | None


@dataclass(frozen=True)
class DeclareCursor:
    name: str
    query: exp.Expr
    is_binary: bool = False
    holds: bool = False
    scrolls: bool = False
    reads_past: bool = False
    reads_internal: bool = False


@dataclass(frozen=True)
class DeclareSubscriptionCursor:
    """DECLARE … SUBSCRIPTION CURSOR: `since` is "now", "begin", "full" or a time in milliseconds since 1970."""

    name: str
    subscription: Name
    since: str | int = "now"
    since_position: int = 0


@dataclass(frozen=True)
class Fetch:
    """FETCH, or MOVE when it `moves`.

    `way` is "forward", "backward", "absolute" or "relative"; `count` None is ALL. `timeout_s` is how many seconds to
    wait for a subscription's first row.
    """

    cursor: str
    way: str
    count: int | None
    moves: bool = False
    timeout_s: float = 0


@dataclass(frozen=True)
class CloseCursor:
    """CLOSE. `name` None is ALL."""

    name: str | None


@dataclass(frozen=True)
class Discard:
    """RESET ALL, DISCARD, UNLISTEN: `tag` is the command tag."""

    tag: str
