"""The changes of a cluster's metadata as plain data; the journal holds them in order.

`MetadataImage.apply` is the only place where they take effect.
"""

from msgspec import Struct


class TopicCreated(Struct, frozen=True, tag=True):
    """A topic was created with its partitions' replicas, the leader first.

    Args:
        topic_id: 16 bytes.
        replicas: Broker ids of each partition, in partition order.
        configs: Settings that differ from the broker's.
    """

    name: str
    topic_id: bytes
    replicas: tuple[tuple[int, ...], ...]
    configs: dict[str, str] = {}


class PartitionsAdded(Struct, frozen=True, tag=True):
    """Partitions were added behind the existing ones of a topic."""

    name: str
    replicas: tuple[tuple[int, ...], ...]


class TopicDeleted(Struct, frozen=True, tag=True):
    """A topic was deleted with all its records."""

    name: str


class ConfigsChanged(Struct, frozen=True, tag=True):
    """Settings of one resource were changed.

    Args:
        resource_type: Kafka's number: 2 topic, 4 broker, 8 broker logger, 16 client metrics, 32
            group. Source: ConfigResource.Type.
        name: Name of the resource; empty for the default of all brokers.
        values: New values; None resets a setting to its default.
    """

    resource_type: int
    name: str
    values: dict[str, str | None]


class LeaderElected(Struct, frozen=True, tag=True):
    """A partition got another leader, or none (-1), at a higher epoch.

    Args:
        isr: Broker ids of the ISR; None leaves it unchanged.
    """

    topic: str
    partition: int
    leader_id: int
    leader_epoch: int
    isr: tuple[int, ...] | None = None


class ReplicasAssigned(Struct, frozen=True, tag=True):
    """A partition was reassigned to other brokers, all of them in sync."""

    topic: str
    partition: int
    replicas: tuple[int, ...]


QuotaEntity = tuple[tuple[str, str | None], ...]
"""Whose a quota is: (type, name) pairs (`user`, `client-id`, `ip`), ordered by type; a name of None
means the default of its type."""


class QuotaSet(Struct, frozen=True, tag=True):
    """A quota of a client entity was set or removed.

    Args:
        entity: Whose it is.
        key: Name of the quota, for example `producer_byte_rate`.
        value: The limit; None removes the quota.
    """

    entity: QuotaEntity
    key: str
    value: float | None


class AclCreated(Struct, frozen=True, tag=True):
    """An ACL rule was created. Source: AclOperation, AclPermissionType, PatternType (numbers)."""

    resource_type: int
    resource_name: str
    pattern_type: int
    principal: str
    host: str
    operation: int
    permission_type: int


class AclDeleted(Struct, frozen=True, tag=True):
    """An ACL rule was deleted."""

    acl: AclCreated


class ScramSet(Struct, frozen=True, tag=True):
    """A user's SCRAM credential was set: derived keys, from which the password cannot be read.

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
    """A user's credential of one mechanism was removed."""

    user: str
    mechanism: int


class ProducerIdsReserved(Struct, frozen=True, tag=True):
    """Producer ids below `next_producer_id` may be in use."""

    next_producer_id: int


class FeatureSet(Struct, frozen=True, tag=True):
    """A feature, for example `transaction.version`, was finalized at a level."""

    name: str
    level: int


class BrokerStarted(Struct, frozen=True, tag=True):
    """A broker registered with a broker epoch above all earlier ones."""

    broker_id: int
    broker_epoch: int


class ClusterStarted(Struct, frozen=True, tag=True):
    """All brokers restarted on the kept data: leaders are elected again, at higher epochs.

    Args:
        broker_ids: Ids of the brokers that exist now.
    """

    broker_ids: tuple[int, ...]


class OffsetNodeWritten(Struct, frozen=True, tag=True):
    """ZooKeeper stored an offset of a version 0 commit; see `broker.metadata.zookeeper_offsets`.

    Args:
        path: Path of the node.
        data: The offset in decimal digits.
    """

    path: str
    data: str


class VersionReached(Struct, frozen=True, tag=True):
    """The image reached a version and start count; a rewritten journal has fewer entries."""

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
