"""Makes sqlglot's builders fast: they parse the texts that they are given, most of which they were given before.

`select.from_("s0_state")` takes 0.1 ms to parse one name, and `select.join(…, join_type="left")` parses a query; the
program of a view's changes has some hundred of both.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import sqlglot
from sqlglot.expressions import Expr

# Names, types and kinds of joins are shorter.
_LONGEST = 60
_parse = sqlglot.parse_one


@lru_cache(4096)
def _parsed(text: str, into: Any) -> Expr:
    return _parse(text, into=into)


def _parse_one(sql: str, read: Any = None, dialect: Any = None, into: Any = None, **options: Any) -> Expr:
    """Parse as `sqlglot.parse_one` does."""
    if read is not None or dialect is not None or options or len(sql) > _LONGEST:
        return _parse(sql, read=read, dialect=dialect, into=into, **options)
    return _parsed(sql, into).copy()


def keep_parses() -> None:
    """Let sqlglot keep the trees of short texts in its own dialect, and return copies."""
    sqlglot.parse_one = _parse_one  # type: ignore[assignment]
