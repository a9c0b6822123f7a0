"""RisingWave's words for a missing name, as the detail of PostgreSQL's error: programs search errors for them."""

from __future__ import annotations

import re
from collections.abc import Callable

from sparkwave.catalog.errors import Error

_KINDS = "table|view|materialized view|source|sink|index|subscription|schema|database|secret|connection|sequence"
_RULES: tuple[tuple[str, Callable[[re.Match[str]], str]], ...] = (
    (rf'^({_KINDS}) "(.+)" does not exist$', lambda found: f"{found[1]} not found: {found[2]}"),
    (r'^relation "(.+)" does not exist$', lambda found: f"table or source not found: {found[1]}"),
    (r'^role "(.+)" does not exist$', lambda found: f"User {found[1]} not found"),
    (r'^could not find a function named "(.+)"$', lambda found: f"function not found: {found[1]}"),
)


def add_words(error: Error) -> None:
    """Add RisingWave's words as the detail of an error about a missing name, unless the error has a detail."""
    if error.detail is None:
        for pattern, words in _RULES:
            found = re.search(pattern, error.message)
            if found is not None:
                error.detail = words(found)
                return
