"""Whether a document contains another one, by PostgreSQL's rules (documentation 8.14.3), for DuckDB.

An object contains another's keys with values that contain theirs; an array contains another's elements, each in one of
its own elements; a scalar is equal. Only at the top an array contains a scalar. This module is sent to Spark's
executors (`executor.spark.kernel`), so it imports nothing of this package.
"""

from __future__ import annotations

import json
from decimal import Decimal
from typing import Any

import pyarrow as pa

CONTAINS = "sparkwave_contains_document"


def define_contents(database: Any) -> None:
    """Define the function in a DuckDB database: of the texts of two documents."""
    # DuckDB would look up the types of a function's parameters, which executors lack; those of a lambda have none.
    function = lambda documents, others: _contained(documents, others)  # noqa: E731
    database.create_function(CONTAINS, function, ["VARCHAR", "VARCHAR"], "BOOLEAN", type="arrow")


def _contained(documents: pa.Array, others: pa.Array) -> pa.Array:
    pairs = zip(documents.to_pylist(), others.to_pylist(), strict=True)
    return pa.array([_answer(document, other) for document, other in pairs], pa.bool_())


def _answer(document: str | None, other: str | None) -> bool | None:
    if document is None or other is None:
        return None
    whole, part = (json.loads(text, parse_float=Decimal) for text in (document, other))
    if isinstance(whole, list) and not isinstance(part, list | dict):
        return any(_contains(each, part) for each in whole)
    return _contains(whole, part)


def _contains(whole: Any, part: Any) -> bool:
    if isinstance(part, dict):
        return isinstance(whole, dict) and all(
            key in whole and _contains(whole[key], value) for key, value in part.items()
        )
    if isinstance(part, list):
        return isinstance(whole, list) and all(any(_contains(each, value) for each in whole) for value in part)
    if isinstance(whole, list | dict) or isinstance(whole, bool) != isinstance(part, bool):
        return False
    return bool(whole == part)
