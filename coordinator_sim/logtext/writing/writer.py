"""Writes trace events as lines of a broker's log, in the order that the broker logs them.

Source: the order of calls to the logger within one request: GroupCoordinator.handleLeaveGroup
(3.0 to 3.9) logs a departure after the rebalance that it causes, all others before.
"""

from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from typing import Final

import msgspec
from msgspec import Struct

from coordinator_sim.kafka.profiles import Profile
from coordinator_sim.logtext.wordings.catalogue import CATALOGUE
from coordinator_sim.logtext.wordings.fields import Field
from coordinator_sim.logtext.wordings.loggers import logger_of
from coordinator_sim.logtext.wordings.reasons import worded
from coordinator_sim.logtext.wordings.releases import Release, release_of, releases
from coordinator_sim.logtext.wordings.rows import Telling
from coordinator_sim.logtext.wordings.texts import parse, words, write
from coordinator_sim.trace.events import Event, TraceEvent
from coordinator_sim.trace.rebalances import is_of_epoch_group

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
_US_PER_SECOND: Final = 1_000_000


class _Sentence(Struct, frozen=True):
    """A row in the words of one release."""

    telling: Telling
    logger: str
    parts: tuple[str | Field, ...]


class BrokerLogWriter:
    """Writes the log of the brokers of one cluster, which all run the same Kafka.

    A line may come later than its event: departures and removals wait for the next events.

    Args:
        profile: Profile whose wording is used.
    """

    def __init__(self, profile: Profile) -> None:
        self._release = release_of(profile)
        self._sentences = _sentences(self._release)
        self._holds_departures = self._release.is_in("3.0-3.9")
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
        if event.event is Event.MEMBER_KICKED and not is_of_epoch_group(event):
            if event.attrs.get("cause") == "join_timeout":
                self._removed.append(event)
        elif event.event is Event.PREPARE_REBALANCE:
            reason = worded(event, departed, self._release)
            yield from self._lines(msgspec.structs.replace(event, reason_text=reason))
        elif event.event is Event.MEMBER_LEFT and self._holds_departures:
            self._departed = event
        else:
            yield from self._lines(event)

    def _tell_removed(self) -> Iterator[str]:
        removed, self._removed = self._removed, []
        if removed:
            names = ", ".join(str(event.member_id) for event in removed)
            attrs = removed[0].attrs | {"kicked": names}
            yield from self._lines(msgspec.structs.replace(removed[0], attrs=attrs))

    def _tell_departed(self) -> Iterator[str]:
        departed, self._departed = self._departed, None
        if departed is not None:
            yield from self._lines(departed)

    def _lines(self, event: TraceEvent) -> Iterator[str]:
        """Yield the lines of an event in the order of the table: none, one or several."""
        for sentence in self._sentences.get(event.event, ()):
            telling = sentence.telling
            if telling.tells(event, self._release):
                message = write(sentence.parts, event, self._release)
                yield layout(event.ts_us, telling.level, message, sentence.logger)


def broker_log(events: Iterable[TraceEvent], profile: Profile) -> Iterator[str]:
    """Yield the lines, without line ends, that brokers of this Kafka write for a whole trace."""
    writer = BrokerLogWriter(profile)
    for event in events:
        yield from writer.write(event)
    yield from writer.finish()


def layout(ts_us: int, level: str, message: str, logger: str) -> str:
    """Return a line without a line end; the time is UTC, in whole milliseconds.

    Source: config/log4j.properties and config/log4j2.yaml, pattern `[%d] %p %m (%c)%n`.
    """
    at = datetime.fromtimestamp(ts_us // _US_PER_SECOND, UTC)
    millis = ts_us % _US_PER_SECOND // 1_000
    return f"[{at:%Y-%m-%d %H:%M:%S},{millis:03}] {level} {message} ({logger})"


def _sentences(release: Release) -> dict[Event | None, list[_Sentence]]:
    """Return the lines that a release writes, by the events that they tell."""
    sentences: dict[Event | None, list[_Sentence]] = {}
    for row in CATALOGUE:
        telling = row.telling
        if telling is None or not row.releases & ~releases(telling.silent) & release.bit:
            continue
        logger = logger_of(telling.voice, release)
        parts = tuple(words(parse(logger.prefix + row.text), release))
        for event in telling.of or (row.event,):
            sentences.setdefault(event, []).append(_Sentence(telling, logger.name, parts))
    return sentences


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
