"""Groups that change their type, told by requests. The oracle judges the rest; see `differ`."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from coordinator_sim.coordinator.consumer.embedded import (
    MalformedBlob,
    read_assignment,
    read_subscription,
)
from coordinator_sim.coordinator.contract import CoordinatorConfig
from coordinator_sim.coordinator.properties import configured, properties_of
from coordinator_sim.errors import ConfigError, OperationAborted
from coordinator_sim.harness.group_driver import answer
from coordinator_sim.harness.harness import Harness, Step
from coordinator_sim.kafka.consumer_records import CONSUMER_RECORD_TYPES
from coordinator_sim.kafka.errors import ErrorCode
from coordinator_sim.kafka.migration_policy import MigrationPolicy
from coordinator_sim.kafka.profiles import profile_named
from coordinator_sim.kafka.records import LogRecord
from coordinator_sim.kafka.resources import TopicPartition
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
from coordinator_sim.messages.embedded.consumer_protocol import (
    decode_assignment,
    encode_assignment,
    encode_subscription,
)
from coordinator_sim.messages.embedded.contents import ConsumerAssignment, Subscription
from coordinator_sim.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from coordinator_sim.messages.join_group import (
    JoinGroupRequest,
    JoinGroupRequestProtocol,
    JoinGroupResponse,
)
from coordinator_sim.messages.leave_group import LeaveGroupRequest, MemberIdentity
from coordinator_sim.messages.requests import GroupRequest
from coordinator_sim.messages.sync_group import (
    SyncGroupRequest,
    SyncGroupRequestAssignment,
    SyncGroupResponse,
)

FOO = bytes(15) + b"\1"
GROUP_RECORD = 2
KAFKA_43 = profile_named("4.3")
_BEAT = ConsumerGroupHeartbeatResponse


class Rehearsal:
    """A broker with the topic `foo` of two partitions, and members of both kinds in `g`."""

    def __init__(
        self, profile: str = "4.4", policy: MigrationPolicy = MigrationPolicy.BIDIRECTIONAL
    ) -> None:
        config = CoordinatorConfig(
            offsets_topic_num_partitions=1,
            group_initial_rebalance_delay_ms=0,
            group_consumer_assignment_interval_ms=0,
            group_coordinator_append_linger_ms=0,
            group_consumer_migration_policy=policy,
        )
        self.broker = Harness(config, profile_named(profile))
        self.broker.set_topic("foo", 2, FOO)

    def call(self, request: GroupRequest, api_version: int) -> Step:
        """Send a request."""
        return self.broker.call(request, api_version=api_version)

    def join(self, member_id: str, owned: tuple[int, ...] = ()) -> JoinGroupResponse:
        """A JoinGroup of version 3, which needs no id to be given first."""
        return answer(self.call(self._join(member_id, owned), 3), JoinGroupResponse)

    def join_with_unread_range(self) -> JoinGroupResponse:
        """The same with the protocol sticky, and after it range, whose data is empty."""
        request = self._join("", ())
        sticky = JoinGroupRequestProtocol("sticky", request.protocols[0].metadata)
        unread = JoinGroupRequestProtocol("range", b"")
        return answer(self.call(replace(request, protocols=(sticky, unread)), 3), JoinGroupResponse)

    def park(self, member_id: str) -> None:
        """A JoinGroup that has to wait for others."""
        assert self.call(self._join(member_id, ()), 3).replies == ()

    def _join(self, member_id: str, owned: tuple[int, ...]) -> JoinGroupRequest:
        places = tuple(TopicPartition("foo", index) for index in owned)
        blob = encode_subscription(Subscription(topics=("foo",), owned_partitions=places), 1)
        return JoinGroupRequest(
            group_id="g",
            session_timeout_ms=10_000,
            rebalance_timeout_ms=5_000,
            member_id=member_id,
            protocol_type="consumer",
            protocols=(JoinGroupRequestProtocol("range", blob),),
        )

    def sync(self, joined: JoinGroupResponse, own: tuple[int, ...] = ()) -> SyncGroupResponse:
        """A SyncGroup; a leader gives itself these partitions."""
        places = tuple(TopicPartition("foo", index) for index in own)
        blob = encode_assignment(ConsumerAssignment(partitions=places))
        request = SyncGroupRequest(
            group_id="g",
            generation_id=joined.generation_id,
            member_id=joined.member_id,
            assignments=(SyncGroupRequestAssignment(joined.member_id, blob),),
        )
        return answer(self.call(request, 3), SyncGroupResponse)

    def classic_beat(self, member_id: str, generation_id: int) -> ErrorCode:
        """A Heartbeat of a classic member."""
        request = HeartbeatRequest(group_id="g", generation_id=generation_id, member_id=member_id)
        return answer(self.call(request, 3), HeartbeatResponse).error_code

    def beat(
        self, member_id: str, epoch: int, owned: tuple[int, ...] | None = None
    ) -> ConsumerGroupHeartbeatResponse:
        """A ConsumerGroupHeartbeat; one of epoch 0 says all that a member says when it joins."""
        return answer(self.call(self.heartbeat(member_id, epoch, owned), 1), _BEAT)

    def heartbeat(
        self, member_id: str, epoch: int, owned: tuple[int, ...] | None = None
    ) -> ConsumerGroupHeartbeatRequest:
        """The request of `beat`."""
        joins = epoch == 0
        held = None if owned is None else (TopicPartitions(FOO, owned),)
        return ConsumerGroupHeartbeatRequest(
            group_id="g",
            member_id=member_id,
            member_epoch=epoch,
            rebalance_timeout_ms=5_000 if joins else -1,
            subscribed_topic_names=("foo",) if joins else None,
            topic_partitions=() if joins else held,
        )

    def describe(self) -> DescribedGroup:
        """The group as ConsumerGroupDescribe shows it."""
        step = self.call(ConsumerGroupDescribeRequest(group_ids=("g",)), 1)
        (group,) = answer(step, ConsumerGroupDescribeResponse).groups
        return group

    def stable_classic(self) -> str:
        """A classic group of one member that has both partitions; its id."""
        joined = self.join("")
        assert self.sync(joined, (0, 1)).error_code is ErrorCode.NONE
        return joined.member_id

    def records(self, start: int) -> list[LogRecord]:
        """What the log has from that record on."""
        return [each for batch in self.broker.log(0) for each in batch.records][start:]


def types_of(records: list[LogRecord]) -> list[int]:
    """The types of records as numbers, negative for tombstones."""
    found = []
    for record in records:
        number = CONSUMER_RECORD_TYPES.get(type(record.key), GROUP_RECORD)
        found.append(-number if record.value is None else number)
    return found


def partitions(response: SyncGroupResponse) -> list[int]:
    """The partitions of `foo` that a SyncGroup gave."""
    return [place.partition for place in decode_assignment(response.assignment).partitions]


@pytest.mark.parametrize("profile", ["4.0", "4.2", "4.3", "4.4"])
def test_a_classic_group_is_upgraded_by_the_first_new_member(profile: str) -> None:
    """Its member keeps what it has until it joins again, and then both share."""
    group = Rehearsal(profile)
    classic = group.stable_classic()
    start = len(group.records(0))
    assert group.beat("new", 0).member_epoch == 2
    topics = [4] if profile == "4.0" else []
    upgrade = [-GROUP_RECORD, 5, *topics, 3, 7, 6, 8]
    assert types_of(group.records(start))[: len(upgrade)] == upgrade
    assert {each.member_type for each in group.describe().members} == {0, 1}
    assert group.classic_beat(classic, 1) is ErrorCode.REBALANCE_IN_PROGRESS
    joined = group.join(classic)
    assert joined.generation_id == 2
    assert joined.members == ()
    kept = partitions(group.sync(joined))
    assert len(kept) == 1
    assert group.classic_beat(classic, 2) is ErrorCode.NONE
    given = group.beat("new", 2, ()).assignment
    assert given is not None
    assert {*kept, *given.topic_partitions[0].partitions} == {0, 1}


def test_who_waits_for_a_generation_is_told_to_join_again() -> None:
    """A parked JoinGroup is answered when the group becomes a consumer group."""
    group = Rehearsal()
    group.stable_classic()
    group.park("")
    step = group.call(group.heartbeat("new", 0), 1)
    (parked,) = [each.response for each in step.replies if each.token != step.token]
    assert isinstance(parked, JoinGroupResponse)
    assert parked.error_code is ErrorCode.REBALANCE_IN_PROGRESS


@pytest.mark.parametrize("profile", ["4.2", "4.4"])
def test_the_group_is_downgraded_when_the_last_new_member_leaves(profile: str) -> None:
    """The classic group goes on at the epoch as its generation, and rebalances at once."""
    group = Rehearsal(profile)
    classic = group.stable_classic()
    group.beat("new", 0)
    start = len(group.records(0))
    group.beat("new", -1)
    assert types_of(group.records(start)) == [-8, -8, -7, -7, -6, -5, -5, -4, -3, GROUP_RECORD]
    assert group.classic_beat(classic, 2) is ErrorCode.REBALANCE_IN_PROGRESS
    assert group.describe().error_code is ErrorCode.GROUP_ID_NOT_FOUND
    assert group.join(classic).generation_id == 3


def test_a_join_by_an_unknown_id_forgets_an_empty_consumer_group() -> None:
    """QUIRK: nothing of it is written, and the next member begins a new group."""
    group = Rehearsal()
    group.beat("new", 0)
    group.beat("new", -1)
    start = len(group.records(0))
    assert group.join("ghost").error_code is ErrorCode.UNKNOWN_MEMBER_ID
    assert group.records(start) == []
    assert group.beat("newer", 0).member_epoch == 2


def test_a_member_that_may_not_go_is_not_asked_again_when_its_time_is_over() -> None:
    """QUIRK: the data of the protocol that the others share cannot be read, so the group stays."""
    group = Rehearsal()
    config = replace(group.broker.config, group_consumer_session_timeout_ms=1_000)
    group.broker.coordinator.reconfigure(config, {})
    group.beat("new", 0)
    assert group.join("").error_code is ErrorCode.NONE
    unread = group.join_with_unread_range()
    assert unread.error_code is ErrorCode.NONE
    start = len(group.records(0))
    group.broker.advance(1_000)
    assert group.records(start) == []
    group.call(LeaveGroupRequest("g", members=(MemberIdentity(unread.member_id),)), 3)
    group.broker.advance(1_000)
    assert len(group.describe().members) == 2


def test_a_refused_append_takes_the_upgrade_back() -> None:
    """The classic group is there as before, and its member goes on."""
    group = Rehearsal()
    classic = group.stable_classic()
    group.broker.fail_appends(ErrorCode.NOT_ENOUGH_REPLICAS)
    assert group.beat("new", 0).error_code is ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert group.describe().error_code is ErrorCode.GROUP_ID_NOT_FOUND
    assert group.classic_beat(classic, 1) is ErrorCode.NONE


def test_a_refused_append_takes_the_downgrade_back() -> None:
    """The consumer group is there as before, its last new member included."""
    group = Rehearsal()
    group.stable_classic()
    group.beat("new", 0)
    before = group.describe()
    group.broker.fail_appends(ErrorCode.NOT_ENOUGH_REPLICAS)
    assert group.beat("new", -1).error_code is ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert group.describe() == before
    assert group.beat("new", 2, ()).error_code is ErrorCode.NONE


def test_a_failover_keeps_either_group() -> None:
    """What a replay of the log gives is the group that was there."""
    group = Rehearsal()
    classic = group.stable_classic()
    group.beat("new", 0)
    before = group.describe()
    group.broker.resign(0)
    group.broker.elect(0, 2)
    assert group.describe() == before
    group.beat("new", -1)
    group.broker.resign(0)
    group.broker.elect(0, 3)
    # The record says Stable: what a rebalance under way had come to is lost, as in Kafka.
    assert group.classic_beat(classic, 2) is ErrorCode.NONE


def test_a_new_member_that_falls_silent_leaves_a_classic_group() -> None:
    """A session that ends downgrades the group like a heartbeat that leaves."""
    group = Rehearsal()
    classic = group.stable_classic()
    group.beat("new", 0)
    for _ in range(9):
        joined = group.join(classic)
        group.sync(joined)
        group.broker.advance(5_000)
    assert group.describe().error_code is ErrorCode.GROUP_ID_NOT_FOUND
    assert group.classic_beat(classic, 2) is ErrorCode.REBALANCE_IN_PROGRESS


@pytest.mark.parametrize(
    ("policy", "upgrades", "downgrades"),
    [
        (MigrationPolicy.DISABLED, False, False),
        (MigrationPolicy.UPGRADE, True, False),
        (MigrationPolicy.DOWNGRADE, False, True),
        (MigrationPolicy.BIDIRECTIONAL, True, True),
    ],
)
def test_the_policy_says_which_way_is_open(
    policy: MigrationPolicy, upgrades: bool, downgrades: bool
) -> None:
    """A closed way up is refused; with a closed way down the group stays what it is."""
    group = Rehearsal(policy=policy)
    group.stable_classic()
    refused = group.beat("new", 0)
    assert (refused.error_code is ErrorCode.NONE) is upgrades
    if not upgrades:
        assert refused.error_message is not None
        assert refused.error_message.endswith("because online upgrade is disabled.")
    other = Rehearsal("4.2", policy)
    other.beat("new", 0)
    assert other.join("old").error_code is ErrorCode.NONE
    other.beat("new", -1)
    is_gone = other.describe().error_code is ErrorCode.GROUP_ID_NOT_FOUND
    assert is_gone is downgrades


@pytest.mark.parametrize(("profile", "error"), [("4.2", 0), ("4.3", 23)])
def test_up_to_42_a_disabled_migration_lets_classic_members_in(profile: str, error: int) -> None:
    """4.3 asks for the policy; seen on Kafka's own."""
    group = Rehearsal(profile, MigrationPolicy.DISABLED)
    group.beat("new", 0)
    assert group.join("old").error_code == error


@pytest.mark.parametrize(("profile", "error"), [("4.3", -1), ("4.4", 23)])
def test_a_malformed_subscription_is_refused(profile: str, error: int) -> None:
    """4.4 has an error for it; seen on Kafka's own."""
    group = Rehearsal(profile)
    group.beat("new", 0)
    request = JoinGroupRequest(
        group_id="g",
        session_timeout_ms=10_000,
        rebalance_timeout_ms=5_000,
        member_id="old",
        protocol_type="consumer",
        protocols=(JoinGroupRequestProtocol("range", b"\0\1"),),
    )
    assert answer(group.call(request, 3), JoinGroupResponse).error_code == error


def test_an_assignment_of_an_own_assignor_stops_the_upgrade() -> None:
    """Its user data would be lost."""
    group = Rehearsal()
    joined = group.join("")
    blob = encode_assignment(ConsumerAssignment(user_data=b"own"))
    request = SyncGroupRequest(
        group_id="g",
        generation_id=joined.generation_id,
        member_id=joined.member_id,
        assignments=(SyncGroupRequestAssignment(joined.member_id, blob),),
    )
    group.call(request, 3)
    refused = group.beat("new", 0)
    assert refused.error_code is ErrorCode.GROUP_ID_NOT_FOUND
    assert refused.error_message is not None
    assert "custom assignor" in refused.error_message


def test_the_policy_is_a_property_in_any_case() -> None:
    """Its words are Kafka's; another word is told what there is."""
    base = CoordinatorConfig()
    found = configured(base, {"group.consumer.migration.policy": "Upgrade"})
    assert found.group_consumer_migration_policy is MigrationPolicy.UPGRADE
    assert properties_of(found) == {"group.consumer.migration.policy": "upgrade"}
    with pytest.raises(ConfigError, match="sideways: name one of disabled, upgrade"):
        configured(base, {"group.consumer.migration.policy": "sideways"})


_NAMES = st.text(st.characters(exclude_categories=["Cs"]), max_size=4)
_PLACES = st.lists(st.tuples(_NAMES, st.integers(0, 9)), max_size=4)


@pytest.mark.property
@given(st.lists(_NAMES, max_size=3), _PLACES, st.sampled_from([None, "", "r"]), st.integers(0, 3))
@settings(max_examples=50)
def test_a_broker_reads_what_a_consumer_writes(
    topics: list[str], places: list[tuple[str, int]], rack_id: str | None, version: int
) -> None:
    """Every subscription and assignment of our codec is read back; cut short, it is refused."""
    owned = tuple(TopicPartition(*place) for place in places)
    subscription = Subscription(topics=tuple(topics), owned_partitions=owned, rack_id=rack_id)
    blob = encode_subscription(subscription, version)
    found = read_subscription(blob, KAFKA_43)
    assert sorted(found.topics) == sorted(topics)
    read = {(name, index) for name, indexes in found.owned for index in indexes}
    assert read == ({*places} if version else set())
    assert found.rack_id == ((rack_id or None) if version == 3 else None)
    assigned = read_assignment(
        encode_assignment(ConsumerAssignment(partitions=owned), version), KAFKA_43
    )
    assert {(name, i) for name, held in assigned.partitions for i in held} == {*places}
    for end in range(len(blob)):
        with pytest.raises(OperationAborted):
            read_subscription(blob[:end], KAFKA_43)


@pytest.mark.parametrize(
    ("blob", "is_malformed"),
    [
        (b"", True),
        (b"\xff\xff", True),
        (b"\0\0", True),
        (b"\0\0\0\0\0\1", False),
        (b"\0\0\0\0\0\1\0", True),
        (b"\0\0\0\0\0\1\0\2t", False),
        (b"\0\0\xff\xff\xff\xff", False),
    ],
)
def test_kafka_tells_two_faults_of_a_blob_apart(blob: bytes, is_malformed: bool) -> None:
    """Numbers that are cut short are malformed; counts and names beyond the end are from 4.4 on."""
    with pytest.raises(OperationAborted) as caught:
        read_subscription(blob, KAFKA_43)
    assert isinstance(caught.value, MalformedBlob) is is_malformed
    with pytest.raises(MalformedBlob):
        read_subscription(blob, profile_named("4.4"))
