"""A broker of ours that takes over the log of a real one."""

from pathlib import Path

import pytest

from coordinator_sim.coordinator.contract import CoordinatorConfig
from coordinator_sim.disk.offsets_log import read_log
from coordinator_sim.harness.group_driver import answer
from coordinator_sim.harness.harness import Harness
from coordinator_sim.kafka.errors import ErrorCode
from coordinator_sim.kafka.profiles import profile_named
from coordinator_sim.messages import offset_fetch

GOLDEN = Path(__file__).parents[1] / "log" / "golden" / "offsets-log-4.4.0"


@pytest.mark.parametrize("profile", ["4.4", "3.9"])
def test_the_offsets_of_a_real_log_are_those_that_its_clients_fetch(profile: str) -> None:
    """Plain, deleted, transactional, aborted and open: all as Kafka 4.4.0 answered its clients."""
    config = CoordinatorConfig(offsets_topic_num_partitions=5)
    harness = Harness(config, profile_named(profile), elect=False)
    harness.append_batches(read_log(GOLDEN))
    harness.elect()
    wanted = tuple(
        offset_fetch.OffsetFetchRequestGroup(group_id=name, topics=None)
        for name in ("plain", "simple", "txn", "gone")
    )

    reply = harness.call(offset_fetch.OffsetFetchRequest(groups=wanted), api_version=8)

    lines = [
        "\t".join(
            map(
                str,
                (
                    group.group_id,
                    topic.name,
                    found.partition_index,
                    found.committed_offset,
                    found.committed_leader_epoch,
                    found.metadata,
                ),
            )
        )
        for group in answer(reply, offset_fetch.OffsetFetchResponse).groups
        for topic in group.topics
        for found in sorted(topic.partitions, key=lambda one: one.partition_index)
    ]
    assert lines == (GOLDEN / "fetched.tsv").read_text(encoding="utf-8").splitlines()
    assert all(
        group.error_code is ErrorCode.NONE
        for group in answer(reply, offset_fetch.OffsetFetchResponse).groups
    )
