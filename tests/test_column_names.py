"""Columns may be called whatever PostgreSQL takes, also as plans, the lake and the engines call what is theirs."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import psycopg
import pytest
from servers import Server, refused, rows
from test_law import as_bag, opened, run

from sparkwave.catalog.column_names import escaped, readable, unescaped

Connection = psycopg.Connection[Any]

# Of plans, the change feed, DuckLake, DuckDB, staged rows and overlays; and names that are hard to write.
NAMES = (
    "_count", "_weight", "_branch", "_rank", "_lost", "_one", "_key0", "_key0.t.a", "_left.3", "_s0.k0", "_sort0",
    "_sum(t.a)", "_count(t.a)", "k0", "s", "t", "l", "r", "d", "c", "u", "x", "i0", "s0_state", "i0_changes", "t.a",
    "a.b.c", "~a", "~~a", "rowid", "row_id", "snapshot_id", "filename", "file_row_number", "file_index",
    "begin_snapshot", "end_snapshot", "change_type", "_ducklake_internal_row_id", "since", "until", "?since",
    "?until", "?row", "?when", "?entry", "?live", "?place", "?rank", "?epoch", "?column?", "op", "rw_timestamp",
    "time_us", "_op", "staged", "stored", "changed", "excluded", "gone", "values", "Mixed", "UPPER", "select", "table",
    "from", "epoch", "key", "value", "order", "user", "null", "true", " ", "a b", 'q"q', "it's", "`tick`", "1", "1.5",
    "été", "ÉTÉ", "名前", "😀", "tab\tnew\nline", "back\\slash", "%s", "$1", ":x", "--", "/*", "a" * 63,
    "window_start", "_windowed", "_hop", "step", "_time", "_bound", "_highest", "_position", "_element", "false",
    "ctidx", "_row", "_0", "_1", "copied_rows", "deleted", "count", "sum", "max",
)  # fmt: skip
PLAIN = tuple(f"c{number}" for number in range(len(NAMES)))


def quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


class Names:
    """Names for the places of a template, drawn so that all come in turn: of a table's columns, and of outputs."""

    def __init__(self, seed: int, names: tuple[str, ...]) -> None:
        order = list(range(len(NAMES)))
        random.Random(seed).shuffle(order)
        self._names = [quoted(names[number]) for number in order]
        self._next = 0

    def take(self) -> str:
        self._next += 1
        return self._names[self._next % len(self._names)]


# `{c}` is a column of the tables, each time another; `{o}` the name of an output; `{t}` and `{u}` are the tables.
VIEWS = {
    "filtered": "SELECT {c} AS {o}, {c} + {c} AS {o} FROM {t} AS {o} WHERE {c} > 1",
    "aggregated": "SELECT {c0}, {c1} AS {o}, count(*) AS {o}, sum({c}) AS {o}, min({c}) AS {o}, avg({c}) AS {o}, "
    "count(DISTINCT {c}) AS {o}, bool_or({c} > 2) AS {o} FROM {t} GROUP BY {c0}, {c1}",
    "one_row": "SELECT count(*) AS {o}, max({c}) AS {o}, array_agg({c} ORDER BY {c0}, {c0}) AS {o} FROM {t}",
    "distinct_rows": "SELECT DISTINCT {c} AS {o}, {c} AS {o} FROM {t}",
    "union_all": "SELECT {c} AS {o}, {c} AS {o} FROM {t} UNION ALL SELECT {c}, {c} FROM {u}",
    "union_": "SELECT {c} AS {o}, {c} AS {o} FROM {t} UNION SELECT {c}, {c} FROM {u}",
    "except_": "SELECT {c} AS {o}, {c} AS {o} FROM {t} EXCEPT ALL SELECT {c}, {c} FROM {u}",
    "joined": "SELECT l.{c} AS {o}, r.{c} AS {o} FROM {t} l JOIN {u} r ON l.{c} = r.{c}",
    "left_": "SELECT l.{c} AS {o}, r.{c} AS {o} FROM {t} l LEFT JOIN {u} r ON l.{c} = r.{c} AND l.{c} < 3",
    "full_": "SELECT l.{c} AS {o}, r.{c} AS {o} FROM {t} l FULL JOIN {u} r ON l.{c} = r.{c}",
    "semi": "SELECT {c} AS {o}, {c} AS {o} FROM {t} WHERE {c} IN (SELECT {c} FROM {u})",
    "anti": "SELECT {c} AS {o} FROM {t} a WHERE NOT EXISTS (SELECT 1 FROM {u} b WHERE a.{c} = b.{c})",
    "scalar": "SELECT {c} AS {o}, (SELECT count(*) FROM {u} b WHERE b.{c} = a.{c}) AS {o} FROM {t} a",
    "dynamic": "SELECT {c} AS {o} FROM {t} WHERE {c} > (SELECT avg({c}) FROM {u})",
    "top": "SELECT {c0} AS {o}, {c1} AS {o} FROM {t} ORDER BY {c0}, {c1} LIMIT 3",
    "of_group": "SELECT {o0}, {o1} FROM (SELECT {c0} AS {o0}, {c1} AS {o1}, row_number() OVER "
    "(PARTITION BY {c0} ORDER BY {c1}, {c2}) AS {o2} FROM {t}) AS {o3} WHERE {o2} <= 2",
    "windows": "SELECT {c0} AS {o}, {c1} AS {o}, sum({c}) OVER (PARTITION BY {c0}) AS {o}, "
    "rank() OVER (PARTITION BY {c0} ORDER BY {c1}) AS {o} FROM {t}",
    "nested": "WITH {o0} AS (SELECT {c0} AS {o1}, count(*) AS {o2} FROM {t} GROUP BY {c0}) "
    "SELECT {o3}.{o1} AS {o4}, {o5}.{o2} AS {o6} FROM {o0} AS {o3} JOIN {o0} AS {o5} ON {o3}.{o2} = {o5}.{o2}",
    "sets": "SELECT {c0} AS {o}, {c1} AS {o}, count(*) AS {o} FROM {t} GROUP BY ROLLUP ({c0}, {c1})",
    "elements": "SELECT {c} AS {o}, unnest(ARRAY[{c}, {c}]) AS {o} FROM {t}",
    "aliased": "SELECT {o0}.{o1} AS {o}, {o0}.{o2} AS {o} FROM (SELECT {c}, {c} FROM {t}) AS {o0} ({o1}, {o2})",
}  # fmt: skip


def filled(template: str, names: Names, tables: tuple[str, str]) -> str:
    """A template with names in its places; numbered places of one number have one name."""
    known: dict[str, str] = {"t": tables[0], "u": tables[1]}

    class Places(dict[str, str]):
        def __missing__(self, place: str) -> str:
            name = names.take()
            if len(place) > 1:
                known[place] = name
                self[place] = name
            return name

    return template.format_map(Places(known))


@pytest.mark.parametrize("name", [*NAMES, "plain", "_col_0"])
def test_escaped_names_are_apart(name: str) -> None:
    assert unescaped(escaped(name)) == name
    assert escaped(name) == escaped(name).lower()
    assert not escaped(name).startswith(("_", "?")) or name == "_col_0"
    assert "." not in escaped(name)
    assert readable(f"t.{escaped(name)} = 1") == f"t.{name} = 1"
    others = {escaped(other) for other in NAMES if other != name}
    assert len(others) == len({*NAMES} - {name}) and escaped(name) not in others


def create(client: Any, table: str, names: tuple[str, ...], key: str) -> None:
    columns = ", ".join(f"{quoted(name)} int" for name in names)
    run(client, f"CREATE TABLE {table} ({columns}{key})")


CHANGES: tuple[Callable[[tuple[str, ...], str], str], ...] = (
    lambda names, table: f"INSERT INTO {table} VALUES {values(1, 12)}",
    lambda names, table: (
        f"UPDATE {table} SET {names[1]} = {names[1]} + 1, {names[9]} = {names[0]} "
        f"WHERE {names[0]} % 3 = 0 AND {table}.{names[29]} >= 0"
    ),
    lambda names, table: f"DELETE FROM {table} WHERE {names[0]} % 4 = 1",
    lambda names, table: f"INSERT INTO {table} VALUES {values(6, 16)}",
    lambda names, table: f"DELETE FROM {table} WHERE {names[0]} = 7",
)


def values(first: int, last: int, width: int = len(NAMES)) -> str:
    return ", ".join(
        f"({', '.join(str(row if place == 0 else (row * 7 + place * 3) % 5) for place in range(width))})"
        for row in range(first, last)
    )


@pytest.mark.long
@pytest.mark.parametrize("seed", range(3))
def test_views_over_tables_with_such_names(tmp_path: Path, seed: int) -> None:
    """What they show is what the same queries give over the same rows under plain names."""
    hostile, plain = ("h", "g"), ("p", "q")
    with opened(tmp_path / "lake", streaming_engine="duckdb", backfill_engine="auto") as (context, client):
        for tables, names in ((hostile, NAMES), (plain, PLAIN)):
            create(client, tables[0], names, f", PRIMARY KEY ({quoted(names[0])})")
            create(client, tables[1], names, "")
            for table in tables:
                run(client, CHANGES[0](tuple(map(quoted, names)), table))
        expected = {}
        for number, (name, template) in enumerate(VIEWS.items()):
            query = filled(template, Names(seed * 1000 + number, NAMES), hostile)
            run(client, f"CREATE MATERIALIZED VIEW {name} AS {query}")
            expected[name] = filled(template, Names(seed * 1000 + number, PLAIN), plain), query
        run(client, "CREATE MATERIALIZED VIEW above AS SELECT * FROM filtered")
        for change in CHANGES[1:]:
            for table, names in (*((t, NAMES) for t in hostile), *((t, PLAIN) for t in plain)):
                run(client, change(tuple(map(quoted, names)), table))
            context.coordinator.flush(lambda: False)
            failed = [job for job in context.store.catalog.jobs if job.error]
            assert not failed, failed
            for name, (query, own) in expected.items():
                right = as_bag(run(client, query))
                assert as_bag(run(client, f"SELECT * FROM {name}")) == right, (name, own)
                assert as_bag(run(client, own)) == right, (name, own)
            assert as_bag(run(client, "SELECT * FROM above")) == as_bag(run(client, expected["filtered"][0]))


# Over the wire.

# Names that writes have for their own, and some that are hard to write. The first is of the key.
WRITTEN = (
    "?row", "rowid", "?when", "?source0", "?entry", "?live", "?rowid", "?place", "staged", "stored", "changed",
    "excluded", "gone", "t", "s", "row_id", "_weight", "snapshot_id", "Mixed", 'q"q', "a b.c", "values",
)  # fmt: skip


def writes(names: Sequence[str], table: str, has_key: bool) -> Iterator[str]:
    k, a, b, c, *more = names
    others = ", ".join(names[1:])
    yield f"INSERT INTO {table} ({k}, {c}) VALUES (20, 1) RETURNING {c}, {k} AS {c}"
    yield f"INSERT INTO {table} ({k}, {others}) SELECT {k} + 30, {others} FROM {table} WHERE {k} < 3 RETURNING {a}"
    assigned = ", ".join(f"{name} = {c}" for name in more)
    yield f"UPDATE {table} SET {a} = {b} + 1, {assigned} WHERE {k} = 20 RETURNING {others}"
    yield f"UPDATE {table} AS {a} SET {b} = {c}.{a} FROM (SELECT 1 AS {a}) AS {c} WHERE {a}.{k} = 31 RETURNING {a}.{b}"
    yield f"DELETE FROM {table} WHERE {k} = 32 AND {a} >= 0 RETURNING {others}"
    yield f"DELETE FROM {table} AS {a} USING (SELECT 31 AS {k}) AS {b} WHERE {a}.{k} = {b}.{k}"
    yield (
        f"MERGE INTO {table} AS {a} USING (SELECT 20 AS {k}, 5 AS {b} UNION ALL SELECT 21, 6) AS {b} "
        f"ON {a}.{k} = {b}.{k} WHEN MATCHED THEN UPDATE SET {b} = {b}.{b} "
        f"WHEN NOT MATCHED THEN INSERT ({k}, {c}) VALUES ({b}.{k}, {b}.{b})"
    )
    if has_key:
        yield f"INSERT INTO {table} ({k}, {b}) VALUES (21, 9) ON CONFLICT ({k}) DO UPDATE SET {c} = excluded.{b}"
        yield f"INSERT INTO {table} ({k}, {a}) VALUES (21, 8)"
    yield f"DELETE FROM {table} WHERE {k} >= 20 AND {c} IS NULL"


@pytest.mark.parametrize("has_key", [True, False])
@pytest.mark.parametrize("is_atomic", [True, False])
def test_writes(connection: Connection, has_key: bool, is_atomic: bool) -> None:
    """What they give and leave is what the same writes to plain columns do."""
    connection.execute(f"SET atomic_transactions = {is_atomic}")
    tables = {"w": [quoted(name) for name in WRITTEN], "x": [*PLAIN[: len(WRITTEN)]]}
    for table, names in tables.items():
        key = f", PRIMARY KEY ({names[0]})" if has_key else ""
        connection.execute(f"CREATE TABLE {table} ({', '.join(f'{name} int' for name in names)}{key})".encode())
        connection.execute(f"INSERT INTO {table} VALUES {values(1, 4, len(names))}")
    try:
        for turned in (0, 7, 14):
            k, *others = range(len(WRITTEN))
            places = [k, *others[turned:], *others[:turned]]
            with connection.transaction():
                of_each = (writes([names[p] for p in places], t, has_key) for t, names in tables.items())
                for own, plain in zip(*of_each, strict=True):
                    found, right = connection.execute(own.encode()), connection.execute(plain)
                    assert found.statusmessage == right.statusmessage, own
                    if found.description is not None:
                        assert Counter(found.fetchall()) == Counter(right.fetchall()), own
        left, right_ = (rows(connection, f"SELECT * FROM {table}") for table in tables)
        assert Counter(left) == Counter(right_) and len(left) > 3
    finally:
        connection.execute("DROP TABLE w, x")


MADE = NAMES[:48]


@pytest.mark.long
def test_what_is_made_of_such_a_table(tmp_path: Path) -> None:
    """Indexes, sinks, subscriptions, COPY, cursors, ALTER TABLE and ALTER MATERIALIZED VIEW, and a restart."""
    server = Server(tmp_path / "data")
    listed = ", ".join(map(quoted, MADE))
    columns = ", ".join(f"{quoted(name)} int" for name in MADE)
    try:
        with server.connect() as own:
            own.execute("ALTER SYSTEM SET backfill_engine = auto")
            own.execute(f"CREATE TABLE h ({columns}, PRIMARY KEY ({quoted(MADE[1])}, {quoted(MADE[0])}))".encode())
            own.execute(f"INSERT INTO h VALUES {values(1, 8, len(MADE))}")
            own.execute(f"CREATE TABLE taken ({columns}, PRIMARY KEY ({quoted(MADE[1])}, {quoted(MADE[0])}))".encode())
            own.execute("CREATE SINK into_taken INTO taken FROM h")
            own.execute("CREATE SUBSCRIPTION followed FROM h WITH (retention = '1D')")
            own.execute(f"CREATE INDEX by_them ON h ({', '.join(map(quoted, MADE[:20]))})".encode())
            own.execute("CREATE MATERIALIZED VIEW v AS SELECT * FROM h")
            own.execute("CREATE SUBSCRIPTION of_view FROM v WITH (retention = '1D')")
            own.execute("CREATE MATERIALIZED VIEW m AS SELECT * FROM v")
            own.execute("CREATE TABLE as_it AS SELECT * FROM h")
            for name in ("followed", "of_view"):
                own.execute(f"DECLARE c_{name} SUBSCRIPTION CURSOR FOR {name}")
                own.execute(f"DECLARE f_{name} SUBSCRIPTION CURSOR FOR {name} FULL")
            check_all(own, 7)
            own.execute(
                f"UPDATE h SET {quoted(MADE[2])} = 9, {quoted('rowid')} = 8 WHERE {quoted(MADE[0])} = 3".encode()
            )
            own.execute(f"DELETE FROM h WHERE {quoted(MADE[0])} = 4".encode())
            check_all(own, 6)
            for name in ("followed", "of_view"):
                changed = rows(own, f"FETCH 100 FROM c_{name}")
                assert [row[-2] for row in changed] == ["UpdateDelete", "UpdateInsert", "Delete"]
                assert (changed[1][2], changed[1][MADE.index("rowid")]) == (9, 8)
                assert len(rows(own, f"FETCH 100 FROM f_{name}")) == 7 + 3
            own.execute("DECLARE plain_cursor CURSOR FOR SELECT * FROM h")
            assert len(rows(own, "FETCH ALL FROM plain_cursor")) == 6
            with own.cursor().copy("COPY (SELECT * FROM h) TO STDOUT (FORMAT csv, HEADER)") as out:
                copied = b"".join(out)
            own.execute("DELETE FROM as_it")
            with own.cursor().copy(f"COPY as_it ({listed}) FROM STDIN (FORMAT csv, HEADER)".encode()) as copy:
                copy.write(copied)
            assert sorted(rows(own, "SELECT * FROM as_it")) == sorted(rows(own, "SELECT * FROM h"))
            shown = rows(own, "SELECT column_name FROM information_schema.columns WHERE table_name = 'v'")
            assert {name for (name,) in shown} == {*MADE}
            assert [column.name for column in own.execute("SELECT * FROM m").description or ()] == [*MADE]
            # ALTER TABLE.
            own.execute("CREATE TABLE altered (k int PRIMARY KEY, v int, w int)")
            own.execute("INSERT INTO altered VALUES (1, 2, 3), (2, 3, 4)")
            own.execute("CREATE MATERIALIZED VIEW of_altered AS SELECT v, count(*) AS n FROM altered GROUP BY v")
            former = "v"
            for name in ("_count", "_weight", "snapshot_id", "Mixed", "?row"):
                own.execute(f"ALTER TABLE altered RENAME COLUMN {quoted(former)} TO {quoted(name)}".encode())
                former = name
            added = (f"ADD COLUMN {quoted(name)} int DEFAULT 5" for name in MADE if name != former)
            own.execute(f"ALTER TABLE altered {', '.join(added)}")
            own.execute(f"INSERT INTO altered (k, {quoted(former)}, {quoted('rowid')}) VALUES (3, 3, 7)".encode())
            own.execute(f"UPDATE altered SET {quoted(former)} = 2 WHERE {quoted('rowid')} = 5 AND k = 2".encode())
            own.execute("CREATE MATERIALIZED VIEW after AS SELECT * FROM altered")
            own.execute(f"DELETE FROM altered WHERE {quoted('_weight')} = 5 AND k = 1".encode())
            own.execute("FLUSH")
            assert sorted(rows(own, "SELECT * FROM of_altered")) == [(2, 1), (3, 1)]
            assert sorted(rows(own, "SELECT * FROM after")) == sorted(rows(own, "SELECT * FROM altered"))
            own.execute("DROP SUBSCRIPTION of_view")
            own.execute(f"ALTER MATERIALIZED VIEW v AS SELECT * FROM h WHERE {quoted(MADE[0])} <> 2")
            check_all(own, 6, 5)
        server.kill()
        server = Server(tmp_path / "data")
        with server.connect() as own:
            own.execute(f"INSERT INTO h VALUES {values(20, 22, len(MADE))}")
            own.execute(f"DELETE FROM h WHERE {quoted(MADE[0])} = 1".encode())
            check_all(own, 7, 6)
    finally:
        server.kill()


def check_all(own: Connection, count: int, of_view: int | None = None) -> None:
    own.execute("FLUSH")
    own.execute("FLUSH")  # sinks into tables
    right = sorted(rows(own, "SELECT * FROM h"))
    assert len(right) == count
    assert sorted(rows(own, "SELECT * FROM taken")) == right
    views = [sorted(rows(own, f"SELECT * FROM {view}")) for view in ("v", "m")]
    assert views[0] == views[1] and len(views[0]) == (count if of_view is None else of_view)
    looked_up = f"SELECT * FROM h WHERE {quoted(MADE[0])} = {right[0][0]}"
    assert "by_them" in str(rows(own, f"EXPLAIN {looked_up}"))
    assert rows(own, looked_up) == [right[0]]


@pytest.mark.parametrize(
    ("statement", "message"),
    [
        ('CREATE TABLE two (a int, "A" int)', 'columns "a" and "A" differ only in case, which is not supported'),
        ('CREATE MATERIALIZED VIEW two AS SELECT 1 AS a, 2 AS "A"', 'columns "a" and "A" differ only in case'),
        ('CREATE TABLE two AS SELECT 1 AS a, 2 AS "A"', 'columns "a" and "A" differ only in case'),
        ('SELECT "A" FROM (SELECT 1 AS a, 2 AS "A") AS two', 'columns "a" and "A" differ only in case'),
        ('WITH two (a, "A") AS (SELECT 1, 2) SELECT "A" FROM two', 'columns "a" and "A" differ only in case'),
        ('CREATE TABLE two ("_row_id" int)', 'column name "_row_id" conflicts with a system column name'),
    ],
)
def test_names_that_are_refused(connection: Connection, statement: str, message: str) -> None:
    assert message in str(refused(connection, statement))


def test_texts_that_differ_only_in_case(connection: Connection) -> None:
    """What a view counts is called after its text."""
    connection.execute("CREATE TABLE letters (k int PRIMARY KEY, a varchar)")
    connection.execute("INSERT INTO letters VALUES (1, 'a'), (2, 'A'), (3, 'A')")
    connection.execute(
        "CREATE MATERIALIZED VIEW cases AS SELECT count(*) FILTER (WHERE a = 'A') AS upper, "
        "count(*) FILTER (WHERE a = 'a') AS lower, string_agg(a, '\"' ORDER BY k) AS q, string_agg(a, '' ORDER BY k) "
        "AS e, string_agg(a, 'X' ORDER BY k) AS x, string_agg(a, 'x' ORDER BY k) AS y FROM letters"
    )
    connection.execute(
        "CREATE MATERIALIZED VIEW grouped AS SELECT a = 'A' AS up, a = 'a' AS low, count(*) AS n "
        "FROM letters GROUP BY a = 'A', a = 'a'"
    )
    connection.execute("DELETE FROM letters WHERE k = 3")
    connection.execute("FLUSH")
    assert rows(connection, "SELECT * FROM cases") == [(1, 1, 'a"A', "aA", "aXA", "axA")]
    assert sorted(rows(connection, "SELECT * FROM grouped")) == [(False, True, 1), (True, False, 1)]
    connection.execute("DROP TABLE letters CASCADE")


def test_a_cte_that_is_called_as_a_table_is_inside(connection: Connection) -> None:
    connection.execute("CREATE TABLE inner_name (a int)")
    connection.execute("INSERT INTO inner_name VALUES (1)")
    connection.execute("CREATE VIEW through AS SELECT * FROM inner_name")
    [(id_,)] = rows(connection, "SELECT id FROM rw_catalog.rw_tables WHERE name = 'inner_name'")
    query = f"WITH r{id_} AS (SELECT 5 AS a) SELECT t.a, r{id_}.a AS b, v.a AS c FROM inner_name t, r{id_}, through v"
    connection.execute(f"CREATE MATERIALIZED VIEW of_both AS {query}")
    assert rows(connection, "SELECT * FROM of_both") == rows(connection, query) == [(1, 5, 1)]
    connection.execute("DROP TABLE inner_name CASCADE")


def test_what_is_shown_of_such_names(connection: Connection) -> None:
    connection.execute('CREATE TABLE "Order" ("Id" int PRIMARY KEY, "userId" int, "Total" numeric(10, 2))')
    query = 'SELECT "userId", sum("Total") AS "sumTotal" FROM "Order" GROUP BY "userId"'
    connection.execute(f'CREATE MATERIALIZED VIEW "byUser" AS {query}')
    hidden = [name for name, _, is_hidden, _ in rows(connection, 'SHOW COLUMNS FROM "byUser"') if is_hidden == "true"]
    assert hidden == ["_count", "_count(Order.Total)", "_sum(Order.Total)"]
    assert "group_key: [Order.userId]" in str(rows(connection, f"EXPLAIN CREATE MATERIALIZED VIEW v AS {query}"))
    ungrouped = query.replace("SELECT", 'SELECT "Id",')
    error = refused(connection, f"CREATE MATERIALIZED VIEW v AS {ungrouped}")
    assert 'column "Order.Id" must appear in the GROUP BY clause' in str(error)
    connection.execute('DROP TABLE "Order" CASCADE')


def test_the_column_that_a_sink_writes_is_its_own(connection: Connection, tmp_path: Path) -> None:
    connection.execute('CREATE TABLE operated (k int PRIMARY KEY, "_op" int)')
    options = f"(connector = 'fs', fs.path = '{tmp_path}/out')"
    error = refused(connection, f"CREATE SINK written FROM operated WITH {options} FORMAT UPSERT ENCODE PARQUET")
    assert (error.sqlstate, '"_op" is the column' in str(error)) == ("42939", True)
    connection.execute("DROP TABLE operated")


@pytest.mark.long
def test_on_spark(tmp_path: Path) -> None:
    """Views that Spark fills and keeps up to date."""
    with opened(tmp_path / "lake", streaming_engine="spark", backfill_engine="spark") as (context, client):
        for tables, names in ((("h", "g"), NAMES), (("p", "q"), PLAIN)):
            create(client, tables[0], names, f", PRIMARY KEY ({quoted(names[0])})")
            create(client, tables[1], names, "")
            for table in tables:
                run(client, CHANGES[0](tuple(map(quoted, names)), table))
        expected = {}
        for number, name in enumerate(("aggregated", "full_", "nested")):
            run(client, f"CREATE MATERIALIZED VIEW {name} AS {filled(VIEWS[name], Names(number, NAMES), ('h', 'g'))}")
            expected[name] = filled(VIEWS[name], Names(number, PLAIN), ("p", "q"))
        for table, names in (("h", NAMES), ("g", NAMES), ("p", PLAIN), ("q", PLAIN)):
            run(client, CHANGES[2](tuple(map(quoted, names)), table))
        context.coordinator.flush(lambda: False)
        for name, query in expected.items():
            assert as_bag(run(client, f"SELECT * FROM {name}")) == as_bag(run(client, query)), name
