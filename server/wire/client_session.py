"""The interface of a session that the wire protocol uses."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Protocol

from sparkwave.catalog.errors import Error
from sparkwave.server.session.portal import Names
from sparkwave.server.wire.result import Notice, Prepared, Result


class ClientSession(Protocol):
    """A client's session. One thread at a time calls its methods, except `cancel`.

    The wire sets `notify`, which sends a notice to the client at once, while a statement still runs. The session calls
    it on the thread that runs the statement.
    """

    notify: Callable[[Notice], None]

    @property
    def names(self) -> Names:
        """The session's prepared statements and portals, including those made by protocol messages."""

    def attach(self, process_id: int, address: tuple[str, int], terminate: Callable[[], None]) -> None:
        """Tell the session its process id and address, and a function that ends the connection from any thread."""

    def split(self, sql: str) -> Iterable[tuple[str, int]]:
        """Return the statements of a simple query, each with its offset in the text.

        Raises Error for a syntax error.
        """

    def prepare(self, sql: str, parameter_oids: tuple[int, ...]) -> Prepared:
        """Parse and plan one statement without running it. The OID 0 means that the parameter's type is inferred."""

    def execute(self, prepared: Prepared, values: tuple[object, ...]) -> Result:
        """Run a prepared statement with Python values for its parameters, None for NULL."""

    def begin_implicit(self) -> None:
        """Announce the next of several statements that belong together: one transaction if transactions are atomic."""

    def begins_pipeline(self, prepared: Prepared) -> bool:
        """Return whether this statement and all that follow up to Sync belong together."""

    def end_implicit(self) -> None:
        """End and commit the statements that belong together, if any. Raises Error when the commit fails."""

    def explain(self, error: Error) -> None:
        """Give an error that the client will be told a hint, where it has none."""

    def fail(self) -> None:
        """Mark an atomic transaction as failed, after the client has been told of an error."""

    def transaction_status(self) -> bytes:
        """Return the status for ReadyForQuery: b"I" (idle), b"T" (in a transaction) or b"E" (in a failed one)."""

    def idle_limit(self) -> tuple[float, Error] | None:
        """Return the seconds to wait for the client's next message and the FATAL error after them; None: no limit."""

    def parameters(self) -> dict[str, str]:
        """Return the parameters for ParameterStatus and UNREPORTED ones; the same object until a parameter changes."""

    def cancel(self) -> None:
        """Stop the running statement, which then raises Error 57014. Called from another thread."""

    def close(self) -> None:
        """End the session, after its client has gone."""
