"""Roles in statements that name the session's users by keyword."""

from __future__ import annotations

from sparkwave.planner.statements import CURRENT_USER, SESSION_USER
from sparkwave.server.session.session import Session

Role = tuple[str, int]


def meant(session: Session, role: Role) -> Role:
    """Return the name of a role with its position; CURRENT_USER and SESSION_USER become the names of users."""
    name, position = role
    if name == CURRENT_USER:
        return session.user.name, position
    return (session.session_user.name, position) if name == SESSION_USER else role


def all_meant(session: Session, roles: tuple[Role, ...]) -> tuple[Role, ...]:
    """Return the names of several roles."""
    return tuple(meant(session, role) for role in roles)
