"""How a served cluster is set up."""

from typing import Final

from msgspec import Struct

from coordinator_sim.coordinator.contract import CoordinatorConfig
from coordinator_sim.coordinator.properties import properties_of
from coordinator_sim.mini_broker.plain import PlainUsers
from coordinator_sim.protocol.profiles import DEFAULT_PROFILE, Profile

PROPERTY_FIELDS: Final = {
    "auto.create.topics.enable": "auto_create_topics",
    "num.partitions": "num_partitions",
    "default.replication.factor": "default_replication_factor",
    "offsets.topic.replication.factor": "internal_replication_factor",
    "transaction.state.log.num.partitions": "transaction_partitions",
}
"""Properties of a broker that a cluster keeps in fields of its own."""
DEFAULT_CLUSTER_ID = "4L6g3nShT-eMCtK--X86sw"


class Endpoint(Struct, frozen=True, gc=False):
    """Where clients reach a broker on one listener."""

    host: str
    port: int


class ClusterSettings(Struct, frozen=True, kw_only=True):
    """A cluster as it starts. Names with a dot in the explanations are the broker's settings.

    Args:
        profile: The Kafka that all its brokers are.
        broker_ids: Of its brokers, in ascending order.
        seed: Of member ids, topic ids and whatever else is drawn.
        coordinator: Settings of every broker's group coordinator; `broker_id` is filled in.
        auto_create_topics: `auto.create.topics.enable`.
        num_partitions: `num.partitions`.
        default_replication_factor: `default.replication.factor`.
        transaction_partitions: `transaction.state.log.num.partitions`.
        given: Texts of `server.properties` by name, as DescribeConfigs shows them.
        users: Whom SASL lets in by a password, beside those that `given` names.
        internal_replication_factor: `offsets.topic.replication.factor` and that of transactions;
            at most as many as there are brokers.
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
    internal_replication_factor: int = 3
    given: dict[str, str] = {}
    users: PlainUsers = PlainUsers({})

    def properties(self) -> dict[str, str]:
        """What the fields say otherwise than Kafka, by the names of its properties."""
        usual = ClusterSettings()
        found = properties_of(self.coordinator)
        for name, field in PROPERTY_FIELDS.items():
            value = getattr(self, field)
            if value != getattr(usual, field):
                found[name] = str(value).lower()
        return found
