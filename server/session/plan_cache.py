"""Caches plans of statements, each for as long as planning again would give the same plan.

A plan depends on its statement, the client's parameter types, the environment (catalog, scope, user, pinned snapshot)
and the settings that planning has read. The catalog is compared by identity: every change of it, privileges included,
makes a new object.
"""

from __future__ import annotations

import functools
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, fields, replace

import pyarrow as pa

from sparkwave.catalog.locks import RankedLock
from sparkwave.catalog.moment_texts import MDY
from sparkwave.catalog.types import Type
from sparkwave.planner.batch.pg_compat import prepare_text
from sparkwave.planner.batch.query import Batch, Environment
from sparkwave.planner.batch.write import Change
from sparkwave.planner.parse.constant_rows import constant_rows
from sparkwave.planner.parse.statement import parse_statement
from sparkwave.planner.parse.tokens import split_statements
from sparkwave.planner.statements import Insert, Statement
from sparkwave.server.wire.result import ResultColumn

MOST_PLANS = 512
MOST_CHARACTERS = 1 << 20  # of the texts of all plans; a plan's memory grows with its text
LONGEST_TEXT = 4096  # a longer text has a large parse tree, and its planning is a small part of its run time


class Settings(Mapping[str, str]):
    """A mapping of settings that records which of them have been read."""

    def __init__(self, get: Callable[[str], str], names: Callable[[], Iterator[str]]) -> None:
        """`get` raises KeyError for an unknown name."""
        self._get, self._names = get, names
        self.read: dict[str, str] = {}

    def __getitem__(self, name: str) -> str:
        value = self.read[name] = self._get(name)
        return value

    def __iter__(self) -> Iterator[str]:
        return self._names()

    def __len__(self) -> int:
        return sum(1 for _ in self._names())


@dataclass
class Plan:
    """A plan and its inputs, with results that are computed on first use.

    `columns` are the result's columns, `rows` the rows of a constant query, `types` the types of an INSERT's rows.
    `change` is the plan of an UPDATE, DELETE or MERGE.
    """

    statement: Statement
    environment: Environment
    batch: Batch
    read: Mapping[str, str]
    change: Change | None = None
    columns: tuple[ResultColumn, ...] | None = None
    rows: tuple[pa.RecordBatch, ...] | None = None
    types: tuple[Type, ...] | None = None

    @property
    def size(self) -> int:
        return len(self.batch.sql)

    def is_valid(self, environment: Environment) -> bool:
        """Return whether planning in `environment` would give the same plan."""
        is_same = environment is self.environment or _same(self.environment, environment)
        return is_same and self.reads_same(environment)

    def reads_same(self, environment: Environment) -> bool:
        """Return whether the settings that planning has read have the same values in `environment`."""
        settings = environment.settings
        return all(settings[name] == value for name, value in self.read.items())


_COMPARED = tuple(part.name for part in fields(Environment) if part.name not in ("catalog", "settings"))


def _same(one: Environment, other: Environment) -> bool:
    if one.catalog is not other.catalog:
        return False
    return all(getattr(one, name) == getattr(other, name) for name in _COMPARED)


class PlanCache:
    """The most recently used plans, shared by all sessions."""

    def __init__(self) -> None:
        self._plans: OrderedDict[tuple[object, ...], Plan] = OrderedDict()
        self._characters = 0
        self._lock = RankedLock()

    def plan(
        self,
        statement: Statement,
        oids: tuple[int, ...],
        environment: Environment,
        make: Callable[[Environment], Batch | Change],
    ) -> Plan:
        """Return the plan of a statement, made with `make` unless a valid one is cached. Raises the errors of `make`.

        Statements are compared by identity: `parse` returns the same object for the same text.
        """
        key = (id(statement), oids, environment.scope, environment.user.id)
        with self._lock:
            found = self._plans.get(key)
            if found is not None:
                self._plans.move_to_end(key)
        if found is not None and found.statement is statement and found.is_valid(environment):
            return found
        settings = environment.settings
        assert isinstance(settings, Settings)
        settings.read = {}
        made = make(environment)
        batch, change = (made.batch, made) if isinstance(made, Change) else (made, None)
        plan = Plan(statement, environment, batch, dict(settings.read), change)
        if plan.size > MOST_CHARACTERS // 16:  # a large plan would drive many out of the cache
            return plan
        with self._lock:
            before = self._plans.pop(key, None)
            self._plans[key] = plan
            self._characters += plan.size - (before.size if before is not None else 0)
            while len(self._plans) > MOST_PLANS or self._characters > MOST_CHARACTERS:
                self._characters -= self._plans.popitem(last=False)[1].size
        return plan


def split(sql: str) -> tuple[tuple[str, int], ...]:
    """Return the statements of a text, each with its offset. Raises Error 42601."""
    if constant_rows(sql) is not None:
        return ((sql, 0),)
    return _split(sql) if len(sql) <= LONGEST_TEXT else _split.__wrapped__(sql)


def parse(sql: str, order: str = MDY) -> Statement:
    """Return the statement of a text. It is shared and must not be changed. Raises Error.

    `order` is the session's order of day, month and year in dates.
    """
    found = constant_rows(sql)
    if found is None:
        return parse_all(sql, order)
    insert = parse_all(found.form, order)
    return replace(insert, rows=found) if isinstance(insert, Insert) else insert


@functools.lru_cache(maxsize=MOST_PLANS)
def _split(sql: str) -> tuple[tuple[str, int], ...]:
    pieces = split_statements(prepare_text(sql))
    return tuple((sql[offset : offset + len(text)], offset) for text, offset in pieces)


def parse_all(sql: str, order: str = MDY) -> Statement:
    """Parse like `parse`, but keep every row of an INSERT in the parse tree."""
    return _parse(sql, order) if len(sql) <= LONGEST_TEXT else _parse.__wrapped__(sql, order)


@functools.lru_cache(maxsize=MOST_PLANS)
def _parse(sql: str, order: str) -> Statement:
    return parse_statement(prepare_text(sql), order)
