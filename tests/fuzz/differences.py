"""Differences from PostgreSQL that are documented. A comparison looks away from these and from nothing else."""

from __future__ import annotations

import re
from dataclasses import dataclass


@dataclass(frozen=True)
class Difference:
    """`matches` is searched in what the fuzzer says of a failure; `why` names the place that documents it."""

    matches: str
    why: str


# Types of outputs: Sparkwave's, PostgreSQL's.
TYPES: dict[tuple[str, str], str] = {
    ("varchar", "text"): "RisingWave has one type of text",
    ("varchar[]", "text[]"): "RisingWave has one type of text",
    ("text[]", "varchar[]"): "RisingWave has one type of text",
    ("float8", "numeric"): "README, limits: quotients of numeric aggregates are double precision in a query",
}

# Refused by name and place, as the limits say. Anything else that PostgreSQL takes is a failure.
REFUSED: tuple[Difference, ...] = (
    Difference(r"^0A000", "README, limits: what cannot be maintained is refused at CREATE, by name and place"),
)

# Faults that are known and open, by what the fuzzer says of them: they are only counted.
OPEN: tuple[Difference, ...] = (
    Difference(
        r"only as a query it fails: XX000[^$]*Invalid type for BETWEEN",
        "DuckDB has no two bounds for an array in a filter: in queries only those that name an array are spelled apart",
    ),
    Difference(r"Unknown table: $", "USING within a join in parentheses is refused, as 42601"),
)

# What PostgreSQL raises and Sparkwave does not.
RAISED_THERE: tuple[Difference, ...] = (
    Difference(r"^22", "README, limits: in a view, where PostgreSQL raises an error for a row there is NULL"),
)


def documented(text: str, differences: tuple[Difference, ...]) -> bool:
    return any(re.search(difference.matches, text) for difference in differences)
