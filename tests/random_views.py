"""Random tables, views and changes, from a seed. Small values, so that keys meet and rows repeat."""

from __future__ import annotations

import random
from dataclasses import dataclass

TABLES = {
    "t": "CREATE TABLE t (a int, b int, s varchar, d double precision)",
    "u": "CREATE TABLE u (k int PRIMARY KEY, b int, s varchar)",
    "w": "CREATE TABLE w (k int, a int, n bigint, PRIMARY KEY (k, a))",
}
_COLUMNS = {
    "t": {"a": "int", "b": "int", "s": "text", "d": "float"},
    "u": {"k": "int", "b": "int", "s": "text"},
    "w": {"k": "int", "a": "int", "n": "int"},
}
_KEYS = {"u": ("k",), "w": ("k", "a")}


@dataclass
class Source:
    """Something a view can read: its name and its columns with their kinds."""

    name: str
    columns: dict[str, str]


class Generator:
    """Deterministic for a seed."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.sources = [Source(name, columns) for name, columns in _COLUMNS.items()]

    def view(self, name: str) -> str:
        """The query of a new view, which later ones may read."""
        query, columns = self.random.choice((self._rows, self._join, self._aggregate, self._aggregate, self._union))()
        self.sources.append(Source(name, columns))
        return query

    def _source(self, alias: str) -> tuple[str, dict[str, str]]:
        source = self.random.choice(self.sources)
        if self.random.random() < 0.2:
            columns = list(source.columns)
            inner = f"(SELECT {', '.join(columns)} FROM {source.name} WHERE {self._predicate(source.columns, '')})"
            return f"{inner} AS {alias}", {f"{alias}.{c}": kind for c, kind in source.columns.items()}
        return f"{source.name} AS {alias}", {f"{alias}.{c}": kind for c, kind in source.columns.items()}

    def _rows(self) -> tuple[str, dict[str, str]]:
        table, columns = self._source("x")
        items, outputs = self._items(columns)
        return f"SELECT {items} FROM {table} WHERE {self._predicate(columns)}", outputs

    def _joined(self) -> tuple[str, dict[str, str]]:
        left, left_columns = self._source("x")
        right, right_columns = self._source("y")
        pairs = [(a, b) for a, ka in left_columns.items() for b, kb in right_columns.items() if ka == kb != "float"]
        a, b = self.random.choice(pairs or [("1", "1")])
        columns = left_columns | right_columns
        if self.random.random() < 0.3:
            return f"{left}, {right} WHERE {a} = {b} AND {self._predicate(columns)}", columns
        extra = f" AND {self._predicate(columns)}" if self.random.random() < 0.3 else ""
        return f"{left} JOIN {right} ON {a} = {b}{extra}", columns

    def _join(self) -> tuple[str, dict[str, str]]:
        tables, columns = self._joined()
        items, outputs = self._items(columns)
        return f"SELECT {items} FROM {tables}", outputs

    def _aggregate(self) -> tuple[str, dict[str, str]]:
        if self.random.random() < 0.4:
            tables, columns = self._joined()
        else:
            tables, columns = self._source("x")
            tables += f" WHERE {self._predicate(columns)}" if self.random.random() < 0.5 else ""
        plain = [c for c, kind in columns.items() if kind != "float"]
        keys = self.random.sample(plain, self.random.choice((0, 1, 1, 1, 2)) if len(plain) > 1 else 1)
        outputs = {f"g{n}": columns[key] for n, key in enumerate(keys)}
        items = [f"{key} AS g{n}" for n, key in enumerate(keys)]
        for number in range(self.random.randint(1, 3)):
            call, kind = self._call(columns)
            items.append(f"{call} AS m{number}")
            outputs[f"m{number}"] = kind
        query = f"SELECT {', '.join(items)} FROM {tables}"
        if keys:
            query += f" GROUP BY {', '.join(keys)}"
            query += " HAVING count(*) > 1" if self.random.random() < 0.2 else ""
        return query, outputs

    def _call(self, columns: dict[str, str]) -> tuple[str, str]:
        column, kind = self.random.choice(list(columns.items()))
        condition = f" FILTER (WHERE {self._predicate(columns)})" if self.random.random() < 0.2 else ""
        if kind == "text":
            function = self.random.choice(("min", "max", "count"))
            return f"{function}({column}){condition}", "int" if function == "count" else "text"
        function = self.random.choice(("sum", "min", "max", "count", "avg", "count(*)"))
        if function == "count(*)":
            return f"count(*){condition}", "int"
        result = {"count": "int", "avg": "float"}.get(function, kind)
        return f"{function}({column}){condition}", result

    def _union(self) -> tuple[str, dict[str, str]]:
        branches = []
        for alias in ("x", "y"):
            table, columns = self._source(alias)
            ints = [c for c, kind in columns.items() if kind == "int"] or ["1"]
            branches.append(f"SELECT {self.random.choice(ints)} AS a, {self.random.choice(ints)} AS b FROM {table}")
        return " UNION ALL ".join(branches), {"a": "int", "b": "int"}

    def _items(self, columns: dict[str, str]) -> tuple[str, dict[str, str]]:
        items, outputs = [], {}
        for number, column in enumerate(self.random.sample(list(columns), min(3, len(columns)))):
            kind = columns[column]
            text = column
            if kind == "int" and self.random.random() < 0.3:
                text = self.random.choice((f"{column} + 1", f"coalesce({column}, 0)", f"{column} * 2 - 1"))
            elif kind == "text" and self.random.random() < 0.3:
                text = self.random.choice((f"upper({column})", f"coalesce({column}, 'none')"))
            items.append(f"{text} AS c{number}")
            outputs[f"c{number}"] = kind
        return ", ".join(items), outputs

    def _predicate(self, columns: dict[str, str], prefix: str = "") -> str:
        column, kind = self.random.choice(list(columns.items()))
        column = prefix + column
        if kind == "text":
            return self.random.choice(
                (f"{column} > 'b'", f"{column} IS NULL", f"{column} IS NOT NULL", f"{column} = ''")
            )
        number = self.random.randint(0, 5)
        return self.random.choice(
            (f"{column} > {number}", f"{column} <> {number}", f"{column} IS NOT NULL", f"NOT {column} <= {number}")
        )

    def change(self) -> str:
        """One INSERT, UPDATE or DELETE."""
        table = self.random.choice(list(_COLUMNS))
        kind = self.random.random()
        if kind < 0.5:
            rows = ", ".join(self._row(table) for _ in range(self.random.randint(1, 4)))
            return f"INSERT INTO {table} VALUES {rows}"
        condition = self._predicate(_COLUMNS[table])
        if kind < 0.75:
            free = [c for c in _COLUMNS[table] if c not in _KEYS.get(table, ())]
            column = self.random.choice(free)
            return f"UPDATE {table} SET {column} = {self._value(_COLUMNS[table][column])} WHERE {condition}"
        return f"DELETE FROM {table} WHERE {condition}"

    def _row(self, table: str) -> str:
        keys = _KEYS.get(table, ())
        values = [self._value(kind, name not in keys) for name, kind in _COLUMNS[table].items()]
        return f"({', '.join(values)})"

    def _value(self, kind: str, nullable: bool = True) -> str:
        if nullable and self.random.random() < 0.2:
            return "NULL"
        if kind == "int":
            return str(self.random.randint(-1, 6))
        if kind == "float":
            return str(self.random.choice((0.5, -1.25, 2.0, 3.75, 0.0)))
        return self.random.choice(("'a'", "'b'", "'c'", "''", "'żółw'"))
