"""Aggregates that other ones stand for: rank and its like of a row that is not there, and bool_and(DISTINCT x)."""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp

_RANKS = (exp.Rank, exp.DenseRank, exp.PercentRank, exp.CumeDist)


def without_distinct(tree: exp.Expr) -> None:
    """Leave DISTINCT out of `bool_and`, `bool_or` and `every`, which it does not change, in place."""
    for distinct in list(tree.find_all(exp.Distinct)):
        call = distinct.parent
        is_one = isinstance(call, exp.LogicalAnd | exp.LogicalOr) or (
            isinstance(call, exp.Anonymous) and call.name.lower() == "every"
        )
        if is_one and len(distinct.expressions) == 1 and call is not None:
            around = call.parent.parent if isinstance(call.parent, exp.Filter) else call.parent
            if not isinstance(around, exp.Window):
                distinct.replace(distinct.expressions[0])


def with_hypothetical_rows(tree: exp.Expr) -> None:
    """Let `rank(a) WITHIN GROUP (ORDER BY x)`, and its like, count the rows before one with the value a, in place.

    A call with more or fewer values than keys stays as it is.
    """
    for group in list(tree.find_all(exp.WithinGroup)):
        call, keys = group.this, group.expression.expressions
        if not isinstance(call, _RANKS) or len(call.expressions) != len(keys):
            continue
        filtered = group.parent if isinstance(group.parent, exp.Filter) else None
        made = exp.paren(_counted(call, keys, filtered.expression.this if filtered is not None else None))
        whole = filtered or group
        whole.replace(exp.alias_(made, _NAMES[type(call)]) if isinstance(whole.parent, exp.Select) else made)


_NAMES = {exp.Rank: "rank", exp.DenseRank: "dense_rank", exp.PercentRank: "percent_rank", exp.CumeDist: "cume_dist"}


def _counted(call: exp.Expr, keys: Sequence[exp.Ordered], condition: exp.Expr | None) -> exp.Expr:
    before = _before(call.expressions, keys)
    one = exp.Literal.number(1)
    if isinstance(call, exp.Rank):
        return exp.Add(this=_count(before, condition), expression=one)
    if isinstance(call, exp.DenseRank):
        if len(keys) > 1:
            row = exp.Anonymous(this="row", expressions=[key.this.copy() for key in keys])
            return exp.Add(this=_count(before, condition, exp.Distinct(expressions=[row])), expression=one)
        value = keys[0].this
        nulls = exp.GT(this=_count(exp.and_(before, _is_null(value)), condition), expression=exp.Literal.number(0))
        several = _count(before, condition, exp.Distinct(expressions=[value.copy()]))
        return exp.Add(this=exp.Add(this=several, expression=exp.cast(nulls, "int")), expression=one)
    every = _count(None, condition)
    if isinstance(call, exp.PercentRank):
        share = exp.Div(this=_float(_count(before, condition)), expression=exp.Nullif(this=every, expression=_zero()))
        return exp.Coalesce(this=share, expressions=[_float(_zero())])
    peers = [_is_peer(value, key) for value, key in zip(call.expressions, keys, strict=True)]
    up_to = exp.Add(this=_count(exp.or_(before, exp.and_(*peers)), condition), expression=one)
    return exp.Div(this=_float(exp.paren(up_to)), expression=exp.paren(exp.Add(this=every, expression=one.copy())))


def _count(condition: exp.Expr | None, also: exp.Expr | None, what: exp.Expr | None = None) -> exp.Expr:
    """Return the count of the rows, or of something, that meet the conditions."""
    counted = exp.Count(this=what or exp.Star(), big_int=True)
    conditions = [each.copy() for each in (condition, also) if each is not None]
    return exp.Filter(this=counted, expression=exp.Where(this=exp.and_(*conditions))) if conditions else counted


def _before(values: Sequence[exp.Expr], keys: Sequence[exp.Ordered]) -> exp.Expr:
    """Return whether a row comes before the row of some values."""
    found: exp.Expr | None = None
    for key, value in reversed(list(zip(keys, values, strict=True))):
        kind = exp.GT if key.args.get("desc") else exp.LT
        first: exp.Expr = kind(this=key.this.copy(), expression=value.copy())
        null, other = (key.this, value) if key.args.get("nulls_first") else (value, key.this)
        if not isinstance(null, exp.Literal):
            is_there = exp.true() if isinstance(other, exp.Literal) else exp.not_(_is_null(other))
            first = exp.or_(first, exp.and_(_is_null(null), is_there))
        if found is not None:
            first = exp.or_(first, exp.and_(_is_peer(value, key), found))
        found = first
    assert found is not None
    return found


def _is_peer(value: exp.Expr, key: exp.Ordered) -> exp.Expr:
    return exp.NullSafeEQ(this=key.this.copy(), expression=value.copy())


def _is_null(value: exp.Expr) -> exp.Expr:
    return exp.Is(this=value.copy(), expression=exp.null())


def _float(value: exp.Expr) -> exp.Expr:
    return exp.cast(value, "double")


def _zero() -> exp.Expr:
    return exp.Literal.number(0)
