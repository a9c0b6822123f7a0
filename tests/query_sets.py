"""Sets of queries as views in one process: created, taken through epochs, and compared with what the queries return."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from itertools import chain
from pathlib import Path

from test_law import run

from sparkwave.catalog.errors import Error
from sparkwave.server.context import Context
from sparkwave.server.dispatch import Client
from sparkwave.server.wire.copy_text import CopyParser

FOLDER = Path(__file__).parent / "queries"


def queries(folder: str) -> dict[str, str]:
    """The queries of a folder by name, in the order of their numbers."""
    files = (FOLDER / folder).glob("q*.sql")
    return {file.stem: file.read_text() for file in sorted(files, key=lambda file: int(file.stem[1:]))}


def tables(folder: str, suffix: str = "") -> list[str]:
    """The CREATE TABLEs of a folder's tables.sql; `suffix` goes after each."""
    statements = (FOLDER / folder / "tables.sql").read_text().split(";")
    return [statement + suffix for statement in statements if statement.strip()]


def create_tables(client: Client, folder: str, suffix: str = "") -> None:
    for statement in tables(folder, suffix):
        run(client, statement)


def copy(client: Client, table: str, lines: Iterable[bytes]) -> None:
    """COPY rows in CSV into a table."""
    sink = client.execute(client.prepare(f"COPY {table} FROM STDIN (FORMAT csv)", ()), ()).copy_in
    assert sink is not None
    parser = CopyParser([column.name for column in sink.columns], sink.options)
    for batch in chain(parser.feed(b"".join(lines)), parser.finish()):
        sink.write(batch)
    sink.finish()


@dataclass
class Outcome:
    """What became of a query: why it was refused, and where the view was not what the query returned."""

    refused: str | None = None
    differences: list[str] = field(default_factory=list)
    results: set[frozenset[tuple[tuple[object, ...], int]]] = field(default_factory=set, repr=False)

    @property
    def has_followed(self) -> bool:
        """Whether the result changed in some epoch, so that there was something to maintain."""
        return len(self.results) > 1


def maintain(
    context: Context, client: Client, views: Mapping[str, str], epochs: Mapping[str, Callable[[], object]]
) -> dict[str, Outcome]:
    """Create views, then run and flush the epochs in order, comparing each view after each."""
    outcomes = {name: Outcome() for name in views}
    for name, query in views.items():
        try:
            run(client, f"CREATE MATERIALIZED VIEW {name} AS {query}")
        except Error as error:
            outcomes[name].refused = error.message
    for moment, change in {"created": lambda: None, **epochs}.items():
        change()
        context.coordinator.flush(lambda: False)
        for name, outcome in outcomes.items():
            if outcome.refused is None:
                _compare(client, name, views[name], moment, outcome)
    return outcomes


_AS_OF_NOW = " FOR SYSTEM_TIME AS OF PROCTIME()"


def _compare(client: Client, name: str, query: str, moment: str, outcome: Outcome) -> None:
    try:
        # What a temporal join finds in a side that does not change meanwhile is what a join finds.
        maintained, computed = run(client, f"SELECT * FROM {name}"), run(client, query.replace(_AS_OF_NOW, ""))
    except Error as error:
        outcome.differences.append(f"{moment}: {error.message}")
        return
    places = _rounded_places(maintained + computed)
    views, results = _bag(maintained, places), _bag(computed, places)
    outcome.results.add(frozenset(results.items()))
    if views != results:
        missing, extra = list(results - views)[:3], list(views - results)[:3]
        outcome.differences.append(f"{moment}: missing {missing}, extra {extra}")


def _rounded_places(rows: list[tuple[object, ...]]) -> set[int]:
    """The columns to compare by 9 digits: those with floats."""
    return {place for row in rows for place, value in enumerate(row) if isinstance(value, float)}


def _bag(rows: list[tuple[object, ...]], places: set[int]) -> Counter[tuple[object, ...]]:
    return Counter(
        tuple(_rounded(value) if place in places else value for place, value in enumerate(row)) for row in rows
    )


def _rounded(value: object) -> object:
    return f"{float(value) + 0.0:.9g}" if isinstance(value, float | int | Decimal) else value


def types(client: Client, query: str) -> list[str]:
    """The types of a query's columns as clients are told, without precision; texts of views are character varying."""
    names = (column.type.name for column in client.prepare(query, ()).columns or ())
    return ["character varying" if name == "text" else name for name in names]


def wrong(outcomes: Mapping[str, Outcome]) -> dict[str, Outcome]:
    """The queries that were refused or differ."""
    return {name: o for name, o in outcomes.items() if o.refused or o.differences}
