"""The keys of RisingWave's configuration of streaming jobs, with their types; here they have no effect.

Names and types are those of RisingWave's `StreamingConfig` (src/common/src/config/streaming.rs), its words those of the
reader of TOML.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable

from sparkwave.catalog import errors
from sparkwave.catalog.errors import Error
from sparkwave.planner.statements import ConfigEntry

Value = int | float | str | bool

SECTION, DEVELOPER = "streaming.", "streaming.developer."
# The prefix that RisingWave's configuration files have before the keys of `streaming.developer`.
_PREFIX = "stream_"

# Session variables whose values become keys of new relations.
SESSION_KEYS = {
    "streaming_join_encoding": f"{DEVELOPER}join_encoding_type",
    "streaming_over_window_cache_policy": f"{DEVELOPER}over_window_cache_policy",
    "streaming_cache_refill_policy": f"{DEVELOPER}cache_refill_policy",
    "streaming_sync_log_store_pause_duration_ms": f"{DEVELOPER}sync_log_store_pause_duration_ms",
    "streaming_sync_log_store_buffer_size": f"{DEVELOPER}sync_log_store_buffer_size",
}
ENUMS = {
    "join_encoding_type": ("memory_optimized", "cpu_optimized"),
    "over_window_cache_policy": ("full", "recent", "recent_first_n", "recent_last_n"),
    "cache_refill_policy": ("enabled", "disabled", "streaming", "serving", "both"),
}


def _integer(expected: str, largest: int) -> Callable[[Value], str | None]:
    """Return a check of an unsigned integer: the reason why a value is wrong."""

    def check(value: Value) -> str | None:
        if isinstance(value, bool) or not isinstance(value, int):
            return f"invalid type: {_described(value)}, expected {expected}"
        return None if 0 <= value <= largest else f"invalid value: {_described(value)}, expected {expected}"

    return check


def _boolean(value: Value) -> str | None:
    return None if isinstance(value, bool) else f"invalid type: {_described(value)}, expected a boolean"


def _float(expected: str) -> Callable[[Value], str | None]:
    def check(value: Value) -> str | None:
        is_number = isinstance(value, int | float) and not isinstance(value, bool)
        return None if is_number else f"invalid type: {_described(value)}, expected {expected}"

    return check


def _list(value: Value) -> str | None:
    return f"invalid type: {_described(value)}, expected a sequence"  # the statement has no lists


def _one_of(*values: str) -> Callable[[Value], str | None]:
    def check(value: Value) -> str | None:
        if not isinstance(value, str):
            return f"invalid type: {_described(value)}, expected a string"
        return None if value in values else f"expect one of [{', '.join(values)}]"

    return check


def _described(value: Value) -> str:
    """Return a value in the words of Rust's reader of TOML."""
    match value:
        case bool():
            return f"boolean `{config_text(value)}`"
        case int():
            return f"integer `{value}`"
        case float():
            return f"floating point `{config_text(value)}`"
    return f"string {config_text(value)}"


_TOML_LARGEST = 2**63 - 1
_USIZE, _U64 = _integer("usize", _TOML_LARGEST), _integer("u64", _TOML_LARGEST)
_U32, _U16 = _integer("u32", 2**32 - 1), _integer("u16", 2**16 - 1)
_KINDS: dict[Callable[[Value], str | None], tuple[str, ...]] = {
    _USIZE: (
        "connector_message_buffer_size", "unsafe_extreme_cache_size", "topn_cache_min_capacity", "chunk_size",
        "exchange_initial_permits", "exchange_batched_permits", "exchange_concurrent_barriers",
        "exchange_concurrent_dispatchers", "dml_channel_initial_permits", "hash_agg_max_dirty_groups_heap_size",
        "memory_controller_update_interval_ms", "high_join_amplification_threshold", "hash_join_entry_state_max_rows",
        "iceberg_sink_positional_delete_cache_size", "iceberg_sink_write_parquet_max_row_group_rows",
        "project_expr_concurrency", "sync_log_store_pause_duration_ms", "sync_log_store_buffer_size",
    ),
    _U64: (
        "memory_controller_sequence_tls_step", "memory_controller_sequence_tls_lag", "iceberg_list_interval_sec",
        "iceberg_fetch_batch_size", "refresh_scheduler_interval_sec",
    ),
    _U32: ("max_barrier_batch_size", "pin_cache_table_id"),
    _U16: ("exchange_connection_pool_size",),
    _boolean: (
        "enable_executor_row_count", "enable_arrangement_backfill", "enable_snapshot_backfill",
        "enable_actor_tokio_metrics", "enable_auto_schema_change", "enable_shared_source", "switch_jdbc_pg_to_native",
        "enable_explain_analyze_stats", "default_enable_mem_preload_state_table", "aggressive_noop_update_elimination",
        "disable_sync_log_store_dispatcher",
    ),
    _float("f64"): (
        "memory_controller_threshold_aggressive", "memory_controller_threshold_graceful",
        "memory_controller_threshold_stable", "memory_controller_eviction_factor_aggressive",
        "memory_controller_eviction_factor_graceful", "memory_controller_eviction_factor_stable",
    ),
    _float("f32"): ("now_progress_ratio",),
    _list: ("mem_preload_state_table_ids_whitelist", "mem_preload_state_table_ids_blacklist"),
}  # fmt: skip
_CHECKS: dict[str, Callable[[Value], str | None]] = {
    "streaming.in_flight_barrier_nums": _USIZE,
    "streaming.actor_runtime_worker_threads_num": _USIZE,
    "streaming.unique_user_stream_errors": _USIZE,
    "streaming.snapshot_backfill_finish_max_lagged_barriers": _USIZE,
    "streaming.snapshot_backfill_barrier_amplification_factor": _USIZE,
    "streaming.async_stack_trace": _one_of("Off", "On", "ReleaseVerbose"),
    "streaming.unsafe_enable_strict_consistency": _boolean,
    **{f"{DEVELOPER}{name}": _one_of(*values) for name, values in ENUMS.items()},
    **{f"{DEVELOPER}{name}": check for check, names in _KINDS.items() for name in names},
}


def config_text(value: Value) -> str:
    """Return a value as TOML."""
    return json.dumps(value, ensure_ascii=False)


def config_values(entries: Iterable[ConfigEntry]) -> dict[str, str | None]:
    """Return the values by key, in TOML; None for a key to remove.

    Raises Error 42601 for a key given twice, 22023 for an unknown key or a wrong value.
    """
    found: dict[str, str | None] = {}
    unknown: list[ConfigEntry] = []
    for entry in entries:
        if not entry.key.startswith(SECTION):
            raise _wrong(f"ALTER CONFIG only accepts options starting with `{SECTION}`", entry.position)
        if entry.key in found:
            message = f"Duplicate option for ALTER CONFIG: {entry.key}"
            raise Error(message, errors.SYNTAX_ERROR, position=entry.position)
        if entry.value is not None:
            _check(entry, unknown)
        found[entry.key] = None if entry.value is None else config_text(entry.value)
    if unknown:
        listed = ", ".join(f'"{entry.key}"' for entry in unknown)
        raise _wrong(f"unrecognized configs: [{listed}]", unknown[0].position)
    return found


def _check(entry: ConfigEntry, unknown: list[ConfigEntry]) -> None:
    """Check a key and its value; an unknown key is added to a list."""
    assert entry.value is not None
    name = entry.key.removeprefix(f"{DEVELOPER}{_PREFIX}")
    if name != entry.key and f"{DEVELOPER}{name}" in _CHECKS:
        raise _wrong(f"duplicate field `{name}` in `developer`", entry.position)
    check = _CHECKS.get(entry.key)
    if check is None:
        unknown.append(entry)
    elif (reason := check(entry.value)) is not None:
        raise _wrong(f"{reason} in `{entry.key.removeprefix(SECTION)}`", entry.value_position)


def _wrong(message: str, position: int) -> Error:
    return Error(message, errors.INVALID_PARAMETER_VALUE, position=position)
