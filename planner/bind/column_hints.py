"""PostgreSQL's hint at the column that an unknown one may mean (errorMissingColumn in parse_relation.c)."""

from __future__ import annotations

from sqlglot import exp

from sparkwave.catalog.names import closest
from sparkwave.planner.bind.merged_columns import ColumnsOf
from sparkwave.planner.parse.from_items import from_items
from sparkwave.planner.parse.trees import alias_of


def column_hint(column: exp.Expr, columns_of: ColumnsOf) -> str | None:
    """Return the hint at a column of the sources around an unknown column; None where none looks like it."""
    select = column.find_ancestor(exp.Select)
    items = from_items(select) if select is not None else []
    sources = [(alias_of(item), columns_of(item) or ()) for item in items]
    table = column.text("table").lower()
    known = [(source, name) for source, names in sources if table in ("", source.lower()) for name in names]
    meant = closest(column.name, [name for _, name in known])
    found = next((f"{source}.{name}" if source else name for source, name in known if name == meant), None)
    return f'Perhaps you meant to reference the column "{found}".' if found is not None else None
