"""The connector `datagen`: generated rows, as the options describe the columns."""

from __future__ import annotations

from sparkwave.catalog.model import Column
from sparkwave.catalog.names import quote
from sparkwave.catalog.source_model import Source
from sparkwave.executor.sources.generator import Generator
from sparkwave.planner.definitions.generators import datagen_rows

_DEFAULT_RATE = 10


def datagen(source: Source, columns: tuple[Column, ...]) -> Generator:
    """Return the generator of a source with these visible columns."""
    made = datagen_rows(source.options, columns)
    values = zip(made.columns, columns, strict=True)
    select = ", ".join(f"{value} AS {quote(column.name)}" for value, column in values)
    return Generator(select, made.count, int(source.options.get("datagen.rows.per.second", _DEFAULT_RATE)))
