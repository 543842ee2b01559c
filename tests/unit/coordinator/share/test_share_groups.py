"""Stories of share groups, told by heartbeats. The oracle judges the rest; see `differ`."""

import pytest
from msgspec.structs import replace

from coordinator_sim.coordinator.contract import CoordinatorConfig
from coordinator_sim.coordinator.modern.share.persister import InitializeState
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
from coordinator_sim.messages.delete_groups import DeleteGroupsRequest, DeleteGroupsResponse
from coordinator_sim.messages.delete_share_group_offsets import (
    DeleteShareGroupOffsetsRequest,
    DeleteShareGroupOffsetsRequestTopic,
    DeleteShareGroupOffsetsResponse,
)
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
    assert call.request.partitions_by_topic() == ((FOO, (0, 1, 2, 3)),)
    assert given(members.beat("a", first.member_epoch)) == (0, 1, 2, 3)


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


@pytest.mark.parametrize("outcome", [ErrorCode.NONE, ErrorCode.COORDINATOR_NOT_AVAILABLE])
def test_deleting_offsets_of_a_topic_deleted_meanwhile_fails(outcome: ErrorCode) -> None:
    """Kafka gives the topic a null name, fails to write its answer, and says so."""
    members = Members()
    members.beat("a", 0)
    members.beat("a", -1)
    members.broker.persister.holds = True
    topics = (DeleteShareGroupOffsetsRequestTopic("foo"),)
    members.broker.call(DeleteShareGroupOffsetsRequest("g", topics), api_version=0)
    members.broker.remove_topics(["foo"])
    step = members.broker.answer_persister(outcome)
    failed = step.replies[0].response
    assert isinstance(failed, DeleteShareGroupOffsetsResponse)
    assert failed.error_code is ErrorCode.UNKNOWN_SERVER_ERROR
    assert failed.responses == ()


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
