"""Delta rules: one per operator, composing into the SQL of a view's change between two versions of its inputs.

A change is a row with a weight (`_weight`, +1 or -1; sums of weights are allowed), a set of changes a Z-set, and the
rules are those of DBSP (Budiu et al., VLDB 2023, section 4):

    Δ(filter), Δ(project), Δ(union all)   the same over the changes
    Δ(L ⋈ R)                              ΔL ⋈ new R  +  old L ⋈ ΔR
    Δ(aggregate)                          for the groups touched: minus the stored rows, plus the merged ones

The SQL reads, for each scan with input `i0`, the relations `i0_old`, `i0_new` and `i0_changes`; for each aggregate
with state `a0`, its stored rows `a0_state`. It is written as steps, each a relation of its own name that later
steps read.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from sqlglot import exp

from planner.bind import data_type
from planner.nodes import (
    COUNT,
    WEIGHT,
    Aggregate,
    Call,
    Field,
    Filter,
    Join,
    Node,
    Project,
    Scan,
    UnionAll,
    column,
    walk,
)
from planner.stream import State, StreamPlan

VIEW_CHANGES = "view_changes"


@dataclass(frozen=True)
class Step:
    """`CREATE TEMPORARY relation name AS query`."""

    name: str
    query: exp.Select


@dataclass(frozen=True)
class Apply:
    """Bring a stored table up to date: delete the rows whose `key` is in `removed`, then insert `added`.

    `state` names the internal table; None means the view itself. `key` are (stored column, column of the query).
    """

    state: str | None
    key: tuple[str, ...]
    removed: exp.Select
    added: exp.Select


@dataclass(frozen=True)
class DeltaProgram:
    """Steps in order, then what they change. `view_changes` is left behind for the views that read this one."""

    steps: tuple[Step, ...]
    applies: tuple[Apply, ...]


def compile_delta(plan: StreamPlan, changed: Iterable[str], retracts: bool = True) -> DeltaProgram:
    """The program that advances a view when the inputs named in `changed` have changes; all others have none.

    Without `retracts` rows only arrive, so that min, max and sums of floats need no second look at the input.
    """
    compiler = Compiler(plan, frozenset(changed), retracts=retracts)
    changes = compiler.changes(plan.root)
    assert changes is not None, "none of the inputs changed"
    names = [f.name for f in plan.root.fields]
    weight = exp.Sum(this=column(WEIGHT))
    consolidated = (
        exp.select(*map(column, names), exp.alias_(weight, WEIGHT))
        .from_(changes.subquery("c"))
        .group_by(*map(column, names))
        .having(exp.NEQ(this=weight.copy(), expression=exp.Literal.number(0)))
    )
    compiler.steps.append(Step(VIEW_CHANGES, consolidated))
    view = Apply(
        None,
        plan.key,
        _signed(VIEW_CHANGES, plan.key, exp.LT),
        _signed(VIEW_CHANGES, names, exp.GT),
    )
    return DeltaProgram(tuple(compiler.steps), (*compiler.applies, view))


def _signed(relation: str, names: Iterable[str], comparison: type[exp.Binary]) -> exp.Select:
    condition = comparison(this=column(WEIGHT), expression=exp.Literal.number(0))
    # Without a key the view has one row, and any column tells that it goes.
    columns = [column(name) for name in names] or [column(WEIGHT)]
    return exp.select(*columns).from_(relation).where(condition)


@dataclass
class Compiler:
    """Writes the SQL of nodes. With a `driver` a union keeps only the branch that scans it."""

    plan: StreamPlan
    changed: frozenset[str] = frozenset()
    driver: str | None = None
    retracts: bool = True
    steps: list[Step] = field(default_factory=list)
    applies: list[Apply] = field(default_factory=list)

    def full(self, node: Node, version: str) -> exp.Select:
        """All rows of a node at a version (`old` or `new`). Aggregates are read from their state."""
        match node:
            case Scan():
                return _scan(node, f"{node.input}_{version}")
            case Filter():
                return _over(self.full(node.input, version), node.fields).where(node.predicate)
            case Project():
                return _project(node, self.full(node.input, version))
            case Join():
                return _join(self.full(node.left, version), self.full(node.right, version), node)
            case UnionAll():
                branches = [b for b in node.branches if _scans(b, self.driver)] or node.branches
                return _union([_over(self.full(branch, version), node.fields) for branch in branches])
            case Aggregate():
                return self._stored(node, version)

    @staticmethod
    def over(node: Project, below: exp.Select) -> exp.Select:
        """A projection over given rows of its input."""
        return _project(node, below)

    @staticmethod
    def group(node: Aggregate, below: exp.Select) -> exp.Select:
        """An aggregate over given rows of its input."""
        return _aggregate(node, below)

    def changes(self, node: Node) -> exp.Select | None:
        """The changes of a node, with `_weight`; None when none of its inputs changed."""
        match node:
            case Scan():
                return _scan(node, f"{node.input}_changes", WEIGHT) if node.input in self.changed else None
            case Filter():
                below = self.changes(node.input)
                return _over(below, node.fields, WEIGHT).where(node.predicate) if below is not None else None
            case Project():
                below = self.changes(node.input)
                return _project(node, below, WEIGHT) if below is not None else None
            case Join():
                return self._join_changes(node)
            case UnionAll():
                parts = [self.changes(branch) for branch in node.branches]
                return _union([_over(part, node.fields, WEIGHT) for part in parts if part is not None])
            case Aggregate():
                return self._aggregate_changes(node)

    def _join_changes(self, join: Join) -> exp.Select | None:
        left, right = self.changes(join.left), self.changes(join.right)
        terms = []
        if left is not None:
            terms.append(_join(left, self.full(join.right, "new"), join, weighted=True))
        if right is not None:
            terms.append(_join(self.full(join.left, "old"), right, join, weighted=True))
        return _union(terms)

    def _stored(self, node: Aggregate, version: str) -> exp.Select:
        """The rows of an aggregate from its state; at `new` the merged groups take the place of the stored ones."""
        state = self.plan.state_of(node)
        rows = _over(_state_rows(state), node.fields)
        merged = f"{state.name}_merged"
        if version == "old" or all(step.name != merged for step in self.steps):
            return rows
        touched = exp.select(exp.Literal.number(1)).from_(exp.alias_(exp.to_table(f"{state.name}_delta"), "d"))
        untouched = rows.where(exp.Not(this=exp.Exists(this=touched.where(_same_group(node, "s", "d")))))
        return _union([untouched, _alive(node, merged)])

    def _aggregate_changes(self, node: Aggregate) -> exp.Select | None:
        below = self.changes(node.input)
        if below is None:
            return None
        state = self.plan.state_of(node)
        self._merge_groups(node, state, below)
        names = [f.name for f in node.fields]
        removed = (
            exp.select(*(column(n, "s") for n in names), exp.alias_(exp.Literal.number(-1), WEIGHT))
            .from_(_state_rows(state).subquery("s"))
            .join(exp.alias_(exp.to_table(f"{state.name}_delta"), "d"), on=_same_group(node, "s", "d"))
        )
        added = _alive(node, f"{state.name}_merged").select(exp.alias_(exp.Literal.number(1), WEIGHT))
        if not state.in_view:
            keys = exp.select(*map(column, node.keys or (COUNT,))).from_(f"{state.name}_delta")
            self.applies.append(Apply(state.name, node.keys, keys, _alive(node, f"{state.name}_merged")))
        return _union([removed, added])

    def _merge_groups(self, node: Aggregate, state: State, below: exp.Select) -> None:
        """Steps `_delta` (the change of each touched group), `_recomputed` where merging cannot do, `_merged`."""
        delta = f"{state.name}_delta"
        outputs = [exp.alias_(_delta_of(call), call.name, quoted=True) for call in node.calls]
        lost = exp.LT(this=exp.Min(this=column(WEIGHT)), expression=exp.Literal.number(0))
        query = exp.select(*map(column, node.keys), *outputs, exp.alias_(lost, "_lost")).from_(below.subquery("c"))
        self.steps.append(Step(delta, query.group_by(*map(column, node.keys)) if node.keys else query))
        # An aggregate below takes its old rows back whatever happens to its input.
        retracts = self.retracts or any(isinstance(part, Aggregate) for part in walk(node.input))
        recomputed = [call for call in node.calls if retracts and not _is_linear(call)]
        if recomputed:
            self._recompute(node, state, recomputed)
        self.steps.append(Step(f"{state.name}_merged", _merged(node, state, bool(recomputed))))

    def _recompute(self, node: Aggregate, state: State, calls: list[Call]) -> None:
        """min, max and sums of floats cannot take a row back: compute them again for the groups that lost one."""
        losers = (
            exp.select(*(exp.alias_(column(k), f"k{n}") for n, k in enumerate(node.keys)))
            .from_(f"{state.name}_delta")
            .where(column("_lost"))
        )
        if not node.keys:
            losers = losers.select(exp.alias_(exp.Literal.number(1), "k0"))
        pairs = [_null_safe(column(k, "r"), column(f"k{n}", "l")) for n, k in enumerate(node.keys)]
        rows = (
            exp.select(*(column(f.name, "r") for f in node.input.fields))
            .from_(self.full(node.input, "new").subquery("r"))
            .join(losers.subquery("l"), on=exp.and_(*pairs) if pairs else exp.true())
        )
        query = _aggregate(Aggregate(node.input, node.keys, tuple(calls)), rows)
        self.steps.append(Step(f"{state.name}_recomputed", query))


def _scans(node: Node, driver: str | None) -> bool:
    return any(isinstance(part, Scan) and part.input == driver for part in walk(node))


def _is_linear(call: Call) -> bool:
    return call.function == "count" or (call.function == "sum" and call.type.name not in ("real", "double precision"))


def _delta_of(call: Call) -> exp.Expr:
    """The change of one call over a group's changes. Non-linear ones see the arriving rows only."""
    weight = column(WEIGHT)
    if call.argument is None:
        return exp.cast(exp.Sum(this=weight), data_type(call.type))
    argument = column(call.argument)
    present = exp.Is(this=argument.copy(), expression=exp.null())
    if call.function == "count":
        counted = exp.Case().when(present, exp.Literal.number(0)).else_(weight)
        return exp.cast(exp.Sum(this=counted), data_type(call.type))
    if _is_linear(call):
        product = exp.Mul(this=exp.cast(argument, data_type(call.type)), expression=weight)
        return exp.cast(exp.Sum(this=product), data_type(call.type))
    arriving = exp.Case().when(exp.GT(this=weight, expression=exp.Literal.number(0)), argument)
    return _call(call.function, arriving, call)


def _call(function: str, argument: exp.Expr, call: Call) -> exp.Expr:
    node = {"sum": exp.Sum, "min": exp.Min, "max": exp.Max, "count": exp.Count}[function](this=argument)
    return exp.cast(node, data_type(call.type))


def _merged(node: Aggregate, state: State, recomputes: bool) -> exp.Select:
    query = exp.select(*(exp.alias_(column(k, "d"), k, quoted=True) for k in node.keys))
    for call in node.calls:
        query = query.select(exp.alias_(_merge_call(call, recomputes), call.name, quoted=True))
    query = query.from_(exp.alias_(exp.to_table(f"{state.name}_delta"), "d"))
    query = query.join(_state_rows(state).subquery("s"), on=_same_group(node, "s", "d"), join_type="left")
    if recomputes:
        again = exp.alias_(exp.to_table(f"{state.name}_recomputed"), "r")
        query = query.join(again, on=_same_group(node, "r", "d"), join_type="left")
    return query


def _merge_call(call: Call, recomputes: bool) -> exp.Expr:
    stored, arrived = column(call.name, "s"), column(call.name, "d")
    if call.function in ("count", "sum"):
        zero = exp.cast(exp.Literal.number(0), data_type(call.type))
        total = exp.Add(this=exp.func("coalesce", stored, zero), expression=exp.func("coalesce", arrived, zero.copy()))
        merged: exp.Expr = exp.cast(total, data_type(call.type))
    else:
        comparison = exp.LTE if call.function == "min" else exp.GTE
        merged = (
            exp.Case()
            .when(exp.Is(this=arrived, expression=exp.null()), stored)
            .when(exp.Is(this=stored.copy(), expression=exp.null()), arrived.copy())
            .when(comparison(this=stored.copy(), expression=arrived.copy()), stored.copy())
            .else_(arrived.copy())
        )
    if _is_linear(call) or not recomputes:
        return merged
    return exp.Case().when(column("_lost", "d"), column(call.name, "r")).else_(merged)


def _alive(node: Aggregate, relation: str) -> exp.Select:
    """The groups that still have rows; without keys the one group never goes away."""
    query = exp.select(*(column(f.name) for f in node.fields)).from_(relation)
    if not node.keys:
        return query
    return query.where(exp.GT(this=column(COUNT), expression=exp.Literal.number(0)))


def _same_group(node: Aggregate, left: str, right: str) -> exp.Expr:
    if not node.keys:
        return exp.true()
    return exp.and_(*(_null_safe(column(k, left), column(k, right)) for k in node.keys))


def _null_safe(left: exp.Expr, right: exp.Expr) -> exp.Expr:
    return exp.NullSafeEQ(this=left, expression=right)


def _state_rows(state: State) -> exp.Select:
    return exp.select(*(exp.alias_(column(stored), name, quoted=True) for name, stored in state.columns)).from_(
        f"{state.name}_state"
    )


def _scan(scan: Scan, relation: str, *extra: str) -> exp.Select:
    renamed = (exp.alias_(column(name), f"{scan.alias}.{name}", quoted=True) for name in scan.columns)
    return exp.select(*renamed, *map(column, extra)).from_(relation)


def _over(below: exp.Select, fields: Iterable[Field], *extra: str) -> exp.Select:
    return exp.select(*(column(f.name) for f in fields), *map(column, extra)).from_(below.subquery("s"))


def _project(node: Project, below: exp.Select, *extra: str) -> exp.Select:
    items = []
    for item in node.items:
        typed = item.expression if item.source else exp.cast(item.expression, data_type(item.type))
        items.append(exp.alias_(typed, item.name, quoted=True))
    return exp.select(*items, *map(column, extra)).from_(below.subquery("s"))


def _join(left: exp.Select, right: exp.Select, node: Join, weighted: bool = False) -> exp.Select:
    query = exp.select(*(column(f.name) for f in node.fields), *([column(WEIGHT)] if weighted else []))
    query = query.from_(left.subquery("l"))
    if node.condition is None:
        return query.join(right.subquery("r"), join_type="cross")
    return query.join(right.subquery("r"), on=node.condition)


def _aggregate(node: Aggregate, below: exp.Select) -> exp.Select:
    outputs = [exp.alias_(_compute(call), call.name, quoted=True) for call in node.calls]
    query = exp.select(*map(column, node.keys), *outputs).from_(below.subquery("s"))
    return query.group_by(*map(column, node.keys)) if node.keys else query


def _compute(call: Call) -> exp.Expr:
    if call.argument is None:
        return exp.cast(exp.Count(this=exp.Star()), data_type(call.type))
    argument: exp.Expr = column(call.argument)
    if call.function == "sum":
        # A stored sum starts at zero, so that merging it needs no case for NULL.
        total = exp.Sum(this=exp.cast(argument, data_type(call.type)))
        zero = exp.cast(exp.Literal.number(0), data_type(call.type))
        return exp.cast(exp.func("coalesce", total, zero), data_type(call.type))
    return _call(call.function, argument, call)


def _union(queries: list[exp.Select]) -> exp.Select:
    """UNION ALL of queries with equal columns, as one SELECT; None-like when there is no query at all."""
    if not queries:
        return None  # type: ignore[return-value]
    if len(queries) == 1:
        return queries[0]
    names = [select.alias_or_name for select in queries[0].selects]
    combined: exp.Expr = queries[0]
    for query in queries[1:]:
        combined = exp.union(combined, query, distinct=False, copy=False)
    assert isinstance(combined, exp.Query)
    return exp.select(*map(column, names)).from_(combined.subquery("u"))
