"""The options of CREATE MATERIALIZED VIEW … WITH (…), read and checked."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

from sparkwave.catalog import errors
from sparkwave.catalog.errors import Error
from sparkwave.catalog.names import meant_option
from sparkwave.planner.backfill.strategy import BackfillSettings
from sparkwave.planner.statements import Option

RATE_LIMIT, ORDER, STRATEGY = "backfill_rate_limit", "backfill_order", "backfill_strategy"
SERVERLESS, RESOURCE_GROUP = "cloud.serverless_backfill_enabled", "resource_group"
MAX_COST, BARRIER_TARGET = "backfill_max_cost", "barrier_latency_target_ms"
REFRESH = "refresh.interval.sec"
KNOWN = frozenset({RATE_LIMIT, ORDER, STRATEGY, SERVERLESS, RESOURCE_GROUP, MAX_COST, BARRIER_TARGET, REFRESH})
_U32, _I32 = range(2**32), range(2**31)


@dataclass(frozen=True)
class JobOptions:
    """The values of the options; None for an option that is not given."""

    strategy: Option | None = None
    order: Option | None = None
    rate_limit: int | None = None
    is_serverless: bool | None = None
    resource_group: Option | None = None
    max_cost: Option | None = None
    barrier_target_ms: int | None = None
    refresh: Option | None = None

    @property
    def refresh_s(self) -> int | None:
        """The seconds between two refreshes of a view."""
        return int(self.refresh.value) if self.refresh is not None else None

    def applied(self, settings: BackfillSettings) -> BackfillSettings:
        """Return the session's settings, overridden by the options."""
        return settings if self.rate_limit is None else replace(settings, rate_limit=self.rate_limit)


def read_options(options: tuple[Option, ...]) -> JobOptions:
    """Read and check options. Raises Error 22023 for an unknown option or a wrong value."""
    given = {option.name: option for option in options}
    unknown = sorted(set(given) - KNOWN)
    if unknown:
        listed = ", ".join(f'"{name}"' for name in unknown)
        raise Error(
            f"unexpected options in WITH clause: [{listed}]",
            errors.INVALID_PARAMETER_VALUE,
            hint=meant_option(unknown[0], KNOWN),
            position=given[unknown[0]].position,
        )
    if MAX_COST in given:
        amount(given[MAX_COST])
    if REFRESH in given:
        _check_interval(given[REFRESH])
    limit, serverless, group = given.get(RATE_LIMIT), given.get(SERVERLESS), given.get(RESOURCE_GROUP)
    is_serverless = serverless.value == "true" if serverless is not None else None  # only this word, as in RisingWave
    if group is not None and is_serverless:
        raise Error(
            "Please do not specify serverless backfilling and resource group together",
            errors.INVALID_PARAMETER_VALUE,
            position=group.position,
        )
    return JobOptions(
        given.get(STRATEGY),
        given.get(ORDER),
        rows_a_second(limit) if limit is not None else None,
        is_serverless,
        group,
        given.get(MAX_COST),
        _target_ms(given[BARRIER_TARGET]) if BARRIER_TARGET in given else None,
        given.get(REFRESH),
    )


def _check_interval(option: Option) -> None:
    """Raise Error 22023 for anything but a number of seconds from 1."""
    if not milliseconds(option.value):
        raise Error(
            f"invalid value for {option.name}: {option.value}",
            errors.INVALID_PARAMETER_VALUE,
            hint=f"It is a number of seconds from 1 to {_I32[-1]}.",
            position=option.value_position,
        )


def rows_a_second(option: Option, what: str = "the backfill") -> int:
    """Return a rate limit in rows a second, an unsigned 32-bit number. Raises Error 22023, where RisingWave panics."""
    if not option.value.isascii() or not option.value.isdigit() or int(option.value) not in _U32:
        raise Error(
            f"invalid value for {option.name}: {option.value}",
            errors.INVALID_PARAMETER_VALUE,
            hint=f"It is a number of rows a second from 0, which pauses {what}, to {_U32[-1]}.",
            position=option.value_position,
        )
    return int(option.value)


def _target_ms(option: Option) -> int:
    """Return a target for the latency of barriers in milliseconds. Raises Error 22023."""
    if (found := milliseconds(option.value)) is None:
        raise wrong_target(option.value, option.value_position)
    return found


def milliseconds(text: str) -> int | None:
    """Return a number of ms from its digits; None for any other text."""
    is_number = text.isascii() and text.isdigit() and len(text) <= 10
    return int(text) if is_number and int(text) in _I32 else None


def wrong_target(text: str, position: int | None) -> Error:
    """Return the error for a wrong `barrier_latency_target_ms`."""
    return Error(
        f"invalid value for {BARRIER_TARGET}: {text}",
        errors.INVALID_PARAMETER_VALUE,
        hint=f"It is a number of milliseconds from 0, for which the backfill gives way to no view, to {_I32[-1]}.",
        position=position,
    )


_AMOUNT = re.compile(r"\d{1,12}(\.\d{1,12})?")


def amount(option: Option) -> float:
    """Return an amount of money. Raises Error 22023 for anything but plain digits."""
    if not _AMOUNT.fullmatch(option.value):
        raise Error(
            f"invalid value for {option.name}: {option.value}",
            errors.INVALID_PARAMETER_VALUE,
            hint="It is an amount in the currency of serverless_backfill_price_per_core_hour, such as 0.50.",
            position=option.value_position,
        )
    return float(option.value)
