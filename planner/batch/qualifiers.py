"""A qualifier names a source: `doc.a` is no field of a document, which DuckDB would give."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from sqlglot import exp

from sparkwave.catalog import errors
from sparkwave.catalog.errors import Error
from sparkwave.catalog.model import Relation
from sparkwave.planner.parse.identifiers import folded
from sparkwave.planner.parse.trees import position_of, source_names


def check_qualifiers(tree: exp.Expr, relations: Callable[[], Iterable[Relation] | None]) -> None:
    """Raise Error 42P01 for a column that is qualified by a column of json or jsonb.

    `relations` returns those that the tree reads, None where there are others.
    """
    qualified: dict[str, exp.Expr] = {}
    for column in tree.find_all(exp.Column):
        table = column.args.get("table")
        if isinstance(table, exp.Identifier) and column.args.get("db") is None:
            qualified.setdefault(folded(table), table)
    known = {name.lower() for name in source_names(tree)}
    unknown = {name: table for name, table in qualified.items() if name.lower() not in known}
    for relation in (relations() or ()) if unknown else ():
        for each in relation.visible:
            if each.name in unknown and each.type.name in ("json", "jsonb") and not each.type.dimensions:
                message = f'missing FROM-clause entry for table "{each.name}"'
                raise Error(message, errors.UNDEFINED_TABLE, position=position_of(unknown[each.name]))
