"""What delivers rows to a table or a source, and how far it has read, as frozen data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

# Options whose values nobody is shown.
SECRET_OPTIONS = ("password", "secret", "token", "key.pem", "credentials")
MASK = "***"


@dataclass(frozen=True)
class Source:
    """A connector and its options, for the relation with an id. `format` and `encode` are in upper case.

    `includes` are pairs of what is known of a row besides its values ("file", "offset") and the column that has it.
    `rate_limit` is in rows a second, None without a limit and 0 to pause. Secret `options` are sealed; `secrets` are
    those whose value is that of a secret, with its id.
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

    @property
    def included(self) -> dict[str, str]:
        """By column of INCLUDE, what is known of a row that it has."""
        return {column: what for what, column in self.includes}


@dataclass(frozen=True)
class Split:
    """A part of what a source reads, in order: a file, or the one sequence of a generator.

    What `position` counts is its connector's business; those before it have been delivered, in `row_count` rows.
    A finished split is never read again.
    """

    name: str
    position: int = 0
    row_count: int = 0
    is_finished: bool = False


def masked(options: Mapping[str, str]) -> dict[str, str]:
    """The options as they may be shown."""
    return {name: MASK if is_secret(name) else value for name, value in options.items()}


def is_secret(option: str) -> bool:
    """Whether the value of an option is hidden."""
    return any(word in option for word in SECRET_OPTIONS)
