"""LeaderAndIsr, StopReplica, UpdateMetadata and ControlledShutdown: a controller and its brokers.

The brokers share one metadata image, which follows the cluster's own controller. A LeaderAndIsr
changes the image, so that all brokers know the leader at once.

DEVIATION: UpdateMetadata is checked, and its controller epoch counts from then on; what it says of
partitions and brokers is dropped, because no broker here has metadata of its own. A partition that
only a LeaderAndIsr names has a leader epoch, and no records. A replica that StopReplica deletes
leads no more and is out of sync; the records stay, because all replicas share one log. The epoch of
the cluster's own controller is 1, and nothing that it does is refused for a newer one.

Source: kafka 0.10.2, KafkaApis.handleLeaderAndIsrRequest, handleStopReplicaRequest,
handleUpdateMetadataRequest, handleControlledShutdownRequest; ReplicaManager.becomeLeaderOrFollower,
stopReplicas, maybeUpdateMetadataCache; KafkaController.shutdownBroker.
"""

from collections.abc import Iterable
from typing import Any, Final

from coordinator_sim.broker.apis.cluster_api import controller_id
from coordinator_sim.broker.cluster_parts import ClusterParts
from coordinator_sim.broker.contract import Call, Handlers
from coordinator_sim.broker.metadata.changes import LeaderElected
from coordinator_sim.broker.metadata.image import NO_LEADER
from coordinator_sim.broker.security.authorizer import Operation
from coordinator_sim.kafka.api_keys import ApiKey
from coordinator_sim.kafka.errors import ErrorCode
from coordinator_sim.kafka.orders.iteration_order import (
    java_hash_order,
    old_scala_map_order,
    old_scala_set_order,
    topic_partition_hash,
)
from coordinator_sim.kafka.resources import TopicPartition
from coordinator_sim.messages.controlled_shutdown import (
    ControlledShutdownRequest,
    ControlledShutdownResponse,
    RemainingPartition,
)
from coordinator_sim.messages.leader_and_isr import (
    LeaderAndIsrPartitionError,
    LeaderAndIsrPartitionState,
    LeaderAndIsrRequest,
    LeaderAndIsrResponse,
)
from coordinator_sim.messages.stop_replica import (
    StopReplicaPartitionError,
    StopReplicaRequest,
    StopReplicaResponse,
)
from coordinator_sim.messages.update_metadata import UpdateMetadataRequest, UpdateMetadataResponse

_OWN_CONTROLLER_EPOCH: Final = 1
"""Of the first controller. Source: KafkaController.InitialControllerEpoch."""
_NO_EPOCH: Final = -1
"""Leader epoch of a partition that a broker does not have."""
_DENIED: Final = ErrorCode.CLUSTER_AUTHORIZATION_FAILED
_STALE: Final = ErrorCode.STALE_CONTROLLER_EPOCH
_Outcomes = Iterable[tuple[TopicPartition, ErrorCode]]


class ControlApi:
    """Answers the requests of a controller, and those of brokers to their controller.

    Args:
        cluster: The parts of the cluster.
    """

    def __init__(self, cluster: ClusterParts) -> None:
        self._cluster = cluster
        self._controller_epochs: dict[int, int] = {}
        self._leader_epochs: dict[tuple[int, TopicPartition], int] = {}

    def handlers(self) -> Handlers:
        """Handlers of the four APIs."""
        return {
            ApiKey.LEADER_AND_ISR: self._leader_and_isr,
            ApiKey.STOP_REPLICA: self._stop_replica,
            ApiKey.UPDATE_METADATA: self._update_metadata,
            ApiKey.CONTROLLED_SHUTDOWN: self._controlled_shutdown,
        }

    def _is_allowed(self, call: Call[Any]) -> bool:
        return self._cluster.allows_cluster(call, Operation.CLUSTER_ACTION)

    def _is_stale(self, call: Call[Any]) -> bool:
        """Whether the request's controller is an older one; a newer one counts from now on."""
        newest = self._controller_epochs.get(call.broker_id, _OWN_CONTROLLER_EPOCH)
        if call.request.controller_epoch < newest:
            return True
        self._controller_epochs[call.broker_id] = call.request.controller_epoch
        return False

    # -- LeaderAndIsr ----------------------------------------------------------------------

    def _leader_and_isr(self, call: Call[LeaderAndIsrRequest]) -> LeaderAndIsrResponse:
        states = {
            TopicPartition(each.topic_name, each.partition_index): each
            for each in call.request.ungrouped_partition_states
        }
        if not self._is_allowed(call):
            return _led(_DENIED, ((each, _DENIED) for each in _refused_order(states)))
        if self._is_stale(call):
            return _led(_STALE, ())
        outcomes = {
            partition: self._outcome(call.broker_id, partition, states[partition])
            for partition in java_hash_order(states, hash_of=topic_partition_hash)
        }
        taken = [partition for partition, error in outcomes.items() if error is ErrorCode.NONE]
        for partition in sorted(taken, key=lambda each: states[each].leader != call.broker_id):
            self._take(call, partition, states[partition])
        ordered = old_scala_map_order(outcomes, hash_of=topic_partition_hash)
        return _led(ErrorCode.NONE, ((partition, outcomes[partition]) for partition in ordered))

    def _outcome(
        self, broker_id: int, partition: TopicPartition, state: LeaderAndIsrPartitionState
    ) -> ErrorCode:
        if state.leader_epoch <= self._leader_epoch(broker_id, partition):
            return _STALE
        if broker_id not in state.replicas:
            return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        return ErrorCode.NONE

    def _leader_epoch(self, broker_id: int, partition: TopicPartition) -> int:
        """The leader epoch of a broker's replica; -1 without one."""
        own = self._leader_epochs.get((broker_id, partition))
        state = self._cluster.image.partition(*partition)
        if state is None or broker_id not in state.replicas or own == _NO_EPOCH:
            return _NO_EPOCH if own is None else own
        return state.leader_epoch

    def _take(
        self,
        call: Call[LeaderAndIsrRequest],
        partition: TopicPartition,
        new: LeaderAndIsrPartitionState,
    ) -> None:
        """Make the leader of a request that of the partition, unless it is not alive."""
        if not self._cluster.leadership.is_living(new.leader):
            return
        state = self._cluster.image.partition(*partition)
        if state is None or call.broker_id not in state.replicas:
            self._leader_epochs[call.broker_id, partition] = new.leader_epoch
            return
        self._leader_epochs.pop((call.broker_id, partition), None)
        epoch = max(new.leader_epoch, state.leader_epoch + 1)
        elected = LeaderElected(*partition, new.leader, epoch, new.isr)
        if new.leader == state.leader_id:
            self._cluster.change(elected)
        else:
            self._cluster.leadership.apply(elected, call.now)

    # -- StopReplica -----------------------------------------------------------------------

    def _stop_replica(self, call: Call[StopReplicaRequest]) -> StopReplicaResponse:
        request = call.request
        partitions = dict.fromkeys(
            TopicPartition(each.topic_name, each.partition_index)
            for each in request.ungrouped_partitions
        )
        if not self._is_allowed(call):
            return _stopped(_DENIED, ((each, _DENIED) for each in _refused_order(partitions)))
        if self._is_stale(call):
            return _stopped(_STALE, ())
        if request.delete_partitions:
            for partition in java_hash_order(partitions, hash_of=topic_partition_hash):
                self._delete_replica(call, partition)
        ordered = old_scala_map_order(partitions, hash_of=topic_partition_hash)
        return _stopped(ErrorCode.NONE, ((partition, ErrorCode.NONE) for partition in ordered))

    def _delete_replica(self, call: Call[StopReplicaRequest], partition: TopicPartition) -> None:
        """Take the broker's replica out of the ISR; a leader leaves the partition without one."""
        state = self._cluster.image.partition(*partition)
        if state is None or call.broker_id not in state.replicas:
            self._leader_epochs.pop((call.broker_id, partition), None)
            return
        self._leader_epochs[call.broker_id, partition] = _NO_EPOCH
        if call.broker_id not in state.isr:
            return
        isr = tuple(each for each in state.isr if each != call.broker_id)
        if state.leader_id == call.broker_id:
            elected = LeaderElected(*partition, NO_LEADER, state.leader_epoch + 1, isr or state.isr)
            self._cluster.leadership.apply(elected, call.now)
        else:
            self._cluster.change(
                LeaderElected(*partition, state.leader_id, state.leader_epoch, isr)
            )

    # -- UpdateMetadata, ControlledShutdown ------------------------------------------------

    def _update_metadata(self, call: Call[UpdateMetadataRequest]) -> UpdateMetadataResponse:
        if not self._is_allowed(call):
            return UpdateMetadataResponse(_DENIED)
        return UpdateMetadataResponse(_STALE if self._is_stale(call) else ErrorCode.NONE)

    def _controlled_shutdown(
        self, call: Call[ControlledShutdownRequest]
    ) -> ControlledShutdownResponse:
        """UNSPECIFIED: the order of the partitions that remain follows hashes of tuples."""
        broker_id = call.request.broker_id
        if not self._is_allowed(call):
            return ControlledShutdownResponse(_DENIED)
        if call.broker_id != controller_id(self._cluster):
            return ControlledShutdownResponse(_STALE)
        if not self._cluster.leadership.is_living(broker_id):
            return ControlledShutdownResponse(ErrorCode.BROKER_NOT_AVAILABLE)
        remaining = self._cluster.leadership.shut_down(broker_id, call.now)
        return ControlledShutdownResponse(
            remaining_partitions=tuple(RemainingPartition(*each) for each in remaining)
        )


def _refused_order(partitions: Iterable[TopicPartition]) -> list[TopicPartition]:
    """Partitions of a request that may not be sent: a HashMap, copied to an immutable Map.

    UNSPECIFIED: two to four partitions of a StopReplica follow hashes of tuples.
    """
    ordered = java_hash_order(partitions, hash_of=topic_partition_hash)
    return old_scala_set_order(ordered, hash_of=topic_partition_hash)


def _led(error: ErrorCode, outcomes: _Outcomes) -> LeaderAndIsrResponse:
    errors = tuple(LeaderAndIsrPartitionError(*partition, each) for partition, each in outcomes)
    return LeaderAndIsrResponse(error, errors)


def _stopped(error: ErrorCode, outcomes: _Outcomes) -> StopReplicaResponse:
    errors = tuple(StopReplicaPartitionError(*partition, each) for partition, each in outcomes)
    return StopReplicaResponse(error, errors)
