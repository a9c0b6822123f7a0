"""What the engines do differently is not called portable: such a view stays on DuckDB."""

from __future__ import annotations

import pytest
from test_golden import plan_over

TABLE = "CREATE TABLE t (id int PRIMARY KEY, k int, b bigint, ar int[])"
OVER = "OVER (PARTITION BY k ORDER BY id"


@pytest.mark.parametrize(
    "query",
    [
        "SELECT k, max(ar) AS m FROM t GROUP BY k",
        f"SELECT id, sum(b) {OVER}) AS s FROM t",
        f"SELECT id, count(*) {OVER} ROWS BETWEEN 1 PRECEDING AND 1 FOLLOWING EXCLUDE CURRENT ROW) AS s FROM t",
        f"SELECT id, count(*) {OVER} GROUPS BETWEEN 1 PRECEDING AND CURRENT ROW) AS s FROM t",
        "SELECT id, rank() OVER (PARTITION BY k ORDER BY ar) AS s FROM t",
        "SELECT id, ar FROM t ORDER BY ar LIMIT 3",
    ],
)
def test_on_duckdb_alone(query: str) -> None:
    assert plan_over((TABLE,), query).duckdb_only is not None


@pytest.mark.parametrize("query", [f"SELECT id, sum(k) {OVER}) AS s FROM t", "SELECT id FROM t ORDER BY k LIMIT 3"])
def test_on_both(query: str) -> None:
    assert plan_over((TABLE,), query).duckdb_only is None
