"""The delta program, which the delta compiler makes and an engine runs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from sqlglot import exp

from sparkwave.planner.delta.checks import Check
from sparkwave.planner.delta.looked_up import Columns, Reduction


@dataclass(frozen=True)
class Step:
    """`CREATE TEMPORARY relation name AS query`.

    A step that drives a join has the changes of another operator. DuckDB has to know that they are few, from a table of
    their own, to look the other side of the join up by them. Otherwise it may make a hash table of the other side.
    """

    name: str
    query: exp.Select
    drives_join: bool = False


@dataclass(frozen=True)
class Apply:
    """A change of a stored table: delete the rows whose `key` is in `removed`, then insert `added`.

    `state` names the internal table; None means the view itself. Without a key all rows are deleted, if `removed` has
    any.
    """

    state: str | None
    key: tuple[str, ...]
    present: frozenset[str]  # columns of the key that are `equal_in_files`
    removed: exp.Select
    added: exp.Select


@dataclass(frozen=True)
class DeltaProgram:
    """Steps in order, then the tables that they change. `view_changes` stays for the views that read this one.

    `checks` find the rows for which an expression may have raised. `lookups` have the columns of inputs by whose values
    rows are looked up, by the input's name: sets of columns that are compared together. `reductions` are relations
    that steps read, by name, each with the name of one that may stand for it, which has more rows.
    """

    steps: tuple[Step, ...]
    applies: tuple[Apply, ...]
    checks: tuple[Check, ...] = ()
    lookups: Mapping[str, tuple[Columns, ...]] = field(default_factory=dict)
    reductions: Mapping[str, tuple[str, Reduction]] = field(default_factory=dict)
