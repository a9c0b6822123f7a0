"""The last numbers that a session has taken of sequences, for `currval` and `lastval`."""

from __future__ import annotations

from collections.abc import Mapping


class LastNumbers:
    """The last number of each sequence by its id, and which sequence the session has drawn from last."""

    def __init__(self) -> None:
        self._by_id: dict[int, int] = {}
        self._drawn: int | None = None

    def of(self, sequence: int | None) -> int | None:
        """Return the last number of a sequence, or for None of the sequence drawn from last; None without one."""
        id_ = self._drawn if sequence is None else sequence
        return None if id_ is None else self._by_id.get(id_)

    def note(self, drawn: Mapping[int, int]) -> None:
        """Keep the last number that a statement has drawn of each sequence, by id, the latest last."""
        for id_, number in drawn.items():
            self._by_id[id_], self._drawn = number, id_

    def set(self, sequence: int, number: int) -> None:
        """Keep the number that a sequence was set to."""
        self._by_id[sequence] = number

    def forget(self) -> None:
        """Forget all numbers (DISCARD SEQUENCES)."""
        self._by_id.clear()
        self._drawn = None
