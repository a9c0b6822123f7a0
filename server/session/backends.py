"""The connected sessions: shows the statement of each, keeps slow ones, cancels or ends a session by its process id."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Protocol

from sparkwave.catalog.locks import RankedLock
from sparkwave.catalog.redaction import redact
from sparkwave.catalog.users import User
from sparkwave.planner.bind.privileges import permission_denied
from sparkwave.server.session.portal import Names
from sparkwave.server.session.running import Running

# The most bytes of a statement that others see: PostgreSQL's track_activity_query_size, less the final zero byte.
QUERY_BYTES = 1023
# Statements that take at least so many seconds are kept, at most so many of the newest.
SLOW_SECONDS = 1.0
SLOW_KEPT = 100
APPLICATION = "application_name"


def _now() -> datetime:
    return datetime.now(UTC)


def _clipped(query: str) -> str:
    return query[:QUERY_BYTES].encode()[:QUERY_BYTES].decode(errors="ignore")


class Readable(Protocol):
    """The variables of a session, to read."""

    def get(self, name: str) -> str:
        """Return the value of a session variable or system parameter, as SHOW prints it."""


class Connected(Protocol):
    """A session as other sessions see it. Any thread may call it."""

    database: str
    names: Names
    running: Running

    @property
    def variables(self) -> Readable:
        """The session's variables."""

    @property
    def login(self) -> User:
        """The user who has connected."""


@dataclass(frozen=True)
class SlowStatement:
    """A statement of the user `login` that took SLOW_SECONDS or more, with the waits for its client."""

    process_id: int
    database: str
    login: str
    application: str
    query: str
    started_at: datetime
    seconds: float


@dataclass
class Backend:
    """A connected session. `query` is the start of the statement that runs, or ran last; it began at `query_start`."""

    process_id: int
    address: tuple[str, int]
    session: Connected
    terminate: Callable[[], None]
    backend_start: datetime = field(default_factory=_now)
    state: str = "idle"
    state_change: datetime = field(default_factory=_now)
    query: str = ""
    query_start: datetime | None = None
    slow: deque[SlowStatement] | None = None

    def begin(self, query: str) -> None:
        """Note that a statement starts."""
        self.query, self.query_start = _clipped(query), _now()
        self.state, self.state_change = "active", self.query_start

    @property
    def shown_query(self) -> str:
        """The statement's text for other sessions, with secrets removed."""
        return redact(self.query)

    def rest(self, in_transaction: bool, has_failed: bool = False) -> None:
        """Note that the session waits for its client."""
        state = f"idle in transaction{' (aborted)' if has_failed else ''}" if in_transaction else "idle"
        if state != self.state:
            was_active, self.state, self.state_change = self.state == "active", state, _now()
            if was_active:
                self._keep_if_slow(self.state_change)

    def _keep_if_slow(self, now: datetime) -> None:
        seconds = (now - self.query_start).total_seconds() if self.query_start is not None else 0.0
        if self.slow is not None and seconds >= SLOW_SECONDS:
            database, login, application = (
                self.session.database,
                self.session.login.name,
                self.session.variables.get(APPLICATION),
            )
            started = now if self.query_start is None else self.query_start
            self.slow.append(
                SlowStatement(self.process_id, database, login, application, self.shown_query, started, seconds)
            )


class Backends:
    """The connected sessions by process id, of a server that has `started` then. `users` returns all users by name."""

    def __init__(self, users: Callable[[], Mapping[str, User]]) -> None:
        self.started = datetime.now(UTC)
        self._users = users
        self._backends: dict[int, Backend] = {}
        self._slow: deque[SlowStatement] = deque(maxlen=SLOW_KEPT)
        self._lock = RankedLock()

    def add(self, backend: Backend) -> None:
        backend.slow = self._slow
        with self._lock:
            self._backends[backend.process_id] = backend

    def remove(self, process_id: int) -> None:
        with self._lock:
            self._backends.pop(process_id, None)

    def all(self) -> list[Backend]:
        """Return the sessions in the order of their process ids."""
        with self._lock:
            return [self._backends[process_id] for process_id in sorted(self._backends)]

    @property
    def slow(self) -> list[SlowStatement]:
        """The newest slow statements, of ended sessions too, the oldest first."""
        return list(self._slow)

    def signal(self, user: str, process_id: int, how: str) -> bool:
        """Cancel a session's statement, or end the session; `how` is "cancel" or "terminate".

        Returns False when no session has this process id. Raises Error 42501 unless the user is a superuser, or owns
        the session, or is a member of its role.
        """
        with self._lock:
            backend = self._backends.get(process_id)
        if backend is None:
            return False
        self._check(user, backend, how)
        if how == "terminate":
            backend.terminate()
        else:
            backend.session.running.cancel()
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


# PostgreSQL's words for the target of a signal and for what happens to it.
_SIGNALLED = {"cancel": ("query", "canceled"), "terminate": ("process", "terminated")}
