"""A walk through everything that a coordinator logs, as a broker's log in a release's words."""

from coordinator_sim.coordinator.contract import CoordinatorConfig
from coordinator_sim.harness.harness import Harness, Step
from coordinator_sim.kafka.api_versions import versions_of
from coordinator_sim.kafka.errors import ErrorCode
from coordinator_sim.kafka.profiles import profile_named
from coordinator_sim.logtext.writing.writer import broker_log
from coordinator_sim.messages import join_group, offset_commit
from coordinator_sim.messages.heartbeat import HeartbeatRequest
from coordinator_sim.messages.leave_group import LeaveGroupRequest, MemberIdentity
from coordinator_sim.messages.requests import GroupRequest
from coordinator_sim.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment
from coordinator_sim.trace.events import TraceEvent

OLD = 3
"""A version of JoinGroup that lets a member in without an id."""
NEW = 9


class Tour:
    """One broker with one offsets partition, in the behaviour and the words of a profile."""

    def __init__(self, profile: str) -> None:
        self.profile = profile_named(profile)
        config = CoordinatorConfig(offsets_topic_num_partitions=1, broker_id=1)
        self.harness = Harness(config, self.profile, seed=7, start_ms=0)
        self.events: list[TraceEvent] = []

    def lines(self) -> list[str]:
        """What the broker would have logged so far."""
        return list(broker_log(self.events, self.profile))

    def call(self, request: GroupRequest, version: int) -> Step:
        """Send a request in that version, or the newest that the profile's brokers offer."""
        newest = versions_of(self.profile)[request.api_key][1]
        step = self.harness.call(request, api_version=min(version, newest), client_id="c")
        return self.take(step)

    def take(self, step: Step) -> Step:
        """Keep the events of a step."""
        self.events += step.events
        return step

    def join(
        self,
        member_id: str = "",
        *,
        version: int = NEW,
        instance: str | None = None,
        protocols: str = "range",
        reason: str | None = None,
    ) -> str:
        """Join group g; the id of whoever was answered last."""
        request = join_group.JoinGroupRequest(
            group_id="g",
            session_timeout_ms=30_000,
            rebalance_timeout_ms=60_000,
            member_id=member_id,
            group_instance_id=instance,
            protocol_type="consumer",
            protocols=tuple(
                join_group.JoinGroupRequestProtocol(name, b"") for name in protocols.split(",")
            ),
            reason=reason,
        )
        step = self.call(request, version)
        return self._last_id(step) or member_id

    def sync(
        self, member_id: str, generation: int, *given: str, instance: str | None = None
    ) -> None:
        """Sync with an assignment for the members given."""
        request = SyncGroupRequest(
            group_id="g",
            generation_id=generation,
            member_id=member_id,
            group_instance_id=instance,
            protocol_type="consumer",
            protocol_name="range",
            assignments=tuple(SyncGroupRequestAssignment(name, b"work") for name in given),
        )
        self.call(request, 5)

    def heartbeat(self, member_id: str, generation: int, instance: str | None = None) -> None:
        """Send a heartbeat."""
        request = HeartbeatRequest(
            group_id="g", generation_id=generation, member_id=member_id, group_instance_id=instance
        )
        self.call(request, 4)

    def leave(self, member_id: str, reason: str | None = None) -> None:
        """Leave."""
        leaving = MemberIdentity(member_id=member_id, reason=reason)
        request = LeaveGroupRequest(group_id="g", members=(leaving,))
        self.call(request, 5)

    def commit(self, group_id: str) -> None:
        """Commit without being a member."""
        request = offset_commit.OffsetCommitRequest(
            group_id=group_id,
            topics=(
                offset_commit.OffsetCommitRequestTopic(
                    "t", partitions=(offset_commit.OffsetCommitRequestPartition(0, 42),)
                ),
            ),
        )
        self.call(request, 8)

    def advance(self, ms: int) -> Step:
        """Let time pass."""
        return self.take(self.harness.advance(ms))

    def _last_id(self, step: Step) -> str:
        for reply in reversed(step.replies):
            if isinstance(reply.response, join_group.JoinGroupResponse):
                return reply.response.member_id
        added = [event.member_id for event in step.events if event.member_id]
        return added[-1] or "" if added else ""


def tour(profile: str) -> list[str]:
    """The log of joins, syncs, failures, departures and a failover of one group."""
    world = Tour(profile)
    first = world.join(version=OLD)
    world.advance(3_000)
    world.sync(first, 1, first)
    second = world.join(reason="")
    world.join(second, reason="why")
    world.join(first)
    world.sync(first, 2, first)
    static = world.join(instance="i")
    world.join(first)
    world.join(second)
    world.sync(first, 3, first, second, static)
    replaced = world.join(instance="i")
    world.heartbeat(static, 3, "i")
    world.join(first)
    world.join(second)
    world.leave(second, "bye")
    world.advance(31_000)
    world.harness.fail_appends(ErrorCode.MESSAGE_TOO_LARGE)
    world.advance(60_000)
    del replaced
    world.commit("simple")
    world.take(world.harness.resign(0, 2))
    world.take(world.harness.elect(0, 3))
    return world.lines()
