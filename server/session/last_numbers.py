"""The last numbers that a session has taken of sequences, for `currval` and `lastval`."""

from __future__ import annotations

from collections.abc import Mapping


class LastNumbers:
    """`by_id` has the last number of each sequence by its id; None: the last number of any sequence."""

    def __init__(self) -> None:
        self.by_id: dict[int | None, int] = {}

    def note(self, last: Mapping[int, int]) -> None:
        """Keep the last number that a statement has taken of each sequence, by id."""
        for id_, number in last.items():
            self.by_id[id_] = self.by_id[None] = number

    def forget(self) -> None:
        """Forget all numbers (DISCARD SEQUENCES)."""
        self.by_id.clear()
