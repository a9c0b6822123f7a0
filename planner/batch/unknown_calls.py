"""PostgreSQL's error for a call that an engine does not know with the arguments that a statement gives it."""

from __future__ import annotations

from sqlglot import exp

from sparkwave.catalog import errors
from sparkwave.catalog.errors import Error
from sparkwave.planner.batch.query import Environment, typer
from sparkwave.planner.bind.sql_functions import with_functions
from sparkwave.planner.functions.typed import with_written_numerics
from sparkwave.planner.functions.undefined import called, is_call_of, undefined_among
from sparkwave.planner.functions.written_json import with_json
from sparkwave.planner.parse.trees import locate


def unknown_call(tree: exp.Expr, name: str, error: Error, environment: Environment) -> Error:
    """Return an engine's error for a call that it does not know, or knows twice, in PostgreSQL's words.

    `name` is that of the function, or of a part of one that Sparkwave defines.
    """
    calls = [call for node in tree.walk() if (call := called(node)) is not None]
    is_part = bool(calls) and not any(is_call_of(node, name) for node in tree.walk())
    found = _among(tree, "" if is_part else name, environment)
    if found is not None and error.sqlstate == errors.AMBIGUOUS_FUNCTION:
        message = found.message.replace("does not exist", "is not unique")
        return Error(message, error.sqlstate, hint=error.hint, position=found.position)
    if found is None and is_part:
        names = sorted({function for function, _ in calls})
        message = f"function {' or '.join(names)} does not exist with these arguments"
        found = Error(message, error.sqlstate, hint=error.hint)
    error.position = locate(tree, name)
    return found or error


def _among(tree: exp.Expr, name: str, environment: Environment) -> Error | None:
    """Return the error for the calls of a function, or of any; None where several may be meant."""
    tree = with_functions(tree, environment.catalog, environment.scope).copy()
    tree = with_json(with_written_numerics(tree))
    nodes = [node for node in tree.walk() if (is_call_of(node, name) if name else called(node))]
    places = [place for place in typer(environment)(tree, nodes) if place is not None]
    return undefined_among(places) if len(places) == len(nodes) else None
