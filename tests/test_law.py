"""The law: after any changes, cut into any epochs, a view equals its query over the tables.

Random views over random tables. On DuckDB the views are filled and maintained in process; on Spark both run there.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa
import pytest
from random_views import TABLES, Generator

from catalog.types import Type
from server.config import Config
from server.context import Context, open_context
from server.dispatch import Client
from server.text_format import text_array

VIEWS, EPOCHS, CHANGES = 5, 6, 4


@contextmanager
def opened(directory: Path, **parameters: str) -> Iterator[tuple[Context, Client]]:
    config = Config(data=directory, spark_start="on_demand", spark_cores=2, spark_memory_mib=1024)
    given = {"barrier_interval_ms": "3600000", "refresh_mode": "incremental", **parameters}
    context = open_context(config, given)
    try:
        yield context, Client(context, {"user": "root"})
    finally:
        context.close()


def run(client: Client, sql: str) -> list[tuple[object, ...]]:
    result = client.execute(client.prepare(sql, ()), ())
    types = [column.type for column in result.columns or ()]
    return [
        row
        for batch in result.batches or ()
        for row in zip(*(values(c, t) for c, t in zip(batch.columns, types, strict=True)), strict=True)
    ]


def values(array: pa.Array, type_: Type) -> list[object]:
    """Python values; of rows, whose fields may have no names, their text."""
    return (text_array(array, type_) if type_.fields else array).to_pylist()


def as_bag(rows: list[tuple[object, ...]]) -> Counter[tuple[object, ...]]:
    """Rows as a multiset. Sums here are exact in binary; variances agree to 9 digits, whatever the order."""
    return Counter(tuple(map(comparable, row)) for row in rows)


def comparable(value: object) -> object:
    if isinstance(value, list):
        return tuple(map(comparable, value))
    return f"{value + 0.0:.9g}" if isinstance(value, float) else value


def check(client: Client, views: dict[str, str], moment: str) -> None:
    for name, query in views.items():
        maintained, computed = as_bag(run(client, f"SELECT * FROM {name}")), as_bag(run(client, query))
        missing, extra = computed - maintained, maintained - computed
        assert not missing and not extra, f"{moment}: {name} = {query}\nmissing {missing}\nextra {extra}"


def script(seed: int, views: int, epochs: int) -> Iterator[str]:
    """The statements of one random case; each FLUSH ends an epoch, after which every view is checked."""
    generator = Generator(seed)
    yield from TABLES.values()
    yield from (generator.change() for _ in range(6))
    for number in range(views):
        yield f"CREATE MATERIALIZED VIEW v{number} AS {generator.view(f'v{number}')}"
        yield generator.change()
    yield "FLUSH"
    for _ in range(epochs):
        yield from (generator.change() for _ in range(generator.random.randint(0, CHANGES)))
        yield "FLUSH"
    yield from (f"DROP MATERIALIZED VIEW v{number}" for number in reversed(range(views)))
    yield from (f"DROP TABLE {table}" for table in TABLES)


def replay(context: Context, client: Client, statements: Iterable[str], title: str, modes: Sequence[str] = ()) -> None:
    """Run a script and hold the law after each epoch; with modes of refreshing in turn, if any are given."""
    made: dict[str, str] = {}
    epoch = 0
    for statement in statements:
        if statement == "FLUSH":
            if modes:
                run(client, f"ALTER SYSTEM SET refresh_mode = {modes[epoch % len(modes)]}")
            context.coordinator.flush(lambda: False)
            check(client, made, f"{title}, epoch {epoch}")
            epoch += 1
            continue
        run(client, statement)
        if statement.startswith(_CREATE):
            name, _, query = statement.removeprefix(_CREATE).partition(" AS ")
            made[name] = query
        elif statement.startswith("DROP MATERIALIZED VIEW "):
            made.pop(statement.removeprefix("DROP MATERIALIZED VIEW "))


_CREATE = "CREATE MATERIALIZED VIEW "
REGRESSIONS = Path(__file__).parent / "regressions"
COMBINED = Path(__file__).parent / "queries" / "combined.sql"


def obey(
    context: Context, client: Client, seed: int, views: int = VIEWS, epochs: int = EPOCHS, modes: Sequence[str] = ()
) -> None:
    """One random case. A case that fails is kept in `tests/regressions`, to be committed with the fix."""
    statements = list(script(seed, views, epochs))
    try:
        replay(context, client, statements, f"seed {seed}", modes)
    except Exception:
        REGRESSIONS.mkdir(exist_ok=True)
        (REGRESSIONS / f"seed_{seed}.sql").write_text(";\n".join(statements) + ";\n")
        raise


def obey_many(directory: Path, seeds: range, modes: Sequence[str] = ()) -> None:
    """Many cases in one server: views are filled and maintained in process."""
    with opened(directory, streaming_engine="duckdb", backfill_engine="auto") as (context, client):
        for seed in seeds:
            obey(context, client, seed, modes=modes)


@pytest.mark.parametrize("case", sorted(REGRESSIONS.glob("*.sql")), ids=lambda path: path.stem)
def test_regression(tmp_path: Path, case: Path) -> None:
    statements = [part for part in case.read_text().split(";\n") if part]
    with opened(tmp_path / "lake", streaming_engine="duckdb", backfill_engine="auto") as (context, client):
        replay(context, client, statements, case.stem)


@pytest.mark.long
def test_combined_operators(tmp_path: Path) -> None:
    """Queries in which operators meet that the random views seldom put together."""
    queries = [text for text in COMBINED.read_text().split(";\n") if text]
    generator = Generator(1)
    statements = [*TABLES.values(), *(generator.change() for _ in range(12))]
    statements += [f"{_CREATE}v{number} AS {query}" for number, query in enumerate(queries)]
    for _ in range(4):
        statements += ["FLUSH", *(generator.change() for _ in range(4))]
    with opened(tmp_path / "lake", streaming_engine="duckdb", backfill_engine="auto") as (context, client):
        replay(context, client, statements, "combined")


def test_law_on_duckdb(tmp_path: Path) -> None:
    obey_many(tmp_path / "lake", range(1))


# So that each way finds what the other has left.
MODES = ("full", "incremental", "full")


def test_law_with_full_refreshes(tmp_path: Path) -> None:
    obey_many(tmp_path / "lake", range(1), MODES)


@pytest.mark.long
@pytest.mark.timeout(3000)
def test_law_with_full_refreshes_at_length(tmp_path: Path) -> None:
    obey_many(tmp_path / "lake", range(2000, 2020), MODES)


@pytest.mark.long
@pytest.mark.timeout(3000)
@pytest.mark.parametrize("start", range(100, 1100, 100))
def test_law_on_duckdb_at_length(tmp_path: Path, start: int) -> None:
    obey_many(tmp_path / "lake", range(start, start + 20))


@pytest.mark.long
@pytest.mark.parametrize("engine", ["auto", "spark"])
@pytest.mark.spark
def test_law_on_spark(tmp_path: Path, engine: str) -> None:
    """Backfills on Spark in slices of a few rows; epochs on DuckDB (auto) or on Spark."""
    with opened(tmp_path / "lake", streaming_engine=engine, backfill_slice_rows="3") as (context, client):
        for seed in range(2 if engine == "auto" else 1):
            obey(context, client, seed, views=4, epochs=4 if engine == "auto" else 2)


def test_a_wrong_view_is_noticed(tmp_path: Path) -> None:
    """The check itself can fail."""
    with opened(tmp_path / "lake") as (_, client):
        run(client, "CREATE TABLE t (a int)")
        run(client, "INSERT INTO t VALUES (1), (1)")
        with pytest.raises(AssertionError, match="missing"):
            check(client, {"t": "SELECT a FROM t UNION ALL SELECT 1"}, "now")
