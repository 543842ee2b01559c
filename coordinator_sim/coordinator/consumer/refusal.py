"""Why a heartbeat is refused: an error with the words that go with it.

The words are on the wire, so they are Kafka's.

Source: kafka 4.4, GroupMetadataManager (the throwIf... methods), ConsumerGroup.
"""

from typing import TypeGuard, TypeVar

from msgspec import Struct

from coordinator_sim.kafka.errors import ErrorCode
from coordinator_sim.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatResponse

T = TypeVar("T")


class Refusal(Struct, frozen=True):
    """An error and its message; without one, clients show the error's default text."""

    error: ErrorCode
    text: str | None = None


def is_refused(found: T | Refusal) -> TypeGuard[Refusal]:
    """Whether a step was refused."""
    return isinstance(found, Refusal)


def refused(refusal: Refusal) -> ConsumerGroupHeartbeatResponse:
    """The answer to a heartbeat that is refused: nothing but the error.

    Source: CoordinatorOperationExceptionHelper.handleOperationException, which drops the text of
    an unknown error.
    """
    text = None if refusal.error is ErrorCode.UNKNOWN_SERVER_ERROR else refusal.text
    return ConsumerGroupHeartbeatResponse(error_code=refusal.error, error_message=text)


def unknown_group(group_id: str) -> Refusal:
    """No group of that id, for a member that does not join."""
    return Refusal(ErrorCode.GROUP_ID_NOT_FOUND, f"Consumer group {group_id} not found.")


def no_such_group(group_id: str) -> Refusal:
    """No group of that id, for everything else."""
    return Refusal(ErrorCode.GROUP_ID_NOT_FOUND, f"Group {group_id} not found.")


def other_type(group_id: str) -> Refusal:
    """The group is of another type."""
    return Refusal(ErrorCode.GROUP_ID_NOT_FOUND, f"Group {group_id} is not a consumer group.")


def no_upgrade(group_id: str) -> Refusal:
    """A classic group with members stays a classic group."""
    return Refusal(
        ErrorCode.GROUP_ID_NOT_FOUND,
        f"Cannot upgrade classic group {group_id} to consumer group because online upgrade is "
        "disabled.",
    )


def not_of_consumers(group_id: str) -> Refusal:
    """A classic group whose members are no consumers stays a classic group."""
    return Refusal(
        ErrorCode.GROUP_ID_NOT_FOUND,
        f"Cannot upgrade classic group {group_id} to consumer group because the group does not use "
        "the consumer embedded protocol.",
    )


def group_too_large(group_id: str) -> Refusal:
    """A classic group has more members than a consumer group may have."""
    return Refusal(
        ErrorCode.GROUP_ID_NOT_FOUND,
        f"Cannot upgrade classic group {group_id} to consumer group because the group size exceeds "
        "the consumer group maximum size.",
    )


def malformed_group(group_id: str) -> Refusal:
    """What a member of a classic group subscribes to, or has, cannot be read."""
    return Refusal(
        ErrorCode.GROUP_ID_NOT_FOUND,
        f"Cannot upgrade classic group {group_id} to consumer group because the embedded consumer "
        "protocol is malformed.",
    )


def custom_assignor(group_id: str) -> Refusal:
    """An assignment of a classic group has data of an assignor of one's own."""
    return Refusal(
        ErrorCode.GROUP_ID_NOT_FOUND,
        f"Cannot upgrade classic group {group_id} to consumer group because an unsupported custom "
        "assignor is in use. Please refer to the documentation or switch to a default assignor "
        "before re-attempting the upgrade.",
    )


def no_downgrade(group_id: str, fault: str) -> Refusal:
    """The subscription of a classic member cannot be read, so its group stays a consumer group."""
    return Refusal(
        ErrorCode.GROUP_ID_NOT_FOUND, f"Cannot downgrade the classic group {group_id}: {fault}."
    )


def group_is_full(limit: int) -> Refusal:
    """No room for another member."""
    return Refusal(
        ErrorCode.GROUP_MAX_SIZE_REACHED,
        f"The consumer group has reached its maximum capacity of {limit} members.",
    )


def unknown_member(group_id: str, member_id: str) -> Refusal:
    """No member of that id."""
    return Refusal(
        ErrorCode.UNKNOWN_MEMBER_ID, f"Member {member_id} is not a member of group {group_id}."
    )


def unknown_instance(instance_id: str) -> Refusal:
    """No member of that instance id."""
    return Refusal(ErrorCode.UNKNOWN_MEMBER_ID, f"Instance id {instance_id} is unknown.")


def unreleased_instance(instance_id: str, member_id: str, owner_id: str) -> Refusal:
    """The instance id is another member's, who has not left."""
    return Refusal(
        ErrorCode.UNRELEASED_INSTANCE_ID,
        f"Static member {member_id} with instance id {instance_id} cannot join the group because "
        f"the instance id is owned by {owner_id} member.",
    )


def fenced_instance(instance_id: str, member_id: str, owner_id: str) -> Refusal:
    """The instance id is another member's."""
    return Refusal(
        ErrorCode.FENCED_INSTANCE_ID,
        f"Static member {member_id} with instance id {instance_id} was fenced by member "
        f"{owner_id}.",
    )


def fenced_epoch(what: str, received: int, known: int) -> Refusal:
    """The member's epoch is not the one that it should have; `what` is greater or smaller."""
    return Refusal(
        ErrorCode.FENCED_MEMBER_EPOCH,
        f"The consumer group member has a {what} member epoch ({received}) than the one known by "
        f"the group coordinator ({known}). The member must abandon all its partitions and rejoin.",
    )


UNKNOWN_STATE = Refusal(
    ErrorCode.FENCED_MEMBER_EPOCH,
    "The consumer group member is in a unknown state. The member must abandon all its partitions "
    "and rejoin.",
)
"""A member whose record has a state that nobody knows."""
