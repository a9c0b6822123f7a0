"""The connected sessions: what each of them runs, and how one is stopped by its number."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Protocol

from sparkwave.catalog.locks import RankedLock
from sparkwave.catalog.redaction import redact
from sparkwave.catalog.users import User
from sparkwave.planner.bind.privileges import permission_denied
from sparkwave.server.session.portal import Names

# How many bytes of what a session runs others see: PostgreSQL's track_activity_query_size, whose last is never used.
QUERY_BYTES = 1023


def _now() -> datetime:
    return datetime.now(UTC)


def _clipped(query: str) -> str:
    return query[:QUERY_BYTES].encode()[:QUERY_BYTES].decode(errors="ignore")


class Connected(Protocol):
    """What other sessions see of one, and do to it. Any thread may ask."""

    database: str
    names: Names

    @property
    def login(self) -> User:
        """Who has connected."""

    def get(self, name: str) -> str:
        """The value of a session variable or system parameter, as SHOW prints it."""

    def cancel(self, reason: str = ...) -> None:
        """Stop what runs."""


@dataclass
class Backend:
    """A connected session. `query` is how the statement begins that runs, or ran last, since `query_start`."""

    process_id: int
    address: tuple[str, int]
    session: Connected
    terminate: Callable[[], None]
    backend_start: datetime = field(default_factory=_now)
    state: str = "idle"
    state_change: datetime = field(default_factory=_now)
    query: str = ""
    query_start: datetime | None = None

    def begin(self, query: str) -> None:
        """A statement starts."""
        self.query, self.query_start = _clipped(query), _now()
        self.state, self.state_change = "active", self.query_start

    @property
    def shown_query(self) -> str:
        """What others may read of it."""
        return redact(self.query)

    def rest(self, in_transaction: bool, has_failed: bool = False) -> None:
        """The session waits for its client."""
        state = f"idle in transaction{' (aborted)' if has_failed else ''}" if in_transaction else "idle"
        if state != self.state:
            self.state, self.state_change = state, _now()


class Backends:
    """The connected sessions by process id. `users` gives those that there are, by name."""

    def __init__(self, users: Callable[[], Mapping[str, User]]) -> None:
        self._users = users
        self._backends: dict[int, Backend] = {}
        self._lock = RankedLock()

    def add(self, backend: Backend) -> None:
        with self._lock:
            self._backends[backend.process_id] = backend

    def remove(self, process_id: int) -> None:
        with self._lock:
            self._backends.pop(process_id, None)

    def all(self) -> list[Backend]:
        """By process id."""
        with self._lock:
            return [self._backends[process_id] for process_id in sorted(self._backends)]

    def signal(self, user: str, process_id: int, how: str) -> bool:
        """Cancel the statement of a session, or terminate it; False when there is none of that number.

        Raises Error 42501 unless the session is the user's own, or that of a role it is a member of, or the user a
        superuser.
        """
        with self._lock:
            backend = self._backends.get(process_id)
        if backend is None:
            return False
        self._check(user, backend, how)
        if how == "terminate":
            backend.terminate()
        else:
            backend.session.cancel()
        return True

    def _check(self, user: str, backend: Backend, how: str) -> None:
        users = self._users()
        target = backend.session.login
        if users[user].is_super or user == target.name:
            return
        if users[user].acts_as(target.name) and not target.is_super:
            return
        what, done = _SIGNALLED[how]
        if target.is_super:
            raise permission_denied(f"must be a superuser to {how} superuser {what}")
        raise permission_denied(f"must be a member of the role whose {what} is being {done}")


# What PostgreSQL calls the thing that a signal hits, and what happens to it.
_SIGNALLED = {"cancel": ("query", "canceled"), "terminate": ("process", "terminated")}
