"""The cluster's metadata, the same for all brokers; only `apply` changes it.

Replaying the journal from its beginning gives the same image.

Source: kafka trunk, metadata/.../image/MetadataImage.java (what belongs to it).
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Final, TypeVar, cast

from msgspec import Struct

from coordinator_sim.broker.metadata import changes
from coordinator_sim.broker.metadata.zookeeper_offsets import Nodes, put_node
from coordinator_sim.errors import InvariantViolation
from coordinator_sim.kafka.topic_names import has_metric_signs, metric_name


class Topic(Struct, frozen=True):
    """A topic: its id of 16 bytes and its number of partitions, and the racks of their replicas."""

    topic_id: bytes
    partition_count: int
    racks: tuple[tuple[str, ...], ...] = ()


class Topics:
    """Topics by name and by id.

    Attributes:
        is_open: Whether unknown names also count as topics, with any number of partitions; True
            at most until the first topic is put.
    """

    def __init__(self, *, is_open: bool = False) -> None:
        self.is_open = is_open
        self._by_name: dict[str, Topic] = {}
        self._names: dict[bytes, str] = {}

    def put(self, name: str, topic: Topic) -> None:
        """Add or replace a topic."""
        self.is_open = False
        self.remove(name)
        self._by_name[name] = topic
        self._names[topic.topic_id] = name

    def remove(self, name: str) -> Topic | None:
        """Remove a topic and return it, or None."""
        topic = self._by_name.pop(name, None)
        if topic is not None:
            self._names.pop(topic.topic_id, None)
        return topic

    def get(self, name: str) -> Topic | None:
        """The topic of a name; None when it is unknown."""
        return self._by_name.get(name)

    def exists(self, name: str) -> bool:
        """Whether there is a topic of a name."""
        return self.is_open or name in self._by_name

    def partitions(self, name: str) -> range | None:
        """The partitions of an existing topic; None if it may have any number."""
        topic = self._by_name.get(name)
        return None if topic is None else range(topic.partition_count)

    def id_of(self, name: str) -> bytes | None:
        """The id of a topic by its name; None when it is unknown."""
        topic = self._by_name.get(name)
        return None if topic is None else topic.topic_id

    def name_of(self, topic_id: bytes | None) -> str | None:
        """The name of a topic by its id; None when there is none."""
        return None if topic_id is None else self._names.get(topic_id)


def topic_id_for(name: str, incarnation: int = 0) -> bytes:
    """A deterministic id for a topic without a given one.

    Args:
        name: Name of the topic.
        incarnation: How often a topic of that name was created before.
    """
    return sha256(f"{incarnation}/{name}".encode()).digest()[:16]


NO_LEADER: Final = -1
C = TypeVar("C", bound=changes.Change)


class PartitionState(Struct):
    """One partition: its leader (-1 for none), replicas and ISR."""

    leader_id: int
    leader_epoch: int
    replicas: tuple[int, ...]
    isr: tuple[int, ...]


class TopicState(Struct):
    """A topic and its partitions, ordered by number."""

    name: str
    topic_id: bytes
    partitions: list[PartitionState] = []


@dataclass(slots=True)
class MetadataImage:
    """The metadata that every broker knows.

    Attributes:
        topics: Topics by name, in order of creation.
        topic_names: Topic names by id.
        alike: Names with a `.` or `_`, in order of creation, by their common name in metrics.
        configs: (resource type, name) -> settings that differ from the defaults.
        quotas: Quotas of each client entity, by key; see `QuotaSet`.
        acls: ACL rules as keys, in order of creation; the values have no meaning.
        scram: (user, mechanism) -> credential.
        next_producer_id: Producer ids below it may be in use.
        features: Finalized levels by feature name.
        broker_epochs: Broker epoch of each broker's latest start.
        start_count: How often the whole cluster restarted on kept data.
        offset_nodes: ZooKeeper's nodes that hold offsets of version 0 commits, by path.
        version: Number of changes so far, without those of ZooKeeper's nodes.
        acl_version: Number of changes of `acls`.
        configs_version: Number of changes of `configs`.
    """

    topics: dict[str, TopicState] = field(default_factory=dict)
    topic_names: dict[bytes, str] = field(default_factory=dict)
    alike: dict[str, dict[str, None]] = field(default_factory=dict)
    configs: dict[tuple[int, str], dict[str, str]] = field(default_factory=dict)
    quotas: dict[changes.QuotaEntity, dict[str, float]] = field(default_factory=dict)
    acls: dict[changes.AclCreated, None] = field(default_factory=dict)
    scram: dict[tuple[str, int], changes.ScramSet] = field(default_factory=dict)
    next_producer_id: int = 0
    features: dict[str, int] = field(default_factory=dict)
    broker_epochs: dict[int, int] = field(default_factory=dict)
    start_count: int = 0
    offset_nodes: Nodes = field(default_factory=dict)
    version: int = 0
    acl_version: int = 0
    configs_version: int = field(default=0, compare=False)

    def apply(self, change: changes.Change) -> None:
        """Apply one change.

        Raises:
            InvariantViolation: the change is about a missing topic or partition, or creates an
                existing topic; the image is unchanged.
        """
        _APPLIED[type(change)](self, change)
        if type(change) is not changes.OffsetNodeWritten:
            self.version += 1

    def partition(self, topic: str, index: int) -> PartitionState | None:
        """A partition's state; None when the partition does not exist."""
        state = self.topics.get(topic)
        if state is None or not 0 <= index < len(state.partitions):
            return None
        return state.partitions[index]

    def topic(self, name: str) -> TopicState:
        """The topic of a name.

        Raises:
            InvariantViolation: there is none.
        """
        state = self.topics.get(name)
        if state is None:
            raise InvariantViolation(f"a change of topic {name!r}, which there is not")
        return state

    def configs_of(self, resource_type: int, name: str) -> dict[str, str]:
        """The settings of a resource that differ from the defaults."""
        return self.configs.get((resource_type, name), {})


def _create_topic(image: MetadataImage, change: changes.TopicCreated) -> None:
    if change.name in image.topics:
        raise InvariantViolation(f"topic {change.name!r} is created twice")
    state = TopicState(change.name, change.topic_id)
    image.topics[change.name] = state
    image.topic_names[change.topic_id] = change.name
    if has_metric_signs(change.name):
        image.alike.setdefault(metric_name(change.name), {})[change.name] = None
    _add(state, change.replicas)
    if change.configs:
        image.configs[TOPIC_RESOURCE, change.name] = dict(change.configs)
        image.configs_version += 1


def _add_partitions(image: MetadataImage, change: changes.PartitionsAdded) -> None:
    _add(image.topic(change.name), change.replicas)


def _add(state: TopicState, assignments: tuple[tuple[int, ...], ...]) -> None:
    for replicas in assignments:
        leader_id = replicas[0] if replicas else NO_LEADER
        state.partitions.append(PartitionState(leader_id, 0, replicas, replicas))


def _delete_topic(image: MetadataImage, change: changes.TopicDeleted) -> None:
    state = image.topic(change.name)
    del image.topics[change.name]
    del image.topic_names[state.topic_id]
    if has_metric_signs(change.name):
        alike = image.alike[metric_name(change.name)]
        del alike[change.name]
        if not alike:
            del image.alike[metric_name(change.name)]
    if image.configs.pop((TOPIC_RESOURCE, change.name), None) is not None:
        image.configs_version += 1


def _change_configs(image: MetadataImage, change: changes.ConfigsChanged) -> None:
    place = (change.resource_type, change.name)
    values = image.configs.setdefault(place, {})
    for name, value in change.values.items():
        if value is None:
            values.pop(name, None)
        else:
            values[name] = value
    if not values:
        del image.configs[place]
    image.configs_version += 1


def _partition(
    image: MetadataImage, change: changes.LeaderElected | changes.ReplicasAssigned
) -> PartitionState:
    state = image.partition(change.topic, change.partition)
    if state is None:
        raise InvariantViolation(
            f"a change of {change.topic}-{change.partition}, which there is not"
        )
    return state


def _elect(image: MetadataImage, change: changes.LeaderElected) -> None:
    partition = _partition(image, change)
    partition.leader_id = change.leader_id
    partition.leader_epoch = change.leader_epoch
    if change.isr is not None:
        partition.isr = change.isr


def _assign(image: MetadataImage, change: changes.ReplicasAssigned) -> None:
    partition = _partition(image, change)
    partition.replicas = change.replicas
    partition.isr = change.replicas


def _set_quota(image: MetadataImage, change: changes.QuotaSet) -> None:
    quotas = image.quotas.setdefault(change.entity, {})
    if change.value is None:
        quotas.pop(change.key, None)
    else:
        quotas[change.key] = change.value
    if not quotas:
        del image.quotas[change.entity]


def _create_acl(image: MetadataImage, change: changes.AclCreated) -> None:
    image.acls[change] = None
    image.acl_version += 1


def _delete_acl(image: MetadataImage, change: changes.AclDeleted) -> None:
    image.acls.pop(change.acl, None)
    image.acl_version += 1


def _set_scram(image: MetadataImage, change: changes.ScramSet) -> None:
    image.scram[change.user, change.mechanism] = change


def _remove_scram(image: MetadataImage, change: changes.ScramRemoved) -> None:
    image.scram.pop((change.user, change.mechanism), None)


def _reserve_producer_ids(image: MetadataImage, change: changes.ProducerIdsReserved) -> None:
    image.next_producer_id = max(image.next_producer_id, change.next_producer_id)


def _set_feature(image: MetadataImage, change: changes.FeatureSet) -> None:
    image.features[change.name] = change.level


def _start_broker(image: MetadataImage, change: changes.BrokerStarted) -> None:
    image.broker_epochs[change.broker_id] = change.broker_epoch


def _start_cluster(image: MetadataImage, change: changes.ClusterStarted) -> None:
    image.start_count += 1
    epoch = max(image.broker_epochs.values(), default=0)
    for place, broker_id in enumerate(change.broker_ids):
        image.broker_epochs[broker_id] = epoch + place + 1
    for topic in image.topics.values():
        for partition in topic.partitions:
            there = tuple(each for each in partition.replicas if each in change.broker_ids)
            if partition.leader_id not in there:
                partition.leader_id = there[0] if there else NO_LEADER
            partition.leader_epoch += 1
            partition.isr = there or partition.isr


def _write_node(image: MetadataImage, change: changes.OffsetNodeWritten) -> None:
    put_node(image.offset_nodes, change.path, change.data)


def _reach(image: MetadataImage, change: changes.VersionReached) -> None:
    image.version = change.version - 1
    image.start_count = change.start_count


TOPIC_RESOURCE: Final = 2
"""A topic among the resources that have settings. Source: ConfigResource.Type."""
BROKER_RESOURCE: Final = 4
GROUP_RESOURCE: Final = 32

_Apply = Callable[[MetadataImage, changes.Change], None]


def _of(apply: Callable[[MetadataImage, C], None]) -> _Apply:
    """Drop the kind of change from the type; the table looks functions up by kind."""
    return cast("_Apply", apply)


_APPLIED: Final[dict[type, _Apply]] = {
    changes.TopicCreated: _of(_create_topic),
    changes.PartitionsAdded: _of(_add_partitions),
    changes.TopicDeleted: _of(_delete_topic),
    changes.ConfigsChanged: _of(_change_configs),
    changes.LeaderElected: _of(_elect),
    changes.ReplicasAssigned: _of(_assign),
    changes.QuotaSet: _of(_set_quota),
    changes.AclCreated: _of(_create_acl),
    changes.AclDeleted: _of(_delete_acl),
    changes.ScramSet: _of(_set_scram),
    changes.ScramRemoved: _of(_remove_scram),
    changes.ProducerIdsReserved: _of(_reserve_producer_ids),
    changes.FeatureSet: _of(_set_feature),
    changes.BrokerStarted: _of(_start_broker),
    changes.ClusterStarted: _of(_start_cluster),
    changes.OffsetNodeWritten: _of(_write_node),
    changes.VersionReached: _of(_reach),
}


def changes_of(image: MetadataImage) -> Iterator[changes.Change]:
    """The changes that turn an empty image into this one."""
    for topic in image.topics.values():
        yield from _topic(topic)
    for (resource_type, name), values in image.configs.items():
        yield changes.ConfigsChanged(resource_type, name, dict(values))
    for entity, quotas in image.quotas.items():
        for key, value in quotas.items():
            yield changes.QuotaSet(entity, key, value)
    yield from image.acls
    yield from image.scram.values()
    if image.next_producer_id:
        yield changes.ProducerIdsReserved(image.next_producer_id)
    for feature, level in image.features.items():
        yield changes.FeatureSet(feature, level)
    for broker_id, epoch in image.broker_epochs.items():
        yield changes.BrokerStarted(broker_id, epoch)
    for path, data in image.offset_nodes.items():
        if data is not None:
            yield changes.OffsetNodeWritten(path, data)
    yield changes.VersionReached(image.version, image.start_count)


def _topic(topic: TopicState) -> Iterator[changes.Change]:
    replicas = tuple(partition.replicas for partition in topic.partitions)
    yield changes.TopicCreated(topic.name, topic.topic_id, replicas)
    for number, partition in enumerate(topic.partitions):
        first = partition.replicas[0] if partition.replicas else None
        if (partition.leader_id, partition.leader_epoch) == (first, 0) and (
            partition.isr == partition.replicas
        ):
            continue
        yield changes.LeaderElected(
            topic.name, number, partition.leader_id, partition.leader_epoch, partition.isr
        )
