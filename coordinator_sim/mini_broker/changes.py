"""What can change in a cluster's metadata, as plain data: the journal holds these, in order.

`ClusterImage.apply` is the only place where they take effect.
"""

from msgspec import Struct


class TopicCreated(Struct, frozen=True, tag=True):
    """A topic with its partitions' replicas, the leader first.

    Args:
        topic_id: 16 bytes.
        replicas: Broker ids of each partition, in partition order.
        configs: Those that differ from the broker's.
    """

    name: str
    topic_id: bytes
    replicas: tuple[tuple[int, ...], ...]
    configs: dict[str, str] = {}


class PartitionsAdded(Struct, frozen=True, tag=True):
    """More partitions of a topic, behind those that it has."""

    name: str
    replicas: tuple[tuple[int, ...], ...]


class TopicDeleted(Struct, frozen=True, tag=True):
    """A topic is gone with all its records."""

    name: str


class ConfigsChanged(Struct, frozen=True, tag=True):
    """Settings of one resource.

    Args:
        resource_type: Kafka's number: 2 topic, 4 broker, 8 broker logger, 16 client metrics, 32
            group. Source: ConfigResource.Type.
        name: Of the resource; empty for the default of all brokers.
        values: New values; None takes a setting back to its default.
    """

    resource_type: int
    name: str
    values: dict[str, str | None]


class LeaderElected(Struct, frozen=True, tag=True):
    """A partition has another leader, or none (-1), at a higher epoch.

    Args:
        isr: Broker ids in sync, None to leave them as they are.
    """

    topic: str
    partition: int
    leader_id: int
    leader_epoch: int
    isr: tuple[int, ...] | None = None


class ReplicasAssigned(Struct, frozen=True, tag=True):
    """A partition's replicas are other brokers now, all of them in sync."""

    topic: str
    partition: int
    replicas: tuple[int, ...]


class QuotaSet(Struct, frozen=True, tag=True):
    """A quota of a client entity.

    Args:
        entity: Its parts by type (`user`, `client-id`, `ip`), in the order of types; a part
            without a name is the default of its type.
        key: As `producer_byte_rate`.
        value: None takes it away.
    """

    entity: tuple[tuple[str, str | None], ...]
    key: str
    value: float | None


class AclCreated(Struct, frozen=True, tag=True):
    """A rule by Kafka's numbers. Source: AclOperation, AclPermissionType, PatternType."""

    resource_type: int
    resource_name: str
    pattern_type: int
    principal: str
    host: str
    operation: int
    permission_type: int


class AclDeleted(Struct, frozen=True, tag=True):
    """That rule is gone."""

    acl: AclCreated


class ScramSet(Struct, frozen=True, tag=True):
    """What a broker keeps of a user's password: nothing it could be read from.

    Args:
        mechanism: 1 SCRAM-SHA-256, 2 SCRAM-SHA-512. Source: ScramMechanism.
    """

    user: str
    mechanism: int
    iterations: int
    salt: bytes
    stored_key: bytes
    server_key: bytes

    def __repr__(self) -> str:
        return f"ScramSet(user={self.user!r}, mechanism={self.mechanism}, ...)"


class ScramRemoved(Struct, frozen=True, tag=True):
    """A user has that mechanism no more."""

    user: str
    mechanism: int


class ProducerIdsReserved(Struct, frozen=True, tag=True):
    """Producer ids below `next_producer_id` may be in use."""

    next_producer_id: int


class FeatureSet(Struct, frozen=True, tag=True):
    """The finalized level of a feature, as `transaction.version`."""

    name: str
    level: int


class BrokerStarted(Struct, frozen=True, tag=True):
    """A broker registered, with an epoch above all before."""

    broker_id: int
    broker_epoch: int


class ClusterStarted(Struct, frozen=True, tag=True):
    """All brokers began anew, and found what was kept: leaders again, at higher epochs.

    Args:
        broker_ids: Of those that there are now.
    """

    broker_ids: tuple[int, ...]


class OffsetNodeWritten(Struct, frozen=True, tag=True):
    """ZooKeeper keeps an offset of version 0; see `broker.zookeeper_offsets`.

    Args:
        path: Of the node.
        data: The offset in decimal digits.
    """

    path: str
    data: str


class VersionReached(Struct, frozen=True, tag=True):
    """As many changes went before, though a rewritten journal says them in fewer words."""

    version: int
    start_count: int


Change = (
    TopicCreated
    | PartitionsAdded
    | TopicDeleted
    | ConfigsChanged
    | LeaderElected
    | ReplicasAssigned
    | QuotaSet
    | AclCreated
    | AclDeleted
    | ScramSet
    | ScramRemoved
    | ProducerIdsReserved
    | FeatureSet
    | BrokerStarted
    | ClusterStarted
    | OffsetNodeWritten
    | VersionReached
)
"""One entry of the journal."""
