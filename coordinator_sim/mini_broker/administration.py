"""What the APIs of administration share: the cluster as they see it, and errors with a text."""

from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass
from typing import Any, Final, TypeVar

from msgspec import Struct

from coordinator_sim.broker.authorizer import CLUSTER_NAME, Operation, ResourceType
from coordinator_sim.broker.passage import Access
from coordinator_sim.mini_broker.changes import Change
from coordinator_sim.mini_broker.configs import Configs
from coordinator_sim.mini_broker.contract import Call
from coordinator_sim.mini_broker.image import ClusterImage
from coordinator_sim.mini_broker.leadership import Leadership
from coordinator_sim.mini_broker.settings import ClusterSettings, Endpoint
from coordinator_sim.mini_broker.topics import TopicVerbs
from coordinator_sim.protocol.error_texts import error_message
from coordinator_sim.protocol.errors import ErrorCode

K = TypeVar("K", bound=Hashable)


class ApiError(Struct, frozen=True):
    """An error with what is said about it. Source: ApiError.java."""

    code: ErrorCode
    message: str | None = None

    @property
    def is_failure(self) -> bool:
        """Whether it is one."""
        return self.code is not ErrorCode.NONE


NO_ERROR: Final = ApiError(ErrorCode.NONE)


def told(code: ErrorCode) -> ApiError:
    """An error that says its own text."""
    return ApiError(code, error_message(code))


@dataclass(slots=True, frozen=True)
class Administration:
    """The cluster as its administrators see it.

    Args:
        image: The metadata.
        settings: How the cluster was started.
        configs: Settings of topics, brokers and groups.
        access: Whom to ask.
        endpoint: Where a living broker is reached on a listener; None when it is not.
        registered: Where a broker is reached, also one that the cluster has given up.
        topics: Creates, grows and deletes topics.
        leadership: Elects leaders.
        change: Lets any other change of the metadata take effect.
    """

    image: ClusterImage
    settings: ClusterSettings
    configs: Configs
    access: Access
    endpoint: Callable[[int, str], Endpoint | None]
    registered: Callable[[int, str], Endpoint | None]
    topics: TopicVerbs
    leadership: Leadership
    change: Callable[[Change], None]

    def allows_cluster(self, call: Call[Any], operation: Operation) -> bool:
        """Whether the sender may do that to the cluster."""
        cluster = ResourceType.CLUSTER
        return self.access.allows(call.context, operation, cluster, CLUSTER_NAME)

    def allows_topic(self, call: Call[Any], operation: Operation, name: str) -> bool:
        """Whether the sender may do that to a topic."""
        return self.access.allows(call.context, operation, ResourceType.TOPIC, name)

    def is_alive(self, broker_id: int) -> bool:
        """Whether that broker lives."""
        return self.leadership.is_living(broker_id)

    @property
    def auto_creation_answer(self) -> ErrorCode:
        """What a Metadata request is told that has a topic made.

        Source: AutoTopicCreationManager.createTopicsInZk, sendCreateTopicRequest.
        """
        if self.settings.profile.uses_zookeeper:
            return ErrorCode.LEADER_NOT_AVAILABLE
        return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION

    def living_ids(self) -> list[int]:
        """Ids of the brokers that live, ascending."""
        return [each for each in self.settings.broker_ids if self.is_alive(each)]


def duplicates(names: Iterable[K]) -> dict[K, None]:
    """The keys are the names that stand there more than once, in the order of their first place."""
    seen: dict[K, bool] = {}
    for name in names:
        seen[name] = name in seen
    return {name: None for name, is_duplicate in seen.items() if is_duplicate}
