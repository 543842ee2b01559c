"""LeaveGroup: who sends it, with what, and what its answer changes."""

from coordinator_sim.clients.effects import CallbackKind
from coordinator_sim.clients.generation import MemberState
from coordinator_sim.kafka.errors import ErrorCode
from coordinator_sim.kafka.resources import TopicPartition
from coordinator_sim.messages.leave_group import (
    LeaveGroupRequest,
    LeaveGroupResponse,
    MemberResponse,
)
from coordinator_sim_conformance.client_cases.bench import MEMBER, Bench, ConsumerBench
from coordinator_sim_conformance.client_cases.case import client_case

_T0 = TopicPartition("t", 0)


def _left(consumer: ConsumerBench) -> list[tuple[str, str | None]]:
    """Return which members left, and why."""
    leaves = consumer.sent(LeaveGroupRequest)
    return [(each.member_id, each.reason) for leave in leaves for each in leave.members]


@client_case("C-LEAVE-01", "ConsumerCoordinatorTest.testLeaveGroupOnClose")
def dynamic_member_leaves_when_closed(bench: Bench) -> None:
    """A dynamic member that is closed leaves, and says so."""
    consumer = bench.consumer()
    consumer.settle(_T0)
    consumer.close()
    bench.expect("left", _left(consumer), [(MEMBER, "the consumer is being closed")])
    bench.expect("told last", consumer.changes[-1], (CallbackKind.PARTITIONS_REVOKED, (_T0,)))
    bench.expect("closed before the answer", consumer.is_closed, wanted=False)
    consumer.answer(LeaveGroupRequest, LeaveGroupResponse())
    bench.expect("closed", consumer.is_closed, wanted=True)


@client_case(
    "C-LEAVE-02",
    "AbstractCoordinatorTest.testLeaveGroupSentWithGroupInstanceIdUnSet",
    "AbstractCoordinator.maybeLeaveGroup",
)
def static_member_does_not_leave(bench: Bench) -> None:
    """A static member that is closed sends nothing."""
    consumer = bench.consumer(group_instance_id="i")
    consumer.settle(_T0)
    consumer.close()
    bench.expect("left", _left(consumer), [])
    bench.expect("closed", consumer.is_closed, wanted=True)


@client_case("C-LEAVE-03", "ConsumerCoordinatorTest.testPendingMemberShouldLeaveGroup")
def pending_member_leaves(bench: Bench) -> None:
    """A pending member that has only a member id leaves with that id."""
    consumer = bench.consumer()
    consumer.poll()
    consumer.refuse_join(ErrorCode.MEMBER_ID_REQUIRED, MEMBER)
    consumer.close()
    bench.expect("left", _left(consumer), [(MEMBER, "the consumer is being closed")])


@client_case(
    "C-LEAVE-04",
    "AbstractCoordinatorTest.testHandleNormalLeaveGroupResponseAndTruncatedLeaveReason",
    "JoinGroupRequest.maybeTruncateReason",
)
def reason_is_cut(bench: Bench) -> None:
    """A reason is cut at 255 characters."""
    consumer = bench.consumer()
    consumer.settle(_T0)
    long = "because " * 40
    consumer.do(consumer.port.leave_group(long, consumer.now_ms))
    bench.expect("left", _left(consumer), [(MEMBER, long[:255])])


@client_case(
    "C-LEAVE-05",
    "AbstractCoordinatorTest.testHandleLeaveGroupResponseWithException",
    "AbstractCoordinator.LeaveGroupResponseHandler",
)
def leave_is_not_retried(bench: Bench) -> None:
    """An error to LeaveGroup changes nothing: the member has reset itself, and does not retry."""
    consumer = bench.consumer()
    consumer.idle()
    consumer.do(consumer.port.unsubscribe(0))
    bench.expect("state", consumer.port.state, MemberState.UNJOINED)
    bench.expect("generation", consumer.port.generation_id, -1)
    refused = MemberResponse(
        member_id=MEMBER, error_code=ErrorCode.UNKNOWN_MEMBER_ID, group_instance_id=None
    )
    consumer.answer(LeaveGroupRequest, LeaveGroupResponse(members=(refused,)))
    consumer.advance(60_000)
    bench.expect("left", _left(consumer), [(MEMBER, "the consumer unsubscribed from all topics")])
