"""The quote of a statement's backfill, for the dashboard: EXPLAIN (BACKFILL, COST)."""

from __future__ import annotations

import json
from typing import Any

from sparkwave.catalog.errors import Error
from sparkwave.server.dashboard.pages import run
from sparkwave.server.dispatch import Client


def quoted(client: Client, statement: str) -> dict[str, Any]:
    """Return the quote of a CREATE or ALTER of a view, index or sink, or why there is none; nothing is created."""
    try:
        lines = run(client, f"EXPLAIN (BACKFILL, COST, FORMAT JSON) {statement}")
    except Error as error:
        return {"quote_error": error.message, "quote_hint": error.hint or error.detail}
    return {"quote": json.loads("\n".join(str(line["QUERY PLAN"]) for line in lines))}
