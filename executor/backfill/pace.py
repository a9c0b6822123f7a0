"""What share of a machine a backfill takes, by the times of the running views' barriers.

The rule is additive increase, multiplicative decrease, as of TCP's window: it is stable, and several backfills that
follow it come to fair shares without knowing of each other (Chiu & Jain, "Analysis of the Increase and Decrease
Algorithms for Congestion Avoidance in Computer Networks", Computer Networks and ISDN Systems 17, 1989).
"""

from __future__ import annotations

from dataclasses import dataclass

# A slowed backfill keeps half of what it had, so that it takes about twice as long at most.
LEAST_SHARE = 0.5
# A late barrier leaves this part of the share.
DECREASE = 0.7
# A barrier in time adds so much: from the least share it takes a hundred of them to the whole one. At the whole share
# barriers may be late again, and by this at most one in a hundred is, which leaves the 99th percentile alone.
INCREASE = (1 - LEAST_SHARE) / 100
# Without barriers for so many seconds there is nobody to give way to, and each look adds so much.
QUIET_S = 5.0
QUIET_INCREASE = 0.1


@dataclass(frozen=True)
class Barriers:
    """The barriers of running views since the last look: how many, and the longest in ms, which may be running still.

    `quiet_s` are the seconds since the last one.
    """

    count: int
    longest_ms: float
    quiet_s: float


@dataclass(frozen=True)
class Pace:
    """The share of a machine that a backfill takes, from LEAST_SHARE to 1.

    `late_ms` is the last barrier that was late; None while the share is the whole.
    """

    share: float = 1.0
    late_ms: float | None = None

    @property
    def is_slowed(self) -> bool:
        return self.share < 1


WHOLE = Pace()


def next_pace(pace: Pace, seen: Barriers, target_ms: int) -> Pace:
    """Return the pace after barriers. A target of 0 ms slows nothing."""
    if not target_ms:
        return WHOLE
    if seen.longest_ms > target_ms:
        return Pace(max(pace.share * DECREASE, LEAST_SHARE), seen.longest_ms)
    added = QUIET_INCREASE if seen.quiet_s > QUIET_S else INCREASE * seen.count
    share = pace.share + added
    return WHOLE if share >= 1 - INCREASE / 2 else Pace(share, pace.late_ms)


def reason(pace: Pace, target_ms: int) -> str | None:
    """Return why a backfill is slowed, as users read it; None if it is not."""
    return f"slowed: views at {pace.late_ms:.0f} ms, target {target_ms}" if pace.late_ms is not None else None


def pause_s(pace: Pace, step_s: float) -> float:
    """Return how long to pause after a step of so many seconds, so that the steps take the share in time."""
    return min(step_s * (1 / pace.share - 1), 1.0)
