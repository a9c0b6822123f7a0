"""A thread that watches a job while the job works."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from sparkwave.catalog.log_context import logged


@contextmanager
def watching(job_id: int, what: str, watch: Callable[[threading.Event], None]) -> Iterator[None]:
    """While entered, `watch` runs on a thread of its own. It is to return soon after its event is set."""
    is_over = threading.Event()

    def run() -> None:
        with logged(job_id=job_id):
            watch(is_over)

    thread = threading.Thread(target=run, name=f"job-{job_id}-{what}", daemon=True)
    thread.start()
    try:
        yield
    finally:
        is_over.set()
        thread.join()
