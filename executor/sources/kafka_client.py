"""What talks to Kafka: the package `confluent-kafka`, which need not be there, behind what sources and sinks want.

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

# Nobody waits long for a broker that does not answer: there is one thread for all sources, and one for all sinks.
TIMEOUT_S = 5.0
_PREFIX = "properties."
_NAMES = {"bootstrap.server": "bootstrap.servers"}
# Messages that a consumer has fetched ahead, whether or not anybody reads them.
_MOST_FETCHED_KIB = 32 << 10


def consumer(options: Mapping[str, str], group: str, said: Callable[[Error], None]) -> Any:
    """A consumer without partitions, which commits nothing. `said` is told, by its calls, of what is wrong meanwhile.

    Raises Error 0A000 without the package, 22023 for options that it does not take.
    """
    given = {
        "group.id": group,
        "enable.auto.commit": False,
        "enable.auto.offset.store": False,
        "auto.offset.reset": "error",  # rather than rows that are left out
        "queued.max.messages.kbytes": _MOST_FETCHED_KIB,
    }
    return _client("Consumer", options, given, said)


def producer(options: Mapping[str, str], said: Callable[[Error], None]) -> Any:
    """A producer that sends each message once, in order, while it lives. Raises as `consumer`."""
    return _client("Producer", options, {"enable.idempotence": True, "linger.ms": 5}, said)


def _client(kind: str, options: Mapping[str, str], own: Mapping[str, object], said: Callable[[Error], None]) -> Any:
    library = _library()
    passing = library.KafkaError._TRANSPORT  # of one broker; that none can be reached has an error of its own
    given = {n.removeprefix(_PREFIX): value for n, value in options.items() if n.startswith(_PREFIX)}
    settings = {_NAMES.get(name, name): value for name, value in given.items()} | dict(own)
    settings["error_cb"] = lambda error: None if error.code() == passing else said(_error(error))
    settings["log_level"] = 2  # what is wrong is said; each attempt to connect is not worth a line
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
    """Raises Error 08006 for what the client raises."""
    try:
        yield
    except _library().KafkaException as error:
        raise _error(error.args[0]) from error


def _error(error: Any) -> Error:
    return Error(f"Kafka: {error.str()}", errors.CONNECTION_FAILURE)


def partitions(client: Any, topic: str) -> list[int]:
    """The partitions of a topic. Raises Error 42704 for one that there is not, 08006."""
    with translated():
        found = client.list_topics(topic, timeout=TIMEOUT_S).topics[topic]
    if found.error is not None and not found.partitions:
        raise Error(f'Kafka: topic "{topic}": {found.error.str()}', errors.UNDEFINED_OBJECT)
    return sorted(found.partitions)


def ends(client: Any, topic: str, since_ms: int | None) -> dict[int, int]:
    """By partition, the offset of the first message since a time, or without one of the next to come. Raises 08006."""
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
    """Let a consumer read these partitions, from these offsets on; None is the first message there is."""
    library = _library()
    with translated():
        client.assign(
            [
                library.TopicPartition(topic, number, library.OFFSET_BEGINNING if offset is None else offset)
                for number, offset in offsets.items()
            ]
        )


def is_lost(error: Any) -> bool:
    """Whether a message's error is that the offset to read from is not there any more."""
    known = _library().KafkaError
    return error.code() in (known._AUTO_OFFSET_RESET, known.OFFSET_OUT_OF_RANGE)


def problem(error: Any) -> Error:
    """The error that a message stands for."""
    return _error(error)
