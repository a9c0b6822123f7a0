"""The law for TPC-H's 22 queries, while orders come (RF1) and go (RF2) and everything else changes too."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import NamedTuple

import pytest
from query_sets import Outcome, maintain, types, wrong
from test_law import no_failures, opened, run
from tpch import QUERIES, UPDATES, Data

from sparkwave.server.dispatch import Client

pytestmark = pytest.mark.long
ON_SPARK = ("q01", "q03", "q13", "q21")


class Maintained(NamedTuple):
    client: Client
    outcomes: dict[str, Outcome]


@pytest.fixture(scope="module")
def maintained(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Maintained]:
    """All views on DuckDB, taken through a few epochs."""
    directory = tmp_path_factory.mktemp("tpch")
    data = Data(directory / "csv", "0.01", 8_000)
    with (
        no_failures(),
        opened(directory / "lake", streaming_engine="duckdb", backfill_engine="auto") as (context, client),
    ):
        data.load(client)
        yield Maintained(client, maintain(context, client, QUERIES, epochs(data, client)))


def epochs(data: Data, client: Client) -> dict[str, Callable[[], object]]:
    """Orders come, orders go, then both with half of the updates each."""

    def changes(inserted: int, deleted: int, updates: tuple[str, ...]) -> None:
        if inserted:
            data.insert_orders(client, inserted)
        if deleted:
            data.delete_orders(client, deleted)
        for update in updates:
            run(client, update)

    half = len(UPDATES) // 2
    return {
        "orders inserted": partial(changes, 300, 0, ()),
        "orders deleted, rows updated": partial(changes, 0, 300, UPDATES[:half]),
        "more of everything": partial(changes, 100, 100, UPDATES[half:]),
    }


@pytest.mark.parametrize("name", QUERIES)
def test_view_equals_its_query(maintained: Maintained, name: str) -> None:
    outcome = maintained.outcomes[name]
    assert outcome.refused is None
    assert not outcome.differences
    assert outcome.has_followed


@pytest.mark.parametrize("name", QUERIES)
def test_view_has_the_types_of_its_query(maintained: Maintained, name: str) -> None:
    assert types(maintained.client, f"SELECT * FROM {name}") == types(maintained.client, QUERIES[name])


@pytest.mark.spark
def test_filled_on_spark(tmp_path: Path) -> None:
    """Backfills on Spark, epochs in process."""
    check(tmp_path, "0.001", 1200, {name: QUERIES[name] for name in ON_SPARK}, backfill_engine="spark")


@pytest.mark.spark
@pytest.mark.timeout(3600)
def test_all_on_spark(tmp_path: Path) -> None:
    check(tmp_path, "0.1", 140_000, QUERIES, streaming_engine="spark", backfill_engine="spark")


def check(directory: Path, scale: str, loaded: int, views: dict[str, str], **parameters: str) -> None:
    data = Data(directory / "csv", scale, loaded)
    with no_failures(), opened(directory / "lake", **parameters) as (context, client):
        data.load(client)
        outcomes = maintain(context, client, views, epochs(data, client))
    assert wrong(outcomes) == {}
