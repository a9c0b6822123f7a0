"""The SQL that computes a view's change, for either engine."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from weakref import WeakKeyDictionary

from sparkwave.catalog.model import Relation
from sparkwave.executor.epochs.advance import Application, View, applications, own_application
from sparkwave.executor.epochs.delta_programs import Check, Program
from sparkwave.executor.memory.delta_tables import kept_table
from sparkwave.planner.delta.compiler import VIEW_CHANGES
from sparkwave.planner.functions.emit import Sql
from sparkwave.planner.plan.stream_plan import StreamPlan

# The SQL of the relations that queries read, by name.
Bound = Mapping[str, str]


@dataclass(frozen=True)
class Indexed:
    """Another query of a table's rows, which is faster if each of the relations named in `by` has few rows.

    `missing` are inputs that it would look up by an index, if they had one; it is the same query if no input has one.
    """

    query: str
    by: frozenset[str]
    missing: frozenset[str]


@dataclass(frozen=True)
class Script:
    """Tables to make in this order, as names with SQL; each may read the tables before it.

    `applications` are those of the states and then of the view, over some of these tables. For each state, `counted`
    are the tables with as many rows as it loses and gains, at most. `changes` is the table of the view's changes.
    `checks` find the rows for which an expression failed. `indexed` has queries that look rows up by indexes, by the
    names of tables.
    """

    tables: tuple[tuple[str, str], ...]
    applications: tuple[Application, ...]
    counted: tuple[tuple[str, str], ...]
    changes: str
    checks: tuple[Check, ...]
    indexed: Mapping[str, Indexed] = field(default_factory=dict)


# The last script of few changes by plan and program's name, with what it was made from.
_LAST: WeakKeyDictionary[StreamPlan, dict[str, tuple[Relation, Program, Bound, Bound, Script]]] = WeakKeyDictionary()


def script(view: View, made: Program, bound: Bound) -> Script:
    """Return the script of a program over bound relations. A step that only one other reads becomes a part of it."""
    return _script(view, made, bound, {}, made.shared | {VIEW_CHANGES}, False, f"j{view.relation.id}", "")


def script_of_few(view: View, made: Program, bound: Bound, indexed: Bound) -> Script:
    """Return the script of a program for few changes, with fewer statements, because each statement has a fixed cost.

    A step that only one table reads becomes a part of its query. The names of the tables contain the view's id and the
    program's name. `indexed` has other SQL of some of the bound relations, for look-ups by indexes. The script is kept,
    because most epochs run the script of the epoch before.
    """
    last = _LAST.setdefault(view.plan, {})
    if made.name in last:
        relation, program, was_bound, was_indexed, found = last[made.name]
        if relation is view.relation and program is made and was_bound == bound and was_indexed == indexed:
            return found
    name = kept_table(f"j{view.relation.id}_{made.name}")
    found = _script(view, made, bound, indexed, made.apart, True, name, f"{name}_")
    last[made.name] = view.relation, made, bound, indexed, found
    return found


def _script(
    view: View, made: Program, bound: Bound, indexed: Bound, are_tables: frozenset[str], are_applied_as_steps: bool,
    name: str, prefix: str,
) -> Script:  # fmt: skip
    """`are_applied_as_steps`: states are changed by the tables of steps, else by tables of their own."""
    changes, parts, tables, by_index = f"{name}_changes", _parts(bound), [], {}
    changed = {f"{scan.input}_changes" for scan in view.plan.scans}
    looked_up = {f"{name}_{age}": name for name in made.lookups for age in ("old", "new")}
    for step in made.steps:
        if step.name not in are_tables:
            parts[step.name] = _once(step.query) if step.name in made.shared else _inlined(step.query)
            continue
        table = changes if step.name == VIEW_CHANGES else f"{prefix}{step.name}"
        tables.append((table, _with(step.query, parts)))
        read = _read(step.query, parts)
        if read & (looked_up.keys() | indexed.keys()):
            by = {f"{prefix}{each}" for each in read & are_tables} | (read & changed)
            missing = {looked_up[each] for each in (read & looked_up.keys()) - indexed.keys()}
            by_index[table] = Indexed(_with(step.query, parts | _parts(indexed)), frozenset(by), frozenset(missing))
        parts[step.name] = _inlined(Sql(f"FROM {table}"))
    *items, _ = applications(view, made, name)
    states, counted = [], []
    for item, apply in zip(items, made.applies[:-1], strict=True):
        removed, added = _with(apply.removed, parts), _with(apply.added, parts)
        if are_applied_as_steps:
            [[gone], [come]] = apply.removed.reads, apply.added.reads
            counted.append((f"{prefix}{gone}", f"{prefix}{come}"))
            states.append(replace(item, removed=f"({removed})", added=replace(item.added, rows=f"({added})")))
        else:
            tables += (item.removed, removed), (item.added.rows, added)
            counted.append((item.removed, item.added.rows))
            states.append(item)
    applied = (*states, own_application(view, changes))
    return Script(tuple(tables), applied, tuple(counted), changes, _checks(made.checks, parts), by_index)


def bound_checks(checks: Iterable[Check], bound: Bound) -> tuple[Check, ...]:
    """Return checks over bound relations."""
    return _checks(checks, _parts(bound))


def within(query: Sql, bound: Bound) -> str:
    """Return a query with the relations it reads as CTEs. A view in the lake would cost one more lookup of the lake."""
    return _with(query, _parts(bound))


def _checks(checks: Iterable[Check], parts: Mapping[str, Sql]) -> tuple[Check, ...]:
    def bound(query: Sql) -> Sql:
        return Sql(_with(query, parts))

    return tuple(replace(c, some=bound(c.some), count=bound(c.count), failing=bound(c.failing)) for c in checks)


def _parts(bound: Bound) -> dict[str, Sql]:
    return {name: _inlined(Sql(rows)) for name, rows in bound.items()}


def _inlined(query: Sql) -> Sql:
    return Sql(f"AS NOT MATERIALIZED ({query})", query.reads)


def _once(query: Sql) -> Sql:
    return Sql(f"AS MATERIALIZED ({query})", query.reads)


def _read(query: Sql, parts: Mapping[str, Sql]) -> frozenset[str]:
    """Return the names that a query reads, itself or within parts that it reads."""
    names = set(query.reads)
    for name in reversed(list(parts)):
        if name in names:
            names.update(parts[name].reads)
    return frozenset(names)


def _with(query: Sql, parts: Mapping[str, Sql]) -> str:
    """Return the query with those parts as CTEs that it reads; each part may read those before it."""
    read = _read(query, parts)
    used = [f"{name} {part}" for name, part in parts.items() if name in read]
    return f"WITH {', '.join(used)} FROM ({query})" if used else str(query)
