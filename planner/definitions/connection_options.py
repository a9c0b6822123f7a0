"""The options that a connection may have, and a source's or sink's options together with those of its connection.

RisingWave: src/connector/src/connector_common/connection.rs and src/frontend/src/utils/with_options.rs.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

from sparkwave.catalog import errors
from sparkwave.catalog.errors import Error
from sparkwave.catalog.model import Connection
from sparkwave.planner.definitions.connectors import KAFKA_CONNECTION
from sparkwave.planner.parse.with_options import CONNECTION
from sparkwave.planner.statements import CreateConnection, Name, Option

# The options of each type of connection, and the required ones.
_OPTIONS: Mapping[str, tuple[str, ...]] = {"kafka": KAFKA_CONNECTION}
_REQUIRED: Mapping[str, tuple[str, ...]] = {"kafka": ("properties.bootstrap.server",)}
_OF_RISINGWAVE = ("iceberg", "schema_registry", "elasticsearch", "privatelink")


def check_connection(statement: CreateConnection) -> None:
    """Raise Error 0A000 for a type without a connector, 22023 for an unknown type, or an option unknown or missing."""
    if statement.kind not in _OPTIONS:
        code = errors.FEATURE_NOT_SUPPORTED if statement.kind in _OF_RISINGWAVE else errors.INVALID_PARAMETER_VALUE
        message, hint = f'Connection type "{statement.kind}" is not supported', f"Supported is {', '.join(_OPTIONS)}."
        raise Error(message, code, hint=hint, position=statement.position)
    check_options(statement.kind, statement.options)
    named = {option.name for option in statement.options}
    missing = next((name for name in _REQUIRED[statement.kind] if name not in named), None)
    if missing is not None:
        raise _invalid(f"missing field `{missing}`", statement.position)


def check_options(kind: str, options: Iterable[Option]) -> None:
    """Raise Error 22023 for an option that a type of connection does not have."""
    for option in options:
        if option.name not in _OPTIONS[kind]:
            hint = f"A connection of type {kind} has {', '.join(_OPTIONS[kind])}."
            raise Error(
                f"unknown field `{option.name}`", errors.INVALID_PARAMETER_VALUE, hint=hint, position=option.position
            )


def connection_option(options: Iterable[Option]) -> Option | None:
    """Return the option that names a connection, if there is one."""
    return next((option for option in options if option.name == CONNECTION), None)


def merged(
    options: tuple[Option, ...], connection: Connection, values: Mapping[str, str], secrets: Mapping[str, Name]
) -> tuple[Option, ...]:
    """Return the options of a source or sink, with those of its connection in the place of its name.

    `values` and `secrets` are the connection's options, and the names of its secrets. Raises Error 22023 for a
    connector of another kind, or an option that the connection has too.
    """
    named = connection_option(options)
    assert named is not None
    own = tuple(option for option in options if option is not named)
    connector = next((option.value for option in own if option.name == "connector"), connection.kind)
    if connector != connection.kind:
        kind = connection.kind.title()
        message = f"connector {connector} and connection type {kind} are not compatible"
        raise _invalid(message, named.value_position)
    _refuse_repeated(own, {*values, *secrets})
    place = (named.position, named.value_position)
    found = [Option(name, value, *place, connection=named.connection) for name, value in values.items()]
    found += [Option(name, "", *place, secret=s, connection=named.connection) for name, s in secrets.items()]
    return (*own, *found)


def _refuse_repeated(own: Iterable[Option], names: Collection[str]) -> None:
    repeated = next((option for option in own if option.name in names), None)
    if repeated is not None:
        message = f"Duplicated key in both WITH clause and Connection catalog: {repeated.name}"
        raise _invalid(message, repeated.position)


def _invalid(message: str, position: int) -> Error:
    return Error(message, errors.INVALID_PARAMETER_VALUE, position=position)
