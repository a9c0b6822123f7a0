"""What the planner's own SQL has that Spark spells differently: positions of unnested elements, the epoch's time."""

from __future__ import annotations

from sqlglot import exp

from planner.functions.functions import IN_RANGE


def for_spark(node: exp.Expr) -> exp.Expr:
    """A node of a planner-made tree in Spark's terms."""
    if isinstance(node, exp.Select):
        return _lateral_view(node)
    if isinstance(node, exp.Anonymous) and node.name == "getvariable":
        return exp.column(node.expressions[0].name)
    if isinstance(node, exp.Anonymous) and node.name == IN_RANGE:
        return node.expressions[0].transform(for_spark)
    return node


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
