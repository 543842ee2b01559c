"""The duties of a consumer that leads its group.

A consumer's topics and partitions as data, and its Metadata requests for them.

Source: kafka trunk, ConsumerCoordinator.java, onLeaderElected, updateGroupSubscription,
validateCooperativeAssignment, MetadataSnapshot; SubscriptionState.java; ConsumerCoordinator.java,
maybeUpdateSubscriptionMetadata, updatePatternSubscription, maybeUpdateJoinedSubscription.
"""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Final

from coordinator_sim.assignors.contract import (
    AssignmentFailed,
    AssignorMember,
    ConsumerAssignor,
    RebalanceProtocol,
)
from coordinator_sim.clients.cluster_metadata import TopicSnapshot
from coordinator_sim.clients.config import ConsumerConfig
from coordinator_sim.clients.exceptions import ILLEGAL_STATE, SCHEMA, exception_name
from coordinator_sim.clients.generation import MemberState
from coordinator_sim.clients.network import FOREVER, Future
from coordinator_sim.clients.offset_commits import OffsetCommits
from coordinator_sim.clients.port_core import Continuation, Wait
from coordinator_sim.clients.subscription_state import SubscriptionState
from coordinator_sim.errors import ConfigError, WireFormatError
from coordinator_sim.kafka.errors import ErrorCode
from coordinator_sim.kafka.resources import TopicPartition
from coordinator_sim.messages.embedded.consumer_protocol import (
    decode_subscription,
    encode_assignment,
)
from coordinator_sim.messages.embedded.contents import ConsumerAssignment
from coordinator_sim.messages.join_group import JoinGroupResponse
from coordinator_sim.messages.metadata import MetadataResponse

_COOPERATIVE_STICKY: Final = "cooperative-sticky"
_BUILT_IN: Final = ("range", "roundrobin", "sticky", _COOPERATIVE_STICKY)
"""Assignors that assign only subscribed topics."""

SavedWait = tuple[Wait, int, Future | None, Continuation | None]
"""The state of the application's blocked thread before the election."""


class ConsumerLeader(OffsetCommits):
    """The subscription, the assignment, and the leader's duties.

    A leader computes all members' assignments, and watches all their topics.
    """

    __slots__ = (
        "_assigned",
        "_assignment_snapshot",
        "_assignors",
        "_consumer_config",
        "_is_leader",
        "_joined_subscription",
        "_metadata_snapshot",
        "_metadata_snapshot_version",
        "_protocol",
        "_subscriptions",
        "max_poll_records",
    )

    def _init_subscription(
        self,
        config: ConsumerConfig,
        assignors: tuple[ConsumerAssignor, ...],
        protocol: RebalanceProtocol,
    ) -> None:
        self._consumer_config = config
        self.max_poll_records = config.max_poll_records
        self._assignors = assignors
        self._protocol = protocol
        self._subscriptions = SubscriptionState(
            exclude_internal_topics=config.exclude_internal_topics
        )
        self._joined_subscription: tuple[str, ...] | None = None
        self._assigned: dict[TopicPartition, int | None] = {}
        self._metadata_snapshot: TopicSnapshot = {}
        self._metadata_snapshot_version = -1
        self._metadata.retains = self._subscriptions.retains

    # What a driver sees.

    @property
    def subscription(self) -> tuple[str, ...]:
        """Topics subscribed to, sorted; for a pattern, the topics that match so far."""
        return self._subscriptions.topics

    @property
    def owned_partitions(self) -> tuple[TopicPartition, ...]:
        """Partitions assigned now, by topic and partition."""
        return tuple(self._assigned)

    # For the parts above.

    def _is_group_subscribed(self) -> bool:
        return self._subscriptions.is_automatic

    def _is_rebalancing(self) -> bool:
        return self._state in (MemberState.PREPARING_REBALANCE, MemberState.COMPLETING_REBALANCE)

    def _assignor(self, name: str | None) -> ConsumerAssignor | None:
        return next((assignor for assignor in self._assignors if assignor.name == name), None)

    def _subscribe_topics(self, topics: Sequence[str]) -> None:
        if self._subscriptions.subscribe(topics):
            self._follow_topics(look=True)

    def _subscribe_pattern(self, pattern: str) -> None:
        self._subscriptions.subscribe_pattern(pattern)
        self._subscriptions.match(self._metadata.topics)
        self._follow_topics(look=True)

    def _forget_subscription(self) -> None:
        self._subscriptions.unsubscribe()
        self._assigned.clear()
        self._follow_topics(look=False)

    def _drop(self, partitions: Sequence[TopicPartition]) -> None:
        for partition in partitions:
            self._assigned.pop(partition, None)

    def _follow_topics(self, *, look: bool) -> None:
        """Ask for these topics in the next Metadata request; `look` asks at once."""
        state = self._subscriptions
        self._metadata.wanted_topics = None if state.has_pattern else state.metadata_topics()
        if look:
            self._metadata.request_update_for_new_topics()

    def _update_metadata_snapshot(self) -> None:
        """Apply new metadata: a pattern may match other topics."""
        metadata, state = self._metadata, self._subscriptions
        if metadata.version <= self._metadata_snapshot_version:
            return
        if state.has_pattern and state.match(metadata.topics):
            self._follow_topics(look=True)
        self._metadata_snapshot_version = metadata.version
        self._metadata_snapshot = metadata.snapshot(
            state.metadata_topics(), with_racks=bool(self._consumer_config.client_rack)
        )

    def _on_metadata(self, response: MetadataResponse, now_ms: int) -> None:
        """Report a denied or invalid topic to the application each time an answer has one.

        Source: kafka trunk, Metadata.maybeThrowAnyException.
        """
        super()._on_metadata(response, now_ms)
        retains = self._subscriptions.retains
        errors = [t.error_code for t in response.topics if retains(t.name or "", t.is_internal)]
        for error in (ErrorCode.TOPIC_AUTHORIZATION_FAILED, ErrorCode.INVALID_TOPIC_EXCEPTION):
            if error in errors:
                self._interrupt(exception_name(error), now_ms)
                return

    def _join_assigned_topics(self, partitions: Sequence[TopicPartition]) -> None:
        """Add topics that the leader saw match the pattern before this member did."""
        joined = self._joined_subscription or ()
        added = [tp.topic for tp in partitions if tp.topic not in joined]
        if not self._subscriptions.has_pattern or not added:
            return
        self._follow_topics(look=self._subscriptions.match((*self._subscriptions.topics, *added)))
        self._joined_subscription = tuple(sorted(dict.fromkeys((*joined, *added))))

    def _init_leader(self) -> None:
        self._is_leader = False
        self._assignment_snapshot: TopicSnapshot | None = None

    def _is_assignment_outdated(self) -> bool:
        """Whether this leader's assignment was computed from older metadata than the present."""
        snapshot = self._assignment_snapshot
        return snapshot is not None and snapshot != self._metadata_snapshot

    # Election.

    def _stop_leading(self) -> None:
        self._is_leader = False
        self._subscriptions.group_topics = ()
        self._follow_topics(look=False)

    def _on_leader_elected(self, response: JoinGroupResponse, future: Future, now_ms: int) -> None:
        """Assign at once, or first wait without limit for metadata of the group's topics."""
        assignor = self._assignor(response.protocol_name)
        if assignor is None:
            future.fail(ILLEGAL_STATE)
            return
        try:
            members = self._read_members(response)
        except WireFormatError:
            future.fail(SCHEMA)
            return
        topics = [topic for member in members for topic in member.subscription.topics]
        then = partial(self._assign_as_leader, response, assignor, future)
        self._watch_group_topics(topics, then, now_ms)

    def _watch_group_topics(self, topics: Sequence[str], then: Continuation, now_ms: int) -> None:
        """Get metadata of these topics. Source: ConsumerCoordinator.updateGroupSubscription.

        The application's thread is inside its poll then, and afterwards waits again for what it
        waited for before.
        """
        self._follow_topics(look=self._subscriptions.subscribe_group(topics))
        if self._metadata.is_fresh(now_ms):
            self._update_metadata_snapshot()
            then(now_ms)
            return
        self._is_electing = True
        saved = (self._wait, self._wait_until_ms, self._wait_future, self._resume)
        self._block_for_metadata(FOREVER, partial(self._group_topics_known, saved, then))
        self._is_locked = True

    def _group_topics_known(self, saved: SavedWait, then: Continuation, now_ms: int) -> None:
        self._is_electing = False
        self._wait, self._wait_until_ms, self._wait_future, self._resume = saved
        self._update_metadata_snapshot()
        then(now_ms)
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

    def _assign_as_leader(
        self,
        response: JoinGroupResponse,
        assignor: ConsumerAssignor,
        future: Future,
        now_ms: int,
    ) -> None:
        self._is_leader = True
        if response.skip_assignment:
            # A static leader returned: all members keep the assignment the broker has stored.
            self._assignment_snapshot = self._metadata_snapshot
            self._send_sync_group({}, future, now_ms)
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
        watched = self._subscriptions.group_topics
        given = dict.fromkeys(tp.topic for each in assignments.values() for tp in each)
        then = partial(self._sync_as_leader, assignments, future)
        if assignor.name in _BUILT_IN or all(topic in watched for topic in given):
            then(now_ms)
        else:
            # A custom assignor may assign topics that no member subscribed to.
            self._watch_group_topics((*watched, *given), then, now_ms)

    def _sync_as_leader(
        self, assignments: Mapping[str, Sequence[TopicPartition]], future: Future, now_ms: int
    ) -> None:
        self._assignment_snapshot = self._metadata_snapshot
        blobs = {
            member_id: encode_assignment(ConsumerAssignment(partitions=tuple(partitions)))
            for member_id, partitions in assignments.items()
        }
        self._send_sync_group(blobs, future, now_ms)

    def _topic_racks(self) -> dict[str, tuple[tuple[str, ...], ...]]:
        return self._metadata.racks_of(self._subscriptions.group_topics)

    def _is_unsafe_handover(
        self,
        assignor: ConsumerAssignor,
        members: Sequence[AssignorMember],
        assignments: Mapping[str, Sequence[TopicPartition]],
    ) -> bool:
        """Whether a cooperative assignment gives away a partition that another member still owns.

        The built-in cooperative assignor is exempt: it checks the owners' generations itself.

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
    """Return the highest protocol that all assignors support.

    Raises:
        ConfigError: the list is empty, or the assignors have no protocol in common.

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
