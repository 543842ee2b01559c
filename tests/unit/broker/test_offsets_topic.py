"""The offsets topic behind the coordinators: stored before it is acknowledged, and loaded again."""

import pytest

from coordinator_sim.broker.cluster import Cluster
from coordinator_sim.broker.contract import Instants
from coordinator_sim.broker.settings import ClusterSettings, Endpoint
from coordinator_sim.coordinator.contract import CoordinatorConfig
from coordinator_sim.kafka.errors import ErrorCode
from coordinator_sim.kafka.partitioning import OFFSETS_TOPIC, partition_for
from coordinator_sim.kafka.profiles import profile_named
from coordinator_sim.log.format.log_batches import decode_batches
from coordinator_sim.log.memory_store import MemoryStore
from coordinator_sim.messages import offset_commit, offset_fetch
from tests.unit.broker.frames_client import FramesClient

NOW = Instants(1_000_000, 1_000_000)
PARTITION = partition_for("g", 4)


def commit(offset: int) -> offset_commit.OffsetCommitRequest:
    """A commit of a consumer outside any group."""
    return offset_commit.OffsetCommitRequest(
        group_id="g",
        generation_id_or_member_epoch=-1,
        member_id="",
        topics=(
            offset_commit.OffsetCommitRequestTopic(
                "t",
                partitions=(
                    offset_commit.OffsetCommitRequestPartition(
                        0, offset, -1, committed_metadata=""
                    ),
                ),
            ),
        ),
    )


def fetch() -> offset_fetch.OffsetFetchRequest:
    """What was committed?"""
    return offset_fetch.OffsetFetchRequest(
        groups=(
            offset_fetch.OffsetFetchRequestGroup(
                group_id="g",
                topics=(offset_fetch.OffsetFetchRequestTopics("t", partition_indexes=(0,)),),
            ),
        )
    )


def fetched(client: FramesClient) -> int:
    """The offset in the last answer."""
    response = client.answers()[-1][1]
    assert isinstance(response, offset_fetch.OffsetFetchResponse)
    return response.groups[0].topics[0].partitions[0].committed_offset


def committed(client: FramesClient) -> ErrorCode:
    """The error in the last answer."""
    response = client.answers()[-1][1]
    assert isinstance(response, offset_commit.OffsetCommitResponse)
    return response.topics[0].partitions[0].error_code


@pytest.mark.parametrize("profile", ["0.10.2", "3.9", "4.4"])
def test_commit_is_in_the_topic_and_is_loaded_by_the_next_leader(profile: str) -> None:
    """A commit has Kafka's bytes in the profile's record format, which the next leader loads."""
    settings = ClusterSettings(
        profile=profile_named(profile),
        coordinator=CoordinatorConfig(offsets_topic_num_partitions=4),
    )
    cluster = Cluster(settings, endpoint=lambda _broker, _name: Endpoint("localhost", 9092))
    cluster.topics.create_spread("t", 1, NOW)
    cluster.topics.create_asked_for(OFFSETS_TOPIC, NOW)
    client = FramesClient(cluster)
    client.send(commit(42), 2)

    log = cluster.logs.log_of(OFFSETS_TOPIC, PARTITION)
    assert log is not None
    (batch,) = decode_batches(b"".join(log.chunks()), PARTITION)
    assert "offset=42" in repr(batch)
    cluster.leadership.elect(OFFSETS_TOPIC, PARTITION, -1, NOW)
    cluster.leadership.elect(OFFSETS_TOPIC, PARTITION, 1, NOW)
    client.send(fetch(), 2)
    assert fetched(client) == 42


class FullStore(MemoryStore):
    """A store whose medium takes nothing."""

    def append(self, *_batch: object) -> int | None:
        """Refuse."""
        raise OSError(28, "No space left on device")


def test_commit_that_cannot_be_stored_is_refused_and_the_leader_resigns(
    cluster: Cluster, client: FramesClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A full disk: nothing is acknowledged, and nobody leads the partition any more."""
    cluster.topics.create_spread("t", 1, NOW)
    log = cluster.logs.log_of(OFFSETS_TOPIC, PARTITION)
    monkeypatch.setattr(log, "_store", FullStore())

    client.send(commit(42), 8)

    assert committed(client) is not ErrorCode.NONE
    cluster.expire(NOW)
    state = cluster.image.partition(OFFSETS_TOPIC, PARTITION)
    assert state is not None
    assert state.leader_id == -1
    client.send(commit(43), 8)
    assert committed(client) is ErrorCode.NOT_COORDINATOR


def test_without_the_offsets_topic_nobody_coordinates(
    cluster: Cluster, client: FramesClient
) -> None:
    """Deleting __consumer_offsets unloads every group, and no broker coordinates any."""
    cluster.topics.create_spread("t", 1, NOW)
    cluster.topics.delete(OFFSETS_TOPIC, NOW)

    client.send(commit(42), 8)

    assert committed(client) is ErrorCode.NOT_COORDINATOR


def test_tombstones_that_nobody_waits_for_are_in_the_topic_too() -> None:
    """Scala's clean-up writes without an answer; what is written next follows it in the log."""
    settings = ClusterSettings(
        profile=profile_named("3.9"),
        coordinator=CoordinatorConfig(
            offsets_topic_num_partitions=4, offsets_retention_check_interval_ms=1_000
        ),
    )
    cluster = Cluster(settings, endpoint=lambda _broker, _name: Endpoint("localhost", 9092))
    cluster.topics.create_spread("t", 1, NOW)
    cluster.topics.create_asked_for(OFFSETS_TOPIC, NOW)
    client = FramesClient(cluster)
    client.send(commit(42), 2)
    week_later = Instants(NOW.group_ms + 8 * 86_400_000, NOW.wall_ms)
    cluster.expire(week_later)

    client.send(commit(43), 2, at_ms=week_later.group_ms)

    assert committed(client) is ErrorCode.NONE
    log = cluster.logs.log_of(OFFSETS_TOPIC, PARTITION)
    assert log is not None
    values = [
        record.value is None
        for batch in decode_batches(b"".join(log.chunks()), PARTITION)
        for record in batch.records
    ]
    assert values[0] is False
    assert True in values
    assert values[-1] is False
