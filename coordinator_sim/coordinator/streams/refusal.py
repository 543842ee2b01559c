"""Why a heartbeat of a streams group is refused, in Kafka's words, as they are on the wire.

Source: kafka 4.4, GroupMetadataManager (the throwIf... methods), StreamsGroup.
"""

from coordinator_sim.coordinator.consumer.refusal import Refusal
from coordinator_sim.kafka.errors import ErrorCode
from coordinator_sim.messages.streams_group_heartbeat import StreamsGroupHeartbeatResponse


def refused_streams(refusal: Refusal) -> StreamsGroupHeartbeatResponse:
    """The answer to a heartbeat that is refused: nothing but the error."""
    text = None if refusal.error is ErrorCode.UNKNOWN_SERVER_ERROR else refusal.text
    return StreamsGroupHeartbeatResponse(error_code=refusal.error, error_message=text)


def no_streams_group(group_id: str) -> Refusal:
    """No group of that id, for a member that does not join."""
    return Refusal(ErrorCode.GROUP_ID_NOT_FOUND, f"Streams group {group_id} not found.")


def no_streams_type(group_id: str) -> Refusal:
    """The group is of another type."""
    return Refusal(ErrorCode.GROUP_ID_NOT_FOUND, f"Group {group_id} is not a streams group.")


def streams_group_is_full(limit: int) -> Refusal:
    """No room for another member."""
    return Refusal(
        ErrorCode.GROUP_MAX_SIZE_REACHED,
        f"The streams group has reached its maximum capacity of {limit} members.",
    )


def fenced_streams_epoch(what: str, received: int, known: int) -> Refusal:
    """The member's epoch is not the one that it should have; `what` is greater or smaller."""
    return Refusal(
        ErrorCode.FENCED_MEMBER_EPOCH,
        f"The streams group member has a {what} member epoch ({received}) than the one known by "
        f"the group coordinator ({known}). The member must abandon all its partitions and rejoin.",
    )


def no_subtopology(name: str) -> Refusal:
    """A member reports tasks of no subtopology."""
    return Refusal(ErrorCode.INVALID_REQUEST, f"Subtopology {name} does not exist in the topology.")


def no_task(name: str, number: int, count: int) -> Refusal:
    """A member reports a task that there is none of."""
    return Refusal(
        ErrorCode.INVALID_REQUEST,
        f"Task {number} for subtopology {name} is invalid. Number of tasks for this subtopology: "
        f"{count}",
    )


def repeated_offset(name: str, number: int) -> Refusal:
    """A member reports two offsets of a task."""
    return Refusal(
        ErrorCode.INVALID_REQUEST,
        f"Task offsets contain a duplicate entry for subtopology {name} and partition {number}.",
    )


NO_TOPOLOGY_UPDATE = Refusal(ErrorCode.INVALID_REQUEST, "Topology updates are not supported yet.")
"""A member joins with another topology than the group's, of its epoch or a later one."""

UNKNOWN_STATE = Refusal(
    ErrorCode.FENCED_MEMBER_EPOCH,
    "The streams group member is in a unknown state. The member must abandon all its tasks and "
    "rejoin.",
)
"""A member whose record has a state that nobody knows."""
