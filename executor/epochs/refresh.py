"""How an epoch brings a view up to date: incrementally, or by computing it in full where that has been faster.

A change of a join looks up the rows that match, and which files those are in only the files tell: what either way takes
is not known before. So a view's own epochs are timed, and the way that is not taken is believed to get a little cheaper
each time, so that it is tried again. Snowflake's dynamic tables have the same modes (AUTO, INCREMENTAL, FULL).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from weakref import WeakKeyDictionary

from sparkwave.executor.epochs.advance import View
from sparkwave.planner.plan.nodes import Aggregate
from sparkwave.planner.plan.stream_plan import StreamPlan

AUTO, INCREMENTAL, FULL = "auto", "incremental", "full"

# Below this a full refresh is not worth looking at, in seconds.
WORTH_S = 0.05
# What DuckDB reads, joins and compares while it computes a view, on the safe side, and what it takes without a row.
ROWS_A_SECOND, FIXED_S = 10_000_000, 0.02
# What remains each time of the time that the other way took.
FORGETTING = 0.99


@dataclass
class Times:
    """Seconds that a view's refreshes took: incremental ones by the magnitude of the change, and a full one."""

    incremental: dict[int, float] = field(default_factory=dict)
    full: float | None = None

    def nearest(self, rows: int) -> int | None:
        """The magnitude nearest to so many changed rows that is not beyond them: what that took is the least."""
        return max((known for known in self.incremental if known <= _magnitude(rows)), default=None)


class Refresh:
    """Chooses for each view and epoch. Used by the coordinator's thread alone."""

    def __init__(self, mode: Callable[[], str]) -> None:
        self._mode = mode
        self._times: WeakKeyDictionary[StreamPlan, Times] = WeakKeyDictionary()

    def may_be_full(self, view: View) -> bool:
        """Whether it is worth asking `is_full`."""
        times = self._times.get(view.plan)
        return self._mode() == FULL or (times is not None and times.full is not None)

    def is_full(self, view: View, changed_rows: int, stored_rows: Callable[[], int]) -> bool:
        """Whether to compute a view in full. `stored_rows` are those of all that this would read."""
        mode = self._mode()
        if mode == INCREMENTAL or view.plan.looked_up or view.relation.is_sink:
            return False
        if mode == FULL:
            return True
        times = self._times.get(view.plan)
        nearest = times.nearest(changed_rows) if times is not None else None
        if times is None or nearest is None or times.incremental[nearest] < WORTH_S or _adds_floats(view.plan):
            return False
        if times.full is None:
            times.full = FIXED_S + stored_rows() / ROWS_A_SECOND
        return times.full < times.incremental[nearest]

    def took(self, view: View, changed_rows: int, is_full: bool, seconds: float) -> None:
        """Keep what a refresh took."""
        times = self._times.setdefault(view.plan, Times())
        if not is_full:
            times.incremental[_magnitude(changed_rows)] = seconds
            if times.full is not None:
                times.full *= FORGETTING
            return
        times.full = seconds
        nearest = times.nearest(changed_rows)
        if nearest is not None:
            times.incremental[nearest] *= FORGETTING


def _magnitude(rows: int) -> int:
    return rows.bit_length() // 2


def _adds_floats(plan: StreamPlan) -> bool:
    """Whether a view adds up floating-point numbers: in full in another order, so that rows differ in a last digit."""
    calls = (call for state in plan.states if isinstance(state.node, Aggregate) for call in state.node.calls)
    return any(call.type.is_float and call.function not in ("min", "max") for call in calls)
