"""The reader of one log: a thread reads all partitions of a topic from the beginning, for ever."""

import threading
from collections.abc import Callable, Mapping
from typing import Final

from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaException, Message
from confluent_kafka import TopicPartition as Assigned

from coordinator_sim.connect.effects import Fetched, TopicRecord
from coordinator_sim.errors import DataError

MAX_RECORDS: Final = 500
"""Default of `max.poll.records`."""

_WAIT_S: Final = 0.2
_STOP_S: Final = 2.0
_METADATA_S: Final = 30.0


class TopicLogReader:
    """One consumer without a group.

    Args:
        topic: Topic to read.
        settings: Settings of librdkafka: brokers, client id, isolation.
        hand_over: Called in the reader's thread with the records read.
        failed: Called there once, when the topic can no longer be read.
    """

    def __init__(
        self,
        topic: str,
        settings: Mapping[str, object],
        hand_over: Callable[[Fetched], object],
        failed: Callable[[DataError], object],
    ) -> None:
        self._topic = topic
        self._hand_over = hand_over
        self._failed = failed
        self._stopped = threading.Event()
        # librdkafka requires a group id even where it neither joins nor commits.
        self._consumer = Consumer(
            {
                **settings,
                "group.id": f"{settings['client.id']}-reader",
                "enable.auto.commit": False,
                "enable.partition.eof": True,
                "auto.offset.reset": "earliest",
                "fetch.wait.max.ms": 100,
            }
        )
        self._thread = threading.Thread(target=self._read, name=f"reads {topic}", daemon=True)

    def start(self) -> None:
        """Begin to read."""
        self._thread.start()

    def stop(self) -> None:
        """Stop reading; returns when the consumer is closed, or after a time limit."""
        self._stopped.set()
        self._thread.join(_STOP_S)

    def _read(self) -> None:
        try:
            self._read_on()
        except KafkaException as error:
            self._failed(DataError(f"{self._topic}: {error.args[0].str()}"))
        except DataError as error:
            self._failed(error)
        self._consumer.close()

    def _read_on(self) -> None:
        found = self._consumer.list_topics(self._topic, _METADATA_S).topics[self._topic]
        self._consumer.assign(
            [Assigned(self._topic, number, OFFSET_BEGINNING) for number in found.partitions]
        )
        while not self._stopped.is_set():
            first = self._consumer.poll(_WAIT_S)
            if first is not None:
                messages = [first, *self._consumer.consume(MAX_RECORDS - 1, 0)]
                self._hand_over(fetched_of(self._topic, messages))


def fetched_of(topic: str, messages: list[Message]) -> Fetched:
    """Return the records of one poll; the end of a partition gives a position past markers.

    Raises:
        DataError: the topic cannot be read.
    """
    records: list[TopicRecord] = []
    positions: dict[int, int] = {}
    for message in messages:
        error, partition, offset = message.error(), message.partition(), message.offset()
        if error is not None and error.name() != "_PARTITION_EOF":
            if error.retriable() or error.code() < 0:
                continue
            raise DataError(f"{topic}: {error.str()}")
        if partition is None or offset is None:
            continue
        if error is not None:
            positions[partition] = offset
            continue
        positions[partition] = offset + 1
        records.append(
            TopicRecord(
                partition=partition,
                offset=offset,
                key=_bytes(message.key()),
                value=_bytes(message.value()),
                timestamp_ms=message.timestamp()[1],
            )
        )
    return Fetched(topic=topic, records=tuple(records), positions=positions)


def _bytes(value: str | bytes | None) -> bytes | None:
    return value.encode() if isinstance(value, str) else value
