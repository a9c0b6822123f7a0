"""The user that a session acts as: the one who connected, SET SESSION AUTHORIZATION and SET ROLE, as in PostgreSQL.

Both settings are session variables, so that SHOW, SET LOCAL and ROLLBACK work on them as on other variables.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from sparkwave.catalog import errors
from sparkwave.catalog.errors import Error
from sparkwave.catalog.users import User
from sparkwave.planner.bind.privileges import permission_denied

AUTHORIZATION, ROLE = "session_authorization", "role"
NONE = "none"

Users = Mapping[str, User]
Variables = Mapping[str, str]


class Identity:
    """The users of a session: the one who connected, and those of SET SESSION AUTHORIZATION and SET ROLE.

    A session keeps the ids of its users: a renamed user stays the session's user, and a later user with the old name
    does not become the session's user.
    """

    def __init__(self, users: Callable[[], Users], name: str) -> None:
        self._users = users
        self._login = users()[name].id
        self._ids: dict[str, int] = {}

    @property
    def login(self) -> User:
        """The user who has connected. This and the other methods raise Error 28000 when the user has been dropped."""
        return self._user(self._login)

    def session_user(self, variables: Variables) -> User:
        """Return the user of SET SESSION AUTHORIZATION, by default the one who has connected."""
        name = variables.get(AUTHORIZATION)
        return self.login if name is None else self._user(self._ids[name])

    def current_user(self, variables: Variables) -> User:
        """Return the user whose privileges count."""
        name = variables.get(ROLE)
        return self.session_user(variables) if name is None else self._user(self._ids[name])

    def check(self, variable: str, name: str | None, variables: Variables) -> str | None:
        """Return the value to store for `session_authorization` or `role`, None for the default.

        Raises Error 22023 for an unknown user, 42501 for a user that the session may not become.
        """
        if name is None or (variable == ROLE and name == NONE):
            return None
        user = self._users().get(name)
        if user is None:
            raise Error(f'role "{name}" does not exist', errors.INVALID_PARAMETER_VALUE)
        if variable == ROLE:
            mine = self.session_user(variables)
            if not mine.is_super and not mine.acts_as(name):
                raise permission_denied(f'permission denied to set role "{name}"')
        elif user.id != self._login and not self.login.is_super:
            raise permission_denied(f'permission denied to set session authorization "{name}"')
        self._ids[name] = user.id
        return name

    def _user(self, id_: int) -> User:
        user = next((user for user in self._users().values() if user.id == id_), None)
        if user is None:
            raise Error("the user of this session has been dropped", errors.INVALID_AUTHORIZATION)
        return user
