"""The law for the Nexmark queries, while events arrive and are corrected."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import NamedTuple

import pytest
from nexmark import CORRECTIONS, QUERIES, Generator, create
from query_sets import Outcome, maintain, types, wrong
from test_law import no_failures, opened, run

from sparkwave.server.dispatch import Client

# Some where it matters that no row ever goes.
ON_APPEND_ONLY = ("q05", "q07", "q13", "q16", "q18", "q19")


class Maintained(NamedTuple):
    client: Client
    outcomes: dict[str, Outcome]


@pytest.fixture(scope="module")
def maintained(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Maintained]:
    """All views on tables whose rows may change."""
    directory = tmp_path_factory.mktemp("nexmark") / "lake"
    with no_failures(), opened(directory, streaming_engine="duckdb", backfill_engine="auto") as (context, client):
        generator = created(client)
        half = len(CORRECTIONS) // 2
        epochs = {
            "events inserted": partial(generator.insert, client, 300),
            "bids corrected": partial(changes, client, generator, CORRECTIONS[:half]),
            "the rest corrected": partial(changes, client, generator, CORRECTIONS[half:]),
        }
        yield Maintained(client, maintain(context, client, QUERIES, epochs))


def created(client: Client, suffix: str = "") -> Generator:
    generator = Generator(seed=1)
    create(client, suffix)
    generator.insert(client, 1000)
    return generator


def changes(client: Client, generator: Generator, corrections: tuple[str, ...]) -> None:
    generator.insert(client, 200)
    for statement in corrections:
        run(client, statement)


@pytest.mark.long
@pytest.mark.parametrize("name", QUERIES)
def test_view_equals_its_query(maintained: Maintained, name: str) -> None:
    outcome = maintained.outcomes[name]
    assert outcome.refused is None
    assert not outcome.differences
    assert outcome.has_followed


# A query has no temporal join.
@pytest.mark.long
@pytest.mark.parametrize("name", [name for name in QUERIES if name != "q13"])
def test_view_has_the_types_of_its_query(maintained: Maintained, name: str) -> None:
    assert types(maintained.client, f"SELECT * FROM {name}") == types(maintained.client, QUERIES[name])


def check_append_only(directory: Path, names: tuple[str, ...], batches: int, **parameters: str) -> None:
    with no_failures(), opened(directory, **parameters) as (context, client):
        generator = created(client, " APPEND ONLY")
        epochs: dict[str, Callable[[], object]] = {
            f"batch {number}": partial(generator.insert, client, 300) for number in range(batches)
        }
        outcomes = maintain(context, client, {name: QUERIES[name] for name in names}, epochs)
    assert wrong(outcomes) == {}


@pytest.mark.long
def test_append_only(tmp_path: Path) -> None:
    check_append_only(tmp_path / "lake", ON_APPEND_ONLY, 2, streaming_engine="duckdb", backfill_engine="auto")


@pytest.mark.spark
@pytest.mark.long
@pytest.mark.timeout(3600)
def test_all_on_spark(tmp_path: Path) -> None:
    check_append_only(tmp_path / "lake", tuple(QUERIES), 6, streaming_engine="spark", backfill_engine="spark")
