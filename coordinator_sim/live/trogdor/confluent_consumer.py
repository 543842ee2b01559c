"""A workload's consumer, around confluent-kafka's; see `workloads/clients.py`."""

from collections.abc import Sequence
from functools import partial
from threading import Event
from typing import Final
from uuid import uuid4

from confluent_kafka import (
    OFFSET_BEGINNING,
    OFFSET_END,
    OFFSET_INVALID,
    Consumer,
    KafkaError,
    KafkaException,
    Message,
)
from confluent_kafka import TopicPartition as Assigned

from coordinator_sim.connect.thread import Blocking
from coordinator_sim.kafka.resources import TopicPartition
from coordinator_sim.live.background import in_background
from coordinator_sim.live.trogdor.client_settings import native_of_consumer, whole_number
from coordinator_sim.live.trogdor.workload_place import (
    DEFAULT_TIMEOUT_MS,
    NOT_THERE_YET,
    Errors,
    WorkloadPlace,
    is_final,
)
from coordinator_sim.live.trogdor.workload_threads import now_ms
from coordinator_sim.trogdor.workloads.clients import ClientFailed, Received, Settings

_MS_PER_S: Final = 1_000
_MAX_POLL_RECORDS: Final = 500
_CLOSE_S: Final = 30.0
"""Source: KafkaConsumer.DEFAULT_CLOSE_TIMEOUT_MS."""
_BEGINNINGS: Final = {"earliest": OFFSET_BEGINNING}


class ConfluentConsumer:
    """A consumer.

    Args:
        place: Where it is.
        settings: By Java's names.

    Raises:
        ClientFailed: the settings are refused.
    """

    def __init__(self, place: WorkloadPlace, settings: Settings) -> None:
        self._place = place
        self._most = whole_number(settings, "max.poll.records", _MAX_POLL_RECORDS)
        self._patience_ms = whole_number(settings, "default.api.timeout.ms", DEFAULT_TIMEOUT_MS)
        # A consumer without a group has no committed offsets to begin at.
        beginning = _BEGINNINGS.get(str(settings.get("auto.offset.reset")), OFFSET_END)
        self._first_offset = OFFSET_INVALID if "group.id" in settings else beginning
        native = native_of_consumer(settings, f"unused-{uuid4()}")
        self._errors = Errors(place)
        self._client = place.made(native, self._errors, Consumer)
        self._assigned: Sequence[TopicPartition] = ()
        self._is_closed = False

    def subscribe(self, topics: Sequence[str]) -> None:
        """Join the group at the next polls."""
        self._client.subscribe(list(topics))

    def assign(self, partitions: Sequence[TopicPartition]) -> None:
        """Read these partitions, from what was committed or as `auto.offset.reset` says."""
        self._assigned = partitions
        self._assign_at(self._first_offset)

    def seek_to_end(self) -> None:
        """Read what comes after the present end of the assigned partitions."""
        self._assign_at(OFFSET_END)

    def _assign_at(self, offset: int) -> None:
        self._client.assign([Assigned(*each, offset) for each in self._assigned])

    def assignment(self) -> Sequence[TopicPartition]:
        """The partitions that it reads, in order; none after it was closed."""
        if self._is_closed:
            return ()
        found = self._client.assignment()
        return sorted(TopicPartition(each.topic, each.partition) for each in found)

    def partitions_for(self, topic: str) -> Blocking[tuple[TopicPartition, ...]]:
        """All partitions of a topic.

        Raises:
            ClientFailed: there is no such topic, or no broker answers.
        """
        yield from ()
        found = self._place.partitions(self._client, topic, now_ms() + self._patience_ms)
        if not found:
            raise ClientFailed(f"there is no topic {topic}")
        return found

    def poll(self, timeout_ms: int) -> Blocking[Sequence[Received]]:
        """Records, as soon as there are any; none after the timeout.

        Raises:
            ClientFailed: reading fails in a way that Java's poll would raise.
            Interrupted: the workload is being stopped.
        """
        yield from ()
        client = self._client
        first = self._place.threads.outside(partial(client.poll, timeout_ms / _MS_PER_S))
        self._errors.check()
        if first is None:
            return ()
        messages = [first]
        if self._most > 1:
            messages += client.consume(self._most - 1, 0)
        received = (self._received(each) for each in messages)
        return [each for each in received if each is not None]

    def _received(self, message: Message) -> Received | None:
        """A message as a record; None for an error that is waited out."""
        error = message.error()
        if error is not None:
            if _is_raised(error):
                raise self._place.failed(KafkaException(error))
            self._place.heard(error)
            return None
        topic, number, offset = message.topic(), message.partition(), message.offset()
        if topic is None or number is None or offset is None:
            return None
        key, value = _bytes(message.key()), _bytes(message.value())
        return Received(TopicPartition(topic, number), offset, message.timestamp()[1], key, value)

    def unsubscribe(self) -> Blocking[None]:
        """Give up all partitions, and leave the group."""
        yield from ()
        if not self._is_closed:
            self._place.threads.outside(self._client.unsubscribe)

    def close(self) -> Blocking[None]:
        """Leave the group and close; without a broker, give up after half a minute."""
        yield from ()
        if not self._is_closed:
            self._is_closed = True
            closed = Event()
            in_background("closes", partial(self._close, closed))
            self._place.threads.outside(partial(closed.wait, _CLOSE_S))

    def _close(self, closed: Event) -> None:
        self._client.close()
        closed.set()


def _is_raised(error: KafkaError) -> bool:
    """Whether a poll of Java's consumer raises for an error.

    Source: KafkaConsumer.poll raises for authorization, authentication, and offsets without a rule;
    it waits for topics, leaders and brokers.
    """
    if error.code() == KafkaError._AUTO_OFFSET_RESET or is_final(error):  # noqa: SLF001 - so named
        return True
    return error.code() > 0 and not error.retriable() and error.code() not in NOT_THERE_YET


def _bytes(part: str | bytes | None) -> bytes | None:
    return part.encode() if isinstance(part, str) else part
