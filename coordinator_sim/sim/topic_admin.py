"""Admin requests of a worker about topics and producers.

Source: kafka trunk, connect/runtime/.../connect/util/TopicAdmin.java; clients/.../admin/
KafkaAdminClient.java and internals/ListOffsetsHandler.java, FenceProducersHandler.java.
"""

from collections.abc import Callable, Iterable
from functools import partial
from typing import Final, TypeVar

from msgspec import Struct

from coordinator_sim.connect.effects import CreateTopic
from coordinator_sim.connect.exceptions import TimeoutException
from coordinator_sim.connect.thread import Blocking, Pending, Wait
from coordinator_sim.kafka.errors import ErrorCode
from coordinator_sim.kafka.partitioning import TRANSACTIONS_TOPIC, partition_for
from coordinator_sim.messages.create_topics import (
    CreatableTopic,
    CreatableTopicConfig,
    CreatableTopicResult,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from coordinator_sim.messages.describe_cluster import (
    DescribeClusterRequest,
    DescribeClusterResponse,
)
from coordinator_sim.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResponse,
)
from coordinator_sim.messages.find_coordinator import (
    FindCoordinatorRequest,
    FindCoordinatorResponse,
)
from coordinator_sim.messages.init_producer_id import (
    InitProducerIdRequest,
    InitProducerIdResponse,
)
from coordinator_sim.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
)
from coordinator_sim.messages.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
)
from coordinator_sim.messages.requests import AnyRequest
from coordinator_sim.sim.kafka_client import (
    DEFAULT_API_TIMEOUT_MS,
    KafkaClient,
    ask,
    leader_of,
    partition_count,
)

R = TypeVar("R", bound=Struct)

LATEST: Final = -1
"""Timestamp that asks ListOffsets for the end of a partition. Source: ListOffsetsRequest."""
EARLIEST: Final = -2
"""Timestamp that asks ListOffsets for the beginning. Source: ListOffsetsRequest."""
READ_COMMITTED: Final = 1
"""Isolation level of ListOffsets and Fetch. Source: IsolationLevel."""
_TOPIC_RESOURCE: Final = 2
_TRANSACTION_KEY: Final = 1
_TRANSACTION_TIMEOUT_MS: Final = 60_000
"""`transaction.timeout.ms`."""


def cluster_id(client: KafkaClient) -> Blocking[str]:
    """Return the id of the cluster.

    Raises:
        TimeoutException: no success within a minute; also of the other functions here.
        ClientException: an error that is not retriable; also of the other functions here.
    """
    response = yield from _ask_any(
        client,
        DescribeClusterRequest(),
        DescribeClusterResponse,
        lambda answer: (answer.error_code,),
    )
    return response.cluster_id


def create_topic(client: KafkaClient, effect: CreateTopic) -> Blocking[bool]:
    """Create a topic; return False if it exists already."""
    configs = tuple(CreatableTopicConfig(name, value) for name, value in effect.configs.items())
    wanted = CreatableTopic(
        name=effect.topic,
        num_partitions=effect.partitions,
        replication_factor=effect.replication_factor,
        configs=configs,
    )
    response = yield from _ask_any(
        client,
        CreateTopicsRequest(topics=(wanted,)),
        CreateTopicsResponse,
        lambda answer: _but(ErrorCode.TOPIC_ALREADY_EXISTS, answer.topics[0].error_code),
    )
    return response.topics[0].error_code is ErrorCode.NONE


def create_topics(
    client: KafkaClient, wanted: tuple[CreatableTopic, ...]
) -> Blocking[tuple[CreatableTopicResult, ...]]:
    """Ask for topics at once; return the outcome of each."""
    response = yield from _ask_any(
        client, CreateTopicsRequest(topics=wanted), CreateTopicsResponse, lambda _answer: ()
    )
    return response.topics


def count_brokers(client: KafkaClient) -> Blocking[int]:
    """Return how many brokers the cluster has."""
    response = yield from _ask_any(
        client,
        DescribeClusterRequest(),
        DescribeClusterResponse,
        lambda answer: (answer.error_code,),
    )
    return len(response.brokers)


def count_partitions(client: KafkaClient, topic: str) -> Blocking[int]:
    """Return the number of a topic's partitions; 0 for an unknown topic."""
    request = MetadataRequest(
        topics=(MetadataRequestTopic(name=topic),), allow_auto_topic_creation=False
    )
    response = yield from _ask_any(
        client,
        request,
        MetadataResponse,
        lambda answer: _but(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, answer.topics[0].error_code),
    )
    return len(response.topics[0].partitions)


def topic_config(client: KafkaClient, topic: str, name: str) -> Blocking[str]:
    """Return a setting of a topic; empty where the topic, or the setting, is unknown."""
    resource = DescribeConfigsResource(_TOPIC_RESOURCE, topic, (name,))
    response = yield from _ask_any(
        client,
        DescribeConfigsRequest(resources=(resource,)),
        DescribeConfigsResponse,
        lambda answer: _but(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, answer.results[0].error_code),
    )
    return next((each.value or "" for each in response.results[0].configs), "")


def list_offsets(
    client: KafkaClient,
    topic: str,
    timestamp: int,
    *,
    deadline_ms: int,
    read_committed: bool = False,
) -> Blocking[dict[int, int]]:
    """Ask the leaders of all partitions for an offset, until all have answered.

    Args:
        client: The client that asks.
        topic: The topic.
        timestamp: EARLIEST or LATEST.
        deadline_ms: When to give up.
        read_committed: Whether the end is the last stable offset.

    Raises:
        TimeoutException: the deadline has come.
    """
    count = partition_count(client, topic)
    found: dict[int, int] = {}
    attempts = 0
    while True:
        by_leader: dict[int, list[int]] = {}
        for partition in range(count):
            leader_id = leader_of(client, topic, partition)
            if partition not in found and leader_id is not None:
                by_leader.setdefault(leader_id, []).append(partition)
        asked = [
            client.request(
                leader_id, _list_request(topic, partitions, timestamp, is_stable=read_committed)
            )
            for leader_id, partitions in by_leader.items()
        ]
        for pending in asked:
            if not pending.done:
                yield Wait(pending, until_ms=deadline_ms)
            found.update(_offsets(pending))
        if len(found) == count:
            return {partition: found[partition] for partition in range(count)}
        now_ms = client.now_ms
        if now_ms >= deadline_ms:
            raise TimeoutException
        yield Wait(until_ms=min(deadline_ms, now_ms + client.backoff_ms(attempts)))
        attempts += 1


def init_producer_id(
    client: KafkaClient, transactional_id: str
) -> Blocking[InitProducerIdResponse]:
    """Find the coordinator of a transactional id, and fence the id's previous producer."""
    deadline_ms = client.now_ms + DEFAULT_API_TIMEOUT_MS
    find = FindCoordinatorRequest(key_type=_TRANSACTION_KEY, coordinator_keys=(transactional_id,))
    yield from ask(
        client,
        client.any_broker,
        find,
        FindCoordinatorResponse,
        errors_of=lambda answer: (answer.coordinators[0].error_code,),
        deadline_ms=deadline_ms,
    )
    return (
        yield from ask(
            client,
            partial(coordinator_of, client, transactional_id),
            InitProducerIdRequest(transactional_id, _TRANSACTION_TIMEOUT_MS),
            InitProducerIdResponse,
            errors_of=lambda answer: (answer.error_code,),
            deadline_ms=deadline_ms,
        )
    )


def fence_producers(client: KafkaClient, transactional_ids: tuple[str, ...]) -> Blocking[None]:
    """Fence the producers of these transactional ids."""
    for transactional_id in transactional_ids:
        yield from init_producer_id(client, transactional_id)


def coordinator_of(client: KafkaClient, transactional_id: str) -> int | None:
    """Return the broker that coordinates a transactional id now; None without one."""
    count = partition_count(client, TRANSACTIONS_TOPIC)
    if not count:
        return client.any_broker()
    return leader_of(client, TRANSACTIONS_TOPIC, partition_for(transactional_id, count))


def _ask_any(
    client: KafkaClient,
    request: AnyRequest,
    kind: type[R],
    errors_of: Callable[[R], Iterable[ErrorCode]],
) -> Blocking[R]:
    deadline_ms = client.now_ms + DEFAULT_API_TIMEOUT_MS
    return (
        yield from ask(
            client, client.any_broker, request, kind, errors_of=errors_of, deadline_ms=deadline_ms
        )
    )


def _but(expected: ErrorCode, error: ErrorCode) -> tuple[ErrorCode, ...]:
    """The error of an answer, unless it is one that the caller expects."""
    return () if error is expected else (error,)


def _list_request(
    topic: str, partitions: Iterable[int], timestamp: int, *, is_stable: bool
) -> ListOffsetsRequest:
    wanted = tuple(ListOffsetsPartition(each, timestamp=timestamp) for each in partitions)
    return ListOffsetsRequest(
        replica_id=-1,
        isolation_level=READ_COMMITTED if is_stable else 0,
        topics=(ListOffsetsTopic(topic, wanted),),
    )


def _offsets(asked: Pending[object]) -> dict[int, int]:
    """The offsets in an answer; empty where there is none, or only errors."""
    if not asked.done or asked.error is not None:
        return {}
    answer = asked.result()
    if not isinstance(answer, ListOffsetsResponse):
        return {}
    return {
        each.partition_index: each.offset
        for topic in answer.topics
        for each in topic.partitions
        if each.error_code is ErrorCode.NONE
    }
