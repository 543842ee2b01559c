"""Stories of share groups, told by heartbeats. The oracle judges the rest; see `differ`."""

import pytest
from msgspec.structs import replace

from coordinator_sim.coordinator.contract import CoordinatorConfig
from coordinator_sim.coordinator.share.persister import InitializeState, PartitionStart
from coordinator_sim.harness.group_driver import answer
from coordinator_sim.harness.harness import Harness
from coordinator_sim.kafka.errors import ErrorCode
from coordinator_sim.kafka.profiles import profile_named
from coordinator_sim.messages.alter_share_group_offsets import (
    AlterShareGroupOffsetsRequest,
    AlterShareGroupOffsetsRequestPartition,
    AlterShareGroupOffsetsRequestTopic,
    AlterShareGroupOffsetsResponse,
)
from coordinator_sim.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
)
from coordinator_sim.messages.delete_groups import DeleteGroupsRequest, DeleteGroupsResponse
from coordinator_sim.messages.delete_share_group_offsets import (
    DeleteShareGroupOffsetsRequest,
    DeleteShareGroupOffsetsRequestTopic,
    DeleteShareGroupOffsetsResponse,
)
from coordinator_sim.messages.list_groups import ListGroupsRequest, ListGroupsResponse
from coordinator_sim.messages.share_group_describe import (
    DescribedGroup,
    ShareGroupDescribeRequest,
    ShareGroupDescribeResponse,
)
from coordinator_sim.messages.share_group_heartbeat import (
    ShareGroupHeartbeatRequest,
    ShareGroupHeartbeatResponse,
)

FOO = bytes(15) + b"\1"


class Members:
    """A broker with the topic `foo`, and members of the share group `g`."""

    def __init__(self, profile: str = "4.4", *, count: int = 4, interval_ms: int = 0) -> None:
        config = CoordinatorConfig(
            offsets_topic_num_partitions=1,
            group_share_assignment_interval_ms=interval_ms,
            group_coordinator_append_linger_ms=0,
        )
        self.broker = Harness(config, profile_named(profile))
        self.broker.set_topic("foo", count, FOO)

    def beat(self, member_id: str, epoch: int, group_id: str = "g") -> ShareGroupHeartbeatResponse:
        """A heartbeat; one of epoch 0 subscribes to `foo`."""
        request = ShareGroupHeartbeatRequest(
            group_id=group_id,
            member_id=member_id,
            member_epoch=epoch,
            subscribed_topic_names=("foo",) if epoch == 0 else None,
        )
        return answer(self.broker.call(request, api_version=1), ShareGroupHeartbeatResponse)

    def describe(self) -> DescribedGroup:
        """The group as ShareGroupDescribe shows it."""
        step = self.broker.call(ShareGroupDescribeRequest(("g",)), api_version=1)
        return answer(step, ShareGroupDescribeResponse).groups[0]

    def delete(self) -> ErrorCode:
        """The answer to the group's deletion."""
        step = self.broker.call(DeleteGroupsRequest(("g",)), api_version=2)
        return answer(step, DeleteGroupsResponse).results[0].error_code


def given(response: ShareGroupHeartbeatResponse) -> tuple[int, ...] | None:
    """The partitions of the only topic that an answer tells; None when it tells of none."""
    if response.assignment is None:
        return None
    topics = response.assignment.topic_partitions
    return topics[0].partitions if topics else ()


def test_partitions_are_assigned_once_their_state_is_kept() -> None:
    """A first member gets nothing; once the share coordinator has begun, it gets everything."""
    members = Members()
    first = members.beat("a", 0)
    assert (first.error_code, given(first)) == (ErrorCode.NONE, ())
    (call,) = members.broker.persister.calls
    assert isinstance(call.request, InitializeState)
    assert call.request.places() == ((FOO, (0, 1, 2, 3)),)
    assert given(members.beat("a", first.member_epoch)) == (0, 1, 2, 3)


def test_members_share_partitions_when_there_are_more_of_them() -> None:
    """Three members of one partition all have it; nobody waits for another to give it up."""
    members = Members(count=1)
    epochs = {name: members.beat(name, 0).member_epoch for name in ("a", "b", "c")}
    held = {name: members.beat(name, epoch) for name, epoch in epochs.items()}
    assert {member.member_id for member in members.describe().members} == {"a", "b", "c"}
    assert all(
        member.assignment.topic_partitions[0].partitions == (0,)
        for member in members.describe().members
    )
    assert held["c"].error_code is ErrorCode.NONE


def test_nothing_is_assigned_while_the_share_coordinator_is_silent() -> None:
    """Heartbeats are answered all the same, and the call is not repeated at once."""
    members = Members()
    members.broker.persister.holds = True
    epoch = members.beat("a", 0).member_epoch
    assert members.beat("a", epoch).member_epoch == epoch
    assert len(members.broker.persister.calls) == 1
    members.broker.answer_persister(ErrorCode.NONE)
    assert given(members.beat("a", epoch)) == (0, 1, 2, 3)


def test_a_refused_initialisation_is_asked_for_again() -> None:
    """The topic is taken back, and the next heartbeat asks anew."""
    members = Members()
    members.broker.persister.holds = True
    epoch = members.beat("a", 0).member_epoch
    members.broker.answer_persister(ErrorCode.COORDINATOR_NOT_AVAILABLE)
    members.beat("a", epoch)
    assert len(members.broker.persister.calls) == 2
    members.broker.answer_persister(ErrorCode.NONE)
    assert given(members.beat("a", epoch)) == (0, 1, 2, 3)


@pytest.mark.parametrize(("profile", "starts"), [("4.3", {-1}), ("4.4", {0})])
def test_partitions_that_a_topic_gets_later(profile: str, starts: set[int]) -> None:
    """From 4.4 on they are read from their first offset, so that no record is missed."""
    members = Members(profile)
    epoch = members.beat("a", 0).member_epoch
    members.broker.persister.calls.clear()
    members.broker.set_topic("foo", 6, FOO)
    members.beat("a", epoch)
    (call,) = members.broker.persister.calls
    assert isinstance(call.request, InitializeState)
    ((_, partitions),) = call.request.topics
    assert [start.partition for start in partitions] == [4, 5]
    assert {start.start_offset for start in partitions} == starts


def test_a_member_that_is_silent_loses_its_place() -> None:
    """Its session is over after 45 s, and its partitions go to the others."""
    members = Members()
    epoch = members.beat("a", 0).member_epoch
    members.beat("b", 0)
    members.broker.advance(30_000)
    epoch = members.beat("a", epoch).member_epoch
    members.broker.advance(20_000)
    assert given(members.beat("a", epoch)) == (0, 1, 2, 3)
    assert members.beat("b", 3).error_code is ErrorCode.UNKNOWN_MEMBER_ID


def test_a_lost_answer_may_be_asked_for_again() -> None:
    """The epoch before the last is taken, any other is fenced."""
    members = Members()
    first = members.beat("a", 0).member_epoch
    second = members.beat("a", first).member_epoch
    assert members.beat("a", first).member_epoch == second
    assert members.beat("a", first - 1).error_code is ErrorCode.FENCED_MEMBER_EPOCH
    assert members.beat("a", second + 1).error_code is ErrorCode.FENCED_MEMBER_EPOCH


def test_a_failover_keeps_the_group_and_what_is_initialised() -> None:
    """Everything but sessions comes from the log."""
    members = Members()
    epoch = members.beat("a", 0).member_epoch
    epoch = members.beat("a", epoch).member_epoch
    before = members.describe()
    members.broker.resign()
    members.broker.elect(leader_epoch=2)
    members.broker.persister.calls.clear()
    assert members.describe() == before
    assert members.beat("a", epoch).error_code is ErrorCode.NONE
    assert members.broker.persister.calls == []


def test_a_group_is_deleted_once_the_share_coordinator_has_forgotten_it() -> None:
    """While it refuses, the group stays; one with members is refused at once."""
    members = Members()
    epoch = members.beat("a", 0).member_epoch
    assert members.delete() is ErrorCode.NON_EMPTY_GROUP
    members.beat("a", -1)
    members.broker.persister.holds = True
    step = members.broker.call(DeleteGroupsRequest(("g",)), api_version=2)
    assert step.response is None
    step = members.broker.answer_persister(ErrorCode.COORDINATOR_NOT_AVAILABLE)
    refused = step.replies[0].response
    assert isinstance(refused, DeleteGroupsResponse)
    assert refused.results[0].error_code is ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert members.describe().group_state == "Empty"
    members.broker.persister.holds = False
    assert members.delete() is ErrorCode.NONE
    assert members.describe().error_code is ErrorCode.GROUP_ID_NOT_FOUND
    assert members.beat("a", epoch).error_code is ErrorCode.GROUP_ID_NOT_FOUND


def test_groups_that_stay_are_told_in_the_order_of_a_map_with_few_buckets() -> None:
    """HashMap.putAll makes a table of four buckets for two groups; `same-1` comes first there."""
    members = Members()
    long_name = "x" * 300
    for group_id in ("same-1", long_name):
        members.beat("a", 0, group_id)
        members.beat("a", -1, group_id)
    members.broker.persister.holds = True
    members.broker.call(DeleteGroupsRequest((long_name, "same-1")), api_version=2)
    step = members.broker.answer_persister(ErrorCode.COORDINATOR_NOT_AVAILABLE, 2)
    told = step.replies[0].response
    assert isinstance(told, DeleteGroupsResponse)
    assert [each.group_id for each in told.results] == ["same-1", long_name]


def test_groups_of_two_types_do_not_mix() -> None:
    """A consumer is turned away from a share group, which is listed under its own type."""
    members = Members()
    members.beat("a", 0)
    request = ConsumerGroupHeartbeatRequest(
        group_id="g",
        member_id="c",
        rebalance_timeout_ms=5_000,
        subscribed_topic_names=("foo",),
        topic_partitions=(),
    )
    refused = answer(members.broker.call(request, api_version=1), ConsumerGroupHeartbeatResponse)
    assert refused.error_code is ErrorCode.GROUP_ID_NOT_FOUND
    assert refused.error_message == "Group g is not a consumer group."
    step = members.broker.call(ListGroupsRequest(types_filter=("Share",)), api_version=5)
    (listed,) = answer(step, ListGroupsResponse).groups
    assert (listed.group_id, listed.protocol_type, listed.group_state) == ("g", "share", "Stable")


def test_offsets_of_an_empty_group_are_set_and_forgotten() -> None:
    """A group that is not there comes into being; a partition that is not there is refused."""
    members = Members()
    alter = AlterShareGroupOffsetsRequest(
        "g",
        (
            AlterShareGroupOffsetsRequestTopic(
                "foo",
                (
                    AlterShareGroupOffsetsRequestPartition(1, 7),
                    AlterShareGroupOffsetsRequestPartition(9, 0),
                ),
            ),
        ),
    )
    altered = answer(members.broker.call(alter, api_version=0), AlterShareGroupOffsetsResponse)
    errors = [each.error_code for each in altered.responses[0].partitions]
    assert errors == [ErrorCode.NONE, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION]
    (call,) = members.broker.persister.calls
    assert isinstance(call.request, InitializeState)
    assert call.request.topics == ((FOO, (PartitionStart(1, 1, 7),)),)
    forget = DeleteShareGroupOffsetsRequest("g", (DeleteShareGroupOffsetsRequestTopic("foo"),))
    forgotten = answer(members.broker.call(forget, api_version=0), DeleteShareGroupOffsetsResponse)
    assert forgotten.responses[0].error_code is ErrorCode.NONE
    again = answer(members.broker.call(forget, api_version=0), DeleteShareGroupOffsetsResponse)
    assert again.responses[0].error_code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def test_setting_offsets_is_answered_after_those_who_wait_for_the_record_behind_it() -> None:
    """The share coordinator's answer is noted first, which commits what another waited for."""
    members = Members()
    members.broker.persister.holds = True
    topics = (
        AlterShareGroupOffsetsRequestTopic("foo", (AlterShareGroupOffsetsRequestPartition(1, 7),)),
    )
    members.broker.call(AlterShareGroupOffsetsRequest("g", topics), api_version=0)
    members.broker.hold(high_watermark=True)
    members.broker.call(DeleteShareGroupOffsetsRequest("g"), api_version=0)
    members.broker.hold(high_watermark=False)
    step = members.broker.answer_persister(ErrorCode.NONE)
    told = [type(reply.response) for reply in step.replies]
    assert told == [DeleteShareGroupOffsetsResponse, AlterShareGroupOffsetsResponse]


def test_offsets_of_a_group_with_members_stay() -> None:
    """Neither request is taken."""
    members = Members()
    members.beat("a", 0)
    alter = members.broker.call(AlterShareGroupOffsetsRequest("g"), api_version=0)
    forget = members.broker.call(DeleteShareGroupOffsetsRequest("g"), api_version=0)
    refused = ErrorCode.NON_EMPTY_GROUP
    assert answer(alter, AlterShareGroupOffsetsResponse).error_code is refused
    assert answer(forget, DeleteShareGroupOffsetsResponse).error_code is refused


@pytest.mark.parametrize("profile", ["3.9", "4.1"])
def test_older_releases_know_no_share_groups(profile: str) -> None:
    """4.1 had a preview of them, which is not played."""
    members = Members(profile)
    assert members.beat("a", 0).error_code is ErrorCode.UNSUPPORTED_VERSION
    assert members.describe().error_code is ErrorCode.UNSUPPORTED_VERSION


def test_a_share_group_goes_by_settings_of_its_own_until_they_are_taken_away() -> None:
    """Source: GroupMetadataManager.shareGroupHeartbeatIntervalMs and its neighbours."""
    members = Members()
    coordinator, config = members.broker.coordinator, members.broker.config
    own = replace(
        config, group_share_heartbeat_interval_ms=7_000, group_share_session_timeout_ms=50_000
    )
    for settings, interval_ms, session_ms in ((own, 7_000, 50_000), (None, 5_000, 45_000)):
        coordinator.reconfigure(config, {"g": settings})
        assert members.beat("m1", 0).heartbeat_interval_ms == interval_ms
        deadlines = [
            timer.deadline_ms for timer in coordinator.timers() if timer.key.member_id == "m1"
        ]
        assert deadlines == [members.broker.now_ms + session_ms]


def test_a_share_group_waits_for_its_own_assignment_interval() -> None:
    """The next target comes when the group's interval is over, not the broker's."""
    members = Members(interval_ms=1_000)
    config = members.broker.config
    own = replace(config, group_share_assignment_interval_ms=60_000)
    members.broker.coordinator.reconfigure(config, {"g": own})
    first = members.beat("m1", 0)
    members.broker.advance(2_000)
    members.beat("m2", 0)
    assert members.describe().assignment_epoch == first.member_epoch
    members.broker.advance(60_000)
    members.beat("m2", members.describe().assignment_epoch)
    assert members.describe().assignment_epoch > first.member_epoch
