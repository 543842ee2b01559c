"""A client's view of the cluster: brokers, topics, and when to ask for Metadata again.

Three instants delay a request: the refresh backoff after the last answer or failure, the backoff
after answers without news, and a cluster without a reachable broker. New topics override them.

Source: kafka trunk, clients/.../Metadata.java, consumer/internals/ConsumerMetadata.java.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final

from msgspec import structs

from coordinator_sim.clients.network import FOREVER
from coordinator_sim.kafka.errors import ErrorCode
from coordinator_sim.kafka.resources import TopicPartition
from coordinator_sim.messages.metadata import MetadataResponse, MetadataResponseTopic
from coordinator_sim.messages.metadata import MetadataResponseBroker as Node

_STALE_TOPIC_ERRORS: Final = (
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ErrorCode.LEADER_NOT_AVAILABLE,
    ErrorCode.UNKNOWN_TOPIC_ID,
)

TopicSnapshot = dict[str, tuple[tuple[str, ...], ...]]
"""Topic -> for each partition, ascending, the sorted racks that matter for a rebalance."""

RefreshBackoff = Callable[[int], int]
"""Maps a number of attempts, 0 for the first, to the wait in milliseconds."""


def _retain_all(topic: str, is_internal: bool) -> bool:  # noqa: ARG001 - what a filter is given
    return True


@dataclass(slots=True)
class ClusterMetadata:
    """The newest view of the cluster. `version` grows with every update."""

    nodes: tuple[Node, ...]
    max_age_ms: int
    wanted_topics: tuple[str, ...] | None = ()
    retains: Callable[[str, bool], bool] = _retain_all
    """Whether a topic of an answer is kept, by its name and whether it is internal."""
    topics: dict[str, MetadataResponseTopic] = field(default_factory=dict)
    racks: dict[int, str] = field(default_factory=dict)
    """Broker id -> its rack; brokers without a rack are absent."""
    version: int = 0
    update_requested: bool = True
    in_flight: bool = False
    lacks_new_topics: bool = False
    """Whether topics became wanted after the request in flight had been sent."""
    due_ms: int = 0
    refreshed_at_ms: int = 0
    attempts: int = 0
    equivalent_count: int = 0
    allowed_at_ms: int = 0
    progress_at_ms: int = 0
    """Instant until which answers without news delay the next request."""
    reachable_at_ms: int = 0

    def request_update(self, *, has_reason: bool = False) -> int:
        """Ask for a new view as soon as the backoffs allow; return the present version.

        Args:
            has_reason: Whether to forget earlier answers without news, which would delay it.
        """
        self.update_requested = True
        if has_reason:
            self.equivalent_count = 0
            self.progress_at_ms = 0
        self._set_due()
        return self.version

    def request_update_for_new_topics(self) -> None:
        """Ask for a new view at once, after a request in flight that lacks the new topics."""
        self.lacks_new_topics = self.in_flight
        self.update_requested = True
        self.equivalent_count = 0
        self.allowed_at_ms = self.progress_at_ms = 0
        self._set_due()

    def is_fresh(self, now_ms: int) -> bool:
        """Whether no update is requested, and none is due for age."""
        return not self.update_requested and (
            now_ms < self.refreshed_at_ms + self.max_age_ms or now_ms < self._allowed_at_ms()
        )

    def may_update(self, now_ms: int) -> bool:
        """Whether no backoff forbids a request."""
        return now_ms >= self._allowed_at_ms()

    def sent(self) -> None:
        """Record that a request is in flight; no other is due meanwhile."""
        self.in_flight = True
        self.lacks_new_topics = False
        self._set_due()

    def postpone(self, reachable_at_ms: int) -> None:
        """Delay requests until this instant, because no broker can be asked before."""
        self.reachable_at_ms = reachable_at_ms
        self._set_due()

    def _allowed_at_ms(self) -> int:
        return max(self.allowed_at_ms, self.progress_at_ms)

    def _set_due(self) -> None:
        """Set `due_ms`, when the next request is to be sent; FOREVER while one is in flight."""
        if self.in_flight:
            self.due_ms = FOREVER
            return
        due_ms = max(self._allowed_at_ms(), self.reachable_at_ms)
        if not self.update_requested:
            due_ms = max(due_ms, self.refreshed_at_ms + self.max_age_ms)
        self.due_ms = due_ms

    def update(self, response: MetadataResponse, now_ms: int, backoff: RefreshBackoff) -> None:
        """Adopt a response. Topics with a retriable error are asked for again.

        A response without brokers comes from a broker that starts up, and counts as lost.
        """
        if not response.brokers:
            self.failed(now_ms, backoff)
            return
        self.in_flight = False
        self.version += 1
        self.refreshed_at_ms = now_ms
        self.attempts = 0
        self.nodes = response.brokers
        self.racks = {node.node_id: node.rack for node in self.nodes if node.rack is not None}
        kept = [t for t in response.topics if self.retains(t.name or "", t.is_internal)]
        topics = {t.name or "": t for t in kept if t.error_code is ErrorCode.NONE}
        self.equivalent_count = 0 if self._is_news(topics) else self.equivalent_count + 1
        self.topics = topics
        stale = any(t.error_code in _STALE_TOPIC_ERRORS for t in kept)
        self.update_requested = stale or self.lacks_new_topics
        self.allowed_at_ms = now_ms + backoff(0)
        count = self.equivalent_count
        self.progress_at_ms = now_ms + backoff(count - 1) if count else 0
        self._set_due()

    def move_leaders(
        self, leaders: Mapping[TopicPartition, tuple[int, int]], nodes: Iterable[Node]
    ) -> None:
        """Adopt newer leaders, each with its epoch, and the addresses of brokers.

        Source: kafka 4.4, Metadata.updatePartitionLeadership.
        """
        known = {node.node_id: node for node in (*self.nodes, *nodes)}
        self.nodes = tuple(known.values())
        for (topic, number), (leader_id, epoch) in leaders.items():
            state = self.topics.get(topic)
            if state is None or leader_id not in known:
                continue
            moved = (
                structs.replace(each, leader_id=leader_id, leader_epoch=epoch)
                if each.partition_index == number and each.leader_epoch < epoch
                else each
                for each in state.partitions
            )
            self.topics[topic] = structs.replace(state, partitions=tuple(moved))

    def skip(self, count: int, now_ms: int, backoff: RefreshBackoff) -> None:
        """Adopt so many answers without news, at least one; only the last one's backoffs matter.

        Args:
            count: Number of answers.
            now_ms: Instant of the last one.
            backoff: As in `update`, of the last one.
        """
        self.version += count
        self.refreshed_at_ms = now_ms
        self.equivalent_count += count
        self.allowed_at_ms = now_ms + backoff(0)
        self.progress_at_ms = now_ms + backoff(self.equivalent_count - 1)
        self._set_due()

    def _is_news(self, topics: dict[str, MetadataResponseTopic]) -> bool:
        """Whether a partition is new, or has a newer leader epoch.

        Source: kafka trunk, Metadata.updateLatestMetadata.
        """
        for name, topic in topics.items():
            known = self.topics.get(name)
            partitions = () if known is None else known.partitions
            epochs = {each.partition_index: each.leader_epoch for each in partitions}
            if any(p.leader_epoch > epochs.get(p.partition_index, -2) for p in topic.partitions):
                return True
        return False

    def failed(self, now_ms: int, backoff: RefreshBackoff) -> None:
        """Handle a lost or unsendable request: try again after the backoff."""
        self.in_flight = False
        self.update_requested = True
        self.equivalent_count = 0
        self.progress_at_ms = 0
        self.allowed_at_ms = now_ms + backoff(self.attempts)
        self.attempts += 1
        self._set_due()

    def snapshot(self, topics: tuple[str, ...], *, with_racks: bool) -> TopicSnapshot:
        """Return the partitions, with racks if the leader has one, compared to notice a change.

        Source: kafka trunk, ConsumerCoordinator.MetadataSnapshot.
        """
        return {
            topic: tuple(
                tuple(sorted(dict.fromkeys(racks))) if with_racks else () for racks in partitions
            )
            for topic, partitions in self.racks_of(topics).items()
        }

    def racks_of(self, topics: Iterable[str]) -> dict[str, tuple[tuple[str, ...], ...]]:
        """For each topic that exists the racks of the replicas of each partition, ascending."""
        return {
            topic: replica_racks(self.topics[topic], self.racks)
            for topic in topics
            if topic in self.topics
        }


def replica_racks(
    topic: MetadataResponseTopic, racks: Mapping[int, str]
) -> tuple[tuple[str, ...], ...]:
    """For each partition of a topic the racks of its replicas, where they have one."""
    if not racks:
        return ((),) * len(topic.partitions)
    return tuple(
        tuple(racks[node] for node in each.replica_nodes if node in racks)
        for each in topic.partitions
    )
