"""How fast the core is: heartbeats, commits and joins per CPU-second, trace off.

Each figure is the best of three runs, so that a busy machine does not hide the code's own speed.
Bars: docs of the design (heartbeats 500,000, commits of 10 partitions 100,000, member joins 60,000
per CPU-second; cost per member flat from 10 to 10,000 members).
"""

import gc
from collections.abc import Callable
from time import process_time

from coordinator_sim.coordinator.contract import CoordinatorConfig
from coordinator_sim.coordinator.coordinator import GroupCoordinator
from coordinator_sim.errors import InvariantViolation
from coordinator_sim.kafka.context import RequestContext
from coordinator_sim.kafka.errors import ErrorCode
from coordinator_sim.kafka.profiles import DEFAULT_PROFILE
from coordinator_sim.kafka.seeded_ids import SeededIds
from coordinator_sim.messages.heartbeat import HeartbeatRequest
from coordinator_sim.messages.join_group import (
    JoinGroupRequest,
    JoinGroupRequestProtocol,
    JoinGroupResponse,
)
from coordinator_sim.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from coordinator_sim.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment

HEARTBEATS = 200_000
COMMITS = 20_000
JOINS = 20_000
GROUP_SIZES = (10, 100, 1_000, 10_000)
BARS = {"heartbeats": 500_000, "commits of 10 partitions": 100_000, "member joins": 60_000}

_PROTOCOLS = (JoinGroupRequestProtocol("range", b"s" * 32),)
_SESSION_MS = 45_000
_ADMITTED_MS = 6_000


def make_coordinator() -> GroupCoordinator:
    """A coordinator that leads every partition, trace off, watermark at once."""
    coordinator = GroupCoordinator(
        CoordinatorConfig(trace=False), DEFAULT_PROFILE, ids=SeededIds(1)
    )
    for partition in range(50):
        coordinator.begin_load(partition, 1, 0)
        coordinator.finish_load(partition, ErrorCode.NONE, 0)
    return coordinator


def context(token: int, api_version: int) -> RequestContext:
    """A request's context."""
    return RequestContext(token=token, api_version=api_version, client_id="bench")


def join_request(group_id: str, member_id: str) -> JoinGroupRequest:
    """A JoinGroup as a consumer sends it."""
    return JoinGroupRequest(
        group_id=group_id,
        session_timeout_ms=_SESSION_MS,
        rebalance_timeout_ms=300_000,
        member_id=member_id,
        protocol_type="consumer",
        protocols=_PROTOCOLS,
    )


def hand_out_ids(coordinator: GroupCoordinator, group_id: str, size: int) -> list[str]:
    """The first JoinGroup of each member: MEMBER_ID_REQUIRED."""
    ids: list[str] = []
    for index in range(size):
        result = coordinator.handle(join_request(group_id, ""), context(index, 9), 0)
        response = result.replies[0].response
        if isinstance(response, JoinGroupResponse):
            ids.append(response.member_id)
    return ids


def rebalance(coordinator: GroupCoordinator, groups: dict[str, list[str]]) -> int:
    """From every member's JoinGroup with its id to every SyncGroup's answer; the generation."""
    handle = coordinator.handle
    for group_id, ids in groups.items():
        for index, member_id in enumerate(ids):
            handle(join_request(group_id, member_id), context(index, 9), 0)
    # New members extend the initial delay once; many timers of one instant fire in slices.
    responses: list[JoinGroupResponse] = []
    while (due_ms := coordinator.next_deadline_ms()) is not None and due_ms <= _ADMITTED_MS:
        responses += [
            reply.response
            for reply in coordinator.expire(due_ms).replies
            if isinstance(reply.response, JoinGroupResponse)
        ]
    if not responses:
        raise InvariantViolation("nobody was admitted")
    generation = responses[0].generation_id
    leaders = {response.leader for response in responses}
    for group_id, ids in groups.items():
        assignments = tuple(SyncGroupRequestAssignment(member_id, b"a" * 32) for member_id in ids)
        for index, member_id in enumerate(ids):
            request = SyncGroupRequest(
                group_id=group_id,
                generation_id=generation,
                member_id=member_id,
                assignments=assignments if member_id in leaders else (),
            )
            handle(request, context(index, 5), _ADMITTED_MS)
    return generation


def stable_group(size: int) -> tuple[GroupCoordinator, list[str], int]:
    """A coordinator with one Stable group of that size: it, the member ids, the generation."""
    coordinator = make_coordinator()
    ids = hand_out_ids(coordinator, "g", size)
    return coordinator, ids, rebalance(coordinator, {"g": ids})


def heartbeats_per_second() -> float:
    """Heartbeats of a Stable group of 100 members."""
    coordinator, ids, generation = stable_group(100)
    requests = [
        HeartbeatRequest(group_id="g", generation_id=generation, member_id=member_id)
        for member_id in ids
    ]
    sender = context(1, 4)
    handle = coordinator.handle
    now_ms = _ADMITTED_MS
    start = process_time()
    for _ in range(HEARTBEATS // 100):
        now_ms += 3_000
        for request in requests:
            handle(request, sender, now_ms)
        coordinator.wake_up_ms()
    return HEARTBEATS / (process_time() - start)


def commits_per_second() -> float:
    """Commits of 10 partitions of one topic each, by a member of a Stable group."""
    coordinator, ids, generation = stable_group(10)
    partitions = tuple(OffsetCommitRequestPartition(index, 42) for index in range(10))
    request = OffsetCommitRequest(
        group_id="g",
        generation_id_or_member_epoch=generation,
        member_id=ids[0],
        topics=(OffsetCommitRequestTopic("t", partitions=partitions),),
    )
    sender = context(1, 9)
    handle = coordinator.handle
    start = process_time()
    for now_ms in range(_ADMITTED_MS, _ADMITTED_MS + COMMITS):
        handle(request, sender, now_ms)
    return COMMITS / (process_time() - start)


def joins_per_second(size: int) -> float:
    """Member joins, JoinGroup with its id to the SyncGroup answer, in groups of that size."""
    coordinator = make_coordinator()
    rounds = max(JOINS // size, 1)
    groups = {f"g{index}": hand_out_ids(coordinator, f"g{index}", size) for index in range(rounds)}
    start = process_time()
    rebalance(coordinator, groups)
    return rounds * size / (process_time() - start)


def best_of_three(measure: Callable[[], float]) -> float:
    """The best of three runs, the collector resting."""
    gc.collect()
    gc.disable()
    try:
        return max(measure() for _ in range(3))
    finally:
        gc.enable()


def main() -> None:
    """Print each figure beside its bar, and the cost of a member by group size."""
    figures = {
        "heartbeats": best_of_three(heartbeats_per_second),
        "commits of 10 partitions": best_of_three(commits_per_second),
        "member joins": best_of_three(lambda: joins_per_second(100)),
    }
    for name, figure in figures.items():
        bar = BARS[name]
        print(f"{name:<26} {figure:>10,.0f} /CPU-s   bar {bar:>7,}   {figure / bar:.2f}x")
    for size in GROUP_SIZES:
        figure = best_of_three(lambda size=size: joins_per_second(size))  # type: ignore[misc]
        print(f"join of a {size:>6,}-member group   {1e6 / figure:6.2f} us a member")


if __name__ == "__main__":
    main()
