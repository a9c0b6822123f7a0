"""Temporal filters: conditions on `now()`, which is the time of the epoch.

An epoch goes from one time to the next, `now_old` to `now_new` (timestamps with time zone, session variables of the
engine). Rows for which the condition gives another answer at the new time than at the old one are changes, though
nobody touched them. RisingWave calls these temporal filters and plans them as dynamic filters on a Now node.
"""

from __future__ import annotations

from sqlglot import exp

from sparkwave.catalog.types import TIMESTAMPTZ
from sparkwave.planner.functions.typed import data_type
from sparkwave.planner.plan.nodes import WEIGHT, Filter, column, conjuncts, reads_now

# Represents passed time among a plan's changed inputs.
NOW = "now"
_COMPARISONS = (exp.GT, exp.GTE, exp.LT, exp.LTE)


def is_now(node: exp.Expr) -> bool:
    return isinstance(node, exp.CurrentTimestamp)


def at_time(expression: exp.Expr, version: str) -> exp.Expr:
    """Return the expression with the epoch's time in place of `now()`, at `old` or `new`."""
    time = exp.Anonymous(this="getvariable", expressions=[exp.Literal.string(f"now_{version}")])
    time.type = data_type(TIMESTAMPTZ)
    return expression.transform(lambda part: time.copy() if is_now(part) else part)


def flips(node: Filter, old: exp.Select) -> exp.Select:
    """Return the changes that passing time makes to a filter's unchanged rows.

    Only rows between the two times can flip: each comparison with `now()` also bounds the rows to read, so that files
    and row groups outside are skipped.
    """
    parts = [piece for part in conjuncts(node.predicate) for piece in _comparisons(part)]
    timeless = [part.copy() for part in parts if not reads_now(part)]
    bounds = [_between(part) for part in parts if reads_now(part)]
    before, after = (exp.func("coalesce", at_time(node.predicate, v), exp.false()) for v in ("old", "new"))
    weight = exp.Case().when(after.copy(), exp.Literal.number(1)).else_(exp.Literal.number(-1))
    names = [column(f.name) for f in node.fields]
    query = exp.select(*names, exp.alias_(weight, WEIGHT)).from_(old.subquery("s", copy=False), copy=False)
    query = query.where(*timeless, exp.NEQ(this=before, expression=after), copy=False)
    if all(bound is not None for bound in bounds):
        query = query.where(exp.or_(*(bound for bound in bounds if bound is not None), copy=False), copy=False)
    return query


def _comparisons(part: exp.Expr) -> list[exp.Expr]:
    """Return BETWEEN as its two comparisons, unless it is SYMMETRIC."""
    if not isinstance(part, exp.Between) or part.args.get("symmetric"):
        return [part]
    low = exp.GTE(this=part.this.copy(), expression=part.args["low"].copy())
    return [low, exp.LTE(this=part.this.copy(), expression=part.args["high"].copy())]


def _between(part: exp.Expr) -> exp.Expr | None:
    """Return the condition that bounds the rows that flip; None when the comparison gives none."""
    if not isinstance(part, _COMPARISONS):
        return None
    sides = [part.this.unnest(), part.expression.unnest()]
    moving = [side for side in sides if reads_now(side)]
    fixed = [side for side in sides if not reads_now(side)]
    if len(moving) != 1 or moving[0].find(exp.Column):
        return None
    old, new = (at_time(moving[0], version) for version in ("old", "new"))
    # The calendar is monotone, and `now()` may be on either side, so the two times bound the rows in one of the two
    # orders.
    low, high = exp.func("least", old, new), exp.func("greatest", old.copy(), new.copy())
    return exp.and_(
        exp.GTE(this=fixed[0].copy(), expression=low), exp.LTE(this=fixed[0].copy(), expression=high), copy=False
    )
