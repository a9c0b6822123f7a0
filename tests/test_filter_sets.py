"""Aggregates that meet filtered rows keep only the groups that can be read, and their views are right."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from test_copies import check
from test_golden import plan_over
from test_retention import opened, run

from sparkwave.executor.memory import copies
from sparkwave.planner.delta.compiler import compile_delta
from sparkwave.planner.plan.join_types import SEMI
from sparkwave.planner.plan.nodes import Aggregate, Filter, Join, Scan, TopN, walk
from sparkwave.planner.plan.stream_plan import StreamPlan

TABLES = (
    "CREATE TABLE part (id int PRIMARY KEY, brand varchar, size int, grade numeric)",
    "CREATE TABLE line (id int PRIMARY KEY, part int, supplier int, quantity numeric, part_text varchar)",
    "CREATE TABLE offer (part int, supplier int, cost numeric, PRIMARY KEY (part, supplier))",
)
AVERAGE = "(SELECT avg(quantity) FROM line AS i WHERE i.part = p.id)"
SUMS = "(SELECT part, sum(quantity) AS quantity, count(*) AS n FROM line GROUP BY part) AS s"


def sets(plan: StreamPlan) -> list[str]:
    """The relations that are joined with a filter set below an aggregate or top-n, each with the set's conditions."""
    found = []
    for node in walk(plan.root):
        for below in walk(node) if isinstance(node, Aggregate | TopN) else ():
            if isinstance(below, Join) and below.kind == SEMI and isinstance(below.right, Filter):
                [read] = [part for part in walk(below.left) if isinstance(part, Scan)]
                found.append(f"{read.relation.name}: {below.right.predicate.sql()}")
    return found


BRAND = "\"p.brand\" = 'x'"


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        (f"SELECT p.id FROM part p WHERE p.brand = 'x' AND p.size > {AVERAGE}", [f"line: {BRAND}"]),
        (f"SELECT p.id, s.n FROM part p JOIN {SUMS} ON s.part = p.id WHERE p.brand = 'x'", [f"line: {BRAND}"]),
        (f"SELECT p.id, s.n FROM {SUMS} JOIN part p ON s.part = p.id WHERE p.brand = 'x'", [f"line: {BRAND}"]),
        (f"SELECT p.id, s.n FROM part p LEFT JOIN {SUMS} ON s.part = p.id WHERE p.brand LIKE 'x%'",
         ["line: \"p.brand\" LIKE 'x%'"]),
        (f"SELECT p.id FROM part p WHERE p.size IN (1, 2) AND p.id NOT IN (SELECT part FROM {SUMS} WHERE n > 1)",
         ['line: "p.size" IN (1, 2)']),
        # By another field that is equal, and one key of two.
        ("""SELECT o.part, s.n FROM offer o JOIN part p ON p.id = o.part
             JOIN (SELECT part, supplier, count(*) AS n FROM line GROUP BY 1, 2) s
             ON s.part = o.part AND s.supplier = o.supplier WHERE p.brand = 'x'""", [f"line: {BRAND}"]),
        # Groups of a join, where their field is read; and first rows.
        ("""SELECT p.id, s.n FROM part p JOIN (SELECT l.part, count(*) AS n FROM line l JOIN offer o
            ON o.part = l.part GROUP BY l.part) s ON s.part = p.id WHERE p.brand = 'x'""", [f"line: {BRAND}"]),
        ("SELECT p.id, (SELECT l.id FROM line l WHERE l.part = p.id ORDER BY l.quantity LIMIT 1) AS first "
         "FROM part p WHERE p.brand = 'x'", [f"line: {BRAND}"]),
        # Only conditions that cannot fail are used.
        (f"SELECT p.id FROM part p WHERE p.brand = 'x' AND 1 / p.size = 1 AND p.size > {AVERAGE}", [f"line: {BRAND}"]),
        # A range may leave most rows; a NULL meets NULL; other types may be equal otherwise; outer rows matter.
        (f"SELECT p.id FROM part p WHERE p.size > 1 AND p.size > {AVERAGE}", []),
        (f"SELECT p.id, s.n FROM part p JOIN {SUMS} ON s.part IS NOT DISTINCT FROM p.id WHERE p.brand = 'x'", []),
        (f"SELECT p.id, s.n FROM part p JOIN {SUMS} ON s.part = p.grade WHERE p.brand = 'x'", []),
        (f"SELECT s.part, p.id FROM {SUMS} LEFT JOIN (SELECT * FROM part WHERE brand = 'x') p ON s.part = p.id", []),
        (f"SELECT s.part, p.id FROM {SUMS} FULL JOIN (SELECT * FROM part WHERE brand = 'x') p ON s.part = p.id", []),
        # Not a group's field, and a group's computed one.
        (f"SELECT p.id, s.n FROM part p JOIN {SUMS} ON s.n = p.id WHERE p.brand = 'x'", []),
        ("SELECT p.id FROM part p JOIN (SELECT part + 1 AS next, count(*) AS n FROM line GROUP BY 1) s "
         "ON s.next = p.id WHERE p.brand = 'x'", []),
        # The groups are of these rows themselves.
        ("SELECT p.id FROM part p WHERE p.brand = 'x' AND p.size > (SELECT avg(size) FROM part q WHERE q.id = p.id)",
         []),
    ],
)  # fmt: skip
def test_groups_are_restricted_where_it_is_right(query: str, expected: list[str]) -> None:
    assert sets(plan_over(TABLES, query)) == expected


def test_each_scan_of_a_plan_is_an_input_of_its_own() -> None:
    query = f"SELECT p.id FROM part p WHERE p.brand = 'x' AND p.size > {AVERAGE}"
    inputs = [scan.input for scan in plan_over(TABLES, query).scans]
    assert len(inputs) == len({*inputs}) == 3


def test_filtered_relations_are_looked_up_first() -> None:
    """Of the relations that have a match for a changed row, the one that leaves the fewest rows comes first."""
    query = """SELECT o.part FROM line l JOIN part p ON p.id = l.part JOIN offer o ON o.part = l.part
               JOIN line m ON m.supplier = l.supplier WHERE p.brand = 'x'"""
    first, second, *_ = compile_delta(plan_over(TABLES, query), ["i3"]).steps
    assert "i0_old" in first.query.sql()
    assert "i1_old" in second.query.sql()


VIEWS = {
    "averages": f"SELECT p.id, {AVERAGE} AS quantity FROM part p WHERE p.brand = 'x'",
    "above": f"SELECT p.id, p.size FROM part p WHERE p.brand LIKE 'x%' AND p.size > {AVERAGE}",
    "most": """SELECT o.part, o.supplier, s.most, s.n FROM offer o JOIN part p ON p.id = o.part
               LEFT JOIN (SELECT part, supplier, max(quantity) AS most, count(*) AS n FROM line GROUP BY 1, 2) s
               ON s.part = o.part AND s.supplier = o.supplier WHERE p.brand IN ('x', 'y') AND p.size < 5""",
    "costs": """SELECT p.id, s.cost, s.names FROM part p JOIN (SELECT l.part, min(o.cost) AS cost,
                string_agg(DISTINCT l.part_text, ',' ORDER BY l.part_text) AS names
                FROM line l JOIN offer o ON o.part = l.part GROUP BY l.part) s
                ON s.part = p.id WHERE p.size = 2""",
    "without": f"SELECT p.id FROM part p WHERE p.brand = 'x' AND p.id NOT IN (SELECT part FROM {SUMS} WHERE n > 2)",
    "many": f"SELECT p.id FROM part p WHERE p.grade = 1.5 AND p.id IN (SELECT part FROM {SUMS} WHERE n > 2)",
    "first": """SELECT p.id, (SELECT l.id FROM line l WHERE l.part = p.id ORDER BY l.quantity, l.id LIMIT 1) AS first
                FROM part p WHERE p.brand = 'x'""",
    "texts": """SELECT p.id, s.n FROM part p JOIN (SELECT part_text, count(*) AS n FROM line GROUP BY 1) s
                ON s.part_text = p.brand WHERE p.brand = 'x'""",
}


@pytest.mark.parametrize("large", [1, copies.LARGE_ROWS])
def test_views_are_right(tmp_path: Path, large: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """After random changes of all tables, with filters that rows begin and cease to meet; by indexes and by scans."""
    monkeypatch.setattr(copies, "LARGE_ROWS", large)
    some = random.Random(17)
    with opened(tmp_path, refresh_mode="incremental") as (_, client):
        run(
            client,
            *TABLES,
            "INSERT INTO part SELECT i, ('{x,y,xx}'::varchar[])[i % 3 + 1], i % 7, i % 4 * 0.5 FROM range(30) r(i)",
            "INSERT INTO line SELECT i, nullif(i % 33, 32), i % 4, i % 11 * 0.25, ('{x,y}'::varchar[])[i % 3 + 1] "
            "FROM range(200) r(i)",
            "INSERT INTO offer SELECT i % 30, i / 30, i * 0.5 FROM range(100) r(i)",
            *(f"CREATE MATERIALIZED VIEW {name} AS {query}" for name, query in VIEWS.items()),
        )
        for number in range(8):
            part, line, supplier = some.randrange(30), some.randrange(200), some.randrange(4)
            changes = [
                f"UPDATE part SET brand = {some.choice(['NULL', repr('x'), repr('y')])} WHERE id % 5 = {part % 5}",
                f"UPDATE part SET size = size + 1, grade = 1.5 WHERE id IN ({part}, {part + 1})",
                f"UPDATE line SET part = {part}, quantity = NULL WHERE id = {line}",
                f"DELETE FROM line WHERE part = {some.randrange(30)} AND id % 2 = {line % 2}",
                f"INSERT INTO line VALUES ({1000 + number}, {part}, {supplier}, 0.01, 'x')",
                f"INSERT INTO line VALUES ({2000 + number}, NULL, 1, 1, 'x')",
                f"DELETE FROM offer WHERE part = {part}",
                f"INSERT INTO offer VALUES ({part}, {supplier + 10}, {number})",
                f"DELETE FROM part WHERE id = {some.randrange(30)}",
            ]
            run(client, *some.sample(changes, some.randrange(1, 6)), "FLUSH")
            for name, query in VIEWS.items():
                check(client, name, query)
