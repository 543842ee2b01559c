"""Why a heartbeat is refused: an error with the words that go with it.

The words are on the wire, so they are Kafka's.

Source: kafka 4.4, GroupMetadataManager (the throwIf... methods); ConsumerGroup, ShareGroup and
StreamsGroup.
"""

from collections.abc import Callable
from typing import Any, TypeVar

from msgspec import Struct

from coordinator_sim.coordinator.epoch_group import EpochGroup
from coordinator_sim.coordinator.partition import AnyGroup
from coordinator_sim.kafka.errors import ErrorCode

ResponseT = TypeVar("ResponseT")
GroupT = TypeVar("GroupT", bound=EpochGroup[Any, Any, Any])


class Refusal(Struct, frozen=True):
    """An error and its message; without one, clients show the error's default text."""

    error: ErrorCode
    text: str | None = None


def refused(response: Callable[..., ResponseT], refusal: Refusal) -> ResponseT:
    """The answer to a heartbeat that is refused: nothing but the error.

    Source: CoordinatorOperationExceptionHelper.handleOperationException, which drops the text of
    an unknown error.
    """
    text = None if refusal.error is ErrorCode.UNKNOWN_SERVER_ERROR else refusal.text
    return response(error_code=refusal.error, error_message=text)


# -- of every type of group, by its name in `trace.epoch_records` ----------------------------


def unknown_group(group_type: str, group_id: str) -> Refusal:
    """No group of that id, for a member that does not join."""
    text = f"{group_type.capitalize()} group {group_id} not found."
    return Refusal(ErrorCode.GROUP_ID_NOT_FOUND, text)


def no_such_group(group_id: str) -> Refusal:
    """No group of that id, for everything else."""
    return Refusal(ErrorCode.GROUP_ID_NOT_FOUND, f"Group {group_id} not found.")


def other_type(group_type: str, group_id: str) -> Refusal:
    """The group is of another type."""
    text = f"Group {group_id} is not a {group_type} group."
    return Refusal(ErrorCode.GROUP_ID_NOT_FOUND, text)


def group_is_full(group_type: str, limit: int) -> Refusal:
    """No room for another member."""
    return Refusal(
        ErrorCode.GROUP_MAX_SIZE_REACHED,
        f"The {group_type} group has reached its maximum capacity of {limit} members.",
    )


def fenced_epoch(
    group_type: str, received: int, current: int, *, previous: int | None = None
) -> Refusal:
    """The member's epoch is not the one that it should have.

    Args:
        group_type: The type of the group.
        received: The epoch of the heartbeat.
        current: The member's.
        previous: The one that it had before, where Kafka names it.
    """
    size = "greater" if received > current else "smaller"
    other = ""
    if previous is not None:
        other = f", and it does not match the previous member epoch ({previous})"
    return Refusal(
        ErrorCode.FENCED_MEMBER_EPOCH,
        f"The {group_type} group member has a {size} member epoch ({received}) than the one known "
        f"by the group coordinator ({current}){other}. The member must abandon all its partitions "
        "and rejoin.",
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


# -- lookups ----------------------------------------------------------------------------------


def group_of_type(
    group_type: type[GroupT], group_id: str, found: AnyGroup | None
) -> GroupT | Refusal:
    """The group that was found under an id, if it is of that type."""
    if isinstance(found, group_type):
        return found
    if found is None:
        return no_such_group(group_id)
    return other_type(group_type.group_type, group_id)


# -- of a consumer group that was a classic one, or becomes one ----------------------------------


def _not_upgraded(group_id: str, reason: str) -> Refusal:
    return Refusal(
        ErrorCode.GROUP_ID_NOT_FOUND,
        f"Cannot upgrade classic group {group_id} to consumer group because {reason}",
    )


def no_upgrade(group_id: str) -> Refusal:
    """A classic group with members stays a classic group."""
    return _not_upgraded(group_id, "online upgrade is disabled.")


def not_of_consumers(group_id: str) -> Refusal:
    """A classic group whose members are no consumers stays a classic group."""
    return _not_upgraded(group_id, "the group does not use the consumer embedded protocol.")


def group_too_large(group_id: str) -> Refusal:
    """A classic group has more members than a consumer group may have."""
    return _not_upgraded(group_id, "the group size exceeds the consumer group maximum size.")


def malformed_group(group_id: str) -> Refusal:
    """The subscription or the assignment of a member of a classic group cannot be read."""
    return _not_upgraded(group_id, "the embedded consumer protocol is malformed.")


def custom_assignor(group_id: str) -> Refusal:
    """An assignment of a classic group has data of a custom assignor."""
    reason = (
        "an unsupported custom assignor is in use. Please refer to the documentation or switch to "
        "a default assignor before re-attempting the upgrade."
    )
    return _not_upgraded(group_id, reason)


def no_downgrade(group_id: str, fault: str) -> Refusal:
    """The subscription of a classic member cannot be read, so its group stays a consumer group."""
    return Refusal(
        ErrorCode.GROUP_ID_NOT_FOUND, f"Cannot downgrade the classic group {group_id}: {fault}."
    )
