"""PostgreSQL's hint at the column that an unknown one may mean (errorMissingColumn in parse_relation.c)."""

from __future__ import annotations

from collections.abc import Iterator

from sqlglot import exp

from sparkwave.planner.bind.merged_columns import ColumnsOf
from sparkwave.planner.parse.from_items import from_items
from sparkwave.planner.parse.identifiers import folded
from sparkwave.planner.parse.trees import alias_of

_MOST = 3  # letters that differ


def column_hint(column: exp.Expr, columns_of: ColumnsOf) -> str | None:
    """Return the hint at one or two columns of the sources around an unknown column.

    They are those with the fewest different letters, of which half are alike. None where there is none, or more.
    """
    name = folded(column.this) if isinstance(column.this, exp.Identifier) else column.name
    table = column.args.get("table")
    alias = folded(table) if isinstance(table, exp.Identifier) else ""
    found: dict[str, int] = {}
    for source, names in _sources(column, columns_of):
        penalty = _distance(source, alias) if alias else 0
        for each in names:
            letters = _distance(each, name)
            if letters <= len(name) // 2 and letters + penalty <= _MOST:
                found.setdefault(f"{source}.{each}" if source else each, letters + penalty)
    nearest = [shown for shown, distance in found.items() if distance == min(found.values())]
    if not 0 < len(nearest) <= 2:
        return None
    shown = " or the column ".join(f'"{each}"' for each in nearest)
    return f"Perhaps you meant to reference the column {shown}."


def _sources(column: exp.Expr, columns_of: ColumnsOf) -> Iterator[tuple[str, list[str]]]:
    """Yield the alias and the columns of each source, from the query around the column outwards."""
    select = column.find_ancestor(exp.Select)
    while select is not None:
        yield from ((alias_of(item), columns_of(item) or []) for item in from_items(select))
        select = select.find_ancestor(exp.Select)


def _distance(one: str, two: str) -> int:
    """Return how many letters have to be put in, taken away or changed (Levenshtein); at most one more than _MOST."""
    if abs(len(one) - len(two)) > _MOST:
        return _MOST + 1
    row = list(range(len(two) + 1))
    for place, letter in enumerate(one, start=1):
        before, row[0] = row[0], place
        for n, other in enumerate(two, start=1):
            before, row[n] = row[n], min(row[n] + 1, row[n - 1] + 1, before + (letter != other))
    return min(row[-1], _MOST + 1)
