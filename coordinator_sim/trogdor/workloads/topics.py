"""Topics that a workload makes before it begins, or checks where they exist.

Source: kafka trunk, trogdor/.../trogdor/common/WorkerUtils.java.
"""

from collections.abc import Mapping, Sequence
from typing import Final

from coordinator_sim.connect.thread import Blocking, Wait
from coordinator_sim.kafka.orders.iteration_order import java_hash_order, topic_partition_hash
from coordinator_sim.kafka.resources import TopicPartition
from coordinator_sim.trogdor.topic_specs import PartitionsSpec
from coordinator_sim.trogdor.workload_specs import (
    ConfigurableProducerSpec,
    ProduceBenchSpec,
    RoundTripWorkloadSpec,
)
from coordinator_sim.trogdor.workloads.clients import (
    Admin,
    ClientFailed,
    Clients,
    NotCreated,
    Report,
    Settings,
)

ADMIN_REQUEST_TIMEOUT_MS: Final = 25_000
"""Source: WorkerUtils.ADMIN_REQUEST_TIMEOUT."""
_CREATION_MS: Final = 180_000
_LARGEST_BATCH: Final = 10
_LOOK_COUNT: Final = 3
_LOOK_AGAIN_MS: Final = 2_500
_RETRIED: Final = ("REQUEST_TIMED_OUT", "NOT_ENOUGH_REPLICAS")
_EXISTS: Final = "TOPIC_ALREADY_EXISTS"
_UNKNOWN: Final = "This server does not host this topic-partition."
"""Message of UnknownTopicOrPartitionException."""

MakesTopics = ProduceBenchSpec | ConfigurableProducerSpec | RoundTripWorkloadSpec
Topics = Mapping[str, PartitionsSpec]
"""Topic -> what it shall be."""


def admin_settings(spec: MakesTopics) -> Settings:
    """Settings of the admin client that makes topics. Source: WorkerUtils.createAdminClient."""
    return {
        "bootstrap.servers": spec.bootstrap_servers,
        "request.timeout.ms": ADMIN_REQUEST_TIMEOUT_MS,
        **spec.common_client_conf,
        **spec.admin_client_conf,
    }


def partitions_of(topics: Topics) -> list[TopicPartition]:
    """The partitions that topics shall have, in the order of Java's hash set."""
    partitions = (
        TopicPartition(topic, number)
        for topic, spec in topics.items()
        for number in spec.partition_numbers
    )
    return java_hash_order(partitions, hash_of=topic_partition_hash)


def prepare_topics(
    clients: Clients, report: Report, spec: MakesTopics, topics: Topics
) -> Blocking[None]:
    """Create the topics that do not exist, check the existing ones, and report the status.

    Raises:
        ClientFailed: a topic cannot be made, or has another number of partitions.
    """
    report.status(f"Creating {len(topics)} topic(s)")
    admin = clients.admin(admin_settings(spec))
    try:
        yield from create_topics(clients, admin, topics)
    except ClientFailed:
        yield from admin.close()
        raise
    yield from admin.close()
    report.status(f"Created {len(topics)} topic(s)")


def create_topics(clients: Clients, admin: Admin, topics: Topics) -> Blocking[None]:
    """Make the topics that do not exist, and check the partitions of the others.

    Raises:
        ClientFailed: a topic cannot be made, or has another number of partitions.
    """
    existing = yield from _create(clients, admin, topics)
    if existing:
        yield from _verify(clients, admin, existing, topics)


def _create(clients: Clients, admin: Admin, topics: Topics) -> Blocking[list[str]]:
    """Ask for topics until each is made or exists; return those that existed.

    QUIRK: there is no pause between two tries.

    Raises:
        ClientFailed: a topic is refused, or the time is over.
    """
    began_ms = clients.now_ms
    existing: list[str] = []
    left = java_hash_order(topics)
    tries = 0
    while left:
        tries += 1
        outcomes: dict[str, NotCreated | None] = {}
        for first in range(0, len(left), _LARGEST_BATCH):
            batch = {name: topics[name] for name in left[first : first + _LARGEST_BATCH]}
            outcomes |= yield from admin.create_topics(batch)
        left = []
        for name in java_hash_order(outcomes):
            refused = outcomes[name]
            if refused is None:
                continue
            if refused.error in _RETRIED:
                left.append(name)
            elif refused.error == _EXISTS:
                existing.append(name)
            else:
                raise ClientFailed(refused.message)
        if left and clients.now_ms > began_ms + _CREATION_MS:
            # QUIRK: the blank before "after" is missing in Java too.
            named = ", ".join(left)
            raise ClientFailed(f"Unable to create topic(s): {named}after {tries} attempt(s)")
    return existing


def _verify(
    clients: Clients, admin: Admin, existing: Sequence[str], topics: Topics
) -> Blocking[None]:
    """Check the number of partitions of topics that exist.

    Where brokers were named for each partition, the number is not checked: Java's NewTopic has none
    then.

    Raises:
        ClientFailed: a topic has another number of partitions, or cannot be found.
    """
    for _ in range(_LOOK_COUNT):
        counts = yield from admin.partition_counts(existing)
        if None not in counts.values():
            break
        yield Wait(until_ms=clients.now_ms + _LOOK_AGAIN_MS)
    else:
        raise ClientFailed(_UNKNOWN)
    for name in java_hash_order(counts):
        wanted, found = topics[name], counts[name]
        if not wanted.partition_assignments and found != wanted.effective_num_partitions:
            raise ClientFailed(
                f"Topic '{name}' exists, but has {found} partitions, while requested  "
                f"number of partitions is {wanted.effective_num_partitions}"
            )
