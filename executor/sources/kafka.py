"""The connector `kafka`: the messages of a topic.

A split is a partition, its position the offset of the next message. Nothing is committed to the broker: the lake stores
a partition's position with its rows, and the consumer is assigned the offset to read from. The client limits the
messages fetched ahead, and `BATCH_BYTES` limits a batch.
"""

from __future__ import annotations

import json
import time
from collections.abc import Collection, Iterable, Mapping
from typing import Any

import numpy as np
import pyarrow as pa

from sparkwave.catalog import errors
from sparkwave.catalog.errors import Error
from sparkwave.catalog.lake.ducklake import Cursor
from sparkwave.catalog.model import Column
from sparkwave.catalog.names import quote
from sparkwave.catalog.source_model import Source, Split
from sparkwave.executor.sources import kafka_client
from sparkwave.executor.sources.connector import READ, Batch, SplitError
from sparkwave.executor.sources.file_formats import (
    LINE,
    OFFSET,
    Value,
    decode_messages,
    find_fault,
    message_values,
    selected,
)

# A batch ends with the message that makes it this large.
BATCH_BYTES = 1 << 26
_CHUNK = 2000  # the most messages asked for at a time
_WAIT_S = 0.05  # seconds to wait for messages on their way
# Seconds between two searches for new partitions.
_LIST_S = 30.0
# An option of Sparkwave alone, with the offsets that were settled when the source was made.
_START = "kafka.start.offsets"

_KEY, _PARTITION, _TIMESTAMP, _HEADERS, _IS_THERE, _ORDER = (
    "?key", "?partition", "?timestamp", "?headers", "?is_there", "?order",
)  # fmt: skip
_INCLUDED = {
    "key": Value(quote(_KEY)),
    "partition": Value(f"CAST({quote(_PARTITION)} AS VARCHAR)"),
    "offset": Value(f"CAST({quote(OFFSET)} AS VARCHAR)"),
    "timestamp": Value(f"CAST({quote(_TIMESTAMP)} AS TIMESTAMPTZ)"),
    "header": Value(quote(_HEADERS)),
    "payload": Value(f"json({quote(LINE)})"),
}
_HEADER_TYPE = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))
_NOT_A_TIME = 0  # confluent_kafka.TIMESTAMP_NOT_AVAILABLE


class Kafka:
    """One topic."""

    rows_per_second: int | None = None

    def __init__(self, source: Source, columns: tuple[Column, ...]) -> None:
        self._source = source
        self._topic = source.options["topic"]
        self._start: dict[int, int] = {int(p): o for p, o in json.loads(source.options.get(_START, "{}")).items()}
        included = source.included
        self._includes = set(included.values())
        self._read = tuple(column for column in columns if column.name not in included)
        self._values = message_values(source.encode, self._read)
        values = dict(zip((column.name for column in self._read), self._values, strict=True))
        rows = READ
        if source.format == "UPSERT":
            number = f"row_number() OVER (PARTITION BY {quote(_KEY)} ORDER BY {quote(_ORDER)} DESC)"
            rows = f"(FROM {READ} QUALIFY {number} = 1)"
        self._sql = f"SELECT {selected(columns, values, included, _INCLUDED)} FROM {rows} WHERE {quote(_IS_THERE)}"
        key = next((name for name, what in included.items() if what == "key"), None)
        gone = f"SELECT {quote(_KEY)} AS {quote(key or '')} FROM {rows} WHERE NOT {quote(_IS_THERE)}"
        self._removed = gone if source.format == "UPSERT" else None
        self._consumer: Any = None
        self._partitions: list[int] = []
        self._listed_at = float("-inf")
        self._assigned: dict[int, int | None] = {}  # the next offset of the consumer, by partition
        self._said: list[Error] = []  # errors of the client since the last messages

    def check(self) -> Mapping[str, str]:
        """Settle the start offsets of a source that skips existing messages.

        Raises Error 42704 for an unknown topic, 08006.
        """
        client = self._open()
        mode, since = self._source.options.get("scan.startup.mode", "earliest").lower(), None
        try:
            kafka_client.partitions(client, self._topic)
            if "scan.startup.timestamp.millis" in self._source.options:
                since = int(self._source.options["scan.startup.timestamp.millis"])
            elif mode == "earliest":
                return {}
            return {_START: json.dumps(kafka_client.ends(client, self._topic, since))}
        finally:
            client.close()

    def read(self, splits: Mapping[str, Split], held_back: Collection[str], rows: int, most: int) -> Batch | None:
        """Return the next messages. Raises SplitError for a partition that has lost them, Error 08006."""
        if self._consumer is None:
            self._consumer = self._open()
        self._find_partitions()
        wanted = {
            number: splits[str(number)].position if str(number) in splits else self._start.get(number)
            for number in self._partitions
            if str(number) not in held_back
        }
        if wanted != self._assigned:
            kafka_client.assign(self._consumer, self._topic, wanted)
            self._assigned = wanted
        messages = self._consume(splits, rows)
        if most == 1:
            messages = [message for message in messages if message.partition() == messages[0].partition()]
        if not messages:
            if self._said:
                raise self._said.pop()
            return None
        self._said.clear()
        return self._batch(messages, splits)

    def _open(self) -> Any:
        group = f"{self._source.options.get('group.id.prefix', 'rw-consumer')}-{self._source.relation_id}"
        return kafka_client.consumer(self._source.options, group, self._said.append)

    def _find_partitions(self) -> None:
        if time.monotonic() - self._listed_at > _LIST_S:
            self._partitions = kafka_client.partitions(self._consumer, self._topic)
            self._listed_at = time.monotonic()

    def _consume(self, splits: Mapping[str, Split], rows: int) -> list[Any]:
        """Return the messages that are there. After a faulty message the consumer is assigned its offsets again."""
        found: list[Any] = []
        size = 0
        while len(found) < rows and size < BATCH_BYTES:
            with kafka_client.translated():
                part = self._consumer.consume(min(rows - len(found), _CHUNK), _WAIT_S)
            if not part:
                break
            for message in part:
                error = message.error()
                if error is not None:
                    self._assigned = {}
                    raise self._wrong(message, error, splits)
            size += sum(map(len, part))
            found += part
        return found

    def _wrong(self, message: Any, error: Any, splits: Mapping[str, Split]) -> Exception:
        name = str(message.partition())
        if not kafka_client.is_lost(error):
            return kafka_client.problem(error)
        split = splits.get(name, Split(name))
        lost = Error(
            f'partition {name} of topic "{self._topic}" has no message {split.position} any more',
            errors.NOT_IN_PREREQUISITE_STATE,
            hint="The messages from there on were deleted before they were read.",
        )
        return SplitError(split, lost)

    def _batch(self, messages: list[Any], splits: Mapping[str, Split]) -> Batch:
        numbers = np.fromiter((message.partition() for message in messages), np.int32, len(messages))
        offsets = np.fromiter((message.offset() for message in messages), np.int64, len(messages))
        moved = []
        for number in np.unique(numbers):
            of_split = offsets[numbers == number]
            name = str(number)
            position, count = int(of_split[-1]) + 1, splits.get(name, Split(name)).row_count + len(of_split)
            moved.append(Split(name, position, count))
            self._assigned = {**self._assigned, int(number): position}
        columns = {
            _PARTITION: pa.array(numbers),
            OFFSET: pa.array(offsets),
            **self._known(messages),
            **self._decoded(messages, splits),
        }
        return Batch(self._sql, tuple(moved), pa.table(columns), self._removed)

    def _decoded(self, messages: list[Any], splits: Mapping[str, Split]) -> dict[str, Any]:
        """Return the decoded values, and which messages have one: a message without a value removes its key."""
        values = [message.value() for message in messages]
        try:
            decoded = decode_messages(self._source.encode, self._source.encode_options, self._read, values)
        except ValueError as error:
            self._assigned = {}
            # Decoding the messages one by one finds the faulty one.
            for message, value in zip(messages, values, strict=True):
                self._try(message, value, splits)
            raise Error(f'topic "{self._topic}": {error}', errors.BAD_COPY_FILE_FORMAT) from error
        return {**decoded, _IS_THERE: pa.array([value is not None for value in values])}

    def _try(self, message: Any, value: bytes | None, splits: Mapping[str, Split]) -> None:
        try:
            decode_messages(self._source.encode, self._source.encode_options, self._read, [value])
        except ValueError as error:
            name = str(message.partition())
            text = str(error).splitlines()[0]
            raise self._blamed(splits.get(name, Split(name)), message.offset(), text) from error

    def _known(self, messages: list[Any]) -> dict[str, Any]:
        """Return the further columns of messages, besides their values."""
        found: dict[str, Any] = {}
        if "key" in self._includes:
            found[_KEY] = pa.array([message.key() for message in messages], pa.binary())
        if "timestamp" in self._includes:
            times = (message.timestamp() for message in messages)
            millis = [None if kind == _NOT_A_TIME else time_ms for kind, time_ms in times]
            found[_TIMESTAMP] = pa.array(millis, pa.int64()).cast(pa.timestamp("ms", "UTC"))
        if "header" in self._includes:
            found[_HEADERS] = pa.array([_headers(message.headers()) for message in messages], _HEADER_TYPE)
        if self._removed is not None:
            found[_ORDER] = pa.array(np.arange(len(messages)))
        return found

    def blame(self, cursor: Cursor, batch: Batch, error: Error) -> SplitError | None:
        """Return the partition of the first message for which a column's SQL fails."""
        fault = find_fault(cursor, (_PARTITION, OFFSET), self._read, self._values)
        if fault is None:
            return None
        number, offset = fault.place
        split = next(split for split in batch.splits if split.name == str(number))
        return self._blamed(split, offset, fault.text, error.sqlstate)

    def _blamed(self, split: Split, offset: int, text: str, sqlstate: str = errors.BAD_COPY_FILE_FORMAT) -> SplitError:
        place = f'topic "{self._topic}", partition {split.name}, offset {offset}'
        return SplitError(split, Error(f"{place}: {text}", sqlstate))

    def forget(self) -> None:
        if self._consumer is not None:
            self._consumer.close()


def _headers(headers: Iterable[tuple[str, bytes | None]] | None) -> list[dict[str, Any]] | None:
    return None if headers is None else [{"key": key, "value": value} for key, value in headers]
