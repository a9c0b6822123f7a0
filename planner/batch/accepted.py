"""The syntax that statements other than views may have, which is more than in a view, since DuckDB runs them.

The tables are a view's (`planner.build.handled`), plus the syntax that DuckDB reads as PostgreSQL does, and the
statements that change rows. Other syntax is refused: an argument that sqlglot reads reaches DuckDB only if it is listed
here.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from sqlglot import exp

from sparkwave.catalog import errors
from sparkwave.catalog.errors import Error
from sparkwave.planner.build.handled import SYNTAX, Syntax, unhandled

_of = Syntax.of

_MORE: dict[type[exp.Expr], str] = {
    exp.Select: "sample", exp.Subquery: "sample", exp.Table: "ordinality sample", exp.Lateral: "ordinality",
    exp.Values: "order limit offset", exp.CurrentTimestamp: "this", exp.Localtimestamp: "this",
}  # fmt: skip
_LOCK = dict.fromkeys(("update", "expressions", "wait", "key"), "a query locks nothing")
_NOT_OF_A_TABLE = {"order": "ORDER BY", "limit": "LIMIT", "hint": "a hint"}

_STATEMENTS: dict[type[exp.Expr], Syntax] = {
    exp.Insert: _of(  # within MERGE; any other is read by `planner.parse.writes`
        "this expression", **dict.fromkeys(exp.Insert.arg_types.keys() - {"this", "expression"}, "this INSERT"),
    ),
    exp.Update: _of("with_ this expressions from_ where returning", **_NOT_OF_A_TABLE, options="OPTION"),
    exp.Delete: _of(
        "with_ this using where returning", **_NOT_OF_A_TABLE, tables="a list of tables", cluster="ON CLUSTER",
    ),
    exp.Merge: _of("this using on whens with_", using_cond="USING", returning="RETURNING"),
    exp.Whens: _of("expressions"),
    exp.When: _of("matched condition then", source="BY SOURCE"),
    exp.OnConflict: _of(
        "expressions action conflict_keys constraint where", duplicate="ON DUPLICATE KEY",
        index_predicate="a condition of an index",
    ),
    exp.Returning: _of("expressions", into="INTO"),
    exp.Schema: _of("this expressions"),
    exp.Lock: _of("", _LOCK),
    exp.TableSample: _of(
        "method percent seed size", expressions="a list", rows="ROWS", bucket_numerator="BUCKET",
        bucket_denominator="BUCKET", bucket_field="BUCKET",
    ),
}  # fmt: skip

QUERY_SYNTAX: dict[type[exp.Expr], Syntax] = {
    **SYNTAX,
    **{kind: replace(SYNTAX[kind], handled=SYNTAX[kind].handled | {*more.split()}) for kind, more in _MORE.items()},
    **_STATEMENTS,
}

# PostgreSQL's syntax. The error for any other refused syntax is a syntax error.
_OF_POSTGRES: Mapping[type[exp.Expr], str] = {
    exp.Kwarg: "an argument by name",
    exp.PropertyEQ: "an argument by name",
    exp.Variadic: "VARIADIC",
}
_OTHERS_OF_POSTGRES = frozenset(
    {"SELECT INTO", "SEARCH", "CYCLE", "ROWS FROM", "ESCAPE of anything but LIKE", "RETURNING"}
)
_REFUSED = {**_OF_POSTGRES, exp.Pivot: "PIVOT"}


def check_statement(tree: exp.Expr) -> None:
    """Raise Error 0A000 for PostgreSQL's syntax that is not supported, 42601 for that of other engines."""
    found = unhandled(tree, QUERY_SYNTAX, _REFUSED)
    if found is None:
        return
    is_known = found.what in (*_OF_POSTGRES.values(), *_OTHERS_OF_POSTGRES) or "WITHIN GROUP" in found.what
    code = errors.FEATURE_NOT_SUPPORTED if is_known else errors.SYNTAX_ERROR
    raise Error(f"{found.what} is not supported", code, position=found.position)
