"""Converts a plan to the operators that EXPLAIN prints: RisingWave's names and order of fields, as data."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from itertools import count

from sqlglot import exp

from sparkwave.catalog.relation_details import Sink
from sparkwave.planner.backfill.strategy import SNAPSHOT
from sparkwave.planner.explain.expressions import prints_as_value, show, show_all, show_order
from sparkwave.planner.explain.operator_tree import (
    BATCH,
    LOGICAL,
    STREAM,
    Operator,
    Text,
    exchange,
    materialize,
    show_distribution,
)
from sparkwave.planner.explain.scan_ranges import Ranges, with_ranges
from sparkwave.planner.plan.distribution import BROADCAST, moves, of_upstream, view_move
from sparkwave.planner.plan.join_types import AS_OF, AS_OF_LEFT, DYNAMIC, INNER, TEMPORAL, TEMPORAL_LEFT
from sparkwave.planner.plan.nodes import (
    COUNT,
    Aggregate,
    Call,
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
    WindowCall,
    keeps_state,
    walk,
)
from sparkwave.planner.plan.stream_plan import StreamPlan

Named = tuple[Operator, dict[str, str]]


@dataclass
class Printer:
    """Makes the operators of a plan, inputs first, together with the names of their fields in the plan.

    A field has the name of its source column, or `$expr1`, `$expr2`, … A projection that only picks columns is not
    printed where RisingWave's operators have an output list of their own, unless `keep` is set.
    """

    style: str
    verbose: bool = False
    strategy: str = SNAPSHOT
    keep: bool = False
    used: frozenset[str] | None = None  # the used fields, for a plan that no rule has pruned
    shared: Mapping[int, int] = field(default_factory=dict)  # numbers of nodes that several others read, by id
    numbers: count[int] = field(default_factory=lambda: count(1))
    made: dict[int, Operator] = field(default_factory=dict)

    def of(self, node: Node, wanted: tuple[str, ...] | None = None) -> Named:
        """Return the operator of a node, with all below it; `wanted` are the fields above a projection that picks."""
        operator, names = self._made(node, wanted)
        output = wanted if wanted is not None else self.outputs(node)
        if operator.node is node:
            shown = tuple(names.get(name, name) for name in output)
            operator = replace(operator, output=shown, key=tuple(names.get(key, key) for key in node.key))
        self.made[id(node)] = operator
        if id(node) in self.shared:
            shown_as = (("id", str(self.shared[id(node)])),)
            operator = replace(operator, name="StreamShare", fields=shown_as, children=(operator,), node=None)
        return operator, names

    def outputs(self, node: Node) -> tuple[str, ...]:
        """Return the fields with which a node is printed.

        RisingWave's streams count a group's rows last, and number constant rows only where the number is a key.
        """
        if isinstance(node, Values):
            is_key = self.style == STREAM and len(node.rows) > 1
            return (*(f.name for f in node.columns), *((node.number,) if is_key else ()))
        if not isinstance(node, Aggregate):
            return tuple(f.name for f in node.fields)
        last = (COUNT,) if self.style == STREAM or self.used is None or COUNT in self.used else ()
        return (*node.keys, *(call.name for call in node.calls if call.name != COUNT), *last)

    def _made(self, node: Node, wanted: tuple[str, ...] | None) -> Named:
        match node:
            case Scan():
                return self._scan(node, wanted)
            case Values():
                return self._values(node, wanted)
            case Filter():
                return self._filter(node, wanted)
            case Project():
                return self._project(node, wanted)
            case Unnest():
                return self._unnest(node)
            case Join():
                return self._join(node, wanted)
            case UnionAll():
                below = [self._input(node, number) for number in range(len(node.branches))]
                return self._node(node, "Union", {"all": "true"}, [o for o, _ in below]), below[0][1]
            case Aggregate():
                return self._aggregate(node)
            case TopN():
                return self._top_n(node)
            case OverWindow():
                return self._over_window(node)
            case ChangeLog():
                child, names = self._input(node)
                added = {field.name: field.name.rpartition(".")[2] for field in (node.code, node.time)}
                return self._node(node, "ChangeLog", {}, [child]), names | added
            case Memo():
                return self._input(node)

    def _node(
        self, node: Node, name: str, fields: Mapping[str, Text], children: list[Operator], *flags: str
    ) -> Operator:
        return Operator(self.style + name, tuple(fields.items()), tuple(children), flags, node)

    def _input(self, node: Node, number: int = 0) -> Named:
        """Return an input, below the exchange of its rows on the way to this node, if there is one."""
        child, names = self.of(node.inputs[number])
        move = moves(node)[number] if self.style != LOGICAL else None
        return (
            exchange(self.style, child, self.outputs(node.inputs[number]), names, move) if move is not None else child
        ), names

    # Leaves.

    def _scan(self, node: Scan, wanted: tuple[str, ...] | None) -> Named:
        table = node.relation.name
        names = {f"{node.alias}.{column}": f"{table}.{column}" for column in (*node.columns, *node.relation.key)}
        fields = wanted or tuple(f.name for f in node.fields if self.used is None or f.name in self.used)
        columns = tuple(name.removeprefix(f"{node.alias}.") for name in fields)
        shown: dict[str, Text] = {"table": table, "columns": columns}
        there = show_distribution(of_upstream(node), names)
        if self.verbose:
            shown["columns"] = tuple(f"{table}.{column}" for column in columns)
            if self.style == BATCH:
                shown["distribution"] = there if set(node.key) <= set(fields) else "SomeShard"
        if self.style == STREAM and (self.verbose or self.strategy != SNAPSHOT):
            key = tuple(f"{table}.{column}" for column in node.relation.key)
            shown |= {"stream_scan_type": self.strategy, "stream_key": key, "pk": node.relation.key, "dist": there}
        if self.style == STREAM and self.verbose:
            indices = tuple(str(node.columns.index(column)) for column in columns)
            shown |= {"upstream_columns": node.columns, "output_indices": indices}
        return self._node(node, "TableScan" if self.style == STREAM else "Scan", shown, []), names

    def _values(self, node: Values, wanted: tuple[str, ...] | None) -> Named:
        rows = [
            {f.name: show(value, {}) for f, value in zip(node.columns, row, strict=True)}
            | {node.number: f"{number}:Int32"}
            for number, row in enumerate(node.rows, 1)
        ]
        chosen = wanted if wanted is not None else self.outputs(node)
        shown = tuple(f"[{', '.join(row[name] for name in chosen)}]" for row in rows)
        return self._node(node, "Values", {"rows": shown}, []), {f.name: f.name for f in node.fields}

    # Rows in, rows out.

    def _filter(self, node: Filter, wanted: tuple[str, ...] | None) -> Named:
        limited = self._ranges(node)
        if limited is not None:
            ranges, left = limited
            scan, names = self.of(node.input, wanted if left is node.input else None)
            scan = replace(scan, fields=(*scan.fields[:2], ("scan_ranges", ranges), *scan.fields[2:]))
            if not isinstance(left, Filter):
                return scan, names
            return self._node(node, "Filter", {"predicate": show_all(left.predicate, names)}, [scan]), names
        child, names = self._input(node)
        shown: dict[str, Text] = {"predicate": show_all(node.predicate, names)}
        if self.style != STREAM or not node.reads_now:
            return self._node(node, "Filter", shown, [child]), names
        if self.verbose:
            shown["output"] = tuple(names.get(f.name, f.name) for f in node.fields)
        now = Operator("StreamNow", output=("now",))
        times = Operator("StreamExchange", (("dist", BROADCAST),), (now,), output=("now",), positions=(BROADCAST,))
        return self._node(node, "DynamicFilter", shown, [child, times]), names

    def _ranges(self, node: Node) -> Ranges | None:
        """Return the ranges of a key that a filter over a scan reads, and what is left of both; None for any other."""
        if self.style != BATCH or not isinstance(node, Filter) or not isinstance(node.input, Scan):
            return None
        return with_ranges(node, f"{node.input.relation.name}." if self.verbose else "")

    def _project(self, node: Project, wanted: tuple[str, ...] | None) -> Named:
        items = {item.name: item for item in node.items}
        chosen = [items[name] for name in wanted] if wanted is not None else list(node.items)
        sources = [item.source for item in chosen if item.source is not None]
        if len(sources) == len(chosen) == len(set(sources)) and not self.keep:
            limited = self._ranges(node.input)
            absorbs = isinstance(node.input, Scan | Values | Join | Project) or (
                limited is not None and isinstance(limited[1], Scan)
            )
            if absorbs or tuple(sources) == self.outputs(node.input):
                child, names = self.of(node.input, tuple(sources) if absorbs else None)
                # A field that is not picked may still be needed: a key that only distributes.
                return child, {i.name: names.get(i.source, i.source) for i in node.items if i.source is not None}
        child, names = self._input(node)
        shown, outputs = [], {}
        for item in chosen:
            text = show(item.expression, names)
            if not (item.source or prints_as_value(item.expression)):
                outputs[item.name] = f"$expr{next(self.numbers)}"
                text = f"{text} as {outputs[item.name]}"
            else:
                outputs[item.name] = text
            shown.append(text)
        return self._node(node, "Project", {"exprs": tuple(shown)}, [child]), outputs

    def _unnest(self, node: Unnest) -> Named:
        child, names = self._input(node)
        places = {name: f"${number}" for number, name in enumerate(self.outputs(node.input))}
        function = "" if isinstance(node.array, exp.GenerateSeries) else "Unnest"

        def call(over: Mapping[str, str]) -> str:
            array = show(node.array, over)
            return f"{function}({array})" if function else array

        added = {node.element.name: call(names), node.position: "projected_row_id"}
        shown = {"select_list": (*places.values(), call(places))}
        return self._node(node, "ProjectSet", shown, [child]), names | added

    # Joins.

    def _join(self, node: Join, wanted: tuple[str, ...] | None) -> Named:
        left, names = self._input(node, 0)
        right, right_names = self._input(node, 1)
        names = names | right_names
        is_temporal = node.is_temporal
        is_dynamic = node.kind == DYNAMIC
        shown: dict[str, Text] = {"type": INNER if is_dynamic else node.kind.removeprefix("Temporal")}
        if is_temporal:
            shown["append_only"] = str(node.left.grows).lower()
        if self.style == LOGICAL:
            shown["on"] = show_all(node.condition, names)
        else:
            shown["predicate"] = show_all(_equalities_first(node), names, () if is_dynamic else _HASHED)
        if is_temporal:
            shown["nested_loop"] = "false"
        if self.verbose:
            chosen = wanted if wanted is not None else self.outputs(node)
            is_all = chosen == self.outputs(node) and not is_dynamic
            shown["output"] = "all" if is_all else tuple(names.get(name, name) for name in chosen)
        name = _join_name(self.style, node)
        if name == "DynamicFilter":
            del shown["type"]
        flags = ("append_only",) if self.style == STREAM and not is_temporal and node.grows else ()
        return self._node(node, name, shown, [left, right], *flags), names

    # Groups and partitions.

    def _flags(self, node: Node) -> tuple[str, ...]:
        return ("append_only",) if self.style == STREAM and node.grows else ()

    def _aggregate(self, node: Aggregate) -> Named:
        child, names = self._input(node)
        calls = {call.name: _call(call, names) for call in node.calls}
        shown: dict[str, Text] = {"group_key": tuple(names.get(key, key) for key in node.keys)} if node.keys else {}
        shown["aggs"] = tuple(calls[name] for name in self.outputs(node) if name in calls)
        name = "Agg" if self.style == LOGICAL else "HashAgg" if node.keys else "SimpleAgg"
        groups = {key: names.get(key, key) for key in node.keys}
        return self._node(node, name, shown, [child], *self._flags(node.input)), groups | calls

    def _top_n(self, node: TopN) -> Named:
        child, names = self._input(node)
        shown: dict[str, Text] = {"order": show_order(node.order, names)}
        shown |= {"limit": "ALL" if node.limit is None else str(node.limit), "offset": str(node.offset)}
        if node.partition:
            shown["group_key"] = tuple(names.get(key, key) for key in node.partition)
        if node.place is not None:
            shown["place"] = "row_number"
            names = names | {node.place.name: "row_number"}
        name = "GroupTopN" if node.partition and self.style != LOGICAL else "TopN"
        if self.style != STREAM and not node.order and not node.partition:
            name = "Limit"
            del shown["order"]
        return self._node(node, name, shown, [child], *self._flags(node.input)), names

    def _over_window(self, node: OverWindow) -> Named:
        child, names = self._input(node)
        calls = tuple(_window(call, node.partition, names) for call in node.calls)
        added = {call.name: show(call.expression, names).partition("(")[0] for call in node.calls}
        return self._node(node, "OverWindow", {"window_functions": calls}, [child]), names | added


def view_operators(plan: StreamPlan, verbose: bool = False) -> Operator:
    """Return the operators that EXPLAIN CREATE prints for a streaming job."""
    child, names = Printer(STREAM, verbose, plan.strategy, shared=_shared(plan)).of(plan.root)
    move = view_move(plan.root)
    if move is not None:
        child = exchange(STREAM, child, tuple(f.name for f in plan.root.fields), names, move)
    columns = tuple(column.name + ("(hidden)" if column.is_hidden else "") for column in plan.columns)
    if isinstance(plan.details, Sink):
        return Operator("StreamSink", (("type", plan.details.type), ("columns", columns)), (child,))
    pk = tuple(dict.fromkeys((*(order.name for order in plan.clustering), *plan.key)))
    return materialize(columns, plan.key, "NoCheck", child, pk)


def _shared(plan: StreamPlan) -> dict[int, int]:
    """Return the operators with state that several others read, numbered from 1, by id."""
    nodes = {id(node): node for node in walk(plan.root)}
    readers = Counter(id(read) for node in nodes.values() for read in node.inputs if keeps_state(read))
    return {id_: number for number, id_ in enumerate((i for i, times in readers.items() if times > 1), 1)}


# The conditions by which a join hashes are printed without parentheses.
_HASHED = (exp.EQ, exp.NullSafeEQ)


def _join_name(style: str, node: Join) -> str:
    if style == LOGICAL:
        return "Join"
    if style == BATCH:
        return "HashJoin" if node.pairs else "NestedLoopJoin"
    return _JOIN_NAMES.get(node.kind, "HashJoin")


_JOIN_NAMES = {
    DYNAMIC: "DynamicFilter",
    **dict.fromkeys((TEMPORAL, TEMPORAL_LEFT), "TemporalJoin"),
    **dict.fromkeys((AS_OF, AS_OF_LEFT), "AsOfJoin"),
}


def _equalities_first(node: Join) -> exp.Expr | None:
    """Return the condition with the equalities by which the join hashes first."""
    is_pair = {id(part) for part in node.conjuncts if Join(node.left, node.right, part).pairs}
    parts = sorted(node.conjuncts, key=lambda part: id(part) not in is_pair)
    # Each part is copied, because building an AND would give the plan's own expressions another parent.
    return exp.and_(*parts) if parts else None


def _call(call: Call, names: Mapping[str, str]) -> str:
    if call.expression is not None:
        return show(call.expression, names)
    if call.argument is None:
        return "count"
    return f"{call.function}({names.get(call.argument, call.argument)})"


_RANKING = (exp.RowNumber, exp.Rank, exp.DenseRank)
_POSITIONS = (exp.Lag, exp.Lead, exp.Ntile, exp.PercentRank, exp.CumeDist)  # without a frame
_TO_HERE = "BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW"


def _window(call: WindowCall, partition: tuple[str, ...], names: Mapping[str, str]) -> str:
    parts = []
    if partition:
        parts.append(f"PARTITION BY {', '.join(names.get(name, name) for name in partition)}")
    if call.order:
        parts.append(f"ORDER BY {', '.join(show_order(call.order, names))}")
    if call.frame is not None:
        parts.append(call.frame.sql(dialect="postgres"))
    elif isinstance(call.expression, _RANKING):
        parts.append(f"ROWS {_TO_HERE}")
    elif not isinstance(call.expression, _POSITIONS):
        parts.append(f"RANGE {_TO_HERE}" if call.order else "ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING")
    shown = show(call.expression, names)
    return f"{shown} OVER({' '.join(parts)})"
