"""ALTER … CONNECTOR WITH: which options of a connector may change while it runs, and the definition with them."""

from __future__ import annotations

import re
from collections.abc import Iterable

from sparkwave.catalog import errors
from sparkwave.catalog.errors import Error
from sparkwave.catalog.names import literal
from sparkwave.catalog.redaction import redact
from sparkwave.planner.definitions.connectors import KAFKA_OPTIONS, KAFKA_SINK_OPTIONS, KAFKA_SOURCE_OPTIONS
from sparkwave.planner.parse.tokens import TokenReader
from sparkwave.planner.parse.with_options import parse_options
from sparkwave.planner.statements import Option

# The options that may change, by what has the connector: those of the client of Kafka.
_ALTERABLE = {
    "sink": frozenset(name for name in (*KAFKA_OPTIONS, *KAFKA_SINK_OPTIONS) if name.startswith("properties.")),
    "source": frozenset(name for name in (*KAFKA_OPTIONS, *KAFKA_SOURCE_OPTIONS) if name.startswith("properties.")),
}
_BARE = re.compile(r"\w+(\.\w+)*")


def check_alterable(what: str, connector: str, options: Iterable[Option]) -> None:
    """Raise Error 22023, in RisingWave's words, for an option that a running sink or source cannot change."""
    allowed = _ALTERABLE[what] if connector == "kafka" else frozenset()
    wrong = next((option for option in options if option.name not in allowed), None)
    if wrong is not None:
        message = f"Field '{wrong.name}' is not allowed to be altered on the fly for {what}: {connector}"
        raise Error(message, errors.INVALID_PARAMETER_VALUE, position=wrong.position)


def with_options(definition: str, options: Iterable[Option]) -> str:
    """Return a CREATE statement with these options in its WITH clause, in place of those of their names."""
    reader = TokenReader(definition)
    reader.skip_to("WITH", "(")
    reader.expect("WITH")
    start = reader.offset
    merged = {option.name: option for option in parse_options(reader)}
    end = reader.offset
    merged.update((option.name, option) for option in options)
    clause = redact(f"({', '.join(map(_written, merged.values()))})")
    return f"{definition[:start].rstrip()} {clause} {definition[end:].lstrip()}".rstrip()


def _written(option: Option) -> str:
    if option.connection is not None:
        value = option.connection.sql
    else:
        value = f"SECRET {option.secret.sql}" if option.secret is not None else literal(option.value)
    name = option.name if _BARE.fullmatch(option.name) else literal(option.name)
    return f"{name} = {value}"
