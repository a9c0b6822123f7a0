"""All rows of a node at a version, or those with certain keys, for joins and recomputed groups."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import TypeVar

from sqlglot import exp

from sparkwave.planner.delta import operator_sql
from sparkwave.planner.delta.looked_up import Source
from sparkwave.planner.delta.now import at_time
from sparkwave.planner.delta.state import alive, state_rows
from sparkwave.planner.plan.join_types import ANTI, AS_OF, AS_OF_LEFT, DYNAMIC, INNER, LEFT, SEMI, TEMPORAL_LEFT
from sparkwave.planner.plan.nodes import (
    Aggregate,
    ChangeLog,
    Field,
    Filter,
    Join,
    Memo,
    Node,
    OverWindow,
    Project,
    Scan,
    Stateful,
    TopN,
    UnionAll,
    Unnest,
    Values,
    column,
    walk,
)
from sparkwave.planner.plan.stream_plan import StreamPlan

_One = TypeVar("_One", Unnest, OverWindow, TopN, ChangeLog)
# The step of a restriction that is not written.
HINT = ""
_LEFT_KINDS = (INNER, LEFT, SEMI, ANTI, DYNAMIC, TEMPORAL_LEFT, AS_OF, AS_OF_LEFT)


@dataclass(frozen=True)
class Keys:
    """A restriction to the rows whose expressions equal a row of a step.

    `parts` are expressions over the restricted node's fields, each with whether NULL equals NULL. They are compared
    with the step's `columns`, `k0`, `k1`, … by default, whose values have the `sources`, if these are known. With the
    step HINT the restriction is none: who reads the rows compares the parts with the sources.
    """

    step: str
    parts: tuple[tuple[exp.Expr, bool], ...]
    columns: tuple[str, ...] = ()
    sources: tuple[Source | None, ...] = ()

    @property
    def compared(self) -> tuple[tuple[exp.Expr, bool, str], ...]:
        names = self.columns or tuple(f"k{number}" for number in range(len(self.parts)))
        return tuple((expression, safe, name) for (expression, safe), name in zip(self.parts, names, strict=True))

    def mapped(self, mapped: Iterable[exp.Expr | None]) -> Keys | None:
        """Return the restriction over other expressions. Parts that map to None are left out; None when all are."""
        sources = self.sources or (None,) * len(self.parts)
        kept = [
            ((to, safe), name, source)
            for to, (_, safe, name), source in zip(mapped, self.compared, sources, strict=True)
            if to is not None
        ]
        parts, names, known = zip(*kept, strict=True) if kept else ((), (), ())
        made = Keys(self.step, parts, names, known)
        if made.compared == self.compared:
            return self
        return made if kept else None

    @staticmethod
    def of(step: str, node: Node, names: Iterable[str], sources: tuple[Source | None, ...] = ()) -> Keys:
        """Return a restriction of fields of a node to the step's `k0`, `k1`, …; NULL equals NULL."""
        present = node.present
        return Keys(step, tuple((column(name), name not in present) for name in names), sources=sources)

    def found(self) -> exp.Exists:
        """Return the condition that the step has the key of a row `s`; the parts are columns."""
        step = exp.alias_(exp.to_table(self.step), "k")
        same = [operator_sql.same(column(name, "k"), column(e.name, "s"), safe) for e, safe, name in self.compared]
        return exp.Exists(this=exp.select(exp.Literal.number(1)).from_(step, copy=False).where(*same))

    def within(self, names: Iterable[str]) -> Keys | None:
        """Return the restriction with only the parts that read no other fields than these."""
        allowed = set(names)
        return self.mapped(e if {c.name for c in e.find_all(exp.Column)} <= allowed else None for e, _ in self.parts)


def restricted(below: exp.Select, fields: Iterable[Field], keys: Keys | None) -> exp.Select:
    """Return the rows that have a key of the step; without parts all rows, if the step has any."""
    if keys is None or keys.step == HINT:
        return below
    fields = tuple(fields)
    computed = {
        f"_key{number}": expression
        for number, (expression, _) in enumerate(keys.parts)
        if not isinstance(expression, exp.Column)
    }
    if computed:
        # Outside of the join an expression is computed once, over columns of known types.
        items = (exp.alias_(expression.copy(), name, quoted=True) for name, expression in computed.items())
        below = exp.select(*(column(f.name) for f in fields), *items).from_(below.subquery("s", copy=False), copy=False)
    matches = []
    for number, (expression, safe, name) in enumerate(keys.compared):
        own = f"_key{number}" if f"_key{number}" in computed else expression.name
        matches.append(operator_sql.same(column(name, "k"), column(own, "s"), safe))
    # With EXISTS instead, DuckDB compares null-safely and reads all row groups.
    condition = exp.and_(*matches, copy=False) if matches else exp.true()
    step = exp.alias_(exp.to_table(keys.step), "k")
    return operator_sql.over(below, fields).join(step, on=condition, join_type="semi", copy=False)


@dataclass(frozen=True)
class Rows:
    """Writes the SQL of nodes at a version, `old` or `new`.

    With a `driver` a union keeps only the branches that scan it. `merged` are the steps made so far: an operator with
    state that has changed in this epoch is read from its merged groups instead of its stored ones. `moved` names
    relations that have the rows of nodes. `reduced` returns the name of a relation that has the rows of a scan with
    some keys, at a version, if there is one.
    """

    plan: StreamPlan
    version: str
    driver: str | None = None
    merged: frozenset[str] = frozenset()
    moved: Mapping[Node, str] = field(default_factory=dict)
    reduced: Callable[[Scan, str, Keys], str | None] = lambda *_: None

    def of(self, node: Node, keys: Keys | None = None) -> exp.Select:
        """Return all rows of a node, or those that have the keys."""
        if self.moved and node in self.moved:
            rows = exp.select(*(column(f.name) for f in node.fields)).from_(self.moved[node], copy=False)
            return restricted(rows, node.fields, keys)
        match node:
            case Scan():
                reduced = self.reduced(node, self.version, keys) if keys is not None else None
                rows = operator_sql.scan(node, reduced or f"{node.input}_{self.version}")
                return restricted(rows, node.fields, keys)
            case Values():
                return restricted(operator_sql.values(node), node.fields, keys)
            case Filter():
                below = self.of(node.input, keys)
                return operator_sql.over(below, node.fields).where(at_time(node.predicate, self.version), copy=False)
            case Project():
                inner = {item.name: item.expression for item in node.items}
                below_keys = keys.mapped(_through(inner, e) for e, _ in keys.parts) if keys is not None else None
                return operator_sql.project(node, self.of(node.input, below_keys))
            case UnionAll():
                branches = [b for b in node.branches if scans(b, self.driver)] or list(node.branches)
                return operator_sql.union(
                    [operator_sql.over(self.of(branch, keys), node.fields) for branch in branches]
                )
            case Join():
                return self._join(node, keys)
            case ChangeLog():
                return self._restricted_below(
                    node, keys, [f.name for f in node.input.fields], operator_sql.logged_first
                )
            case Unnest():
                return self._restricted_below(node, keys, [f.name for f in node.input.fields], operator_sql.unnest)
            case OverWindow():
                return self._restricted_below(node, keys, node.partition, operator_sql.over_window)
            case TopN() if node.limit is None:
                return self._restricted_below(node, keys, node.partition, self.over_rows)
            case Aggregate() | TopN() | Memo():
                return self._stored(node, keys)

    def _restricted_below(
        self, node: _One, keys: Keys | None, names: Iterable[str], over: Callable[[_One, exp.Select], exp.Select]
    ) -> exp.Select:
        """Restrict the input by the parts that read only these fields, and the result by the rest."""
        below = keys.within(names) if keys is not None else None
        rows = over(node, self.of(node.input, below))
        is_whole = keys is None or (below is not None and len(below.parts) == len(keys.parts))
        return rows if is_whole else restricted(rows, node.fields, keys)

    def _join(self, node: Join, keys: Keys | None) -> exp.Select:
        left_keys = right_keys = None
        if keys is not None and node.kind in _LEFT_KINDS:
            left_keys = keys.within(f.name for f in node.left.fields)
            equal = {one: other for one, other, _ in node.pairs}
            right_keys = keys.mapped(equal.get(e) for e, _ in keys.parts)
            if node.kind == INNER:
                own = keys.within(f.name for f in node.right.fields)
                back = {other: one for one, other, _ in node.pairs}
                left_keys = left_keys or keys.mapped(back.get(e) for e, _ in keys.parts)
                right_keys = own or right_keys
        rows = operator_sql.join(node, self.of(node.left, left_keys), self.of(node.right, right_keys))
        # A restriction over one side's fields alone is complete already.
        is_whole = keys is None or keys in (left_keys, right_keys)
        return rows if is_whole else restricted(rows, node.fields, keys)

    def _stored(self, node: Stateful, keys: Keys | None) -> exp.Select:
        """Return the rows of an operator with state; at `new` the merged groups replace the stored ones."""
        if isinstance(node, TopN) and node.offset:
            assert node.limit is not None
            rows = operator_sql.top_n(node, self._kept(node, None), node.offset, node.offset + node.limit)
            return restricted(rows, node.fields, keys)
        return self._kept(node, keys)

    def _kept(self, node: Stateful, keys: Keys | None) -> exp.Select:
        state = self.plan.state_of(node)
        rows = restricted(operator_sql.over(state_rows(state), node.fields), node.fields, keys)
        merged = f"{state.name}_merged"
        if self.version == "old" or merged not in self.merged:
            return rows
        names = node.keys if isinstance(node, Aggregate) else node.partition
        found = Keys.of(f"{state.name}_touched", node, names).found()
        fresh = alive(node, merged) if isinstance(node, Aggregate) else exp.select("*").from_(merged, copy=False)
        fresh = restricted(operator_sql.over(fresh, node.fields), node.fields, keys)
        return operator_sql.union([rows.where(exp.Not(this=found), copy=False), fresh])

    @staticmethod
    def over_rows(node: OverWindow | TopN, below: exp.Select) -> exp.Select:
        """Return the rows of an operator on partitions over given rows of its input."""
        if isinstance(node, OverWindow):
            return operator_sql.over_window(node, below)
        return operator_sql.top_n(node, below, node.offset, None if node.limit is None else node.offset + node.limit)


def _through(inner: dict[str, exp.Expr], expression: exp.Expr) -> exp.Expr:
    """Return an expression over a projection's outputs as one over its inputs."""
    return expression.transform(lambda part: inner[part.name].copy() if isinstance(part, exp.Column) else part)


def scans(node: Node, driver: str | None) -> bool:
    """Return whether a node reads an input."""
    return any(isinstance(part, Scan) and part.input == driver for part in walk(node))
