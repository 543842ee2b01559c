"""Settings of a served cluster."""

from typing import Final

from msgspec import Struct

from coordinator_sim.broker.security.plain import PlainUsers
from coordinator_sim.coordinator.contract import CoordinatorConfig
from coordinator_sim.coordinator.properties import properties_of
from coordinator_sim.kafka.profiles import DEFAULT_PROFILE, Profile

PROPERTY_FIELDS: Final = {
    "auto.create.topics.enable": "auto_create_topics",
    "num.partitions": "num_partitions",
    "default.replication.factor": "default_replication_factor",
    "offsets.topic.replication.factor": "internal_replication_factor",
    "transaction.state.log.num.partitions": "transaction_partitions",
    "share.coordinator.state.topic.num.partitions": "share_state_partitions",
    "share.coordinator.state.topic.replication.factor": "share_state_replication_factor",
    "share.coordinator.state.topic.min.isr": "share_state_min_isr",
    "share.coordinator.state.topic.segment.bytes": "share_state_segment_bytes",
}
"""Broker properties that have a field of their own in `ClusterSettings`."""
DEFAULT_CLUSTER_ID = "4L6g3nShT-eMCtK--X86sw"


class Endpoint(Struct, frozen=True, gc=False):
    """Address of a broker on one listener."""

    host: str
    port: int


class ClusterSettings(Struct, frozen=True, kw_only=True):
    """Settings that a cluster starts with. Names with a dot below are broker settings.

    Args:
        profile: Kafka version of all brokers.
        broker_ids: Ids of the brokers, in ascending order.
        seed: Seed of member ids, topic ids and all other random draws.
        coordinator: Settings of every broker's group coordinator; `broker_id` is filled in.
        auto_create_topics: `auto.create.topics.enable`.
        num_partitions: `num.partitions`.
        default_replication_factor: `default.replication.factor`.
        transaction_partitions: `transaction.state.log.num.partitions`.
        share_state_partitions: `share.coordinator.state.topic.num.partitions`.
        share_state_replication_factor: `share.coordinator.state.topic.replication.factor`; capped
            at the number of living brokers.
        share_state_min_isr: `share.coordinator.state.topic.min.isr`.
        share_state_segment_bytes: `share.coordinator.state.topic.segment.bytes`.
        given: Texts of `server.properties` by name, as DescribeConfigs shows them.
        users: Users that may log in by SASL with a password, beside those that `given` names.
        internal_replication_factor: `offsets.topic.replication.factor`, also used for the
            transactions topic; capped at the number of living brokers.
        features: Levels of features in a new cluster, where not those of the profile's default.
        load_ms: Group time that a coordinator takes to load a partition with records of offsets or
            of share groups' state, in ms; 0 loads within the election.
    """

    profile: Profile = DEFAULT_PROFILE
    broker_ids: tuple[int, ...] = (1,)
    cluster_id: str = DEFAULT_CLUSTER_ID
    seed: int = 0
    coordinator: CoordinatorConfig = CoordinatorConfig()
    auto_create_topics: bool = True
    num_partitions: int = 1
    default_replication_factor: int = 1
    transaction_partitions: int = 50
    share_state_partitions: int = 50
    share_state_replication_factor: int = 3
    share_state_min_isr: int = 2
    share_state_segment_bytes: int = 104_857_600
    internal_replication_factor: int = 3
    features: dict[str, int] = {}
    load_ms: int = 0
    given: dict[str, str] = {}
    users: PlainUsers = PlainUsers({})

    def properties(self) -> dict[str, str]:
        """The fields that differ from the defaults, by Kafka's property names."""
        usual = ClusterSettings()
        found = properties_of(self.coordinator)
        for name, field in PROPERTY_FIELDS.items():
            value = getattr(self, field)
            if value != getattr(usual, field):
                found[name] = str(value).lower()
        return found
