"""PostgreSQL's error for a call of a function that does not exist with these arguments."""

from __future__ import annotations

from collections.abc import Iterable

from sqlglot import exp

from sparkwave.catalog import errors
from sparkwave.catalog.errors import Error
from sparkwave.planner.functions.operators import type_of_part


def undefined(name: str, arguments: Iterable[exp.Expr], position: int | None = None) -> Error:
    """Return Error 42883 for a call, with the types of its arguments where they are known."""
    types = ", ".join(str(type_of_part(argument.unnest()) or "unknown") for argument in arguments)
    message = f"function {name}({types}) does not exist"
    return Error(message, errors.UNDEFINED_FUNCTION, hint=errors.NO_FUNCTION, position=position)
