"""The controls of a creating job."""

from __future__ import annotations

import threading

from sparkwave.executor.backfill.controls import Controls


def test_no_interrupt_lasts_longer_than_what_it_interrupts() -> None:
    """The next job may have the session by then."""
    controls, has_begun, may_end = Controls(lambda: False), threading.Event(), threading.Event()
    is_left = threading.Event()

    def interrupt() -> None:
        has_begun.set()
        may_end.wait(10)

    def step() -> None:
        with controls.interruptible(interrupt):
            has_begun.wait(10)
        is_left.set()

    stepping = threading.Thread(target=step)
    stepping.start()
    stopping = threading.Thread(target=controls.stop, args=(controls.is_cancelled,))
    stopping.start()
    assert has_begun.wait(10)
    assert not is_left.wait(0.1)
    may_end.set()
    assert is_left.wait(10)
    for thread in (stepping, stopping):
        thread.join(10)
