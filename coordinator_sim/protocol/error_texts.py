"""What Kafka's errors say of themselves: their texts, and the classes of their exceptions.

Only those that storing a group's record can meet, which log lines name, and FindCoordinator's.

Source: kafka trunk, clients/.../common/protocol/Errors.java.
"""

from typing import Final

from msgspec import Struct

from coordinator_sim.protocol.errors import ErrorCode


class ErrorText(Struct, frozen=True):
    """An error's own message, and its exception's class in `org.apache.kafka.common.errors`."""

    message: str
    exception: str


_TEXTS: Final = {
    ErrorCode.UNKNOWN_SERVER_ERROR: ErrorText(
        "The server experienced an unexpected error when processing the request.",
        "UnknownServerException",
    ),
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: ErrorText(
        "This server does not host this topic-partition.", "UnknownTopicOrPartitionException"
    ),
    ErrorCode.INVALID_FETCH_SIZE: ErrorText(
        "The requested fetch size is invalid.", "InvalidFetchSizeException"
    ),
    ErrorCode.NOT_LEADER_OR_FOLLOWER: ErrorText(
        "For requests intended only for the leader, this error indicates that the broker is not "
        "the current leader. For requests intended for any replica, this error indicates that the "
        "broker is not a replica of the topic partition.",
        "NotLeaderOrFollowerException",
    ),
    ErrorCode.REQUEST_TIMED_OUT: ErrorText("The request timed out.", "TimeoutException"),
    ErrorCode.MESSAGE_TOO_LARGE: ErrorText(
        "The request included a message larger than the max message size the server will accept.",
        "RecordTooLargeException",
    ),
    ErrorCode.COORDINATOR_NOT_AVAILABLE: ErrorText(
        "The coordinator is not available.", "CoordinatorNotAvailableException"
    ),
    ErrorCode.NOT_COORDINATOR: ErrorText(
        "This is not the correct coordinator.", "NotCoordinatorException"
    ),
    ErrorCode.RECORD_LIST_TOO_LARGE: ErrorText(
        "The request included message batch larger than the configured segment size on the server.",
        "RecordBatchTooLargeException",
    ),
    ErrorCode.NOT_ENOUGH_REPLICAS: ErrorText(
        "Messages are rejected since there are fewer in-sync replicas than required.",
        "NotEnoughReplicasException",
    ),
    ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND: ErrorText(
        "Messages are written to the log, but to fewer in-sync replicas than required.",
        "NotEnoughReplicasAfterAppendException",
    ),
    ErrorCode.REBALANCE_IN_PROGRESS: ErrorText(
        "The group is rebalancing, so a rejoin is needed.", "RebalanceInProgressException"
    ),
    ErrorCode.GROUP_AUTHORIZATION_FAILED: ErrorText(
        "Group authorization failed.", "GroupAuthorizationException"
    ),
    ErrorCode.INVALID_REQUEST: ErrorText(
        "This most likely occurs because of a request being malformed by the client library or the "
        "message was sent to an incompatible broker. See the broker logs for more details.",
        "InvalidRequestException",
    ),
    ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED: ErrorText(
        "Transactional Id authorization failed.", "TransactionalIdAuthorizationException"
    ),
    ErrorCode.KAFKA_STORAGE_ERROR: ErrorText(
        "Disk error when trying to access log file on the disk.", "KafkaStorageException"
    ),
}
_PACKAGE: Final = "org.apache.kafka.common.errors."


def error_message(error: ErrorCode) -> str:
    """The error's own message; its name for NONE and for one that is not here."""
    text = _TEXTS.get(error)
    return error.name if text is None else text.message


def exception_name(error: ErrorCode) -> str:
    """The class of the error's exception; the error's name for one as above."""
    text = _TEXTS.get(error)
    return error.name if text is None else _PACKAGE + text.exception
