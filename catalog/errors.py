"""The only error type that clients see, and its SQLSTATEs.

Every layer raises `Error`; `server.wire.connections` alone turns it into an ErrorResponse. The codes are those of
PostgreSQL's appendix "PostgreSQL Error Codes".
"""

from __future__ import annotations

import errno
from collections.abc import Sequence
from dataclasses import dataclass

SYNTAX_ERROR = "42601"
UNDEFINED_TABLE = "42P01"
UNDEFINED_COLUMN = "42703"
UNDEFINED_FUNCTION = "42883"
UNDEFINED_OBJECT = "42704"
UNDEFINED_PARAMETER = "42P02"
UNDEFINED_PREPARED_STATEMENT = "26000"
UNDEFINED_CURSOR = "34000"
DUPLICATE_PREPARED_STATEMENT = "42P05"
DUPLICATE_CURSOR = "42P03"
DUPLICATE_OBJECT = "42710"
DUPLICATE_TABLE = "42P07"
DUPLICATE_COLUMN = "42701"
DUPLICATE_DATABASE = "42P04"
DUPLICATE_SCHEMA = "42P06"
AMBIGUOUS_COLUMN = "42702"
AMBIGUOUS_ALIAS = "42P09"
DUPLICATE_ALIAS = "42712"
WRONG_OBJECT_TYPE = "42809"
INVALID_COLUMN_DEFINITION = "42611"
INVALID_COLUMN_REFERENCE = "42P10"
INVALID_ROW_COUNT = "2201W"
INVALID_TABLE_DEFINITION = "42P16"
INVALID_FOREIGN_KEY = "42830"
INVALID_FUNCTION_DEFINITION = "42P13"
DUPLICATE_FUNCTION = "42723"
AMBIGUOUS_FUNCTION = "42725"
INVALID_OBJECT_DEFINITION = "42P17"
INDETERMINATE_DATATYPE = "42P18"
EXTERNAL_ROUTINE_INVOCATION_EXCEPTION = "39000"
GENERATED_ALWAYS = "428C9"
GROUPING_ERROR = "42803"
WINDOWING_ERROR = "42P20"
INVALID_PRECEDING_OR_FOLLOWING_SIZE = "22013"
INVALID_ARGUMENT_FOR_NTILE = "22014"
INVALID_CATALOG_NAME = "3D000"
INVALID_SCHEMA_NAME = "3F000"
INVALID_PARAMETER_VALUE = "22023"
DATA_EXCEPTION = "22000"
DATATYPE_MISMATCH = "42804"
CANNOT_COERCE = "42846"
ARRAY_SUBSCRIPT_ERROR = "2202E"
NULL_VALUE_NOT_ALLOWED = "22004"
INVALID_TEXT_REPRESENTATION = "22P02"
UNTRANSLATABLE_CHARACTER = "22P05"
CHARACTER_NOT_IN_REPERTOIRE = "22021"
INVALID_BINARY_REPRESENTATION = "22P03"
BAD_COPY_FILE_FORMAT = "22P04"
NUMERIC_VALUE_OUT_OF_RANGE = "22003"
INVALID_DATETIME_FORMAT = "22007"
DATETIME_FIELD_OVERFLOW = "22008"
INVALID_TIME_ZONE_DISPLACEMENT_VALUE = "22009"
DIVISION_BY_ZERO = "22012"
INTERVAL_FIELD_OVERFLOW = "22015"
INVALID_REGULAR_EXPRESSION = "2201B"
INVALID_ARGUMENT_FOR_LOGARITHM = "2201E"
INVALID_ARGUMENT_FOR_POWER = "2201F"
INVALID_ESCAPE_SEQUENCE = "22025"
CARDINALITY_VIOLATION = "21000"
NOT_NULL_VIOLATION = "23502"
UNIQUE_VIOLATION = "23505"
CHECK_VIOLATION = "23514"
STRING_DATA_RIGHT_TRUNCATION = "22001"
DEPENDENT_OBJECTS_STILL_EXIST = "2BP01"
WARNING = "01000"
FEATURE_NOT_SUPPORTED = "0A000"
READ_ONLY_TRANSACTION = "25006"
QUERY_CANCELED = "57014"
ADMIN_SHUTDOWN = "57P01"
IDLE_SESSION_TIMEOUT = "57P05"
IDLE_IN_TRANSACTION_TIMEOUT = "25P03"
CANT_CHANGE_RUNTIME_PARAM = "55P02"
NO_ACTIVE_TRANSACTION = "25P01"
ACTIVE_TRANSACTION = "25001"
IN_FAILED_TRANSACTION = "25P02"
INVALID_SAVEPOINT = "3B001"
SERIALIZATION_FAILURE = "40001"
SEQUENCE_GENERATOR_LIMIT_EXCEEDED = "2200H"
OBJECT_IN_USE = "55006"
NOT_IN_PREREQUISITE_STATE = "55000"
CONNECTION_FAILURE = "08006"
CANNOT_CONNECT_NOW = "57P03"
PROTOCOL_VIOLATION = "08P01"
PROGRAM_LIMIT_EXCEEDED = "54000"
STATEMENT_TOO_COMPLEX = "54001"
TOO_MANY_ARGUMENTS = "54023"
INSUFFICIENT_RESOURCES = "53000"
OUT_OF_MEMORY = "53200"
SNAPSHOT_TOO_OLD = "72000"
DISK_FULL = "53100"
IO_ERROR = "58030"
EXTERNAL_ROUTINE_EXCEPTION = "38000"
INSUFFICIENT_PRIVILEGE = "42501"
INVALID_AUTHORIZATION = "28000"
INVALID_PASSWORD = "28P01"
INVALID_GRANT_OPERATION = "0LP01"
RESERVED_NAME = "42939"
INVALID_NAME = "42602"
UNDEFINED_FILE = "58P01"
DUPLICATE_FILE = "58P02"
CONFIG_FILE_ERROR = "F0000"
DATA_CORRUPTED = "XX001"
INTERNAL_ERROR = "XX000"


NO_FUNCTION = "No function matches the given name and argument types. You might need to add explicit type casts."
NO_BEST_FUNCTION = "Could not choose a best candidate function. You might need to add explicit type casts."
NO_OPERATOR = NO_FUNCTION.replace("function", "operator")
NO_SIGN = "No operator matches the given name and argument type. You might need to add an explicit type cast."
FREE_SPACE = "Free space on the disk of the data directory."


# The detail of PostgreSQL's error for a text that does not begin as an array.
NO_ARRAY = 'Array value must start with "{" or dimension information.'


class Error(Exception):
    """An error that is reported to the client.

    `position` counts characters of the statement's text from 1, as field `P` of ErrorResponse. `context` is the place
    in what the statement works on, such as a line of COPY's data. `concerned` has the names of what a row breaks, and
    `staged` the number of that row, from 0, among those that a statement writes, with the value that does not fit.
    """

    def __init__(
        self,
        message: str,
        sqlstate: str = INTERNAL_ERROR,
        *,
        detail: str | None = None,
        hint: str | None = None,
        position: int | None = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.sqlstate = sqlstate
        self.detail = detail
        self.hint = hint
        self.position = position
        self.context: str | None = None
        self.concerned: Concerned | None = None
        self.staged: tuple[int, str] | None = None


@dataclass(frozen=True)
class Concerned:
    """The names of a table, and of its column or constraint that a row breaks, as fields of ErrorResponse."""

    schema: str
    table: str
    column: str | None = None
    constraint: str | None = None


class Refused(Error):
    """A start of the server that is refused, and for which waiting does not help."""


def used(kind: str, users: Sequence[str], hint: str, position: int | None = None) -> Error:
    """Return RisingWave's error for an object that cannot be dropped, since other objects depend on it."""
    return Error(
        f"{kind} used by {len(users)} other objects.",
        DEPENDENT_OBJECTS_STILL_EXIST,
        detail="\n".join(f"{each} depends on it" for each in users),
        hint=hint,
        position=position,
    )


def not_found(
    kind: str, name: str, *, sqlstate: str | None = None, position: int | None = None, hint: str | None = None
) -> Error:
    """Return PostgreSQL's error for a missing object.

    The SQLSTATE is 42P01 for PostgreSQL's kinds of relations, else 42704, unless `sqlstate` is given.
    """
    code = sqlstate or (UNDEFINED_TABLE if kind in _RELATIONS else UNDEFINED_OBJECT)
    return Error(f'{kind} "{name}" does not exist', code, position=position, hint=hint)


_RELATIONS = frozenset({"relation", "table", "view", "materialized view", "sequence"})
MISSING = frozenset({UNDEFINED_TABLE, UNDEFINED_OBJECT, INVALID_SCHEMA_NAME})  # the errors that IF EXISTS ignores


def cannot_write(what: object, error: OSError, sqlstate: str = IO_ERROR) -> Error:
    """Return the error for a failed write of a file: PostgreSQL's error if the disk is full."""
    if not is_full(error):
        return Error(f'"{what}" cannot be written: {error.strerror or error}', sqlstate)
    return Error(f'"{what}" cannot be written: {error.strerror}', DISK_FULL, hint=FREE_SPACE)


def is_full(error: OSError) -> bool:
    """Return whether the disk, or the user's share of it, is full."""
    return error.errno in (errno.ENOSPC, errno.EDQUOT)


def canceled() -> Error:
    """Return the error for work that its user has cancelled."""
    return Error("canceling statement due to user request", QUERY_CANCELED)
