"""What a ShareGroupHeartbeat must look like, before any group is looked at.

Source: kafka 4.4, GroupCoordinatorService.throwIfShareGroupHeartbeatRequestIsInvalid.
"""

from coordinator_sim.coordinator.consumer.validation import empty_field
from coordinator_sim.coordinator.epoch_group import JOIN_EPOCH, LEAVE_EPOCH
from coordinator_sim.coordinator.epoch_refusals import Refusal
from coordinator_sim.kafka.errors import ErrorCode
from coordinator_sim.messages.share_group_heartbeat import ShareGroupHeartbeatRequest


def invalid_share_heartbeat(request: ShareGroupHeartbeatRequest) -> Refusal | None:
    """Return the first fault that a heartbeat shows without its group; None if valid."""
    empty = empty_field(
        MemberId=request.member_id, GroupId=request.group_id, RackId=request.rack_id
    )
    if empty is not None:
        return _invalid(f"{empty} can't be empty.")
    if request.member_epoch == JOIN_EPOCH:
        if not request.subscribed_topic_names:
            return _invalid("SubscribedTopicNames must be set in first request.")
    elif request.member_epoch < LEAVE_EPOCH:
        return _invalid("MemberEpoch is invalid.")
    return None


def _invalid(text: str) -> Refusal:
    return Refusal(ErrorCode.INVALID_REQUEST, text)
