"""The coordinator by hand: two members, one rebalance, no network and no waiting.

Run it: python examples/drive_the_core.py
"""

from coordinator_sim.coordinator.contract import CoordinatorConfig, CoordinatorResult
from coordinator_sim.coordinator.coordinator import GroupCoordinator
from coordinator_sim.kafka.context import RequestContext
from coordinator_sim.kafka.errors import ErrorCode
from coordinator_sim.kafka.partitioning import partition_for
from coordinator_sim.kafka.profiles import profile_named
from coordinator_sim.kafka.seeded_ids import SeededIds
from coordinator_sim.messages.join_group import (
    JoinGroupRequest,
    JoinGroupRequestProtocol,
    JoinGroupResponse,
)
from coordinator_sim.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment
from coordinator_sim.trace.story import story_line

GROUP = "orders-app"


def tell(result: CoordinatorResult) -> CoordinatorResult:
    """Print what a verb caused."""
    for event in result.events:
        print(story_line(event))
    return result


def join(member_id: str) -> JoinGroupRequest:
    """A JoinGroup of a consumer that offers the range assignor."""
    return JoinGroupRequest(
        group_id=GROUP,
        session_timeout_ms=10_000,
        rebalance_timeout_ms=60_000,
        member_id=member_id,
        protocol_type="consumer",
        protocols=(JoinGroupRequestProtocol("range", b"subscription"),),
    )


def main() -> None:
    """Two members join, the initial delay runs out, the leader hands out assignments."""
    core = GroupCoordinator(CoordinatorConfig(), profile_named("4.4"), ids=SeededIds(7))
    partition = partition_for(GROUP, 50)
    core.begin_load(partition, 0, 0)
    core.finish_load(partition, ErrorCode.NONE, 0)

    member_ids = []
    for token, client_id in enumerate(("alpha", "beta")):
        context = RequestContext(token=token, api_version=9, client_id=client_id)
        now_ms = 10 * token
        reply = tell(core.handle(join(""), context, now_ms)).replies[0].response
        assert isinstance(reply, JoinGroupResponse)
        member_ids.append(reply.member_id)
        tell(core.handle(join(reply.member_id), context, now_ms + 1))

    joined: list[JoinGroupResponse] = []
    while not joined:
        deadline_ms = core.next_deadline_ms()
        assert deadline_ms is not None, "a parked JoinGroup always has a deadline"
        result = tell(core.expire(deadline_ms))
        joined = [r.response for r in result.replies if isinstance(r.response, JoinGroupResponse)]

    leader = joined[0].leader
    assignments = tuple(SyncGroupRequestAssignment(each, b"half of it") for each in member_ids)
    for token, member_id in enumerate(sorted(member_ids, key=lambda each: each == leader)):
        sync = SyncGroupRequest(
            group_id=GROUP,
            generation_id=joined[0].generation_id,
            member_id=member_id,
            assignments=assignments if member_id == leader else (),
        )
        tell(core.handle(sync, RequestContext(token=token, api_version=5), deadline_ms + 5))


if __name__ == "__main__":
    main()
