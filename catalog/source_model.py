"""The connectors of tables and sources, and the positions up to which they have read, as frozen data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

# Words in the names of options whose values are never shown.
SECRET_OPTIONS = ("password", "secret", "token", "key.pem", "credentials")
MASK = "***"


@dataclass(frozen=True)
class Source:
    """A connector and its options, for a relation. `format` and `encode` are in upper case.

    `includes` are pairs of a fact about a row besides its values ("file", "offset") and the column for the fact.
    `rate_limit` is in rows a second, None without a limit and 0 to pause. Secret `options` are sealed; `secrets` are
    the options whose value is a named secret, with the secret's id. `connection` is the id of the connection that some
    of the options come from, if any.
    """

    relation_id: int
    connector: str
    options: Mapping[str, str]
    format: str
    encode: str
    encode_options: Mapping[str, str] = field(default_factory=dict)
    includes: tuple[tuple[str, str], ...] = ()
    rate_limit: int | None = None
    secrets: Mapping[str, int] = field(default_factory=dict)
    connection: int | None = None

    @property
    def included(self) -> dict[str, str]:
        """The fact about a row in each column of INCLUDE."""
        return {column: what for what, column in self.includes}


@dataclass(frozen=True)
class Split:
    """A part of a source's input, read in order: a file, or a generator's whole sequence.

    The connector defines the unit of `position`; the part before the position has been delivered, in `row_count` rows.
    A finished split is never read again.
    """

    name: str
    position: int = 0
    row_count: int = 0
    is_finished: bool = False


def masked(options: Mapping[str, str]) -> dict[str, str]:
    """Return the options with secret values masked."""
    return {name: MASK if is_secret(name) else value for name, value in options.items()}


def is_secret(option: str) -> bool:
    """Return whether the value of an option is hidden."""
    return any(word in option for word in SECRET_OPTIONS)
