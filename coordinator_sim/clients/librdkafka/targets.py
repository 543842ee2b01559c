"""What a librdkafka member of the consumer protocol has, and what it is to have (KIP-848).

A target comes by topic ids. The names of topics that the member does not know are asked for on the
coordinator's connection, and the partitions are reconciled when they are known: revoked ones first,
then added ones, both by the application's callbacks. The next target waits until this one has been
acknowledged.

Source: librdkafka 2.15, rdkafka_cgrp.c, rd_kafka_cgrp_consumer_handle_next_assignment and what
calls it.
"""

from collections.abc import Sequence
from typing import Unpack

from coordinator_sim.clients.async_consumer.states import PartitionsById
from coordinator_sim.clients.background_requests import ConsumerSetup
from coordinator_sim.clients.config import ConsumerConfig
from coordinator_sim.clients.librdkafka.coordinator import LibrdkafkaCoordinator
from coordinator_sim.clients.librdkafka.states import JoinState
from coordinator_sim.clients.network import PendingRequest, RequestKind
from coordinator_sim.kafka.errors import ErrorCode
from coordinator_sim.kafka.resources import TopicPartition
from coordinator_sim.messages.consumer_group_heartbeat import (
    Assignment,
    TopicPartitions,
)
from coordinator_sim.messages.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
)


class LibrdkafkaTargets(LibrdkafkaCoordinator):
    """Works towards the targets that the coordinator sends."""

    __slots__ = (
        "_current",
        "_names_by_id",
        "_next_target",
        "_sends_ack",
        "_target",
        "_target_queries",
        "_waits_for_ack",
    )

    def __init__(self, config: ConsumerConfig, **setup: Unpack[ConsumerSetup]) -> None:
        super().__init__(config, **setup)
        self._current: PartitionsById = {}
        """What the coordinator knows that the member has."""
        self._target: PartitionsById | None = None
        """What is being reconciled, or waits for its acknowledgement."""
        self._next_target: PartitionsById | None = None
        self._names_by_id: dict[bytes, str] = {}
        self._target_queries: dict[int, None] = {}
        self._waits_for_ack = False
        self._sends_ack = False

    def _take_target(self, assignment: Assignment) -> None:
        """Keep a target that is not the one known; it replaces one that still waits."""
        told = {each.topic_id: each.partitions for each in assignment.topic_partitions}
        self._next_target = told if self._is_news(told) else None

    def _is_news(self, told: PartitionsById) -> bool:
        """Whether partitions differ from those reconciled, or from the present ones.

        Source: rdkafka_cgrp.c, rd_kafka_cgrp_consumer_is_new_assignment_different.
        """
        known = self._current if self._target is None else self._target
        return _partitions_of(told) != _partitions_of(known)

    def _take_acknowledgement(self) -> None:
        """Record that the coordinator knows what was reconciled."""
        self._current = self._target or {}
        self._target = None
        self._waits_for_ack = False

    def _serve_next_target(self, now_ms: int) -> None:
        """Begin the next target, or ask for the names of its topics.

        Source: rdkafka_cgrp.c, rd_kafka_cgrp_consumer_next_target_assignment_request_metadata.
        """
        told = self._next_target
        if told is None:
            return
        unknown = [topic_id for topic_id in told if topic_id not in self._names_by_id]
        if not unknown:
            self._begin_target(told, is_whole=True)
            return
        request = MetadataRequest(
            topics=tuple(MetadataRequestTopic(topic_id=each, name=None) for each in unknown),
            allow_auto_topic_creation=False,
        )
        node_id = self._coordinator_node_id
        pending = self._request(RequestKind.METADATA, node_id, request, now_ms)
        self._target_queries[pending.correlation_id] = None

    def _is_target_query(self, pending: PendingRequest) -> bool:
        return pending.correlation_id in self._target_queries

    def _target_query_ended(
        self, pending: PendingRequest, response: MetadataResponse | None
    ) -> None:
        """Begin the next target as far as its topics are known; None for a lost request.

        A target with unknown topics stays the next one, and each heartbeat's answer asks again.

        Source: rdkafka_cgrp.c, rd_kafka_cgrp_consumer_handle_Metadata_op.
        """
        del self._target_queries[pending.correlation_id]
        if response is not None:
            self._learn_names(response)
        told = self._next_target
        if told is not None:
            known = {each: told[each] for each in told if each in self._names_by_id}
            self._begin_target(known, is_whole=len(known) == len(told))

    def _learn_names(self, response: MetadataResponse) -> None:
        for topic in response.topics:
            if topic.error_code is ErrorCode.NONE and topic.name is not None:
                self._names_by_id[topic.topic_id] = topic.name

    def _begin_target(self, partitions: PartitionsById, *, is_whole: bool) -> None:
        """Reconcile these partitions, unless others are being reconciled.

        Args:
            partitions: The next target, or the part of it whose topics are known.
            is_whole: Whether it is all of the next target.

        Source: rdkafka_cgrp.c, rd_kafka_cgrp_consumer_handle_next_assignment.
        """
        if self._waits_for_ack:
            return
        if self._is_news(partitions):
            if self._join_state not in (JoinState.INIT, JoinState.STEADY):
                return
            self._waits_for_ack = True
            self._target = partitions
            self._refresh_own_topics()
            self._adopt_incrementally(self._named(partitions))
        if is_whole:
            self._next_target = None

    def _refresh_own_topics(self) -> None:
        """Have Metadata ask for the topics that the member has, or is to have."""
        known = {**self._current, **(self._target or {})}
        self._metadata.wanted_topics = tuple(sorted(self._names_by_id[each] for each in known))

    def _named(self, partitions: PartitionsById) -> Sequence[TopicPartition]:
        return sorted(
            TopicPartition(self._names_by_id[topic_id], number)
            for topic_id, numbers in partitions.items()
            for number in numbers
        )

    def _forget_targets(self) -> None:
        """Begin anew, as a member that has nothing."""
        self._current = {}
        self._target = self._next_target = None
        self._waits_for_ack = self._sends_ack = False


def _partitions_of(partitions: PartitionsById) -> dict[bytes, tuple[int, ...]]:
    """Return partitions in a form in which equal sets are equal; a topic without any is left out.

    Source: librdkafka 2.15, rdkafka_partition.c, rd_kafka_topic_partition_list_cmp.
    """
    return {topic_id: tuple(sorted(each)) for topic_id, each in partitions.items() if each}


def told_partitions(partitions: PartitionsById) -> tuple[TopicPartitions, ...]:
    """Return partitions as a heartbeat tells them, in the order in which they came."""
    return tuple(TopicPartitions(topic_id, each) for topic_id, each in partitions.items())
