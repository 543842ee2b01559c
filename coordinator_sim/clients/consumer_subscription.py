"""A consumer's topics and partitions as data, and its Metadata requests for them.

Source: kafka trunk, ConsumerCoordinator.java, maybeUpdateSubscriptionMetadata,
updatePatternSubscription, maybeUpdateJoinedSubscription.
"""

from collections.abc import Sequence

from coordinator_sim.assignors.contract import ConsumerAssignor, RebalanceProtocol
from coordinator_sim.clients.cluster_metadata import TopicSnapshot
from coordinator_sim.clients.config import ConsumerConfig
from coordinator_sim.clients.exceptions import exception_name
from coordinator_sim.clients.generation import MemberState
from coordinator_sim.clients.offset_commits import OffsetCommits
from coordinator_sim.clients.subscription_state import SubscriptionState
from coordinator_sim.kafka.errors import ErrorCode
from coordinator_sim.kafka.resources import TopicPartition
from coordinator_sim.messages.metadata import MetadataResponse


class ConsumerSubscription(OffsetCommits):
    """The subscription, the assignment, and metadata about both."""

    __slots__ = (
        "_assigned",
        "_assignors",
        "_consumer_config",
        "_joined_subscription",
        "_metadata_snapshot",
        "_metadata_snapshot_version",
        "_protocol",
        "_subscriptions",
    )

    def _init_subscription(
        self,
        config: ConsumerConfig,
        assignors: tuple[ConsumerAssignor, ...],
        protocol: RebalanceProtocol,
    ) -> None:
        self._consumer_config = config
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
