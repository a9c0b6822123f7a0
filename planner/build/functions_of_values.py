"""Makes functions in FROM that return one value, and `range`, the elements of arrays: `FROM t, abs(t.v) AS x`."""

from __future__ import annotations

from sqlglot import exp

from sparkwave.planner.functions.operators import is_known
from sparkwave.planner.parse.set_returning import SET_RETURNING, put_into_from

# A function of `planner.functions`: the integers from one on that are before another.
NUMBERS_BEFORE = "_numbers_before"
# Functions that return rows.
_ROWS = (exp.Unnest, exp.Explode, exp.GenerateSeries, exp.ExplodingGenerateSeries, exp.AggFunc)


def unnest_values(tree: exp.Expr) -> None:
    """Make functions in FROM that return one value, and `range`, the elements of arrays, in place."""
    for source in list(tree.find_all(exp.Table, exp.Lateral)):
        function = source.this
        if not isinstance(function, exp.Func) or isinstance(function, _ROWS):
            continue
        name = (function.name if isinstance(function, exp.Anonymous) else function.sql_name()).lower()
        if name == "range" and len(function.expressions) in (2, 3):
            array: exp.Expr = exp.Anonymous(this=NUMBERS_BEFORE, expressions=function.expressions)
        elif isinstance(function, exp.Anonymous) and (name in SET_RETURNING or not is_known(function)):
            continue
        else:
            array = exp.Array(expressions=[function])
        unnest = exp.Unnest(expressions=[array], offset=bool(source.args.get("ordinality")))
        alias = source.args.get("alias") or exp.TableAlias(this=exp.to_identifier(name))
        if isinstance(source, exp.Lateral):
            source.set("this", unnest)
            source.set("alias", alias)
        else:
            unnest.set("alias", alias)
            put_into_from(source, unnest)
