"""Counts the rows that the epochs of each job read and change, for EXPLAIN ANALYZE of a running job."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Rows:
    """The rows of a job since the server started.

    `output` is the number of rows that the job has removed and added. `inputs` are the numbers of changed rows, by the
    name of the input; `unknown` counts the epochs in which the changed rows of an input were not counted.
    """

    output: int = 0
    inputs: Mapping[str, int] = field(default_factory=dict)
    unknown: Mapping[str, int] = field(default_factory=dict)


class MeasuredRows:
    """The counts of all jobs. The coordinator's thread adds to them, others read them."""

    def __init__(self) -> None:
        self._rows: dict[int, Rows] = {}

    def of(self, job_id: int) -> Rows:
        return self._rows.get(job_id, Rows())

    def add(self, job_id: int, inputs: Mapping[str, int | None], output: int) -> None:
        """Add an epoch: the changed rows of the inputs, None where nobody counted them, and of the job."""
        before = self.of(job_id)
        counted = Counter({name: rows for name, rows in inputs.items() if rows is not None})
        unknown = Counter(name for name, rows in inputs.items() if rows is None)
        self._rows[job_id] = Rows(
            before.output + output, Counter(before.inputs) + counted, Counter(before.unknown) + unknown
        )

    def keep(self, job_ids: set[int]) -> None:
        """Forget the jobs that do not exist any more."""
        for gone in self._rows.keys() - job_ids:
            del self._rows[gone]
