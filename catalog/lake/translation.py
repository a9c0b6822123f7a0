"""Translates DuckDB's errors to PostgreSQL's words and SQLSTATEs."""

from __future__ import annotations

import re

import duckdb

from sparkwave.catalog import errors
from sparkwave.catalog.errors import Error
from sparkwave.catalog.names import closest
from sparkwave.catalog.python_failures import python_error
from sparkwave.catalog.types import with_names
from sparkwave.catalog.wording import in_postgres_words

_SQLSTATES: tuple[tuple[type[Exception], str], ...] = (
    (duckdb.InterruptException, errors.QUERY_CANCELED),
    (duckdb.ParserException, errors.SYNTAX_ERROR),
    (duckdb.ConversionException, errors.INVALID_TEXT_REPRESENTATION),
    (duckdb.OutOfRangeException, errors.NUMERIC_VALUE_OUT_OF_RANGE),
    (duckdb.ConstraintException, errors.NOT_NULL_VIOLATION),
    (duckdb.NotImplementedException, errors.FEATURE_NOT_SUPPORTED),
    (duckdb.OutOfMemoryException, errors.OUT_OF_MEMORY),
    (duckdb.TypeMismatchException, errors.DATATYPE_MISMATCH),
    (duckdb.InvalidInputException, errors.INVALID_PARAMETER_VALUE),
)

# Texts that classify DuckDB's binder and catalog errors; the first match counts.
_TEXT_SQLSTATES: tuple[tuple[str, str], ...] = (
    (r"(Table|View) with name .* does not exist|Referenced table .* not found", errors.UNDEFINED_TABLE),
    (r"relation \".*\" does not exist", errors.UNDEFINED_TABLE),
    (r"(type|role) \".*\" does not exist|unrecognized configuration parameter", errors.UNDEFINED_OBJECT),
    (r"schema \".*\" does not exist", errors.INVALID_SCHEMA_NAME),
    (r"database \".*\" does not exist", errors.INVALID_CATALOG_NAME),
    (r"must be a (superuser|member of the role) ", errors.INSUFFICIENT_PRIVILEGE),
    (r"STAR expression", errors.FEATURE_NOT_SUPPORTED),
    (r"for HTTP [A-Z]+ to |^HTTP Error", errors.IO_ERROR),
    (r"division by zero", errors.DIVISION_BY_ZERO),
    (r"date field value out of range", errors.DATETIME_FIELD_OVERFLOW),
    (r"invalid (date|timestamp|time) field", errors.INVALID_DATETIME_FORMAT),
    (r"value is out of range|out of range for the destination|Overflow", errors.NUMERIC_VALUE_OUT_OF_RANGE),
    (r"more than one function named", errors.AMBIGUOUS_FUNCTION),
    (r"No function matches|Function with name .* does not exist|function .* does not exist", errors.UNDEFINED_FUNCTION),
    (r"Ambiguous reference|ambiguous", errors.AMBIGUOUS_COLUMN),
    (r"must appear in the GROUP BY|GROUP BY clause", errors.GROUPING_ERROR),
    (r"Type with name .* does not exist", errors.UNDEFINED_OBJECT),
    (r"Parquet files do not support negative intervals", errors.FEATURE_NOT_SUPPORTED),
    (r"NOT.NULL constraint", errors.NOT_NULL_VIOLATION),
    (r"Could not convert string", errors.INVALID_TEXT_REPRESENTATION),
    (
        r"Cannot (compare|mix) values of type|Could not (choose|cast)|Unimplemented type for cast",
        errors.DATATYPE_MISMATCH,
    ),
)


# The operating system's words for ENOSPC, in an engine's message.
DISK_FULL = "No space left on device"


# DuckDB's advice to change settings, which clients cannot do.
_ADVICE = re.compile(
    r"""\s+(?:Use|Try|using:?)\s+["'`(]?(?:SET|PRAGMA|CALL|INSTALL|LOAD)\s.*""", re.IGNORECASE | re.DOTALL
)


def error_named(kind: str, text: str) -> duckdb.Error:
    """Return a DuckDB error by the name of its class, for an error raised in another process."""
    found = getattr(duckdb, kind, duckdb.Error)
    made: duckdb.Error = found(text)
    return made


def disk_full(text: str) -> Error:
    """Return PostgreSQL's error for a full disk, with the line of an engine's message that names the file."""
    line = next(line for line in text.splitlines() if DISK_FULL in line).strip()
    message = re.sub(r"^(([A-Za-z]+ )+Error: |Caused by: |([a-z]+\.)+[A-Za-z]+: )*", "", line)
    return Error(message, errors.DISK_FULL, hint=errors.FREE_SPACE)


def translate(error: duckdb.Error) -> Error:
    """Return a DuckDB error as the user sees it: its first line, without the class prefix, with a SQLSTATE."""
    of_python = python_error(str(error))
    if of_python is not None:
        return of_python
    text = with_names(str(error))
    message = re.sub(r"^[A-Za-z ]+ Error: (Python exception .* UDF: Error: )?", "", with_names(first_line(error)))
    message = _ADVICE.sub("", message)
    column = re.search(
        r'column (?:named )?(?:"(.+?)"|([^"]+?)) (?:was )?not found|does not have a column named "([^"]+)"|'
        r'Column "([^"]+)" referenced that exists in the SELECT clause',
        message,
    )
    if column:
        name = next(filter(None, column.groups()))
        return Error(f'column "{name}" does not exist', errors.UNDEFINED_COLUMN, hint=_meant(name, text))
    if DISK_FULL in text:
        return disk_full(text)
    if isinstance(error, duckdb.InterruptException):
        return errors.canceled()
    worded = in_postgres_words(text)
    if worded is not None:
        return worded
    for pattern, sqlstate in _TEXT_SQLSTATES:
        if re.search(pattern, text, re.IGNORECASE):
            return Error(message, sqlstate)
    for kind, sqlstate in _SQLSTATES:
        if isinstance(error, kind):
            return Error(message, sqlstate)
    return Error(message)


def _meant(name: str, text: str) -> str | None:
    """PostgreSQL's hint at the column that may be meant, among those that DuckDB lists."""
    listed = re.search(r"Candidate bindings: (.*)", text)
    meant = closest(name, re.findall(r'"([^"]+)"', listed[1]) if listed else ())
    return f'Perhaps you meant to reference the column "{meant}".' if meant is not None else None


DuckDBError = duckdb.Error
ConstraintError = duckdb.ConstraintException
Cursor = duckdb.DuckDBPyConnection


def restored(error: Exception) -> duckdb.Error:
    """Return DuckDB's error from the one that pyarrow raises during a read, which has the text but not the class."""
    kind = re.match(r"([A-Za-z ]+) Error: ", str(error))
    name = kind[1].title().replace(" ", "") + "Exception" if kind else ""
    found = getattr(duckdb, name, duckdb.Error)
    return found(str(error))


def is_interrupt(error: duckdb.Error) -> bool:
    """Whether a query was interrupted: by a cancel, or (DuckDB 1.5.5) by an error in another of its own threads."""
    return isinstance(error, duckdb.InterruptException)


def is_passing(error: duckdb.Error) -> bool:
    """Return whether the statement may succeed if it is repeated at once.

    DuckLake (1.5.5) may read a table of inlined deletes that another transaction has created since this one began.
    """
    return re.search(r"Table with name ducklake_inlined_\w+ does not exist", str(error)) is not None


def is_overflow(error: duckdb.Error) -> bool:
    """Return whether a number was out of the range of DuckDB's type."""
    return isinstance(error, duckdb.OutOfRangeException)


def is_conflict(error: duckdb.Error) -> bool:
    """Return whether a transaction has failed only because of other transactions' commits since it began."""
    return isinstance(error, duckdb.TransactionException) or is_passing(error)


def is_missing_table(error: duckdb.Error) -> bool:
    """Return whether a statement names a table that does not exist."""
    return isinstance(error, duckdb.CatalogException) and str(error).startswith("Catalog Error: Table with name")


def first_line(error: Exception) -> str:
    """Return the first line of an engine's message, or the error's class if it has no message."""
    return str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
