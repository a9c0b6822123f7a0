"""The client of Kafka for sources and sinks, over the optional package `confluent-kafka`.

Options are RisingWave's (src/connector/src/connector_common/common.rs): `properties.` and a name of librdkafka's
CONFIGURATION.md.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from types import ModuleType
from typing import Any

from sparkwave.catalog import errors
from sparkwave.catalog.errors import Error

# Short, because one thread serves all sources, and one all sinks.
TIMEOUT_S = 5.0
_PREFIX = "properties."
_NAMES = {"bootstrap.server": "bootstrap.servers"}
# The most KiB of messages that a consumer fetches ahead.
_MOST_FETCHED_KIB = 32 << 10


def consumer(options: Mapping[str, str], group: str, said: Callable[[Error], None]) -> Any:
    """Return a consumer without partitions, which commits nothing. `said` is called, during its calls, with its errors.

    Raises Error 0A000 without the package, 22023 for options that it does not take.
    """
    given = {
        "group.id": group,
        "enable.auto.commit": False,
        "enable.auto.offset.store": False,
        "auto.offset.reset": "error",  # never skip rows silently
        "queued.max.messages.kbytes": _MOST_FETCHED_KIB,
    }
    return _client("Consumer", options, given, said)


def producer(options: Mapping[str, str], said: Callable[[Error], None]) -> Any:
    """Return a producer that sends each message once, in order, while it lives. Raises as `consumer`."""
    return _client("Producer", options, {"enable.idempotence": True, "linger.ms": 5}, said)


def _client(kind: str, options: Mapping[str, str], own: Mapping[str, object], said: Callable[[Error], None]) -> Any:
    library = _library()
    passing = library.KafkaError._TRANSPORT  # of one broker; there is another error if none can be reached
    given = {n.removeprefix(_PREFIX): value for n, value in options.items() if n.startswith(_PREFIX)}
    settings = {_NAMES.get(name, name): value for name, value in given.items()} | dict(own)
    settings["error_cb"] = lambda error: None if error.code() == passing else said(_error(error))
    settings["log_level"] = 2  # errors are reported; attempts to connect are not worth a line
    try:
        return getattr(library, kind)(settings)
    except library.KafkaException as error:
        raise Error(f"Kafka: {error.args[0].str()}", errors.INVALID_PARAMETER_VALUE) from error


def _library() -> ModuleType:
    try:
        import confluent_kafka
    except ImportError as error:
        raise Error(
            "the connector kafka needs the package confluent-kafka, which is not installed here",
            errors.FEATURE_NOT_SUPPORTED,
            hint="pip install 'sparkwave[kafka]', and start the server again.",
        ) from error
    return confluent_kafka


@contextmanager
def translated() -> Iterator[None]:
    """While entered, errors of the client become Error 08006."""
    try:
        yield
    except _library().KafkaException as error:
        raise _error(error.args[0]) from error


def _error(error: Any) -> Error:
    return Error(f"Kafka: {error.str()}", errors.CONNECTION_FAILURE)


def partitions(client: Any, topic: str) -> list[int]:
    """Return the partitions of a topic. Raises Error 42704 for an unknown topic, 08006."""
    with translated():
        found = client.list_topics(topic, timeout=TIMEOUT_S).topics[topic]
    if found.error is not None and not found.partitions:
        raise Error(f'Kafka: topic "{topic}": {found.error.str()}', errors.UNDEFINED_OBJECT)
    return sorted(found.partitions)


def ends(client: Any, topic: str, since_ms: int | None) -> dict[int, int]:
    """Return by partition the offset of the first message since a time, or of the next message without a time.

    The time is in Unix milliseconds. Raises Error 08006.
    """
    library = _library()
    numbers = partitions(client, topic)
    with translated():
        found = {}
        if since_ms is not None:
            asked = [library.TopicPartition(topic, number, since_ms) for number in numbers]
            found = {p.partition: p.offset for p in client.offsets_for_times(asked, timeout=TIMEOUT_S) if p.offset >= 0}
        for number in numbers:
            if number not in found:
                place = library.TopicPartition(topic, number)
                found[number] = client.get_watermark_offsets(place, timeout=TIMEOUT_S)[1]
    return found


def assign(client: Any, topic: str, offsets: Mapping[int, int | None]) -> None:
    """Assign partitions to a consumer, with the offsets to read from; None is the first message."""
    library = _library()
    with translated():
        client.assign(
            [
                library.TopicPartition(topic, number, library.OFFSET_BEGINNING if offset is None else offset)
                for number, offset in offsets.items()
            ]
        )


def is_lost(error: Any) -> bool:
    """Return whether a message is the error that the offset to read from is lost."""
    known = _library().KafkaError
    return error.code() in (known._AUTO_OFFSET_RESET, known.OFFSET_OUT_OF_RANGE)


def problem(error: Any) -> Error:
    """Return the error in a message."""
    return _error(error)
