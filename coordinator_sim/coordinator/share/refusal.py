"""Why a heartbeat of a share group is refused; the words are on the wire, so they are Kafka's.

Source: kafka 4.4, GroupMetadataManager (the throwIfShareGroup... methods), ShareGroup.
"""

from coordinator_sim.coordinator.consumer.refusal import Refusal
from coordinator_sim.kafka.errors import ErrorCode
from coordinator_sim.messages.share_group_heartbeat import ShareGroupHeartbeatResponse


def refused_share(refusal: Refusal) -> ShareGroupHeartbeatResponse:
    """The answer to a heartbeat that is refused: nothing but the error."""
    text = None if refusal.error is ErrorCode.UNKNOWN_SERVER_ERROR else refusal.text
    return ShareGroupHeartbeatResponse(error_code=refusal.error, error_message=text)


def unknown_share_group(group_id: str) -> Refusal:
    """No group of that id, for a member that does not join."""
    return Refusal(ErrorCode.GROUP_ID_NOT_FOUND, f"Share group {group_id} not found.")


def no_share_group(group_id: str) -> Refusal:
    """The group is of another type."""
    return Refusal(ErrorCode.GROUP_ID_NOT_FOUND, f"Group {group_id} is not a share group.")


def share_group_is_full(limit: int) -> Refusal:
    """No room for another member."""
    return Refusal(
        ErrorCode.GROUP_MAX_SIZE_REACHED,
        f"The share group has reached its maximum capacity of {limit} members.",
    )


def epoch_too_great(received: int, known: int) -> Refusal:
    """The member's epoch is one that it cannot have."""
    return Refusal(
        ErrorCode.FENCED_MEMBER_EPOCH,
        f"The share group member has a greater member epoch ({received}) than the one known by the "
        f"group coordinator ({known}). The member must abandon all its partitions and rejoin.",
    )


def epoch_too_small(received: int, known: int, previous: int) -> Refusal:
    """The member's epoch is neither its present one nor the one before."""
    return Refusal(
        ErrorCode.FENCED_MEMBER_EPOCH,
        f"The share group member has a smaller member epoch ({received}) than the one known by the "
        f"group coordinator ({known}), and it does not match the previous member epoch "
        f"({previous}). The member must abandon all its partitions and rejoin.",
    )
