"""The states of a librdkafka group, and the interval timer of its repeated actions."""

from dataclasses import dataclass
from enum import Enum, IntEnum, unique


@unique
class JoinState(IntEnum):
    """State of the member in its join; the order matters to heartbeat answers.

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
    """State of the search for the coordinator.

    Source: librdkafka 2.15, rdkafka_cgrp.h, RD_KAFKA_CGRP_STATE_*.
    """

    QUERY_COORD = "query-coord"
    WAIT_COORD = "wait-coord"
    WAIT_BROKER_TRANSPORT = "wait-broker-transport"
    UP = "up"


@dataclass(slots=True)
class Interval:
    """Limits an action to once per interval, as librdkafka's rd_interval_t.

    `last_ms` is None when the action never ran, or may run at once.
    """

    last_ms: int | None = None
    backoff_ms: int = 0

    def passes(self, now_ms: int, interval_ms: int) -> bool:
        """Whether the action may run now; if so, count it as run."""
        if self.last_ms is not None and now_ms < self.last_ms + interval_ms + self.backoff_ms:
            return False
        self.last_ms = now_ms
        self.backoff_ms = 0
        return True

    def left_ms(self, now_ms: int, interval_ms: int) -> int:
        """Return the time until the action may run, which has run before; 0 for now."""
        return max(0, (self.last_ms or 0) + interval_ms + self.backoff_ms - now_ms)

    def reset(self) -> None:
        """Let the action run at once."""
        self.last_ms = None
        self.backoff_ms = 0
