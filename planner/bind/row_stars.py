"""`ROW(t.*, 1)`: the fields of a row are those of a source."""

from __future__ import annotations

from sqlglot import exp

from sparkwave.catalog import errors
from sparkwave.catalog.errors import Error
from sparkwave.planner.bind.merged_columns import ColumnsOf
from sparkwave.planner.parse.from_items import from_items
from sparkwave.planner.parse.identifiers import folded
from sparkwave.planner.parse.row_values import is_row
from sparkwave.planner.parse.trees import alias_of, position_of


def expand_row_stars(tree: exp.Expr, columns_of: ColumnsOf) -> None:
    """Replace each `t.*` in a row constructor by the columns of its source, in the tree itself.

    Raises Error 0A000 where they cannot be told.
    """
    for row in list(tree.find_all(exp.Anonymous)):
        stars = [item for item in row.expressions if isinstance(item, exp.Column) and isinstance(item.this, exp.Star)]
        if not stars or not is_row(row):
            continue
        values = (
            columns_of_star(item, columns_of) if any(item is s for s in stars) else [item] for item in row.expressions
        )
        row.set("expressions", [value for each in values for value in each])


def columns_of_star(star: exp.Column, columns_of: ColumnsOf) -> list[exp.Expr]:
    """Return the columns that `t.*` stands for."""
    select, table = star.find_ancestor(exp.Select), star.args["table"]
    sources = from_items(select) if select is not None else []
    source = next((each for each in sources if alias_of(each) == folded(table)), None)
    names = columns_of(source) if source is not None else None
    if names is None:
        message = f"{table.sql(dialect='postgres')}.* in a row is not supported here"
        raise Error(message, errors.FEATURE_NOT_SUPPORTED, position=position_of(table))
    return [exp.column(exp.to_identifier(name, quoted=True), table=table.copy()) for name in names]
