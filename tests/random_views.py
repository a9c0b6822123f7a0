"""Random tables, views and changes, from a seed. Small values, so that keys meet and rows repeat.

Every query here has one right answer: what depends on an order is ordered by all that tells rows apart.
"""

from __future__ import annotations

import random
from dataclasses import dataclass

TABLES = {
    "t": "CREATE TABLE t (a int, b int, s varchar, d double precision)",
    "u": "CREATE TABLE u (k int PRIMARY KEY, b int, s varchar)",
    "w": "CREATE TABLE w (k int, a int, n bigint, PRIMARY KEY (k, a))",
    "x": "CREATE TABLE x (a int, arr int[], at timestamp, f boolean)",
}
_COLUMNS = {
    "t": {"a": "int", "b": "int", "s": "text", "d": "float"},
    "u": {"k": "int", "b": "int", "s": "text"},
    "w": {"k": "int", "a": "int", "n": "int"},
    "x": {"a": "int", "arr": "array", "at": "time", "f": "bool"},
}
_KEYS = {"u": ("k",), "w": ("k", "a")}
_JOINS = ("JOIN", "JOIN", "LEFT JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN")

Columns = dict[str, str]


@dataclass
class Source:
    """Something a view can read: its name and its columns with their kinds."""

    name: str
    columns: Columns


class Generator:
    """Deterministic for a seed."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.sources = [Source(name, columns) for name, columns in _COLUMNS.items()]
        self.aliases = 0

    def view(self, name: str) -> str:
        """The query of a new view, which later ones may read."""
        shape = self.random.choice(
            (
                self._rows, self._rows, self._aggregate, self._aggregate, self._aggregate, self._set_operation,
                self._distinct, self._first_rows, self._window, self._group_top_n, self._unnest, self._grouping_sets,
                self._common_table, self._tumble,
            )
        )  # fmt: skip
        query, columns = shape()
        self.sources.append(Source(name, columns))
        return query

    # FROM and WHERE.

    def _alias(self) -> str:
        self.aliases += 1
        return f"r{self.aliases}"

    def _source(self, kinds: tuple[str, ...] = ()) -> tuple[str, Columns]:
        """A table, view or subquery that has columns of these kinds."""
        fitting = [s for s in self.sources if all(kind in s.columns.values() for kind in kinds)]
        source, alias = self.random.choice(fitting), self._alias()
        columns = {f"{alias}.{c}": kind for c, kind in source.columns.items()}
        if self.random.random() < 0.15:
            inner = f"SELECT {', '.join(source.columns)} FROM {source.name} WHERE {self._simple(source.columns)}"
            return f"({inner}) AS {alias}", columns
        return f"{source.name} AS {alias}", columns

    def _from(self) -> tuple[str, Columns]:
        if self.random.random() < 0.45:
            return self._source()
        left, columns = self._source(("int",))
        for _ in range(self.random.choice((1, 1, 1, 2))):
            right, right_columns = self._source(("int",))
            if self.random.random() < 0.15:
                third, third_columns = self._source(("int",))
                right = f"({right} {self._join(right_columns, third, third_columns)})"
                right_columns = right_columns | third_columns
            left = f"{left} {self._join(columns, right, right_columns)}"
            columns |= right_columns
        return left, columns

    def _join(self, columns: Columns, right: str, right_columns: Columns) -> str:
        kind = self.random.choice(_JOINS)
        if self.random.random() < 0.05:
            return f"CROSS JOIN {right}"
        one, other = self._of(columns, "int"), self._of(right_columns, "int")
        if self.random.random() < 0.1 and kind == "JOIN":
            return f"JOIN {right} ON {one} < {other}"
        equal = "IS NOT DISTINCT FROM" if self.random.random() < 0.15 and kind != "FULL JOIN" else "="
        extra = ""
        if self.random.random() < 0.3 and kind != "FULL JOIN":
            extra = f" AND {self._simple(columns | right_columns)}"
        return f"{kind} {right} ON {one} {equal} {other}{extra}"

    def _where(self, columns: Columns) -> str:
        if self.random.random() < 0.4:
            return ""
        return f" WHERE {self._condition(columns)}"

    def _condition(self, columns: Columns) -> str:
        if "int" not in columns.values() or self.random.random() < 0.6:
            return self._simple(columns)
        inner, inner_columns = self._source(("int",))
        mine, theirs = self._of(columns, "int"), self._of(inner_columns, "int")
        correlated = f"{self._of(inner_columns, 'int')} = {self._of(columns, 'int')}"
        local = self._simple(inner_columns)
        return self.random.choice(
            (
                f"{mine} IN (SELECT {theirs} FROM {inner} WHERE {local})",
                f"{mine} NOT IN (SELECT {theirs} FROM {inner} WHERE {local})",
                f"{mine} NOT IN (SELECT {theirs} FROM {inner} WHERE {correlated})",
                f"EXISTS (SELECT 1 FROM {inner} WHERE {correlated} AND {local})",
                f"NOT EXISTS (SELECT 1 FROM {inner} WHERE {correlated} AND {theirs} <> {mine})",
                f"EXISTS (SELECT 1 FROM {inner} WHERE {local})",
                f"{mine} > (SELECT avg({theirs}) FROM {inner})",
                f"{mine} <= (SELECT count(*) FROM {inner} WHERE {correlated})",
                f"({self._simple(columns)} OR EXISTS (SELECT 1 FROM {inner} WHERE {correlated}))",
                f"({mine} IN (SELECT {theirs} FROM {inner})) IS NOT TRUE",
            )
        )

    def _simple(self, columns: Columns) -> str:
        column, kind = self.random.choice(list(columns.items()))
        number = self.random.randint(0, 5)
        choices = {
            "text": (f"{column} > 'b'", f"{column} IS NULL", f"{column} IS NOT NULL", f"{column} = ''"),
            "bool": (column, f"NOT {column}", f"{column} IS NULL"),
            "time": (f"{column} > TIMESTAMP '2024-02-29 00:00:30'", f"{column} IS NOT NULL"),
            "array": (f"{column} IS NOT NULL", f"{column} IS NULL"),
        }
        numeric = (
            f"{column} > {number}",
            f"{column} <> {number}",
            f"{column} IS NOT NULL",
            f"NOT {column} <= {number}",
        )
        return self.random.choice(choices.get(kind, numeric))

    def _of(self, columns: Columns, kind: str) -> str:
        return self.random.choice([c for c, k in columns.items() if k == kind])

    # Shapes of queries.

    def _rows(self) -> tuple[str, Columns]:
        table, columns = self._from()
        items, outputs = self._items(columns)
        if "int" in columns.values() and self.random.random() < 0.2:
            inner, inner_columns = self._source(("int",))
            call = self.random.choice(("max({})", "count({})", "sum({})", "min({})", "1 + count(DISTINCT {})"))
            condition = f"{self._of(inner_columns, 'int')} = {self._of(columns, 'int')}"
            items += f", (SELECT {call.format(self._of(inner_columns, 'int'))} FROM {inner} WHERE {condition}) AS q"
            outputs |= {"q": "int"}
        return f"SELECT {items} FROM {table}{self._where(columns)}", outputs

    def _items(self, columns: Columns, number: int = 3) -> tuple[str, Columns]:
        items, outputs = [], {}
        for place, column in enumerate(self.random.sample(list(columns), min(number, len(columns)))):
            kind = columns[column]
            text = column
            if kind == "int" and self.random.random() < 0.3:
                text = self.random.choice(
                    (f"{column} + 1", f"coalesce({column}, 0)", f"CASE WHEN {column} > 2 THEN {column} END")
                )
            elif kind == "text" and self.random.random() < 0.3:
                text = self.random.choice((f"upper({column})", f"coalesce({column}, 'none')"))
            items.append(f"{text} AS c{place}")
            outputs[f"c{place}"] = kind
        return ", ".join(items), outputs

    def _aggregate(self) -> tuple[str, Columns]:
        table, columns = self._from()
        plain = [c for c, kind in columns.items() if kind in ("int", "text", "bool", "time")]
        keys = self.random.sample(plain, min(self.random.choice((0, 1, 1, 1, 2)), len(plain)))
        outputs = {f"g{n}": columns[key] for n, key in enumerate(keys)}
        items = [f"{key} AS g{n}" for n, key in enumerate(keys)]
        for number in range(self.random.randint(1, 3)):
            call, kind = self._call(columns)
            items.append(f"{call} AS m{number}")
            outputs[f"m{number}"] = kind
        query = f"SELECT {', '.join(items)} FROM {table}{self._where(columns)}"
        if keys:
            query += f" GROUP BY {', '.join(keys)}"
        query += " HAVING count(*) > 1" if self.random.random() < 0.2 else ""
        return query, outputs

    def _call(self, columns: Columns) -> tuple[str, str]:
        column, kind = self.random.choice(list(columns.items()))
        condition = f" FILTER (WHERE {self._simple(columns)})" if self.random.random() < 0.2 else ""
        choices = {
            "text": (
                ("min({})", "text"), ("max({})", "text"), ("count({})", "int"), ("count(DISTINCT {})", "int"),
                ("string_agg({0}, ',' ORDER BY {0})", "text"),
                ("string_agg(DISTINCT {0}, '-' ORDER BY {0} DESC)", "text"),
                ("mode() WITHIN GROUP (ORDER BY {})", "text"),
            ),
            "bool": (("bool_and({})", "bool"), ("bool_or({})", "bool"), ("every({})", "bool"), ("count({})", "int")),
            "time": (("min({})", "time"), ("max({})", "time"), ("count(DISTINCT {})", "int")),
            "array": (("count({})", "int"),),
            "float": (("sum({})", "float"), ("min({})", "float"), ("avg({})", "float"), ("var_pop({})", "real")),
        }  # fmt: skip
        numeric = (
            ("sum({})", "int"), ("min({})", "int"), ("max({})", "int"), ("count({})", "int"), ("avg({})", "float"),
            ("count(*)", "int"), ("count(DISTINCT {})", "int"), ("sum(DISTINCT {})", "int"),
            ("stddev_samp({})", "real"),
            ("array_agg({0} ORDER BY {0})", "array"), ("array_agg(DISTINCT {0} ORDER BY {0} DESC)", "array"),
            ("percentile_cont(0.5) WITHIN GROUP (ORDER BY {})", "real"),
            ("percentile_disc(0.3) WITHIN GROUP (ORDER BY {})", "int"),
            ("first_value({0} ORDER BY {0})", "int"), ("last_value({0} ORDER BY {0})", "int"),
            ("approx_count_distinct({})", "int"), ("bool_or({} > 2)", "bool"),
        )  # fmt: skip
        template, result = self.random.choice(choices.get(kind, numeric))
        return template.format(column) + condition, result

    def _set_operation(self) -> tuple[str, Columns]:
        operator = self.random.choice(
            ("UNION ALL", "UNION ALL", "UNION", "INTERSECT", "EXCEPT", "INTERSECT ALL", "EXCEPT ALL")
        )
        branches = []
        for _ in range(2):
            table, columns = self._source(("int",))
            one, other = self._of(columns, "int"), self._of(columns, "int")
            branches.append(f"SELECT {one} AS a, {other} + 0 AS b FROM {table}{self._where(columns)}")
        return f" {operator} ".join(branches), {"a": "int", "b": "int"}

    def _distinct(self) -> tuple[str, Columns]:
        table, columns = self._from()
        items, outputs = self._items(columns)
        if self.random.random() < 0.5:
            return f"SELECT DISTINCT {items} FROM {table}{self._where(columns)}", outputs
        order = ", ".join(f"{name} DESC" if self.random.random() < 0.3 else name for name in outputs)
        return f"SELECT DISTINCT ON (c0) {items} FROM {table}{self._where(columns)} ORDER BY {order}", outputs

    def _first_rows(self) -> tuple[str, Columns]:
        table, columns = self._from()
        items, outputs = self._items(columns)
        order = ", ".join(self._sort(name) for name in outputs)
        offset = f" OFFSET {self.random.randint(1, 3)}" if self.random.random() < 0.3 else ""
        limit = self.random.randint(1, 5)
        return f"SELECT {items} FROM {table}{self._where(columns)} ORDER BY {order} LIMIT {limit}{offset}", outputs

    def _sort(self, name: str) -> str:
        return name + self.random.choice(("", "", " DESC", " NULLS FIRST", " DESC NULLS LAST"))

    def _window(self) -> tuple[str, Columns]:
        table, columns = self._from()
        plain = {c: kind for c, kind in columns.items() if kind != "array"}
        chosen = self.random.sample(list(plain), min(3, len(plain)))
        outputs = {f"c{n}": columns[c] for n, c in enumerate(chosen)}
        items = [f"{c} AS c{n}" for n, c in enumerate(chosen)]
        partition = f"PARTITION BY {chosen[0]} " if self.random.random() < 0.8 else ""
        # Equal in all that the query shows: whichever comes first, the rows are the same.
        order = f"ORDER BY {', '.join(self._sort(c) for c in chosen)}"
        whole = "ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING"
        value = self._of(plain, "int") if "int" in plain.values() else "1"
        shown = next((c for c in chosen if columns[c] == "int"), "1")
        calls = (
            (f"row_number() OVER ({partition}{order})", "int"),
            (f"rank() OVER ({partition}ORDER BY {chosen[-1]})", "int"),
            (f"dense_rank() OVER ({partition}ORDER BY {chosen[-1]} DESC)", "int"),
            (f"lag({shown}) OVER ({partition}{order})", "int"),
            (f"lead({shown}, 2, 0) OVER ({partition}{order})", "int"),
            (f"sum({value}) OVER ({partition.strip()})", "int"),
            (f"count(*) OVER ({partition}ORDER BY {chosen[-1]})", "int"),
            (f"max({shown}) OVER ({partition}{order} ROWS BETWEEN 1 PRECEDING AND 1 FOLLOWING)", "int"),
            (f"first_value({shown}) OVER ({partition}{order})", "int"),
            (f"nth_value({shown}, 2) OVER ({partition}{order} {whole})", "int"),
        )  # fmt: skip
        for number, (call, kind) in enumerate(self.random.sample(calls, self.random.choice((1, 1, 2)))):
            items.append(f"{call} AS w{number}")
            outputs[f"w{number}"] = kind
        return f"SELECT {', '.join(items)} FROM {table}{self._where(columns)}", outputs

    def _group_top_n(self) -> tuple[str, Columns]:
        table, columns = self._from()
        items, outputs = self._items({c: kind for c, kind in columns.items() if kind != "array"})
        inner = f"SELECT {items} FROM {table}{self._where(columns)}"
        order = ", ".join(self._sort(name) for name in outputs)
        numbered = f"SELECT *, row_number() OVER (PARTITION BY c0 ORDER BY {order}) AS rn FROM ({inner}) AS i"
        names = ", ".join(outputs)
        return f"SELECT {names} FROM ({numbered}) AS o WHERE rn <= {self.random.randint(1, 2)}", outputs

    def _unnest(self) -> tuple[str, Columns]:
        table, columns = self._source(("array",))
        array = self._of(columns, "array")
        other = self.random.choice([c for c in columns if c != array] or [array])
        outputs = {"c0": columns[other], "e": "int"}
        shape = self.random.random()
        if shape < 0.4:
            return f"SELECT {other} AS c0, unnest({array}) AS e FROM {table}", outputs
        if shape < 0.7:
            query = f"SELECT {other} AS c0, z.v AS e, z.o AS o FROM {table}, unnest({array}) WITH ORDINALITY AS z(v, o)"
            return query, outputs | {"o": "int"}
        table, columns = self._source(("int",))
        number = self._of(columns, "int")
        return f"SELECT {number} AS c0, g.i AS e FROM {table}, generate_series(1, {number}) AS g(i)", {
            "c0": "int",
            "e": "int",
        }

    def _grouping_sets(self) -> tuple[str, Columns]:
        table, columns = self._from()
        plain = [c for c, kind in columns.items() if kind in ("int", "text")]
        keys = self.random.sample(plain, min(2, len(plain)))
        call, kind = self._call(columns)
        grouping = self.random.choice(
            ("ROLLUP ({})", "CUBE ({})", "GROUPING SETS (({}), ())", "GROUPING SETS ((), ({}), ())")
        )
        if not keys:
            return f"SELECT {call} AS m FROM {table}", {"m": kind}
        outputs = {f"g{n}": columns[key] for n, key in enumerate(keys)} | {"m": kind, "gr": "int"}
        items = ", ".join(f"{key} AS g{n}" for n, key in enumerate(keys))
        group = grouping.format(", ".join(keys))
        where = self._where(columns)
        return f"SELECT {items}, {call} AS m, grouping({keys[0]}) AS gr FROM {table}{where} GROUP BY {group}", outputs

    def _common_table(self) -> tuple[str, Columns]:
        inner, columns = self._aggregate()
        ints = [name for name, kind in columns.items() if kind == "int"]
        if not ints:
            return inner, columns
        name = self.random.choice(ints)
        joined = f"SELECT p.{name} AS x, q.{ints[-1]} AS y FROM c AS p JOIN c AS q ON p.{name} = q.{name}"
        return f"WITH c AS ({inner}) {joined}", {"x": "int", "y": "int"}

    def _tumble(self) -> tuple[str, Columns]:
        # What has a window already has columns of its names.
        fitting = (s for s in self.sources if "time" in s.columns.values() and "window_start" not in s.columns)
        source = self.random.choice(list(fitting))
        column = next(c for c, kind in source.columns.items() if kind == "time")
        call, kind = self._call(source.columns)
        window = self.random.choice(
            (
                f"TUMBLE({source.name}, {column}, INTERVAL '1' MINUTE)",
                f"HOP({source.name}, {column}, INTERVAL '30' SECOND, INTERVAL '1 minute')",
            )
        )
        query = f"SELECT window_start, window_end, {call} AS m FROM {window} GROUP BY window_start, window_end"
        return query, {"window_start": "time", "window_end": "time", "m": kind}

    # Changes.

    def change(self) -> str:
        """One INSERT, UPDATE or DELETE."""
        table = self.random.choice(list(_COLUMNS))
        kind = self.random.random()
        if kind < 0.55:
            rows = ", ".join(self._row(table) for _ in range(self.random.randint(1, 4)))
            return f"INSERT INTO {table} VALUES {rows}"
        condition = self._simple(_COLUMNS[table])
        if kind < 0.8:
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
        if kind == "bool":
            return self.random.choice(("true", "false"))
        if kind == "time":
            return (
                f"TIMESTAMP '2024-02-29 00:0{self.random.randint(0, 1)}:{self.random.choice(('00', '15', '30', '59'))}'"
            )
        if kind == "array":
            items = [self._value("int") for _ in range(self.random.randint(0, 3))]
            return f"ARRAY[{', '.join(items)}]::int[]"
        return self.random.choice(("'a'", "'b'", "'c'", "''", "'żółw'"))
