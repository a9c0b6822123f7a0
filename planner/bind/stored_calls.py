"""Calls of users' functions in defaults, generated columns and CHECK, which are stored as text.

The text names each function with its schema, so that it means the same function for every session.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable

from sqlglot import exp

from sparkwave.catalog import errors
from sparkwave.catalog.errors import Error
from sparkwave.catalog.model import Catalog, Column
from sparkwave.catalog.users import User
from sparkwave.planner.bind.privileges import check
from sparkwave.planner.bind.scopes import Scope
from sparkwave.planner.bind.sql_functions import calls, with_functions
from sparkwave.planner.functions.typed import data_type, with_written_numerics
from sparkwave.planner.functions.unstable import mutable_call
from sparkwave.planner.functions.written_json import with_json
from sparkwave.planner.parse.generated import expression_of
from sparkwave.planner.parse.trees import parse_tree

DEFAULT, CHECK, GENERATED = "DEFAULT expressions", "check constraints", "column generation expressions"
_SELECT = "SELECT "


def stored_text(text: str, place: str, columns: Iterable[Column], catalog: Catalog, scope: Scope, user: User) -> str:
    """Return an expression over columns for a place, `DEFAULT`, `CHECK` or `GENERATED`, with its functions' schemas.

    Raises Error 42501 for a function that the user may not call, 42803 for an aggregate, 0A000 for one of rows or with
    a query, 42P17 in a generated column for one whose value is not a function of the row, and those of `calls`.
    """
    if not _names_function(text, catalog):
        return text
    tree = _over(parse_tree(f"{_SELECT}{text}").expressions[0], columns)
    edits: dict[int, tuple[int, str]] = {}
    for node, function in calls(tree, catalog, scope):
        check(catalog, user, function.securable, "EXECUTE")
        if function.is_aggregate:
            raise Error(f"aggregate functions are not allowed in {place}", errors.GROUPING_ERROR)
        if function.columns is not None:
            raise Error(f"set-returning functions are not allowed in {place}", errors.FEATURE_NOT_SUPPORTED)
        if isinstance(node, exp.Anonymous):
            written = node.this.sql(dialect="postgres") if isinstance(node.this, exp.Identifier) else node.this
            start = node.meta["start"] - len(_SELECT)
            edits[start] = start + len(written), function.qualified_name
    inlined = with_functions(tree, catalog, scope)
    if inlined.expressions[0].find(exp.Query) is not None:
        message = f"functions whose body is a query are not supported in {place}"
        raise Error(message, errors.FEATURE_NOT_SUPPORTED)
    if place == GENERATED and (changing := mutable_call(inlined.expressions[0])) is not None:
        detail = f"The value of {changing.sql(dialect='postgres').lower()} is not a function of the row."
        raise Error("generation expression is not immutable", errors.INVALID_OBJECT_DEFINITION, detail=detail)
    for start, (stop, name) in sorted(edits.items(), reverse=True):
        text = f"{text[:start]}{name}{text[stop:]}"
    return text


def with_calls(text: str, columns: Iterable[Column], catalog: Catalog, scope: Scope) -> exp.Expr:
    """Return the tree of a stored expression over columns, with the bodies of the functions that it calls."""
    if not _names_function(text, catalog):
        return expression_of(text).copy()
    tree = with_functions(_over(parse_tree(f"{_SELECT}{text}").expressions[0], columns), catalog, scope)
    return with_json(with_written_numerics(tree)).expressions[0].unalias()


def refuse_calls(texts: Iterable[str], catalog: Catalog, what: str) -> None:
    """Raise Error 0A000 for an expression that calls a user's function, where none can be called."""
    if any(_names_function(text, catalog) for text in texts):
        raise Error(f"users' functions are not supported in {what}", errors.FEATURE_NOT_SUPPORTED)


def _names_function(text: str, catalog: Catalog) -> bool:
    """Return whether an expression has a call by the name of a function."""
    names: Collection[str] = {function.name for function in catalog.functions}
    return bool(names) and any(call.name.lower() in names or call.name in names for call in _calls(text))


def _calls(text: str) -> Iterable[exp.Anonymous]:
    return expression_of(text).find_all(exp.Anonymous)


def _over(value: exp.Expr, columns: Iterable[Column]) -> exp.Select:
    """Return a query of an expression over a row with these columns, whose types choose among functions of a name."""
    nulls = [exp.alias_(exp.cast(exp.null(), data_type(column.type)), column.name, quoted=True) for column in columns]
    query = exp.select(value)
    return query.from_(exp.select(*nulls).subquery("stored")) if nulls else query
