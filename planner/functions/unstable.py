"""Finds calls whose value does not depend on stored rows alone, but on the call, the time or the session."""

from __future__ import annotations

from sqlglot import exp

_RANDOM = (exp.Rand, exp.Uuid)
_OF_SESSION = (
    exp.CurrentTime, exp.Localtime, exp.CurrentUser, exp.SessionUser, exp.CurrentVersion, exp.CurrentSchema,
    exp.CurrentDatabase, exp.CurrentCatalog, exp.CurrentSchemas,
)  # fmt: skip
_TIME = (exp.CurrentTimestamp, exp.CurrentDate, exp.Localtimestamp)
_NAMED = frozenset(
    [
        "clock_timestamp",
        "statement_timestamp",
        "transaction_timestamp",
        "timeofday",
        "proctime",
        "current_setting",
        "pg_backend_pid",
        "inet_client_addr",
        "nextval",
        "currval",
        "lastval",
        "setval",
    ]
)


def random_call(expression: exp.Expr) -> exp.Expr | None:
    """Return the first call with another value each time, if there is one."""
    return next((part for part in expression.walk() if isinstance(part, _RANDOM)), None)


def unstable_call(expression: exp.Expr) -> exp.Expr | None:
    """Return the first call whose value changes while the tables do not, except `now()`, which views may use."""
    return next((part for part in expression.walk() if _is_unstable(part)), None)


def mutable_call(expression: exp.Expr) -> exp.Expr | None:
    """As `unstable_call`, including calls of the time."""
    return next((p for p in expression.walk() if _is_unstable(p) or isinstance(p, _TIME) or _is_named(p)), None)


def _is_unstable(part: exp.Expr) -> bool:
    is_age = isinstance(part, exp.Anonymous) and part.name.lower() == "age" and len(part.expressions) == 1
    return is_age or isinstance(part, (*_RANDOM, *_OF_SESSION))


def _is_named(part: exp.Expr) -> bool:
    return isinstance(part, exp.Anonymous) and part.name.lower() in _NAMED
