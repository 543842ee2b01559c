"""The log that a broker reads and writes for a partition, or the error why it may not.

Replicas are labels: all brokers of a partition share one log, and the leader's id decides which
of them may read or write.

Source: kafka trunk, ReplicaManager.getPartitionOrError; Partition.getLocalLog,
checkCurrentLeaderEpoch.
"""

from collections.abc import Callable
from functools import partial
from typing import Final, TypeVar

from msgspec import Struct

from coordinator_sim.broker.metadata.image import MetadataImage, PartitionState
from coordinator_sim.broker.purgatory import Place
from coordinator_sim.broker.settings import Endpoint
from coordinator_sim.kafka.errors import ErrorCode
from coordinator_sim.log.format.steps import Steps
from coordinator_sim.log.partition_log import PartitionLog

NO_EPOCH: Final = -1
"""The leader epoch of a request that gives none."""
T = TypeVar("T")

FindLog = Callable[[str, int], PartitionLog | None]
"""The log of a partition; None while it is offline."""
StorageFailed = Callable[[Place, OSError], None]
"""Called when a disk failed: the partition's leader resigns."""
FindEndpoint = Callable[[int, str], Endpoint | None]
"""Finds the address of a living broker on a listener; None without one."""
WantedInSync = Callable[[str, int], int]
"""How many in-sync replicas acks=-1 needs, by topic and number of replicas of the partition."""


class LeaderTags(Struct, frozen=True, gc=False):
    """The leader of a partition, as responses of a wrong broker tell it (KIP-951).

    Args:
        leader_id: Id of the leader; -1 when there is no such partition.
        leader_epoch: Epoch of the leader; -1 when there is no such partition.
        endpoint: Address of the leader; None when it is not alive.
    """

    leader_id: int = -1
    leader_epoch: int = -1
    endpoint: Endpoint | None = None


class ReplicaManager:
    """The partitions of a cluster as its brokers host them.

    Args:
        image: The metadata, which names the leaders.
        find_log: See `FindLog`.
        endpoint: See `FindEndpoint`.
        storage_failed: See `StorageFailed`.
        wanted_in_sync: See `WantedInSync`.
        trouble: Gets one line for each batch refused because of the server's own bounds.

    Attributes:
        trouble: See above.
        append_failure: Injected error of every append; normally NONE.
        before_append: Called before a producer's records are appended; normally None.
    """

    def __init__(
        self,
        image: MetadataImage,
        find_log: FindLog,
        *,
        endpoint: FindEndpoint,
        storage_failed: StorageFailed,
        wanted_in_sync: WantedInSync,
        trouble: Callable[[str], None],
    ) -> None:
        self.image = image
        self._find_log = find_log
        self._endpoint = endpoint
        self._storage_failed = storage_failed
        self._wanted_in_sync = wanted_in_sync
        self.trouble = trouble
        self.append_failure = ErrorCode.NONE
        self.before_append: Callable[[Place], None] | None = None

    def hosted(self, broker_id: int, place: Place) -> PartitionLog | ErrorCode:
        """The log of a partition of which the broker has a replica, or the error."""
        state = self.image.partition(*place)
        if state is None:
            return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        if broker_id not in state.replicas:
            return ErrorCode.NOT_LEADER_OR_FOLLOWER
        log = self.attempt(place, partial(self._find_log, *place))
        return ErrorCode.KAFKA_STORAGE_ERROR if log is None else log

    def local_log(
        self, broker_id: int, place: Place, epoch: int = NO_EPOCH, *, leader_only: bool = True
    ) -> PartitionLog | ErrorCode:
        """The log for a request that gives a leader epoch, or the error.

        Args:
            broker_id: The broker that the request reached.
            place: The partition.
            epoch: The leader epoch that the request knows; NO_EPOCH to leave it unchecked.
            leader_only: False if any replica may serve the request.
        """
        log = self.hosted(broker_id, place)
        state = self.image.partition(*place)
        if isinstance(log, ErrorCode) or state is None:
            return log
        error = epoch_error(state, epoch)
        if error is ErrorCode.NONE and leader_only and state.leader_id != broker_id:
            error = ErrorCode.NOT_LEADER_OR_FOLLOWER
        return log if error is ErrorCode.NONE else error

    def attempt(self, place: Place, act: Callable[[], T]) -> T | ErrorCode:
        """Call an operation of the partition's log; KAFKA_STORAGE_ERROR when the disk fails.

        `attempt` and `attempt_in_steps` alone turn a disk failure into an error of the protocol.
        """
        try:
            return act()
        except OSError as error:
            self._storage_failed(place, error)
            return ErrorCode.KAFKA_STORAGE_ERROR

    def attempt_in_steps(self, place: Place, steps: Steps[T]) -> Steps[T | ErrorCode]:
        """Run long work in steps; KAFKA_STORAGE_ERROR when the disk fails, as in `attempt`."""
        try:
            return (yield from steps)
        except OSError as error:
            self._storage_failed(place, error)
            return ErrorCode.KAFKA_STORAGE_ERROR

    def has_enough_replicas(self, place: Place) -> bool:
        """Whether the ISR has `min.insync.replicas` members (`WantedInSync`)."""
        state = self.image.partition(*place)
        if state is None:
            return False
        return len(state.isr) >= self._wanted_in_sync(place[0], len(state.replicas))

    def leader_tags(self, place: Place, listener: str) -> LeaderTags:
        """The leader of a partition, with its address on a listener."""
        state = self.image.partition(*place)
        if state is None:
            return LeaderTags()
        endpoint = self._endpoint(state.leader_id, listener)
        return LeaderTags(state.leader_id, state.leader_epoch, endpoint)


def epoch_error(state: PartitionState, epoch: int) -> ErrorCode:
    """The error of the leader epoch that a request gives."""
    if epoch in (NO_EPOCH, state.leader_epoch):
        return ErrorCode.NONE
    if epoch < state.leader_epoch:
        return ErrorCode.FENCED_LEADER_EPOCH
    return ErrorCode.UNKNOWN_LEADER_EPOCH
