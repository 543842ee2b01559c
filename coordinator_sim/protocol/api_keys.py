"""Kafka's API numbers, for the APIs that this project speaks.

Source: kafka trunk, clients/src/main/resources/common/message/*Request.json.
"""

from enum import IntEnum, unique


@unique
class ApiKey(IntEnum):
    """The number of an API in a request header."""

    METADATA = 3
    OFFSET_COMMIT = 8
    OFFSET_FETCH = 9
    FIND_COORDINATOR = 10
    JOIN_GROUP = 11
    HEARTBEAT = 12
    LEAVE_GROUP = 13
    SYNC_GROUP = 14
    DESCRIBE_GROUPS = 15
    LIST_GROUPS = 16
    ADD_OFFSETS_TO_TXN = 25
    WRITE_TXN_MARKERS = 27
    TXN_OFFSET_COMMIT = 28
    DELETE_GROUPS = 42
    OFFSET_DELETE = 47
