"""The variables of one session: SET, SET LOCAL, RESET and SHOW, over the defaults of the catalog."""

from __future__ import annotations

from collections.abc import Mapping

from sparkwave.catalog import errors
from sparkwave.catalog.errors import Error
from sparkwave.server.context import Context
from sparkwave.server.session.effective_user import AUTHORIZATION, ROLE, Identity
from sparkwave.server.session.session_transaction import SessionTransaction
from sparkwave.server.session.variables import SYSTEM, find, is_custom, normalise, resolve_name

# Variables that, outside a block or unless the block sets them, have the value of their `default_` variable.
_OF_TRANSACTIONS = ("transaction_isolation", "transaction_deferrable")
# Variables whose values change without a SET.
_VARYING = ("transaction_read_only", AUTHORIZATION, *_OF_TRANSACTIONS)
# The parameters that ParameterStatus reports, by PostgreSQL's names, with their variables.
_REPORTED = {
    "server_version": "server_version",
    "client_encoding": "client_encoding",
    "TimeZone": "timezone",
    "application_name": "application_name",
    "DateStyle": "datestyle",
    "IntervalStyle": "intervalstyle",
    "bytea_output": "bytea_output",
    "extra_float_digits": "extra_float_digits",
}
_FIXED = {"standard_conforming_strings": "on", "integer_datetimes": "on", "server_encoding": "UTF8"}


class SessionVariables:
    """The variables of one session.

    `assigned` has the values that have been set, by name; each SET replaces it by another mapping.
    """

    def __init__(self, context: Context, identity: Identity, transaction: SessionTransaction) -> None:
        self._context = context
        self._identity = identity
        self._transaction = transaction
        self.assigned: Mapping[str, str] = {}
        self._before_block: dict[str, str | None] = {}
        self._reported: dict[str, str] | None = None
        self._reported_defaults: dict[str, str] = {}
        # The values that `get` has found with these defaults, as long as no variable is set. Other threads call `get`
        # too: a SET replaces the pair, so that a value found before the SET is not kept.
        self._shown: tuple[dict[str, str], dict[str, str]] = ({}, {})

    def get(self, name: str) -> str:
        """Return the value of a session variable or system parameter, as SHOW prints it."""
        defaults, shown = self._shown
        if defaults is not self._context.store.catalog.parameters:
            defaults, shown = self._shown = self._context.store.catalog.parameters, {}
        value = shown.get(name)
        if value is None:
            value = self._value(name)
            if resolve_name(name) not in _VARYING:
                shown[name] = value
        return value

    def _value(self, name: str) -> str:
        resolved = resolve_name(name)
        if resolved in SYSTEM:
            return self._context.parameter(resolved)
        if resolved == "server_version":
            return self._context.parameter("postgres_version")
        if resolved == "server_version_num":
            major, minor = self._context.parameter("postgres_version").split(".")[:2]
            return str(10_000 * int(major) + int(minor))
        if resolved == "transaction_read_only":
            return "on" if self._context.lake.read_only or self.is_read_only else "off"
        if resolved in _OF_TRANSACTIONS and resolved not in self.assigned:
            return self.get(f"default_{resolved}")
        if resolved == "in_hot_standby":
            return "on" if self._context.lake.read_only else "off"
        if resolved == AUTHORIZATION:
            return self.assigned.get(AUTHORIZATION) or self._identity.login.name
        if is_custom(resolved) and resolved not in self.assigned:
            raise Error(f'unrecognized configuration parameter "{name}"', errors.UNDEFINED_OBJECT)
        variable = find(name, system=False)
        stored = self._context.store.catalog.parameters.get(resolved, variable.default)
        return self.assigned.get(resolved, stored)

    def flag(self, name: str) -> bool:
        """Return whether a variable is true."""
        return self.get(name) == "true"

    @property
    def date_order(self) -> str:
        """The order of day, month and year in dates, of DateStyle: MDY, DMY or YMD."""
        return self.get("datestyle").partition(", ")[2]

    @property
    def is_read_only(self) -> bool:
        """Whether statements may not write now, by the block's READ ONLY or by default_transaction_read_only."""
        open_ = self._transaction
        if open_.may_write is not None:
            return not open_.may_write
        return (open_.pinned is not None and open_.block is None) or self.get("default_transaction_read_only") == "on"

    def set(self, name: str, value: str | None) -> None:
        """Set a variable (SET); None resets it to the default."""
        variable = find(name, system=False)
        if variable.name == "atomic_transactions" and self._transaction.is_open:
            message = f"{variable.name} cannot be set in a transaction block"
            raise Error(message, errors.ACTIVE_TRANSACTION, hint="Set it by itself, before BEGIN.")
        normal = None if value is None else normalise(variable, value, self.get(name) if variable.is_partial else "")
        if variable.name in (AUTHORIZATION, ROLE):
            normal = self._identity.check(variable.name, normal, self.assigned)
        replaced = (AUTHORIZATION, ROLE) if variable.name == AUTHORIZATION else (variable.name,)
        kept = {name: value for name, value in self.assigned.items() if name not in replaced}
        self.restore(kept if normal is None else {**kept, variable.name: normal})

    def set_local(self, name: str, value: str | None) -> None:
        """Set a variable until the block ends (SET LOCAL); `end_block` restores it."""
        resolved = find(name, system=False).name
        self._before_block.setdefault(resolved, self.assigned.get(resolved))
        self.set(name, value)

    def end_block(self) -> None:
        """Restore the variables that were set for the block only, after COMMIT or ROLLBACK."""
        for name, value in self._before_block.items():
            self.set(name, value)
        self._before_block.clear()

    def restore(self, assigned: Mapping[str, str]) -> None:
        """Set exactly these values, which were `assigned` before."""
        self.assigned = assigned
        self._reported = None
        self._shown = (self._shown[0], {})

    def reset_all(self, and_user: bool = False) -> None:
        """Reset all variables but the user's; `and_user` resets the user too."""
        kept = () if and_user else (AUTHORIZATION, ROLE)
        self.restore({name: value for name, value in self.assigned.items() if name in kept})

    def reported(self) -> dict[str, str]:
        """Return the parameters for ParameterStatus and UNREPORTED ones; the same object until a parameter changes."""
        defaults = self._context.store.catalog.parameters
        if self._reported is None or self._reported_defaults is not defaults:
            self._reported = {name: self.get(variable) for name, variable in _REPORTED.items()} | _FIXED
            self._reported_defaults = defaults
        return self._reported
