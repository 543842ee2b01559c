"""The states of a librdkafka group, and the interval by which it repeats itself."""

from dataclasses import dataclass
from enum import Enum, IntEnum, unique


@unique
class JoinState(IntEnum):
    """Where the member is in its join; the order matters to heartbeat answers.

    Source: librdkafka 2.15, rdkafka_cgrp.h, RD_KAFKA_CGRP_JOIN_STATE_*.
    """

    INIT = 0
    WAIT_JOIN = 1
    WAIT_METADATA = 2
    WAIT_SYNC = 3
    WAIT_ASSIGN_CALL = 4
    WAIT_UNASSIGN_CALL = 5
    WAIT_UNASSIGN_TO_COMPLETE = 6
    WAIT_INCR_UNASSIGN_TO_COMPLETE = 7
    STEADY = 8


@unique
class CoordinatorState(Enum):
    """How far the search for the coordinator is.

    Source: librdkafka 2.15, rdkafka_cgrp.h, RD_KAFKA_CGRP_STATE_*.
    """

    QUERY_COORD = "query-coord"
    WAIT_COORD = "wait-coord"
    WAIT_BROKER_TRANSPORT = "wait-broker-transport"
    UP = "up"


@dataclass(slots=True)
class Interval:
    """Something that may happen once an interval, as librdkafka's rd_interval_t.

    `last_ms` None means that it never happened, or may happen at once.
    """

    last_ms: int | None = None
    backoff_ms: int = 0

    def passes(self, now_ms: int, interval_ms: int) -> bool:
        """Whether it may happen now; if so, it did."""
        if self.last_ms is not None and now_ms < self.last_ms + interval_ms + self.backoff_ms:
            return False
        self.last_ms = now_ms
        self.backoff_ms = 0
        return True

    def reset(self) -> None:
        """Let it happen at once."""
        self.last_ms = None
        self.backoff_ms = 0
