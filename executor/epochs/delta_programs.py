"""Delta programs and full queries of views, as SQL text.

Parse trees are large, so only the text is kept, for as long as its plan lives.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import wraps
from typing import Concatenate, ParamSpec, TypeVar
from weakref import WeakKeyDictionary

from sparkwave.catalog.names import quote
from sparkwave.catalog.stores.view_checksums import row_hash
from sparkwave.planner.backfill.fragments import FillQuery, first_rows, more_rows
from sparkwave.planner.delta.checks import Check as PlannedCheck
from sparkwave.planner.delta.checks import fill_checks
from sparkwave.planner.delta.compiler import VIEW_CHANGES, compile_delta
from sparkwave.planner.delta.looked_up import Columns, Reduction
from sparkwave.planner.functions.emit import Sql, to_sql
from sparkwave.planner.functions.raising import or_raise, raised, unguarded
from sparkwave.planner.plan.nodes import WEIGHT
from sparkwave.planner.plan.stream_plan import StreamPlan

P = ParamSpec("P")
T = TypeVar("T")


@dataclass(frozen=True)
class Step:
    """A step of a delta program (`planner.delta.program.Step`), as SQL."""

    name: str
    query: Sql
    drives_join: bool


@dataclass(frozen=True)
class Apply:
    """The change of a state or view (`planner.delta.program.Apply`), as SQL; `columns` are the columns of `added`."""

    state: str | None
    key: tuple[str, ...]
    present: frozenset[str]
    columns: tuple[str, ...]
    removed: Sql
    added: Sql


@dataclass(frozen=True)
class Check:
    """A check (`planner.delta.checks.Check`), as SQL: `count` counts the failed rows, `failing` fails at such a row.

    `some` is a cheaper query, which has a row if the count may not be 0.
    """

    some: Sql
    count: Sql
    failing: Sql
    is_of_changes: bool

    @property
    def queries(self) -> tuple[Sql, Sql]:
        """The two queries, as a task takes them."""
        return self.count, self.failing


@dataclass(frozen=True)
class Program:
    """A delta program (`planner.delta.program.DeltaProgram`), as SQL.

    Programs of a plan with equal names make tables with equal columns.

    `read` are the names of the relations that the program reads, with those for which `reductions` stand. `shared` are
    the steps that are read more than once. `apart` are the shared steps that more than one of the tables to make reads,
    the steps that change states, and the steps that drive joins.
    """

    name: str
    steps: tuple[Step, ...]
    applies: tuple[Apply, ...]
    checks: tuple[Check, ...]
    read: frozenset[str]
    shared: frozenset[str]
    apart: frozenset[str]
    lookups: Mapping[str, tuple[Columns, ...]]
    reductions: Mapping[str, tuple[str, Reduction]]


@dataclass(frozen=True)
class Added:
    """A query of the rows to add to a state, or to the view if `state` is None.

    `raising` is the query in the form of `planner.functions.raising.or_raise`.
    """

    state: str | None
    columns: tuple[str, ...]
    query: Sql
    raising: Sql


def _kept(made: Callable[Concatenate[StreamPlan, P], T]) -> Callable[Concatenate[StreamPlan, P], T]:
    """Keep the result, by plan and other arguments."""
    by_plan: WeakKeyDictionary[StreamPlan, dict[object, T]] = WeakKeyDictionary()

    @wraps(made)
    def kept(plan: StreamPlan, *rest: P.args, **named: P.kwargs) -> T:
        of_plan, key = by_plan.setdefault(plan, {}), (rest, tuple(named.items()))
        if key not in of_plan:
            of_plan[key] = made(plan, *rest, **named)
        return of_plan[key]

    return kept


@_kept
def program(
    plan: StreamPlan, changed: frozenset[str], retracts: bool, without_nulls: frozenset[str] = frozenset(),
    reduces: bool = False,
) -> Program:  # fmt: skip
    """Return the delta program for the inputs that changed; `without_nulls` and `reduces` as in `compile_delta`."""
    compiled = compile_delta(plan, changed, retracts, True, without_nulls, reduces)
    steps = tuple(Step(step.name, to_sql(step.query), step.drives_join) for step in compiled.steps)
    applies = tuple(
        Apply(
            item.state, item.key, item.present, tuple(select.alias_or_name for select in item.added.selects),
            to_sql(item.removed), to_sql(item.added),
        )
        for item in compiled.applies
    )  # fmt: skip
    checks = tuple(_check(check, has_weight=True) for check in compiled.checks)
    queries = [step.query for step in steps] + [query for item in applies for query in (item.removed, item.added)]
    queries += [check.count for check in checks]
    read = Counter(name for query in queries for name in query.reads)
    shared = frozenset(step.name for step in steps if read[step.name] > 1)
    applied = frozenset(name for item in applies[:-1] for name in (*item.removed.reads, *item.added.reads))
    apart = _apart(steps, shared, applied, [check.count for check in checks])
    apart |= {step.name for step in steps if step.drives_join}
    name = "_".join([*sorted(changed), *["retracts"] * retracts])
    names = frozenset(read) | {whole for name, (whole, _) in compiled.reductions.items() if name in read}
    return Program(name, steps, applies, checks, names, shared, apart, compiled.lookups, compiled.reductions)


def _apart(
    steps: Sequence[Step], shared: Collection[str], applied: Collection[str], checks: Sequence[Sql]
) -> frozenset[str]:
    """Return the steps that are `applied` to states, and the shared ones that more than one table or check reads.

    A step without a table is part of the query that reads it.
    """
    readers: dict[str, set[object]] = {step.name: set() for step in steps}
    for number, query in enumerate(checks):
        for name in readers.keys() & set(query.reads):
            readers[name].add(number)
    apart = set()
    for step in reversed(steps):
        parts = readers[step.name]
        if step.name == VIEW_CHANGES or step.name in applied or (step.name in shared and len(parts) > 1):
            apart.add(step.name)
            parts = {step.name}
        for name in readers.keys() & set(step.query.reads) - {step.name}:
            readers[name] |= parts
    return frozenset(apart)


def _check(check: PlannedCheck, has_weight: bool) -> Check:
    """Return a check as SQL.

    For changes, an arriving row counts as often as it arrives more than it leaves, because an operator below may
    replace equal rows.
    """
    conditions = [condition for part in check.parts if (condition := raised(part)) is not None]
    given = to_sql(check.rows)
    rows = f"({given}) AS s WHERE ({' OR '.join(conditions)})"
    raising = ", ".join(f"count({unguarded(part)})" for part in check.parts)
    if has_weight:
        fields = ", ".join(quote(field.name) for field in check.fields) or "1"
        arrived = f"SELECT sum({WEIGHT}) AS n FROM {rows} GROUP BY {fields} HAVING sum({WEIGHT}) > 0"
        rows = f"{rows} AND {WEIGHT} > 0"
        count = f"SELECT coalesce(sum(n), 0) FROM ({arrived})"
    else:
        count = f"SELECT count(*) FROM {rows}"
    failing = f"SELECT {raising} FROM (SELECT * FROM {rows} LIMIT 1) AS s"
    some, count, failing = (Sql(text, given.reads) for text in (f"SELECT 1 FROM {rows}", count, failing))
    return Check(some, count, failing, check.is_of_changes)


@_kept
def new_checks(plan: StreamPlan) -> tuple[Check, ...]:
    """Return the checks for inputs all of whose rows are new."""
    return checks_of(fill_checks(plan))


def checks_of(planned: Iterable[PlannedCheck]) -> tuple[Check, ...]:
    """Return checks as SQL, for rows all of which are new."""
    return tuple(_check(check, has_weight=False) for check in planned)


@_kept
def whole(plan: StreamPlan) -> tuple[Added, ...]:
    """Return the queries that compute a view's states and then the view in full, over all rows of its inputs."""
    return tuple(Added(*_texts(item)) for item in first_rows(plan))


def _texts(item: FillQuery) -> tuple[str | None, tuple[str, ...], Sql, Sql]:
    """Return the fields of Added."""
    return item.target, item.columns, to_sql(item.query), or_raise(item.query)


@_kept
def hash_of_row(plan: StreamPlan) -> str:
    """Return SQL of the hash of a row of the view."""
    return row_hash(plan.types_in(None))


@_kept
def more(plan: StreamPlan, inputs: tuple[str, ...]) -> tuple[Added, ...]:
    """Return the queries of the rows that more rows of some inputs add to a view.

    The view has no operator that needs several rows together.
    """
    return tuple(Added(*_texts(item)) for item in more_rows(plan, inputs))
