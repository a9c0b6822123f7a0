"""Session variables and system parameters: names, types, defaults, as data.

Names, defaults and texts are RisingWave's (src/common/src/session_config/mod.rs, src/common/src/system_param/mod.rs),
and ours where RisingWave has none.
"""

from __future__ import annotations

import re
import zoneinfo
from collections.abc import Callable
from dataclasses import dataclass

from catalog import errors
from catalog.errors import Error
from planner.parallelism import DEFAULT, LARGEST, normalise_backfill_parallelism, normalise_parallelism


@dataclass(frozen=True)
class Variable:
    """`normalise` turns what the user wrote into what SHOW prints, or raises ValueError with the reason."""

    name: str
    default: str
    normalise: Callable[[str], str]
    description: str


def _boolean(text: str) -> str:
    word = text.strip().lower()
    if word in ("true", "tru", "tr", "t", "on", "1", "yes", "ye", "y"):
        return "true"
    if word in ("false", "fals", "fal", "fa", "f", "off", "of", "0", "no", "n"):
        return "false"
    raise ValueError("Invalid bool")


def _text(text: str) -> str:
    return text


def _integer(low: int, high: int) -> Callable[[str], str]:
    def normalise(text: str) -> str:
        if not re.fullmatch(r"-?\d+", text.strip()):
            raise ValueError("invalid digit found in string")
        value = int(text)
        if not low <= value <= high:
            raise ValueError(f"value {value} out of range, expect {low}..{high}")
        return str(value)

    return normalise


def _one_of(*words: str) -> Callable[[str], str]:
    def normalise(text: str) -> str:
        if text.lower() not in words:
            raise ValueError(f"one of {', '.join(words)} expected")
        return text.lower()

    return normalise


def _time_zone(text: str) -> str:
    if text.upper() in ("UTC", "GMT"):
        return "UTC"
    if text not in zoneinfo.available_timezones():
        raise ValueError("Not a valid timezone")
    return text


def _duration(text: str) -> str:
    match = re.fullmatch(r"(\d+)\s*(ms|s|min|h|d)?", text.strip())
    if not match:
        raise ValueError("a duration expected, such as 30s")
    factor = {"ms": 1, None: 1, "s": 1000, "min": 60_000, "h": 3_600_000, "d": 86_400_000}[match[2]]
    return f"{int(match[1]) * factor}ms"


def _vnodes(text: str) -> str:
    """The number of vnodes of new jobs, within RisingWave's limits (check_streaming_max_parallelism)."""
    value = int(_integer(*_U64)(text))
    if value <= 1:
        raise ValueError("STREAMING_MAX_PARALLELISM must be greater than 1")
    if value > LARGEST:
        raise ValueError(f"STREAMING_MAX_PARALLELISM must be less than or equal to {LARGEST}")
    return str(value)


def _retention(text: str) -> str:
    """RisingWave's rule: none, or ten minutes and more (src/common/src/system_param/mod.rs)."""
    value = _integer(*_U64)(text)
    if 0 < int(value) < 600_000:
        raise ValueError(f"value {value} out of range, expect 0 or 600000..")
    return value


_INT32, _U32, _U64 = (-(2**31), 2**31 - 1), (0, 2**32 - 1), (0, 2**64 - 1)

SESSION: dict[str, Variable] = {
    variable.name: variable
    for variable in (
        Variable("background_ddl", "false", _boolean, "Create views in the background: the statement returns at once"),
        Variable("enable_serverless_backfill", "false", _boolean, "Backfill new views on Spark resources of their own"),
        Variable("streaming_use_snapshot_backfill", "true", _boolean, "Fill new views from a snapshot, then a log"),
        Variable("streaming_use_arrangement_backfill", "true", _boolean, "Else with exchanges, not no-shuffle"),
        Variable("backfill_rate_limit", "-1", _integer(*_INT32), "Rows a second of a backfill; -1: all, 0: pause"),
        Variable("streaming_parallelism", DEFAULT, normalise_parallelism, "Parallelism of new jobs"),
        Variable("streaming_parallelism_for_materialized_view", DEFAULT, normalise_parallelism, "That of new views"),
        Variable("streaming_parallelism_for_backfill", DEFAULT, normalise_backfill_parallelism, "Theirs while created"),
        Variable("streaming_max_parallelism", "256", _vnodes, "Highest parallelism of a new job"),
        Variable("slow_ddl_notification_secs", "30", _integer(*_U32), "Seconds until a notice of a slow DDL"),
        Variable("implicit_flush", "false", _boolean, "INSERT, UPDATE and DELETE wait until all views have followed"),
        Variable("application_name", "", _text, "Name of the client program"),
        Variable("client_encoding", "UTF8", lambda text: "UTF8", "Encoding of the client; UTF8 only"),
        Variable("client_min_messages", "notice", _text, "Least severe message sent"),
        Variable("datestyle", "ISO, MDY", lambda text: "ISO, MDY", "Text format of dates; ISO only"),
        Variable("intervalstyle", "postgres", _text, "Text format of intervals"),
        Variable("extra_float_digits", "1", _integer(-15, 3), "Floats are always printed exactly"),
        Variable("bytea_output", "hex", _one_of("hex"), "Text format of bytea; hex only"),
        Variable("max_identifier_length", "63", _one_of("63"), "Longest name of PostgreSQL; here names may be longer"),
        Variable("password_encryption", "scram-sha-256", _one_of("scram-sha-256"), "What passwords are kept as"),
        Variable("search_path", '"$user", public', _text, "Where unqualified names are looked up"),
        Variable("server_version", "13.14.0", _text, "Version of PostgreSQL that clients see"),
        Variable("server_version_num", "130014", _text, "The same as a number"),
        Variable("standard_conforming_strings", "on", _text, "Backslashes in '...' are ordinary"),
        Variable("statement_timeout", "0ms", _duration, "Longest time a statement may run; 0 is no limit"),
        Variable("timezone", "UTC", _time_zone, "Time zone of timestamptz values"),
        Variable("transaction_isolation", "read committed", _text, "Accepted, without effect"),
        Variable("transaction_read_only", "off", _text, "Accepted, without effect"),
    )
}  # fmt: skip

SYSTEM: dict[str, Variable] = {
    variable.name: variable
    for variable in (
        Variable("barrier_interval_ms", "1000", _integer(50, 2**31), "Least time between two barriers, in ms"),
        Variable("max_concurrent_creating_streaming_jobs", "1", _integer(*_U32), "Jobs created at once; 0 is no limit"),
        Variable("time_travel_retention_ms", "600000", _retention, "How long old snapshots are kept; 0: while needed"),
        Variable("serverless_backfill_enabled", "false", _boolean, "Allow backfills on resources of their own"),
        Variable("serverless_backfill_sku", "2c4g", _text, "Cores and GiB of a serverless node, one of the SKUs"),
        Variable("serverless_backfill_replicas", "1", _integer(1, 1000), "Nodes of a serverless resource group"),
        Variable("serverless_backfill_provision_timeout", "120", _integer(1, 86400), "Seconds for a group to come"),
        Variable("serverless_backfill_linger", "0", _integer(0, 86400), "Seconds a group stays without a job"),
        Variable("streaming_engine", "auto", _one_of("auto", "spark", "duckdb"), "Engine that maintains views"),
        Variable("streaming_duckdb_max_rows", "200000", _integer(0, 2**62), "Most changed rows of an epoch on DuckDB"),
        Variable("backfill_engine", "spark", _one_of("spark", "auto"), "auto: fill views over little data on DuckDB"),
        Variable("backfill_slice_rows", "20000000", _integer(1, 2**62), "Upstream rows a slice of a backfill reads"),
    )
}  # fmt: skip

# Alternative spellings of session variables.
_ALIASES = {"rw_implicit_flush": "implicit_flush", "time zone": "timezone"}


def resolve_name(name: str) -> str:
    return _ALIASES.get(name.lower(), name.lower())


def find(name: str, *, system: bool) -> Variable:
    """The variable of this name. Raises Error 42704."""
    resolved = resolve_name(name)
    variable = SESSION.get(resolved) or (SYSTEM.get(resolved) if system else None)
    if variable is None:
        if system:
            raise Error(f'unrecognized system parameter "{name}"', errors.UNDEFINED_OBJECT)
        hint = "It is a system parameter: ALTER SYSTEM SET." if resolved in SYSTEM else None
        raise Error(f"Unrecognized config entry `{name}`", errors.UNDEFINED_OBJECT, hint=hint)
    return variable


def normalise(variable: Variable, value: str) -> str:
    """The value as SHOW prints it. Raises Error 22023."""
    try:
        return variable.normalise(value)
    except ValueError as error:
        raise Error(
            f"Invalid value `{value}` for `{variable.name}`: {error}", errors.INVALID_PARAMETER_VALUE
        ) from error
