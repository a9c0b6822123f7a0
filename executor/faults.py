"""Turns exceptions of any engine into the errors that users see, and tells whose fault they are."""

from __future__ import annotations

from sparkwave.catalog import errors
from sparkwave.catalog.errors import Error
from sparkwave.catalog.lake.translation import DISK_FULL, DuckDBError, disk_full, translate
from sparkwave.executor.spark.spark_engine import SparkError, spark_error

# Classes of SQLSTATEs that have no cause in the query: insufficient resources, no connection, operator intervention.
_NOBODYS = ("53", "08", "57")


def error_of(error: BaseException) -> Error:
    """Return the error that the user sees for an exception."""
    if isinstance(error, Error):
        return error
    if isinstance(error, SparkError):
        return spark_error(error)
    if isinstance(error, DuckDBError):
        return translate(error)
    return disk_full(str(error)) if DISK_FULL in str(error) else Error(str(error) or type(error).__name__)


def message_of(error: BaseException) -> str:
    """Return the message that the user sees for an exception, in one line."""
    return error_of(error).message


def is_nobodys(error: Error) -> bool:
    """Return whether an error has its cause outside the view, such as a full disk or a missing Spark.

    Too little memory counts as the view's own fault.
    """
    return error.sqlstate[:2] in _NOBODYS and error.sqlstate != errors.OUT_OF_MEMORY
