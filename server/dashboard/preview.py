"""The first rows of a relation, as its reader may see them."""

from __future__ import annotations

from contextlib import closing
from typing import Any

from sparkwave.catalog.errors import Error, not_found
from sparkwave.catalog.names import quote
from sparkwave.server.context import Context
from sparkwave.server.dashboard.pages import Reader, session
from sparkwave.server.dispatch import Client
from sparkwave.server.wire.text_format import text_array

ROWS = 50
MOST_CHARACTERS = 200  # of a value


def preview(context: Context, client: Client, id_: int | None) -> dict[str, Any]:
    """Return the names of a relation's columns and its first rows as texts, or why the reader cannot see them."""
    relation = context.store.catalog.by_id.get(id_ or 0)
    if relation is None or relation.kind in ("index", "sink"):
        raise not_found("table", str(id_))
    reader = Reader(client.user.name, relation.database)
    sql = f"SELECT * FROM {quote(relation.schema)}.{quote(relation.name)} LIMIT {ROWS}"
    try:
        with (
            session(context, reader, default_transaction_read_only="on") as own,
            closing(own.execute(own.prepare(sql, ()), ())) as result,
        ):
            columns = result.columns or ()
            rows: list[tuple[str | None, ...]] = []
            for batch in result.batches or ():
                texts = [text_array(array, c.type).to_pylist() for array, c in zip(batch.columns, columns, strict=True)]
                rows += zip(*([_clipped(text) for text in column] for column in texts), strict=True)
            return {"preview_columns": [column.name for column in columns], "preview": rows}
    except Error as error:
        return {"preview_error": error.message}


def _clipped(text: str | None) -> str | None:
    return text if text is None or len(text) <= MOST_CHARACTERS else f"{text[: MOST_CHARACTERS - 1]}…"
