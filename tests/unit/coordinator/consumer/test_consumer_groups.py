"""Stories of consumer groups, told by heartbeats. The oracle judges the rest; see `differ`."""

import pytest
from msgspec.structs import replace

from coordinator_sim.coordinator.contract import CoordinatorConfig
from coordinator_sim.coordinator.modern.consumer.regex import compiled
from coordinator_sim.coordinator.topics import KnownTopic, KnownTopics
from coordinator_sim.harness.group_driver import answer
from coordinator_sim.harness.harness import Harness
from coordinator_sim.kafka.profiles import profile_named
from coordinator_sim.messages import (
    consumer_group_describe,
    consumer_group_heartbeat,
    consumer_group_records,
)

FOO = bytes(15) + b"\1"


class Members:
    """A broker with the topic `foo`, and members of the group `g`."""

    def __init__(self, profile: str = "4.4", **settings: object) -> None:
        config = CoordinatorConfig(
            offsets_topic_num_partitions=1,
            group_initial_rebalance_delay_ms=0,
            group_consumer_assignment_interval_ms=0,
            group_coordinator_append_linger_ms=0,
            **settings,  # type: ignore[arg-type]
        )
        self.broker = Harness(config, profile_named(profile))
        self.broker.set_topic("foo", 6, FOO)

    def join(self, member_id: str) -> consumer_group_heartbeat.ConsumerGroupHeartbeatResponse:
        """The first heartbeat of a member of `foo`."""
        request = consumer_group_heartbeat.ConsumerGroupHeartbeatRequest(
            group_id="g",
            member_id=member_id,
            member_epoch=0,
            rebalance_timeout_ms=5_000,
            subscribed_topic_names=("foo",),
            topic_partitions=(),
        )
        step = self.broker.call(request, api_version=1)
        return answer(step, consumer_group_heartbeat.ConsumerGroupHeartbeatResponse)

    def describe(self) -> consumer_group_describe.DescribedGroup:
        """The group as ConsumerGroupDescribe shows it."""
        step = self.broker.call(
            consumer_group_describe.ConsumerGroupDescribeRequest(group_ids=("g",)), api_version=1
        )
        (group,) = answer(step, consumer_group_describe.ConsumerGroupDescribeResponse).groups
        return group


def test_the_hash_of_topics_is_kafkas() -> None:
    """Numbers that Kafka 4.4.0 wrote for the topics `t` and `u` of the oracle."""
    topics = KnownTopics()
    ids = {
        name: bytes.fromhex(f"000000544f504943{low:016x}") for name, low in (("t", 117), ("u", 118))
    }
    topics.change([KnownTopic("t", ids["t"], 4), KnownTopic("u", ids["u"], 2)], (), 1)
    assert topics.hash_of_all(("u", "nope", "t")) == -2225857962132242696
    assert topics.hash_of_all(("u",)) == -5680857893082200633
    assert topics.hash_of_all(()) == 0


@pytest.mark.parametrize(
    ("regex", "fault"),
    [
        ("(", "missing closing )"),
        ("[a", "missing closing ]"),
        ("*a", "missing argument to repetition operator"),
        ("a\\", "trailing backslash at end of expression"),
        ("(?=a)", "invalid or unsupported Perl syntax"),
    ],
)
def test_a_bad_expression_is_told_in_kafkas_words(regex: str, fault: str) -> None:
    """RE2 finds the fault, RE2/J has the words."""
    assert compiled(regex) == fault


def test_a_group_goes_by_settings_of_its_own_until_they_are_taken_away() -> None:
    """The answer says how often the member is to tell of itself."""
    members = Members()
    coordinator, config = members.broker.coordinator, members.broker.config
    own = replace(config, group_consumer_heartbeat_interval_ms=7_000)
    for settings, interval_ms in ((own, 7_000), (None, 5_000)):
        coordinator.reconfigure(config, {"g": settings})
        assert members.join("m1").heartbeat_interval_ms == interval_ms


@pytest.mark.parametrize(("profile", "versions"), [("4.0", [5, 4, 3]), ("4.1", [5, 3])])
def test_40_stores_topics_and_later_releases_a_hash(profile: str, versions: list[int]) -> None:
    """A first join in 4.0 writes a record of the topics, and no hash with the epoch."""
    members = Members(profile)
    members.join("m1")
    records = [record for batch in members.broker.log(0) for record in batch.records]
    assert [each.key.record_type for each in records][: len(versions)] == versions
    (epoch,) = (
        each.value
        for each in records
        if isinstance(each.key, consumer_group_records.ConsumerGroupMetadataKey)
    )
    assert isinstance(epoch, consumer_group_records.ConsumerGroupMetadataValue)
    assert (epoch.metadata_hash == 0) is (profile == "4.0")


def test_sessions_that_end_at_one_instant_end_in_slices() -> None:
    """Others are answered after some of them; the rest is due at once."""
    members = Members()
    for index in range(300):
        members.join(f"m{index}")
    coordinator, end_ms = members.broker.coordinator, members.broker.now_ms + 45_000
    members.broker.advance(44_999)

    counts = []
    while coordinator.wake_up_ms() == end_ms:
        coordinator.expire(end_ms)
        counts.append(len(members.describe().members))
    assert counts == [200, 100, 0]
