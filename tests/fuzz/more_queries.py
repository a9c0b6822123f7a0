"""More shapes of queries: frames of every kind, row comparisons, mixed types, several WITH, LATERAL."""

from __future__ import annotations

from .expressions import APPROXIMATE, EQUAL, EXTREMAL, INTEGERS, SORTED, Columns
from .queries import Queries, Shape

_EXCLUDED = ("", "", "", " EXCLUDE CURRENT ROW", " EXCLUDE GROUP", " EXCLUDE TIES", " EXCLUDE NO OTHERS")
# Distances in a frame by the kind that it is ordered by.
_DISTANCES = {
    "smallint": ("1", "2"), "int": ("1", "2", "0"), "bigint": ("1", "3"), "numeric": ("1.5", "2"), "double": ("1.5",),
    "date": ("INTERVAL '1 day'", "INTERVAL '2 months'"), "timestamp": ("INTERVAL '1 minute'", "INTERVAL '1 day'"),
    "timestamptz": ("INTERVAL '90 seconds'", "INTERVAL '1 day'"), "time": ("INTERVAL '1 hour'",),
}  # fmt: skip
_MIXED = (("int", "bigint"), ("int", "numeric"), ("smallint", "int"), ("int", "double"), ("date", "timestamp"))
_WIDER = {pair: pair[1] for pair in _MIXED}


class MoreQueries(Queries):
    """As `Queries`, with more shapes."""

    def _shapes(self) -> list[Shape]:
        return [
            *super()._shapes(), self._frames, self._frames, self._several_distinct, self._lateral, self._recursive,
            self._chained_tables, self._mixed_set_operation, self._commas, self._column_names, self._merged,
            self._conditions_shown, self._constants_joined, self._series_counted, self._row_comparison,
            self._quantified, self._with_ties, self._ordered_aggregates, self._branches, self._aggregate_of_aggregate,
        ]  # fmt: skip

    def _some(self, *choices: str) -> str:
        return self.random.choice(choices)

    def _frames(self) -> tuple[str, Columns]:
        table, columns = self._from()
        ordered = [c for c, kind in columns.items() if kind in _DISTANCES]
        if not ordered:
            return self._window()
        by = self.random.choice(ordered)
        partition = self.expressions.column(columns, *EQUAL)
        over = f"PARTITION BY {partition} " if partition and self.random.random() < 0.6 else ""
        bounds = ["UNBOUNDED PRECEDING", "CURRENT ROW", "UNBOUNDED FOLLOWING"]
        unit = self._some("RANGE", "RANGE", "GROUPS")
        distance = self.random.choice(_DISTANCES[columns[by]]) if unit == "RANGE" else self._some("1", "2")
        bounds[1:1] = [f"{distance} PRECEDING"]
        bounds[3:3] = [f"{distance} FOLLOWING"]
        first, last = sorted(self.random.sample(range(5), 2))
        frame = f"{unit} BETWEEN {bounds[first]} AND {bounds[last]}{self.random.choice(_EXCLUDED)}"
        value = self.random.choice([c for c, kind in columns.items() if kind in EXTREMAL] or [by])
        kind = columns[value]
        calls = [("count(*)", "bigint"), (f"count({value})", "bigint")]
        if kind not in ("int[]", "text[]"):
            calls += [(f"min({value})", kind), (f"max({value})", kind)]
        if kind in INTEGERS:
            calls += [(f"sum({value})", APPROXIMATE), (f"avg({value})", APPROXIMATE)]
        call, result = self.random.choice(calls)
        if self.random.random() < 0.25:
            call += f" FILTER (WHERE {self.expressions.condition(columns)})"
        way = self._some("", " DESC") if unit == "RANGE" else self._some("", " DESC", " NULLS FIRST")
        items = f"{by} AS c0, {value} AS c1"
        outputs = {"c0": columns[by], "c1": kind, "w0": result, "w1": "bigint"}
        where = self._where(columns)
        if self.random.random() < 0.3:
            named = f"WINDOW w AS ({over}ORDER BY {by}{way})"
            query = f"SELECT {items}, {call} OVER (w {frame}) AS w0, rank() OVER w AS w1 FROM {table}{where} {named}"
            return query, outputs
        rank = f"rank() OVER ({over}ORDER BY {by}{way}) AS w1"
        return (
            f"SELECT {items}, {call} OVER ({over}ORDER BY {by}{way} {frame}) AS w0, {rank} FROM {table}{where}",
            outputs,
        )

    def _several_distinct(self) -> tuple[str, Columns]:
        table, columns = self._from()
        keys = [text for text, _ in self._keys(columns, 1)]
        fitting = [c for c, kind in columns.items() if kind in EQUAL]
        if not fitting:
            return self._aggregate()
        outputs: Columns = {f"g{n}": columns.get(key, "text") for n, key in enumerate(keys)}
        items = [f"{key} AS g{n}" for n, key in enumerate(keys)]
        for number in range(self.random.choice((2, 3))):
            column = self.random.choice(fitting)
            call, kind = f"count(DISTINCT {column})", "bigint"
            if columns[column] in ("int", "smallint") and self.random.random() < 0.6:
                call = self._some(f"sum(DISTINCT {column})", f"count(DISTINCT {column} + 1)")
            elif columns[column] == "text" and self.random.random() < 0.5:
                call, kind = f"string_agg(DISTINCT {column}, '|' ORDER BY {column})", "text"
            if self.random.random() < 0.4:
                call += f" FILTER (WHERE {self.expressions.condition(columns)})"
            items.append(f"{call} AS m{number}")
            outputs[f"m{number}"] = kind
        items.append("count(*) AS n")
        query = f"SELECT {', '.join(items)} FROM {table}{self._where(columns)}"
        if keys:
            query += f" GROUP BY {', '.join(keys)}"
        # What a key's kind is not known for sure is read by nobody.
        return query, {name: kind for name, kind in outputs.items() if not name.startswith("g")} | {"n": "bigint"}

    def _lateral(self) -> tuple[str, Columns]:
        table, columns = self._source()
        inner, inner_columns = self._source()
        pair = self._pair(columns, inner_columns)
        if not pair:
            return self._rows()
        mine, theirs = pair
        items, outputs = self._items(inner_columns, 2, SORTED)
        order = ", ".join(self._sort(name) for name in outputs)
        shown = self.random.choice(list(columns))
        if self.random.random() < 0.5:
            first = f"SELECT {items} FROM {inner} WHERE {theirs} = {mine} ORDER BY {order} LIMIT 1"
        else:
            call, kind = self._call(inner_columns)
            first, outputs = f"SELECT {call} AS m FROM {inner} WHERE {theirs} = {mine}", {"m": kind}
        join = self._some(f"{table}, LATERAL ({first}) AS l", f"{table} LEFT JOIN LATERAL ({first}) AS l ON true")
        listed = ", ".join(f"l.{name} AS z{n}" for n, name in enumerate(outputs))
        kinds = {f"z{n}": kind for n, kind in enumerate(outputs.values())}
        return f"SELECT {shown} AS c0, {listed} FROM {join}", {"c0": columns[shown]} | kinds

    def _recursive(self) -> tuple[str, Columns]:
        table, columns = self._source(*INTEGERS)
        column = self.expressions.column(columns, *INTEGERS)
        if not column:
            return self._rows()
        union = self._some("UNION ALL", "UNION")
        steps = f"SELECT {column}::int, 0 FROM {table} {union} SELECT n + 1, depth + 1 FROM r WHERE depth < 3 AND n < 4"
        query = f"WITH RECURSIVE r (n, depth) AS ({steps}) SELECT n, count(*) AS m, max(depth) AS d FROM r GROUP BY n"
        return query, {"n": "int", "m": "bigint", "d": "int"}

    def _chained_tables(self) -> tuple[str, Columns]:
        """A WITH of two, the second over the first."""
        inner, columns = self.random.choice((self._rows, self._aggregate, self._window))()
        known = {name: kind for name, kind in columns.items() if kind != APPROXIMATE}
        keys = [name for name, kind in known.items() if kind in EQUAL]
        if not keys:
            return inner, columns
        key = self.random.choice(keys)
        how = self._some("", "", " MATERIALIZED", " NOT MATERIALIZED")
        second = f"SELECT {key} AS x, count(*) AS y FROM p WHERE {self.expressions.condition(known)} GROUP BY {key}"
        last = self._some(
            "SELECT x, y FROM o",
            f"SELECT o.x, p.{key} AS y FROM o LEFT JOIN p ON p.{key} = o.x",
            f"SELECT {key} AS x, 1 AS y FROM p WHERE {key} NOT IN (SELECT x FROM o)",
            "SELECT x, (SELECT count(*) FROM p) AS y FROM o",
        )
        return f"WITH p AS{how} ({inner}), o AS ({second}) {last}", {"x": columns[key]}

    def _mixed_set_operation(self) -> tuple[str, Columns]:
        pair = self.random.choice(_MIXED)
        branches = []
        for kind in (*pair, self.random.choice(pair)):
            table, columns = self._from()
            items = f"{self.expressions.of(kind, columns, 1)} AS a, {self.expressions.of('text', columns, 1)} AS b"
            branches.append(f"SELECT {items} FROM {table}{self._where(columns)}")
        one, two = (
            self._some("UNION ALL", "UNION", "INTERSECT", "EXCEPT", "INTERSECT ALL", "EXCEPT ALL") for _ in range(2)
        )
        first, second, third = branches
        query = self._some(
            f"{first} {one} ({second} {two} {third})",
            f"({first} {one} {second}) {two} {third}",
            f"({first}) {one} {second}",
            f"{first} {one} {second} ORDER BY a, b LIMIT 3",
            f"{first} {one} (SELECT a, b FROM ({second}) AS z ORDER BY b, a DESC LIMIT 2)",
        )
        return query, {"a": _WIDER[pair], "b": "text"}

    def _commas(self) -> tuple[str, Columns]:
        one, columns = self._source()
        two, others = self._source()
        three, more = self._source()
        pair, joined = self._pair(columns, others), self._pair(others, more)
        if not pair or not joined:
            return self._rows()
        kind = self._some("JOIN", "LEFT JOIN", "FULL JOIN", "RIGHT JOIN")
        both = columns | others | more
        items, outputs = self._items(both, 4)
        where = f"{pair[0]} = {pair[1]} AND {self.expressions.condition(both)}"
        return f"SELECT {items} FROM {one}, {two} {kind} {three} ON {joined[0]} = {joined[1]} WHERE {where}", outputs

    def _column_names(self) -> tuple[str, Columns]:
        """A relation whose alias has names for its columns."""
        source, alias = self.random.choice(self.sources), self._alias()
        names = [f"n{number}" for number in range(self.random.randint(1, len(source.columns)))]
        kinds = dict(zip(names, source.columns.values(), strict=False))
        rest = dict(list(source.columns.items())[len(names) :])
        columns = {f"{alias}.{name}": kind for name, kind in (kinds | rest).items()}
        items, outputs = self._items(columns)
        inner = source.name
        if self.random.random() < 0.4:
            inner = f"(SELECT {', '.join(source.columns)} FROM {source.name})"
        return f"SELECT {items} FROM {inner} AS {alias} ({', '.join(names)}){self._where(columns)}", outputs

    def _merged(self) -> tuple[str, Columns]:
        """USING, with what is merged grouped by, filtered, aggregated, or joined on."""
        one, columns = self._source()
        two, others = self._source()
        using = self._shared(columns, others)
        if not using:
            return self._rows()
        names = self.random.sample(using, min(self.random.choice((1, 1, 2)), len(using)))
        kind = self._some("JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN")
        text = f"{one} {kind} {two} USING ({', '.join(names)})"
        name = names[0]
        its = next(k for c, k in columns.items() if c.partition(".")[2] == name)
        if self.random.random() < 0.3:
            three, more = self._source()
            if any(c.partition(".")[2] == name and k == its for c, k in more.items()):
                text += f" {self._some('JOIN', 'LEFT JOIN', 'FULL JOIN')} {three} USING ({name})"
        elif self.random.random() < 0.3:
            three, more = self._source()
            text = self._some(f"{three}, {text}", f"{three} CROSS JOIN ({text})")
            if any(c.partition(".")[2] == name for c in more):
                return self._rows()
        shape = self.random.random()
        if shape < 0.4:
            return f"SELECT {name} AS x, count(*) AS n FROM {text} GROUP BY {name}", {"x": its, "n": "bigint"}
        if shape < 0.6:
            having = f"HAVING count({name}) FILTER (WHERE {name} IS NOT NULL) > 0"
            return f"SELECT count(*) AS n, max({name}::text) AS x FROM {text} {having}", {"n": "bigint"}
        shown = self.random.choice(list(columns | others))
        where = f" WHERE {name} IS NOT NULL" if self.random.random() < 0.3 else ""
        return f"SELECT {name} AS x, {shown} AS y FROM {text}{where}", {"x": its, "y": (columns | others)[shown]}

    def _conditions_shown(self) -> tuple[str, Columns]:
        table, columns = self._source()
        items, outputs = self._items(columns, 2)
        if "f" in outputs or "h" in outputs:
            return f"SELECT {items} FROM {table}", outputs
        one, two = self._condition(columns), self._condition(columns)
        query = f"SELECT {items}, ({one}) AS f, CASE WHEN {two} THEN 1 ELSE 0 END AS h FROM {table}"
        return query, outputs | {"f": "bool", "h": "int"}

    def _constants_joined(self) -> tuple[str, Columns]:
        table, columns = self._source("int", "text")
        number, text = (self.expressions.column(columns, kind) for kind in ("int", "text"))
        on = [f"v.x = {number}"] * bool(number) + [f"v.y = {text}"] * bool(text)
        if not on:
            return self._rows()
        kind = self._some("JOIN", "LEFT JOIN", "FULL JOIN")
        shown = self.random.choice(list(columns))
        values = "(VALUES (1, 'a'), (2, NULL), (NULL, 'b'), (2, 'ab')) AS v (x, y)"
        query = f"SELECT {shown} AS c0, v.x, v.y FROM {table} {kind} {values} ON {self.random.choice(on)}"
        return query, {"c0": columns[shown], "x": "int", "y": "text"}

    def _series_counted(self) -> tuple[str, Columns]:
        table, columns = self._source("int")
        number = self.expressions.column(columns, "int") or "2"
        series = f"generate_series(1, least({number}, 4)) WITH ORDINALITY AS g (i, o)"
        query = f"SELECT {number} AS c0, g.i, g.o FROM {table} CROSS JOIN LATERAL {series}"
        return query, {"c0": "int", "i": "int", "o": "bigint"}

    def _row_comparison(self) -> tuple[str, Columns]:
        table, columns = self._source()
        inner, others = self._source()
        one, two = self._pair(columns, others), self._pair(columns, others)
        if not one or not two:
            return self._rows()
        items, outputs = self._items(columns)
        word = self._some("IN", "NOT IN")
        condition = f"({one[0]}, {two[0]}) {word} (SELECT {one[1]}, {two[1]} FROM {inner})"
        if self.random.random() < 0.3:
            condition = f"({one[0]}, {two[0]}) {self._some('=', '<>', '<', '>=')} ({two[0]}, {one[0]})"
            if columns[one[0]] != columns[two[0]]:
                condition = f"({one[0]}, 1) < ({one[0]}, 2)"
        return f"SELECT {items} FROM {table} WHERE {condition}", outputs

    def _quantified(self) -> tuple[str, Columns]:
        table, columns = self._source()
        inner, others = self._source()
        pair = self._pair(columns, others)
        if not pair:
            return self._rows()
        items, outputs = self._items(columns)
        comparison = self._some("= ANY", "<> ALL", "= SOME", "> ALL", "<= ANY")
        where = f" WHERE {self.expressions.condition(others)}" if self.random.random() < 0.5 else ""
        return (
            f"SELECT {items} FROM {table} WHERE {pair[0]} {comparison} (SELECT {pair[1]} FROM {inner}{where})",
            outputs,
        )

    def _with_ties(self) -> tuple[str, Columns]:
        table, columns = self._from()
        items, outputs = self._items(columns, 3, SORTED)
        name = next(iter(outputs))
        rows = self._some("FETCH FIRST 2 ROWS WITH TIES", "FETCH NEXT ROW WITH TIES")
        return f"SELECT {items} FROM {table}{self._where(columns)} ORDER BY {self._sort(name)} {rows}", outputs

    def _ordered_aggregates(self) -> tuple[str, Columns]:
        """Ordered by other columns than they collect."""
        table, columns = self._from()
        plain = [c for c, kind in columns.items() if kind in SORTED]
        value = self.expressions.column(columns, "int", "text")
        if not plain or not value:
            return self._aggregate()
        key, other = self.random.choice(plain), self.random.choice(plain)
        order = f"ORDER BY {self._sort(other)}, {self._sort(value)}"
        kind = columns[value]
        calls = [(f"array_agg({value} {order})", f"{kind}[]"), (f"(array_agg({value} {order}))[1]", kind)]
        if kind == "text":
            calls += [(f"string_agg({value}, ';' {order})", "text")]
        call, result = self.random.choice(calls)
        query = f"SELECT {key} AS x, {call} AS y FROM {table}{self._where(columns)} GROUP BY {key}"
        return query, {"x": columns[key], "y": result}

    def _branches(self) -> tuple[str, Columns]:
        """Sums of CASE, as reports have them."""
        table, columns = self._from()
        keys = [text for text, _ in self._keys(columns, 1) if text in columns]
        number = self.expressions.column(columns, *INTEGERS) or "1"
        condition = self.expressions.condition(columns)
        items = [f"{key} AS g{n}" for n, key in enumerate(keys)]
        items += [f"sum(CASE WHEN {condition} THEN {number} ELSE 0 END) AS s", "count(*) * 2 AS n"]
        items += [f"coalesce(max({number}), -1) AS h", f"count(nullif({number}, 1)) AS o"]
        query = f"SELECT {', '.join(items)} FROM {table}" + (f" GROUP BY {', '.join(keys)}" if keys else "")
        order = self._some("", " HAVING sum(1) > 1", f" HAVING max({number}) IS NOT NULL")
        return query + order, {f"g{n}": columns[key] for n, key in enumerate(keys)} | {"n": "bigint", "o": "bigint"}

    def _aggregate_of_aggregate(self) -> tuple[str, Columns]:
        table, columns = self._from()
        keys = [c for c, kind in columns.items() if kind in EQUAL]
        if not keys:
            return self._aggregate()
        key = self.random.choice(keys)
        number = self.expressions.column(columns, "int") or "1"
        inner = (
            f"SELECT {key} AS x, count(*) AS n, max({number}) AS m FROM {table}{self._where(columns)} GROUP BY {key}"
        )
        outer = self._some(
            "SELECT n, count(*) AS c, count(DISTINCT x) AS d FROM i GROUP BY n",
            "SELECT max(n) AS n, sum(n) AS c, min(m) AS d FROM i",
            "SELECT n, m AS c, count(*) OVER (PARTITION BY n) AS d FROM i",
            "SELECT n, sum(m) AS c, rank() OVER (ORDER BY n) AS d FROM i GROUP BY n",
        )
        return outer.replace("FROM i", f"FROM ({inner}) AS i"), {"n": "bigint"}
