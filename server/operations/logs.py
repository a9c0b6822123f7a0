"""The server's log: text lines or JSON objects, with the job, epoch or session as fields, and without secrets.

The fields are those of catalog/log_context.py: `job_id`, `epoch`, `session`.
"""

from __future__ import annotations

import json
import logging
from datetime import UTC, datetime

from sparkwave.catalog.log_context import fields
from sparkwave.catalog.redaction import redact

# Loggers that repeat statements at INFO. PySpark names its own logger after a class.
_CHATTY = {"py4j", "pyspark", "SQLQueryContextLogger"}

# A longer message is cut: it contains text of a client.
MOST_CHARACTERS = 1 << 16


def _shown(message: str) -> str:
    left_out = len(message) - MOST_CHARACTERS
    return redact(message[:MOST_CHARACTERS]) + (f"… and {left_out} characters" if left_out > 0 else "")


class _WithFields(logging.Filter):
    """Adds to each record the fields of the thread that logs it, and drops messages of chatty loggers."""

    def filter(self, record: logging.LogRecord) -> bool:
        record.fields = fields()
        return record.levelno >= logging.WARNING or record.name.partition(".")[0] not in _CHATTY


class TextFormatter(logging.Formatter):
    """`time level logger [job_id=1004 epoch=17]: message`, then the traceback if there is one."""

    default_msec_format = "%s.%03d"

    def format(self, record: logging.LogRecord) -> str:
        given = " ".join(f"{name}={value}" for name, value in getattr(record, "fields", {}).items())
        record.place = f" [{given}]" if given else ""
        return _shown(super().format(record))


class JsonFormatter(logging.Formatter):
    """One object a line: `time` (RFC 3339, UTC), `level`, `logger`, `message`, the fields, `exception`."""

    def format(self, record: logging.LogRecord) -> str:
        entry: dict[str, object] = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname,
            "logger": record.name,
            "message": _shown(record.getMessage()),
            **getattr(record, "fields", {}),
        }
        if record.exc_info:
            entry["exception"] = _shown(self.formatException(record.exc_info))
        return json.dumps(entry, default=str, ensure_ascii=False)


def start_logging(level: str, format_: str) -> None:
    """Start logging to standard error, from a level on, as `text` or `json`."""
    handler = logging.StreamHandler()
    handler.addFilter(_WithFields())
    text = TextFormatter("%(asctime)s %(levelname)s %(name)s%(place)s: %(message)s")
    handler.setFormatter(JsonFormatter() if format_ == "json" else text)
    logging.basicConfig(level=level, handlers=[handler], force=True)
