"""The SQL by which a view's change is computed, whichever engine runs it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from executor.advance import Application, View, applications, own_application
from executor.program import Check, Program
from planner.delta.compiler import VIEW_CHANGES

# The SQL of what queries read, by name.
Bound = Mapping[str, str]


@dataclass(frozen=True)
class Script:
    """Tables to make in this order, by name with their SQL, each of which may read those before it.

    `applications` are of the states and then of the view, over some of these tables; `changes` is the view's. `checks`
    find the rows for which an expression failed.
    """

    tables: tuple[tuple[str, str], ...]
    applications: tuple[Application, ...]
    changes: str
    checks: tuple[Check, ...]


def script(view: View, made: Program, bound: Bound) -> Script:
    """A program over what is bound. What only one step reads is a part of that step."""
    changes, bound = f"j{view.relation.id}_changes", dict(bound)
    tables = []
    for step in made.steps:
        query = within(step.query, bound)
        if step.name == VIEW_CHANGES:
            tables.append((changes, query))
        elif step.name in made.shared:
            tables.append((step.name, query))
        else:
            bound[step.name] = query
    *states, _ = applications(view, made)
    for item, apply in zip(states, made.applies[:-1], strict=True):
        tables.append((item.removed, within(apply.removed, bound)))
        tables.append((item.added.rows, within(apply.added, bound)))
    applied = (*states, own_application(view, changes))
    return Script(tuple(tables), applied, changes, bound_checks(made.checks, bound))


def bound_checks(checks: Iterable[Check], bound: Bound) -> tuple[Check, ...]:
    """Checks over what is bound."""
    return tuple(replace(c, count=within(c.count, bound), failing=within(c.failing, bound)) for c in checks)


def within(query: str, bound: Bound) -> str:
    """The query with what it reads in front of it: a view of the lake would be one more statement that looks there."""
    read = [f"{name} AS NOT MATERIALIZED ({rows})" for name, rows in bound.items() if f'"{name}"' in query]
    return f"WITH {', '.join(read)} FROM ({query})" if read else query
