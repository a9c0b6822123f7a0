"""Changes by other rows, and of whole tables: INSERT … SELECT, UPDATE … FROM, MERGE, TRUNCATE, new columns."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from .tables import Changes, Table
from .values import TYPES, literal

_ADDED = ("int", "varchar", "numeric(8,2)", "boolean", "date", "bigint", "timestamptz")


class MoreChanges(Changes):
    """As `Changes`; each row that is changed has one row that it is changed by."""

    def some(self, number: int) -> Iterator[str]:
        if self.random.random() < 0.06:
            yield self._new_column()
        if self.random.random() < 0.03:
            yield f"TRUNCATE {self.random.choice(self.tables).name}"
        if number > 1 and self.random.random() < 0.1:
            half = number // 2
            yield from ("BEGIN", *(self.change() for _ in range(half)), "SAVEPOINT one")
            yield from (self.change() for _ in range(number - half))
            yield from ("ROLLBACK TO SAVEPOINT one", self.change(), "COMMIT")
            return
        yield from super().some(number)

    def change(self) -> str:
        if self.random.random() < 0.75:
            return super().change()
        ways: list[Callable[[Table], str | None]] = [
            self._from_query, self._from_query, self._update_from, self._update_from, self._delete_using, self._merge,
            self._several_columns, self._named_columns,
        ]  # fmt: skip
        return self.random.choice(ways)(self.random.choice(self.tables)) or super().change()

    def _new_column(self) -> str:
        place = self.random.randrange(len(self.tables))
        table, type_ = self.tables[place], self.random.choice(_ADDED)
        name = f"z{len(table.types)}"
        self.tables[place] = Table(table.name, table.types | {name: type_}, table.key)
        default = f" DEFAULT {literal(self.random, type_, False)}" if self.random.random() < 0.5 else ""
        return f"ALTER TABLE {table.name} ADD COLUMN {name} {type_}{default}"

    def _free(self, table: Table) -> list[str]:
        return [column for column in table.types if column not in table.key]

    def _others(self, table: Table, name: str) -> Table:
        """A table that is read."""
        return self.random.choice([other for other in self.tables if name in other.types] or [table])

    def _from_query(self, table: Table) -> str | None:
        """Rows of another table, into one without a key, which few rows are made from."""
        if table.key:
            return None
        source = self._others(table, "k")
        kinds = {f"o.{column}": kind for column, kind in source.kinds.items()}
        values = ", ".join(self.expressions.of(kind, kinds, 1) for kind in table.kinds.values())
        where = f"o.k = {self.random.randint(-1, 5)} AND {self.expressions.condition(kinds)}"
        return (
            f"INSERT INTO {table.name} ({', '.join(table.types)}) SELECT {values} FROM {source.name} AS o WHERE {where}"
        )

    def _update_from(self, table: Table) -> str | None:
        free = self._free(table)
        if not free:
            return None
        column = self.random.choice(free)
        source = self._others(table, column)
        if column not in source.types or TYPES[table.types[column]] not in ("int", "bigint", "text", "date", "numeric"):
            return None
        inner = f"SELECT k, max({column}) AS v, count(*) AS c FROM {source.name} GROUP BY k"
        where = f"{table.name}.k = s.k AND s.c < {self.random.randint(2, 4)}"
        return f"UPDATE {table.name} SET {column} = s.v FROM ({inner}) AS s WHERE {where}"

    def _delete_using(self, table: Table) -> str | None:
        source = self._others(table, "k")
        if source.name == table.name:
            return None
        kinds = {f"o.{column}": kind for column, kind in source.kinds.items()}
        where = f"{table.name}.k = o.k AND {self.expressions.condition(kinds)}"
        return f"DELETE FROM {table.name} USING {source.name} AS o WHERE {where}"

    def _merge(self, table: Table) -> str | None:
        free = [column for column in self._free(table) if column != "k"]
        if not free or table.key not in ((), ("k",)):
            return None
        column = self.random.choice(free)
        value = literal(self.random, table.types[column], False)
        source = f"(SELECT k, count(*) AS c FROM {self._others(table, 'k').name} WHERE k < 4 GROUP BY k) AS s"
        matched = f"WHEN MATCHED AND s.c > 1 THEN DELETE WHEN MATCHED THEN UPDATE SET {column} = {value}"
        new = f"WHEN NOT MATCHED THEN INSERT (k, {column}) VALUES (s.k, {value})"
        return f"MERGE INTO {table.name} AS o USING {source} ON o.k = s.k {matched} {new}"

    def _several_columns(self, table: Table) -> str | None:
        free = self._free(table)
        if len(free) < 2:
            return None
        one, two = self.random.sample(free, 2)
        first = self.expressions.of(TYPES[table.types[one]], table.kinds, 1)
        second = "NULL" if self.random.random() < 0.3 else two
        where = self.expressions.condition(table.kinds)
        return f"UPDATE {table.name} SET ({one}, {two}) = ({first}, {second}) WHERE {where}"

    def _named_columns(self, table: Table) -> str | None:
        """Some columns, in another order; the others have their defaults."""
        if table.key:
            return None
        chosen = self.random.sample(list(table.types), self.random.randint(1, len(table.types)))
        values = ", ".join(literal(self.random, table.types[column], False) for column in chosen)
        return f"INSERT INTO {table.name} ({', '.join(chosen)}) VALUES ({values})"
