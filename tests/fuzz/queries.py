"""Random queries of views, over tables and other views. Every query has one right answer.

What depends on an order is ordered by all that tells rows apart; floats that may differ in the last digits are shown
and decide nothing.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass

from .expressions import APPROXIMATE, EQUAL, EXTREMAL, INTEGERS, SORTED, Columns, Expressions, operand
from .tables import HOSTILE

Shape = Callable[[], tuple[str, Columns]]

_JOINS = ("JOIN", "JOIN", "LEFT JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN")

# Aggregates by the kind of their argument: the call, and the kind of its result.
_COUNTS = (("count({})", "bigint"), ("count(DISTINCT {})", "bigint"), ("count(*)", "bigint"))
# Those but averages have the precision of a double here, also of integers.
_STATISTICS = (
    ("avg({})", APPROXIMATE),
    ("stddev_samp({0}){1}::float8", APPROXIMATE),
    ("var_pop({0}){1}::float8", APPROXIMATE),
)
_OF_INTEGERS = (*_STATISTICS, ("round(stddev({0}){1}, 12)", "numeric"), ("round(var_samp({0}){1}, 4)", "numeric"))
_CALLS: dict[str, tuple[tuple[str, str], ...]] = {
    "smallint": (("sum({})", "bigint"), *_OF_INTEGERS),
    "int": (
        ("sum({})", "bigint"), ("sum({})", "bigint"), ("sum(DISTINCT {})", "bigint"), *_OF_INTEGERS,
        ("array_agg({0} ORDER BY {0})", "int[]"), ("array_agg(DISTINCT {0} ORDER BY {0} DESC)", "int[]"),
        ("percentile_cont(0.5) WITHIN GROUP (ORDER BY {})", APPROXIMATE),
        ("percentile_disc(0.3) WITHIN GROUP (ORDER BY {})", "int"), ("bool_or({} > 2)", "bool"),
        ("mode() WITHIN GROUP (ORDER BY {})", "int"), ("array_agg({0} ORDER BY {0} DESC NULLS LAST)", "int[]"),
        ("jsonb_agg({0} ORDER BY {0})", "jsonb"),
    ),
    "bigint": (("sum({})", "numeric"), ("sum(DISTINCT {})", "numeric"), ("avg({})", APPROXIMATE)),
    "numeric": (("sum({})", "numeric"), ("avg({})", APPROXIMATE), ("sum(DISTINCT {})", "numeric")),
    "real": (("sum({})", APPROXIMATE), ("avg({})", APPROXIMATE)),
    "double": (("sum({})", APPROXIMATE), *_STATISTICS),
    "bool": (("bool_and({})", "bool"), ("bool_or({})", "bool"), ("every({})", "bool")),
    "text": (
        ("string_agg({0}, ',' ORDER BY {0})", "text"), ("string_agg(DISTINCT {0}, '-' ORDER BY {0} DESC)", "text"),
        ("mode() WITHIN GROUP (ORDER BY {})", "text"), ("array_agg({0} ORDER BY {0})", "text[]"),
    ),
}  # fmt: skip


@dataclass
class Source:
    """Something a view can read: its name and its columns with their kinds."""

    name: str
    columns: Columns


class Queries:
    """Random queries; a view that is made may be read by the next ones."""

    def __init__(
        self, chance: random.Random, sources: list[Source], extremes: bool = False, on_postgres: bool = True
    ) -> None:
        self.random = chance
        self.sources = sources
        self.expressions = Expressions(chance, extremes)
        self.on_postgres = on_postgres
        self.aliases = 0

    def view(self, name: str) -> str:
        """The query of a new view, which later ones may read."""
        query, columns = self.random.choice(self._shapes())()
        self.sources.append(Source(name, columns))
        return query

    def _shapes(self) -> list[Shape]:
        """What makes queries; what is there more often is made more often."""
        return [
            self._rows, self._rows, self._rows, self._aggregate, self._aggregate, self._aggregate, self._aggregate,
            self._set_operation, self._distinct, self._first_rows, self._window, self._window, self._group_top_n,
            self._unnest, self._series, self._grouping_sets, self._common_table, self._natural, self._nested,
            *([] if self.on_postgres else [self._time_window] * 3),
        ]  # fmt: skip

    # FROM.

    def _alias(self) -> str:
        self.aliases += 1
        return f"r{self.aliases}"

    def _source(self, *kinds: str) -> tuple[str, Columns]:
        """A table, view or subquery, with a column of one of these kinds if there is one that has."""
        fitting = [s for s in self.sources if not kinds or any(kind in kinds for kind in s.columns.values())]
        # The newest ones more often, so that views are built on views.
        source = self.random.choice((fitting or self.sources) + (fitting or self.sources)[-3:])
        alias = self._alias()
        columns = {f"{alias}.{column}": kind for column, kind in source.columns.items()}
        if self.random.random() < 0.12:
            where = self.expressions.condition(source.columns)
            return f"(SELECT {', '.join(source.columns)} FROM {source.name} WHERE {where}) AS {alias}", columns
        if self.random.random() < 0.05:
            text, inner, _ = self._joined(2)
            items, outputs = self._items(inner)
            return f"(SELECT {items} FROM {text}) AS {alias}", {f"{alias}.{c}": k for c, k in outputs.items()}
        return f"{source.name} AS {alias}", columns

    def _from(self) -> tuple[str, Columns]:
        text, columns, _ = self._joined(self.random.choice((1, 1, 1, 1, 2, 2, 2, 3)))
        return text, columns

    def _joined(self, number: int) -> tuple[str, Columns, bool]:
        """That many relations joined, and whether it is more than one."""
        if number == 1:
            return *self._source(), False
        if self.random.random() < 0.08 and (same := self._same_names()):
            return *same, True
        split = self.random.randint(1, number - 1) if self.random.random() < 0.4 else number - 1
        left, left_columns, _ = self._joined(split)
        right, right_columns, is_nested = self._joined(number - split)
        right = f"({right})" if is_nested else right
        text, columns = self._join(left, left_columns, right, right_columns)
        return text, columns, True

    def _same_names(self) -> tuple[str, Columns] | None:
        """Two relations by their own names, which only their schemas tell apart if there are such."""
        named = [s for s in self.sources if "." in s.name and "k" in s.columns]
        pairs = [(a, b) for a in named for b in named if a is not b]
        same = [(a, b) for a, b in pairs if a.name.rpartition(".")[2] == b.name.rpartition(".")[2]]
        if not pairs:
            return None
        one, other = self.random.choice(same or pairs)
        columns = {f"{s.name}.{c}": kind for s in (one, other) for c, kind in s.columns.items()}
        kind = self.random.choice(("JOIN", "LEFT JOIN", "FULL JOIN"))
        return f"{one.name} {kind} {other.name} ON {one.name}.k = {other.name}.k", columns

    def _join(self, left: str, columns: Columns, right: str, others: Columns) -> tuple[str, Columns]:
        # What USING has merged has no name of its own beside another column of that name.
        sides = ((columns, others), (others, columns))
        columns, others = (
            {c: k for c, k in side.items() if "." in c or _last(c) not in map(_last, other)} for side, other in sides
        )
        both = columns | others
        kind = self.random.choice(_JOINS)
        using = self._shared(columns, others)
        if using and self.random.random() < 0.25:
            name = self.random.choice(using)
            merged = {name: next(k for c, k in columns.items() if _last(c) == name)}
            return f"{left} {kind} {right} USING ({name})", merged | both
        pair = self._pair(columns, others)
        if self.random.random() < 0.04 or not pair:
            return f"{left} CROSS JOIN {right}", both
        one, other = pair
        if self.random.random() < 0.06 and kind == "JOIN":
            return f"{left} JOIN {right} ON {one} < {other}", both
        equal = "IS NOT DISTINCT FROM" if self.random.random() < 0.12 and kind != "FULL JOIN" else "="
        extra = ""
        if self.random.random() < 0.3 and kind != "FULL JOIN":
            extra = f" AND {self.expressions.condition(both)}"
        elif self.random.random() < 0.15 and (second := self._pair(columns, others)):
            extra = f" AND {second[0]} = {second[1]}"
        return f"{left} {kind} {right} ON {one} {equal} {other}{extra}", both

    def _shared(self, columns: Columns, others: Columns) -> list[str]:
        """Names of columns that each side has once, with the same kind."""
        mine, theirs = ([(_last(c), k) for c, k in side.items()] for side in (columns, others))
        names = [name for name, kind in mine if kind in EQUAL and (name, kind) in theirs]
        count = {name: sum(n == name for n, _ in mine) + sum(n == name for n, _ in theirs) for name in names}
        return [name for name in names if count[name] == 2]

    def _pair(self, columns: Columns, others: Columns) -> tuple[str, str] | None:
        """A column of each side that can be equal."""
        pairs = [
            (one, other)
            for one, kind in columns.items()
            for other, its in others.items()
            if (kind == its and kind in EQUAL) or (kind in INTEGERS and its in INTEGERS)
        ]
        plain = [pair for pair in pairs if columns[pair[0]] in ("int", "bigint", "text", "date")]
        return self.random.choice(plain or pairs) if pairs else None

    # WHERE.

    def _where(self, columns: Columns) -> str:
        if self.random.random() < 0.4:
            return ""
        return f" WHERE {self._condition(columns)}"

    def _condition(self, columns: Columns) -> str:
        simple = self.expressions.condition(columns)
        if self.random.random() < 0.7:
            return simple
        inner, inner_columns = self._from() if self.random.random() < 0.2 else self._source()
        pair = self._pair(columns, inner_columns)
        if not pair:
            return simple
        mine, theirs = pair
        first, second = self._pair(columns, inner_columns) or pair
        correlated = f"{second} = {first}"
        local = self.expressions.condition(inner_columns)
        choices = [
            f"{mine} IN (SELECT {theirs} FROM {inner} WHERE {local})",
            f"{mine} NOT IN (SELECT {theirs} FROM {inner} WHERE {local})",
            f"{mine} NOT IN (SELECT {theirs} FROM {inner} WHERE {correlated})",
            f"{mine} IN (SELECT {theirs} FROM {inner} WHERE {correlated})",
            f"EXISTS (SELECT 1 FROM {inner} WHERE {correlated} AND {local})",
            f"NOT EXISTS (SELECT 1 FROM {inner} WHERE {correlated} AND {theirs} <> {mine})",
            f"NOT EXISTS (SELECT 1 FROM {inner} WHERE {correlated})",
            f"EXISTS (SELECT 1 FROM {inner} WHERE {local})",
            f"({simple} OR EXISTS (SELECT 1 FROM {inner} WHERE {correlated}))",
            f"({mine} IN (SELECT {theirs} FROM {inner})) IS NOT TRUE",
            f"(NOT ({simple}) AND {mine} IN (SELECT {theirs} FROM {inner}))",
        ]
        if columns[mine] in INTEGERS:
            choices += [
                f"{mine} > (SELECT avg({theirs}) FROM {inner})",
                f"{mine} <= (SELECT count(*) FROM {inner} WHERE {correlated})",
                f"{mine} = (SELECT max({theirs}) FROM {inner} WHERE {correlated} AND {local})",
                f"(SELECT sum({theirs}) FROM {inner} WHERE {correlated}) > {mine}",
            ]
        return self.random.choice(choices)

    # SELECT.

    def _items(self, columns: Columns, number: int = 3, kinds: tuple[str, ...] = ()) -> tuple[str, Columns]:
        """Outputs of the columns of these kinds, of all if none are given; some are expressions."""
        fitting = [column for column, kind in columns.items() if not kinds or kind in kinds]
        items: list[str] = []
        outputs: Columns = {}
        for column in self.random.sample(fitting, min(self.random.randint(1, number), len(fitting))):
            kind, text = columns[column], column
            if kind != APPROXIMATE and self.random.random() < 0.4:
                kind = self.random.choice((kind, kind, "int", "text", "bool", "numeric", "double", "timestamp"))
                kind = kind if not kinds or kind in kinds else columns[column]
                text = self.expressions.of(kind, columns)
            name = self._name(column, outputs)
            items.append(f"{text} AS {name}")
            outputs[name] = kind
        if not items:
            return "1 AS one", {"one": "int"}
        return ", ".join(items), outputs

    def _name(self, column: str, outputs: Columns) -> str:
        """A name that no output has: the column's own at times, so that views can be joined by it."""
        chance = self.random.random()
        name = _last(column) if chance < 0.4 else self.random.choice(HOSTILE) if chance < 0.5 else ""
        number = len(outputs)
        while not name or name in outputs:
            name, number = f"c{number}", number + 1
        return name

    def _rows(self) -> tuple[str, Columns]:
        table, columns = self._from()
        items, outputs = self._items(columns, 4)
        if self.random.random() < 0.15 and "q" not in outputs:
            inner, inner_columns = self._source(*INTEGERS)
            pair = self._pair(columns, inner_columns)
            value = self.expressions.column(inner_columns, *INTEGERS)
            if pair and value:
                kept = inner_columns[value]
                calls = (("max({})", kept), ("min({})", kept), ("count({})", "bigint"), ("count(*)", "bigint"))
                call, kind = self.random.choice((*calls, ("1 + count(DISTINCT {})", "bigint")))
                where = f"{pair[1]} = {pair[0]}"
                where += f" AND {self.expressions.condition(inner_columns)}" if self.random.random() < 0.3 else ""
                items += f", (SELECT {call.format(value)} FROM {inner} WHERE {where}) AS q"
                outputs["q"] = kind
        return f"SELECT {items} FROM {table}{self._where(columns)}", outputs

    def _natural(self) -> tuple[str, Columns]:
        """All columns of a NATURAL join, if their names are told apart; else of one relation."""
        one, other = self.random.choice(self.sources), self.random.choice(self.sources)
        shared = [c for c in one.columns if c in other.columns]
        joinable = all(one.columns[c] == other.columns[c] and one.columns[c] in EQUAL for c in shared)
        if one is other or not shared or not joinable:
            where = f" WHERE {self.expressions.condition(one.columns)}" if self.random.random() < 0.7 else ""
            return f"SELECT * FROM {one.name}{where}", dict(one.columns)
        kind = self.random.choice(("", "", "LEFT ", "RIGHT ", "FULL "))
        outputs = {c: one.columns[c] for c in shared} | one.columns | other.columns
        return f"SELECT * FROM {one.name} AS l NATURAL {kind}JOIN {other.name} AS r", outputs

    def _nested(self) -> tuple[str, Columns]:
        """A query over another query of any shape."""
        inner, inner_columns = self.random.choice(
            (self._rows, self._aggregate, self._window, self._distinct, self._set_operation, self._unnest)
        )()
        alias = self._alias()
        columns = {f"{alias}.{c}": kind for c, kind in inner_columns.items()}
        items, outputs = self._items(columns)
        return f"SELECT {items} FROM ({inner}) AS {alias}{self._where(columns)}", outputs

    def _keys(self, columns: Columns, most: int = 2) -> list[tuple[str, str]]:
        """What to group by: columns and expressions, with their kinds."""
        fitting = [c for c, kind in columns.items() if kind in EQUAL]
        keys = []
        for column in self.random.sample(fitting, min(self.random.choice((0, 1, 1, 1, most)), len(fitting))):
            kind, text = columns[column], column
            if self.random.random() < 0.2:
                kind = self.random.choice(("int", "text", "bool", "date"))
                text = self.expressions.of(kind, columns, 1)
                # A constant in GROUP BY would be a place.
                text = column if not any(c in text for c in columns) else operand(text)
                kind = columns[column] if text == column else kind
            if (text, kind) not in keys:
                keys.append((text, kind))
        return keys

    def _aggregate(self) -> tuple[str, Columns]:
        table, columns = self._from()
        keys = self._keys(columns)
        outputs: Columns = {}
        items = []
        for text, kind in keys:
            name = self._name(text, outputs) if text in columns else f"g{len(outputs)}"
            items.append(f"{text} AS {name}")
            outputs[name] = kind
        for _ in range(self.random.randint(1, 3)):
            call, kind = self._call(columns)
            name = self._name("m0", outputs)
            items.append(f"{call} AS {name}")
            outputs[name] = kind
        query = f"SELECT {', '.join(items)} FROM {table}{self._where(columns)}"
        if keys:
            places = self.random.random() < 0.2
            query += f" GROUP BY {', '.join(str(n + 1) if places else text for n, (text, _) in enumerate(keys))}"
        if self.random.random() < 0.2:
            query += f" HAVING {self.random.choice(('count(*) > 1', self._having(columns)))}"
        return query, outputs

    def _having(self, columns: Columns) -> str:
        call, kind = self._call(columns)
        return f"{call} IS NOT NULL" if kind not in INTEGERS else f"{call} > {self.random.randint(0, 3)}"

    def _call(self, columns: Columns) -> tuple[str, str]:
        """An aggregate of a column or an expression, and the kind of its result."""
        known = [c for c, kind in columns.items() if kind != APPROXIMATE]
        if not known:
            return "count(*)", "bigint"
        column = self.random.choice(known)
        kind, text = columns[column], column
        if self.random.random() < 0.25:
            kind = self.random.choice((kind, "int", "text", "bool", "numeric"))
            text = self.expressions.of(kind, columns, 1)
            # PostgreSQL takes a number alone in ORDER BY for a place.
            text, kind = (text, kind) if any(c in text for c in columns) else (column, columns[column])
        condition = f" FILTER (WHERE {self.expressions.condition(columns)})" if self.random.random() < 0.2 else ""
        choices = [*_CALLS.get(kind, ()), *(_COUNTS if kind in EQUAL else (_COUNTS[0], _COUNTS[2]))]
        if kind in EXTREMAL and kind not in ("int[]", "text[]"):
            choices += [("min({})", kind), ("max({})", kind)]
        if not self.on_postgres and kind == "int":
            choices += [("first_value({0} ORDER BY {0})", "int"), ("last_value({0} ORDER BY {0})", "int")]
        template, result = self.random.choice(choices)
        return template.format(text, condition) + ("" if "{1}" in template else condition), result

    def _grouping_sets(self) -> tuple[str, Columns]:
        table, columns = self._from()
        keys = [c for c, kind in columns.items() if kind in EQUAL]
        keys = self.random.sample(keys, min(self.random.choice((2, 2, 3)), len(keys)))
        call, kind = self._call(columns)
        if not keys:
            return f"SELECT {call} AS m FROM {table}", {"m": kind}
        listed = ", ".join(keys)
        choices = [
            f"ROLLUP ({listed})",
            f"CUBE ({listed})",
            f"GROUPING SETS (({listed}), ())",
            f"GROUPING SETS ((), ({listed}), ())",
        ]
        choices += [
            f"GROUPING SETS (({keys[0]}), ({', '.join(keys[1:] or keys)}))",
            f"GROUPING SETS (({listed}), ({keys[0]}), ({keys[0]}))",
        ]
        if len(keys) > 1:
            choices += [f"{keys[0]}, ROLLUP ({', '.join(keys[1:])})"]
        outputs = {f"g{n}": columns[key] for n, key in enumerate(keys)} | {"m": kind, "gr": "int"}
        items = ", ".join(f"{key} AS g{n}" for n, key in enumerate(keys))
        grouping = f"grouping({listed if self.random.random() < 0.5 else keys[0]})"
        having = " HAVING count(*) > 1" if self.random.random() < 0.15 else ""
        query = f"SELECT {items}, {call} AS m, {grouping} AS gr FROM {table}{self._where(columns)}"
        return f"{query} GROUP BY {self.random.choice(choices)}{having}", outputs

    def _set_operation(self) -> tuple[str, Columns]:
        operators = ("UNION ALL", "UNION ALL", "UNION", "INTERSECT", "EXCEPT", "INTERSECT ALL", "EXCEPT ALL")
        kinds = self.random.choices(("int", "text", "bigint", "numeric", "date", "bool", "int[]", "interval"), k=2)
        branches = []
        for _ in range(self.random.choice((2, 2, 2, 3))):
            table, columns = self._from()
            items = [
                f"{self.expressions.of(kind, columns, 1)} AS {name}" for kind, name in zip(kinds, "ab", strict=True)
            ]
            branches.append(f"SELECT {', '.join(items)} FROM {table}{self._where(columns)}")
        query = branches[0]
        for branch in branches[1:]:
            query = f"{query} {self.random.choice(operators)} {branch}"
        return query, dict(zip("ab", kinds, strict=True))

    def _distinct(self) -> tuple[str, Columns]:
        table, columns = self._from()
        items, outputs = self._items(columns, 3, SORTED)
        if self.random.random() < 0.5:
            return f"SELECT DISTINCT {items} FROM {table}{self._where(columns)}", outputs
        names = list(outputs)
        order = ", ".join([names[0], *(self._sort(name) for name in names[1:])])
        return f"SELECT DISTINCT ON ({names[0]}) {items} FROM {table}{self._where(columns)} ORDER BY {order}", outputs

    def _first_rows(self) -> tuple[str, Columns]:
        table, columns = self._from()
        items, outputs = self._items(columns, 3, SORTED)
        order = ", ".join(self._sort(name) for name in outputs)
        offset = f" OFFSET {self.random.randint(1, 3)}" if self.random.random() < 0.3 else ""
        limit = self.random.randint(1, 5)
        return f"SELECT {items} FROM {table}{self._where(columns)} ORDER BY {order} LIMIT {limit}{offset}", outputs

    def _sort(self, name: str) -> str:
        return name + self.random.choice(("", "", " DESC", " NULLS FIRST", " DESC NULLS LAST"))

    def _window(self) -> tuple[str, Columns]:
        table, columns = self._from()
        plain = [c for c, kind in columns.items() if kind in SORTED]
        chosen = self.random.sample(plain, min(3, len(plain)))
        if not chosen:
            return f"SELECT count(*) OVER () AS w FROM {table}", {"w": "bigint"}
        outputs = {f"c{n}": columns[c] for n, c in enumerate(chosen)}
        items = [f"{c} AS c{n}" for n, c in enumerate(chosen)]
        partition = f"PARTITION BY {chosen[0]} " if self.random.random() < 0.8 else ""
        # Equal in all that the query shows: whichever comes first, the rows are the same.
        order = f"ORDER BY {', '.join(self._sort(c) for c in chosen)}"
        frame = self.random.choice(
            (
                "ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING", "ROWS BETWEEN 1 PRECEDING AND 1 FOLLOWING",
                "ROWS BETWEEN 2 PRECEDING AND CURRENT ROW", "ROWS BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING",
                "RANGE BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW", "ROWS BETWEEN 2 PRECEDING AND 1 PRECEDING",
                "ROWS UNBOUNDED PRECEDING", "GROUPS BETWEEN 1 PRECEDING AND CURRENT ROW",
            )
        )  # fmt: skip
        shown = self.random.choice(chosen)
        kind = columns[shown]
        peers = f"ORDER BY {chosen[-1]}"
        calls = [
            (f"row_number() OVER ({partition}{order})", "bigint"),
            (f"rank() OVER ({partition}{peers})", "bigint"),
            (f"dense_rank() OVER ({partition}{peers} DESC)", "bigint"),
            (f"ntile(2) OVER ({partition}{order})", "int"),
            (f"percent_rank() OVER ({partition}{peers})", APPROXIMATE),
            (f"cume_dist() OVER ({partition}{peers})", APPROXIMATE),
            (f"lag({shown}) OVER ({partition}{order})", kind),
            (f"lead({shown}, 2) OVER ({partition}{order})", kind),
            (f"count(*) OVER ({partition}{peers})", "bigint"),
            (f"count({shown}) OVER ({partition}{order} {frame})", "bigint"),
            (f"first_value({shown}) OVER ({partition}{order} {frame})", kind),
            (f"last_value({shown}) OVER ({partition}{order} {frame})", kind),
            (f"nth_value({shown}, 2) OVER ({partition}{order} {frame})", kind),
        ]
        if kind in EXTREMAL and kind not in ("int[]", "text[]"):
            calls += [(f"max({shown}) OVER ({partition}{order} {frame})", kind)]
        if kind in INTEGERS:
            calls += [(f"sum({shown}) OVER ({partition}{order} {frame})", APPROXIMATE)] * 2
            calls += [(f"avg({shown}) OVER ({partition}{peers})", APPROXIMATE)]
            calls += [(f"lead({shown}, 2, 0::{kind}) OVER ({partition}{order})", kind)]
        if self.expressions.column(columns, "int"):
            calls += [(f"sum({self.expressions.column(columns, 'int')}) OVER ({partition.strip()})", "bigint")]
        for number, (call, result) in enumerate(self.random.sample(calls, self.random.choice((1, 1, 2, 3)))):
            items.append(f"{call} AS w{number}")
            outputs[f"w{number}"] = result
        return f"SELECT {', '.join(items)} FROM {table}{self._where(columns)}", outputs

    def _group_top_n(self) -> tuple[str, Columns]:
        table, columns = self._from()
        items, outputs = self._items(columns, 3, SORTED)
        inner = f"SELECT {items} FROM {table}{self._where(columns)}"
        names = list(outputs)
        order = ", ".join(self._sort(name) for name in outputs)
        call = self.random.choice(("row_number", "row_number", "rank", "dense_rank"))
        numbered = f"SELECT *, {call}() OVER (PARTITION BY {names[0]} ORDER BY {order}) AS rn FROM ({inner}) AS i"
        if "rn" in outputs:
            return inner, outputs
        return f"SELECT {', '.join(names)} FROM ({numbered}) AS o WHERE rn <= {self.random.randint(1, 2)}", outputs

    def _unnest(self) -> tuple[str, Columns]:
        table, columns = self._source("int[]", "text[]")
        array = self.expressions.column(columns, "int[]", "text[]") or "ARRAY[1, NULL, 2]"
        kind = {"int[]": "int", "text[]": "text"}[columns.get(array, "int[]")]
        other = self.random.choice([c for c in columns if c != array] or list(columns))
        outputs = {"c0": columns[other], "e": kind}
        shape = self.random.random()
        if shape < 0.4:
            return f"SELECT {other} AS c0, unnest({array}) AS e FROM {table}", outputs
        if shape < 0.7:
            text = f"SELECT {other} AS c0, z.v AS e, z.o AS o FROM {table}, unnest({array}) WITH ORDINALITY AS z(v, o)"
            return text, outputs | {"o": "bigint"}
        return f"SELECT {other} AS c0, z.v AS e FROM {table} CROSS JOIN unnest({array}) AS z(v)", outputs

    def _series(self) -> tuple[str, Columns]:
        table, columns = self._source("int", "smallint")
        number = self.expressions.column(columns, "int", "smallint") or "2"
        stop = f"least({number}, 5)"
        if self.random.random() < 0.5:
            return f"SELECT {number} AS c0, generate_series(1, {stop}) AS e FROM {table}", {
                "c0": columns.get(number, "int"),
                "e": "int",
            }
        text = f"SELECT {number} AS c0, g.i AS e FROM {table}, generate_series(0, {stop}, 2) AS g(i)"
        return text, {"c0": columns.get(number, "int"), "e": "int"}

    def _common_table(self) -> tuple[str, Columns]:
        """A common table that is read twice."""
        inner, columns = self.random.choice((self._aggregate, self._rows, self._distinct))()
        keys = [name for name, kind in columns.items() if kind in EQUAL]
        if not keys:
            return inner, columns
        name, shown = self.random.choice(keys), self.random.choice(list(columns))
        kind = self.random.choice(("JOIN", "LEFT JOIN", "FULL JOIN"))
        joined = f"SELECT p.{name} AS x, q.{shown} AS y FROM c AS p {kind} c AS q ON p.{name} = q.{name}"
        if self.random.random() < 0.4:
            items, where = f"{name} AS x, {shown} AS y", self.expressions.condition(columns)
            joined = f"SELECT {items} FROM c UNION ALL SELECT {items} FROM c WHERE {where}"
        return f"WITH c AS ({inner}) {joined}", {"x": columns[name], "y": columns[shown]}

    def _time_window(self) -> tuple[str, Columns]:
        # What has a window already has columns of its names.
        fitting = [s for s in self.sources if "timestamp" in s.columns.values() and "window_start" not in s.columns]
        if not fitting:
            return self._aggregate()
        source = self.random.choice(fitting)
        column = next(c for c, kind in source.columns.items() if kind == "timestamp")
        call, kind = self._call(source.columns)
        window = self.random.choice(
            (
                f"TUMBLE({source.name}, {column}, INTERVAL '1' MINUTE)",
                f"HOP({source.name}, {column}, INTERVAL '30' SECOND, INTERVAL '1 minute')",
            )
        )
        query = f"SELECT window_start, window_end, {call} AS m FROM {window} GROUP BY window_start, window_end"
        return query, {"window_start": "timestamp", "window_end": "timestamp", "m": kind}


def _last(column: str) -> str:
    """The name of a column without what it is a column of."""
    if column.endswith('"'):
        # The quote that opens it has none before it that belongs to the name.
        start = column.index('"')
        return column[start:]
    return column.rpartition(".")[2]
