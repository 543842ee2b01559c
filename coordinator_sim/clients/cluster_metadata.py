"""What a client knows of the cluster: brokers, topics, and when to ask again.

Source: kafka trunk, clients/.../Metadata.java, consumer/internals/ConsumerMetadata.java.
"""

from dataclasses import dataclass, field
from typing import Final

from coordinator_sim.clients.network import FOREVER
from coordinator_sim.protocol.errors import ErrorCode
from coordinator_sim.protocol.messages import MetadataResponse, Node, TopicMetadata

_STALE_TOPIC_ERRORS: Final = (
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ErrorCode.LEADER_NOT_AVAILABLE,
)

TopicSnapshot = dict[str, tuple[tuple[str, ...], ...]]
"""Topic -> for each partition, ascending, the sorted racks that matter for a rebalance."""


@dataclass(slots=True)
class ClusterMetadata:
    """The newest view of the cluster. `version` grows with every update."""

    nodes: tuple[Node, ...]
    max_age_ms: int
    wanted_topics: tuple[str, ...] | None = ()
    topics: dict[str, TopicMetadata] = field(default_factory=dict)
    version: int = 0
    update_requested: bool = True
    in_flight: bool = False
    asked_in_flight: bool = False
    due_ms: int = 0
    refreshed_at_ms: int = 0
    retry_at_ms: int = 0
    attempts: int = 0

    def request_update(self) -> int:
        """Ask for a new view as soon as the backoff allows; answers the present version.

        A request in flight may have asked for less: another one follows it.
        """
        self.update_requested = True
        self.asked_in_flight = self.in_flight
        self._set_due()
        return self.version

    def is_fresh(self, now_ms: int) -> bool:
        """Whether nobody wants an update and the view has not outlived its age."""
        return not self.update_requested and now_ms < self.refreshed_at_ms + self.max_age_ms

    def sent(self) -> None:
        """A request is on its way; no other is due meanwhile."""
        self.in_flight = True
        self.asked_in_flight = False
        self._set_due()

    def postpone(self, retry_at_ms: int) -> None:
        """No broker can be asked before this instant."""
        self.retry_at_ms = retry_at_ms
        self._set_due()

    def _set_due(self) -> None:
        """`due_ms` is when the next request is to be sent; never while one is in flight."""
        if self.in_flight:
            self.due_ms = FOREVER
        elif self.update_requested:
            self.due_ms = self.retry_at_ms
        else:
            self.due_ms = max(self.refreshed_at_ms + self.max_age_ms, self.retry_at_ms)

    def update(self, response: MetadataResponse, now_ms: int, *, backoff_ms: int) -> None:
        """Adopt a response. Topics that answered a retriable error are asked for again."""
        self.in_flight = False
        self.version += 1
        self.refreshed_at_ms = now_ms
        if response.brokers:
            self.nodes = response.brokers
        self.topics = {t.name: t for t in response.topics if t.error_code is ErrorCode.NONE}
        stale = any(t.error_code in _STALE_TOPIC_ERRORS for t in response.topics)
        self.update_requested = stale or self.asked_in_flight
        self.attempts = self.attempts + 1 if stale else 0
        self.retry_at_ms = now_ms + backoff_ms
        self._set_due()

    def failed(self, now_ms: int, *, backoff_ms: int) -> None:
        """The request was lost: try again after the backoff."""
        self.in_flight = False
        self.update_requested = True
        self.attempts += 1 if backoff_ms else 0
        self.retry_at_ms = now_ms + backoff_ms
        self._set_due()

    def snapshot(self, topics: tuple[str, ...], *, with_racks: bool) -> TopicSnapshot:
        """What a leader compares to notice a change: partitions, and racks if it has one.

        Source: kafka trunk, ConsumerCoordinator.MetadataSnapshot.
        """
        return {
            topic: tuple(
                tuple(sorted(dict.fromkeys(p.replica_racks))) if with_racks else ()
                for p in self.topics[topic].partitions
            )
            for topic in topics
            if topic in self.topics
        }
