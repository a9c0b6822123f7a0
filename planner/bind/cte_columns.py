"""The names that WITH gives to columns."""

from __future__ import annotations

from sqlglot import exp

from sparkwave.catalog import errors
from sparkwave.catalog.errors import Error
from sparkwave.planner.parse.trees import position_of


def check_named_columns(tree: exp.Expr) -> None:
    """Raise Error 42P10 for a WITH query with more names of columns than columns, which sqlglot leaves out."""
    for cte in tree.find_all(exp.CTE):
        names, query = cte.args["alias"].columns, cte.this
        while isinstance(query, exp.SetOperation | exp.Subquery):
            query = query.this
        if not names or not isinstance(query, exp.Select) or any(item.is_star for item in query.selects):
            continue
        if len(query.selects) < len(names):
            available = f"{len(query.selects)} columns available but {len(names)} columns specified"
            message = f'WITH query "{cte.alias}" has {available}'
            raise Error(message, errors.INVALID_COLUMN_REFERENCE, position=position_of(cte.args["alias"].this))
