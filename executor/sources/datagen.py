"""The connector `datagen`: made up rows, whose columns the options describe."""

from __future__ import annotations

from catalog.model import Column
from catalog.names import quote
from catalog.sources import Source
from executor.sources.generator import Generator
from planner.generators import datagen_rows

_DEFAULT_RATE = 10


def datagen(source: Source, columns: tuple[Column, ...]) -> Generator:
    """The generator of a source with these visible columns."""
    made = datagen_rows(source.options, columns)
    values = zip(made.columns, columns, strict=True)
    select = ", ".join(f"{value} AS {quote(column.name)}" for value, column in values)
    return Generator(select, made.count, int(source.options.get("datagen.rows.per.second", _DEFAULT_RATE)))
