"""The server's last hour, sampled from counters."""

from __future__ import annotations

import math

from sparkwave.server.operations.last_hour import POINT_SECONDS, POINTS, Counts, History, JobCounts


def sampled(*counts: Counts, every: float = 10.0) -> History:
    left = iter(counts)
    history = History(lambda: next(left))
    for number in range(len(counts)):
        history.sample(1000.0 + every * number)
    return history


def test_a_moment_is_the_difference_of_two_samples() -> None:
    before = Counts(10, 2, 0.5, 0, 4, 100, 2.0, {1: JobCounts(50, 0, 20.0), 2: JobCounts(0, 900)})
    now = Counts(20, 6, 0.9, 1, 14, 300, 3.0, {1: JobCounts(150, 0, 700.0), 2: JobCounts(0, 1900), 3: JobCounts(9, 9)})
    (moment,) = sampled(before, now).moments()
    assert (moment.at, moment.barriers, moment.failed_barriers, moment.commits) == (1010.0, 1.0, 1, 1.0)
    assert moment.barrier_ms is not None and math.isclose(moment.barrier_ms, 100)
    assert (moment.statements, moment.statement_ms, moment.lag_ms) == (20.0, 5.0, 700.0)
    assert (moment.changed_rows, moment.read_rows) == (10.0, 100.0)


def test_without_barriers_and_statements_there_is_no_average() -> None:
    (moment,) = sampled(Counts(), Counts()).moments()
    assert (moment.barrier_ms, moment.statement_ms, moment.lag_ms, moment.changed_rows) == (None, None, None, 0)


def test_rates_are_those_of_jobs_that_were_there_before() -> None:
    history = sampled(Counts(jobs={1: JobCounts(50)}), Counts(jobs={1: JobCounts(80), 2: JobCounts(7)}))
    assert history.rates() == {1: 3.0}


def test_curves_have_the_worst_lag_of_each_point_and_forget_dropped_jobs() -> None:
    lags = [10.0, 4000.0, 20.0, None, None, None, 5.0, 6.0, 7.0]
    counts = [Counts(jobs={1: JobCounts(30 * n, 60 * n, lag), 2: JobCounts()}) for n, lag in enumerate(lags)]
    at, curves = sampled(*counts).curves()
    assert at == 1080.0 and set(curves) == {1, 2}
    assert [lag for lag in curves[1].lag_ms if not math.isnan(lag)] == [4000.0, 7.0]
    assert curves[1].changed_rows == [2.0, 3.0, 3.0] and curves[1].read_rows == [4.0, 6.0, 6.0]
    _, curves = sampled(*counts, *[Counts(jobs={2: JobCounts()})] * 3).curves()
    assert set(curves) == {2} and curves[2].lag_ms == []


def test_an_hour_is_kept() -> None:
    history = sampled(*[Counts(jobs={1: JobCounts(n)}) for n in range(3 * POINTS + 30)])
    assert len(history.moments()) == 360
    _, curves = history.curves()
    assert len(curves[1].changed_rows) == POINTS == 3600 / POINT_SECONDS
    assert {round(rows, 6) for rows in curves[1].changed_rows[1:]} == {3 / POINT_SECONDS}
