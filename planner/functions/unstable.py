"""Finds calls whose value does not depend on stored rows alone, but on the call, the time or the session."""

from __future__ import annotations

from sqlglot import exp

from sparkwave.catalog import errors
from sparkwave.catalog.errors import Error
from sparkwave.planner.parse.trees import position_of

_RANDOM = (exp.Rand, exp.Uuid)
_OF_SESSION = (
    exp.CurrentTime, exp.Localtime, exp.CurrentUser, exp.SessionUser, exp.CurrentVersion, exp.CurrentSchema,
    exp.CurrentDatabase, exp.CurrentCatalog, exp.CurrentSchemas,
)  # fmt: skip
_TIME = (exp.CurrentTimestamp, exp.CurrentDate, exp.Localtimestamp)
_NAMED = frozenset(
    [
        "pgp_sym_encrypt",
        "pgp_sym_encrypt_bytea",
        "clock_timestamp",
        "statement_timestamp",
        "transaction_timestamp",
        "timeofday",
        "proctime",
        "current_setting",
        "pg_backend_pid",
        "pg_conf_load_time",
        "pg_postmaster_start_time",
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
    return next((part for part in expression.walk() if is_unstable(part)), None)


def check_stable(expression: exp.Expr) -> None:
    """Raise Error 0A000 for a function whose value changes while the tables do not."""
    part = unstable_call(expression)
    if part is not None:
        raise unstable(part)


def unstable(part: exp.Expr) -> Error:
    """Return the error for a call or a word whose value changes while the tables do not."""
    return Error(
        f"{part.sql(dialect='postgres', normalize_functions='lower').replace(chr(34), '')} is not supported in a "
        "materialized view",
        errors.FEATURE_NOT_SUPPORTED,
        hint="Its value is not a function of the tables. Of time there is now(), compared with a column, and "
        "proctime() in a generated column of a table or source.",
        position=position_of(part),
    )


def mutable_call(expression: exp.Expr) -> exp.Expr | None:
    """Return what `unstable_call` does, or a call of the time but proctime(): the time of a row's change is kept."""
    return next((p for p in expression.walk() if isinstance(p, _TIME) or (is_unstable(p) and not is_proctime(p))), None)


def is_unstable(part: exp.Expr) -> bool:
    """Return whether a call's value changes while the tables do not."""
    name = part.name.lower() if isinstance(part, exp.Anonymous) else ""
    return (
        name in _NAMED or (name == "age" and len(part.expressions) == 1) or isinstance(part, (*_RANDOM, *_OF_SESSION))
    )


def is_proctime(part: exp.Expr) -> bool:
    return isinstance(part, exp.Anonymous) and part.name.lower() == "proctime"
