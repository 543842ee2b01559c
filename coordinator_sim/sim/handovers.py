"""What a consumer is given and gives up, as events of the trace."""

from collections.abc import Sequence
from typing import Final, Protocol

from coordinator_sim.clients.async_consumer import AsyncConsumer
from coordinator_sim.clients.contract import ConsumerPort
from coordinator_sim.clients.effects import CallbackKind
from coordinator_sim.clients.librdkafka import LibrdkafkaNewConsumer
from coordinator_sim.kafka.resources import TopicPartition
from coordinator_sim.messages.embedded.consumer_protocol import encode_assignment
from coordinator_sim.messages.embedded.contents import ConsumerAssignment
from coordinator_sim.trace.events import Event, OffsetEntry

GIVEN_UP: Final = {
    CallbackKind.PARTITIONS_REVOKED: Event.REVOKED,
    CallbackKind.PARTITIONS_LOST: Event.LOST,
}
"""The event of each callback about partitions given up."""


class Tell(Protocol):
    """Records an event of one process; `columns` are columns of `TraceEvent`."""

    def __call__(self, event: Event, **columns: object) -> None:
        """Record the event."""
        ...


def tell_assigned(tell: Tell, consumer: ConsumerPort, added: Sequence[TopicPartition]) -> None:
    """Record what a member of the consumer protocol owns now, and what of it is new.

    In a classic group the coordinator records it: the leader's decision passes through there.
    """
    if isinstance(consumer, AsyncConsumer | LibrdkafkaNewConsumer):
        # librdkafka owns what is new when the application has taken it over.
        owned = tuple(sorted(dict.fromkeys((*consumer.owned_partitions, *added))))
        tell(
            Event.ASSIGNED,
            generation=consumer.generation_id,
            member_id=consumer.member_id,
            protocol_type="consumer",
            assignment=encode_assignment(ConsumerAssignment(partitions=owned)),
            attrs={"resources": " ".join(tp.resource() for tp in added)},
        )


def tell_given_up(
    tell: Tell, consumer: ConsumerPort, event: Event, partitions: Sequence[TopicPartition]
) -> None:
    """Record which partitions are given up, and how far each was consumed."""
    tell(
        event,
        generation=consumer.generation_id,
        member_id=consumer.member_id,
        attrs={"resources": " ".join(tp.resource() for tp in partitions)},
    )
    positions = consumer.positions
    entries = tuple(
        OffsetEntry(tp.topic, tp.partition, positions[tp]) for tp in partitions if tp in positions
    )
    if entries:
        tell(Event.POSITION, member_id=consumer.member_id, offsets=entries)
