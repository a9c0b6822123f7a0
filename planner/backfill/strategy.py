"""The backfill strategy of a job, one for all of its scans, and the reason for it.

RisingWave's decision (src/frontend/src/optimizer/mod.rs of v2.8, derive_backfill_type and should_use_snapshot_backfill)
with one addition: `WITH (backfill_strategy = …)` names a strategy for one statement.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from sparkwave.catalog import errors
from sparkwave.catalog.errors import Error
from sparkwave.planner.plan.nodes import (
    Join,
    Node,
    Scan,
    walk,
)
from sparkwave.planner.statements import Option

# The strategies as EXPLAIN prints them. RisingWave calls NoShuffle just `Backfill` (proto/stream_plan.proto).
SNAPSHOT, ARRANGEMENT, NO_SHUFFLE = "SnapshotBackfill", "ArrangementBackfill", "Backfill"

AUTO = "auto"
# Values of `backfill_strategy`. `auto` lets the session's variables decide, as without the option.
NAMED = {"snapshot": SNAPSHOT, "arrangement": ARRANGEMENT, "no_shuffle": NO_SHUFFLE}


@dataclass(frozen=True)
class BackfillSettings:
    """A session's settings for backfills, with RisingWave's defaults. `rate_limit` None is no limit, 0 is a pause."""

    use_snapshot: bool = True
    use_arrangement: bool = True
    rate_limit: int | None = None


DEFAULTS = BackfillSettings()


@dataclass(frozen=True)
class Choice:
    """A strategy, the reason for it, and notices for the user."""

    strategy: str
    reason: str
    notices: tuple[str, ...] = ()


def choose(root: Node, settings: BackfillSettings, asked: Option | None = None) -> Choice:
    """Return the strategy of a plan. `asked` is the option `backfill_strategy`.

    Raises Error 22023 for an unknown word, and 0A000 when the wanted strategy cannot fill this plan.
    """
    word = asked.value.lower() if asked is not None else AUTO
    if asked is not None and word != AUTO:
        return _named(root, asked, word)
    if not _reads_tables(root):
        return Choice(SNAPSHOT, "it reads no table, so there is nothing to backfill")
    if not settings.use_snapshot:
        return _fallback(root, settings, "streaming_use_snapshot_backfill is off")
    if temporal_reason(root) is None:
        return Choice(SNAPSHOT, "streaming_use_snapshot_backfill is on")
    notice = "snapshot backfill disabled due to temporal join"
    return _fallback(root, settings, "a temporal join rules out snapshot backfill", (notice,))


def _fallback(root: Node, settings: BackfillSettings, reason: str, notices: tuple[str, ...] = ()) -> Choice:
    """Return the strategy that is used where `reason` rules out a snapshot backfill."""
    if settings.use_arrangement:
        return Choice(ARRANGEMENT, reason, notices)
    reason = f"{reason}; streaming_use_arrangement_backfill is off"
    exchanged = exchange_reason(root)
    if exchanged is None:
        return Choice(NO_SHUFFLE, f"{reason}; no operator needs an exchange", notices)
    notice = f"no-shuffle backfill disabled because {exchanged} needs an exchange: arrangement backfill is used instead"
    return Choice(ARRANGEMENT, f"{reason}, but {exchanged} needs an exchange", (*notices, notice))


def _named(root: Node, asked: Option, word: str) -> Choice:
    strategy = NAMED.get(word)
    if strategy is None:
        raise Error(
            f"invalid value for backfill_strategy: {asked.value}",
            errors.INVALID_PARAMETER_VALUE,
            hint=f"It is one of {', '.join((*NAMED, AUTO))}.",
            position=asked.value_position,
        )
    why = _AGAINST[strategy](root)
    if why is not None:
        raise Error(
            f"backfill_strategy = '{word}' is not supported for this view: {why}",
            errors.FEATURE_NOT_SUPPORTED,
            hint=_HINTS[strategy],
            position=asked.position,
        )
    return Choice(strategy, "backfill_strategy asks for it")


def _against_named_snapshot(root: Node) -> str | None:
    found = temporal_reason(root)
    return found and f"{found} has to see its right side as it is when a row arrives"


def _against_named_arrangement(root: Node) -> str | None:
    return None if _reads_tables(root) else "it reads no table"


def _against_named_no_shuffle(root: Node) -> str | None:
    found = exchange_reason(root)
    return _against_named_arrangement(root) or (found and f"{found} needs an exchange")


_AGAINST: dict[str, Callable[[Node], str | None]] = {
    SNAPSHOT: _against_named_snapshot,
    ARRANGEMENT: _against_named_arrangement,
    NO_SHUFFLE: _against_named_no_shuffle,
}
_HINTS = {
    SNAPSHOT: "Use 'arrangement', or 'auto' to have it chosen.",
    ARRANGEMENT: "Use 'snapshot', or 'auto' to have it chosen.",
    NO_SHUFFLE: "No-shuffle backfill is for views that only filter, project, unnest and UNION ALL. "
    "Use 'arrangement', or 'auto' to have it chosen.",
}


def _reads_tables(root: Node) -> bool:
    return any(isinstance(node, Scan) for node in walk(root))


def temporal_reason(root: Node) -> str | None:
    """Return the operator that rules out a snapshot backfill, in words; None without one."""
    found = any(isinstance(node, Join) and node.is_temporal for node in walk(root))
    return "a temporal join" if found else None


def exchange_reason(root: Node) -> str | None:
    """Return the first operator that needs an exchange of rows, in words; None for a plan that is a map over its scans.

    The time that a temporal filter compares with is the same everywhere: no row moves for it.
    """
    return next((node.words for node in walk(root) if not node.is_map), None)
