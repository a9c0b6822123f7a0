"""Sends a sink's rows as messages of a Kafka topic: JSON objects.

Values are as RisingWave writes them (src/connector/src/sink/encoder/json.rs, with the modes of
src/connector/src/sink/formatter/mod.rs): dates are days, where 0001-01-01 is day 1; timestamps and times are
milliseconds; timestamptz is text in UTC; numeric, json, jsonb and intervals are text; bytea is base64.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from sparkwave.catalog import errors
from sparkwave.catalog.errors import Error
from sparkwave.catalog.lake.ducklake import Cursor
from sparkwave.catalog.model import Column, Relation
from sparkwave.catalog.names import literal, quote
from sparkwave.catalog.relation_details import UPSERT
from sparkwave.catalog.types import Type
from sparkwave.executor.sources import kafka_client

_BATCH = 10_000
# The most seconds that the broker has to acknowledge the sent messages.
_DELIVERED_S = 30.0
_DAYS_TO_1970 = 719_163


@dataclass
class KafkaSink:
    """One topic. A missing acknowledgement of the broker is an error, and the whole epoch is sent again."""

    relation: Relation
    options: dict[str, str]
    _producer: Any = None
    _problem: Error | None = field(default=None)

    def check(self) -> None:
        """Raise Error 0A000 without the package, 42704 for an unknown topic, 08006 for an unreachable broker."""
        kafka_client.partitions(self._open(), self.options["topic"])

    def send(self, cursor: Cursor, changes: str, epoch: int) -> None:
        producer, topic = self._open(), self.options["topic"]
        self._problem = None
        cursor.execute(messages_sql(self.relation, changes))
        while rows := cursor.fetchmany(_BATCH):
            with kafka_client.translated():
                for key, value in rows:
                    self._produce(producer, topic, key, value)
            if self._problem is not None:
                raise self._problem
        left = producer.flush(_DELIVERED_S)
        if self._problem is not None:
            raise self._problem
        if left:
            producer.purge()
            message = f'Kafka: {left} messages to topic "{topic}" were not acknowledged within {_DELIVERED_S:.0f} s'
            raise Error(message, errors.CONNECTION_FAILURE)

    def _open(self) -> Any:
        if self._producer is None:
            self._producer = kafka_client.producer(self.options, lambda error: None)
        return self._producer

    def _produce(self, producer: Any, topic: str, key: str | None, value: str | None) -> None:
        while True:
            try:
                producer.produce(topic, value, key, on_delivery=self._delivered)
                producer.poll(0)
                return
            except BufferError as error:  # the queue is full: wait for the broker
                if not producer.poll(_DELIVERED_S):
                    message = f'Kafka: topic "{topic}" takes no messages'
                    raise Error(message, errors.CONNECTION_FAILURE) from error

    def _delivered(self, error: Any, message: Any) -> None:
        if error is not None and self._problem is None:
            self._problem = kafka_client.problem(error)


def messages_sql(relation: Relation, changes: str) -> str:
    """Return SQL of the key and the value of each message.

    An upsert sink has one message for each key, its last row, without a value when the row is removed.
    """
    sink = relation.sink
    value = _object(relation.visible)
    by_name = {column.name: column for column in relation.visible}
    key = _object([by_name[name] for name in sink.key]) if sink.key else "NULL::VARCHAR"
    if sink.type != UPSERT:
        return f"SELECT {key}, {value} FROM {changes} WHERE _weight > 0"
    names = ", ".join(map(quote, relation.in_lake(sink.key)))
    newest = f"QUALIFY row_number() OVER (PARTITION BY {names} ORDER BY _weight DESC) = 1"
    return f"SELECT {key}, if(_weight > 0, {value}, NULL) FROM (FROM {changes} {newest})"


def _object(columns: Iterable[Column]) -> str:
    pairs = ", ".join(f"{literal(column.name)}, {_json(column.type, quote(column.lake_name))}" for column in columns)
    return f"CAST(json_object({pairs}) AS VARCHAR)"


def _json(type_: Type, value: str) -> str:
    """Return SQL of a value in the form from which json_object makes its JSON."""
    if type_.dimensions or type_.is_struct or type_.is_map:
        return type_.over_parts(value, _json)
    match type_.name:
        case "date":
            return f"({value} - DATE '1970-01-01' + {_DAYS_TO_1970})"
        case "timestamp without time zone" | "time without time zone":
            return f"epoch_ms({value})"
        case "timestamp with time zone":
            return f"strftime({value} AT TIME ZONE 'UTC', '%Y-%m-%dT%H:%M:%S.%fZ')"
        case "jsonb":
            return f"CAST(json({value}) AS VARCHAR)"
        case "numeric" | "interval" | "uuid" | "json":
            return f"CAST({value} AS VARCHAR)"
        case "bytea":
            return f"to_base64({value})"
        case _:
            return value
