"""What a ConsumerGroupHeartbeat must look like, before any group is looked at.

Source: kafka 4.4, GroupCoordinatorService.throwIfConsumerGroupHeartbeatRequestIsInvalid.
"""

from typing import Final

from coordinator_sim.coordinator.contract import CoordinatorConfig
from coordinator_sim.coordinator.epoch_group import JOIN_EPOCH, LEAVE_EPOCH, STATIC_LEAVE_EPOCH
from coordinator_sim.coordinator.epoch_refusals import Refusal
from coordinator_sim.kafka.errors import ErrorCode
from coordinator_sim.kafka.orders.iteration_order import java_hash_order
from coordinator_sim.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest

_TRIMMED: Final = "".join(chr(code) for code in range(ord(" ") + 1))
"""What Java's String.trim takes away."""
_NAMED_VERSION: Final = 1
"""First version whose members make their own ids. Source: KIP-1082."""


def invalid_heartbeat(
    request: ConsumerGroupHeartbeatRequest, api_version: int, config: CoordinatorConfig
) -> Refusal | None:
    """Return the first fault that a heartbeat shows without its group; None if valid."""
    epoch = request.member_epoch
    has_id = api_version >= _NAMED_VERSION or epoch > JOIN_EPOCH or epoch == LEAVE_EPOCH
    empty = empty_field(
        MemberId=request.member_id if has_id else None,
        GroupId=request.group_id,
        InstanceId=request.instance_id,
        RackId=request.rack_id,
    )
    if empty is not None:
        return _invalid(f"{empty} can't be empty.")
    text = None if epoch > JOIN_EPOCH else _epoch_fault(request)
    if text is not None:
        return _invalid(text)
    assignor = request.server_assignor
    if assignor is not None and assignor not in config.group_consumer_assignors:
        known = ", ".join(java_hash_order(config.group_consumer_assignors))
        return Refusal(
            ErrorCode.UNSUPPORTED_ASSIGNOR,
            f"ServerAssignor {assignor} is not supported. Supported assignors: {known}.",
        )
    return None


def empty_field(**fields: str | None) -> str | None:
    """The name of the first field that is empty but not null. Source: throwIfEmptyString."""
    for name, text in fields.items():
        if text is not None and not text.strip(_TRIMMED):
            return name
    return None


def _epoch_fault(request: ConsumerGroupHeartbeatRequest) -> str | None:
    """What is wrong for a member at the request's epoch; None if nothing is."""
    epoch = request.member_epoch
    if epoch == JOIN_EPOCH:
        if request.rebalance_timeout_ms == -1:
            return "RebalanceTimeoutMs must be provided in first request."
        if request.topic_partitions is None or request.topic_partitions:
            return "TopicPartitions must be empty when (re-)joining."
        if request.subscribed_topic_names is None and request.subscribed_topic_regex is None:
            return (
                "Either SubscribedTopicNames or SubscribedTopicRegex must be non-null when "
                "(re-)joining."
            )
    elif epoch == STATIC_LEAVE_EPOCH:
        if request.instance_id is None:
            return "InstanceId can't be null."
    elif epoch < STATIC_LEAVE_EPOCH:
        return "MemberEpoch is invalid."
    return None


def _invalid(text: str) -> Refusal:
    return Refusal(ErrorCode.INVALID_REQUEST, text)
