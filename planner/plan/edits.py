"""Fills a view with another query from the rows that the view has: ALTER MATERIALIZED VIEW … AS.

The old and the new plan are compared from the top down, as in Goldstein and Larson, "Optimizing Queries Using
Materialized Views" (SIGMOD 2001): rows of a part of the new plan that the old view or its states store are read from
there, with a filter for rows that the new query leaves out, and together with the rows that only the new query has.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from sqlglot import exp

from sparkwave.catalog.model import Column, Relation
from sparkwave.catalog.types import INTEGER, Type
from sparkwave.planner.bind.binder import data_type
from sparkwave.planner.build.builder import columns_in, names_of
from sparkwave.planner.plan.implication import implies, is_not_true
from sparkwave.planner.plan.join_types import ANTI, AS_OF, AS_OF_LEFT, DYNAMIC, INNER, LEFT, SEMI
from sparkwave.planner.plan.nodes import (
    BRANCH,
    Aggregate,
    Filter,
    Item,
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
    conjuncts,
    keeps_state,
    walk,
    with_inputs,
)
from sparkwave.planner.plan.outputs import fields_read
from sparkwave.planner.plan.rules import substituted
from sparkwave.planner.plan.stream_plan import State, StreamPlan

# The alias and the first part of the input's name of rows that the old view stores.
STORED = "stored"


def edit(old: StreamPlan, new: StreamPlan, view: Relation) -> StreamPlan | None:
    """Return a plan that fills `new` from the rows of `view`, which `old` has made. None where no row is of use.

    The plan has the states and the fields of `new`. Its inputs with names that begin with STORED are the view and its
    internal tables; they and all other inputs have to be read as of the epoch that the view shows.
    """
    is_apart = old.planner != new.planner or any(isinstance(node, Memo) for node in walk(new.root))
    if is_apart or old.remembers or new.remembers:
        return None
    editor = _Editor(tuple(_stored(old, view)), {state.node for state in new.states})
    root = editor.root(new)
    states = tuple(editor.state(state) for state in new.states)
    return replace(new, root=root, states=states) if editor.reads else None


def stored_inputs(plan: StreamPlan) -> tuple[Scan, ...]:
    """Return the scans of a plan by `edit` that read what the old view stores."""
    return tuple(scan for scan in plan.scans if scan.alias == STORED)


@dataclass(frozen=True)
class _Stored:
    """Rows of a node of the old plan in a table of the lake.

    `columns` has the table's column of each field that is stored, `computed` that of expressions over the fields.
    `branch` is the condition that picks the rows out of those of a union.
    """

    node: Node
    relation: Relation
    columns: Mapping[str, str]
    computed: tuple[tuple[exp.Expr, Type, str], ...] = ()
    branch: exp.Expr | None = None

    def rewritten(self, expression: exp.Expr) -> exp.Expr | None:
        """Return an expression over the node's fields as one over the table's columns; None if one is not there."""
        if not columns_in(expression) <= self.columns.keys():
            return None
        return _renamed(expression, {field: f"{STORED}.{name}" for field, name in self.columns.items()})

    def item(self, item: Item) -> Item | None:
        """Rewrite an item as `rewritten` does; the table may have its very expression."""
        for expression, type_, name in self.computed:
            if expression == item.expression and type_ == item.type:
                return replace(item, expression=column(f"{STORED}.{name}"))
        rewritten = self.rewritten(item.expression)
        return None if rewritten is None else replace(item, expression=rewritten)


def _renamed(expression: exp.Expr, names: Mapping[str, str]) -> exp.Expr:
    """Return an expression over fields with other names; the columns keep their types."""
    expression = expression.copy()
    for part in list(expression.find_all(exp.Column)):
        part.set("this", exp.to_identifier(names[part.name], quoted=True))
    return expression


def _stored(old: StreamPlan, view: Relation) -> Iterator[_Stored]:
    """Yield what the tables of a view have: the rows of its query or of the query's branches, and of its states."""
    by_field = {each.lake_name: each for each in view.columns}
    items = [item for item in old.root.items if _is_as(by_field.get(item.name), item.type)]
    names = {item.name: by_field[item.name].name for item in items}
    flat, core = _flat(old.root)
    yield _Stored(core, view, *_columns([item for item in flat if item.name in names], names))
    if isinstance(core, UnionAll):
        passed = {f: names[n] for f, n in old.root.passed_on.items() if n in names}
        for branch in core.branches:
            of_branch, below = _flat(branch)
            number = next((item.expression for item in of_branch if item.name == BRANCH), None)
            if number is not None and BRANCH in passed:
                is_own = exp.EQ(this=column(f"{STORED}.{passed[BRANCH]}"), expression=number)
                yield _Stored(below, view, *_columns([i for i in of_branch if i.name in passed], passed), is_own)
    for state in old.states:
        if not state.in_view:
            fields = tuple(Column(f.name, f.type) for f in state.node.fields)
            name = old.internal_name(view.definition_id, state.name)
            relation = replace(view, name=name, columns=fields, key=(), made_as=replace(view.lake_table, name=name))
            yield _Stored(_stored_node(state.node), relation, {each.name: each.name for each in fields})


def _stored_node(node: Stateful) -> Node:
    """Return the node whose rows the state of an operator has."""
    if isinstance(node, TopN) and node.limit is not None:
        return replace(node, limit=node.offset + node.limit, offset=0)
    return node


def _is_as(stored: Column | None, type_: Type) -> bool:
    return stored is not None and stored.type == type_


def _columns(
    items: Iterable[Item], names: Mapping[str, str]
) -> tuple[dict[str, str], tuple[tuple[exp.Expr, Type, str], ...]]:
    """Return the stored column of each field that items pass on, and the computed items."""
    items = tuple(items)
    passed = {item.source: names[item.name] for item in reversed(items) if item.source is not None}
    return passed, tuple((item.expression, item.type, names[item.name]) for item in items if item.source is None)


def _flat(node: Node) -> tuple[tuple[Item, ...], Node]:
    """Return a node as items over the node below all of its projections."""
    if not isinstance(node, Project):
        return _passed_on(node), node
    if not isinstance(node.input, Project):
        return node.items, node.input
    below, core = _flat(node.input)
    inner = {item.name: item for item in below}
    return tuple(replace(item, expression=substituted(item, inner)) for item in node.items), core


def _passed_on(node: Node) -> tuple[Item, ...]:
    return tuple(Item(f.name, column(f.name), f.type) for f in node.fields)


@dataclass
class _Editor:
    """Replaces parts of a new plan by stored rows. `states` are its operators with state."""

    stored: Sequence[_Stored]
    states: set[Stateful]
    reads: int = 0
    _made: dict[Node, Node] = field(default_factory=dict)
    _sources: dict[Node, Node] = field(default_factory=dict)

    def root(self, new: StreamPlan) -> Project:
        if not any(state.in_view for state in new.states):
            rows = self._read(new.root)
            if rows is not None:
                return rows
        return replace(new.root, input=self._edited(new.root.input, is_top=True))

    def state(self, state: State) -> State:
        node = self._edited(state.node)
        assert keeps_state(node)
        return replace(state, node=node, source=self._sources.get(state.node))

    def _edited(self, node: Node, is_top: bool = False) -> Node:
        if node not in self._made:
            self._made[node] = self._changed(node, is_top)
        return self._made[node]

    def _changed(self, node: Node, is_top: bool) -> Node:
        if keeps_state(node) and node in self.states:
            return self._with_state(node)
        # Rows of a table are read from the table: the view has no fewer.
        if is_top or any(not isinstance(part, Scan | Project | Values) for part in walk(node)):
            rows = self._read(node)
            if rows is not None:
                return rows
        is_union = is_top and isinstance(node, UnionAll)
        return with_inputs(node, tuple(self._edited(child, is_union) for child in node.inputs))

    def _with_state(self, node: Stateful) -> Node:
        """Return an operator with state, whose rows or first rows may be stored."""
        if isinstance(node, TopN):
            for stored in self.stored:
                if isinstance(stored.node, TopN) and _has_first_rows(stored.node, node):
                    same = replace(node, limit=stored.node.limit, offset=0)
                    rows = self._rows(_passed_on(node.input), same, stored, may_add=True)
                    if rows is not None:
                        return replace(node, input=rows)
        elif (rows := self._read(node, may_add=False)) is not None:  # what is to be added would be rows of the node
            self._sources[node] = rows
            return replace(node, input=_without_rows(node.input))
        elif isinstance(node, Aggregate) and (further := self._with_further_calls(node)) is not None:
            return further
        return with_inputs(node, tuple(self._edited(child) for child in node.inputs))

    def _with_further_calls(self, node: Aggregate) -> Aggregate | None:
        """Return an aggregate of stored groups that have a part of its calls; None where that saves no column.

        Its input has only what the other calls read.
        """
        for stored in self.stored:
            if not isinstance(stored.node, Aggregate):
                continue
            given = tuple(call for call in node.calls if call in stored.node.calls and call.name in stored.columns)
            computed = replace(node, calls=tuple(call for call in node.calls if call not in given))
            below = _narrowed(node.input, fields_read(computed, set()))
            if _columns_read(below) >= _columns_read(node.input):
                continue
            part = replace(node, calls=given)
            rows = self._rows(_passed_on(part), part, stored, may_add=False) if given else None
            if rows is not None:
                self._sources[node] = rows
                return replace(node, input=_with_nulls(self._edited(below), node.input))
        return None

    def _with_states(self, node: Node) -> Node:
        """Return a node over the edited operators with state."""
        if node in self.states:
            return self._edited(node)
        return with_inputs(node, tuple(map(self._with_states, node.inputs)))

    def _read(self, node: Node, may_add: bool = True) -> Project | None:
        """Return the rows of a node as stored, maybe with others; None where they are not."""
        items, core = _flat(node)
        found = (self._rows(items, core, stored, may_add) for stored in self.stored)
        return next((rows for rows in found if rows is not None), None)

    def _rows(self, items: Sequence[Item], node: Node, stored: _Stored, may_add: bool) -> Project | None:
        """Return items over the rows of a node as they are stored; None where they are not."""
        match = _match(node, stored.node)
        if match is None or (match.added is not None and not may_add):
            return None
        kept = [found for part in match.kept if (found := stored.rewritten(part)) is not None]
        own = tuple(picked for item in items if (picked := stored.item(item)) is not None)
        if len(kept) < len(match.kept) or len(own) < len(items):
            return None
        conditions = kept if stored.branch is None else [stored.branch, *kept]
        read = [name for part in (*conditions, *(i.expression for i in own)) for name in sorted(columns_in(part))]
        names = tuple(dict.fromkeys(name.removeprefix(f"{STORED}.") for name in read))
        scan = Scan(f"{STORED}{self.reads}", stored.relation, STORED, names or (stored.relation.columns[0].name,))
        self.reads += 1
        rows = Project(Filter(scan, exp.and_(*conditions, copy=False)) if conditions else scan, own)
        if match.added is None:
            return rows
        both = UnionAll((rows, Project(self._with_states(match.added), tuple(items))), len(own))
        return Project(both, _passed_on(rows))


def _has_first_rows(old: TopN, new: TopN) -> bool:
    """Return whether stored first rows are enough for the state of the new operator."""
    if old.limit is None or old.offset or new.limit is None:
        return False
    return new.offset + new.limit <= old.limit


def _without_rows(node: Node) -> Node:
    """Return a node with the same fields that reads nothing, below an operator whose rows are read elsewhere."""
    nothing = Values(((),), (), "_number")
    items = (Item(f.name, exp.cast(exp.null(), data_type(f.type)), f.type) for f in node.fields)
    return Project(nothing, (*items, Item("_number", column("_number"), INTEGER)))


def _with_nulls(node: Node, other: Node) -> Node:
    """Return a node with the fields of another one; those that it lacks are NULL."""
    names = names_of(node)
    fields = ((f, column(f.name) if f.name in names else exp.cast(exp.null(), data_type(f.type))) for f in other.fields)
    return Project(node, tuple(Item(f.name, value, f.type) for f, value in fields))


def _narrowed(node: Node, names: set[str]) -> Node:
    """Return a node with the same rows and the fields of these names, which reads less where it can."""
    match node:
        case Scan():
            sent = tuple(n for n in node.output if f"{node.alias}.{n}" in names) or node.output[:1]
            return replace(node, columns=sent, sent_on=sent)
        case Project():
            node = replace(node, items=tuple(item for item in node.items if item.name in names) or node.items[:1])
        case Filter() | Unnest() | Join():
            pass
        case _:
            return node
    below = fields_read(node, names)
    return with_inputs(node, tuple(_narrowed(child, below) for child in node.inputs))


def _columns_read(node: Node) -> int:
    return sum(len(scan.output) for scan in walk(node) if isinstance(scan, Scan))


@dataclass(frozen=True)
class _Match:
    """How a node of the new plan follows from one of the old plan.

    Its rows are those of the old node for which `kept`, conditions over the old node's fields, is true, and those of
    `added`.
    """

    kept: tuple[exp.Expr, ...] = ()
    added: Node | None = None

    @property
    def is_same(self) -> bool:
        return not self.kept and self.added is None


def _match(new: Node, old: Node) -> _Match | None:
    """Return how the rows of a new node follow from those of an old one, with fields of the same names; or None."""
    if isinstance(new, Filter) or isinstance(old, Filter):
        return _match_filters(new, old)
    match new, old:
        case Scan(), Scan():
            return _Match() if _are_same_rows(new, old) else None
        case Values(), Values():
            return _Match() if new == old else None
        case Project(), Project():
            return _match_projects(new, old)
        case Unnest(), Unnest():
            is_same = (new.array, new.element, new.position) == (old.array, old.element, old.position)
            below = _match(new.input, old.input) if is_same else None
            return below and replace(below, added=below.added and replace(new, input=below.added))
        case Join(), Join():
            return _match_joins(new, old)
        case UnionAll(), UnionAll():
            is_same = (new.width, new.branch_key, len(new.branches)) == (old.width, old.branch_key, len(old.branches))
            return _Match() if is_same and all(map(_are_same, new.branches, old.branches)) else None
        case Aggregate(), Aggregate():
            is_same = new.keys == old.keys and set(new.calls) <= set(old.calls)
            return _match_groups(new, old, new.keys) if is_same else None
        case TopN(), TopN():
            is_same = replace(new, input=old.input) == old and new.key == old.key
            return _match_groups(new, old, new.partition) if is_same else None
        case OverWindow(), OverWindow():
            is_same = new.partition == old.partition and new.key == old.key and set(new.calls) <= set(old.calls)
            return _match_groups(new, old, new.partition) if is_same else None
    return None


def _are_same(new: Node, old: Node) -> bool:
    match = _match(new, old)
    return match is not None and match.is_same


def _are_same_rows(new: Scan, old: Scan) -> bool:
    """Return whether two scans read the same relation, under the same names as far as both read a column."""
    if (new.relation.id, new.alias) != (old.relation.id, old.alias):
        return False
    common = [name for name in new.columns if name in old.columns]
    same = all(_read_as(new.relation, name) == _read_as(old.relation, name) for name in common)
    return same and new.relation.key == old.relation.key


def _read_as(relation: Relation, name: str) -> object:
    found = relation.column(name)
    return found and (found.lake_name, found.type)


def _match_filters(new: Node, old: Node) -> _Match | None:
    of_new, new_core = _split(new)
    of_old, old_core = _split(old)
    below = _match(new_core, old_core)
    if below is None:
        return None
    gained = tuple(part for part in of_new if not any(implies(known, part) for known in of_old))
    lost = [part for part in of_old if not any(implies(known, part) for known in of_new)]
    kept = (*below.kept, *gained)
    if not lost:
        return _Match(kept, _filtered(below.added, of_new))
    wide = _widened(new_core, set().union(*map(columns_in, lost)) - names_of(new_core))
    if below.added is not None or wide is None:
        return None
    return _Match(kept, _filtered(wide, [*of_new, is_not_true(lost, of_new)]))


def _widened(node: Node, names: set[str]) -> Node | None:
    """Return a node with further fields, columns of tables that it scans; None where it cannot have them."""
    if not names:
        return node
    match node:
        case Scan():
            known = {f"{node.alias}.{each.name}": each.name for each in node.relation.columns}
            if not names <= known.keys():
                return None
            more = tuple(known[name] for name in sorted(names))
            columns = tuple(dict.fromkeys((*node.columns, *more)))
            return replace(node, input=f"{node.input}_wide", columns=columns, sent_on=(*node.output, *more))
        case Filter():
            below = _widened(node.input, names)
            return below and replace(node, input=below)
        case Project():
            below = _widened(node.input, names - names_of(node.input))
            if below is None or names & names_of(node):
                return None
            types = {field.name: field.type for field in below.fields}
            return Project(below, (*node.items, *(Item(name, column(name), types[name]) for name in sorted(names))))
        case Join() if node.kind == INNER:
            if (left := _widened(node.left, names)) is not None:
                return replace(node, left=left)
            right = _widened(node.right, names)
            return right and replace(node, right=right)
    return None


def _split(node: Node) -> tuple[list[exp.Expr], Node]:
    """Return the conditions of the filters at the top of a node, and the node below."""
    found: list[exp.Expr] = []
    while isinstance(node, Filter):
        found += conjuncts(node.predicate)
        node = node.input
    return found, node


def _filtered(node: Node | None, parts: Sequence[exp.Expr]) -> Node | None:
    return node and (Filter(node, exp.and_(*(part.copy() for part in parts), copy=False)) if parts else node)


def _match_projects(new: Project, old: Project) -> _Match | None:
    items = {item.name: item for item in old.items}
    below = _match(new.input, old.input)
    if below is None or any(items.get(item.name, item) != item for item in new.items):
        return None
    if any(not columns_in(part) <= old.passed_on.keys() for part in below.kept):
        return None
    kept = tuple(_renamed(part, old.passed_on) for part in below.kept)
    return _Match(kept, below.added and replace(new, input=below.added))


def _match_joins(new: Join, old: Join) -> _Match | None:
    """Match joins that are linear in their left side, and inner joins, which are in both."""
    if (new.kind, new.marker) != (old.kind, old.marker) or set(new.conjuncts) != set(old.conjuncts):
        return None
    left, right = _match(new.left, old.left), _match(new.right, old.right)
    if left is None or right is None or (left.added is not None and right.added is not None):
        return None
    if new.kind != INNER and not (right.is_same and (left.is_same or new.kind in _OF_LEFT_ROWS)):
        return None
    added = None
    if left.added is not None:
        added = replace(new, left=left.added)
    elif right.added is not None:
        added = replace(new, right=right.added)
    return _Match(left.kept + right.kept, added)


_OF_LEFT_ROWS = (LEFT, SEMI, ANTI, DYNAMIC, AS_OF, AS_OF_LEFT)


def _match_groups(
    new: Aggregate | TopN | OverWindow, old: Aggregate | TopN | OverWindow, names: Sequence[str]
) -> _Match | None:
    """Match operators over groups of rows: a condition may leave out whole groups only."""
    below = _match(new.input, old.input)
    if below is None or below.added is not None or any(not columns_in(part) <= set(names) for part in below.kept):
        return None
    return below if all(map(columns_in, below.kept)) else None
