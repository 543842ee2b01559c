"""Where an idle consumer is after any time: heartbeats, polls and refreshes in closed form.

An application without records polls for `POLL_TIMEOUT_MS`, processes nothing for as long as ever,
and polls again. Heartbeats go out at their interval whether it polls or not. A refresh of metadata
that comes due within a poll is sent at once; between two polls the heartbeat thread's next look
sends it, unless a heartbeat takes its place, and then the next poll does. An answer that arrives
between two polls waits for a look or a poll alike.

Pure arithmetic, in whole microseconds; see `clients.port_core` and `clients.heartbeat_thread` for
the threads it speaks of. `elision` says when it may be used.
"""

from math import gcd
from typing import NamedTuple

from msgspec import Struct

from coordinator_sim.clients.idle import IdlePhases, IdleSkip

US_PER_MS = 1_000
_ATTEMPTS = 8
"""Polls that are looked at for one at which nothing is in flight."""


class Landing(NamedTuple):
    """The poll at which a consumer resumes after a skipped stretch; all requests are answered.

    Args:
        poll_us: Instant of that poll.
        rang_us: When a heartbeat was last sent within a poll: the poll's end was asked for then. 0
            for never in the stretch.
        beat_order: When the alarm for the next heartbeat was asked for; and where that was at the
            heartbeat before, when that one's was, and so on.
        skip: What happened before the poll.
    """

    poll_us: int
    rang_us: int
    beat_order: tuple[int, ...]
    skip: IdleSkip

    @property
    def beat_us(self) -> int:
        """When the next heartbeat is due."""
        return self.skip.heartbeat_due_ms * US_PER_MS


class IdleRhythm(Struct, frozen=True, kw_only=True):
    """The rhythm of one idle consumer.

    Args:
        phases: Its next instants.
        next_poll_us: Start of its next poll, a whole millisecond.
        poll_us: Duration of a poll without records.
        busy_us: Time between two polls, whole milliseconds.
        latency_us: Of each message, one way.
    """

    phases: IdlePhases
    next_poll_us: int
    poll_us: int
    busy_us: int
    latency_us: int

    @property
    def cycle_us(self) -> int:
        """From a poll to the next."""
        return self.poll_us + self.busy_us

    @property
    def settling_us(self) -> int:
        """Time after which alarms are asked for in the order of a run without a skip."""
        return self.phases.heartbeat_interval_ms * US_PER_MS + 2 * self.cycle_us

    def is_steady(self) -> bool:
        """Whether nothing times out, and an answer is there before the next heartbeat or poll."""
        phases = self.phases
        longest_us = (phases.longest_pause_ms - 1) * US_PER_MS
        answered_us = 2 * self.latency_us
        interval_us = phases.heartbeat_interval_ms * US_PER_MS
        return (
            max(self.cycle_us, interval_us) + answered_us < longest_us
            and answered_us < min(self.poll_us, interval_us)
            and not self.next_poll_us % US_PER_MS
            and not self.busy_us % US_PER_MS
        )

    @property
    def steps(self) -> tuple[tuple[str, int, int], ...]:
        """Periods and phases of heartbeats and polls; consumers with equal ones act together."""
        interval_us, due_us = self.phases.heartbeat_interval_ms, self.phases.heartbeat_due_ms
        return (
            ("beat", interval_us, due_us % interval_us),
            ("poll", self.cycle_us, self.next_poll_us % self.cycle_us),
        )

    @property
    def refresh_step(self) -> tuple[int, ...]:
        """What consumers have in common whose refreshes keep the order of their alarms."""
        phases = self.phases
        own = (phases.metadata_due_ms, phases.metadata_max_age_ms, phases.look_ms)
        return (*own, *(number for _, *numbers in self.steps for number in numbers), self.busy_us)

    def landing(self, earliest_us: int) -> Landing | None:
        """Return the first poll from an instant on at which the consumer can go on.

        None where none of the next few will do: a request is in flight at each of them, or two
        things of one instant depend on each other.
        """
        cycle_us = self.cycle_us
        refreshes = _Refreshes(self.phases.metadata_due_ms)
        first = max(0, -(-(earliest_us - self.next_poll_us) // cycle_us))
        for place in range(first, first + _ATTEMPTS):
            poll_us = self.next_poll_us + place * cycle_us
            if not self._refresh(refreshes, poll_us):
                return None
            skip = self._skip_to(poll_us, refreshes)
            if skip is None or refreshes.due_ms * US_PER_MS <= poll_us:
                continue
            asks = self._asks(skip.beat_ms)
            if asks and refreshes.sent_us < asks[-1] - self.poll_us:
                rang_us = self._last_beat_within_poll_us(skip.beat_ms)
                return Landing(poll_us, rang_us, asks, skip)
        return None

    def _refresh(self, refreshes: "_Refreshes", before_us: int) -> bool:
        """Let every refresh happen that is answered before an instant; whether that is known."""
        while refreshes.due_ms * US_PER_MS < before_us:
            due_us = refreshes.due_ms * US_PER_MS
            sent_us = self._sent_us(due_us)
            handled_ms = None if sent_us is None else self._handled_ms(sent_us)
            if sent_us is None or handled_ms is None:
                return False
            if handled_ms * US_PER_MS >= before_us:
                break
            refreshes.count += 1
            refreshes.handled_ms = handled_ms
            refreshes.due_ms = handled_ms + self.phases.metadata_max_age_ms
            refreshes.sent_us = sent_us
        return True

    def _asks(self, beat_ms: int) -> tuple[int, ...]:
        """When the alarm for the heartbeat after this one was asked for, and so on backwards.

        A heartbeat between two polls asks for the next one at once, in the order in which it was
        asked for itself. One within a poll leaves that to the end of the poll.

        Returns:
            At least one instant; none where a heartbeat and a poll begin at one instant.
        """
        interval_ms = self.phases.heartbeat_interval_ms
        asks: list[int] = []
        for _ in range(self.cycle_us // gcd(self.cycle_us, interval_ms * US_PER_MS)):
            began_us = self._poll_began_us(beat_ms * US_PER_MS)
            since_us = beat_ms * US_PER_MS - began_us
            if not since_us:
                return ()
            if since_us <= self.poll_us:
                return (*asks, began_us + self.poll_us)
            asks.append(beat_ms * US_PER_MS)
            beat_ms -= interval_ms
            if beat_ms < self.phases.heartbeat_due_ms:
                break
        return tuple(asks)

    def _skip_to(self, poll_us: int, refreshes: "_Refreshes") -> IdleSkip | None:
        """What happened before a poll; None where a heartbeat is in flight or due then."""
        phases = self.phases
        interval_ms = phases.heartbeat_interval_ms
        passed_us = poll_us - phases.heartbeat_due_ms * US_PER_MS
        count = -(-passed_us // (interval_ms * US_PER_MS))
        if count < 1:
            return None
        beat_ms = phases.heartbeat_due_ms + (count - 1) * interval_ms
        answered_us = beat_ms * US_PER_MS + 2 * self.latency_us
        if answered_us >= poll_us or (beat_ms + interval_ms) * US_PER_MS <= poll_us:
            return None
        return IdleSkip(
            heartbeat_due_ms=beat_ms + interval_ms,
            beat_ms=beat_ms,
            beat_count=count,
            answered_ms=answered_us // US_PER_MS,
            polled_ms=(poll_us - self.cycle_us) // US_PER_MS,
            refresh_count=refreshes.count,
            refreshed_ms=refreshes.handled_ms,
        )

    # The application's polls.

    def _poll_began_us(self, at_us: int) -> int:
        """Start of the poll at or before an instant."""
        return at_us - (at_us - self.next_poll_us) % self.cycle_us

    def _is_within_poll(self, at_us: int) -> bool:
        """Whether a poll is under way that neither begins nor ends at the instant."""
        return 0 < at_us - self._poll_began_us(at_us) < self.poll_us

    def _last_beat_within_poll_us(self, beat_ms: int) -> int:
        """The last heartbeat sent within a poll, counted back from one; 0 where none of them is."""
        interval_ms = self.phases.heartbeat_interval_ms
        at_ms = beat_ms
        for _ in range(self.cycle_us // US_PER_MS):
            if at_ms < self.phases.heartbeat_due_ms:
                break
            if self._is_within_poll(at_ms * US_PER_MS):
                return at_ms * US_PER_MS
            at_ms -= interval_ms
        return 0

    # The heartbeat thread's looks.

    def _look_us(self, at_us: int) -> int:
        """The thread's first look at an instant or later."""
        look_us = self.phases.look_ms * US_PER_MS
        return at_us + (self.phases.heartbeat_due_ms * US_PER_MS - at_us) % look_us

    def _beat_after_us(self, at_us: int) -> int:
        """The first heartbeat after an instant."""
        interval_us = self.phases.heartbeat_interval_ms * US_PER_MS
        due_us = self.phases.heartbeat_due_ms * US_PER_MS
        return at_us + interval_us - (at_us - due_us) % interval_us

    # Refreshes of metadata.

    def _sent_us(self, due_us: int) -> int | None:
        """When a refresh that is due is sent; None where an answer comes at the look itself."""
        began_us = self._poll_began_us(due_us)
        ended_us, next_us = began_us + self.poll_us, began_us + self.cycle_us
        if due_us <= ended_us:
            return due_us
        look_us = self._look_us(due_us)
        if look_us >= next_us:
            return next_us
        beat_us = self._beat_after_us(ended_us)
        answer_us = self._beat_after_us(ended_us - 2 * self.latency_us) + 2 * self.latency_us
        if answer_us == look_us:
            return None
        # Both put the thread's next look off to the next heartbeat.
        is_put_off = beat_us <= look_us or answer_us < look_us
        return next_us if is_put_off else look_us

    def _handled_ms(self, sent_us: int) -> int | None:
        """When the answer to a refresh is handled."""
        answer_us = sent_us + 2 * self.latency_us
        began_us = self._poll_began_us(answer_us)
        next_us = began_us + self.cycle_us
        if answer_us - began_us < self.poll_us:
            return answer_us // US_PER_MS
        look_us = self._look_us((answer_us // US_PER_MS + 1) * US_PER_MS)
        beat_us = self._beat_after_us(answer_us)
        if beat_us <= look_us:
            # The heartbeat is sent alone; its answer makes the thread look again.
            beat_answered_ms = (beat_us + 2 * self.latency_us) // US_PER_MS
            look_us = self._look_us((beat_answered_ms + 1) * US_PER_MS)
        return min(look_us, next_us) // US_PER_MS


class _Refreshes:
    """The refreshes of metadata so far: their number, the last one, and the next one."""

    __slots__ = ("count", "due_ms", "handled_ms", "sent_us")

    def __init__(self, due_ms: int) -> None:
        self.due_ms = due_ms
        self.count = 0
        self.handled_ms = 0
        self.sent_us = 0
