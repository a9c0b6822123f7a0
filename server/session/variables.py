"""Defines the session variables and system parameters: names, kinds and defaults, as data.

Names, defaults and texts are RisingWave's (src/common/src/session_config/mod.rs, src/common/src/system_param/mod.rs),
or Sparkwave's own where RisingWave has none.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from sparkwave.catalog import errors
from sparkwave.catalog.errors import Error
from sparkwave.catalog.python_failures import BATCH_MS, ENABLED, MEMORY_MIB
from sparkwave.planner.definitions.streaming_config import DEVELOPER, ENUMS, SESSION_KEYS
from sparkwave.planner.plan.parallelism import DEFAULT, normalise_backfill_parallelism, normalise_parallelism
from sparkwave.server.session.effective_user import AUTHORIZATION, NONE, ROLE
from sparkwave.server.session.variable_kinds import (
    INT32,
    U32,
    U64,
    boolean,
    date_style,
    decimal,
    decoupling,
    duration,
    integer,
    isolation,
    one_of,
    optional,
    price,
    retention,
    schemas,
    switch,
    text,
    time_zone,
    vnodes,
)
from sparkwave.server.wire.client_encoding import encoding_name
from sparkwave.server.wire.moment_styles import INTERVAL_STYLES


@dataclass(frozen=True)
class Variable:
    """A variable. `normalise` converts a user's text to the text of SHOW, or raises ValueError with the reason."""

    name: str
    default: str
    normalise: Callable[..., str]
    description: str
    is_fixed: bool = False  # no statement can set it
    is_partial: bool = False  # `normalise` also gets the present value, of which it keeps parts


# The price of a core of a serverless group for an hour.
PRICE = "serverless_backfill_price_per_core_hour"
_NO_EFFECT = "Accepted, without effect"
_RECORDED = "Shown in rw_streaming_job_config of new relations, without effect"
_LEVEL = one_of(
    "debug", "debug5", "debug4", "debug3", "debug2", "debug1", "log", "info", "notice", "warning", "error"
)  # fmt: skip

SESSION: dict[str, Variable] = {
    variable.name: variable
    for variable in (
        Variable("background_ddl", "false", boolean, "Create views in the background: the statement returns at once"),
        Variable("enable_serverless_backfill", "false", boolean, "Backfill new views on Spark resources of their own"),
        Variable("streaming_use_snapshot_backfill", "true", boolean, "Fill new views from a snapshot, then a log"),
        Variable(
            "streaming_use_arrangement_backfill", "true", boolean, "Without snapshots, fill new views by arrangement"
        ),
        Variable("backfill_rate_limit", "-1", integer(*INT32), "Rows a second of a backfill; -1: all, 0: pause"),
        Variable("streaming_parallelism", DEFAULT, normalise_parallelism, "Parallelism of new jobs"),
        Variable(
            "streaming_parallelism_for_materialized_view", DEFAULT, normalise_parallelism, "Parallelism of new views"
        ),
        Variable("streaming_parallelism_for_index", DEFAULT, normalise_parallelism, "Parallelism of new indexes"),
        Variable("streaming_parallelism_for_sink", DEFAULT, normalise_parallelism, "Parallelism of new sinks"),
        Variable(
            "streaming_parallelism_for_backfill", DEFAULT, normalise_backfill_parallelism,
            "Parallelism of jobs while created"
        ),
        Variable("streaming_max_parallelism", "256", vnodes, "Highest parallelism of a new job"),
        Variable("slow_ddl_notification_secs", "30", integer(*U32), "Seconds until a notice of a slow DDL"),
        Variable("implicit_flush", "false", boolean, "INSERT, UPDATE and DELETE wait until all views have followed"),
        Variable("batch_expr_strict_mode", "true", boolean, "false: expressions that fail in queries are NULL"),
        Variable("allow_drop_cascade", "true", boolean, "Whether DROP ... CASCADE is allowed"),
        Variable("enable_index_selection", "true", boolean, "Whether queries read an index instead of its table"),
        Variable("atomic_transactions", "false", boolean, "What is written from BEGIN to COMMIT is stored at COMMIT"),
        Variable("unique_violations", "false", boolean, "An INSERT of a key that exists is an error, not an overwrite"),
        Variable("risingwave_command_tags", "false", boolean, "Command tags are RisingWave's, such as CREATE_TABLE"),
        Variable(
            "risingwave_error_details", "false", boolean, "Errors about missing names have RisingWave's words as detail"
        ),
        # RisingWave's variables that have no effect here.
        Variable("locality_backfill_mode", "auto", one_of("auto", "always"), _NO_EFFECT),
        Variable("auto_locality_backfill_min_size", "10737418240", integer(*U64), _NO_EFFECT),
        Variable("source_rate_limit", "-1", integer(*INT32), "Rows a second of new sources; -1: all, 0: pause"),
        Variable("sink_rate_limit", "-1", integer(*INT32), "Rows a second of new sinks with a log; -1: all, 0: pause"),
        Variable("dml_rate_limit", "-1", integer(*INT32), "Rows a second that go into new tables; -1: all, 0: pause"),
        *(
            Variable(f"streaming_parallelism_for_{kind}", DEFAULT, normalise_parallelism, f"Parallelism of new {kind}s")
            for kind in ("table", "source")
        ),
        Variable("sink_decouple", "default", decoupling, "disable: new blackhole sinks have no rate limit"),
        Variable("query_mode", "auto", one_of("auto", "local", "distributed"), "distributed: queries run on Spark"),
        Variable("visibility_mode", "default", one_of("default", "all", "checkpoint"), "checkpoint: views as stored"),
        Variable("query_epoch", "0", integer(*U64), "Queries read what there was at this epoch; 0: what there is"),
        Variable("batch_parallelism", "0", integer(*U64), _NO_EFFECT),
        Variable("max_split_range_gap", "8", integer(*INT32), _NO_EFFECT),
        Variable("cdc_source_wait_streaming_start_timeout", "60", integer(*INT32), _NO_EFFECT),
        Variable("batch_hnsw_ef_search", "40", integer(*U64), _NO_EFFECT),
        Variable("streaming_inconsistent_internal_table_retention_seconds", "", optional(integer(*U32)), _NO_EFFECT),
        Variable("iceberg_engine_connection", "", text, _NO_EFFECT),
        Variable("iceberg_query_storage_mode", "iceberg", text, _NO_EFFECT),
        *(
            Variable(name, "", optional(one_of(*ENUMS[key.removeprefix(DEVELOPER)])), _RECORDED)
            for name, key in SESSION_KEYS.items()
            if key.removeprefix(DEVELOPER) in ENUMS
        ),
        *(
            Variable(f"streaming_sync_log_store_{name}", "", optional(integer(*U64)), _RECORDED)
            for name in ("pause_duration_ms", "buffer_size")
        ),
        *(
            Variable(name, "true", boolean, _NO_EFFECT)
            for name in (
                "streaming_use_shared_source", "enable_locality_backfill", "streaming_enable_bushy_join",
                "streaming_asof_join_use_cache", "batch_enable_lookup_join", "batch_enable_sort_agg",
                "enable_join_ordering", "enable_share_plan", "enable_two_phase_agg",
                "enable_datafusion_engine", "datafusion_prefer_hash_join",
            )
        ),
        *(
            Variable(name, "false", boolean, _NO_EFFECT)
            for name in (
                "streaming_enable_delta_join", "streaming_enable_unaligned_join", "streaming_force_filter_inside_join",
                "streaming_separate_consecutive_join", "streaming_separate_sink", "streaming_allow_jsonb_in_stream_key",
                "streaming_unsafe_allow_unmaterialized_impure_expr", "streaming_unsafe_allow_upsert_sink_pk_mismatch",
                "unsafe_enable_storage_retention_for_non_append_only_tables", "dml_wait_persistence",
                "batch_enable_distributed_dml", "force_two_phase_agg", "force_split_distinct_agg",
                "enable_mv_selection", "upsert_dml", "create_compaction_group_for_mv", "bypass_cluster_limits",
                "disable_purify_definition", "enable_locality_sort_buffer",
            )
        ),
        # PostgreSQL's variables.
        Variable("application_name", "", text, "Name of the client program"),
        Variable("client_encoding", "UTF8", encoding_name, "Encoding of the client's texts"),
        Variable("client_min_messages", "notice", _LEVEL, "The least important messages that are sent"),
        Variable("datestyle", "ISO, MDY", date_style, "Text format of dates that are sent", is_partial=True),
        Variable("intervalstyle", "postgres", one_of(*INTERVAL_STYLES), "Text format of intervals that are sent"),
        Variable("extra_float_digits", "1", integer(-15, 3), "Digits of floats that are sent; above 0, all"),
        Variable("bytea_output", "hex", one_of("hex", "escape"), "Text format of bytea that is sent"),
        Variable("password_encryption", "scram-sha-256", one_of("scram-sha-256"), "What passwords are kept as"),
        Variable("search_path", '"$user", public', schemas, "Where unqualified names are looked up"),
        Variable("standard_conforming_strings", "on", one_of("on"), "Backslashes in '...' are ordinary"),
        Variable("statement_timeout", "0ms", duration, "Longest time a statement may run; 0 is no limit"),
        Variable("lock_timeout", "0ms", duration, _NO_EFFECT),
        Variable("idle_in_transaction_session_timeout", "1min", duration, "Longest wait for a client in a transaction"),
        Variable(
            "idle_session_timeout", "0ms", duration, "Longest wait for a client outside a transaction; 0 is no limit"
        ),
        Variable("timezone", "UTC", time_zone, "Time zone of timestamptz values"),
        Variable("transaction_isolation", "read committed", isolation, _NO_EFFECT),
        Variable("transaction_read_only", "off", switch, "Whether the transaction may not write"),
        Variable("transaction_deferrable", "off", switch, _NO_EFFECT),
        Variable("default_transaction_isolation", "read committed", isolation, _NO_EFFECT),
        Variable("default_transaction_read_only", "off", switch, "Whether transactions may not write unless they say"),
        Variable("default_transaction_deferrable", "off", switch, _NO_EFFECT),
        Variable(AUTHORIZATION, "", text, "The session's user; by default who has connected"),
        Variable(ROLE, NONE, text, "The role whose privileges count instead of the session user's"),
        Variable("row_security", "true", boolean, _NO_EFFECT),
        Variable("synchronize_seqscans", "false", boolean, _NO_EFFECT),
        *(
            Variable(name, "on", switch, _NO_EFFECT)
            for name in (
                "synchronous_commit", "check_function_bodies", "array_nulls", "escape_string_warning", "jit", "geqo",
                "enable_seqscan", "enable_indexscan", "enable_bitmapscan", "enable_hashjoin", "enable_mergejoin",
                "enable_nestloop", "enable_sort", "enable_hashagg", "enable_material",
            )
        ),
        Variable("quote_all_identifiers", "off", switch, _NO_EFFECT),
        Variable("default_tablespace", "", text, _NO_EFFECT),
        Variable("temp_tablespaces", "", text, _NO_EFFECT),
        Variable("default_table_access_method", "heap", text, _NO_EFFECT),
        Variable("xmloption", "content", one_of("content", "document"), _NO_EFFECT),
        Variable("work_mem", "4MB", text, _NO_EFFECT),
        Variable("maintenance_work_mem", "64MB", text, _NO_EFFECT),
        Variable("random_page_cost", "4", decimal, _NO_EFFECT),
        Variable("log_statement", "none", one_of("none", "ddl", "mod", "all"), _NO_EFFECT),
        *(
            Variable(name, value, text, description, is_fixed=True)
            for name, value, description in (
                ("server_version", "13.14.0", "Version of PostgreSQL that clients see: postgres_version"),
                ("server_version_num", "130014", "Version of PostgreSQL that clients see, as a number"),
                ("server_encoding", "UTF8", "Encoding of what is stored"),
                ("integer_datetimes", "on", "Times are counted in microseconds"),
                ("max_identifier_length", "63", "What PostgreSQL cuts names to; here they may be longer"),
                ("max_index_keys", "32", "PostgreSQL's number"),
                ("max_prepared_transactions", "0", "There is no PREPARE TRANSACTION"),
                ("block_size", "8192", "PostgreSQL's number"),
                ("in_hot_standby", "off", "Whether another server writes and this one only reads"),
                *((f"lc_{category}", "C", "Texts are compared by their bytes") for category in ("collate", "ctype")),
            )
        ),
        *(Variable(f"lc_{name}", "C", text, _NO_EFFECT) for name in ("messages", "monetary", "numeric", "time")),
    )
}  # fmt: skip

SYSTEM: dict[str, Variable] = {
    variable.name: variable
    for variable in (
        Variable("barrier_interval_ms", "1000", integer(50, 2**31 - 1), "Least time between two barriers, in ms"),
        Variable("checkpoint_frequency", "1", integer(1, 2**31), "Barrier intervals between two checkpoints"),
        Variable("max_concurrent_creating_streaming_jobs", "1", integer(*U32), "Jobs created at once; 0 is no limit"),
        Variable("time_travel_retention_ms", "600000", retention, "How long old snapshots are kept; 0: while needed"),
        Variable("view_audit_interval_secs", "3600", integer(0, 2**31), "Seconds between audits of a view; 0: none"),
        Variable("compaction_interval_ms", "10000", integer(100, 2**31), "How often small files are looked for, in ms"),
        Variable(
            "postgres_version", "13.14.0", one_of("13.14.0", "14.0", "15.0"), "Version of PostgreSQL that clients see"
        ),
        Variable("serverless_backfill_enabled", "false", boolean, "Allow backfills on resources of their own"),
        Variable("serverless_backfill_sku", "2c4g", text, "Cores and GiB of a serverless node, one of the SKUs"),
        Variable("serverless_backfill_replicas", "1", integer(1, 1000), "Nodes of a serverless resource group"),
        Variable(
            "serverless_backfill_provision_timeout", "120", integer(1, 86400), "Seconds until a group must be ready"
        ),
        Variable("serverless_backfill_warm_groups", "0", integer(0, 100), "Serverless groups kept ready for jobs"),
        Variable("serverless_backfill_linger", "0", integer(0, 86400), "Seconds a group stays without a job"),
        Variable(PRICE, "0", price, "Price of a core for an hour; 0: none"),
        Variable("streaming_engine", "auto", one_of("auto", "spark", "duckdb"), "Engine that maintains views"),
        Variable("streaming_duckdb_max_rows", "2000000", integer(0, 2**62), "Most changed rows of an epoch for DuckDB"),
        Variable(
            "refresh_mode", "auto", one_of("auto", "incremental", "full"), "auto: compute views in full where faster"
        ),
        Variable("backfill_engine", "auto", one_of("auto", "spark"), "auto: fill views over little data in the server"),
        Variable(
            "backfill_in_process_rows", "1000000", integer(0, 2**62), "Most upstream rows of a view filled in process"
        ),
        Variable("source_rows_per_epoch", "1000000", integer(1, 2**62), "Rows a source may be ahead of the views"),
        Variable("serving_cache_mib", "256", integer(0, 2**31), "Memory for copies of relations read often; 0: none"),
        Variable("epoch_cache_mib", "-1", integer(-1, 2**31), "Memory for rows that epochs look up; -1: an eighth"),
        Variable(
            "view_time_limit_ms", "30000", integer(0, 2**31), "Time that a view may take in an epoch, in ms; 0: any"
        ),
        Variable("slow_spark_call_secs", "300", integer(0, 86400), "Seconds until a Spark call is warned of; 0: never"),
        Variable(ENABLED, "false", boolean, "Allow functions in Python, whose code runs in processes of its own"),
        Variable(BATCH_MS, "10000", integer(1, 86400000), "Time a function in Python may take for a batch, in ms"),
        Variable(MEMORY_MIB, "512", integer(16, 2**21), "Memory that the code of a function in Python may take"),
        Variable(
            "barrier_latency_target_ms", "0", integer(0, 2**31 - 1),
            "Barrier latency above which backfills slow down, in ms; 0: none"
        ),
        Variable("backfill_slice_rows", "20000000", integer(1, 2**62), "Least upstream rows of a slice of a backfill"),
    )
}  # fmt: skip

# The parameters that determine how much of the machine serverless groups use.
SIZING = frozenset(f"serverless_backfill_{name}" for name in ("enabled", "sku", "replicas", "warm_groups"))

# Alternative spellings of session variables.
_ALIASES = {"time zone": "timezone"} | {
    f"rw_{name}": name
    for name in (
        "implicit_flush", "batch_enable_lookup_join", "batch_enable_sort_agg", "streaming_enable_delta_join",
        "streaming_enable_bushy_join", "streaming_force_filter_inside_join", "streaming_allow_jsonb_in_stream_key",
        "enable_join_ordering", "enable_two_phase_agg", "force_two_phase_agg", "enable_share_plan",
        "force_split_distinct_agg", "streaming_over_window_cache_policy",
    )
}  # fmt: skip


def resolve_name(name: str) -> str:
    return _ALIASES.get(name.lower(), name.lower())


# The name of a variable that a client makes for itself, as in PostgreSQL: `app.user`.
_CUSTOM = re.compile(r"[a-z_]\w*(\.[a-z_]\w*)+", re.IGNORECASE)


def is_custom(name: str) -> bool:
    return _CUSTOM.fullmatch(name) is not None


def find(name: str, *, system: bool) -> Variable:
    """Return the variable of a name, which may be one of the client's own unless it is for the `system`.

    Raises Error 42704 for an unknown one, 55P02 for one that has no system default.
    """
    resolved = resolve_name(name)
    if system and resolved in (AUTHORIZATION, ROLE):  # they have no default for all sessions
        raise Error(f'parameter "{resolved}" cannot be changed', errors.CANT_CHANGE_RUNTIME_PARAM)
    variable = SESSION.get(resolved) or (SYSTEM.get(resolved) if system else None)
    if variable is None and is_custom(name) and not system:
        return Variable(resolved, "", text, "a variable of the client")
    if variable is None:
        if system:
            raise Error(f'unrecognized system parameter "{name}"', errors.UNDEFINED_OBJECT)
        hint = "It is a system parameter: ALTER SYSTEM SET." if resolved in SYSTEM else None
        raise Error(f"Unrecognized config entry `{name}`", errors.UNDEFINED_OBJECT, hint=hint)
    return variable


def normalise(variable: Variable, value: str, current: str = "") -> str:
    """Return the value as SHOW prints it; `current` is the present one.

    Raises Error 22023, 55P02 for a fixed variable.
    """
    if variable.is_fixed:
        raise Error(f'parameter "{variable.name}" cannot be changed', errors.CANT_CHANGE_RUNTIME_PARAM)
    try:
        return (
            variable.normalise(value, current or variable.default) if variable.is_partial else variable.normalise(value)
        )
    except ValueError as error:
        raise Error(
            f"Invalid value `{value}` for `{variable.name}`: {error}", errors.INVALID_PARAMETER_VALUE
        ) from error
