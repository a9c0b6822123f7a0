"""`WITH c AS changelog FROM t`: the changes of a table as rows.

The parser reads it as a query of the table with two calls, of the change's code and of its time, which become the
fields of a ChangeLog node here.
"""

from __future__ import annotations

from sqlglot import exp

from sparkwave.catalog import errors
from sparkwave.catalog.errors import Error
from sparkwave.catalog.types import BIGINT, SMALLINT
from sparkwave.planner.build.builder import Builder, scalar, text, typed_column
from sparkwave.planner.parse.change_log import CODE, TIME, calls_in
from sparkwave.planner.parse.trees import position_of
from sparkwave.planner.plan.nodes import ChangeLog, Field, Node


def with_change_log(
    builder: Builder, select: exp.Select, node: Node, replacements: dict[str, exp.Expr]
) -> tuple[Node, dict[str, exp.Expr]]:
    """Return the changes of the rows of a query for `changelog FROM`; of any other query its rows."""
    found = calls_in(select)
    if not found:
        return node, replacements
    code, time = Field(builder.fresh("code"), SMALLINT), Field(builder.fresh("time"), BIGINT)
    fields = {CODE: code, TIME: time}
    named = {text(scalar(call)): typed_column(fields[name].name, fields[name].type) for name, call in found}
    return ChangeLog(node, code, time), replacements | named


def refuse_change_logs(tree: exp.Expr) -> None:
    """Raise Error 0A000 for a client's own query of changes."""
    for cte in tree.find_all(exp.CTE):
        if isinstance(cte.this, exp.Select) and calls_in(cte.this):
            raise Error(
                "changelog FROM is not supported in a query",
                errors.FEATURE_NOT_SUPPORTED,
                hint="Materialized views and sinks can have it.",
                position=position_of(cte),
            )
