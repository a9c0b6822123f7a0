"""A session as the wire sees it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Protocol

from sparkwave.catalog.errors import Error
from sparkwave.server.session.portal import Names
from sparkwave.server.wire.result import Notice, Prepared, Result


class ClientSession(Protocol):
    """What the wire needs of a session. One thread at a time calls it, except `cancel`.

    The wire sets `notify`, which sends a notice at once, while a statement still runs; it is called on that thread.
    """

    notify: Callable[[Notice], None]

    @property
    def names(self) -> Names:
        """The prepared statements and portals, those of the protocol among them."""

    def attach(self, process_id: int, address: tuple[str, int], terminate: Callable[[], None]) -> None:
        """Say which client it is, and what ends its connection from another thread."""

    def split(self, sql: str) -> Iterable[tuple[str, int]]:
        """The statements of a simple query, each with its offset in the text. Raises Error on a syntax error."""

    def prepare(self, sql: str, parameter_oids: tuple[int, ...]) -> Prepared:
        """Parse and plan one statement; nothing runs. OID 0 means: infer it."""

    def execute(self, prepared: Prepared, values: tuple[object, ...]) -> Result:
        """Run with Python values (None for NULL) for the parameters."""

    def begin_implicit(self) -> None:
        """Another of several statements that belong together follows: one transaction where those are atomic."""

    def begins_pipeline(self, prepared: Prepared) -> bool:
        """Whether this one and all that follow up to Sync belong together."""

    def end_implicit(self) -> None:
        """They are over, if there were any. Raises Error when they cannot be committed."""

    def fail(self) -> None:
        """The client has been told of an error; a transaction that is atomic has failed."""

    def transaction_status(self) -> bytes:
        """b"I", b"T" or b"E"."""

    def idle_limit(self) -> tuple[float, Error] | None:
        """For how many seconds to wait for the client's next message, and the FATAL error then; None: for ever."""

    def parameters(self) -> dict[str, str]:
        """What ParameterStatus reports, the same object while nothing has changed; changes are sent again."""

    def cancel(self) -> None:
        """Stop the running statement; it raises Error 57014. Called from another thread."""

    def close(self) -> None:
        """The client has gone."""
