"""Names of the Java client's exceptions, and which of them are retriable.

A port never raises them: names travel in futures, in `PollReturned` and in `CommitCompleted`.
"""

from typing import Final

from coordinator_sim.kafka.errors import ErrorCode

DISCONNECT: Final = "DisconnectException"
ILLEGAL_GENERATION: Final = "IllegalGenerationException"
ILLEGAL_STATE: Final = "IllegalStateException"
ILLEGAL_ARGUMENT: Final = "IllegalArgumentException"
KAFKA: Final = "KafkaException"
MEMBER_ID_REQUIRED: Final = "MemberIdRequiredException"
NO_AVAILABLE_BROKERS: Final = "NoAvailableBrokersException"
NO_OFFSET: Final = "NoOffsetForPartitionException"
REBALANCE_IN_PROGRESS: Final = "RebalanceInProgressException"
SCHEMA: Final = "SchemaException"
TIMEOUT: Final = "TimeoutException"
UNJOINED_GROUP: Final = "UnjoinedGroupException"
UNKNOWN_MEMBER_ID: Final = "UnknownMemberIdException"
WAKEUP: Final = "WakeupException"
COMMIT_FAILED: Final = "CommitFailedException"
RETRIABLE_COMMIT_FAILED: Final = "RetriableCommitFailedException"
COORDINATOR_NOT_AVAILABLE: Final = "CoordinatorNotAvailableException"
FENCED_INSTANCE_ID: Final = "FencedInstanceIdException"

_SPECIAL_NAMES: Final = {
    ErrorCode.TOPIC_AUTHORIZATION_FAILED: "TopicAuthorizationException",
    ErrorCode.GROUP_AUTHORIZATION_FAILED: "GroupAuthorizationException",
    ErrorCode.CLUSTER_AUTHORIZATION_FAILED: "ClusterAuthorizationException",
    ErrorCode.KAFKA_STORAGE_ERROR: "KafkaStorageException",
    ErrorCode.UNKNOWN_SERVER_ERROR: "UnknownServerException",
    ErrorCode.NON_EMPTY_GROUP: "GroupNotEmptyException",
    ErrorCode.CORRUPT_MESSAGE: "CorruptRecordException",
    ErrorCode.MESSAGE_TOO_LARGE: "RecordTooLargeException",
    ErrorCode.RECORD_LIST_TOO_LARGE: "RecordBatchTooLargeException",
    ErrorCode.REQUEST_TIMED_OUT: TIMEOUT,
    ErrorCode.OFFSET_METADATA_TOO_LARGE: "OffsetMetadataTooLarge",
    ErrorCode.INVALID_TOPIC_EXCEPTION: "InvalidTopicException",
    ErrorCode.STALE_CONTROLLER_EPOCH: "ControllerMovedException",
    ErrorCode.NETWORK_EXCEPTION: "NetworkException",
}
_RETRIABLE_CODES: Final = (
    ErrorCode.CORRUPT_MESSAGE,
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ErrorCode.LEADER_NOT_AVAILABLE,
    ErrorCode.NOT_LEADER_OR_FOLLOWER,
    ErrorCode.REQUEST_TIMED_OUT,
    ErrorCode.REPLICA_NOT_AVAILABLE,
    ErrorCode.NETWORK_EXCEPTION,
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_COORDINATOR,
    ErrorCode.NOT_ENOUGH_REPLICAS,
    ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND,
    ErrorCode.KAFKA_STORAGE_ERROR,
    ErrorCode.UNSTABLE_OFFSET_COMMIT,
    ErrorCode.FENCED_LEADER_EPOCH,
    ErrorCode.UNKNOWN_LEADER_EPOCH,
    ErrorCode.OFFSET_NOT_AVAILABLE,
    ErrorCode.INCONSISTENT_TOPIC_ID,
    ErrorCode.SHARE_SESSION_NOT_FOUND,
    ErrorCode.INVALID_SHARE_SESSION_EPOCH,
    ErrorCode.SHARE_SESSION_LIMIT_REACHED,
)


def exception_name(error: ErrorCode) -> str:
    """Return the simple name of the exception that Java's `Errors` has for a code.

    Source: kafka trunk, clients/.../common/protocol/Errors.java.
    """
    special = _SPECIAL_NAMES.get(error)
    if special is not None:
        return special
    return "".join(word.capitalize() for word in error.name.split("_")) + "Exception"


RETRIABLE: Final = frozenset(
    {exception_name(code) for code in _RETRIABLE_CODES}
    | {DISCONNECT, NO_AVAILABLE_BROKERS, UNJOINED_GROUP, RETRIABLE_COMMIT_FAILED}
)
"""Names of subclasses of Java's RetriableException. Membership only; never iterated."""

IMMEDIATE_REJOIN: Final = frozenset(
    {UNKNOWN_MEMBER_ID, ILLEGAL_GENERATION, REBALANCE_IN_PROGRESS, MEMBER_ID_REQUIRED}
)
"""Join failures after which AbstractCoordinator.joinGroupIfNeeded loops without a backoff."""
