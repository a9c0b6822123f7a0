"""The stream plan of a view: its nodes with keys carried, what it stores, what state it keeps, and its strategy."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

from sqlglot import exp

from catalog import errors
from catalog.errors import Error
from catalog.model import Catalog, Column
from planner.bind import Scope, bind
from planner.build import build
from planner.nodes import Aggregate, Project, Scan, walk
from planner.portable import unproven
from planner.rules import apply_rules

# RisingWave's name of the strategy, as EXPLAIN prints it.
SNAPSHOT = "SnapshotBackfill"


@dataclass(frozen=True)
class State:
    """What an aggregate keeps between epochs: one row a group, fields as columns.

    `columns` maps each field to the stored column. With `in_view` the view's own table holds them.
    """

    name: str
    node: Aggregate
    in_view: bool
    columns: tuple[tuple[str, str], ...]


@dataclass(frozen=True, eq=False)
class StreamPlan:
    """Everything the executor needs to fill and maintain one view. Compared by identity: what is compiled from it
    is cached."""

    root: Project
    width: int  # visible columns; the rest are hidden
    states: tuple[State, ...]
    strategy: str
    reason: str
    spark_only: str | None  # why DuckDB may not run it; None when both engines are proven equal

    @cached_property
    def columns(self) -> tuple[Column, ...]:
        return tuple(Column(f.name, f.type, index >= self.width) for index, f in enumerate(self.root.fields))

    @cached_property
    def scans(self) -> tuple[Scan, ...]:
        return tuple(node for node in walk(self.root) if isinstance(node, Scan))

    @cached_property
    def key(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(self.root.key))

    def state_of(self, node: Aggregate) -> State:
        return next(state for state in self.states if state.node == node)


def plan_view(query: exp.Query, names: tuple[str, ...], catalog: Catalog, scope: Scope) -> StreamPlan:
    """Plan `CREATE MATERIALIZED VIEW (names) AS query`. Pure. Raises Error with a position in the statement."""
    root = _rename_outputs(build(bind(query, catalog, scope)), names)
    width = len(root.items)
    _check_names(root)
    planned = apply_rules(root)
    assert isinstance(planned, Project)
    return StreamPlan(planned, width, _states(planned), SNAPSHOT, "the only strategy so far", unproven(planned))


def _rename_outputs(root: Project, names: tuple[str, ...]) -> Project:
    if not names:
        return root
    if len(names) != len(root.items):
        raise Error(f"the view has {len(root.items)} columns but {len(names)} names are given", errors.SYNTAX_ERROR)
    return replace(root, items=tuple(replace(i, name=n) for i, n in zip(root.items, names, strict=True)))


def _check_names(root: Project) -> None:
    for index, item in enumerate(root.items):
        if not item.name or item.name.startswith("_col_"):
            raise Error(
                f"An alias must be specified for the {_ordinal(index + 1)} expression (counting from 1) "
                "in result relation",
                errors.INVALID_COLUMN_DEFINITION,
            )


def _ordinal(number: int) -> str:
    suffix = {1: "st", 2: "nd", 3: "rd"}.get(number % 10 if number % 100 not in (11, 12, 13) else 0, "th")
    return f"{number}{suffix}"


def _states(root: Project) -> tuple[State, ...]:
    states = []
    for number, node in enumerate(n for n in walk(root) if isinstance(n, Aggregate)):
        in_view = root.input is node
        names = root.passed_on if in_view else {f.name: f.name for f in node.fields}
        states.append(State(f"a{number}", node, in_view, tuple((f.name, names[f.name]) for f in node.fields)))
    return tuple(states)
