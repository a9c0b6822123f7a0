"""Four tables that tests know by name, random queries over them, and scripts of such views and changes."""

from __future__ import annotations

import random
from collections.abc import Iterator

from .cases import CREATE_VIEW, FLUSH
from .queries import Queries, Source
from .tables import Changes, Table

TABLES = (
    Table("t", {"a": "int", "b": "int", "s": "varchar", "d": "double precision"}),
    Table("u", {"k": "int", "b": "int", "s": "varchar"}, ("k",)),
    Table("w", {"k": "int", "a": "int", "n": "bigint"}, ("k", "a")),
    Table("x", {"a": "int", "arr": "int[]", "at": "timestamp", "f": "boolean"}),
)


def queries(chance: random.Random) -> Queries:
    return Queries(chance, [Source(table.name, table.kinds) for table in TABLES], on_postgres=False)


def changes(chance: random.Random) -> Changes:
    return Changes(chance, list(TABLES))


def script(seed: int, views: int, epochs: int) -> Iterator[str]:
    """Tables, views, and changes of which each FLUSH ends an epoch. A view may be refused, and those that read it."""
    chance = random.Random(seed)
    of_views, of_rows = queries(chance), changes(chance)
    yield from (table.create() for table in TABLES)
    yield from (of_rows.change() for _ in range(6))
    for number in range(views):
        yield f"{CREATE_VIEW}v{number} AS {of_views.view(f'v{number}')}"
        yield of_rows.change()
    yield FLUSH
    for _ in range(epochs):
        yield from (of_rows.change() for _ in range(chance.randint(0, 4)))
        yield FLUSH
    yield from (f"DROP MATERIALIZED VIEW IF EXISTS v{number}" for number in reversed(range(views)))
    yield from (f"DROP TABLE {table.name}" for table in TABLES)
