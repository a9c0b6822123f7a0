"""Which cases of a test are long."""

from __future__ import annotations

from collections.abc import Container, Iterable
from typing import Any

import pytest


def long_but(quick: Container[Any], cases: Iterable[Any]) -> list[Any]:
    """Parameters of a test of which only the quick ones are for every commit. A tuple is several parameters."""
    return [
        pytest.param(*(case if isinstance(case, tuple) else (case,)), marks=() if case in quick else pytest.mark.long)
        for case in cases
    ]
