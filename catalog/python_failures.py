"""The errors of users' functions in Python, from the texts that DuckDB makes of them."""

from __future__ import annotations

import re
from collections.abc import Callable

from sparkwave.catalog import errors
from sparkwave.catalog.errors import Error

ENABLED = "enable_embedded_python_udf"
BATCH_MS = "python_udf_timeout_ms"
MEMORY_MIB = "python_udf_memory_mib"
# The names of functions by their ids, for messages.
NAMES: dict[int, str] = {}

# An exception of a function's code, and a failure of its process, as `executor.functions.python_calls` raises them.
_EXCEPTION = re.compile(r"executing the UDF: Error: !(?P<code>[0-9A-Z]{5}) (?P<text>.*)")
_FAILURE = re.compile(r"Unsupported Internal Arrow Type for Decimal d:76,-(?P<number>\d+),256")


def disabled() -> Error:
    hint = f"A superuser enables them: ALTER SYSTEM SET {ENABLED} = true."
    return Error("functions in Python are disabled", errors.NOT_IN_PREREQUISITE_STATE, hint=hint)


def failed(function: str, reason: int) -> Error:
    """Return the error for the reason why a call has failed, a number of `executor.functions.python_calls`."""
    return _FAILURES[reason](f"function {function}")


_FAILURES: dict[int, Callable[[str], Error]] = {
    1: lambda name: Error(
        f"{name} took too long",
        errors.EXTERNAL_ROUTINE_EXCEPTION,
        hint=f"{BATCH_MS} limits the time for a batch of up to 2048 rows.",
    ),
    2: lambda name: Error(f"the process of {name} has ended unexpectedly", errors.EXTERNAL_ROUTINE_EXCEPTION),
    3: lambda name: Error(
        f"{name} needs too much memory", errors.OUT_OF_MEMORY, hint=f"{MEMORY_MIB} limits the memory of its process."
    ),
    4: lambda name: disabled(),
    5: lambda name: Error(f"the process of {name} cannot be used", errors.INSUFFICIENT_RESOURCES),
}


def python_error(text: str) -> Error | None:
    """Return the error of a function in Python in a text of DuckDB; None for any other text."""
    raised = _EXCEPTION.search(text)
    if raised is not None:
        return Error(raised["text"], raised["code"])
    found = _FAILURE.search(text)
    if found is None:
        return None
    id_, reason = divmod(int(found["number"]), 8)
    return failed(NAMES.get(id_, f"with id {id_}"), reason)
