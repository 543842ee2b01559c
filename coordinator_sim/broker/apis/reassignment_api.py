"""ElectLeaders, AlterPartitionReassignments, ListPartitionReassignments.

Replicas are labels, so a reassignment completes at once, and none is ever in progress.

Source: kafka trunk, ControllerApis (rights); ReplicationControlManager.electLeaders, electLeader,
alterPartitionReassignments; PartitionChangeBuilder.electLeader.
"""

from typing import Final

from coordinator_sim.broker.apis.administration import (
    NO_ERROR,
    ApiError,
    told,
)
from coordinator_sim.broker.apis.placement import Replicas, assignment_error
from coordinator_sim.broker.cluster_parts import ClusterParts
from coordinator_sim.broker.contract import Call, Handlers
from coordinator_sim.broker.metadata.changes import ReplicasAssigned
from coordinator_sim.broker.metadata.image import NO_LEADER, PartitionState
from coordinator_sim.broker.security.authorizer import Operation
from coordinator_sim.kafka.api_keys import ApiKey
from coordinator_sim.kafka.errors import ErrorCode
from coordinator_sim.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
    ReassignablePartition,
    ReassignablePartitionResponse,
    ReassignableTopic,
    ReassignableTopicResponse,
)
from coordinator_sim.messages.elect_leaders import (
    ElectLeadersRequest,
    ElectLeadersResponse,
    PartitionResult,
    ReplicaElectionResult,
    TopicPartitions,
)
from coordinator_sim.messages.list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
    OngoingPartitionReassignment,
    OngoingTopicReassignment,
)

_PREFERRED: Final = 0
_UNCLEAN: Final = 1
_REFUSED: Final = ApiError(ErrorCode.CLUSTER_AUTHORIZATION_FAILED)


class ReassignmentApi:
    """Answers the three APIs that move leaders and replicas.

    Args:
        cluster: The parts of the cluster.
    """

    def __init__(self, cluster: ClusterParts) -> None:
        self._cluster = cluster

    def handlers(self) -> Handlers:
        """Handlers of the three APIs."""
        return {
            ApiKey.ELECT_LEADERS: self._elect_leaders,
            ApiKey.ALTER_PARTITION_REASSIGNMENTS: self._alter,
            ApiKey.LIST_PARTITION_REASSIGNMENTS: self._list,
        }

    # -- ElectLeaders ----------------------------------------------------------------------

    def _elect_leaders(self, call: Call[ElectLeadersRequest]) -> ElectLeadersResponse:
        kind, asked = call.request.election_type, call.request.topic_partitions
        error: ApiError | None = None
        if not self._cluster.allows_cluster(call, Operation.ALTER):
            error = _REFUSED
        elif kind not in {_PREFERRED, _UNCLEAN}:
            error = ApiError(ErrorCode.INVALID_REQUEST, f"Unknown election type {kind}")
        if error is not None:
            return _elections_refused(asked or (), error)
        every = asked is None
        wanted = self._all_partitions() if asked is None else asked
        results = tuple(self._elected(call, topic, every=every) for topic in wanted)
        return ElectLeadersResponse(replica_election_results=results)

    def _all_partitions(self) -> tuple[TopicPartitions, ...]:
        return tuple(
            TopicPartitions(state.name, tuple(range(len(state.partitions))))
            for state in self._cluster.image.topics.values()
        )

    def _elected(
        self, call: Call[ElectLeadersRequest], topic: TopicPartitions, *, every: bool
    ) -> ReplicaElectionResult:
        """Results of a topic; for all partitions, those without ELECTION_NOT_NEEDED only."""
        results: list[PartitionResult] = []
        for partition in topic.partitions:
            error = self._elect(call, topic.topic, partition)
            if not every or error.code is not ErrorCode.ELECTION_NOT_NEEDED:
                results.append(PartitionResult(partition, error.code, error.message))
        return ReplicaElectionResult(topic.topic, tuple(results))

    def _elect(self, call: Call[ElectLeadersRequest], topic: str, partition: int) -> ApiError:
        if topic not in self._cluster.image.topics:
            return _unknown(f"No such topic as {topic}")
        state = self._cluster.image.partition(topic, partition)
        if state is None:
            return _unknown(f"No such partition as {topic}-{partition}")
        if call.request.election_type == _PREFERRED:
            return self._elect_preferred(call, topic, partition, state)
        if state.leader_id != NO_LEADER:
            return told(ErrorCode.ELECTION_NOT_NEEDED)
        living = [each for each in state.replicas if self._cluster.leadership.is_living(each)]
        if not living:
            return told(ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE)
        self._cluster.leadership.elect(topic, partition, living[0], call.now)
        return NO_ERROR

    def _elect_preferred(
        self, call: Call[ElectLeadersRequest], topic: str, partition: int, state: PartitionState
    ) -> ApiError:
        preferred = state.replicas[0]
        if state.leader_id == preferred:
            return told(ErrorCode.ELECTION_NOT_NEEDED)
        if not self._cluster.leadership.is_living(preferred):
            return told(ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE)
        self._cluster.leadership.elect(topic, partition, preferred, call.now)
        return NO_ERROR

    # -- reassignments ---------------------------------------------------------------------

    def _alter(
        self, call: Call[AlterPartitionReassignmentsRequest]
    ) -> AlterPartitionReassignmentsResponse:
        request = call.request
        allowed = self._cluster.allows_cluster(call, Operation.ALTER)
        overall = NO_ERROR if allowed else _REFUSED
        return AlterPartitionReassignmentsResponse(
            allow_replication_factor_change=request.allow_replication_factor_change,
            error_code=overall.code,
            error_message=overall.message,
            responses=tuple(self._moved(call, topic, allowed=allowed) for topic in request.topics),
        )

    def _moved(
        self,
        call: Call[AlterPartitionReassignmentsRequest],
        topic: ReassignableTopic,
        *,
        allowed: bool,
    ) -> ReassignableTopicResponse:
        results: list[ReassignablePartitionResponse] = []
        for each in topic.partitions:
            error = self._move(call, topic.name, each) if allowed else _REFUSED
            results.append(
                ReassignablePartitionResponse(each.partition_index, error.code, error.message)
            )
        return ReassignableTopicResponse(topic.name, tuple(results))

    def _move(
        self,
        call: Call[AlterPartitionReassignmentsRequest],
        topic: str,
        asked: ReassignablePartition,
    ) -> ApiError:
        index, replicas = asked.partition_index, asked.replicas
        if topic not in self._cluster.image.topics:
            return _unknown(f"Unable to find a topic named {topic}.")
        state = self._cluster.image.partition(topic, index)
        if state is None:
            return _unknown(f"Unable to find partition {topic}:{index}.")
        if replicas is None:
            return ApiError(ErrorCode.NO_REASSIGNMENT_IN_PROGRESS)
        error = assignment_error(replicas, self._cluster.settings.broker_ids, None)
        if error is not None:
            return error
        keeps_factor = not call.request.allow_replication_factor_change
        if keeps_factor and len(replicas) != len(state.replicas):
            return ApiError(ErrorCode.INVALID_REPLICATION_FACTOR)
        self._assign(call, topic, index, replicas)
        return NO_ERROR

    def _assign(
        self,
        call: Call[AlterPartitionReassignmentsRequest],
        topic: str,
        index: int,
        replicas: Replicas,
    ) -> None:
        """Reassign replicas at once; a leader that is not among them is replaced."""
        self._cluster.change(ReplicasAssigned(topic, index, replicas))
        state = self._cluster.image.topics[topic].partitions[index]
        if state.leader_id not in replicas:
            living = [each for each in replicas if self._cluster.leadership.is_living(each)]
            leader_id = living[0] if living else NO_LEADER
            self._cluster.leadership.elect(topic, index, leader_id, call.now)

    def _list(
        self, call: Call[ListPartitionReassignmentsRequest]
    ) -> ListPartitionReassignmentsResponse:
        if self._cluster.allows_cluster(call, Operation.DESCRIBE):
            return ListPartitionReassignmentsResponse(error_message=None)
        topics = tuple(
            OngoingTopicReassignment(
                topic.name,
                tuple(OngoingPartitionReassignment(each) for each in topic.partition_indexes),
            )
            for topic in call.request.topics or ()
        )
        return ListPartitionReassignmentsResponse(
            error_code=_REFUSED.code, error_message=_REFUSED.message, topics=topics
        )


def _elections_refused(asked: tuple[TopicPartitions, ...], error: ApiError) -> ElectLeadersResponse:
    results = tuple(
        ReplicaElectionResult(
            topic.topic,
            tuple(PartitionResult(each, error.code, error.message) for each in topic.partitions),
        )
        for topic in asked
    )
    return ElectLeadersResponse(error_code=error.code, replica_election_results=results)


def _unknown(text: str) -> ApiError:
    return ApiError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, text)
