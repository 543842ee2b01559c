"""Benches of members of the consumer protocol, whose coordinator a test plays."""

from collections.abc import Mapping
from typing import TypeVar

from coordinator_sim.clients.async_consumer import AsyncConsumer
from coordinator_sim.clients.config import ConsumerConfig
from coordinator_sim.clients.contract import ClientPort
from coordinator_sim.kafka.errors import ErrorCode
from coordinator_sim.messages import consumer_group_heartbeat
from coordinator_sim.messages.metadata import (
    MetadataResponse,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from coordinator_sim_conformance.client_cases.bench import BROKER, GROUP, Bench, PortBench

MEMBER_ID = "WZPZSSBGTyeSB0YlKQ5q5Q"
INTERVAL_MS = 5_000
IDS = {"t": b"t" * 16, "u": b"u" * 16}
"""Ids of the topics that a test may have."""


P = TypeVar("P", bound=ClientPort)


class HeartbeatBench(PortBench[P]):
    """A consumer of the topic `t` with two partitions; Metadata tells topics by id, too."""

    def metadata(self) -> MetadataResponse:
        """Return the topics that exist, with their ids."""
        return MetadataResponse(
            brokers=(BROKER,),
            topics=tuple(
                MetadataResponseTopic(
                    name=name,
                    topic_id=IDS[name],
                    partitions=tuple(
                        MetadataResponsePartition(partition_index=number, leader_epoch=0)
                        for number in range(count)
                    ),
                )
                for name, count in self.topics.items()
            ),
        )

    @property
    def beats(self) -> list[consumer_group_heartbeat.ConsumerGroupHeartbeatRequest]:
        """All heartbeats so far."""
        return self.sent(consumer_group_heartbeat.ConsumerGroupHeartbeatRequest)

    def beat(self, epoch: int, assigned: Mapping[str, tuple[int, ...]] | None = None) -> None:
        """Answer a heartbeat with an epoch, and with an assignment if one is given."""
        given = None
        if assigned is not None:
            given = consumer_group_heartbeat.Assignment(
                tuple(
                    consumer_group_heartbeat.ConsumerGroupHeartbeatResponseTopicPartitions(
                        IDS[name], numbers
                    )
                    for name, numbers in assigned.items()
                )
            )
        self.answer(
            consumer_group_heartbeat.ConsumerGroupHeartbeatRequest,
            consumer_group_heartbeat.ConsumerGroupHeartbeatResponse(
                member_id=MEMBER_ID,
                member_epoch=epoch,
                heartbeat_interval_ms=INTERVAL_MS,
                assignment=given,
            ),
        )

    def refuse(self, error: ErrorCode) -> None:
        """Answer a heartbeat with an error."""
        response = consumer_group_heartbeat.ConsumerGroupHeartbeatResponse(error_code=error)
        self.answer(consumer_group_heartbeat.ConsumerGroupHeartbeatRequest, response)


class AsyncBench(HeartbeatBench[AsyncConsumer]):
    """The port of Java's new consumer."""

    def poll_on(self) -> None:
        """Poll once more, for 100 ms of virtual time, which ends the poll."""
        self.poll(100)
        self.advance(100)


def make(*topics: str, **settings: str) -> AsyncBench:
    """A consumer that has not polled yet, without automatic commits."""
    chosen = {"enable_auto_commit": "false", **settings}
    port = AsyncConsumer(
        ConsumerConfig.from_settings(
            {"group.protocol": "consumer"}
            | {name.replace("_", "."): value for name, value in chosen.items()}
        ),
        client_id="c",
        group_id=GROUP,
        topics=topics or ("t",),
        assignors=(),
        bootstrap=(BROKER,),
        member_id=MEMBER_ID,
    )
    return AsyncBench(Bench(), port, topics={"t": 2})


def settled(**settings: str) -> AsyncBench:
    """A member at epoch 1 that owns both partitions, with positions, and does not poll."""
    bench = make(**settings)
    bench.poll(2_000)
    bench.beat(1, {"t": (0, 1)})
    bench.advance(500)
    bench.beat(1)
    bench.advance(500)
    bench.offsets()
    bench.advance(1_000)
    assert bench.returned == [None]
    return bench
