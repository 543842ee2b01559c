"""Why a heartbeat of a streams group is refused, in Kafka's words, as they are on the wire.

Source: kafka 4.4, GroupMetadataManager (the throwIf... methods), StreamsGroup.
"""

from coordinator_sim.coordinator.epoch_refusals import Refusal
from coordinator_sim.kafka.errors import ErrorCode


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
