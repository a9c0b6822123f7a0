"""Prints sqlglot trees as DuckDB's SQL."""

from __future__ import annotations

from collections.abc import Iterable

from sqlglot import exp

from sparkwave.planner.functions.duckdb_spelling import for_duckdb, rewrite_leaves_first


class Sql(str):
    """SQL with the names of the relations that it reads, each as often as it is read.

    Who makes the SQL knows the names, so nobody has to look for them in the text.
    """

    reads: tuple[str, ...]

    def __new__(cls, text: str, reads: Iterable[str] = ()) -> Sql:
        made = super().__new__(cls, text)
        made.reads = tuple(reads)
        return made

    def __reduce__(self) -> tuple[type[str], tuple[str]]:
        """Let a pickled one be a plain text: Spark's workers have none of the planner's modules."""
        return str, (str(self),)


def to_sql(tree: exp.Expr, lenient: bool = True) -> Sql:
    """Return the text of a tree made by the planner; `lenient` is for views, where a row's error is NULL."""
    if lenient:
        divided = tree.transform(lenient_division) if tree.find(exp.Div) else tree.copy()
    else:
        divided = rewrite_leaves_first(_typed(tree), checked_division, copy=False)
    return text_of(for_duckdb(divided, lenient, copy=False))


def text_of(tree: exp.Expr) -> Sql:
    """Return the text of a tree that is spelled for DuckDB. The tree must not be used again."""
    reads = [table.name for table in tree.find_all(exp.Table)]
    return Sql(tree.sql(dialect="duckdb", identify=True, copy=False), reads)


def _typed(tree: exp.Expr) -> exp.Expr:
    """Return a copy in which the planner's own casts have the type of their values."""
    tree = tree.copy()
    for cast in tree.find_all(exp.Cast):
        if cast.this.type is None and isinstance(cast.this, exp.Column | exp.AggFunc | exp.Window | exp.Filter):
            cast.this.type = cast.to.copy()
    return tree


def lenient_division(node: exp.Expr) -> exp.Expr:
    """Let a division by zero in a view be NULL, as in RisingWave's streams, instead of stopping the job."""
    if isinstance(node, exp.Div) and not isinstance(node.expression, exp.Nullif | exp.Literal):
        divisor = exp.Nullif(this=node.expression.copy(), expression=exp.Literal.number(0))
        divisor.type = node.expression.type
        safe = exp.Div(this=node.this, expression=divisor, typed=node.args.get("typed"), safe=node.args.get("safe"))
        safe.type = node.type
        safe.meta.update(node.meta)
        return safe
    return node


def checked_division(node: exp.Expr, failed: exp.Expr | None = None) -> exp.Expr | None:
    """Let the divisor of a division raise where it is zero, in the tree itself: DuckDB returns NULL or infinity.

    `failed` is the expression that raises, an error of PostgreSQL's by default. Returns None, as a rule of
    `rewrite_leaves_first`.
    """
    if not isinstance(node, exp.Div | exp.Mod) or node.type is None:  # without a type it is the planner's own
        return None
    divisor = node.expression
    if isinstance(divisor, exp.Literal) and divisor.name.strip("0."):
        return None
    zero = failed or exp.cast(exp.Literal.string("!22012 division by zero"), "int")
    if failed is None and divisor.type is not None:
        zero = exp.cast(zero, divisor.type.copy())
    is_zero = exp.EQ(this=divisor.copy(), expression=exp.Literal.number(0))
    has_value = exp.Not(this=exp.paren(exp.Is(this=node.this.copy(), expression=exp.null())))
    checked = exp.Case().when(exp.and_(is_zero, has_value), zero).else_(divisor.copy())
    checked.type = divisor.type
    node.set("expression", checked)
    return None
