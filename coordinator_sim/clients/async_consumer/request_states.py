"""When a request may be sent: one in flight at a time, and backoffs between failures.

Source: kafka 4.4, clients/.../consumer/internals/RequestState.java, HeartbeatRequestState.java.
"""

from coordinator_sim.clients.backoff import Jitter
from coordinator_sim.clients.config import GroupConfig


class RequestState:
    """The state of requests of one kind.

    Args:
        config: Has the backoffs.
        jitter: Source of the backoffs' random parts.
        site: Names the kind in random choices.
        key: Names the client in random choices.

    Attributes:
        is_in_flight: Whether an answer is awaited.
        attempts: Number of failures since the last success.
    """

    __slots__ = (
        "_backoff_ms",
        "_config",
        "_jitter",
        "_key",
        "_received_ms",
        "_site",
        "attempts",
        "is_in_flight",
    )

    def __init__(self, config: GroupConfig, jitter: Jitter, *, site: str, key: str) -> None:
        self._config = config
        self._jitter = jitter
        self._site = site
        self._key = key
        self._received_ms = -1
        self._backoff_ms = 0
        self.is_in_flight = False
        self.attempts = 0

    def reset(self) -> None:
        """Forget the request in flight and all failures (RequestState.reset)."""
        self.is_in_flight = False
        self._received_ms = -1
        self.attempts = 0
        # Counted from instant -1, this backoff is over.
        self._backoff_ms = 0

    def may_send(self, now_ms: int) -> bool:
        """Whether none is in flight, and the backoff is over (RequestState.canSendRequest)."""
        return not self.is_in_flight and not self.backoff_left_ms(now_ms)

    def sent(self) -> None:
        """Record that a request is in flight (RequestState.onSendAttempt)."""
        self.is_in_flight = True

    def succeeded(self, now_ms: int) -> None:
        """Take a success (RequestState.onSuccessfulAttempt)."""
        self.is_in_flight = False
        self._received_ms = now_ms
        self._backoff_ms = self._drawn_ms(0)
        self.attempts = 0

    def failed(self, now_ms: int) -> None:
        """Take a failure (RequestState.onFailedAttempt)."""
        self.is_in_flight = False
        self._received_ms = now_ms
        self._backoff_ms = self._drawn_ms(self.attempts)
        self.attempts += 1

    def backoff_left_ms(self, now_ms: int) -> int:
        """Return what is left of the backoff (RequestState.remainingBackoffMs)."""
        return max(0, self._received_ms + self._backoff_ms - now_ms)

    def _drawn_ms(self, attempts: int) -> int:
        return self._config.retry_backoff().backoff_ms(
            attempts, self._jitter, site=self._site, key=self._key
        )


class HeartbeatState(RequestState):
    """The state of heartbeats, whose interval the coordinator sets.

    Attributes:
        interval_ms: The interval; 0 until the first answer.
    """

    __slots__ = ("_due_ms", "interval_ms")

    def __init__(self, config: GroupConfig, jitter: Jitter, *, key: str) -> None:
        super().__init__(config, jitter, site="heartbeat-backoff", key=key)
        self.interval_ms = 0
        self._due_ms = 0

    def may_send(self, now_ms: int) -> bool:
        """Whether the interval is over, too (HeartbeatRequestState.canSendRequest)."""
        return now_ms >= self._due_ms and super().may_send(now_ms)

    def restart(self, now_ms: int) -> None:
        """Begin the interval (HeartbeatRequestState.resetTimer)."""
        self._due_ms = now_ms + self.interval_ms

    def failed(self, now_ms: int) -> None:
        """Let only the backoff delay the next one (HeartbeatRequestState.onFailedAttempt)."""
        self._due_ms = now_ms
        super().failed(now_ms)

    def take_interval(self, interval_ms: int, now_ms: int) -> None:
        """Adopt the coordinator's interval (HeartbeatRequestState.updateHeartbeatIntervalMs)."""
        if interval_ms != self.interval_ms:
            self.interval_ms = interval_ms
            self._due_ms = now_ms + interval_ms

    def next_in_ms(self, now_ms: int) -> int:
        """Return the time to the next heartbeat (HeartbeatRequestState.timeToNextHeartbeatMs)."""
        if now_ms >= self._due_ms:
            return self.backoff_left_ms(now_ms)
        return self._due_ms - now_ms
