"""Cases: the statements of a seed, and files of them.

A case is a list of SQL statements, which both servers get, and words for the one that plays it: FLUSH brings the views
up to date and compares everything; RESTART and KILL end the server and start it again. ALTER SYSTEM and SET are not
for PostgreSQL, which has a plain view where Sparkwave has a materialized one.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from .more_changes import MoreChanges
from .more_queries import MoreQueries
from .queries import Source
from .tables import random_tables

FLUSH, RESTART, KILL = "FLUSH", "RESTART", "KILL"
CREATE_VIEW, ALTER_VIEW = "CREATE MATERIALIZED VIEW ", "ALTER MATERIALIZED VIEW "
SCHEMAS = ("s1", "s2")
_WITHOUT_POSTGRES = "-- Not for PostgreSQL.\n"


@dataclass(frozen=True)
class Case:
    """Statements, what they are called, and whether PostgreSQL knows all of it."""

    title: str
    statements: tuple[str, ...]
    on_postgres: bool = True

    def text(self) -> str:
        return ("" if self.on_postgres else _WITHOUT_POSTGRES) + ";\n".join(self.statements) + ";\n"


def read(path: Path) -> Case:
    text = path.read_text()
    body = "\n".join(line for line in text.splitlines() if not line.startswith("--")) + "\n"
    statements = tuple(part.strip() for part in body.split(";\n") if part.strip())
    return Case(path.stem, statements, not text.startswith(_WITHOUT_POSTGRES))


@dataclass(frozen=True)
class EnginePath:
    """A way through the engines: parameters of the system, and what happens in between."""

    name: str
    parameters: tuple[str, ...]
    views: int = 5
    epochs: int = 6
    ends: tuple[str, ...] = ()  # how the server may end in between
    alters: bool = False  # whether views get their queries by ALTER … AS
    modes: tuple[str, ...] = ()  # of refreshing, in turn

    def mode(self, epoch: int) -> tuple[str, ...]:
        """The mode of refreshing that begins with this epoch, if there is one."""
        return (self.modes[epoch % len(self.modes)],) if self.modes else ()


_IN_PROCESS = ("backfill_engine = auto", "streaming_engine = duckdb", "refresh_mode = incremental")
# Views as epochs leave them in memory, and as a checkpoint stores them.
_VISIBILITY = ("all", "all", "checkpoint")
PATHS = {
    path.name: path
    for path in (
        EnginePath("process", _IN_PROCESS),
        EnginePath("refresh", _IN_PROCESS, modes=("full", "incremental", "full")),
        EnginePath("alter", _IN_PROCESS, views=4, alters=True),
        EnginePath("kill", _IN_PROCESS, views=4, epochs=4, ends=(RESTART, KILL)),
        EnginePath(
            "spark-fill", ("backfill_engine = spark", "streaming_engine = duckdb", "backfill_slice_rows = 3"), epochs=3
        ),
        EnginePath("spark-epochs", ("backfill_engine = spark", "streaming_engine = spark"), views=4, epochs=2),
    )
}


def random_case(seed: int, path: EnginePath) -> Case:
    chance = random.Random(f"{path.name} {seed}")
    on_postgres = chance.random() < 0.9
    return Case(f"{path.name}_{seed}", tuple(_statements(chance, path, on_postgres)), on_postgres)


def _statements(chance: random.Random, path: EnginePath, on_postgres: bool) -> Iterator[str]:
    extremes = chance.random() < 0.25
    tables = random_tables(chance, SCHEMAS)
    changes = MoreChanges(chance, tables, extremes)
    queries = MoreQueries(chance, [Source(table.name, table.kinds) for table in tables], extremes, on_postgres)
    yield from (f"ALTER SYSTEM SET {parameter}" for parameter in path.parameters)
    yield from (table.create() for table in tables)
    yield from (changes.insert(table, 6) for table in tables)
    for number in range(path.views):
        name = f"{chance.choice(SCHEMAS)}.v{number}"
        if path.alters:
            table = chance.choice(tables)
            yield f"{CREATE_VIEW}{name} AS SELECT {', '.join(table.types)} FROM {table.name}"
            yield changes.change()
            yield f"{ALTER_VIEW}{name} AS {queries.view(name)}"
        else:
            yield f"{CREATE_VIEW}{name} AS {queries.view(name)}"
        yield from changes.some(chance.choice((0, 1, 1)))
    yield FLUSH
    for epoch in range(path.epochs):
        yield from (f"ALTER SYSTEM SET refresh_mode = {mode}" for mode in path.mode(epoch))
        yield from changes.some(chance.randint(0, 5))
        if path.ends and chance.random() < 0.6:
            yield chance.choice(path.ends)
        yield f"SET visibility_mode = {_VISIBILITY[epoch % len(_VISIBILITY)]}"
        yield FLUSH
