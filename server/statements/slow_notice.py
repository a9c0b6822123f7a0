"""Sends a NOTICE during a CREATE that takes long."""

from __future__ import annotations

import time
from collections.abc import Callable

from sparkwave.server.session.session import Session
from sparkwave.server.wire.result import Notice

TEXT = (
    "{what} has taken more than {seconds} secs, barrier latency might be high. "
    "SHOW JOBS and rw_catalog.rw_backfill_status tell from another session how far it is and what it waits for; "
    "CANCEL JOBS ends it. With background_ddl = true the statement would return at once."
)


def watch(session: Session, what: str) -> Callable[[], None]:
    """Return a function to call while waiting: it raises when the client cancels, and sends the NOTICE when it is due.

    `slow_ddl_notification_secs` is the time until the NOTICE, 0 for never. As in RisingWave, it is sent once; its first
    words are RisingWave's.
    """
    seconds = int(session.variables.get("slow_ddl_notification_secs"))
    started = time.monotonic()
    pending = [Notice(TEXT.format(what=what, seconds=seconds))] if seconds else []

    def check() -> None:
        session.running.check()
        if pending and time.monotonic() - started > seconds:
            session.notify(pending.pop())

    return check
