"""Partitions as Metadata shows them, made once for all clients that ask alike.

A thousand consumers that start together ask for the same thousand partitions.

Source: kafka trunk, KRaftMetadataCache.scala, getPartitionMetadata.
"""

from typing import Final, NamedTuple

from msgspec.structs import replace

from coordinator_sim.broker.cluster_parts import ClusterParts
from coordinator_sim.broker.contract import Call
from coordinator_sim.broker.metadata.image import NO_LEADER, PartitionState, TopicState
from coordinator_sim.kafka.errors import ErrorCode
from coordinator_sim.messages.metadata import MetadataRequest, MetadataResponsePartition

_NAMES_LISTENER_SINCE: Final = 6
_HIDES_BROKERS_UNTIL: Final = 0

_Entries = tuple[MetadataResponsePartition, ...]


class _Seen(NamedTuple):
    """What a client sees of a broker: whether its listener has an address, and whether it lives."""

    is_reachable: bool
    is_alive: bool


class PartitionEntries:
    """The entries of topics, kept until the metadata or what is seen of a broker changes.

    Args:
        cluster: The parts of the cluster.
    """

    def __init__(self, cluster: ClusterParts) -> None:
        self._cluster = cluster
        self._image_version = -1
        self._kept: dict[tuple[str, str, bool, bool], tuple[dict[int, _Seen], _Entries]] = {}

    def of(self, call: Call[MetadataRequest], topic: TopicState) -> _Entries:
        """Return all partitions of a topic, each with its error.

        Args:
            call: The request; its listener decides which leaders are reachable.
            topic: The topic.
        """
        image_version = self._cluster.image.version
        if image_version != self._image_version:
            self._image_version = image_version
            self._kept.clear()
        listener, version = call.context.listener, call.context.api_version
        names_listener = version >= _NAMES_LISTENER_SINCE
        key = (topic.name, listener, names_listener, version <= _HIDES_BROKERS_UNTIL)
        kept = self._kept.get(key)
        if kept is not None and all(
            self._seen(broker_id, listener) == seen for broker_id, seen in kept[0].items()
        ):
            return kept[1]
        ids = {each for state in topic.partitions for each in (state.leader_id, *state.replicas)}
        seen = {broker_id: self._seen(broker_id, listener) for broker_id in sorted(ids)}
        entries = tuple(
            _entry(index, state, seen, version) for index, state in enumerate(topic.partitions)
        )
        self._kept[key] = seen, entries
        return entries

    def _seen(self, broker_id: int, listener: str) -> _Seen:
        is_reachable = self._cluster.endpoint(broker_id, listener) is not None
        return _Seen(is_reachable, self._cluster.leadership.is_living(broker_id))


def _entry(
    index: int, state: PartitionState, seen: dict[int, _Seen], version: int
) -> MetadataResponsePartition:
    leader = seen[state.leader_id]
    error = _leader_error(leader, version)
    entry = MetadataResponsePartition(
        error_code=error,
        partition_index=index,
        leader_id=state.leader_id if leader.is_reachable else NO_LEADER,
        leader_epoch=state.leader_epoch,
        replica_nodes=state.replicas,
        isr_nodes=state.isr,
        offline_replicas=tuple(each for each in state.replicas if not seen[each].is_reachable),
    )
    hides = version <= _HIDES_BROKERS_UNTIL and error is ErrorCode.NONE
    return _without_missing(entry) if hides else entry


def _leader_error(leader: _Seen, version: int) -> ErrorCode:
    """The partition's error when its leader is not reachable on the listener.

    From version 6 on, LISTENER_NOT_FOUND marks a living leader that lacks the listener.
    """
    if leader.is_reachable:
        return ErrorCode.NONE
    if version >= _NAMES_LISTENER_SINCE and leader.is_alive:
        return ErrorCode.LISTENER_NOT_FOUND
    return ErrorCode.LEADER_NOT_AVAILABLE


def _without_missing(entry: MetadataResponsePartition) -> MetadataResponsePartition:
    """Leave dead brokers out of an entry of version 0; answer REPLICA_NOT_AVAILABLE if any."""
    offline = entry.offline_replicas
    replicas = tuple(each for each in entry.replica_nodes if each not in offline)
    isr = tuple(each for each in entry.isr_nodes if each not in offline)
    if (replicas, isr) == (entry.replica_nodes, entry.isr_nodes):
        return entry
    error = ErrorCode.REPLICA_NOT_AVAILABLE
    return replace(entry, error_code=error, replica_nodes=replicas, isr_nodes=isr)
