"""Random tables and random changes of their rows."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass

from .expressions import Expressions
from .values import TYPES, literal

# Names that want quotes, that are words of SQL, that a program may use itself.
HOSTILE = (
    '"A b"', '"select"', '"q""uote"', '"naïve"', '"x.y"', '"it\'s"', '"Group"', "value", "count", "sum", "key", "row",
    "old", "new", "sign", "weight", "epoch", "n", "i", "c0", "r1", "s1", "t", '"%s"', '"$1"', "position",
    "date", "text", "index", "version", "level", "m0", "g0", "rowid", "filename",
    "snapshot",
)  # fmt: skip
PLAIN = ("k", "a", "b", "c", "d", "e", "f", "g", "h")


@dataclass(frozen=True)
class Table:
    """A table, its columns with their types, and its key."""

    name: str
    types: dict[str, str]
    key: tuple[str, ...] = ()

    @property
    def kinds(self) -> dict[str, str]:
        return {column: TYPES[type_] for column, type_ in self.types.items()}

    def create(self) -> str:
        columns = [f"{column} {type_}" for column, type_ in self.types.items()]
        columns += [f"PRIMARY KEY ({', '.join(self.key)})"] if self.key else []
        return f"CREATE TABLE {self.name} ({', '.join(columns)})"


def random_tables(chance: random.Random, schemas: tuple[str, ...]) -> list[Table]:
    """Some tables. A column of one name has one type in all of them, so that they can be joined by it."""
    names = [*PLAIN, *chance.sample(HOSTILE, 3)] if chance.random() < 0.7 else [*PLAIN, *chance.sample(HOSTILE, 12)]
    types = {name: chance.choice([*TYPES, "int", "int", "varchar"]) for name in names} | {"k": "int"}
    tables = []
    for number in range(chance.choice((2, 3, 3, 4))):
        # The same name in two schemas, at times.
        name = f"{chance.choice(schemas)}.t{number if chance.random() < 0.6 else 0}"
        if any(table.name == name for table in tables):
            name = f"{schemas[0]}.t{number}"
        if any(table.name == name for table in tables):
            continue
        columns = ["k", *chance.sample([n for n in names if n != "k"], chance.randint(2, 5))]
        chance.shuffle(columns)
        key = _random_key(chance, {column: types[column] for column in columns})
        tables.append(Table(name, {column: types[column] for column in columns}, key))
    return tables


# Kinds whose values are told apart by their text, as keys are here.
_KEY_TYPES = ("smallint", "int", "bigint", "varchar", "date", "boolean")


def _random_key(chance: random.Random, types: dict[str, str]) -> tuple[str, ...]:
    if chance.random() < 0.45:
        return ()
    fitting = [column for column, type_ in types.items() if type_ in _KEY_TYPES]
    return tuple(chance.sample(fitting, min(len(fitting), chance.choice((1, 1, 1, 2)))))


class Changes:
    """Random INSERT, UPDATE and DELETE, in transactions at times."""

    def __init__(self, chance: random.Random, tables: list[Table], extremes: bool = False) -> None:
        self.random = chance
        self.tables = tables
        self.extremes = extremes
        self.expressions = Expressions(chance, extremes)

    def some(self, number: int) -> Iterator[str]:
        """Statements that change rows, some of them in a transaction."""
        if number and self.random.random() < 0.2:
            yield "BEGIN"
            yield from (self.change() for _ in range(number))
            yield "ROLLBACK" if self.random.random() < 0.25 else "COMMIT"
        else:
            yield from (self.change() for _ in range(number))

    def change(self) -> str:
        table = self.random.choice(self.tables)
        kind = self.random.random()
        if kind < 0.55:
            return self.insert(table)
        if kind < 0.8 and len(table.types) > len(table.key):
            return self._update(table)
        if kind < 0.97:
            return f"DELETE FROM {table.name} WHERE {self.expressions.condition(table.kinds)}"
        return f"DELETE FROM {table.name}"

    def insert(self, table: Table, most: int = 4) -> str:
        rows: dict[tuple[str, ...], str] = {}
        for number in range(self.random.randint(1, most)):
            values = {column: self._value(type_, column in table.key) for column, type_ in table.types.items()}
            # One statement gives a key once, as PostgreSQL asks for.
            key = tuple(values[column] for column in table.key) or (str(number),)
            rows[key] = f"({', '.join(values.values())})"
        return f"INSERT INTO {table.name} VALUES {', '.join(rows.values())}{self._conflict(table)}"

    def _conflict(self, table: Table) -> str:
        if not table.key or self.random.random() < 0.7:
            return ""
        free = [column for column in table.types if column not in table.key]
        if not free or self.random.random() < 0.4:
            return " ON CONFLICT DO NOTHING"
        column = self.random.choice(free)
        return f" ON CONFLICT ({', '.join(table.key)}) DO UPDATE SET {column} = excluded.{column}"

    def _update(self, table: Table) -> str:
        column = self.random.choice([column for column in table.types if column not in table.key])
        type_ = table.types[column]
        value = self._value(type_, False)
        if self.random.random() < 0.4:
            value = self.expressions.of(TYPES[type_], table.kinds, 1)
        where = "" if self.random.random() < 0.05 else f" WHERE {self.expressions.condition(table.kinds)}"
        return f"UPDATE {table.name} SET {column} = {value}{where}"

    def _value(self, type_: str, is_key: bool) -> str:
        if not is_key and self.random.random() < 0.2:
            return "NULL"
        return literal(self.random, type_, self.extremes and not is_key)
