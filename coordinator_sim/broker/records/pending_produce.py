"""A Produce that waits until its appended records are replicated, and the Produce response.

Source: kafka trunk, DelayedProduce; Partition.checkEnoughReplicasReachOffset;
ProduceResponse.toData.
"""

from dataclasses import dataclass
from typing import Final, NamedTuple

from msgspec.structs import replace

from coordinator_sim.broker.contract import Answers, Call
from coordinator_sim.broker.purgatory import Place
from coordinator_sim.broker.replicas.replica_manager import ReplicaManager
from coordinator_sim.kafka.errors import ErrorCode
from coordinator_sim.log.log_values import Appended
from coordinator_sim.messages.produce import (
    BatchIndexAndErrorMessage,
    LeaderIdAndEpoch,
    NodeEndpoint,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceResponse,
)

LEADER_TAGS_SINCE: Final = 10
"""From this version on, responses name the new leader of a partition (KIP-951)."""
_UNTOLD: Final = LeaderIdAndEpoch()


class ProducePlace(NamedTuple):
    """A partition as a Produce request names it."""

    topic_id: bytes
    topic: str
    partition: int

    @property
    def place(self) -> Place:
        """The partition by topic name and number."""
        return self.topic, self.partition


Outcomes = dict[ProducePlace, Appended]
"""The result of each partition's append, in the order of the answer."""


@dataclass(slots=True)
class PendingProduce:
    """A Produce with acks=-1 that waits for the high watermark.

    Attributes:
        outcomes: The results of all appends.
        waiting: Partitions that wait, with the offset that the high watermark must reach.
    """

    call: Call[ProduceRequest]
    partitions: ReplicaManager
    answers: Answers
    outcomes: Outcomes
    waiting: dict[ProducePlace, int]

    def try_complete(self, _place: Place) -> bool:
        """Answer if every partition has succeeded or failed; return whether it did."""
        if not self.is_settled():
            return False
        self._answer()
        return True

    def is_settled(self) -> bool:
        """Whether every partition has succeeded or failed."""
        for produced, required_offset in tuple(self.waiting.items()):
            error = self._error(produced.place, required_offset)
            if error is None:
                continue
            del self.waiting[produced]
            if error is not ErrorCode.NONE:
                self.outcomes[produced] = replace(self.outcomes[produced], error=error)
        return not self.waiting

    def _error(self, place: Place, required_offset: int) -> ErrorCode | None:
        """NONE when the high watermark has passed the records, an error, or None to wait on."""
        log = self.partitions.local_log(self.call.broker_id, place)
        if isinstance(log, ErrorCode):
            return log
        if log.high_watermark < required_offset:
            return None
        if self.partitions.has_enough_replicas(place):
            return ErrorCode.NONE
        return ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND

    def expire(self) -> None:
        """Answer REQUEST_TIMED_OUT for partitions that still wait; their records stay."""
        for produced in self.waiting:
            outcome = self.outcomes[produced]
            self.outcomes[produced] = replace(outcome, error=ErrorCode.REQUEST_TIMED_OUT)
        self._answer()

    def abandon(self) -> None:
        """End the request without an answer: its client is gone."""
        self.answers.answer(self.call.context.token, None)

    def _answer(self) -> None:
        response = produce_response(self.call, self.outcomes, self.partitions)
        self.answers.answer(self.call.context.token, response)


def produce_response(
    call: Call[ProduceRequest], outcomes: Outcomes, partitions: ReplicaManager
) -> ProduceResponse:
    """Build the response of a Produce.

    UNSPECIFIED: Kafka's order of topics and partitions is that of a hash map; here it is the
    request's, with refused ones last.
    """
    nodes: dict[int, NodeEndpoint] = {}
    topics: dict[tuple[bytes, str], list[PartitionProduceResponse]] = {}
    tells_leaders = call.context.api_version >= LEADER_TAGS_SINCE
    for produced, outcome in outcomes.items():
        leader = _UNTOLD
        if outcome.error is ErrorCode.NOT_LEADER_OR_FOLLOWER and tells_leaders:
            tags = partitions.leader_tags(produced.place, call.context.listener)
            leader = LeaderIdAndEpoch(tags.leader_id, tags.leader_epoch)
            if tags.endpoint is not None:
                nodes[tags.leader_id] = NodeEndpoint(
                    node_id=tags.leader_id, host=tags.endpoint.host, port=tags.endpoint.port
                )
        told = _told(produced.partition, outcome, leader)
        topics.setdefault((produced.topic_id, produced.topic), []).append(told)
    return ProduceResponse(
        responses=tuple(
            TopicProduceResponse(name, topic_id, tuple(told))
            for (topic_id, name), told in topics.items()
        ),
        node_endpoints=tuple(nodes.values()),
    )


def _told(index: int, outcome: Appended, leader: LeaderIdAndEpoch) -> PartitionProduceResponse:
    return PartitionProduceResponse(
        index=index,
        error_code=outcome.error,
        base_offset=outcome.base_offset,
        log_append_time_ms=outcome.log_append_time_ms,
        log_start_offset=outcome.log_start_offset,
        record_errors=tuple(
            BatchIndexAndErrorMessage(each.index, each.message) for each in outcome.record_errors
        ),
        error_message=outcome.message,
        current_leader=leader,
    )
