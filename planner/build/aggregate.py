"""GROUP BY and aggregate calls: the state of a group, and the expressions that are computed from it."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import product

from sqlglot import exp

from sparkwave.catalog import errors
from sparkwave.catalog.errors import Error
from sparkwave.catalog.types import BIGINT, BOOLEAN, DOUBLE, INTEGER, INTERVAL, QUOTIENT, REAL, Type
from sparkwave.planner.bind.binder import data_type, type_of
from sparkwave.planner.build.builder import (
    Builder,
    columns_in,
    refuse,
    replaced,
    scalar,
    text,
    typed,
    typed_column,
    written,
)
from sparkwave.planner.functions.aggregates import (
    SPREADS,
    aggregate_calls,
    argument,
    call_of,
    canonical,
    is_aggregate,
    result_type,
    sum_type,
)
from sparkwave.planner.functions.sums import average, combined, is_summed, of_sums, summands, sums_of
from sparkwave.planner.parse.trees import position_of
from sparkwave.planner.plan.nodes import Aggregate, Call, Item, Node, Project, column, count_rows_call


@dataclass
class Grouped:
    """Groups, and the replacements of the query's keys and calls by their fields."""

    node: Aggregate
    replacements: dict[str, exp.Expr]


@dataclass
class _State:
    """The inputs and calls of an aggregate that is being built, and the expressions by name, in lower case."""

    inputs: dict[str, Item] = field(default_factory=dict)
    calls: dict[str, Call] = field(default_factory=dict)
    named: dict[str, exp.Expr] = field(default_factory=dict)

    def name(self, name: str, expression: exp.Expr) -> str:
        """Return the name, or a similar one if another expression has it.

        Engines do not distinguish 'A' from 'a' in names.
        """
        while self.named.setdefault(name.lower(), expression) != expression:
            name += "_"
        return name

    def input(self, expression: exp.Expr, type_: Type, name: str = "") -> str:
        """Add an input, unless there is an equal one; return the input's name: `name`, or a similar one."""
        own = expression.name if isinstance(expression, exp.Column) else text(expression)
        name = self.name(name or own, expression)
        self.inputs.setdefault(name, Item(name, expression, type_))
        return name

    def argument(self, expression: exp.Expr, type_: Type, condition: exp.Expr | None, name: str = "") -> str:
        """Add a call's argument as an input, NULL where the call's FILTER does not hold; return the input's name."""
        if condition is not None:
            expression = typed(exp.Case().when(condition, expression), type_)
        return self.input(expression, type_, name)

    def call(self, function: str, argument: str, type_: Type) -> exp.Column:
        """Add a call over an input, unless there is an equal one; return the column with its result."""
        name = f"_{function}({argument})"
        self.calls.setdefault(name, Call(name, function, argument, type_))
        return typed_column(name, type_)


def is_grouped(select: exp.Select) -> bool:
    parts = [*select.selects, *_clauses(select)]
    return bool(select.args.get("group") or select.args.get("having") or any(aggregate_calls(part) for part in parts))


def _clauses(select: exp.Select) -> list[exp.Expr]:
    return [clause for name in ("having", "order", "distinct") if (clause := select.args.get(name)) is not None]


def grouping_sets(select: exp.Select) -> list[list[exp.Expr]]:
    """Return the sets of keys of a GROUP BY; one set for a plain GROUP BY."""
    group = select.args.get("group")
    if group is None:
        return [[]]
    parts = [_sets_of(part) for part in group.expressions]
    sets = [[key for keys in combined for key in keys] for combined in product(*parts)]
    return _without_repeats(sets) if group.args.get("all") is False else sets


def _without_repeats(sets: list[list[exp.Expr]]) -> list[list[exp.Expr]]:
    """Return the sets of GROUP BY DISTINCT: sets of the same keys are one."""
    return list({frozenset(map(text, keys)): keys for keys in reversed(sets)}.values())[::-1]


def _sets_of(part: exp.Expr) -> list[list[exp.Expr]]:
    listed = [_listed(item) for item in part.expressions] if isinstance(part, exp.Cube | exp.Rollup) else []
    match part:
        case exp.Rollup():
            return [[key for keys in listed[:size] for key in keys] for size in range(len(listed), -1, -1)]
        case exp.Cube():
            chosen = product((True, False), repeat=len(listed))
            return [[k for keys, is_in in zip(listed, each, strict=True) if is_in for k in keys] for each in chosen]
        case exp.GroupingSets():
            return [keys for inner in part.expressions for keys in _sets_of(inner)]
    return [_listed(part)]


def _listed(item: exp.Expr) -> list[exp.Expr]:
    if isinstance(item, exp.Tuple):
        return list(item.expressions)
    return [item.this if isinstance(item, exp.Paren) else item]


def build_groups(select: exp.Select, node: Node, keys: list[exp.Expr], all_keys: list[exp.Expr]) -> Grouped:
    """Return the groups of one grouping set. Keys that only other sets have are NULL in it."""
    state = _State()
    replacements: dict[str, exp.Expr] = {}
    for key in all_keys:
        flat = scalar(key)
        if key in keys:
            name = state.input(flat, type_of(key))
            replacements[text(flat)] = typed_column(name, type_of(key))
        else:
            replacements[text(flat)] = exp.cast(exp.null(), data_type(type_of(key)))
    key_names = tuple(state.inputs)
    for part in [*select.selects, *_clauses(select)]:
        for call in aggregate_calls(part):
            flat = scalar(call)
            value = _state_of(call, flat, state)
            value.type = data_type(result_type(call, type_of) or type_of(call))
            replacements[text(flat)] = value
        for grouping in part.find_all(exp.Grouping):
            replacements[text(scalar(grouping))] = _grouping(grouping, keys, all_keys)
    calls = (count_rows_call(), *state.calls.values())
    # A relation has at least one column, also for a bare count(*).
    items = tuple(state.inputs.values()) or (Item("_one", exp.Literal.number(1), INTEGER),)
    return Grouped(Aggregate(Project(node, items), key_names, calls), replacements)


def _grouping(grouping: exp.Grouping, keys: list[exp.Expr], all_keys: list[exp.Expr]) -> exp.Expr:
    """Return a number with a bit for each argument, set where the grouping set does not have it."""
    if not all(argument_ in all_keys for argument_ in grouping.expressions):
        message = "arguments to GROUPING must be grouping expressions of the associated query level"
        raise Error(message, errors.GROUPING_ERROR, position=position_of(grouping))
    bits = "".join("0" if argument_ in keys else "1" for argument_ in grouping.expressions)
    return typed(exp.Literal.number(int(bits, 2)), INTEGER)


def _state_of(call: exp.Expr, flat: exp.Expr, state: _State) -> exp.Expr:
    """Add the calls that an aggregate is computed from, and its argument. Returns the expression that computes it."""
    inner = call_of(call)
    for part in inner.walk():
        if part is not inner and (is_aggregate(part) or isinstance(part, exp.Window)):
            raise Error(
                "aggregate function calls cannot be nested or contain window function calls",
                errors.GROUPING_ERROR,
                position=position_of(call),
            )
    _refuse_computed(inner)
    if not _is_mergeable(inner):
        if isinstance(inner, exp.Avg) and result_type(inner, type_of) == QUOTIENT:
            value_type = type_of(argument(inner))
            pairs = zip(sums_of(call, value_type), sums_of(flat, value_type), strict=True)
            return of_sums(call, [_recomputed(own, flattened, state) for own, flattened in pairs], value_type)
        return _recomputed(call, flat, state)
    condition = scalar(call.expression.this) if isinstance(call, exp.Filter) else None
    value = argument(inner)
    if isinstance(inner, exp.Count) and isinstance(value, exp.Star):
        if condition is None:
            return typed_column("_count", BIGINT)
        return state.call("count", state.argument(exp.true(), BOOLEAN, condition), BIGINT)
    type_ = type_of(value)
    argument_name = state.argument(scalar(value), type_, condition)
    match inner:
        case exp.Min() | exp.Max():
            return state.call(inner.key, argument_name, type_)
        case exp.LogicalAnd() | exp.LogicalOr() | exp.Anonymous():
            return state.call("max" if isinstance(inner, exp.LogicalOr) else "min", argument_name, BOOLEAN)
        case exp.Count():
            return state.call("count", argument_name, BIGINT)
    if is_summed(inner, type_):
        sums = _sums(summands(inner, scalar(value), type_), condition, argument_name, state)
        return combined(inner, state.call("count", argument_name, BIGINT), sums, type_)
    if not type_.is_numeric:
        raise Error(
            f"function {inner.key}({type_}) does not exist",
            errors.UNDEFINED_FUNCTION,
            hint=errors.NO_FUNCTION,
            position=position_of(call),
        )
    count = state.call("count", argument_name, BIGINT)
    total = state.call("sum", argument_name, DOUBLE if type_ == REAL else sum_type(type_))
    result: exp.Expr = total
    if isinstance(inner, exp.Avg):
        result = _average(total, count.copy(), type_, result_type(inner, type_of))
    elif type_ == REAL:
        result = typed(exp.cast(total, data_type(REAL)), REAL)
    return exp.Case().when(exp.GT(this=count, expression=exp.Literal.number(0)), result)


def _sums(values: list[exp.Expr], condition: exp.Expr | None, of: str, state: _State) -> list[exp.Expr]:
    """Add the sums of values that are computed from an argument."""
    sums: list[exp.Expr] = []
    for value in values:
        name = f"{value.name}({of})" if isinstance(value, exp.Anonymous) and value.name.startswith("_") else ""
        argument_name = state.argument(value, type_of(value), condition, name)
        sums.append(state.call("sum", argument_name, sum_type(type_of(value))))
    return sums


def _average(total: exp.Expr, count: exp.Expr, type_: Type, result: Type | None) -> exp.Expr:
    if result == QUOTIENT:
        return average(total, count, type_)
    return exp.Div(this=exp.cast(total, data_type(DOUBLE)), expression=exp.cast(count, data_type(DOUBLE)))


def _refuse_computed(call: exp.Expr) -> None:
    """Raise Error 0A000 for a fraction that is no constant, as DuckDB requires."""
    if isinstance(call, exp.PercentileCont | exp.PercentileDisc) and call.this.find(exp.Column) is not None:
        raise refuse("a fraction that is not a constant", call)


def _is_mergeable(call: exp.Expr) -> bool:
    if isinstance(call.parent, exp.WithinGroup) or call.find(exp.Distinct, exp.Order):
        return False
    if isinstance(call, exp.Anonymous):
        return call.name.lower() == "every"
    if isinstance(call, SPREADS) or (isinstance(call, exp.Sum | exp.Avg) and type_of(argument(call)) == INTERVAL):
        return is_summed(call, type_of(argument(call)))
    known = isinstance(call, exp.Count | exp.Sum | exp.Avg | exp.Min | exp.Max | exp.LogicalAnd | exp.LogicalOr)
    return known and not call.expressions


def _recomputed(call: exp.Expr, flat: exp.Expr, state: _State) -> exp.Expr:
    """Add any other aggregate: the whole call is computed again for a changed group."""
    type_ = result_type(call, type_of)
    if type_ is None:
        raise refuse(f"the aggregate {written(call)}", call)
    for reference in flat.find_all(exp.Column):
        state.input(reference.copy(), type_of(reference))
    name = state.name(f"_{text(flat)}".replace('"', ""), flat)
    state.calls.setdefault(name, Call(name, call_of(call).key, None, type_, canonical(flat)))
    return typed_column(name, type_)


def check_grouped(node: Node, expression: exp.Expr, source: exp.Expr) -> None:
    """Raise Error 42803 when an expression over groups reads a column that is not one of their fields."""
    available = {f.name for f in node.fields}
    for name in columns_in(expression) - available:
        raise Error(
            f'column "{name}" must appear in the GROUP BY clause or be used in an aggregate function',
            errors.GROUPING_ERROR,
            position=position_of(source),
        )


def with_empty_groups(expression: exp.Expr, calls: tuple[Call, ...]) -> exp.Expr:
    """Return an output over groups that may be missing, with all fields NULL: counts of no rows are 0."""
    counts = {call.name for call in calls if call.counts}

    def counted(part: exp.Expr) -> exp.Expr:
        is_count = isinstance(part, exp.Column) and part.name in counts
        return exp.func("coalesce", part, exp.Literal.number(0)) if is_count else part

    return expression.transform(counted)


def correlated_groups(
    builder: Builder, select: exp.Select, node: Node, inner: list[exp.Expr]
) -> tuple[Node, list[exp.Expr]]:
    """Return a correlated scalar aggregate: groups by the subquery's side of the correlation, and their outputs."""
    grouped = build_groups(select, node, inner, inner)
    values = [replaced(scalar(item.unalias()), grouped.replacements) for item in select.selects]
    having = select.args.get("having")
    if having is not None:  # without a group the outputs are NULL
        condition = replaced(scalar(having.this), grouped.replacements)
        values = [exp.Case().when(condition.copy(), value) for value in values]
    for value, item in zip(values, select.selects, strict=True):
        check_grouped(grouped.node, value, item)
    alias = builder.fresh("s")
    items = tuple(Item(f"{alias}.{f.name}", column(f.name), f.type) for f in grouped.node.fields)
    # The keys first, one for each correlation, even where two are the same column.
    places = [grouped.replacements[text(key)].name for key in inner]
    firsts = tuple(
        Item(f"{alias}.k{number}", column(name), next(f.type for f in grouped.node.fields if f.name == name))
        for number, name in enumerate(places)
    )
    renames = {f.name: f"{alias}.{f.name}" for f in grouped.node.fields}

    def rename(part: exp.Expr) -> exp.Expr:
        if not isinstance(part, exp.Column):
            return part
        found = column(renames[part.name])
        found.type = part.type
        return found

    outputs = [with_empty_groups(value, grouped.node.calls).transform(rename) for value in values]
    return Project(grouped.node, firsts + items), outputs
