"""Prints jsonb for clients. The order of an object's keys is RisingWave's; PostgreSQL puts shorter keys first."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from sparkwave.catalog.document_texts import spaced_texts


def json_texts(texts: pa.Array) -> pa.Array:
    """Return the texts of jsonb values as clients get them. An array without any `:` or `,` is returned unchanged."""
    return spaced_texts(texts) if pc.any(pc.match_substring_regex(texts, "[:,]")).as_py() else texts
