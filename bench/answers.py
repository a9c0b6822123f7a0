"""Whether two servers gave the same answer."""

from __future__ import annotations

import math
from decimal import Decimal
from typing import Any

import psycopg

from bench.sql import scalar

# Larger results are compared by their number of rows.
MOST_ROWS = 50_000
Row = tuple[Any, ...]


def are_same(one: psycopg.Connection[Any], other: psycopg.Connection[Any], view: str) -> bool:
    """Whether a view has the same rows on both, numbers to six digits."""
    counts = [scalar(connection, f"SELECT count(*) FROM {view}") for connection in (one, other)]
    if counts[0] != counts[1] or counts[0] > MOST_ROWS:
        return bool(counts[0] == counts[1])
    ours, theirs = (sorted(_rows(connection, view), key=_order) for connection in (one, other))
    return all(map(_is_same_row, ours, theirs))


def _rows(connection: psycopg.Connection[Any], view: str) -> list[Row]:
    rows = connection.execute(f"SELECT * FROM {view}").fetchall()
    return [tuple(float(value) if isinstance(value, Decimal | int) else value for value in row) for row in rows]


def _order(row: Row) -> tuple[list[str], list[str], list[float]]:
    """Text first, so that numbers that differ in their last digits stay next to each other."""
    numbers = [value for value in row if isinstance(value, float)]
    words = [str(value) for value in row if not isinstance(value, float)]
    return words, [f"{value:.3e}" for value in numbers], numbers


def _is_same_row(one: Row, other: Row) -> bool:
    return len(one) == len(other) and all(
        math.isclose(a, b, rel_tol=1e-6, abs_tol=1e-6) if isinstance(a, float) and isinstance(b, float) else a == b
        for a, b in zip(one, other, strict=True)
    )
