"""Who a session acts as: who has connected, SET SESSION AUTHORIZATION and SET ROLE, as in PostgreSQL.

The two are session variables, so that SHOW, SET LOCAL and ROLLBACK do with them what they do with others.
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
    """The users that a session has been and is, as the catalog has them now.

    They are kept by id: one that is renamed stays who it is, and who gets its name later is somebody else.
    """

    def __init__(self, users: Callable[[], Users], name: str) -> None:
        self._users = users
        self._login = users()[name].id
        self._ids: dict[str, int] = {}

    @property
    def login(self) -> User:
        """Who has connected. Raises Error 28000 when the user has been dropped, as the others do."""
        return self._user(self._login)

    def session_user(self, variables: Variables) -> User:
        """Who has connected, or whom SET SESSION AUTHORIZATION has named."""
        name = variables.get(AUTHORIZATION)
        return self.login if name is None else self._user(self._ids[name])

    def current_user(self, variables: Variables) -> User:
        """Whose privileges count."""
        name = variables.get(ROLE)
        return self.session_user(variables) if name is None else self._user(self._ids[name])

    def check(self, variable: str, name: str | None, variables: Variables) -> str | None:
        """What to store for one of the two variables, None for nothing.

        Raises Error 22023 for an unknown user, 42501 for one that the session may not be.
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
