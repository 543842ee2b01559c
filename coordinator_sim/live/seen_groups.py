"""A consumer group of a real cluster, as its brokers describe it now."""

from typing import Final

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient

from coordinator_sim.errors import ConfigError, DataError
from coordinator_sim.trace.group_shape import SeenGroup

_TIMEOUT_S: Final = 10.0


def described_group(bootstrap: str, group_id: str) -> SeenGroup:
    """Ask a cluster for a group's members, and for the partitions of the topics they own.

    Args:
        bootstrap: Brokers to begin with, `HOST:PORT`, several with commas.
        group_id: The group.

    Raises:
        ConfigError: no broker answers.
        DataError: the group has no members, or none of them owns a partition.
    """
    admin = AdminClient(
        {
            "bootstrap.servers": bootstrap,
            "socket.timeout.ms": int(_TIMEOUT_S * 1000),
            "log_level": 0,
        }
    )
    try:
        asked = admin.describe_consumer_groups([group_id], request_timeout=_TIMEOUT_S)
        found = asked[group_id].result()
        metadata = admin.list_topics(timeout=_TIMEOUT_S)
    except KafkaException as error:
        raise ConfigError(
            f"--bootstrap {bootstrap}: {error.args[0].str()}; name a broker that is reachable"
        ) from error
    if not found.members:
        raise DataError(f"group {group_id!r} at {bootstrap} has no members: ask while it runs")
    topics = sorted(
        {
            each.topic
            for member in found.members
            for each in (member.assignment.topic_partitions if member.assignment else ())
        }
    )
    if not topics:
        raise DataError(
            f"no member of group {group_id!r} at {bootstrap} owns a partition: ask while it is "
            "stable"
        )
    members: dict[str, str | None] = {}
    for member in sorted(found.members, key=lambda one: (one.client_id, one.member_id)):
        wanted = member.group_instance_id or member.client_id
        name = wanted if wanted not in members else f"{wanted}-{len(members) + 1}"
        members[name] = member.group_instance_id
    return SeenGroup(
        group_id=group_id,
        members=members,
        topics={topic: len(metadata.topics[topic].partitions) for topic in topics},
        assignor=found.partition_assignor or None,
    )
