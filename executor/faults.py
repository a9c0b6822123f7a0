"""What went wrong as users see it, whichever engine said it, and whose fault it is."""

from __future__ import annotations

from sparkwave.catalog import errors
from sparkwave.catalog.errors import Error
from sparkwave.catalog.lake.translation import DISK_FULL, DuckDBError, disk_full, translate
from sparkwave.executor.spark.spark_engine import SparkError, spark_error

# Classes of SQLSTATEs that say nothing about what was computed: no room, no connection, somebody's intervention.
_NOBODYS = ("53", "08", "57")


def error_of(error: BaseException) -> Error:
    """What went wrong as the user sees it."""
    if isinstance(error, Error):
        return error
    if isinstance(error, SparkError):
        return spark_error(error)
    if isinstance(error, DuckDBError):
        return translate(error)
    return disk_full(str(error)) if DISK_FULL in str(error) else Error(str(error) or type(error).__name__)


def message_of(error: BaseException) -> str:
    """What went wrong, in one line."""
    return error_of(error).message


def is_nobodys(error: Error) -> bool:
    """Whether it is a full disk, or a Spark that is not there. That memory was too little is the view's own fault."""
    return error.sqlstate[:2] in _NOBODYS and error.sqlstate != errors.OUT_OF_MEMORY
