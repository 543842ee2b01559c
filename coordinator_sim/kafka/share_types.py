"""Numbers in the requests of share consumers.

Source: kafka 4.4, clients/.../consumer/AcknowledgeType.java, internals/ShareAcquireMode.java.
"""

from enum import IntEnum, unique


@unique
class ShareAcquireMode(IntEnum):
    """How the number of records of a fetch is bounded. Source: ShareAcquireMode.

    BATCH_OPTIMIZED takes whole batches of the log, RECORD_LIMIT no record too many.
    """

    BATCH_OPTIMIZED = 0
    RECORD_LIMIT = 1


@unique
class AcknowledgeType(IntEnum):
    """What a member did with a record. Source: AcknowledgeType; 0 is a gap in the log."""

    GAP = 0
    ACCEPT = 1
    RELEASE = 2
    REJECT = 3
    RENEW = 4
