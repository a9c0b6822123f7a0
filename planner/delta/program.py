"""What the delta compiler makes and an engine runs."""

from __future__ import annotations

from dataclasses import dataclass

from sqlglot import exp

from sparkwave.planner.delta.checks import Check


@dataclass(frozen=True)
class Step:
    """`CREATE TEMPORARY relation name AS query`.

    A lookup is a few stored rows that later steps read: worth a relation where a look at the stored ones is dear.
    """

    name: str
    query: exp.Select
    is_lookup: bool = False


@dataclass(frozen=True)
class Apply:
    """Bring a stored table up to date: delete the rows whose `key` is in `removed`, then insert `added`.

    `state` names the internal table; None means the view itself. Without a key all rows go, if `removed` has any.
    """

    state: str | None
    key: tuple[str, ...]
    present: frozenset[str]  # columns of the key that are never NULL
    removed: exp.Select
    added: exp.Select


@dataclass(frozen=True)
class DeltaProgram:
    """Steps in order, then what they change. `view_changes` is left behind for the views that read this one.

    `checks` are the rows for which an expression may have raised.
    """

    steps: tuple[Step, ...]
    applies: tuple[Apply, ...]
    checks: tuple[Check, ...] = ()
