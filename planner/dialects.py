"""What the planner's own SQL has that the engines spell differently: positions of unnested elements, the epoch's time
and windows of time."""

from __future__ import annotations

from collections.abc import Callable

from sqlglot import exp

from planner.time_windows import SHIFTED, TUMBLE_START


def for_duckdb(node: exp.Expr) -> exp.Expr:
    """A node of a planner-made tree in DuckDB's terms."""
    return _called(node, _DUCKDB, for_duckdb)


def for_spark(node: exp.Expr) -> exp.Expr:
    """A node of a planner-made tree in Spark's terms."""
    if isinstance(node, exp.Select):
        return _lateral_view(node)
    return _called(node, _SPARK, for_spark)


_Builds = dict[str, Callable[[list[exp.Expr]], exp.Expr]]


def _called(node: exp.Expr, builds: _Builds, each: Callable[[exp.Expr], exp.Expr]) -> exp.Expr:
    build = builds.get(node.name) if isinstance(node, exp.Anonymous) else None
    return node if build is None else build([argument.transform(each) for argument in node.expressions])


def _micros(number: exp.Expr) -> exp.Expr:
    return exp.Anonymous(this="to_microseconds", expressions=[number])


_EPOCH = exp.cast(exp.Literal.string("1970-01-01"), "timestamp")
_DUCKDB: _Builds = {
    # Windows are aligned to the epoch, not to time_bucket's own origin.
    TUMBLE_START: lambda args: exp.Anonymous(
        this="time_bucket", expressions=[_micros(args[1]), args[0], _EPOCH.copy()]
    ),
    SHIFTED: lambda args: exp.Add(this=args[0], expression=_micros(args[1])),
}


def _spark_tumble(args: list[exp.Expr]) -> exp.Expr:
    time, size = args
    micros = exp.Anonymous(this="unix_micros", expressions=[exp.cast(time, "timestamptz")])
    into = exp.Anonymous(this="pmod", expressions=[micros, size])
    return _spark_shift([time.copy(), exp.Neg(this=into)])


def _spark_shift(args: list[exp.Expr]) -> exp.Expr:
    return exp.Anonymous(this="timestampadd", expressions=[exp.Var(this="MICROSECOND"), args[1], args[0]])


_SPARK: _Builds = {
    "getvariable": lambda args: exp.column(args[0].name),
    TUMBLE_START: _spark_tumble,
    SHIFTED: _spark_shift,
}


def _lateral_view(select: exp.Select) -> exp.Select:
    """`SELECT unnest(a) AS e, generate_subscripts(a, 1) AS n` as `LATERAL VIEW posexplode(a)`."""
    exploded = next((item for item in select.expressions if isinstance(item.unalias(), exp.Explode)), None)
    if exploded is None:
        return select
    array = exploded.unalias().this
    items = []
    for item in select.expressions:
        bare = item.unalias()
        if isinstance(bare, exp.Explode):
            items.append(exp.alias_(exp.column("_element"), item.alias, quoted=True))
        elif isinstance(bare, exp.Anonymous) and bare.name == "generate_subscripts":
            position = exp.Add(this=exp.column("_place"), expression=exp.Literal.number(1))
            items.append(exp.alias_(exp.cast(position, "bigint"), item.alias, quoted=True))
        else:
            items.append(item)
    select.set("expressions", items)
    names = [exp.to_identifier("_place"), exp.to_identifier("_element")]
    alias = exp.TableAlias(this=exp.to_identifier("_unnested"), columns=names)
    exploding = exp.Anonymous(this="posexplode", expressions=[_series(array)])
    select.set("laterals", [exp.Lateral(this=exploding, view=True, alias=alias)])
    return select


def _series(array: exp.Expr) -> exp.Expr:
    """Spark's sequence counts down where PostgreSQL's series is empty."""
    if not isinstance(array, exp.GenerateSeries):
        return array
    start, end, step = array.args["start"], array.args["end"], array.args.get("step")
    ascending = exp.LTE(this=start.copy(), expression=end.copy())
    condition: exp.Expr = ascending
    if step is not None:
        zero = exp.Literal.number(0)
        descending = exp.GTE(this=start.copy(), expression=end.copy())
        condition = exp.or_(
            exp.and_(exp.GT(this=step.copy(), expression=zero), ascending, copy=False),
            exp.and_(exp.LT(this=step.copy(), expression=zero.copy()), descending, copy=False),
            copy=False,
        )
    args = [start, end] if step is None else [start, end, step]
    return exp.Case().when(condition, exp.Anonymous(this="sequence", expressions=args))
