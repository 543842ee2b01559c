"""Writes trace events as lines of a broker's log, in the order that the broker logs them.

Source: the order of calls to the logger within one request: GroupCoordinator.handleLeaveGroup
(3.0 to 3.9) logs a departure after the rebalance that it causes, all others before.
"""

from collections.abc import Callable, Iterable, Iterator
from typing import Final

from coordinator_sim.kafka.log_words import LogWords
from coordinator_sim.kafka.profiles import Profile
from coordinator_sim.logtext.writing.entries import Entry, layout
from coordinator_sim.logtext.writing.java import JavaWords
from coordinator_sim.logtext.writing.scala import ScalaWords
from coordinator_sim.logtext.writing.scala_before_3 import LegacyWords, Scala2Words
from coordinator_sim.logtext.writing.words import Words
from coordinator_sim.trace.events import Event, TraceEvent

_WORDS: Final[dict[LogWords, Callable[[Profile], Words]]] = {
    LogWords.RESTABILIZE: LegacyWords,
    LogWords.DEPARTURES_FIRST: Scala2Words,
    LogWords.CLIENT_REASONS: ScalaWords,
    LogWords.JAVA: JavaWords,
}
_FOLLOWS_DEPARTURE: Final = frozenset(
    {
        Event.PREPARE_REBALANCE,
        Event.JOIN_COMPLETE,
        Event.GROUP_EMPTY,
        Event.LEADER_REPLACED,
        Event.MEMBER_KICKED,
        Event.JOIN_RESP,
        Event.SYNC_RESP,
        Event.STORE_FAILED,
    }
)
"""Events that one departure may cause before it is logged itself."""


class BrokerLogWriter:
    """Writes the log of the brokers of one cluster, which all run the same Kafka.

    A line may come later than its event: departures and removals wait for the next events.

    Args:
        profile: Profile whose wording is used.
    """

    def __init__(self, profile: Profile) -> None:
        self._words = _WORDS[profile.log_words](profile)
        self._departed: TraceEvent | None = None
        self._removed: list[TraceEvent] = []

    def write(self, event: TraceEvent) -> list[str]:
        """Return the lines that are complete with this event; events come in trace order."""
        return list(self._take(event))

    def finish(self) -> list[str]:
        """Return the lines that still waited for later events."""
        return [*self._tell_removed(), *self._tell_departed()]

    def _take(self, event: TraceEvent) -> Iterator[str]:
        if self._removed and not _continues(event, self._removed[-1]):
            yield from self._tell_removed()
        departed = self._departed
        if departed is not None and not _is_caused_by(event, departed):
            yield from self._tell_departed()
            departed = None
        if event.event is Event.MEMBER_KICKED:
            if event.attrs.get("cause") == "join_timeout":
                self._removed.append(event)
        elif event.event is Event.PREPARE_REBALANCE:
            yield from _lines(self._words.rebalancing(event, departed), event)
        elif event.event is Event.MEMBER_LEFT and self._words.holds_departures:
            self._departed = event
        else:
            yield from _lines(self._words.entries(event), event)

    def _tell_removed(self) -> Iterator[str]:
        removed, self._removed = self._removed, []
        if removed:
            yield from _lines(self._words.removed(removed), removed[0])

    def _tell_departed(self) -> Iterator[str]:
        departed, self._departed = self._departed, None
        if departed is not None:
            yield from _lines(self._words.entries(departed), departed)


def broker_log(events: Iterable[TraceEvent], profile: Profile) -> Iterator[str]:
    """Yield the lines, without line ends, that brokers of this Kafka write for a whole trace."""
    writer = BrokerLogWriter(profile)
    for event in events:
        yield from writer.write(event)
    yield from writer.finish()


def _lines(entries: Iterable[Entry], event: TraceEvent) -> Iterator[str]:
    for entry in entries:
        yield layout(entry, event.ts_us)


def _continues(event: TraceEvent, removed: TraceEvent) -> bool:
    """Whether a removal belongs to the same end of a join phase as the previous one."""
    return (
        event.event is Event.MEMBER_KICKED
        and event.attrs == removed.attrs
        and event.ts_us == removed.ts_us
        and event.group_id == removed.group_id
    )


def _is_caused_by(event: TraceEvent, departed: TraceEvent) -> bool:
    return (
        event.event in _FOLLOWS_DEPARTURE
        and event.ts_us == departed.ts_us
        and event.group_id == departed.group_id
    )
