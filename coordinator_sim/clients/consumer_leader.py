"""What a consumer does as the group's leader, and the subscription it compares with.

Source: kafka trunk, ConsumerCoordinator.java, onLeaderElected, updateGroupSubscription,
validateCooperativeAssignment, MetadataSnapshot; SubscriptionState.java.
"""

from collections.abc import Mapping, Sequence
from functools import partial

from coordinator_sim.assignors.contract import (
    AssignmentFailed,
    AssignorMember,
    ConsumerAssignor,
    RebalanceProtocol,
)
from coordinator_sim.clients.cluster_metadata import TopicSnapshot
from coordinator_sim.clients.config import ConsumerConfig
from coordinator_sim.clients.exceptions import ILLEGAL_STATE
from coordinator_sim.clients.generation import MemberState
from coordinator_sim.clients.network import FOREVER, Future
from coordinator_sim.clients.offset_commits import OffsetCommits
from coordinator_sim.clients.port_core import Continuation, Wait
from coordinator_sim.errors import ConfigError, WireFormatError
from coordinator_sim.protocol.embedded import ConsumerAssignment
from coordinator_sim.protocol.messages import JoinGroupResponse
from coordinator_sim.protocol.resources import TopicPartition
from coordinator_sim.wire.consumer_protocol import decode_subscription, encode_assignment

_COOPERATIVE_STICKY = "cooperative-sticky"

SavedWait = tuple[Wait, int, Future | None, Continuation | None]
"""What the application's thread waited for before the election."""


class ConsumerLeader(OffsetCommits):
    """Subscription and assignment as data, and the leader's duties."""

    __slots__ = (
        "_assigned",
        "_assignment_snapshot",
        "_assignors",
        "_consumer_config",
        "_group_topics",
        "_is_leader",
        "_metadata_snapshot",
        "_metadata_snapshot_version",
        "_protocol",
        "_subscription",
    )

    def _init_leader(
        self,
        config: ConsumerConfig,
        assignors: tuple[ConsumerAssignor, ...],
        protocol: RebalanceProtocol,
    ) -> None:
        self._consumer_config = config
        self._assignors = assignors
        self._protocol = protocol
        self._subscription: tuple[str, ...] = ()
        self._group_topics: tuple[str, ...] = ()
        self._assigned: dict[TopicPartition, int | None] = {}
        self._is_leader = False
        self._assignment_snapshot: TopicSnapshot | None = None
        self._metadata_snapshot: TopicSnapshot = {}
        self._metadata_snapshot_version = -1

    def _is_group_subscribed(self) -> bool:
        return bool(self._subscription)

    def _is_rebalancing(self) -> bool:
        return self._state in (MemberState.PREPARING_REBALANCE, MemberState.COMPLETING_REBALANCE)

    def _assignor(self, name: str | None) -> ConsumerAssignor | None:
        return next((assignor for assignor in self._assignors if assignor.name == name), None)

    def _set_subscription(self, topics: Sequence[str]) -> None:
        subscription = tuple(sorted(dict.fromkeys(topics)))
        if subscription != self._subscription:
            self._subscription = subscription
            self._want_metadata()

    def _drop(self, partitions: Sequence[TopicPartition]) -> None:
        for partition in partitions:
            self._assigned.pop(partition, None)

    # Metadata.

    def _want_metadata(self) -> None:
        """Follow the topics of the subscription, and as the leader those of the group."""
        wanted = tuple(sorted(dict.fromkeys((*self._subscription, *self._group_topics))))
        known = self._metadata.wanted_topics or ()
        self._metadata.wanted_topics = wanted
        if any(topic not in known for topic in wanted):
            self._metadata.request_update()

    def _update_metadata_snapshot(self) -> None:
        metadata = self._metadata
        if metadata.version > self._metadata_snapshot_version:
            self._metadata_snapshot_version = metadata.version
            self._metadata_snapshot = metadata.snapshot(
                metadata.wanted_topics or (), with_racks=bool(self._consumer_config.client_rack)
            )

    def _is_assignment_outdated(self) -> bool:
        """Whether this leader's assignment was computed from other metadata than it has now."""
        snapshot = self._assignment_snapshot
        return snapshot is not None and snapshot != self._metadata_snapshot

    # Election.

    def _stop_leading(self) -> None:
        self._is_leader = False
        self._group_topics = ()
        self._want_metadata()

    def _on_leader_elected(self, response: JoinGroupResponse, future: Future, now_ms: int) -> None:
        """Assign at once, or first wait without limit for metadata of the group's topics.

        The application's thread is inside its poll then; whatever that waited for, it waits for
        again afterwards.
        """
        try:
            members = self._read_members(response)
        except WireFormatError:
            future.fail(ILLEGAL_STATE)
            return
        topics = dict.fromkeys(t for m in members for t in m.subscription.topics)
        self._group_topics = tuple(sorted(topics))
        self._want_metadata()
        if self._metadata.is_fresh(now_ms):
            self._assign_as_leader(response, future, now_ms)
            return
        self._is_electing = True
        saved = (self._wait, self._wait_until_ms, self._wait_future, self._resume)
        then = partial(self._leader_metadata_ready, response, future, saved)
        self._block_for_metadata(FOREVER, then)

    def _leader_metadata_ready(
        self, response: JoinGroupResponse, future: Future, saved: SavedWait, now_ms: int
    ) -> None:
        self._is_electing = False
        self._wait, self._wait_until_ms, self._wait_future, self._resume = saved
        self._assign_as_leader(response, future, now_ms)
        self._activity = True

    def _read_members(self, response: JoinGroupResponse) -> list[AssignorMember]:
        return [
            AssignorMember(
                member_id=member.member_id,
                subscription=decode_subscription(member.metadata),
                group_instance_id=member.group_instance_id,
            )
            for member in response.members
        ]

    def _assign_as_leader(self, response: JoinGroupResponse, future: Future, now_ms: int) -> None:
        self._update_metadata_snapshot()
        self._is_leader = True
        if response.skip_assignment:
            # A static leader returned: everyone keeps what the broker has stored.
            self._assignment_snapshot = self._metadata_snapshot
            self._send_sync_group({}, future, now_ms)
            return
        assignor = self._assignor(response.protocol_name)
        if assignor is None:
            future.fail(ILLEGAL_STATE)
            return
        members = self._read_members(response)
        try:
            assignments = assignor.assign(self._topic_racks(), members)
        except AssignmentFailed as error:
            future.fail(type(error).__name__)
            return
        if self._is_unsafe_handover(assignor, members, assignments):
            future.fail(ILLEGAL_STATE)
            return
        self._assignment_snapshot = self._metadata_snapshot
        blobs = {
            member_id: encode_assignment(ConsumerAssignment(partitions=tuple(partitions)))
            for member_id, partitions in assignments.items()
        }
        self._send_sync_group(blobs, future, now_ms)

    def _topic_racks(self) -> dict[str, tuple[tuple[str, ...], ...]]:
        topics = self._metadata.topics
        return {
            topic: tuple(partition.replica_racks for partition in topics[topic].partitions)
            for topic in self._group_topics
            if topic in topics
        }

    def _is_unsafe_handover(
        self,
        assignor: ConsumerAssignor,
        members: Sequence[AssignorMember],
        assignments: Mapping[str, Sequence[TopicPartition]],
    ) -> bool:
        """Whether a cooperative assignment gives a partition that another member still owns.

        The built-in cooperative assignor is exempt: it has looked at the owners' generations.

        Source: kafka trunk, ConsumerCoordinator.validateCooperativeAssignment.
        """
        if self._protocol is not RebalanceProtocol.COOPERATIVE:
            return False
        if assignor.name == _COOPERATIVE_STICKY:
            return False
        added: dict[TopicPartition, None] = {}
        revoked: dict[TopicPartition, None] = {}
        for member in members:
            owned = dict.fromkeys(member.subscription.owned_partitions)
            assigned = dict.fromkeys(assignments.get(member.member_id, ()))
            added.update((tp, None) for tp in assigned if tp not in owned)
            revoked.update((tp, None) for tp in owned if tp not in assigned)
        return any(partition in revoked for partition in added)


def select_rebalance_protocol(assignors: Sequence[ConsumerAssignor]) -> RebalanceProtocol:
    """The highest protocol that all assignors support.

    Raises:
        ConfigError: there is no assignor, or they have none in common.

    Source: kafka trunk, ConsumerCoordinator's constructor.
    """
    common = [
        protocol
        for protocol in RebalanceProtocol
        if all(protocol in assignor.supported_protocols for assignor in assignors)
    ]
    if not assignors or not common:
        names = ", ".join(assignor.name for assignor in assignors) or "none"
        raise ConfigError(
            f"partition.assignment.strategy={names} has no rebalance protocol that all support; "
            "name assignors with one in common"
        )
    return max(common)
