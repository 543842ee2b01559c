"""Stories of consumer groups, told by heartbeats. The oracle judges the rest; see `differ`."""

import pytest
from msgspec.structs import replace

from coordinator_sim.coordinator.consumer.regex import compiled
from coordinator_sim.coordinator.contract import CoordinatorConfig
from coordinator_sim.coordinator.topics import KnownTopic, KnownTopics
from coordinator_sim.harness.group_driver import GroupDriver, answer
from coordinator_sim.harness.harness import Harness
from coordinator_sim.kafka.consumer_records import (
    CONSUMER_RECORD_TYPES,
    ConsumerGroupMetadataKey,
    ConsumerGroupMetadataValue,
)
from coordinator_sim.kafka.errors import ErrorCode
from coordinator_sim.kafka.profiles import profile_named
from coordinator_sim.messages.consumer_group_describe import (
    ConsumerGroupDescribeRequest,
    ConsumerGroupDescribeResponse,
    DescribedGroup,
)
from coordinator_sim.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
    TopicPartitions,
)

FOO = bytes(15) + b"\1"


class Members:
    """A broker with the topic `foo`, and members of the group `g`."""

    def __init__(self, profile: str = "4.4", *, interval_ms: int = 0) -> None:
        config = CoordinatorConfig(
            offsets_topic_num_partitions=1,
            group_consumer_assignment_interval_ms=interval_ms,
            group_coordinator_append_linger_ms=0,
        )
        self.broker = Harness(config, profile_named(profile))
        self.broker.set_topic("foo", 6, FOO)

    def beat(
        self, member_id: str, epoch: int, owned: tuple[int, ...] | None = None
    ) -> ConsumerGroupHeartbeatResponse:
        """A heartbeat; one of epoch 0 says all that a member says when it joins."""
        joins = epoch == 0
        held = None if owned is None else (TopicPartitions(FOO, owned),)
        request = ConsumerGroupHeartbeatRequest(
            group_id="g",
            member_id=member_id,
            member_epoch=epoch,
            rebalance_timeout_ms=5_000 if joins else -1,
            subscribed_topic_names=("foo",) if joins else None,
            topic_partitions=() if joins else held,
        )
        step = self.broker.call(request, api_version=1)
        return answer(step, ConsumerGroupHeartbeatResponse)

    def describe(self) -> DescribedGroup:
        """The group as ConsumerGroupDescribe shows it."""
        step = self.broker.call(ConsumerGroupDescribeRequest(group_ids=("g",)), api_version=1)
        (group,) = answer(step, ConsumerGroupDescribeResponse).groups
        return group


def given(response: ConsumerGroupHeartbeatResponse) -> tuple[int, ...] | None:
    """The partitions of `foo` in an answer; None where it says nothing of them."""
    if response.assignment is None:
        return None
    return tuple(p for topic in response.assignment.topic_partitions for p in topic.partitions)


@pytest.mark.parametrize(("profile", "epoch"), [("4.2", 1), ("4.3", 2), ("4.4", 2)])
def test_the_first_member_gets_everything_at_once(profile: str, epoch: int) -> None:
    """Its join is answered with the whole topic, at the first epoch of the release."""
    members = Members(profile)
    joined = members.beat("m1", 0)
    assert (joined.member_epoch, given(joined)) == (epoch, (0, 1, 2, 3, 4, 5))
    assert members.describe().group_state == "Stable"


def test_a_second_member_waits_until_the_first_has_given_up() -> None:
    """It joins with nothing; what it shall have is free when its owner no longer reports it."""
    members = Members()
    members.beat("m1", 0)
    second = members.beat("m2", 0)
    assert (second.member_epoch, given(second)) == (3, ())
    first = members.beat("m1", 2, (0, 1, 2, 3, 4, 5))
    kept = given(first)
    assert first.member_epoch == 2
    assert kept is not None
    assert len(kept) == 3
    assert members.describe().group_state == "Reconciling"
    assert members.beat("m1", 2, kept).member_epoch == 3
    got = given(members.beat("m2", 3, ()))
    assert got is not None
    assert {*kept, *got} == set(range(6))
    assert members.describe().group_state == "Stable"


def test_a_member_that_does_not_give_up_is_fenced_in_time() -> None:
    """Its rebalance timeout is over before its session is."""
    members = Members()
    members.beat("m1", 0)
    members.beat("m2", 0)
    members.beat("m1", 2, (0, 1, 2, 3, 4, 5))
    members.broker.advance(5_000)
    late = members.beat("m1", 2, (0, 1, 2, 3, 4, 5))
    assert late.error_code is ErrorCode.UNKNOWN_MEMBER_ID
    assert given(members.beat("m2", 3, ())) == (0, 1, 2, 3, 4, 5)


def test_a_failover_keeps_the_group_and_starts_the_sessions_anew() -> None:
    """What the log says is what there is; who stays silent is gone one session later."""
    members = Members()
    members.beat("m1", 0)
    before = members.describe()
    members.broker.resign(0)
    members.broker.elect(0, 2)
    assert members.describe() == before
    members.broker.advance(44_999)
    assert members.describe().members == before.members
    members.broker.advance(1)
    assert members.describe().group_state == "Empty"


def test_the_target_waits_for_its_interval() -> None:
    """Nothing happens by itself: the first heartbeat after the interval computes it."""
    members = Members(interval_ms=1_000)
    members.beat("m1", 0)
    assert members.beat("m2", 0).member_epoch == 2
    assert members.describe().group_state == "Assigning"
    members.broker.advance(1_000)
    assert members.describe().group_state == "Assigning"
    assert members.beat("m2", 2, ()).member_epoch == 3


def test_a_topic_that_grows_moves_the_group_with_the_next_heartbeat() -> None:
    """The hash of the topics differs, so the group's epoch does."""
    members = Members()
    members.beat("m1", 0)
    members.broker.set_topic("foo", 8, FOO)
    assert members.describe().group_epoch == 2
    grown = members.beat("m1", 2, (0, 1, 2, 3, 4, 5))
    assert (grown.member_epoch, given(grown)) == (3, tuple(range(8)))


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


@pytest.mark.parametrize(("profile", "error"), [("4.0", 16), ("4.1", 42)])
def test_40_looks_for_the_partition_before_it_looks_at_the_form(profile: str, error: int) -> None:
    """A heartbeat of a wrong form at a broker that does not lead the group; seen on Kafka's own."""
    members = Members(profile)
    members.broker.resign()
    assert members.beat("m1", -3).error_code == error


@pytest.mark.parametrize("profile", ["4.0", "4.1"])
def test_a_wrong_form_is_invalid_where_the_group_is_led(profile: str) -> None:
    """Whichever of the two is looked at first."""
    assert Members(profile).beat("m1", -3).error_code is ErrorCode.INVALID_REQUEST


def test_a_group_goes_by_settings_of_its_own_until_they_are_taken_away() -> None:
    """The answer says how often the member is to tell of itself."""
    members = Members()
    coordinator, config = members.broker.coordinator, members.broker.config
    own = replace(config, group_consumer_heartbeat_interval_ms=7_000)
    for settings, interval_ms in ((own, 7_000), (None, 5_000)):
        coordinator.reconfigure(config, {"g": settings})
        assert members.beat("m1", 0).heartbeat_interval_ms == interval_ms


def test_offsets_of_an_empty_consumer_group_expire_one_by_one() -> None:
    """Retention counts from each commit, whenever the last member went."""
    members = Members()
    members.beat("m1", 0)
    members.beat("m1", -1)
    members.broker.set_topic("t", 1)
    GroupDriver(members.broker, "g").commit(1)
    members.broker.advance(members.broker.config.offsets_retention_ms - 1)
    assert members.describe().error_code is ErrorCode.NONE
    members.broker.advance(members.broker.config.offsets_retention_check_interval_ms)
    assert members.describe().error_code is ErrorCode.GROUP_ID_NOT_FOUND


@pytest.mark.parametrize(("profile", "versions"), [("4.0", [5, 4, 3]), ("4.1", [5, 3])])
def test_40_stores_topics_and_later_releases_a_hash(profile: str, versions: list[int]) -> None:
    """A first join in 4.0 writes a record of the topics, and no hash with the epoch."""
    members = Members(profile)
    members.beat("m1", 0)
    records = [record for batch in members.broker.log(0) for record in batch.records]
    assert [CONSUMER_RECORD_TYPES[type(each.key)] for each in records][: len(versions)] == versions
    (epoch,) = (each.value for each in records if isinstance(each.key, ConsumerGroupMetadataKey))
    assert isinstance(epoch, ConsumerGroupMetadataValue)
    assert (epoch.metadata_hash == 0) is (profile == "4.0")


def test_sessions_that_end_at_one_instant_end_in_slices() -> None:
    """Others are answered after some of them; the rest is due at once."""
    members = Members()
    for index in range(300):
        members.beat(f"m{index}", 0)
    coordinator, end_ms = members.broker.coordinator, members.broker.now_ms + 45_000
    members.broker.advance(44_999)

    counts = []
    while coordinator.wake_up_ms() == end_ms:
        coordinator.expire(end_ms)
        counts.append(len(members.describe().members))
    assert counts == [200, 100, 0]
