"""What is refused in the query of a new view or sink, as in a client's own query; stored definitions may have it."""

from __future__ import annotations

from sqlglot import exp

from sparkwave.planner.batch.query import Environment, check_reads, check_types, typer
from sparkwave.planner.batch.untyped_literals import check_literals


def check_definition(query: exp.Query, environment: Environment) -> None:
    """Raise the errors of `check_reads`, `check_types` and `check_literals` for the query of a CREATE statement."""
    check_reads(query, environment)
    query, typed = query.copy(), typer(environment)
    check_types(query, environment, typed)
    check_literals(query, typed)
