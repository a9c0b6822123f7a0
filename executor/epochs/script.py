"""The SQL by which a view's change is computed, whichever engine runs it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from sparkwave.executor.epochs.advance import Application, View, applications, own_application
from sparkwave.executor.epochs.delta_programs import Check, Program
from sparkwave.planner.delta.compiler import VIEW_CHANGES

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
    return _script(view, made, bound, made.shared | {VIEW_CHANGES}, f"j{view.relation.id}", "")


def script_of_few(view: View, made: Program, bound: Bound) -> Script:
    """The same for few changes: what only one table reads is a part of its query, for each statement has its price.

    The names of the tables are the view's and the program's.
    """
    name = f"j{view.relation.id}_{made.name}"
    return _script(view, made, bound, made.apart, name, f"{name}_")


def _script(view: View, made: Program, bound: Bound, are_tables: frozenset[str], name: str, prefix: str) -> Script:
    changes, parts, tables = f"{name}_changes", _parts(bound), []
    for step in made.steps:
        if step.name not in are_tables:
            parts[step.name] = _once(step.query) if step.name in made.shared else _inlined(step.query)
            continue
        table = changes if step.name == VIEW_CHANGES else f"{prefix}{step.name}"
        tables.append((table, _with(step.query, parts)))
        parts[step.name] = _inlined(f"FROM {table}")
    *states, _ = applications(view, made, name)
    for item, apply in zip(states, made.applies[:-1], strict=True):
        tables.append((item.removed, _with(apply.removed, parts)))
        tables.append((item.added.rows, _with(apply.added, parts)))
    applied = (*states, own_application(view, changes))
    return Script(tuple(tables), applied, changes, _checks(made.checks, parts))


def bound_checks(checks: Iterable[Check], bound: Bound) -> tuple[Check, ...]:
    """Checks over what is bound."""
    return _checks(checks, _parts(bound))


def within(query: str, bound: Bound) -> str:
    """The query with what it reads in front of it: a view of the lake would be one more statement that looks there."""
    return _with(query, _parts(bound))


def _checks(checks: Iterable[Check], parts: Mapping[str, str]) -> tuple[Check, ...]:
    return tuple(replace(c, count=_with(c.count, parts), failing=_with(c.failing, parts)) for c in checks)


def _parts(bound: Bound) -> dict[str, str]:
    return {name: _inlined(rows) for name, rows in bound.items()}


def _inlined(query: str) -> str:
    return f"AS NOT MATERIALIZED ({query})"


def _once(query: str) -> str:
    return f"AS MATERIALIZED ({query})"


def _with(query: str, parts: Mapping[str, str]) -> str:
    """The query with those parts in front of it that it reads, each of which may read those before it."""
    read: list[str] = []
    texts = [query]
    for name, part in reversed(list(parts.items())):
        if any(f'"{name}"' in text for text in texts):
            texts.append(part)
            read.insert(0, f"{name} {part}")
    return f"WITH {', '.join(read)} FROM ({query})" if read else query
