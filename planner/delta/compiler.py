"""Delta rules: one per operator, composing into the SQL of a view's change between two versions of its inputs.

A change is a row with a weight (`_weight`, +1 or -1; sums of weights are allowed), a set of changes a Z-set, and the
rules are those of DBSP (Budiu et al., VLDB 2023, section 4):

    filter, project, union, unnest    the same over the changes
    inner join                        ΔL ⋈ new R  +  old L ⋈ ΔR
    dynamic filter                    ΔL with the new row, and the old L rows for which the two rows differ
    left, semi, anti, as-of join      ΔL ⋈ new R  +  for the keys in ΔR: old L ⋈ new R  -  old L ⋈ old R
    full join                         as a left join, and the right rows without a match as an anti join
    change log                        each change of a row as a row that stays, with its code and the epoch's time
    memo of a temporal join           for the left rows that change: minus the stored rows, plus those ⋈ new R
    aggregate, top-n                  for the groups touched: minus the stored rows, plus the merged ones
    over window                       for the partitions touched: minus the old rows, plus the new ones
    filter on now()                   also the old rows whose answer differs between the two epochs' times

The SQL reads, for each scan with input `i0`, the relations `i0_old`, `i0_new` and `i0_changes`; for each operator
with state `s0`, its stored rows `s0_state`. It is written as steps, each a relation of its own name that later
steps read.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TypeGuard

from sqlglot import exp

from sparkwave.planner.bind.binder import data_type
from sparkwave.planner.delta import operator_sql
from sparkwave.planner.delta.checks import NO_SIDES, Check, pairs_of, raising, raising_sides
from sparkwave.planner.delta.full import HINT, Keys, Rows
from sparkwave.planner.delta.looked_up import Columns, Reduction, Source, field_below, looked_up, passed_on
from sparkwave.planner.delta.now import NOW, at_time, flips
from sparkwave.planner.delta.program import Apply, DeltaProgram, Step
from sparkwave.planner.delta.stateful import merge_first_rows, merge_groups, merge_log, merge_memo, replaced_groups
from sparkwave.planner.plan.filter_sets import selectivity
from sparkwave.planner.plan.join_types import (
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
)
from sparkwave.planner.plan.nodes import (
    WEIGHT,
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
    changes_by_row,
    column,
    equal_in_files,
    keeps_state,
    walk,
)
from sparkwave.planner.plan.stream_plan import State, StreamPlan

VIEW_CHANGES = "view_changes"


def compile_delta(
    plan: StreamPlan,
    changed: Iterable[str],
    retracts: bool = True,
    has_checks: bool = False,
    without_nulls: Collection[str] = (),
    reduces: bool = False,
) -> DeltaProgram:
    """Return the program that advances a view when the inputs named in `changed` have changed, and no others.

    `NOW` among them stands for time that has passed. Without `retracts` rows only arrive, so that min, max and sums of
    floats need not read the input again. With `has_checks` the program also has checks for expressions that may raise.
    `without_nulls` names states whose stored rows have no NULL in their keys. A program that `reduces` reads reductions
    of its inputs.
    """
    compiler = Compiler(plan, frozenset(changed), retracts, has_checks, frozenset(without_nulls), reduces)
    changes = compiler.changes(plan.root)
    assert changes is not None, "none of the inputs changed"
    compiler.add(VIEW_CHANGES, changes if _is_net(plan) else operator_sql.consolidated(changes, plan.root.fields))
    names = [f.name for f in plan.root.fields]
    removed, added = _signed(VIEW_CHANGES, plan.key, exp.LT), _signed(VIEW_CHANGES, names, exp.GT)
    view = Apply(None, plan.key, equal_in_files(plan.root), removed, added)
    lookups = {name: tuple(columns) for name, columns in compiler.lookups.items()}
    applies, checks = (*compiler.applies, view), tuple(compiler.checks)
    return DeltaProgram(tuple(compiler.steps), applies, checks, lookups, compiler.reductions)


def _is_net(plan: StreamPlan) -> bool:
    """Return whether a view never removes and adds equal rows, because its rows are the groups of an aggregation."""
    return any(state.in_view and isinstance(state.node, Aggregate) for state in plan.states)


def _signed(relation: str, names: Iterable[str], comparison: type[exp.Binary]) -> exp.Select:
    condition = comparison(this=column(WEIGHT), expression=exp.Literal.number(0))
    # Without a key the view has one row, and any column tells of its removal.
    columns = [column(name) for name in names] or [column(WEIGHT)]
    return exp.select(*columns).from_(relation, copy=False).where(condition)


@dataclass
class Compiler:
    """Writes the SQL of changes; a query that must be computed only once becomes a step."""

    plan: StreamPlan
    changed: frozenset[str]
    retracts: bool = True
    has_checks: bool = False
    without_nulls: frozenset[str] = frozenset()
    reduces: bool = False
    steps: list[Step] = field(default_factory=list)
    applies: list[Apply] = field(default_factory=list)
    checks: list[Check] = field(default_factory=list)
    kept: dict[str, exp.Select | None] = field(default_factory=dict)  # changes by state
    lookups: dict[str, dict[Columns, None]] = field(default_factory=dict)
    reductions: dict[str, tuple[str, Reduction]] = field(default_factory=dict)

    def add(self, name: str, query: exp.Select, drives_join: bool = False) -> str:
        self.steps.append(Step(name, query, drives_join))
        return name

    def _fresh(self, stem: str) -> str:
        return f"{stem}{sum(step.name.startswith(stem) for step in self.steps)}"

    def full(self, node: Node, version: str, keys: Keys | None = None) -> exp.Select:
        """Return all rows of a node at a version, `old` or `new`.

        For `new`, the node's changes must be compiled before.
        """
        self._note(node, (part for part, is_null_safe in keys.parts if not is_null_safe) if keys else ())
        merged = frozenset(step.name for step in self.steps)
        return Rows(self.plan, version, merged=merged, reduced=self._reduced).of(node, keys)

    def _reduced(self, scan: Scan, version: str, keys: Keys) -> str | None:
        """Return the name of the reduction of a scan that has its rows with some keys; None if there is none."""
        reduction = _reduction(scan, keys)
        if reduction is None:
            return None
        numbers = dict.fromkeys(known for _, known in self.reductions.values()) | {reduction: None}
        name = f"{scan.input}_{version}_{[*numbers].index(reduction)}"
        self.reductions[name] = f"{scan.input}_{version}", reduction
        return name

    def _sources(self, node: Node, values: Iterable[exp.Expr]) -> tuple[Source | None, ...]:
        """Return the columns that have the values of expressions over the changed rows of a node."""
        changed = _inputs(node) & self.changed
        is_known = self.reduces and NOW not in self.changed and len(changed) == 1
        return tuple(
            _source(node, value.name, changed) if is_known and isinstance(value, exp.Column) else None
            for value in values
        )

    def _note(self, node: Node, compared: Iterable[exp.Expr]) -> None:
        """Record that rows of a node are looked up by the values of these of its fields, together."""
        names = [part.name for part in compared if isinstance(part, exp.Column)]
        for name, columns in looked_up(node, names).items():
            self.lookups.setdefault(name, {})[columns] = None

    def changes(self, node: Node) -> exp.Select | None:
        """Return the changes of a node, with `_weight`; None when none of its inputs changed."""
        match node:
            case Scan():
                return operator_sql.scan(node, f"{node.input}_changes", WEIGHT) if node.input in self.changed else None
            case Values():
                return None
            case Filter():
                return self._filter(node)
            case UnionAll():
                parts = [(branch, self.changes(branch)) for branch in node.branches]
                listed = [operator_sql.over(part, node.fields, WEIGHT) for _, part in parts if part is not None]
                return operator_sql.union(listed) if listed else None
            case Join():
                return self._join(node)
        if keeps_state(node):
            return self._kept(node)
        below = self.changes(node.input)
        if below is None:
            return None
        below = self._looked_through(node, below)
        match node:
            case Project():
                return operator_sql.project(node, below, WEIGHT)
            case Unnest():
                return operator_sql.unnest(node, below, WEIGHT)
            case ChangeLog():
                return operator_sql.change_log(node, below)
        assert isinstance(node, OverWindow | TopN)
        return self._partitions(node, below)

    def _filter(self, node: Filter) -> exp.Select | None:
        below = self.changes(node.input)
        parts = []
        if below is not None:
            below = self._looked_through(node, below)
            parts.append(
                operator_sql.over(below, node.fields, WEIGHT).where(at_time(node.predicate, "new"), copy=False)
            )
        if NOW in self.changed and node.reads_now:
            parts.append(flips(node, self.full(node.input, "old")))
        return operator_sql.union(parts) if parts else None

    # Joins.

    def _join(self, node: Join) -> exp.Select | None:
        left, right = self._settled(node.left), self._settled(node.right)
        if left is None and right is None:
            return None
        sides = raising_sides(node) if self.has_checks else NO_SIDES
        left = self._checked(node.left, left, sides.left) if left is not None else None
        right = self._checked(node.right, right, sides.right) if right is not None else None
        if sides.both:
            pairs = pairs_of(node)
            met = self._pairs(pairs, left, right)
            if met is not None and node.kind == INNER:
                met = self._checked(pairs, met, sides.both)
                return operator_sql.over(met, node.fields, WEIGHT).where(
                    *(part.copy() for part in sides.both), copy=False
                )
            if met is not None:
                self.checks.append(Check.of(pairs, met, sides.both))
        if node.kind in (INNER, TEMPORAL, TEMPORAL_LEFT):
            return self._pairs(node, left, right)
        if node.kind == DYNAMIC:
            return self._dynamic_filter(node, left, right)
        one_sided = Join(node.left, node.right, node.condition, LEFT) if node.kind == FULL else node
        terms = self._preserved(one_sided, left, right)
        if node.kind == FULL:
            terms += self._unmatched_right(node, left, right)
        return operator_sql.union([operator_sql.over(term, node.fields, WEIGHT) for term in terms])

    def _pairs(self, node: Join, left: exp.Select | None, right: exp.Select | None) -> exp.Select | None:
        """Return the changes of a join that is linear in both sides, or whose right side's changes have no effect."""
        terms = []
        if left is not None:
            terms.append(self._met(node, left, node.right, "new"))
        if right is not None and node.kind == INNER:
            terms.append(self._met(node, right, node.left, "old"))
        return operator_sql.union(terms) if terms else None

    def _met(self, node: Join, changes: exp.Select, other: Node, version: str) -> exp.Select:
        """Return the changes of a join from those of one side.

        If the other side consists of inner joins, its relations are looked up one after another, each by the rows found
        so far.
        """
        is_right = other is node.right
        own = node.left if is_right else node.right
        if node.kind == INNER and self.is_taken_apart(other):
            names = [f.name for f in own.fields]
            sources = dict(zip(names, self._sources(own, [*map(column, names)]), strict=True))
            found = self._in_turn(changes, {**sources, WEIGHT: None}, other, node.conjuncts, version)
            if found is not None:
                return operator_sql.over(found, node.fields, WEIGHT)
        pairs = [(left, right, safe) if is_right else (right, left, safe) for left, right, safe in node.pairs]
        parts = tuple((its, is_null_safe) for _, its, is_null_safe in pairs)
        rows = self.full(other, version, Keys(HINT, parts, sources=self._sources(own, [mine for mine, *_ in pairs])))
        return operator_sql.join(node, *((changes, rows) if is_right else (rows, changes)), WEIGHT)

    def _in_turn(
        self, rows: exp.Select, sources: Mapping[str, Source | None], node: Join, on: tuple[exp.Expr, ...], version: str
    ) -> exp.Select | None:
        """Return some rows, with the names and the sources of these columns, joined with a node on all the conditions.

        None if a relation of the node is compared with none before it.
        """
        order = _in_order(node, frozenset(sources), on)
        for number, (part, conditions) in enumerate(order or ()):
            rows = self.driving(rows, sources) if number else rows
            compared = [*_equal_to(part, conditions)]
            known = (sources.get(other.name) if isinstance(other, exp.Column) else None for _, other in compared)
            keys = Keys(HINT, tuple((own, False) for own, _ in compared), sources=tuple(known))
            sources = {**sources, **_sources_of(part, keys)}
            rows = exp.select(*map(column, sources)).from_(rows.subquery("l", copy=False), copy=False)
            other = self.full(part, version, keys).subquery("r", copy=False)
            rows = rows.join(other, on=exp.and_(*(each.copy() for each in conditions)), copy=False)
        return rows if order else None

    def is_taken_apart(self, node: Node) -> TypeGuard[Join]:
        """Return whether the relations of a node are looked up one after another."""
        return _is_inner(node)

    def driving(self, rows: exp.Select, names: Iterable[str]) -> exp.Select:
        """Return some rows from a step of their own."""
        step = self.add(self._fresh("joined_"), rows, drives_join=True)
        return exp.select(*map(column, names)).from_(step, copy=False)

    def _dynamic_filter(self, node: Join, left: exp.Select | None, right: exp.Select | None) -> exp.Select:
        terms = []
        if left is not None:
            terms.append(operator_sql.join(node, left, self.full(node.right, "new"), WEIGHT))
        if right is not None:
            names = {f.name for f in node.right.fields}
            before, after = (_with_row(node.condition or exp.true(), names, table) for table in ("o", "n"))
            weight = exp.Case().when(after, exp.Literal.number(1)).else_(exp.Literal.number(-1))
            flipped = exp.select(*(column(f.name, "s") for f in node.fields), exp.alias_(weight, WEIGHT))
            flipped = flipped.from_(self.full(node.left, "old").subquery("s", copy=False))
            # The step is empty when the row has not changed: then the left side need not be read.
            moved = exp.select(exp.Literal.number(1)).distinct().from_(right.subquery("c", copy=False))
            flipped = flipped.join(moved.subquery("m", copy=False), join_type="cross", copy=False)
            for table, version in (("o", "old"), ("n", "new")):
                flipped = flipped.join(
                    self.full(node.right, version).subquery(table, copy=False), join_type="cross", copy=False
                )
            terms.append(flipped.where(exp.NEQ(this=before.copy(), expression=after.copy()), copy=False))
        return operator_sql.union(terms)

    def _preserved(self, node: Join, left: exp.Select | None, right: exp.Select | None) -> list[exp.Select]:
        """Return the changes of a join that is linear in its left side: left, semi, anti, as-of."""
        terms = []
        if left is not None:
            keys = self._touched(node.left, left, node.pairs)
            terms.append(operator_sql.join(node, left, self.full(node.right, "new", keys), WEIGHT))
        if right is not None:
            own = self._touched(node.right, right, tuple((other, one, safe) for one, other, safe in node.pairs))
            other = Keys(own.step, tuple((other, safe) for _, other, safe in node.pairs), sources=own.sources)
            kept = self._restricted(node.left, "old", own)
            for version, weight in (("old", -1), ("new", 1)):
                joined = operator_sql.join(node, kept, self.full(node.right, version, other))
                terms.append(operator_sql.weighted(joined, node.fields, weight))
        return terms

    def _touched(self, node: Node, changes: exp.Select, pairs: tuple[tuple[exp.Expr, exp.Expr, bool], ...]) -> Keys:
        """Add a step with the join keys in the changes of a node, and return it as a restriction of the other side."""
        items = [exp.alias_(one.copy(), f"k{number}") for number, (one, _, _) in enumerate(pairs)]
        step = self.add(self._fresh("touched_"), exp.select(*items).distinct().from_(changes.subquery("c", copy=False)))
        sources = self._sources(node, [one for one, *_ in pairs])
        return Keys(step, tuple((other, safe) for _, other, safe in pairs), sources=sources)

    def _restricted(self, node: Node, version: str, keys: Keys) -> exp.Select:
        """Return the rows of a node that have the keys, as `full` does."""
        if self.is_taken_apart(node):
            # The columns of the step are named differently from all fields.
            names = {f"?{name}": column(name) for *_, name in keys.compared}
            rows = exp.select(*(exp.alias_(key, name, quoted=True) for name, key in names.items())).from_(
                keys.step, copy=False
            )
            on = tuple(operator_sql.same(e.copy(), column(f"?{name}"), safe) for e, safe, name in keys.compared)
            sources = dict(zip(names, keys.sources or (None,) * len(names), strict=True))
            found = self._in_turn(rows, sources, node, on, version)
            if found is not None:
                return self.driving(operator_sql.over(found, node.fields), [f.name for f in node.fields])
        return self.full(node, version, keys)

    def _unmatched_right(self, node: Join, left: exp.Select | None, right: exp.Select | None) -> list[exp.Select]:
        unmatched = Join(node.right, node.left, node.condition, ANTI)
        nulls = [exp.alias_(exp.cast(exp.null(), data_type(f.type)), f.name, quoted=True) for f in node.left.fields]
        rows = []
        for term in self._preserved(unmatched, right, left):
            names = [column(f.name) for f in node.right.fields]
            rows.append(
                exp.select(*(n.copy() for n in nulls), *names, column(WEIGHT)).from_(
                    term.subquery("s", copy=False), copy=False
                )
            )
        return rows

    def _looked_through(
        self, node: Filter | Project | Unnest | ChangeLog | Aggregate | TopN | OverWindow | Memo, below: exp.Select
    ) -> exp.Select:
        """Return the changes of an operator's input, with checks added."""
        return self._checked(node.input, below, raising(node)) if self.has_checks else below

    def _checked(self, node: Node, changes: exp.Select, parts: tuple[exp.Expr, ...]) -> exp.Select:
        """Return the changes of a node, computed once, and add a check of them for expressions that may raise."""
        if not parts:
            return changes
        if changes.find(exp.Join, exp.Group, exp.Window) is not None:
            step = self.add(self._fresh("checked_"), changes)
            changes = exp.select(*(column(f.name) for f in node.fields), column(WEIGHT)).from_(step, copy=False)
        self.checks.append(Check.of(node, changes, parts))
        return changes

    def _settled(self, node: Node) -> exp.Select | None:
        """Return the changes of a join's side, consolidated where an operator below replaces rows by equal ones."""
        changes = self.changes(node)
        if changes is None or changes_by_row(node):
            return changes
        if any(_replaces_rows(part) for part in walk(node)):
            step = self.add(self._fresh("settled_"), operator_sql.consolidated(changes, node.fields), drives_join=True)
            return exp.select(*(column(f.name) for f in node.fields), column(WEIGHT)).from_(step, copy=False)
        return self.driving(changes, [*(f.name for f in node.fields), WEIGHT])

    # Operators that replace the rows of a group or partition.

    def _kept(self, node: Stateful) -> exp.Select | None:
        """Return the changes of an operator with state. Its steps exist once, however many operators read them."""
        state = self.plan.state_of(node)
        if isinstance(node, Memo) and state.name not in self.kept:
            self.kept[state.name] = self._memo(node, state)
        if state.name not in self.kept and not isinstance(node, Memo):
            below = self.changes(node.input)
            if below is not None:
                below = self._looked_through(node, below)
                below = (
                    self._aggregate(node, state, below)
                    if isinstance(node, Aggregate)
                    else self._top_n(node, state, below)
                )
            self.kept[state.name] = below
        changes = self.kept[state.name]
        return None if changes is None else changes.copy()

    def _aggregate(self, node: Aggregate, state: State, below: exp.Select) -> exp.Select:
        merge_groups(self, node, state, below, self._may_retract(node.input))
        removed, added = replaced_groups(node, state)
        return _replaced(removed, added, node.fields)

    def _memo(self, node: Memo, state: State) -> exp.Select | None:
        """Return the changes of a memo. Changes of a temporal join's right side change nothing."""
        if isinstance(node.input, ChangeLog):
            return self._logged(node, state)
        left = self._settled(node.join.left)
        if left is None:
            return None
        left = self._checked(node.join.left, left, raising_sides(node.join).left) if self.has_checks else left
        merge_memo(self, node, state, left)
        removed, added = (
            operator_sql.over(exp.select("*").from_(f"{state.name}_{which}", copy=False), node.fields)
            for which in ("stored", "merged")
        )
        return _replaced(removed, added, node.fields)

    def _logged(self, node: Memo, state: State) -> exp.Select | None:
        """Return the changes of a stored change log, which only gains rows."""
        gained = self.changes(node.input)
        if gained is None:
            return None
        step = merge_log(self, node, state, gained)
        return operator_sql.weighted(exp.select("*").from_(step, copy=False), node.fields, 1)

    def _top_n(self, node: TopN, state: State, below: exp.Select) -> exp.Select:
        merge_first_rows(self, node, state, below, self._may_retract(node.input))
        assert node.limit is not None
        removed, added = (
            operator_sql.over(exp.select("*").from_(f"{state.name}_{which}", copy=False), node.fields)
            for which in ("stored", "merged")
        )
        if node.offset:
            last = node.offset + node.limit
            removed, added = (operator_sql.top_n(node, rows, node.offset, last) for rows in (removed, added))
        return _replaced(removed, added, node.fields)

    def _partitions(self, node: OverWindow | TopN, below: exp.Select) -> exp.Select:
        listed = operator_sql.key_items(node.partition) or [exp.alias_(exp.Literal.number(1), "k0")]
        step = self.add(self._fresh("touched_"), exp.select(*listed).distinct().from_(below.subquery("c", copy=False)))
        sources = self._sources(node.input, [*map(column, node.partition)])
        keys = Keys.of(step, node.input, node.partition, sources)
        old, new = (Rows.over_rows(node, self.full(node.input, version, keys)) for version in ("old", "new"))
        return _replaced(old, new, node.fields)

    def _may_retract(self, node: Node) -> bool:
        """Return whether any row may be removed from a node in this epoch."""
        return self.retracts or any(_replaces_rows(part) for part in walk(node))


def _with_row(condition: exp.Expr, names: set[str], table: str) -> exp.Expr:
    """Return the condition with the right side's row in `table`."""

    def qualify(part: exp.Expr) -> exp.Expr:
        if not isinstance(part, exp.Column):
            return part
        return column(part.name, table if part.name in names else "s")

    return exp.func("coalesce", condition.transform(qualify), exp.false())


def _replaced(removed: exp.Select, added: exp.Select, fields: tuple[Field, ...]) -> exp.Select:
    return operator_sql.union([operator_sql.weighted(removed, fields, -1), operator_sql.weighted(added, fields, 1)])


def _replaces_rows(node: Node) -> bool:
    """Return whether an operator removes rows even when its input only grows."""
    match node:
        case Join(kind=kind):
            return kind in (LEFT, FULL, SEMI, ANTI, DYNAMIC, AS_OF, AS_OF_LEFT)
        case Filter():
            return node.reads_now
    return isinstance(node, Aggregate | TopN | OverWindow | Memo)


def _is_inner(node: Node) -> TypeGuard[Join]:
    return isinstance(node, Join) and node.kind == INNER


def _in_order(
    node: Join, have: frozenset[str], on: tuple[exp.Expr, ...]
) -> list[tuple[Node, tuple[exp.Expr, ...]]] | None:
    """Return the relations of inner joins, each with the conditions on it and those before it, beside some fields.

    Each is compared by equality with fields before it; None if there is no such order. Filtered relations come as early
    as they can, because they leave fewer rows to look up in the others.
    """
    parts = [*_taken_apart(node)]
    relations = [part for part in parts if not _is_inner(part)]
    owners = {f.name: number for number, relation in enumerate(relations) for f in relation.fields}
    conditions = (*on, *(each for part in parts if _is_inner(part) for each in part.conjuncts))
    rest = [(each, _reads(each)) for each in conditions]
    order: dict[int, tuple[exp.Expr, ...]] = {}
    while len(order) < len(relations):
        sides = [{owners[name] for name in side} for each, _ in rest for side in _compared_with(have, each)]
        next_ones = [number for side in sides if len(side) == 1 for number in side]
        if not next_ones:
            return None
        number = min(next_ones, key=lambda number: selectivity(relations[number]))
        have |= {f.name for f in relations[number].fields}
        order[number] = tuple(each for each, names in rest if names <= have)
        rest = [(each, names) for each, names in rest if not names <= have]
    return [(relations[number], met) for number, met in order.items()]


def _taken_apart(node: Node) -> Iterator[Node]:
    """Yield inner joins and the relations that they join."""
    yield node
    if _is_inner(node):
        for below in node.inputs:
            yield from _taken_apart(below)


def _compared_with(have: frozenset[str], condition: exp.Expr) -> Iterator[set[str]]:
    """Yield the fields that an equality compares with these fields, if it compares others with them."""
    if isinstance(condition, exp.EQ | exp.NullSafeEQ):
        sides = _reads(condition.this), _reads(condition.expression)
        for own, other in (sides, sides[::-1]):
            if own and own <= have and not other & have:
                yield other


def _reads(expression: exp.Expr) -> set[str]:
    return {part.name for part in expression.find_all(exp.Column)}


def _equal_to(node: Node, conditions: Iterable[exp.Expr]) -> Iterator[tuple[exp.Expr, exp.Expr]]:
    """Yield the sides of equalities that read fields of a node alone, each with the other side."""
    own = {f.name for f in node.fields}
    for condition in conditions:
        if isinstance(condition, exp.EQ):
            sides = condition.this, condition.expression
            yield from ((side, other) for side, other in (sides, sides[::-1]) if _reads(side) <= own)


def _inputs(node: Node) -> frozenset[str]:
    return frozenset(part.input for part in walk(node) if isinstance(part, Scan))


def _source(node: Node, name: str, changed: frozenset[str]) -> Source | None:
    """Return the column that has the values of a field of the rows of a node that change with one input alone."""
    match node:
        case Scan():
            return Source(node.input, name.removeprefix(f"{node.alias}.")) if node.input in changed else None
        case Join():
            is_left = bool(_inputs(node.left) & changed)
            own, other = (node.left, node.right) if is_left else (node.right, node.left)
            if not is_left and node.kind != INNER:
                return None
            if any(f.name == name for f in own.fields):
                return _source(own, name, changed)
            if node.kind not in (INNER, LEFT):
                return None
            pairs = [(right, left, safe) if is_left else (left, right, safe) for left, right, safe in node.pairs]
            known = (_source(own, one.name, changed) if isinstance(one, exp.Column) else None for _, one, _ in pairs)
            keys = Keys(HINT, tuple((its, is_null_safe) for its, _, is_null_safe in pairs), sources=tuple(known))
            return _sources_of(other, keys).get(name)
    below = field_below(node, name)
    return _source(*below, changed) if below is not None else None


def _reduction(scan: Scan, keys: Keys) -> Reduction | None:
    """Return the reduction of a scan by the sources of keys; by that of most keys, if they have several."""
    columns: dict[str | Reduction, dict[str, str]] = {}
    for (expression, is_null_safe), source in zip(keys.parts, keys.sources or (), strict=bool(keys.sources)):
        if source is not None and not is_null_safe and isinstance(expression, exp.Column):
            columns.setdefault(source.of, {})[expression.name.removeprefix(f"{scan.alias}.")] = source.column
    if not columns:
        return None
    of, pairs = max(columns.items(), key=lambda item: len(item[1]))
    return Reduction(scan.input, tuple(pairs), of, tuple(pairs.values()))


def _sources_of(node: Node, keys: Keys) -> dict[str, Source | None]:
    """Return the sources of the fields of a node's rows that have some keys."""
    inputs = Counter(part.input for part in walk(node) if isinstance(part, Scan))
    found = {f.name: passed_on(node, f.name) for f in node.fields}
    at = {name: where for name, where in found.items() if where is not None and inputs[where[0].input] == 1}
    reductions = {}
    for scan in {scan.input: scan for scan, _ in at.values()}.values():
        own = {name: column(f"{scan.alias}.{of}") for name, (at_scan, of) in at.items() if at_scan is scan}
        below = keys.mapped(own.get(each.name) if isinstance(each, exp.Column) else None for each, _ in keys.parts)
        reductions[scan.input] = _reduction(scan, below) if below is not None else None

    def source(name: str) -> Source | None:
        scan, of = at.get(name, (None, ""))
        reduction = reductions[scan.input] if scan is not None else None
        return Source(reduction, of) if reduction is not None else None

    return {name: source(name) for name in found}
