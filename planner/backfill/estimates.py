"""Estimates the work of a backfill before it runs: the rows that each operator takes and returns.

Numbers of rows follow the textbook: a join has |L| * |R| / max(distinct keys of L, of R) rows, a condition over
several inputs keeps a third. What can be counted is counted: the executor answers how many rows a *chain* (filters,
projections and unnests over one scan) has, and how many distinct values of some expressions.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import lru_cache, reduce
from operator import mul

from sqlglot import exp

from sparkwave.catalog.types import Type
from sparkwave.planner.delta.full import Rows
from sparkwave.planner.functions.emit import Sql, to_sql
from sparkwave.planner.plan.join_types import ANTI, AS_OF, AS_OF_LEFT, DYNAMIC, FULL, LEFT, SEMI, TEMPORAL_LEFT
from sparkwave.planner.plan.nodes import (
    Aggregate,
    Field,
    Filter,
    Join,
    Node,
    OverWindow,
    Project,
    Scan,
    TopN,
    UnionAll,
    Unnest,
    Values,
    conjuncts,
    keeps_state,
    walk,
)
from sparkwave.planner.plan.stream_plan import State, StreamPlan

# The part of the rows for which a condition holds that cannot be counted, and the elements of such an array.
_KEPT, _ELEMENTS = 1 / 3, 3.0
# The distinct values of an expression that cannot be counted are this part of the rows.
_DISTINCT = 0.1
# Bytes of a value in memory, and of one in a Parquet file that no column of an input tells about.
_TEXT, _NUMBER, _STORED_TEXT, _STORED_NUMBER = 24.0, 8.0, 12.0, 4.0
# Bytes of an entry of a hash table besides its values.
_ENTRY = 24.0
_MAPS = (Filter, Project, Unnest)

# Counts the distinct values of expressions over the rows of a chain together.
Distinct = Callable[["Chain", tuple[str, ...]], float]


@dataclass(frozen=True)
class InputSize:
    """What a backfill reads of an input: `rows` in all, and after files were left out that no row can come from.

    Bytes are those of the columns in Parquet files; `column_bytes` are bytes of a row by column.
    """

    rows: int
    read_rows: int
    read_bytes: int
    files: int
    read_files: int
    column_bytes: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class Chain:
    """Filters, projections and unnests over one scan. `query` is SQL of its rows over the relation `<input>_new`."""

    scan: Scan
    node: Node
    query: Sql

    @property
    def is_filtered(self) -> bool:
        """Whether it may have other rows than the scan."""
        return any(isinstance(node, Filter | Unnest) for node in walk(self.node))


@dataclass(frozen=True)
class Bound:
    """A comparison of a scan's column with a constant, `column operator constant`, that each row has to pass."""

    column: str
    operator: str
    constant: str
    type: Type


@dataclass(frozen=True)
class Estimate:
    """The work of a backfill in rows and bytes, all operators added up.

    `scans` and `operators` are those of the plan. `computed` counts values of expressions, and `matched` those of calls
    that take texts apart; `built` and `probed` are rows of the sides of joins, `joined` their results; `grouped` rows
    go into `groups`; `sorted` are rows of windows and of first rows. `memory` is the bytes of hash tables and sorted
    rows at a time.
    """

    scans: float = 0.0
    operators: float = 0.0
    read_rows: float = 0.0
    read_bytes: float = 0.0
    read_values: float = 0.0
    computed: float = 0.0
    matched: float = 0.0
    built: float = 0.0
    probed: float = 0.0
    joined: float = 0.0
    grouped: float = 0.0
    groups: float = 0.0
    sorted: float = 0.0
    written_rows: float = 0.0
    written_values: float = 0.0
    written_bytes: float = 0.0
    memory: float = 0.0

    def dump(self) -> dict[str, float]:
        """Return the numbers by name."""
        return {each.name: round(getattr(self, each.name), 1) for each in fields(self)}

    @staticmethod
    def load(numbers: Mapping[str, float]) -> Estimate:
        """Return the work of `dump`, maybe of another version; numbers it does not have are 0."""
        return Estimate(**{each.name: float(numbers.get(each.name, 0.0)) for each in fields(Estimate)})


def bounds(plan: StreamPlan, input_name: str) -> tuple[Bound, ...]:
    """Return the comparisons that all rows of an input have to pass which the fill of a view uses."""
    for node in plan.nodes:
        if isinstance(node, Filter) and isinstance(node.input, Scan) and node.input.input == input_name:
            scan = node.input
            types = {f.name: f.type for f in scan.fields}
            found = (_bound(part, scan.alias, types) for part in conjuncts(node.predicate))
            return tuple(bound for each in found for bound in each)
    return ()


_OPERATORS: dict[type[exp.Expr], tuple[str, str]] = {
    exp.EQ: ("=", "="),
    exp.LT: ("<", ">"),
    exp.LTE: ("<=", ">="),
    exp.GT: (">", "<"),
    exp.GTE: (">=", "<="),
}


def _bound(part: exp.Expr, alias: str, types: Mapping[str, Type]) -> tuple[Bound, ...]:
    part = part.unnest()
    if isinstance(part, exp.Between) and not part.args.get("symmetric"):
        pairs = [(part.this, ">=", part.args["low"]), (part.this, "<=", part.args["high"])]
    elif type(part) in _OPERATORS:
        here, there = _OPERATORS[type(part)]
        pairs = [(part.this, here, part.expression), (part.expression, there, part.this)]
    else:
        return ()
    return tuple(
        Bound(one.name.removeprefix(f"{alias}."), operator, to_sql(other), types[one.name])
        for one, operator, other in ((left.unnest(), operator, right) for left, operator, right in pairs)
        if isinstance(one, exp.Column) and one.name in types and _has_only_constants(other)
    )


def _has_only_constants(tree: exp.Expr) -> bool:
    allowed = (exp.Literal, exp.Cast, exp.DataType, exp.DataTypeParam, exp.Neg, exp.Paren, exp.Interval, exp.Var)
    return all(isinstance(part, (*allowed, exp.Add, exp.Sub)) for part in tree.walk())


@lru_cache(maxsize=16)  # an estimate asks for them twice
def _chains(plan: StreamPlan) -> dict[Node, Chain]:
    return {}


def questions(plan: StreamPlan, inputs: Mapping[str, InputSize]) -> dict[Chain, list[tuple[str, ...]]]:
    """Return the chains whose rows, and the expressions whose distinct values, an estimate needs to know."""
    asked: dict[Chain, list[tuple[str, ...]]] = {}

    def note(chain: Chain, keys: tuple[str, ...]) -> float:
        found = asked.setdefault(chain, [])
        if keys not in found:
            found.append(keys)
        return 1.0

    def counted(chain: Chain) -> float:
        if chain.is_filtered:
            asked.setdefault(chain, [])
        return float(inputs[chain.scan.input].rows)

    _Estimator(plan, inputs, counted, note).work()
    return asked


def estimate(
    plan: StreamPlan, inputs: Mapping[str, InputSize], rows: Callable[[Chain], float], distinct: Distinct
) -> Estimate:
    """Return the work of filling a view, with the answers to `questions`."""
    return _Estimator(plan, inputs, rows, distinct).work()


@dataclass(frozen=True)
class _Size:
    """A node's number of rows. `origins` has, for a field, the chain and the SQL over it from which its values are."""

    rows: float
    origins: Mapping[str, tuple[Chain, exp.Expr]]


class _Estimator:
    """Goes over a plan, inputs first, and adds up the work."""

    def __init__(
        self,
        plan: StreamPlan,
        inputs: Mapping[str, InputSize],
        rows: Callable[[Chain], float],
        distinct: Distinct,
    ) -> None:
        self._plan, self._inputs, self._rows, self._distinct = plan, inputs, rows, distinct
        self._sizes: dict[Node, _Size] = {}
        self._sources = {state.node: state for state in plan.states if state.source is not None}
        self._work: dict[str, float] = {}

    def work(self) -> Estimate:
        """Return the work of a backfill: what its scans read, its operators compute, and its tables and states get."""
        plan = self._plan
        self._add(scans=len(plan.scans), operators=len(plan.nodes))
        for scan in plan.scans:
            size = self._inputs[scan.input]
            self._add(
                read_rows=size.read_rows, read_bytes=size.read_bytes, read_values=size.read_rows * len(scan.columns)
            )
        self._write(plan.root)
        for state in plan.states:
            if not state.in_view:
                self._write(state.node)
        return Estimate(**self._work)

    def _add(self, **numbers: float) -> None:
        for name, number in numbers.items():
            self._work[name] = self._work.get(name, 0.0) + number

    def _compute(self, rows: float, node: Filter | Project) -> None:
        """Add the expressions of a node that are computed for so many rows."""
        of = [part for each in node.expressions for part in conjuncts(each)]
        computed = sum(not isinstance(each, exp.Column | exp.Literal) for each in of)
        matched = sum(_takes_apart(part) for each in of for part in each.walk())
        self._add(computed=rows * computed, matched=rows * matched)

    def _write(self, node: Node) -> None:
        size = self._of(node)
        width = sum(self._stored_width(each, size) for each in node.fields)
        self._add(written_rows=size.rows, written_values=size.rows * len(node.fields), written_bytes=size.rows * width)

    def _stored_width(self, each: Field, size: _Size) -> float:
        """Return the bytes of a value in a file: those of the input's column of which it is a copy, if it is one."""
        chain, origin = size.origins.get(each.name, (None, None))
        if chain is not None and isinstance(origin, exp.Column):
            column = origin.name.removeprefix(f"{chain.scan.alias}.")
            known = self._inputs[chain.scan.input].column_bytes.get(column)
            if known is not None:
                return known
        return _STORED_TEXT if _is_text(each.type) else _STORED_NUMBER

    def _of(self, node: Node) -> _Size:
        if node not in self._sizes:
            state = self._sources.get(node) if keeps_state(node) else None
            self._sizes[node] = self._made(node) if state is None else self._given(state)
        return self._sizes[node]

    def _given(self, state: State) -> _Size:
        """Return the size of a state that has a source: calls that this lacks are computed and joined to it."""
        assert state.source is not None
        given = self._of(state.source)
        if state.computed is not None:
            groups = self._made(state.computed).rows
            width = _width(state.computed.fields)
            self._add(built=groups, probed=given.rows, joined=given.rows, memory=groups * (_ENTRY + width))
        return given

    def _made(self, node: Node) -> _Size:
        scan = _scan_of(node)
        if scan is not None:
            return self._chain(node, scan)
        match node:
            case Values():
                return _Size(float(len(node.rows)), {})
            case Filter():
                below = self._of(node.input)
                parts = conjuncts(node.predicate)
                self._compute(below.rows, node)
                return _Size(below.rows * _KEPT ** len(parts), below.origins)
            case Project():
                below = self._of(node.input)
                self._compute(below.rows, node)
                return _Size(below.rows, _projected(node, below.origins))
            case Unnest():
                below = self._of(node.input)
                return _Size(below.rows * _ELEMENTS, below.origins)
            case Join():
                return self._join(node)
            case UnionAll():
                return _Size(sum(self._of(branch).rows for branch in node.branches), {})
            case Aggregate():
                below = self._of(node.input)
                groups = self._groups(node.keys, below)
                again = sum(call.expression is not None for call in node.calls)
                self._add(
                    grouped=below.rows * (1 + again),
                    groups=groups,
                    computed=below.rows * len(node.calls),
                    memory=(below.rows if again else groups) * (_ENTRY + _width(node.fields)),
                )
                return _Size(groups, {key: below.origins[key] for key in node.keys if key in below.origins})
            case TopN():
                below = self._of(node.input)
                self._add(sorted=below.rows)
                if node.limit is None:
                    return below
                groups = self._groups(node.partition, below)
                rows = min(below.rows, groups * (node.limit + node.offset))
                self._add(memory=rows * (_ENTRY + _width(node.fields)))
                return _Size(rows, below.origins)
            case OverWindow():
                below = self._of(node.input)
                self._add(sorted=below.rows, memory=below.rows * (_ENTRY + _width(node.fields)))
                return below
        [only] = node.inputs
        return self._of(only)

    def _chain(self, node: Node, scan: Scan) -> _Size:
        chains = _chains(self._plan)
        chain = chains[node] = chains.get(node) or Chain(scan, node, to_sql(Rows(self._plan, "new").of(node)))
        size = self._inputs[scan.input]
        for each in walk(node):
            if isinstance(each, Filter):
                self._compute(size.read_rows, each)
        rows = self._rows(chain)
        for each in walk(node):
            if isinstance(each, Project):
                self._compute(rows, each)
        origins = {f.name: (chain, exp.column(exp.to_identifier(f.name, quoted=True))) for f in node.fields}
        return _Size(rows, origins)

    def _join(self, node: Join) -> _Size:
        left, right = self._of(node.left), self._of(node.right)
        pairs = [(one, other) for one, other, _ in (node.pairs or _pairs_of_all_branches(node))]
        here = self._values([one for one, _ in pairs], left)
        there = self._values([other for _, other in pairs], right)
        most, others = max(here, there, 1.0), len(node.conjuncts) - len(node.pairs)
        met = left.rows * right.rows / (most if pairs else 1.0) * _KEPT**others
        share = min(there / max(here, 1.0), 1.0) if pairs else 1.0
        match node.kind:
            case kind if kind == SEMI:
                rows = left.rows * share * _KEPT**others
            case kind if kind == ANTI:
                rows = left.rows * max(1 - share, 0.1)
            case kind if kind == DYNAMIC:
                rows = left.rows * _KEPT
            case kind if kind in (AS_OF, AS_OF_LEFT):
                rows = left.rows
            case kind if kind in (LEFT, TEMPORAL_LEFT):
                rows = max(met, left.rows)
            case kind if kind == FULL:
                rows = max(met, left.rows, right.rows)
            case _:
                rows = met
        small, large = sorted(((left.rows, node.left), (right.rows, node.right)), key=lambda side: side[0])
        self._add(
            built=small[0],
            probed=large[0],
            joined=rows if pairs else max(rows, left.rows * right.rows),
            memory=small[0] * (_ENTRY + _width(small[1].fields)),
        )
        return _Size(rows, {**right.origins, **left.origins})

    def _groups(self, keys: Iterable[str], below: _Size) -> float:
        names = tuple(keys)
        columns = [exp.column(exp.to_identifier(name, quoted=True)) for name in names]
        return min(self._values(columns, below), below.rows) if names else 1.0

    def _values(self, expressions: Sequence[exp.Expr], size: _Size) -> float:
        """Return the number of distinct values of expressions together among some rows."""
        by_chain: dict[Chain, list[exp.Expr]] = {}
        counts = []
        for expression in expressions:
            found = _traced(expression, size.origins)
            if found is None:
                counts.append(max(size.rows * _DISTINCT, 1.0))
            elif found[0] is not None:
                by_chain.setdefault(found[0], []).append(found[1])
        for chain, keys in by_chain.items():
            columns = {key.name for key in keys if isinstance(key, exp.Column)}
            is_unique = bool(chain.node.key) and columns.issuperset(chain.node.key)
            texts = tuple(dict.fromkeys(map(to_sql, keys)))
            counts.append(_met(self._rows(chain) if is_unique else self._distinct(chain, texts), size.rows))
        return max(min(reduce(mul, counts, 1.0), size.rows), 1.0)


def _pairs_of_all_branches(node: Join) -> tuple[tuple[exp.Expr, exp.Expr, bool], ...]:
    """Return the equalities that all branches of a join's OR have: DuckDB joins by them."""
    for part in node.conjuncts:
        if isinstance(part, exp.Or):
            found = [replace(node, condition=branch.unnest()).pairs for branch in part.flatten()]
            return tuple(pair for pair in found[0] if all(pair in pairs for pairs in found[1:]))
    return ()


def _met(distinct: float, rows: float) -> float:
    """Return how many of so many values some rows have that each have one of them at random."""
    return distinct * -math.expm1(-rows / distinct) if distinct > 0 else 0.0


def _traced(
    expression: exp.Expr, origins: Mapping[str, tuple[Chain, exp.Expr]]
) -> tuple[Chain | None, exp.Expr] | None:
    """Return an expression over fields as one over the rows of one chain; None if it reads anything else."""
    names = {column.name for column in expression.find_all(exp.Column)}
    if not names:
        return None, expression
    chains = {origins[name][0] for name in names if name in origins}
    if len(chains) != 1 or not names <= origins.keys() or expression.find(exp.Window, exp.AggFunc):
        return None
    traced = expression.transform(lambda part: origins[part.name][1].copy() if isinstance(part, exp.Column) else part)
    return chains.pop(), traced


def _projected(node: Project, origins: Mapping[str, tuple[Chain, exp.Expr]]) -> dict[str, tuple[Chain, exp.Expr]]:
    found = {}
    for item in node.items:
        traced = _traced(item.expression, origins)
        if traced is not None and traced[0] is not None:
            found[item.name] = (traced[0], traced[1])
    return found


def _scan_of(node: Node) -> Scan | None:
    """Return the scan of a chain; None for any other node."""
    while isinstance(node, _MAPS):
        node = node.input
    return node if isinstance(node, Scan) else None


def _takes_apart(part: exp.Expr) -> bool:
    """Return whether a call takes a text apart, which costs as much as many other expressions."""
    if isinstance(part, exp.Like | exp.ILike):
        return True
    name = part.name if isinstance(part, exp.Anonymous) else part.sql_name() if isinstance(part, exp.Func) else ""
    return any(word in name.upper() for word in ("REGEXP", "SPLIT", "SIMILAR", "STRING_TO", "JSON"))


def _width(of: Iterable[Field]) -> float:
    return sum(_TEXT if _is_text(each.type) else _NUMBER for each in of)


def _is_text(type_: Type) -> bool:
    return type_.dimensions > 0 or bool(type_.fields) or type_.name in ("character varying", "json", "jsonb", "bytea")


def operator_class(plan: StreamPlan) -> str:
    """Return the kind of view by its dearest operator: `window`, `join`, `aggregate` or `map`."""
    nodes = list(walk(plan.root))
    if any(isinstance(node, OverWindow | TopN) for node in nodes):
        return "window"
    if any(isinstance(node, Join) for node in nodes):
        return "join"
    return "aggregate" if any(keeps_state(node) for node in nodes) else "map"
