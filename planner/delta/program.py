"""The delta program, which the delta compiler makes and an engine runs."""

from __future__ import annotations

from dataclasses import dataclass

from sqlglot import exp

from sparkwave.planner.delta.checks import Check


@dataclass(frozen=True)
class Step:
    """`CREATE TEMPORARY relation name AS query`.

    A lookup is a few stored rows that later steps read; a table for it pays where reading stored rows is expensive.
    """

    name: str
    query: exp.Select
    is_lookup: bool = False


@dataclass(frozen=True)
class Apply:
    """A change of a stored table: delete the rows whose `key` is in `removed`, then insert `added`.

    `state` names the internal table; None means the view itself. Without a key all rows are deleted, if `removed` has
    any.
    """

    state: str | None
    key: tuple[str, ...]
    present: frozenset[str]  # columns of the key that are never NULL
    removed: exp.Select
    added: exp.Select


@dataclass(frozen=True)
class DeltaProgram:
    """Steps in order, then the tables that they change. `view_changes` stays for the views that read this one.

    `checks` find the rows for which an expression may have raised.
    """

    steps: tuple[Step, ...]
    applies: tuple[Apply, ...]
    checks: tuple[Check, ...] = ()
