"""Names of relations in statements."""

from __future__ import annotations

from dataclasses import dataclass

from sparkwave.catalog.names import quote_if_needed


@dataclass(frozen=True)
class Name:
    """A relation's name as written. `position` counts characters of the statement from 1."""

    database: str | None
    schema: str | None
    name: str
    position: int

    def __str__(self) -> str:
        return ".".join(part for part in (self.database, self.schema, self.name) if part)

    @property
    def sql(self) -> str:
        """The name in SQL, quoted where needed."""
        return ".".join(quote_if_needed(part) for part in (self.database, self.schema, self.name) if part)
