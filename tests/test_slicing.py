"""Into which slices a Snapshot backfill is cut."""

from __future__ import annotations

from pathlib import Path

import pytest
from test_retention import opened, run

from executor.slicing import cut, plan_slices

TABLES = (
    "CREATE TABLE f (id int PRIMARY KEY, d int)",
    "CREATE TABLE d (id int PRIMARY KEY, name varchar)",
    "INSERT INTO f SELECT i, i % 300 FROM range(1000) r(i)",
    "INSERT INTO d SELECT i, 'name ' || i FROM range(300) r(i)",
)
FILTER = "SELECT id FROM f WHERE id > 10"
JOIN = "SELECT f.id, d.name FROM f JOIN d ON d.id = f.d"
GROUPS = "SELECT d, count(*) AS n FROM f GROUP BY d"


@pytest.mark.parametrize(
    ("query", "slice_rows", "expected"),
    [
        (FILTER, 1000, [1000]),
        (FILTER, 501, [1000]),  # which is not worth two
        (FILTER, 500, [500, 500]),
        (FILTER, 300, [334, 333, 333]),
        (GROUPS, 400, [500, 500, 0]),  # the last merges them
        (JOIN, 500, [500, 500]),
        (JOIN, 100, [334, 333, 333]),  # each reads the 300 rows of the other table
        (JOIN, 25, [250, 250, 250, 250]),  # but is no more than ten times as large
    ],
)
def test_slices(tmp_path: Path, query: str, slice_rows: int, expected: list[int]) -> None:
    with opened(tmp_path) as (context, client):
        run(client, *TABLES, f"CREATE MATERIALIZED VIEW v AS {query}")
        catalog = context.store.catalog
        [view] = [relation for relation in catalog.relations if relation.name == "v"]
        cursor = context.lake.cursor()
        plan = context.plans.view(view, catalog).plan
        slices = plan_slices(cursor, plan, context.lake.snapshot(cursor), slice_rows)
        assert [slice_.row_count for slice_ in slices] == expected


def test_cut() -> None:
    assert cut((10, 19), 10, 4) == [(0, 15, 5), (15, None, 5)]
    assert cut((0, 9), 3, 1) == [(0, 4, 1), (4, 8, 1), (8, None, 1)]
    assert cut((0, -1), 0, 5) == [(0, None, 0)]
