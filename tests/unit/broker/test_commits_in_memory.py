"""The offsets topic in memory stays small however often members commit."""

from coordinator_sim.broker.cluster import Cluster
from coordinator_sim.broker.contract import Instants
from coordinator_sim.kafka.partitioning import OFFSETS_TOPIC, partition_for
from coordinator_sim.messages import offset_commit
from tests.unit.broker.frames_client import FramesClient

NOW = Instants(1_000_000, 1_000_000)


def test_superseded_commits_do_not_pile_up_in_memory(
    cluster: Cluster, client: FramesClient
) -> None:
    """Forty thousand commits of a hundred offsets leave a small log after each round."""
    cluster.topics.create_spread("t", 100, NOW)
    partitions = tuple(
        offset_commit.OffsetCommitRequestPartition(index, 7, -1, committed_metadata="x" * 1_000)
        for index in range(100)
    )
    request = offset_commit.OffsetCommitRequest(
        group_id="g",
        generation_id_or_member_epoch=-1,
        member_id="",
        topics=(offset_commit.OffsetCommitRequestTopic("t", partitions=partitions),),
    )
    log = cluster.logs.log_of(OFFSETS_TOPIC, partition_for("g", 4))
    assert log is not None
    now = NOW
    for count in range(1, 401):
        client.send(request, 8)
        if count % 100 == 0:
            due_ms = now.group_ms + 300_001
            now = Instants(due_ms, due_ms)
            cluster.expire(now)
            while (cluster.next_group_deadline_ms() or due_ms + 1) <= due_ms:
                cluster.expire(now)

    assert log.end_offset == 40_000
    assert log.size_bytes < 15_000_000
