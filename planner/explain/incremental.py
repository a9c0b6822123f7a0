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
from sparkwave.planner.delta.now import NOW, reads_now
from sparkwave.planner.delta.program import Apply
from sparkwave.planner.explain.filling import filling
from sparkwave.planner.explain.operator_tree import STREAM
from sparkwave.planner.explain.plan_tree import Printer
from sparkwave.planner.explain.readable_sql import pretty, read_directly
from sparkwave.planner.functions.emit import to_sql
from sparkwave.planner.plan.nodes import (
    ANTI,
    AS_OF,
    AS_OF_LEFT,
    DYNAMIC,
    FULL,
    INNER,
    LEFT,
    SEMI,
    TEMPORAL,
    TEMPORAL_LEFT,
    WEIGHT,
    Aggregate,
    ChangeLog,
    Filter,
    Join,
    Memo,
    Node,
    OverWindow,
    Project,
    Scan,
    TopN,
    UnionAll,
    Unnest,
    Values,
    column,
    keeps_state,
    walk,
)
from sparkwave.planner.plan.stream_plan import State, StreamPlan


@dataclass(frozen=True)
class Rule:
    """The delta rule of an operator, and the reason for its state."""

    change: str
    state: str


_LOOKS_UP = "none: the other side's rows are looked up in its own table or state, where they are stored once already"
_MAP = "none: one row at a time is enough"

_JOINS: dict[str, Rule] = {
    INNER: Rule("the left side's changes meet the right side as it is now, the right side's the left as it was: "
                "ΔL ⋈ new R + old L ⋈ ΔR", _LOOKS_UP),
    LEFT: Rule("ΔL ⋈ new R; and for the keys in ΔR, the old left rows joined again with the new right side, "
               "minus with the old: a first match takes back the row with NULLs", _LOOKS_UP),
    FULL: Rule("as a left join; and the right rows without a match, as an anti join of the right side with the left",
               _LOOKS_UP),
    SEMI: Rule("ΔL with a match in new R; and for the keys in ΔR, the old left rows that match now, "
               "minus those that matched before", _LOOKS_UP),
    ANTI: Rule("ΔL without a match in new R; and for the keys in ΔR, the old left rows that have no match now, "
               "minus those that had none before", _LOOKS_UP),
    DYNAMIC: Rule("ΔL for which the condition holds with the right side's row as it is now; and when that row changed, "
                  "the old left rows for which the old and the new row give different answers",
                  "none: the row is that of the operator on the right, and the left rows are looked up in the input"),
    **dict.fromkeys((AS_OF, AS_OF_LEFT), Rule(
        "ΔL with its nearest row of new R; and for the keys in ΔR, the old left rows with their nearest row of new R, "
        "minus those with that of old R", _LOOKS_UP)),
    TEMPORAL: Rule("ΔL ⋈ the right side as it is when the row arrives; changes of the right side change nothing",
                   "none: what was joined once is never taken back"),
    TEMPORAL_LEFT: Rule("ΔL ⋈ the right side as it is when the row arrives, or NULLs; changes of the right side "
                        "change nothing", "none: what was joined once is never taken back"),
}  # fmt: skip

_TIMED = Rule(
    "the changes that satisfy the predicate at the epoch's time; and the old rows whose answer differs between the "
    "last epoch's time and this one's",
    "none: which rows time has moved is found by the predicate's bounds in the input",
)
_ALL_ROWS = Rule(
    "for the partitions touched: minus the old first rows, plus the new ones, of all rows of the partition",
    "none: without a limit every row is needed again, and the input has them",
)

_STORED_LOG = Rule("the rows that the log gains", "all rows: a change that is over cannot be seen again")

_RULES: dict[type, Rule] = {
    Scan: Rule("the rows that the table gained (+1) and lost (-1) since the last epoch",
               "none: the lake has the table at both snapshots"),
    Values: Rule("constants never change", "none: they are in the plan"),
    Filter: Rule("the changes that satisfy the predicate, with their weights", _MAP),
    Project: Rule("the same expressions over the changes, with their weights", _MAP),
    Unnest: Rule("a change for each element of the array of a changed row, with its weight", _MAP),
    UnionAll: Rule("the changes of all inputs", "none: the branch number and keys tell whose row it is"),
    Aggregate: Rule("for the groups touched: minus the stored row, plus the merged one",
                    "a row for each group: counts and sums add up, min and max compare; "
                    "only what cannot is computed again from the input, for the groups that need it"),
    TopN: Rule("for the partitions touched: minus the stored first rows, plus the first of them and the changes; "
               "a partition that lost one of them is read again",
               "the first offset + limit rows of each partition: what is behind them cannot show until one is lost"),
    ChangeLog: Rule("each change of a row as a row that stays, with its code and the epoch's time", _MAP),
    Memo: Rule("for the left rows that change: minus their stored results, plus those of arriving rows",
               "all rows: what was joined once cannot be joined again as it was then"),
    OverWindow: Rule("for the partitions touched: minus the old rows, plus the new ones",
                     "none: the partition's rows are read from the input when one of them changes"),
}  # fmt: skip


def rule_of(node: Node) -> Rule:
    """Return the delta rule of a node, in words."""
    match node:
        case Join(kind=kind):
            return _JOINS[kind]
        case Filter(predicate=predicate) if reads_now(predicate):
            return _TIMED
        case TopN(limit=None):
            return _ALL_ROWS
        case Memo(input=ChangeLog()):
            return _STORED_LOG
    return _RULES[type(node)]


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
        rule = rule_of(node)
        yield f"   rule:  {rule.change}"
        yield f"   state: {_state(plan, node, rule)}"
        yield from (f"   {line}" for line in _delta(plan, node, labels))


def _state(plan: StreamPlan, node: Node, rule: Rule) -> str:
    if not keeps_state(node):
        return rule.state
    state = plan.state_of(node)
    return f"{state.name} in {_place(state)}, {rule.state}"


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
