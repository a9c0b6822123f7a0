"""EXPLAIN (DISTSQL): the fragments into which exchanges cut a plan, and the tables that they write.

The shape is RisingWave's (`stream_graph_formatter.rs`). The tables are Sparkwave's: operators without state, and those
whose state is the view itself, have none.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from sparkwave.catalog.types import Type
from sparkwave.planner.explain.expressions import type_name
from sparkwave.planner.explain.operator_tree import Operator
from sparkwave.planner.plan.nodes import Aggregate, keeps_state
from sparkwave.planner.plan.stream_plan import State, StreamPlan

VIEW_TABLE = 4294967294
_WIDTH = 80
_DISPATCH = {"HashShard": "Hash", "UpstreamHashShard": "NoShuffle", "Single": "Single", "Broadcast": "Broadcast"}
_STATE_NAMES = {
    "hashagg": "HashAggState",
    "topn": "TopNState",
    "grouptopn": "GroupTopNState",
    "temporaljoinmemo": "Memo",
    "changelog": "Memo",
}


@dataclass
class _Branch:
    """A line with the parts below it: fields that do not fit on the line, then operators."""

    line: str
    extras: tuple[tuple[str, str], ...] = ()
    below: list[_Branch] = field(default_factory=list)


@dataclass(frozen=True)
class _Table:
    number: int
    columns: tuple[tuple[str, Type], ...]
    key: tuple[str, ...]
    distribution: tuple[str, ...]

    def branch(self, verbose: bool) -> _Branch:
        names = [name for name, _ in self.columns]
        shown = [f"{name}:{type_name(type_)}" for name, type_ in self.columns] if verbose else names
        fields = (
            ("columns", _listed(shown)),
            ("primary key", _listed(f"${names.index(name)} ASC" for name in self.key)),
            ("value indices", _listed(str(place) for place in range(len(names)))),
            ("distribution key", _listed(str(names.index(name)) for name in self.distribution)),
            ("read pk prefix len hint", str(len(self.key))),
        )
        return _Branch(f"Table {self.number}", fields)


def distsql(plan: StreamPlan, root: Operator, verbose: bool) -> list[str]:
    """Return the lines of fragments, root first, then of tables."""
    fragments: list[_Branch] = []
    numbers = {state.name: number for number, state in enumerate(s for s in plan.states if not s.in_view)}

    def fragment(operator: Operator) -> int:
        number = len(fragments)
        fragments.append(_Branch(""))
        fragments[number] = branch(operator)
        return number

    def branch(operator: Operator) -> _Branch:
        if operator.name == "StreamExchange":
            return _Branch(f"{_exchange(operator)} from {fragment(operator.children[0])}")
        below = [branch(child) for child in operator.children]
        if operator.name == "StreamTableScan":
            below = [_Branch("Upstream"), _Branch("BatchPlanNode")]
        return _Branch(operator.line, tuple(_extras(plan, operator, numbers, verbose)), below)

    fragment(root)
    lines: list[str] = []
    for number, each in enumerate(fragments):
        lines += [f"Fragment {number}", *_lines(each, "", "", 0), ""]
    for table in _tables(plan, numbers):
        lines += [*_lines(table.branch(verbose), "", "", 0), ""]
    return lines[:-1]


def described(root: Operator) -> list[str]:
    """Return the lines of one fragment with all its operators, with their outputs and keys, as DESCRIBE shows it."""

    def branch(operator: Operator) -> _Branch:
        extras = (("output", _listed(operator.output)), ("stream key", _listed(operator.key)))
        below = [branch(child) for child in operator.children]
        if operator.name == "StreamTableScan":
            below = [_Branch("Upstream"), _Branch("BatchPlanNode")]
        return _Branch(operator.line, extras if operator.output else (), below)

    return list(_lines(branch(root), "", "", 0))


def _extras(plan: StreamPlan, operator: Operator, numbers: dict[str, int], verbose: bool) -> Iterator[tuple[str, str]]:
    if operator.name == "StreamMaterialize":
        yield "tables", _listed([f"Materialize: {VIEW_TABLE}"])
    elif operator.node is not None and keeps_state(operator.node):
        state = plan.state_of(operator.node)
        yield "tables", _listed([f"{_STATE_NAMES[state.operator]}: {numbers.get(state.name, VIEW_TABLE)}"])
    if verbose:
        yield "output", _listed(operator.output)
        yield "stream key", _listed(operator.key)


def _exchange(operator: Operator) -> str:
    dispatch = _DISPATCH[str(dict(operator.fields)["dist"]).partition("(")[0]]
    hashed = f"([{', '.join(operator.positions)}])" if dispatch == "Hash" else ""
    return f"StreamExchange {dispatch}{hashed}"


def _tables(plan: StreamPlan, numbers: dict[str, int]) -> Iterable[_Table]:
    for state in plan.states:
        if state.name in numbers:
            columns = tuple((stored, _types(state)[name]) for name, stored in state.columns)
            keys = state.node.keys if isinstance(state.node, Aggregate) else (*state.node.partition, *state.node.key)
            groups = state.node.keys if isinstance(state.node, Aggregate) else state.node.partition
            yield _Table(numbers[state.name], columns, tuple(dict.fromkeys(keys)), groups)
    yield _Table(VIEW_TABLE, tuple((c.name, c.type) for c in plan.columns), plan.key_columns, plan.key_columns)


def _types(state: State) -> dict[str, Type]:
    return {f.name: f.type for f in state.node.fields}


def _listed(parts: Iterable[str]) -> str:
    shown = ", ".join(parts)
    return f"[ {shown} ]" if shown else "[]"


def _lines(branch: _Branch, first: str, rest: str, depth: int) -> Iterator[str]:
    """Yield the lines of a branch; its extra fields stay on its line if they fit."""
    extras = ", ".join(f"{key}: {value}" for key, value in branch.extras)
    line = f"{branch.line} {{ {extras} }}" if extras else branch.line
    below: Sequence[_Branch] = branch.below
    if extras and len(first) + len(line) > _WIDTH:
        line = branch.line
        below = [*(_Branch(f"{key}: {value}") for key, value in branch.extras), *branch.below]
    yield first + line
    for number, child in enumerate(below):
        is_last = number == len(below) - 1
        yield from _lines(
            child, rest + ("└── " if is_last else "├── "), rest + ("    " if is_last else "│   "), depth + 1
        )
