"""Logins of browsers: users log in with the wire's passwords (`server.wire.authentication`) and get a cookie.

As on the wire, a client on this machine needs no password for a user without one; if no user has a password, it is
root. A login ends when its password changes or expires, or its user is dropped. Logins are kept in memory only.
"""

from __future__ import annotations

import secrets
import time
from collections import OrderedDict, deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from sparkwave.catalog.locks import RankedLock
from sparkwave.catalog.users import ROOT, User
from sparkwave.server.wire.authentication import check_password, has_expired, has_passwords

IDLE_SECONDS = 12 * 3600.0
MOST_LOGINS = 256
# The most guesses in a minute, from one address and for one user.
MOST_GUESSES = {"address": 6, "user": 20}
GUESS_SECONDS = 60.0
MOST_REMEMBERED = 4096


class TooManyGuesses(Exception):
    """No password is checked for so many seconds."""

    def __init__(self, seconds: float) -> None:
        super().__init__(f"too many attempts to log in; try again in {seconds:.0f} s")
        self.seconds = seconds


@dataclass
class Login:
    """A logged-in browser. Its changes have to carry `token`, besides the cookie."""

    user_id: int
    name: str
    verifier: str | None
    token: str = field(default_factory=lambda: secrets.token_urlsafe(32))
    used_at: float = field(default_factory=time.monotonic)


class Throttle:
    """Counts guesses of passwords by client address and by user."""

    def __init__(self) -> None:
        self._guesses: OrderedDict[tuple[str, str], deque[float]] = OrderedDict()
        self._lock = RankedLock()

    def count(self, address: str, user: str) -> None:
        """Count a guess. Raises TooManyGuesses, and does not count, when the limit is reached."""
        now = time.monotonic()
        keys = (("address", address), ("user", user))
        with self._lock:
            found = [self._recent(key, now) for key in keys]
            waits = [
                guesses[0] + GUESS_SECONDS - now
                for (kind, _), guesses in zip(keys, found, strict=True)
                if len(guesses) >= MOST_GUESSES[kind]
            ]
            if waits:
                raise TooManyGuesses(max(waits) + 1)
            for guesses in found:
                guesses.append(now)

    def forgive(self, address: str, user: str) -> None:
        """Take back the last guess, which was right."""
        with self._lock:
            for key in (("address", address), ("user", user)):
                if self._guesses.get(key):
                    self._guesses[key].pop()

    def _recent(self, key: tuple[str, str], now: float) -> deque[float]:
        guesses = self._guesses.setdefault(key, deque())
        self._guesses.move_to_end(key)
        while guesses and guesses[0] < now - GUESS_SECONDS:
            guesses.popleft()
        while len(self._guesses) > MOST_REMEMBERED:
            self._guesses.popitem(last=False)
        return guesses


class Logins:
    """The logged-in browsers by their keys. `users` returns all users by name."""

    def __init__(self, users: Callable[[], Mapping[str, User]]) -> None:
        self._users = users
        self._logins: OrderedDict[str, Login] = OrderedDict()
        self._lock = RankedLock()
        self._throttle = Throttle()

    @property
    def is_open(self) -> bool:
        """Whether no user has a password."""
        return not has_passwords(self._users())

    def enter(self, name: str, password: str, address: str, is_local: bool) -> str:
        """Return a key for the right password. Raises Error 28P01 or 28000, TooManyGuesses."""
        self._throttle.count(address, name)
        user = check_password(name, password, self._users(), is_local)
        self._throttle.forgive(address, name)
        return self._add(user)

    def enter_open(self) -> str:
        """Return a key for root, for a client on this machine when no user has a password. Raises Error 28000."""
        return self._add(check_password(ROOT, "", self._users(), True))

    def _add(self, user: User) -> str:
        key = secrets.token_urlsafe(32)
        with self._lock:
            self._logins[key] = Login(user.id, user.name, user.verifier)
            while len(self._logins) > MOST_LOGINS:
                self._logins.popitem(last=False)
        return key

    def find(self, key: str | None, is_local: bool) -> Login | None:
        """Return the login of a key, None for an invalid one.

        A login without a password is valid on this machine only.
        """
        with self._lock:
            login = self._logins.get(key or "")
            if login is None or key is None:
                return None
            if not self._counts(login):
                del self._logins[key]
                return None
            if login.verifier is None and not is_local:
                return None
            login.used_at = time.monotonic()
            self._logins.move_to_end(key)
            return login

    def _counts(self, login: Login) -> bool:
        user = self._users().get(login.name)
        return (
            user is not None
            and user.id == login.user_id
            and user.verifier == login.verifier
            and user.can_login
            and not has_expired(user)
            and time.monotonic() - login.used_at < IDLE_SECONDS
        )

    def leave(self, key: str | None) -> None:
        """End a key's login."""
        with self._lock:
            self._logins.pop(key or "", None)
