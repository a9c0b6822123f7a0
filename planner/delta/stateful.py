"""The new rows of operators with state, as steps `<state>_touched`, `_stored` and `_merged`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Protocol

from sqlglot import exp

from sparkwave.planner.bind.binder import data_type
from sparkwave.planner.delta import operator_sql
from sparkwave.planner.delta.full import Keys, restricted
from sparkwave.planner.delta.program import Apply
from sparkwave.planner.delta.state import alive, state_rows
from sparkwave.planner.plan.nodes import (
    COUNT,
    WEIGHT,
    Aggregate,
    Call,
    Memo,
    Node,
    Stateful,
    TopN,
    changes_by_row,
    column,
    equal_in_files,
)
from sparkwave.planner.plan.stream_plan import State


class Steps(Protocol):
    """The receiver of steps.

    `applies` are the changes of states. `without_nulls` names states whose stored rows have no NULL in their keys.
    """

    applies: list[Apply]
    without_nulls: frozenset[str]

    def add(self, name: str, query: exp.Select) -> str:
        """Add a step. Returns its name."""

    def full(self, node: Node, version: str, keys: Keys | None = None) -> exp.Select:
        """Return all rows of a node at a version, `old` or `new`, or those with certain keys."""


def merge_groups(written: Steps, node: Aggregate, state: State, below: exp.Select, retracts: bool) -> None:
    """Write the new rows of the groups that changes touch: stored values plus changes, or computed again where needed.

    Calls with an expression are computed again in all groups; min and max in groups that lost the row that had the
    stored value; sums of floats in groups that lost any value.
    """
    delta = f"{state.name}_delta"
    again = [call for call in node.calls if call.expression is not None or (retracts and not call.is_linear)]
    written.add(delta, _group_changes(node, below, retracts))
    keys = operator_sql.key_items(node.keys)
    written.add(f"{state.name}_touched", exp.select(*keys or [exp.Literal.number(1)]).from_(delta, copy=False))
    if again or not changes_by_row(node.input):
        _look_up(written, node, state, node.keys)
    else:  # DuckDB knows that the changes are few, so their join looks the groups up
        written.add(f"{state.name}_stored", operator_sql.over(state_rows(state), node.fields))
    if again:
        _recompute(written, node, state, again)
    written.add(f"{state.name}_merged", _merged(node, state, again, state.name in written.without_nulls))
    if not state.in_view:
        names = exp.select(*map(column, node.keys or (COUNT,))).from_(delta, copy=False)
        merged = alive(node, f"{state.name}_merged")
        written.applies.append(Apply(state.name, state.key, equal_in_files(node), names, merged))


def _group_changes(node: Aggregate, below: exp.Select, retracts: bool) -> exp.Select:
    """Return the changes of the calls by group. Without `retracts` rows only arrive.

    With it, a call that is not linear has the value of the arriving rows, and as `…_gone` that of the leaving ones. A
    row that is replaced by one with the same arguments of min and max is neither.
    """
    changes = below.subquery("c", copy=False)
    calls = [call for call in node.calls if call.expression is None]
    extremes = [call for call in calls if call.function in ("min", "max")] if retracts else []
    if not extremes:
        return _grouped(node.keys, {k: v for call in calls for k, v in _delta_of(call, retracts).items()}, changes)
    net: dict[str, exp.Expr] = {WEIGHT: exp.cast(exp.Sum(this=column(WEIGHT)), "bigint")}
    outputs: dict[str, exp.Expr] = {}
    for call in calls:
        found = _delta_of(call, retracts)
        if call in extremes:
            outputs |= found
            continue
        net |= found
        outputs |= {name: exp.cast(exp.Sum(this=column(name)), data_type(call.type)) for name in found}
    by = tuple(dict.fromkeys((*node.keys, *(str(call.argument) for call in extremes))))
    return _grouped(node.keys, outputs, _grouped(by, net, changes).subquery("n", copy=False))


def _grouped(keys: tuple[str, ...], outputs: Mapping[str, exp.Expr], rows: exp.Subquery) -> exp.Select:
    named = (exp.alias_(output, name, quoted=True) for name, output in outputs.items())
    query = exp.select(*map(column, keys), *named).from_(rows, copy=False)
    return query.group_by(*map(column, keys), copy=False) if keys else query


def _look_up(written: Steps, node: Stateful, state: State, keys: tuple[str, ...]) -> None:
    """Look up the stored rows of the groups that changes touch."""
    touched = Keys.of(f"{state.name}_touched", node, keys)
    if state.name in written.without_nulls:
        touched = replace(touched, parts=tuple((part, False) for part, _ in touched.parts))
    written.add(f"{state.name}_stored", restricted(state_rows(state), node.fields, touched))


def _recompute(written: Steps, node: Aggregate, state: State, calls: list[Call]) -> None:
    keys = [exp.alias_(column(name, "d"), f"k{number}") for number, name in enumerate(node.keys)]
    chosen = exp.select(*keys or [exp.Literal.number(1)]).from_(
        exp.alias_(exp.to_table(f"{state.name}_delta"), "d"), copy=False
    )
    if all(call.expression is None for call in calls):
        stored = exp.alias_(exp.to_table(f"{state.name}_stored"), "s")
        same = _same_group(node, "s", "d", state.name in written.without_nulls)
        chosen = chosen.join(stored, on=same, join_type="left").where(_lost(calls))
    step = written.add(f"{state.name}_again", chosen)
    restriction = Keys.of(step, node.input, node.keys)
    rows = written.full(node.input, "new", restriction)
    written.add(f"{state.name}_recomputed", operator_sql.aggregate(node, rows, calls))


def _lost(calls: Iterable[Call]) -> exp.Expr:
    """Return whether calls cannot be merged in a group: a sum lost a value, or min or max the value that it would have.

    It has that value if no row leaves that is as extreme as the stored value and the arriving ones.
    """
    conditions = [_is_lost(call) for call in calls if call.expression is None]
    return exp.or_(*conditions, copy=False) if conditions else exp.false()


def _is_lost(call: Call) -> exp.Expr:
    gone = column(_gone(call), "d")
    is_gone = exp.Not(this=exp.Is(this=gone, expression=exp.null()))
    if call.function == "sum":
        return is_gone
    comparison = exp.GT if call.function == "min" else exp.LT
    stays = (comparison(this=gone.copy(), expression=column(call.name, table)) for table in ("s", "d"))
    surely = (exp.func("coalesce", each, exp.false()) for each in stays)
    return exp.and_(is_gone, *(exp.Not(this=each) for each in surely), copy=False)


def _delta_of(call: Call, retracts: bool) -> dict[str, exp.Expr]:
    """Return the change of one call over a group's changes, as outputs by name."""
    if call.is_linear:
        return {call.name: _linear_delta(call)}
    argument, zero = column(str(call.argument)), exp.Literal.number(0)
    arriving, leaving = (
        operator_sql.mergeable(
            call, exp.Case().when(sign(this=column(WEIGHT), expression=zero.copy()), argument.copy())
        )
        for sign in (exp.GT, exp.LT)
    )
    return {call.name: arriving, _gone(call): leaving} if retracts else {call.name: arriving}


def _gone(call: Call) -> str:
    return f"{call.name}_gone"


def _linear_delta(call: Call) -> exp.Expr:
    weight = column(WEIGHT)
    if call.argument is None:
        return exp.cast(exp.Sum(this=weight), data_type(call.type))
    argument = column(call.argument)
    if call.function == "count":
        present = exp.Is(this=argument, expression=exp.null())
        counted = exp.Case().when(present, exp.Literal.number(0)).else_(weight)
        return exp.cast(exp.Sum(this=counted), data_type(call.type))
    product = exp.Mul(this=exp.cast(argument, data_type(call.type)), expression=weight)
    return exp.cast(exp.Sum(this=product), data_type(call.type))


def _merged(node: Aggregate, state: State, again: list[Call], without_nulls: bool) -> exp.Select:
    query = exp.select(*(exp.alias_(column(k, "d"), k, quoted=True) for k in node.keys))
    for call in node.calls:
        query = query.select(
            exp.alias_(_merge_call(call, _lost(again) if call in again else None), call.name, quoted=True),
            exp.alias_(column(call.name, "s"), _was(call), quoted=True),
            copy=False,
        )
    query = query.from_(exp.alias_(exp.to_table(f"{state.name}_delta"), "d"), copy=False)
    stored = exp.alias_(exp.to_table(f"{state.name}_stored"), "s")
    query = query.join(stored, on=_same_group(node, "s", "d", without_nulls), join_type="left", copy=False)
    if again:
        recomputed = exp.alias_(exp.to_table(f"{state.name}_recomputed"), "r")
        query = query.join(recomputed, on=_same_group(node, "r", "d"), join_type="left", copy=False)
    return query


def replaced_groups(node: Aggregate, state: State) -> tuple[exp.Select, exp.Select]:
    """Return the old and the new rows of changed groups, from the steps of `merge_groups`."""
    merged = f"{state.name}_merged"
    stored = [*map(column, node.keys), *(exp.alias_(column(_was(c)), c.name, quoted=True) for c in node.calls)]
    removed = exp.select(*stored).from_(merged, copy=False)
    removed = removed.where(exp.Not(this=exp.Is(this=column(f"{COUNT}_was"), expression=exp.null())), copy=False)
    differs = exp.or_(*(exp.NullSafeNEQ(this=column(c.name), expression=column(_was(c))) for c in node.calls))
    return removed.where(differs, copy=False), alive(node, merged).where(differs.copy(), copy=False)


def _was(call: Call) -> str:
    """Return the column of merged groups with a call's stored value, or NULL.

    An existing group has its count of rows.
    """
    return f"{call.name}_was"


def _merge_call(call: Call, lost: exp.Expr | None) -> exp.Expr:
    """Return the new value of a call; `lost` tells whether it has been computed again, None that it never is."""
    if call.expression is not None:
        return column(call.name, "r")
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
    if lost is None:
        return merged
    return exp.Case().when(lost, column(call.name, "r")).else_(merged)


def _same_group(node: Aggregate, left: str, right: str, without_nulls: bool = False) -> exp.Expr:
    """Return whether two rows are of one group; `without_nulls` tells that one of them has no NULL in its keys."""
    if not node.keys:
        return exp.true()
    present = {*node.keys} if without_nulls else node.present
    return exp.and_(*(operator_sql.same(column(k, left), column(k, right), k not in present) for k in node.keys))


def merge_first_rows(written: Steps, node: TopN, state: State, below: exp.Select, retracts: bool) -> None:
    """Write the new first rows of the partitions that changes touch.

    Stored and arriving rows are enough unless a stored row is removed. Then the next rows are in the input only, and
    the partition is read again.
    """
    assert node.limit is not None
    fields, names = node.input.fields, node.partition
    changes = f"{state.name}_changes"
    written.add(changes, operator_sql.consolidated(below, fields))
    keys = operator_sql.key_items(names) or [exp.alias_(exp.Literal.number(1), "k0")]
    written.add(f"{state.name}_touched", exp.select(*keys).distinct().from_(changes))
    present = node.present
    _look_up(written, node, state, names)
    stored = exp.select(*(column(f.name) for f in fields)).from_(f"{state.name}_stored", copy=False)
    arriving = exp.select(*(column(f.name) for f in fields)).from_(changes, copy=False)
    arriving = arriving.where(exp.GT(this=column(WEIGHT), expression=exp.Literal.number(0)))
    candidates = operator_sql.union([stored, arriving])
    if retracts:
        gone = (
            exp.select("*")
            .from_(changes, copy=False)
            .where(exp.LT(this=column(WEIGHT), expression=exp.Literal.number(0)))
        )
        was_first = Keys(
            f"{state.name}_state",
            tuple((column(key), key not in present) for key in dict.fromkeys(node.key)),
            _stored(node, state),
        )
        lost = restricted(gone, fields, was_first)
        written.add(
            f"{state.name}_lost", exp.select(*(k.copy() for k in keys)).distinct().from_(lost.subquery("l", copy=False))
        )
        # A partition that lost a row of its state is read from the input alone.
        is_lost = Keys.of(f"{state.name}_lost", node, names).found()
        kept = operator_sql.over(candidates, fields).where(exp.Not(this=is_lost), copy=False)
        again = written.full(node.input, "new", Keys.of(f"{state.name}_lost", node.input, names))
        again = operator_sql.over(again, fields).where(is_lost.copy(), copy=False)
        candidates = operator_sql.union([kept, again])
    merged = operator_sql.top_n(node, candidates, 0, node.offset + node.limit)
    written.add(f"{state.name}_merged", merged)
    if not state.in_view:
        written.applies.append(_replace_partitions(node, state))


def merge_memo(written: Steps, node: Memo, state: State, left: exp.Select) -> None:
    """Write the new results for the left rows that change: of removed ones none, of arriving ones those of now."""
    join, changes = node.join, f"{state.name}_changes"
    written.add(changes, operator_sql.consolidated(left, join.left.fields))
    keys = operator_sql.key_items(node.partition) or [exp.alias_(exp.Literal.number(1), "k0")]
    written.add(f"{state.name}_touched", exp.select(*keys).distinct().from_(changes))
    _look_up(written, node, state, node.partition)
    arriving = exp.select(*(column(f.name) for f in join.left.fields)).from_(changes, copy=False)
    arriving = arriving.where(exp.GT(this=column(WEIGHT), expression=exp.Literal.number(0)))
    written.add(f"{state.name}_merged", operator_sql.join(join, arriving, written.full(join.right, "new")))
    if not state.in_view:
        written.applies.append(_replace_partitions(node, state))


def merge_log(written: Steps, node: Memo, state: State, gained: exp.Select) -> str:
    """Write the rows that a stored change log gains. Returns the step with them."""
    rows = exp.select(*(column(f.name) for f in node.fields)).from_(gained.subquery("c", copy=False), copy=False)
    step = written.add(f"{state.name}_merged", rows)
    keys = operator_sql.key_items(node.partition)
    written.add(f"{state.name}_touched", exp.select(*keys).from_(step, copy=False))
    if not state.in_view:
        written.applies.append(_replace_partitions(node, state))
    return step


def _replace_partitions(node: TopN | Memo, state: State) -> Apply:
    """Return the change of a state's table: the rows of the partitions that changes touch are written anew."""
    names = node.partition
    listed = (exp.alias_(column(f"k{n}"), name, quoted=True) for n, name in enumerate(names or ("k0",)))
    removed = exp.select(*listed).from_(f"{state.name}_touched", copy=False)
    merged = operator_sql.over(exp.select("*").from_(f"{state.name}_merged", copy=False), node.fields)
    return Apply(state.name, state.key, equal_in_files(node), removed, merged)


def _stored(node: TopN, state: State) -> tuple[str, ...]:
    """Return the stored columns of the node's key."""
    stored = dict(state.columns)
    return tuple(stored[key] for key in dict.fromkeys(node.key))
