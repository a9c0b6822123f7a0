"""The rules by which sinks write tables, computed independently row by row, after any changes cut into any epochs."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from test_law import NoEpochs, opened, run

from sparkwave.executor.sinks import first_delivery
from sparkwave.server.context import Context
from sparkwave.server.dispatch import Client

Row = tuple[Any, ...]
OVERWRITE, IGNORE, FILL_UP = "overwrite", "do nothing", "do update if not null"
FORCED = "type = 'append-only', force_append_only = 'true'"
SEEDS = [1, 2, 3]


@pytest.fixture(autouse=True)
def _small_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(first_delivery, "STEP_ROWS", 7)


@dataclass
class Table:
    """A table with the columns k, a, b, v that follows its ON CONFLICT, one row after the other."""

    action: str = OVERWRITE
    has_version: bool = False
    rows: dict[Any, Row] = field(default_factory=dict)

    def delete(self, keys: Iterable[Any]) -> None:
        for key in keys:
            self.rows.pop(key, None)

    def insert(self, row: Row) -> None:
        key, stored = row[0], self.rows.get(row[0])
        if stored is None:
            self.rows[key] = row
        elif self.action == IGNORE or (self.has_version and _version(row) < _version(stored)):
            pass
        elif self.action == FILL_UP:
            self.rows[key] = tuple(new if new is not None else old for old, new in zip(stored, row, strict=True))
        else:
            self.rows[key] = row

    @property
    def bag(self) -> Counter[Row]:
        return Counter(self.rows.values())

    @property
    def clause(self) -> str:
        return f"ON CONFLICT {self.action}" + (" WITH VERSION COLUMN (v)" if self.has_version else "")


def _version(row: Row) -> tuple[bool, int]:
    return row[3] is not None, row[3] or 0


@dataclass
class Bag:
    """A table without a key."""

    rows: Counter[Row] = field(default_factory=Counter)

    def delete(self, keys: Iterable[Any]) -> None:
        assert not list(keys)

    def insert(self, row: Row) -> None:
        self.rows[row] += 1

    @property
    def bag(self) -> Counter[Row]:
        return +self.rows


@dataclass
class Sink:
    """A sink's source: rows k, a, b, v by their stream key, as its table has them and as they are now."""

    query: str  # the stream key, as one column, and then the row
    removes: bool = True
    before: dict[Any, Row] = field(default_factory=dict)
    after: dict[Any, Row] = field(default_factory=dict)

    def look(self, client: Client) -> None:
        self.after = {key: tuple(row) for key, *row in run(client, self.query)}

    def changes(self, action: str) -> tuple[set[Any], list[Row]]:
        """The keys that an epoch removes, and the rows that it adds, in the order of the stream key."""
        changed = [key for key in self.before.keys() | self.after.keys() if self.before.get(key) != self.after.get(key)]
        added = [self.after[key] for key in sorted(changed) if key in self.after]
        removed = {self.before[key][0] for key in changed if key in self.before}
        self.before = self.after
        if not self.removes:
            return set(), added
        return removed if action == IGNORE else removed - {row[0] for row in added}, added


def deliver(table: Table | Bag, *sinks: Sink) -> None:
    """One epoch."""
    found = [sink.changes(table.action if isinstance(table, Table) else OVERWRITE) for sink in sinks]
    for removed, _ in found:
        table.delete(removed)
    for _, added in found:
        for row in added:
            table.insert(row)


def epoch(context: Context, act: Callable[[], None]) -> None:
    """Let exactly one epoch take up what `act` does."""
    held = NoEpochs(context)
    context.coordinator.flush(lambda: False)
    held.begin()
    try:
        act()
    finally:
        held.end()
    context.coordinator.flush(lambda: False)


class Changes:
    """Random changes of a table with the columns s (its key), k, a, b, v."""

    def __init__(self, seed: int, table: str = "src", keys: int = 8) -> None:
        self.random, self.table, self.keys = random.Random(seed), table, keys

    def row(self) -> str:
        pick = self.random.choice
        a, b, v = pick(("NULL", "1", "2", "3")), pick(("NULL", "'x'", "'y'")), pick(("NULL", "1", "2", "3"))
        return f"{self.random.randrange(self.keys)}, {a}, {b}, {v}"

    def statement(self) -> str:
        s, (k, a, b, v) = self.random.randrange(30), self.row().split(", ")
        return self.random.choice(
            (
                f"INSERT INTO {self.table} VALUES ({s}, {k}, {a}, {b}, {v})",
                f"INSERT INTO {self.table} VALUES ({s}, {k}, {a}, {b}, {v}), ({s + 1}, {k}, {v}, {b}, {a})",
                f"UPDATE {self.table} SET a = {a}, v = {v} WHERE s % 5 = {s % 5}",
                f"UPDATE {self.table} SET k = {k} WHERE s = {s}",
                f"UPDATE {self.table} SET k = {self.keys} - 1 - k WHERE s % 4 = {s % 4}",
                f"DELETE FROM {self.table} WHERE s % 6 = {s % 6}",
                f"DELETE FROM {self.table} WHERE k = {k}",
            )
        )

    def statements(self) -> Iterator[str]:
        for _ in range(self.random.randint(1, 6)):
            yield self.statement()


def fill(client: Client, changes: Changes) -> None:
    run(client, f"CREATE TABLE {changes.table} (s int PRIMARY KEY, k int, a int, b varchar, v int)")
    for s in range(25):
        run(client, f"INSERT INTO {changes.table} VALUES ({s}, {changes.row()})")


def columns_of(client: Client, table: str) -> Counter[Row]:
    return Counter(run(client, f"SELECT k, a, b, v FROM {table}"))


OF_SOURCE = "SELECT s, k, a, b, v FROM src"


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.long
def test_each_rule_of_a_key(tmp_path: Path, seed: int) -> None:
    """Sinks whose rows the table tells apart by another key, into every kind of table."""
    changes = Changes(seed)
    upserts = {
        "plain": Table(), "ignores": Table(IGNORE), "fills": Table(FILL_UP),
        "versioned": Table(has_version=True), "fills_versioned": Table(FILL_UP, True),
    }  # fmt: skip
    kept = {"forced": Table(), "forced_fills": Table(FILL_UP), "undeleted": Table()}
    sinks = {name: Sink(OF_SOURCE, name in upserts) for name in (*upserts, *kept, "bag")}
    tables: dict[str, Table | Bag] = {**upserts, **kept, "bag": Bag()}
    options = {
        "forced": FORCED, "forced_fills": FORCED, "bag": FORCED, "undeleted": "type = 'upsert', ignore_delete = 'true'",
    }  # fmt: skip

    def check(moment: object) -> None:
        for name, table in tables.items():
            assert columns_of(client, name) == table.bag, (name, moment)
        assert dict(run(client, "SELECT k, n FROM counts")) == Counter(row[0] for row in tables["plain"].bag)

    for part in range(2):  # a restart in between
        with opened(tmp_path / "lake", streaming_engine="duckdb", backfill_engine="auto") as (context, client):
            if part == 0:
                fill(client, changes)
                for name, table in tables.items():
                    key = f"PRIMARY KEY (k)) {table.clause}" if isinstance(table, Table) else "w int)"
                    run(client, f"CREATE TABLE {name} (k int, a int, b varchar, v int, {key}")
                    with_ = f" WITH ({options[name]})" if name in options else ""
                    run(client, f"CREATE SINK into_{name} INTO {name} AS SELECT k, a, b, v FROM src{with_}")
                    sinks[name].look(client)
                    deliver(table, sinks[name])
                run(client, "CREATE MATERIALIZED VIEW counts AS SELECT k, count(*) AS n FROM plain GROUP BY k")
                check("at first")
            for number in range(6):

                def act() -> None:
                    for sql in changes.statements():
                        run(client, sql)
                    for name, table in upserts.items():  # clients write, too
                        k = changes.random.randrange(10)
                        run(client, f"DELETE FROM {name} WHERE k = {k}")
                        table.delete([k])
                        run(client, f"INSERT INTO {name} VALUES ({k - 1}, 7, 'own', NULL)")
                        table.insert((k - 1, 7, "own", None))

                epoch(context, act)
                for name, table in tables.items():
                    sinks[name].look(client)
                    deliver(table, sinks[name])
                check((part, number))
