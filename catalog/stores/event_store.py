"""RisingWave's event log."""

from __future__ import annotations

import json
from collections.abc import Mapping

from sparkwave.catalog.lake.ducklake import Cursor
from sparkwave.catalog.names import system_table
from sparkwave.catalog.redaction import redact


def add_event(cursor: Cursor, event_type: str, job_id: int | None, info: Mapping[str, object]) -> None:
    """Add an event to RisingWave's event log (proto/meta.proto, EventLog)."""
    shown = {name: redact(value) if isinstance(value, str) else value for name, value in info.items()}
    cursor.execute(
        f"INSERT INTO {system_table('events')} VALUES (now(), ?, ?, ?)", [event_type, job_id, json.dumps(shown)]
    )
