"""Chooses how an epoch brings a view up to date: incrementally, or in full where this has been faster.

The cost of neither way is known before, because a join looks up matching rows and only the files tell which files have
them. So a view's epochs are timed. The estimate for the way that is not taken decays by 1 % a run, so that it is tried
again; that of a full refresh decays to a half of what was measured, because a try reads all rows. Views that compute
each row by itself are always incremental. Snowflake's dynamic tables have the same modes (AUTO, INCREMENTAL, FULL).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from weakref import WeakKeyDictionary

from sparkwave.executor.epochs.advance import View
from sparkwave.planner.plan.nodes import Aggregate, Join, Memo, OverWindow, TopN
from sparkwave.planner.plan.stream_plan import StreamPlan

AUTO, INCREMENTAL, FULL = "auto", "incremental", "full"

# Seconds: an incremental refresh that takes less is never replaced by a full one.
WORTH_S = 0.05
# A first estimate of a full refresh: rows that DuckDB reads, joins and compares a second (low), and fixed seconds.
ROWS_A_SECOND, FIXED_S = 2_000_000, 0.02
# The estimate for the way that is not taken is multiplied by this with each run.
FORGETTING = 0.99
# The least part of a full refresh's measured seconds to which its estimate decays.
LEAST_OF_FULL = 0.5
# The first refreshes in a row whose SQL has to be planned do not count, up to so many seconds: the next ones save them.
_MOST_PLANNED, PLANNING_S = 4, 1.0
# Operators whose rows depend on several rows of their inputs.
_SEVERAL_ROWS = (Join, Aggregate, TopN, OverWindow, Memo)


@dataclass
class Times:
    """Seconds that a view's refreshes took: incremental ones by the magnitude of the change, and a full one.

    The estimate of a full refresh does not decay below `least_full`. `planned` counts the last incremental refreshes in
    a row that do not count.
    """

    incremental: dict[int, float] = field(default_factory=dict)
    full: float | None = None
    least_full: float = 0.0
    planned: int = 0

    def nearest(self, rows: int) -> int | None:
        """Return the largest known magnitude that is not above that of `rows`; its time is a lower bound."""
        return max((known for known in self.incremental if known <= _magnitude(rows)), default=None)


class Refresh:
    """Chooses for each view and epoch. Only the coordinator's thread uses it."""

    def __init__(self, mode: Callable[[], str]) -> None:
        self._mode = mode
        self._times: WeakKeyDictionary[StreamPlan, Times] = WeakKeyDictionary()

    def may_be_full(self, view: View) -> bool:
        """Return whether `is_full` is worth asking before the changes are read."""
        times = self._times.get(view.plan)
        return self._mode() == FULL or (times is not None and times.full is not None)

    def is_full(self, view: View, changed_rows: int, stored_rows: Callable[[], int]) -> bool:
        """Return whether to compute a view in full. `stored_rows` counts all the rows that this would read."""
        mode = self._mode()
        if mode == INCREMENTAL or view.plan.remembers or view.relation.is_sink:
            return False
        if mode == FULL:
            return True
        if not any(isinstance(node, _SEVERAL_ROWS) for node in view.plan.nodes):
            return False
        times = self._times.get(view.plan)
        nearest = times.nearest(changed_rows) if times is not None else None
        if times is None or nearest is None or times.incremental[nearest] < WORTH_S or _adds_floats(view.plan):
            return False
        if times.full is None:
            times.full = FIXED_S + stored_rows() / ROWS_A_SECOND
        return times.full < times.incremental[nearest]

    def took(
        self, view: View, changed_rows: int, is_full: bool, seconds: float, has_planned: bool = False
    ) -> None:  # fmt: skip
        """Record the seconds that a refresh took. `has_planned` tells that its SQL was planned to run once."""
        times = self._times.setdefault(view.plan, Times())
        if not is_full:
            times.planned = times.planned + 1 if has_planned else 0
            if 0 < times.planned <= _MOST_PLANNED and seconds < PLANNING_S:
                return
            times.incremental[_magnitude(changed_rows)] = seconds
            if times.full is not None:
                times.full = max(times.full * FORGETTING, times.least_full)
            return
        times.full, times.least_full = seconds, seconds * LEAST_OF_FULL
        nearest = times.nearest(changed_rows)
        if nearest is not None:
            times.incremental[nearest] *= FORGETTING


def _magnitude(rows: int) -> int:
    return rows.bit_length() // 2


def _adds_floats(plan: StreamPlan) -> bool:
    """Return whether a view adds up floating-point numbers.

    A full computation adds in another order, so that rows differ in a last digit.
    """
    calls = (call for state in plan.states if isinstance(state.node, Aggregate) for call in state.node.calls)
    return any(call.type.is_float and call.function not in ("min", "max") for call in calls)
