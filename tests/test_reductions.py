"""Semijoin reductions: what programs read of them, and that views are right where they are shared."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from test_copies import check
from test_golden import plan_over
from test_retention import opened, run

from sparkwave.catalog.lake.translation import Cursor
from sparkwave.executor.epochs import reductions
from sparkwave.executor.memory import copies
from sparkwave.planner.delta.compiler import compile_delta
from sparkwave.planner.delta.looked_up import Reduction

TABLES = (
    'CREATE TABLE c (id int PRIMARY KEY, region int, "o.c" bigint)',
    'CREATE TABLE o (id int PRIMARY KEY, c int, at timestamptz, "o.c" bigint)',
    "CREATE TABLE l (id int PRIMARY KEY, o int, v int)",
)
L_OF_O = Reduction("i1", ("o",), "i0", ("id",))
O_OF_L = Reduction("i0", ("id",), "i1", ("o",))


def reduced(query: str, *changed: str) -> dict[str, Reduction]:
    """The reductions for which relations stand in the program of a view over changes of inputs."""
    program = compile_delta(plan_over(TABLES, query), changed, reduces=True)
    return dict(program.reductions.values())


@pytest.mark.parametrize(
    ("query", "changed", "expected"),
    [
        ("SELECT o.id, l.v FROM o JOIN l ON l.o = o.id", ("i0", "i1"), {"i1_new": L_OF_O, "i0_old": O_OF_L}),
        ("SELECT o.id, l.v FROM o LEFT JOIN l ON l.o = o.id", ("i0",), {"i1_new": L_OF_O}),
        # The left rows of changed right rows, and all right rows that these have.
        (
            "SELECT o.id, l.v FROM o LEFT JOIN l ON l.o = o.id",
            ("i1",),
            {"i0_old": O_OF_L} | dict.fromkeys(("i1_old", "i1_new"), Reduction("i1", ("o",), "i1", ("o",))),
        ),
        (
            "SELECT id, row_number() OVER (PARTITION BY id ORDER BY at) AS n FROM o",
            ("i0",),
            dict.fromkeys(("i0_old", "i0_new"), Reduction("i0", ("id",), "i0", ("id",))),
        ),
        # Rows found by changed rows find others.
        (
            "SELECT l.id, c.region FROM l JOIN (o JOIN c ON c.id = o.c) ON l.o = o.id",
            ("i0",),
            {
                "i1_new": (of := Reduction("i1", ("id",), "i0", ("o",))),
                "i2_new": Reduction("i2", ("id",), of, ("c",)),
            },
        ),
        # Column names that look like a table's.
        (
            'SELECT o.id FROM o JOIN c ON c.id = o.c AND c."o.c" = o."o.c"',
            ("i0",),
            {"i1_new": Reduction("i1", ("id", "~o~46~c"), "i0", ("c", "~o~46~c"))},
        ),
        ("SELECT o.id FROM o JOIN l ON l.id = o.c", ("i0",), {"i1_new": Reduction("i1", ("id",), "i0", ("c",))}),
        # Changed pairs have unchanged rows of either table.
        ("SELECT 1 AS x, a.id, l.id AS l FROM (o AS a JOIN c ON c.id = a.c) JOIN l ON l.o = a.id", ("i0", "i1"), None),
        # A changed customer has unchanged orders, so changed left rows have other keys than the changed orders.
        ("SELECT c.id, l.id AS l FROM (c LEFT JOIN o ON o.c = c.id) JOIN l ON l.o = o.id", ("i1",), None),
        ("SELECT o.id, l.v FROM o JOIN l ON l.o IS NOT DISTINCT FROM o.id", ("i0",), {}),
        ("SELECT o.id, l.v FROM o JOIN l ON l.o = o.id + 1", ("i0",), {}),
        ("SELECT o.id, l.v FROM (SELECT * FROM o WHERE at > now() - interval '1 h') o JOIN l ON l.o = o.id",
         ("i0", "now"), {}),
    ],
)  # fmt: skip
def test_the_rows_that_programs_read(
    query: str, changed: tuple[str, ...], expected: dict[str, Reduction] | None
) -> None:
    """With None nothing of `l` is reduced by keys of the other tables."""
    found = reduced(query, *changed)
    if expected is None:
        assert not any(whole.startswith("i2_") for whole in found)
    else:
        assert found == expected


QUERIES = {
    "both": "SELECT o.id, o.c, l.id AS l, l.v FROM o JOIN l ON l.o = o.id",
    "sums": "SELECT o.c, sum(l.v) AS v, count(*) AS n FROM o JOIN l ON l.o = o.id GROUP BY o.c",
    "all_o": "SELECT o.id, count(l.id) AS n FROM o LEFT JOIN l ON l.o = o.id GROUP BY o.id",
    "without": "SELECT id FROM o WHERE NOT EXISTS (SELECT FROM l WHERE l.o = o.id)",
    "regions": "SELECT c.region, l.id FROM l JOIN (o JOIN c ON c.id = o.c) ON l.o = o.id",
    "numbered": "SELECT id, o, row_number() OVER (PARTITION BY o ORDER BY id) AS n FROM l",
}


def names_filled(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """A list that gets the name of each reduction that is stored."""
    filled: list[str] = []
    usually = reductions.fill_table

    def fill(cursor: Cursor, name: str, *rest: Any, by: Cursor) -> int:
        filled.append(name)
        return usually(cursor, name, *rest, by=by)

    monkeypatch.setattr(reductions, "fill_table", fill)
    return filled


def test_views_share_what_changed_rows_find(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(copies, "LARGE_ROWS", 3)
    with opened(tmp_path, refresh_mode="incremental") as (context, client):
        run(
            client,
            *TABLES,
            "INSERT INTO c SELECT i, i % 5 FROM generate_series(1, 40) r(i)",
            "INSERT INTO o SELECT i, i % 40 + 1 FROM generate_series(1, 300) r(i)",
            "INSERT INTO l SELECT i, i % 320, i FROM generate_series(1, 900) r(i)",
            *(f"CREATE MATERIALIZED VIEW {name} AS {query}" for name, query in QUERIES.items()),
        )
        cursor = context.coordinator._cursor
        filled = names_filled(monkeypatch)

        def change(*statements: str) -> None:
            filled.clear()
            run(client, *statements, "FLUSH")
            for name, query in QUERIES.items():
                check(client, name, query)

        for number in range(4):
            change(
                f"INSERT INTO o VALUES ({400 + number}, 7)",
                f"DELETE FROM l WHERE id IN ({number + 5}, {number + 50})",
                f"UPDATE l SET o = {number + 2} WHERE id = {number + 100}",
            )
        # Of lines by changed orders, of orders by changed lines, and of lines by changed lines.
        assert len(filled) == len({*filled}) == 3
        assert cursor.execute(f"SELECT count(*) FROM {filled[0]}").fetchall() == [(0,)]  # emptied after the epoch
        change("DELETE FROM o WHERE id < 30", "UPDATE o SET c = c % 7 + 1 WHERE id > 250", "DELETE FROM c WHERE id = 3")
        change(
            "INSERT INTO l VALUES (2000, NULL, 1)",
            "INSERT INTO o (id) VALUES (999)",
            "UPDATE l SET o = NULL WHERE id = 9",
        )
        # The key's column gets another type, and one that views read a new name.
        run(client, "DROP MATERIALIZED VIEW regions")
        del_query = QUERIES.pop("regions")
        try:
            change("UPDATE l SET v = v + 1 WHERE o < 20", "INSERT INTO o VALUES (1001, 1)")
            change("UPDATE l SET v = v + 1 WHERE o < 20", "INSERT INTO o VALUES (1002, 1)")
            run(client, f"CREATE MATERIALIZED VIEW regions AS {del_query}")
        finally:
            QUERIES["regions"] = del_query
        for number in range(3):
            change(f"UPDATE o SET c = {number + 1} WHERE id % 9 = {number}", f"DELETE FROM l WHERE o % 11 = {number}")


def test_few_uses_are_not_stored(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nor rows of a key that would find too many."""
    monkeypatch.setattr(copies, "LARGE_ROWS", 3)
    monkeypatch.setattr(reductions, "_MOST_ROWS", 5)
    filled = names_filled(monkeypatch)
    with opened(tmp_path, refresh_mode="incremental") as (_, client):
        run(
            client,
            *TABLES,
            "INSERT INTO o SELECT i, i % 40 + 1 FROM generate_series(1, 300) r(i)",
            "INSERT INTO l SELECT i, i % 20, i FROM generate_series(1, 900) r(i)",
        )
        query = "SELECT o.id, l.v FROM o JOIN l ON l.o = o.id"
        run(client, f"CREATE MATERIALIZED VIEW once AS {query}")
        for number in range(4):
            run(client, f"UPDATE l SET v = {number} WHERE id = 7", "FLUSH")
            check(client, "once", query)
        assert not filled
        run(client, f"CREATE MATERIALIZED VIEW twice AS {query}")
        for number in range(4):
            run(client, f"UPDATE l SET v = v + 1 WHERE id = {number + 1}", "FLUSH")
            run(client, f"INSERT INTO o VALUES ({-number - 1}, 2)", "FLUSH")
            check(client, "twice", query)
        assert filled  # of orders by changed lines; of lines by changed orders there would be 45
        assert len({*filled}) == 1
