"""Names of columns are compared with their case, which DuckDB ignores: "K" is not the column k."""

from __future__ import annotations

from collections.abc import Iterator, Set

from sqlglot import exp

from sparkwave.catalog import errors
from sparkwave.catalog.errors import Error
from sparkwave.planner.bind.column_hints import column_hint
from sparkwave.planner.bind.merged_columns import ColumnsOf
from sparkwave.planner.parse.from_items import columns_written, from_items
from sparkwave.planner.parse.identifiers import folded
from sparkwave.planner.parse.trees import alias_of, position_of


def check_exact_names(tree: exp.Expr, names: Set[str], columns_of: ColumnsOf) -> None:
    """Raise Error 42703 for a column that differs in case alone from another name.

    The names are `names`, those of all columns read, and those of the outputs in the tree. `columns_of` names the
    columns of a source in FROM.
    """
    known: dict[str, set[str]] = {}
    for each in (*names, *_outputs(tree)):
        known.setdefault(each.lower(), set()).add(each)
    for column in tree.find_all(exp.Column):
        name = folded(column.this) if isinstance(column.this, exp.Identifier) else None
        if name is None or known.get(name.lower(), {name}) == {name} or _is_target(column):
            continue
        if _is_there(column, name, columns_of):
            continue
        table = column.args.get("table")
        shown = f"{folded(table)}.{name}" if isinstance(table, exp.Identifier) else f'"{name}"'
        hint = column_hint(column, columns_of)
        message = f"column {shown} does not exist"
        raise Error(message, errors.UNDEFINED_COLUMN, hint=hint, position=position_of(column))


def _outputs(tree: exp.Expr) -> Iterator[str]:
    """Yield the names that outputs and sources in FROM give to columns."""
    for node in tree.find_all(exp.Alias, exp.TableAlias):
        if isinstance(node, exp.TableAlias):
            yield from (folded(each) for each in node.columns if isinstance(each, exp.Identifier))
        elif isinstance(node.args["alias"], exp.Identifier):
            yield folded(node.args["alias"])


def _is_target(column: exp.Expr) -> bool:
    """Return whether an UPDATE assigns to a column, which is looked up in its table alone."""
    return (
        isinstance(column.parent, exp.EQ) and column.arg_key == "this" and isinstance(column.parent.parent, exp.Update)
    )


def _is_there(column: exp.Expr, name: str, columns_of: ColumnsOf) -> bool:
    """Return whether a query around a column may have it: in a source, also an unknown one, or as an output."""
    select = column.find_ancestor(exp.Select)
    if select is None:
        return any(alias.name == name for alias in column.root().find_all(exp.Alias, exp.TableAlias))
    while select is not None:
        for item in from_items(select):
            columns, alias = columns_of(item) or columns_written(item) or None, item.args.get("alias")
            given = [folded(each) for each in alias.columns] if isinstance(alias, exp.TableAlias) else []
            if columns is None or name in columns or name in given or alias_of(item) == name:
                return True
        if any(isinstance(item, exp.Alias) and folded(item.args["alias"]) == name for item in select.selects):
            return True
        select = select.find_ancestor(exp.Select)
    return False
