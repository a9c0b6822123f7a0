"""EXPLAIN (INCREMENTAL): how a view follows its inputs, operator by operator.

For each operator, inputs first: the delta rule, its state between epochs and the reason for it, and the SQL of its
changes over `n1_changes`, `n1_old` and `n1_new`: the changes of operator 1, and its rows before and after. Then the
program that runs, in which all of this is combined.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import TypeGuard

from sqlglot import exp

from sparkwave.planner.delta.compiler import Compiler, compile_delta
from sparkwave.planner.delta.full import Keys, restricted
from sparkwave.planner.delta.now import NOW
from sparkwave.planner.delta.program import Apply
from sparkwave.planner.explain.filling import filling
from sparkwave.planner.explain.operator_tree import STREAM
from sparkwave.planner.explain.plan_tree import Printer
from sparkwave.planner.explain.readable_sql import pretty, read_directly
from sparkwave.planner.functions.emit import to_sql
from sparkwave.planner.plan.nodes import (
    WEIGHT,
    Join,
    Node,
    column,
    keeps_state,
    walk,
)
from sparkwave.planner.plan.stream_plan import State, StreamPlan


def incremental(plan: StreamPlan) -> list[str]:
    """Return the blocks of the operators, the view, then the whole program."""
    return [*_operators(plan), "", *_view(plan), "", *decisions(plan), "", *_program(plan)]


def _operators(plan: StreamPlan) -> Iterator[str]:
    printer = Printer(STREAM, strategy=plan.strategy, keep=True)
    printer.of(plan.root)
    labels: dict[int, str] = {}
    nodes = {id(node): node for node in walk(plan.root)}  # once each, however many operators read it
    for number, node in enumerate(nodes.values(), 1):
        if number > 1:
            yield ""
        reads = ", ".join(labels[id(child)] for child in node.inputs)
        labels[id(node)] = f"n{number}"
        yield f"{number}. {printer.made[id(node)].line}" + (f" over {reads}" if reads else "")
        yield f"   rule:  {node.rule.change}"
        yield f"   state: {_state(plan, node)}"
        yield from (f"   {line}" for line in _delta(plan, node, labels))


def _state(plan: StreamPlan, node: Node) -> str:
    if not keeps_state(node):
        return node.rule.state
    state = plan.state_of(node)
    return f"{state.name} in {_place(state)}, {node.rule.state}"


def _place(state: State) -> str:
    stored = ", ".join(name for _, name in state.columns)
    return f"{'the view itself' if state.in_view else 'an internal table'} ({stored})"


@dataclass
class _OneLevel(Compiler):
    """Compiles one operator; its inputs are relations named by their labels."""

    top: Node | None = None
    labels: dict[int, str] = field(default_factory=dict)

    def _label(self, node: Node) -> str | None:
        is_input = self.top is not None and any(node is child for child in self.top.inputs)
        return self.labels[id(node)] if is_input else None

    def changes(self, node: Node) -> exp.Select | None:
        label = self._label(node)
        if label is None:
            return super().changes(node)
        return exp.select(*(column(f.name) for f in node.fields), column(WEIGHT)).from_(f"{label}_changes")

    def full(self, node: Node, version: str, keys: Keys | None = None) -> exp.Select:
        label = self._label(node)
        if label is None:
            return super().full(node, version, keys)
        return restricted(
            exp.select(*(column(f.name) for f in node.fields)).from_(f"{label}_{version}"), node.fields, keys
        )

    def is_taken_apart(self, node: Node) -> TypeGuard[Join]:
        return False

    def driving(self, rows: exp.Select, names: Iterable[str]) -> exp.Select:
        return rows


@dataclass(frozen=True)
class OperatorDelta:
    """The SQL of one operator.

    `steps` are relations in order, the last with its changes if it has any; `applies` change its state.
    """

    steps: tuple[tuple[str, exp.Expr], ...]
    applies: tuple[Apply, ...]


def operator_delta(plan: StreamPlan, node: Node, labels: dict[int, str]) -> OperatorDelta:
    """Return an operator's SQL when all its inputs have changes. `labels` names nodes by their id."""
    changed = {scan.input for scan in plan.scans} | {NOW}
    compiler = _OneLevel(plan, frozenset(changed), top=node, labels=labels)
    changes = compiler.changes(node)
    steps = [(step.name, read_directly(step.query)) for step in compiler.steps]
    if changes is not None:
        steps.append((f"{labels[id(node)]}_changes", read_directly(changes)))
    return OperatorDelta(tuple(steps), tuple(compiler.applies))


def _delta(plan: StreamPlan, node: Node, labels: dict[int, str]) -> Iterator[str]:
    delta = operator_delta(plan, node, labels)
    for name, query in delta.steps:
        yield f"{name} :="
        yield from pretty(query)
    for apply in delta.applies:
        yield from _apply(apply.state or "", apply.key, apply.removed, apply.added)


def _view(plan: StreamPlan) -> Iterator[str]:
    yield f"view: the changes of the last operator, by its key ({', '.join(plan.key) or 'one row'})"
    yield "   rule:  equal rows with opposite weights cancel out; rows with weight < 0 are deleted, the others inserted"


def decisions(plan: StreamPlan) -> list[str]:
    """Return how and where a view is filled, with the reasons."""
    return [
        f"strategy: {plan.strategy} ({plan.reason})",
        "engine: DuckDB, in the server or in tasks of Spark, whichever suits the size",
        *filling(plan),
    ]


def _program(plan: StreamPlan) -> Iterator[str]:
    yield "program, when every input has changes:"
    changed = {scan.input for scan in plan.scans} | ({NOW} if plan.reads_now else set())
    if not changed:
        yield "   none: nothing that it reads ever changes"
        return
    program = compile_delta(plan, changed)
    for step in program.steps:
        yield f"   {step.name} :="
        yield from (f"   {line}" for line in pretty(step.query))
    for apply in program.applies:
        yield from (f"   {line}" for line in _apply(apply.state or "view", apply.key, apply.removed, apply.added))


def _apply(target: str, key: tuple[str, ...], removed: exp.Select, added: exp.Select) -> Iterator[str]:
    yield f"{target}: delete by ({', '.join(key)}) in {to_sql(removed)}"
    yield f"{target}: insert {to_sql(added)}"
