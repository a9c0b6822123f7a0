"""Into which slices a Snapshot backfill is cut."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from pathlib import Path

import pytest
from test_retention import opened, run

from sparkwave.catalog.model import Epoch, Position
from sparkwave.catalog.stores.job_store import BUCKET, Slice
from sparkwave.executor.backfill import slicing
from sparkwave.executor.backfill.slicing import cut, plan_slices
from sparkwave.executor.backfill.snapshot import _taken
from sparkwave.server.context import Context
from sparkwave.server.dispatch import Client

TABLES = (
    "CREATE TABLE f (id int PRIMARY KEY, d int)",
    "CREATE TABLE d (id int PRIMARY KEY, name varchar)",
    "INSERT INTO f SELECT i, i % 300 FROM range(1000) r(i)",
    "INSERT INTO d SELECT i, 'name ' || i FROM range(300) r(i)",
)
FILTER = "SELECT id FROM f WHERE id > 10"
JOIN = "SELECT f.id, d.name FROM f JOIN d ON d.id = f.d"
UNION = "SELECT id FROM f UNION ALL SELECT id FROM d"
FULL = "SELECT f.id, d.name FROM f FULL JOIN d ON d.id = f.d"
WINDOW = "SELECT id, rank() OVER (PARTITION BY d ORDER BY id) AS r FROM f"
UNMERGED = "SELECT d, bit_xor(id) AS n FROM f GROUP BY d"
UNMERGED_IN_ALL = "SELECT bit_xor(id) AS n FROM f"
GROUPS = "SELECT d, count(*) AS n FROM f GROUP BY d"


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Context, Client]]:
    """A context with the tables."""
    with opened(tmp_path_factory.mktemp("filled")) as (context, client):
        run(client, *TABLES)
        yield context, client


@pytest.mark.parametrize(
    ("query", "slice_rows", "expected"),
    [
        (FILTER, 1000, [1000]),
        (FILTER, 501, [1000]),  # which is not worth two
        (FILTER, 500, [500, 500]),
        (FILTER, 300, [334, 333, 333]),
        (GROUPS, 400, [500, 500, 0]),  # the last merges them
        (UNMERGED, 100, [1000]),  # which do not merge
        ("SELECT n, count(*) FROM (SELECT d, bit_xor(id) AS n FROM f GROUP BY d) GROUP BY n", 100, [1000, 0]),
        (JOIN, 500, [500, 500]),
        (JOIN, 100, [334, 333, 333]),  # each reads the 300 rows of the other table
        (JOIN, 25, [250, 250, 250, 250]),  # but is no more than ten times as large
        # It would read them too often. Both tables move, so that each row counts for a half where it is read, twice.
        (JOIN, 10, [5] * 100 + [5] * 30 + [50] * 13),
        (FULL, 100, [1300]),
        (FULL, 60, [31, 32] * 4 + [31] * 8 + [30] * 5 + [216, 217, 217]),  # one task would read too many
        (WINDOW, 51, [1000]),
        (WINDOW, 50, [25] * 20 + [250] * 2),
        (UNMERGED, 51, [1000]),
        (UNMERGED, 50, [250, 250, 250, 250]),
    ],
)
def test_slices(filled: tuple[Context, Client], query: str, slice_rows: int, expected: list[int]) -> None:
    context, client = filled
    run(client, f"CREATE MATERIALIZED VIEW v AS {query}")
    assert planned(context, "v", slice_rows) == expected
    run(client, "DROP MATERIALIZED VIEW v")


def planned(context: Context, name: str, slice_rows: int, shares: int = 1) -> list[int]:
    """The rows of the slices of a view."""
    catalog = context.store.catalog
    [view] = [relation for relation in catalog.relations if relation.name == name]
    cursor = context.lake.cursor()
    plan = context.plans.view(view, catalog).plan
    slices = plan_slices(cursor, plan, Position.at(Epoch(context.lake.snapshot(cursor), 0)), slice_rows, shares)
    return [slice_.row_count for slice_ in slices]


SHARED = [
    (FILTER, 10_000, 1, [1000]),
    (FILTER, 10_000, 4, [250, 250, 250, 250]),
    (FILTER, 10_000, 3, [334, 333, 333]),
    (FILTER, 10_000, 16, [100] * 10),  # no smaller than that
    (FILTER, 50, 4, [50] * 20),  # but where they are asked for
    (GROUPS, 10_000, 2, [500, 500, 0, 0]),  # the groups are merged by both
    (UNMERGED, 10_000, 2, [250, 250, 250, 250]),  # rows by group, and then the groups
    (UNMERGED_IN_ALL, 10_000, 2, [500, 500, 0]),
    (WINDOW, 10_000, 4, [125] * 8),
    (JOIN, 10_000, 8, [125] * 8),
    (JOIN, 10_000, 2, [500, 500]),
    (UNION, 10_000, 4, [334, 333, 333, 300]),  # each input is cut on its own
    (UNION, 10_000, 6, [200, 200, 200, 200, 200, 300]),
    ("SELECT id FROM d", 10_000, 9, [100, 100, 100]),
]


def test_nodes_share(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Several nodes have a slice each, or as many as they run at a time; one node has what it had."""
    monkeypatch.setattr(slicing, "LEAST_ROWS", 100)
    with opened(tmp_path) as (context, client):
        run(client, *TABLES)
        for number, (query, slice_rows, shares, expected) in enumerate(SHARED):
            run(client, f"CREATE MATERIALIZED VIEW v{number} AS {query}")
            assert planned(context, f"v{number}", slice_rows, shares) == expected, (query, shares)


def test_cut() -> None:
    assert cut((10, 19), 10, 4) == [(0, 15, 5), (15, None, 5)]
    assert cut((0, 9), 3, 1) == [(0, 4, 1), (4, 8, 1), (8, None, 1)]
    assert cut((0, -1), 0, 5) == [(0, None, 0)]


def test_tasks_of_a_job() -> None:
    """Neighbours are read by one task, the more of them the less time one takes."""
    ranges = [Slice(1, n + 1, 7, "i0", 10 * n, 10 * n + 10, 10) for n in range(7)]
    others = [Slice(1, 8, 7, "i1", 0, 10, 10), Slice(1, 9, None, BUCKET, 0, 1, 5), Slice(1, 10, None, BUCKET, 1, 2, 5)]
    waiting = deque([*ranges, *others])
    assert [[s.id for s in task] for task in _taken(waiting, 2, 3)] == [[1, 2, 3], [4, 5, 6]]
    assert [[s.id for s in task] for task in _taken(waiting, 9, 3)] == [[7], [8], [9], [10]]
    assert not waiting and _taken(waiting, 2, 1) == []
    gone = [ranges[0], *ranges[2:4]]  # what is finished already is no neighbour
    assert [[s.id for s in task] for task in _taken(deque(gone), 9, 3)] == [[1], [3, 4]]
