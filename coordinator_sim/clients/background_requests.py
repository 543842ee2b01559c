"""Requests, connections, metadata and assignors of a client; no group logic, no application.

The lowest layer of `background_port`.
"""

from collections.abc import Sequence
from typing import NotRequired, TypedDict

from coordinator_sim.assignors.contract import AssignorMember, ConsumerAssignor, TopicRacks
from coordinator_sim.clients.backoff import NO_JITTER, Jitter
from coordinator_sim.clients.client_traits import ClientTraits
from coordinator_sim.clients.cluster_metadata import ClusterMetadata
from coordinator_sim.clients.config import ConsumerConfig, OffsetReset
from coordinator_sim.clients.effects import COORDINATOR_NODE_OFFSET, Effect, ResetPositions
from coordinator_sim.clients.generation import Generation
from coordinator_sim.clients.network import Future, NetworkClient, PendingRequest, RequestKind
from coordinator_sim.errors import ConfigError
from coordinator_sim.kafka.context import NO_GENERATION_ID, UNKNOWN_MEMBER_ID
from coordinator_sim.kafka.resources import TopicPartition
from coordinator_sim.messages.embedded.consumer_protocol import decode_subscription
from coordinator_sim.messages.join_group import JoinGroupResponse
from coordinator_sim.messages.metadata import MetadataRequest, MetadataResponse
from coordinator_sim.messages.metadata import MetadataResponseBroker as Node
from coordinator_sim.messages.requests import Request, metadata_request


class ConsumerSetup(TypedDict):
    """Arguments of a model besides its configuration, as `BackgroundRequests` takes them.

    The layers of a model pass them down unchanged.
    """

    client_id: str
    group_id: str
    topics: Sequence[str]
    assignors: Sequence[ConsumerAssignor]
    bootstrap: tuple[Node, ...]
    jitter: NotRequired[Jitter]


class MemberSetup(ConsumerSetup):
    """Arguments of a member of the consumer protocol besides its configuration.

    The member id is the client's own: a random Uuid, the same until the client closes.
    """

    member_id: str


class BackgroundRequests:
    """The client's view of the cluster and of itself, and its means to send requests.

    Args:
        config: Timeouts and switches.
        traits: Values in which the client differs from Java's.
        client_id: Names the client in random choices.
        group_id: The group.
        topics: Topics of the subscription.
        assignors: Assignors in order of preference; none for a client that has none.
        bootstrap: Brokers to ask first.
        jitter: Source of random choices.

    Raises:
        ConfigError: the list of assignors is empty, and the client needs one.
    """

    __slots__ = (
        "_assigned",
        "_assignors",
        "_client_id",
        "_config",
        "_coordinator_id",
        "_generation_id",
        "_group_id",
        "_jitter",
        "_member_id",
        "_metadata",
        "_net",
        "_out",
        "_subscription",
        "_traits",
    )

    def __init__(  # noqa: PLR0913 - everything a client is configured with, by keyword
        self,
        config: ConsumerConfig,
        traits: ClientTraits,
        *,
        client_id: str,
        group_id: str,
        topics: Sequence[str],
        assignors: Sequence[ConsumerAssignor],
        bootstrap: tuple[Node, ...],
        jitter: Jitter = NO_JITTER,
    ) -> None:
        if not assignors and traits.has_assignors:
            raise ConfigError("partition.assignment.strategy is empty; name an assignor")
        self._config = config
        self._traits = traits
        self._client_id = client_id
        self._group_id = group_id
        self._assignors = tuple(assignors)
        self._jitter = jitter
        self._out: list[Effect] = []
        self._net = NetworkClient(config, client_id=client_id, jitter=jitter, out=self._out)
        self._metadata = ClusterMetadata(bootstrap, config.metadata_max_age_ms)
        self._subscription = tuple(sorted(dict.fromkeys(topics)))
        self._metadata.wanted_topics = self._subscription
        self._member_id = UNKNOWN_MEMBER_ID
        self._generation_id = NO_GENERATION_ID
        self._coordinator_id: int | None = None
        self._assigned: dict[TopicPartition, int | None] = {}

    @property
    def _coordinator_node_id(self) -> int:
        """Id of the coordinator's own connection; valid only while the coordinator is known."""
        return COORDINATOR_NODE_OFFSET - (self._coordinator_id or 0)

    def _request(
        self, kind: RequestKind, node_id: int, request: Request, now_ms: int, timeout_ms: int = -1
    ) -> PendingRequest:
        pending = PendingRequest(
            kind,
            node_id,
            request,
            generation=Generation(self._generation_id, self._member_id, None),
            future=Future(),
        )
        self._net.send(
            pending, self._config.request_timeout_ms if timeout_ms < 0 else timeout_ms, now_ms
        )
        return pending

    def _refresh_metadata(self, now_ms: int) -> None:
        metadata = self._metadata
        if now_ms < metadata.due_ms:
            return
        node_id = self._net.least_loaded(metadata.nodes, now_ms)
        if node_id is None:
            metadata.postpone(max(self._net.next_retry_at_ms(), now_ms + 1))
            return
        metadata.sent()
        self._request(RequestKind.METADATA, node_id, self._metadata_request(), now_ms)

    def _metadata_request(self) -> MetadataRequest:
        return metadata_request(self._metadata.wanted_topics)

    def _adopt_metadata(self, response: MetadataResponse, now_ms: int) -> None:
        self._metadata.update(response, now_ms, self._metadata_backoff_ms)

    def _metadata_failed(self, now_ms: int) -> None:
        self._metadata.failed(now_ms, self._metadata_backoff_ms)

    def _metadata_backoff_ms(self, attempts: int) -> int:
        return self._config.retry_backoff().backoff_ms(
            attempts, self._jitter, site="metadata-backoff", key=self._client_id
        )

    def _reset_positions(self, partitions: Sequence[TopicPartition]) -> None:
        """Have the driver find the reset position of partitions without a committed offset."""
        reset = self._config.auto_offset_reset
        if partitions and reset is not OffsetReset.NONE:
            self._out.append(ResetPositions(partitions=tuple(partitions), to=reset))

    def _topic_racks(self, topics: Sequence[str]) -> TopicRacks:
        """Return the racks of the topics that exist, as an assignor takes them."""
        return self._metadata.racks_of(topics)

    def _partition_counts(self) -> dict[str, int]:
        """Return the partition count of each subscribed topic; absent topics do not exist."""
        known = self._metadata.topics
        return {
            topic: len(known[topic].partitions) for topic in self._subscription if topic in known
        }

    def _assignor(self, name: str | None) -> ConsumerAssignor | None:
        return next((assignor for assignor in self._assignors if assignor.name == name), None)


def members_of(response: JoinGroupResponse) -> list[AssignorMember]:
    """Return the members listed in a leader's JoinGroup response, in wire order.

    Raises:
        WireFormatError: a member's metadata does not parse.
    """
    return [
        AssignorMember(
            member_id=member.member_id,
            subscription=decode_subscription(member.metadata),
            group_instance_id=member.group_instance_id,
        )
        for member in response.members
    ]
