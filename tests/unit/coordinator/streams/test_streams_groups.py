"""Stories of streams groups, told by heartbeats. The oracle judges the rest; see `differ`."""

from coordinator_sim.coordinator.contract import CoordinatorConfig
from coordinator_sim.harness.group_driver import answer
from coordinator_sim.harness.harness import Harness, TimedReply
from coordinator_sim.kafka.profiles import profile_named
from coordinator_sim.kafka.states import StreamsStatus
from coordinator_sim.messages import streams_group_describe
from coordinator_sim.messages.streams_group_heartbeat import (
    StreamsGroupHeartbeatRequest,
    StreamsGroupHeartbeatResponse,
    Subtopology,
    TaskIds,
    TopicInfo,
    Topology,
)

PLAIN = Topology(0, (Subtopology("0", ("in",)),))
STATEFUL = Topology(
    0, (Subtopology("0", ("in",), state_changelog_topics=(TopicInfo("app-store-changelog"),)),)
)
TWO_PARTS = Topology(
    0,
    (
        Subtopology("0", ("in",), repartition_sink_topics=("app-key-repartition",)),
        Subtopology(
            "1",
            repartition_source_topics=(TopicInfo("app-key-repartition"),),
            state_changelog_topics=(TopicInfo("app-count-changelog"),),
        ),
    ),
)


class Application:
    """A broker with the topic `in`, and members of the group `app`."""

    def __init__(
        self, topology: Topology, profile: str = "4.4", *, standbys: int = 0, delay_ms: int = 0
    ) -> None:
        config = CoordinatorConfig(
            offsets_topic_num_partitions=1,
            group_streams_assignment_interval_ms=0,
            group_streams_initial_rebalance_delay_ms=delay_ms,
            group_streams_num_standby_replicas=standbys,
            group_coordinator_append_linger_ms=0,
        )
        self.topology = topology
        self.broker = Harness(config, profile_named(profile))
        self.broker.set_topic("in", 4, bytes(15) + b"\1")

    def reply(
        self, member_id: str, epoch: int, *, owned: str | None = None, process: str = "p"
    ) -> TimedReply:
        """What comes of a heartbeat; one of epoch 0 joins, another reports active tasks of "0"."""
        joins = epoch == 0
        active = () if joins or owned == "" else (TaskIds("0", tuple(map(int, owned or ""))),)
        says = joins or owned is not None
        request = StreamsGroupHeartbeatRequest(
            group_id="app",
            member_id=member_id,
            member_epoch=epoch,
            rebalance_timeout_ms=5_000 if joins else -1,
            topology=self.topology if joins else None,
            active_tasks=active if says else None,
            standby_tasks=() if says else None,
            warmup_tasks=() if says else None,
            process_id=process if joins else None,
        )
        (found,) = self.broker.call(request, api_version=0).replies
        return found

    def beat(
        self, member_id: str, epoch: int, *, owned: str | None = None, process: str = "p"
    ) -> StreamsGroupHeartbeatResponse:
        """The answer to such a heartbeat."""
        response = self.reply(member_id, epoch, owned=owned, process=process).response
        assert isinstance(response, StreamsGroupHeartbeatResponse)
        return response

    def describe(self) -> streams_group_describe.DescribedGroup:
        """The group as StreamsGroupDescribe shows it."""
        step = self.broker.call(
            streams_group_describe.StreamsGroupDescribeRequest(group_ids=("app",)), api_version=0
        )
        (group,) = answer(step, streams_group_describe.StreamsGroupDescribeResponse).groups
        return group


def tasks(response: StreamsGroupHeartbeatResponse) -> dict[str, tuple[int, ...]] | None:
    """The active tasks of an answer, by subtopology; None where it says nothing of them."""
    if response.active_tasks is None:
        return None
    return {each.subtopology_id: each.partitions for each in response.active_tasks}


def statuses(response: StreamsGroupHeartbeatResponse) -> list[StreamsStatus]:
    """What an answer says of the group."""
    return [StreamsStatus(each.status_code) for each in response.status or ()]


def test_internal_topics_are_asked_for_and_then_the_group_is_ready() -> None:
    """Their numbers follow from the source; tasks wait for them."""
    application = Application(TWO_PARTS)
    reply = application.reply("m1", 0)
    assert isinstance(reply.response, StreamsGroupHeartbeatResponse)
    assert statuses(reply.response) == [StreamsStatus.MISSING_INTERNAL_TOPICS]
    assert {each.name: each.partition_count for each in reply.internal_topics} == {
        "app-key-repartition": 4,
        "app-count-changelog": 4,
    }
    assert application.describe().group_state == "NotReady"
    for number, topic in enumerate(reply.internal_topics, 2):
        application.broker.set_topic(topic.name, topic.partition_count, bytes([number]) * 16)
    ready = application.beat("m1", 2, owned="")
    assert tasks(ready) == {"0": (0, 1, 2, 3), "1": (0, 1, 2, 3)}
    assert statuses(ready) == []


def test_a_missing_source_is_told_by_name() -> None:
    """The group stays as it is until the topic comes."""
    application = Application(Topology(0, (Subtopology("0", ("absent",)),)))
    joined = application.beat("m1", 0)
    (status,) = joined.status or ()
    assert status.status_code == StreamsStatus.MISSING_SOURCE_TOPICS
    assert status.status_detail == "Source topics absent are missing."


def test_copies_go_to_another_process() -> None:
    """A process that runs a task keeps no copy of it."""
    application = Application(STATEFUL, standbys=1)
    application.broker.set_topic("app-store-changelog", 4, bytes(15) + b"\2")
    application.beat("m1", 0)
    application.beat("m2", 0, process="q")
    application.beat("m1", 2, owned="0123")
    application.beat("m1", 2, owned="01")
    application.beat("m2", 3, owned="")
    for member in application.describe().members:
        (active,), (standby,) = member.assignment.active_tasks, member.assignment.standby_tasks
        assert {*active.partitions, *standby.partitions} == {0, 1, 2, 3}
        assert not {*active.partitions} & {*standby.partitions}
