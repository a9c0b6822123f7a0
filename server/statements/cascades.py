"""The variable `allow_drop_cascade`: whether DROP … CASCADE may remove anything (RisingWave: drop_cascade_guard.rs)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from sparkwave.catalog import errors
from sparkwave.catalog.errors import Error
from sparkwave.server.session.session import Session

_VARIABLE = "allow_drop_cascade"
_HINT = (
    f"SET {_VARIABLE} = true to enable DROP ... CASCADE in the current session, or ALTER SYSTEM SET {_VARIABLE} = true "
    "to change the default."
)
_PLURALS = {"index": "indexes"}


def check_cascade(session: Session, command: str, kinds: Iterable[str]) -> None:
    """Raise Error 0A000 if the session refuses CASCADE; `kinds` has the kind of each object that would be removed."""
    if session.variables.flag(_VARIABLE):
        return
    counts = Counter(kinds)
    listed = ", ".join(f"{count} {_counted(kind, count)}" for kind, count in counts.items())
    message = f"{command} CASCADE is disabled. It would remove {counts.total()} object(s): {listed}."
    raise Error(message, errors.FEATURE_NOT_SUPPORTED, hint=_HINT)


def _counted(kind: str, count: int) -> str:
    return kind if count == 1 else _PLURALS.get(kind, f"{kind}s")
