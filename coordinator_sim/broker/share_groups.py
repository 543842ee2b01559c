"""All of a cluster beside the group coordinators that share groups need, as one family of APIs.

Share coordinators keep the state of share partitions, which their leaders work with; group
coordinators have it begun and deleted.

Source: kafka 4.3.1, BrokerServer.scala (what is made of what), BrokerMetadataPublisher.scala.
"""

from coordinator_sim.broker.contract import Handlers, Instants
from coordinator_sim.broker.draws import chance
from coordinator_sim.broker.share_coordinator.family import ClusterParts as CoordinatedParts
from coordinator_sim.broker.share_coordinator.family import ShareCoordination
from coordinator_sim.broker.shares.family import ClusterParts as SharedParts
from coordinator_sim.broker.shares.family import Shares
from coordinator_sim.coordinator.share.persister import PersisterCall


class ClusterParts(CoordinatedParts, SharedParts):
    """The parts of a cluster that are used; see `Cluster`."""


class ShareGroups:
    """What share groups need.

    Args:
        cluster: The cluster; its logs and groups must exist already.

    Attributes:
        coordination: The share coordinators.
        shares: The share partitions.
    """

    __slots__ = ("_events", "_is_known", "coordination", "shares")

    def __init__(self, cluster: ClusterParts) -> None:
        settings = cluster.settings
        self._events = cluster.cluster_events
        self._is_known = settings.profile.share_groups
        self.coordination = ShareCoordination(cluster, chance(settings.seed))
        self.shares = Shares(cluster, self.coordination.persister)

    def handlers(self) -> Handlers:
        """The handlers of all APIs; there are none where Kafka has no share groups."""
        if not self._is_known:
            return {}
        return {**self.coordination.handlers(), **self.shares.handlers()}

    # -- what happens ----------------------------------------------------------------------

    def listen(self) -> None:
        """Subscribe to the events of partitions and connections."""
        self.coordination.listen(self._events)
        self.shares.listen()

    def carry_out(self, broker_id: int, calls: tuple[PersisterCall, ...]) -> None:
        """Ask the share coordinators for what a group coordinator wants of them."""
        self.shares.carry_out(broker_id, calls)

    def features_changed(self) -> None:
        """Features have other levels."""
        self.shares.features_changed()

    def forget_broker(self, broker_id: int) -> None:
        """Drop what a broker knew whose process has ended."""
        self.shares.forget_broker(broker_id)

    # -- time ------------------------------------------------------------------------------

    def expire(self, now: Instants) -> None:
        """Run what is due."""
        self.coordination.expire(now)
        self.shares.expire(now)

    def next_group_deadline_ms(self) -> int | None:
        """The earliest deadline on the group clock, or a little before."""
        return _earlier(
            self.coordination.next_group_deadline_ms(), self.shares.next_group_deadline_ms()
        )

    def next_wall_deadline_ms(self) -> int | None:
        """The earliest deadline on the wall clock."""
        return _earlier(
            self.coordination.next_wall_deadline_ms(), self.shares.next_wall_deadline_ms()
        )


def _earlier(one_ms: int | None, other_ms: int | None) -> int | None:
    if one_ms is None or other_ms is None:
        return other_ms if one_ms is None else one_ms
    return min(one_ms, other_ms)
