"""What the admin APIs share: their view of the cluster, and errors with a message."""

from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass
from typing import Any, Final, TypeVar

from msgspec import Struct

from coordinator_sim.broker.configs.configs import Configs
from coordinator_sim.broker.contract import Call
from coordinator_sim.broker.jobs import Jobs
from coordinator_sim.broker.metadata.changes import Change
from coordinator_sim.broker.metadata.image import MetadataImage
from coordinator_sim.broker.metadata.leadership import Leadership
from coordinator_sim.broker.metadata.topic_operations import TopicOperations
from coordinator_sim.broker.quotas.quotas import Quotas
from coordinator_sim.broker.security.access import Access
from coordinator_sim.broker.security.authorizer import CLUSTER_NAME, Operation, ResourceType
from coordinator_sim.broker.settings import ClusterSettings, Endpoint
from coordinator_sim.kafka.error_texts import error_message
from coordinator_sim.kafka.errors import ErrorCode

K = TypeVar("K", bound=Hashable)


class ApiError(Struct, frozen=True):
    """An error code with its message. Source: ApiError.java."""

    code: ErrorCode
    message: str | None = None

    @property
    def is_failure(self) -> bool:
        """Whether the code is not NONE."""
        return self.code is not ErrorCode.NONE


NO_ERROR: Final = ApiError(ErrorCode.NONE)


def told(code: ErrorCode) -> ApiError:
    """An error with Kafka's default message for its code."""
    return ApiError(code, error_message(code))


@dataclass(slots=True, frozen=True)
class Administration:
    """The cluster as its administrators see it.

    Args:
        image: The metadata.
        settings: The settings that the cluster was started with.
        configs: Settings of topics, brokers and groups.
        access: Authorizes requests.
        endpoint: The address of a living broker on a listener; None without one.
        registered: The address of a broker, also of one that the cluster has fenced.
        topics: Creates, grows and deletes topics.
        leadership: Elects leaders.
        quotas: How much clients may change.
        change: Applies any other change of the metadata.
        jobs: Works on long requests in slices.
    """

    image: MetadataImage
    settings: ClusterSettings
    configs: Configs
    access: Access
    endpoint: Callable[[int, str], Endpoint | None]
    registered: Callable[[int, str], Endpoint | None]
    topics: TopicOperations
    leadership: Leadership
    quotas: Quotas
    change: Callable[[Change], None]
    jobs: Jobs

    def allows_cluster(self, call: Call[Any], operation: Operation) -> bool:
        """Whether the sender may do the operation on the cluster."""
        cluster = ResourceType.CLUSTER
        return self.access.allows(call.context, operation, cluster, CLUSTER_NAME)

    def allows_topic(self, call: Call[Any], operation: Operation, name: str) -> bool:
        """Whether the sender may do the operation on a topic."""
        return self.access.allows(call.context, operation, ResourceType.TOPIC, name)

    def is_alive(self, broker_id: int) -> bool:
        """Whether the broker is alive."""
        return self.leadership.is_living(broker_id)

    @property
    def auto_creation_answer(self) -> ErrorCode:
        """The topic error of a Metadata request that auto-creates the topic.

        Source: AutoTopicCreationManager.createTopicsInZk, sendCreateTopicRequest.
        """
        if self.settings.profile.uses_zookeeper:
            return ErrorCode.LEADER_NOT_AVAILABLE
        return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION

    def living_ids(self) -> list[int]:
        """Ids of the brokers that live, ascending."""
        return [each for each in self.settings.broker_ids if self.is_alive(each)]


OVER_QUOTA: Final = told(ErrorCode.THROTTLING_QUOTA_EXCEEDED)
"""Of a change of the cluster that a controller mutation quota refuses."""


def duplicates(names: Iterable[K]) -> dict[K, None]:
    """The names that occur more than once, as keys in the order of their first occurrence."""
    seen: dict[K, bool] = {}
    for name in names:
        seen[name] = name in seen
    return {name: None for name, is_duplicate in seen.items() if is_duplicate}
