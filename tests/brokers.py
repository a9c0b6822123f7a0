"""A Kafka broker for tests: the one inside librdkafka, which speaks the protocol on a port of this process.

It is not Apache Kafka: it has no transactions to speak of, no users, and keeps 5 MiB a partition
(librdkafka, src/rdkafka_mock.c).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest

confluent_kafka = pytest.importorskip(
    "confluent_kafka", reason="the optional package confluent-kafka is not installed: pip install 'sparkwave[kafka]'"
)

# A message: key, value, and perhaps partition and headers.
Message = tuple[Any, ...]


class Broker:
    """It lives as long as this object."""

    def __init__(self) -> None:
        self.producer = confluent_kafka.Producer({"test.mock.num.brokers": 1, "log_level": 2})
        [broker] = self.producer.list_topics(timeout=20).brokers.values()
        self.address = f"{broker.host}:{broker.port}"

    def make(self, topic: str) -> None:
        """A topic without messages, of 4 partitions."""
        self.producer.list_topics(topic, timeout=20)

    def send(self, topic: str, messages: Iterable[Message]) -> None:
        """Have messages there: (key, value[, partition[, headers]])."""
        self.make(topic)
        for key, value, *rest in messages:
            placed = {"partition": rest[0]} if rest else {}
            headers = {"headers": rest[1]} if len(rest) > 1 else {}
            while True:
                try:
                    self.producer.produce(topic, value, key, **placed, **headers)
                    break
                except BufferError:
                    self.producer.poll(1)
        assert self.producer.flush(30) == 0

    def messages(self, topic: str) -> list[tuple[bytes | None, bytes | None]]:
        """Keys and values of all messages, by partition in their order."""
        consumer = confluent_kafka.Consumer({"bootstrap.servers": self.address, "group.id": "tests"})
        try:
            numbers = consumer.list_topics(topic, timeout=20).topics[topic].partitions
            places = [confluent_kafka.TopicPartition(topic, number, 0) for number in numbers]
            expected = sum(consumer.get_watermark_offsets(place, timeout=20)[1] for place in places)
            consumer.assign(places)
            found: list[Any] = []
            while len(found) < expected:
                found += consumer.consume(expected - len(found), timeout=1)
        finally:
            consumer.close()
        found.sort(key=lambda message: (message.partition(), message.offset()))
        return [(message.key(), message.value()) for message in found]
