"""Reads the text log of a broker (or a client) into trace events, line by line.

Events come out in the order of the lines: order inside a file is the order of its lines, not of
its times, which may run backwards. No file is opened here. `client_log` reads lines of clients.
"""

from collections.abc import Callable, Iterable, Iterator
from datetime import tzinfo
from itertools import product
from operator import add
from typing import Final

import msgspec
import numpy as np
from numpy.typing import NDArray

from coordinator_sim.logtext.reading import event_builder, log_state, printed_settings
from coordinator_sim.logtext.reading.broker_words import fill_prefix, is_brokers
from coordinator_sim.logtext.reading.client_log import ClientLog
from coordinator_sim.logtext.reading.envelopes import NATIVE, Envelope, peel
from coordinator_sim.logtext.reading.incarnations import IncarnationCounter
from coordinator_sim.logtext.reading.instants import InstantReader
from coordinator_sim.logtext.reading.line_clock import Int64s, LineClock, LineTimes
from coordinator_sim.logtext.reading.messages import find
from coordinator_sim.logtext.reading.summary import IngestSummary
from coordinator_sim.logtext.reading.text import (
    clean,
    has_token,
    is_exception,
    is_open,
    is_stack_trace,
    pattern_of,
)
from coordinator_sim.trace.batches import Names, batches_of
from coordinator_sim.trace.events import Event, RebalanceReason, Source, TimeKind, TraceEvent

_FAILURES: Final = frozenset({Event.LOAD_FAILED, Event.STORE_FAILED})
"""Events whose reason may be the exception in the next line."""
_ERROR_LENGTH: Final = 1_000
_JOIN_LIMIT: Final = 4
"""Most continuation lines of one wrapped message; at 80 columns a long one takes five."""
_TIME_WITHIN: Final = 80
"""Number of leading characters, collectors' prefixes included, in which a line's time begins."""
_HELD_LIMIT: Final = 64
_QUIET_LEVELS: Final = frozenset({"DEBUG", "TRACE", "FINE", "FINER", "FINEST"})
_CAUSES: Final = {
    Event.MEMBER_FAILED: RebalanceReason.MEMBER_FAILED,
    Event.MEMBER_LEFT: RebalanceReason.MEMBER_LEFT,
}


def parse_broker_log(
    lines: Iterable[str],
    *,
    source_ref: str,
    tz: tzinfo,
    summary: IngestSummary | None = None,
    keep_raw: bool = False,
) -> Iterator[TraceEvent]:
    """Yield the events of one log, in line order; incarnations are counted within this log.

    Args:
        lines: Lines with or without line ends.
        source_ref: Names the log in its events.
        tz: Zone of the times that do not name one.
        summary: Receives the counts; complete when the last event has been taken.
        keep_raw: Whether events carry their line.
    """
    counter = IncarnationCounter()
    log = BrokerLog(source_ref, tz, summary=summary, keep_raw=keep_raw)
    for batch in batches_of(log.read(lines), Names()):
        yield from counter.number(batch).events()


class BrokerLog:
    """Reads one log; incarnations stay 0 for a caller that knows the cluster's other logs.

    Args:
        source_ref: Names the log in its events.
        tz: Zone of the times that do not name one.
        summary: Receives the counts.
        keep_raw: Whether events carry their line.
        border: State at the line above the first; at its beginning, if none is given.
        day_first: See `InstantReader`.
    """

    def __init__(
        self,
        source_ref: str,
        tz: tzinfo,
        *,
        summary: IngestSummary | None = None,
        keep_raw: bool = False,
        border: log_state.Border | None = None,
        day_first: bool = False,
    ) -> None:
        self.summary = IngestSummary() if summary is None else summary
        self.source_ref = source_ref
        self.keep_raw = keep_raw
        self.tz = tz
        self._reader = InstantReader(tz, day_first=day_first)
        self.fold_departures: Callable[[], None] = lambda: None
        """Calls `note_departure` for the departures that were read so far."""
        self._ready: list[TraceEvent] = []
        self._begin(log_state.Border() if border is None else border)

    def _begin(self, border: log_state.Border) -> None:
        pending = border.pending
        self._began = pending
        self._unfinished = pending.unfinished
        self.previous = pending.previous
        """The line above the next one."""
        self._last_ts_us = pending.last_ts_us
        self._seen_tail = pending.has_tail
        self._timeless = list(pending.timeless)
        self._failed = pending.failed
        self._held = list(pending.held)
        self._block = pending.block
        self._evidence = border.evidence
        self._evidence.observations.clear()
        self._clocks = log_state.Carried(border.clocks)
        self._departures = log_state.Departures(border.departures)
        self._clients = log_state.Carried(border.clients)

    def begin_range(self) -> None:
        """Make the next line the first, number 1, of a range: lines so far only prepared it."""
        self._ready.clear()
        self.summary = IngestSummary()
        _, border = self.range_state(0).settle(log_state.Border(evidence=self._evidence))
        self._begin(border)

    def range_state(self, line_count: int) -> log_state.RangeState:
        """Return what the range of so many lines began with, asked of that, and left."""
        ended = log_state.Pending(
            previous=self.previous,
            unfinished=self._unfinished,
            last_ts_us=self._last_ts_us,
            has_tail=self._seen_tail,
            timeless=tuple(self._timeless),
            failed=self._failed,
            held=tuple(self._held),
            block=self._block,
        )
        return log_state.RangeState(
            *(self._began, ended, line_count, self._clocks, self._clients, self._departures),
            list(self._evidence.observations),
        )

    def read(self, lines: Iterable[str]) -> Iterator[TraceEvent]:
        """Yield the events, in line order. May be called once."""
        for number, line in enumerate(lines, 1):
            self.summary.lines += 1
            self.read_one(number, line)
            if self._ready:
                yield from self.drain()
            self.previous = line
        self.finish()
        yield from self.drain()

    def read_one(self, number: int, line: str) -> None:
        """Read one line; `previous` is the line above it."""
        if self._failed is not None:
            self._settle_failure(line)
        if self._block is not None and self._continues_block(line):
            return
        if self._unfinished is not None or has_token(line):
            self._take(number, line)
            if self._failed is not None and is_exception(line):
                self._settle_failure(line)

    def finish(self) -> None:
        """Read what waited for further lines, at the end of the log."""
        self._end_block()
        self._give_up_joining()
        self._settle_failure("")
        self._release_timeless(0)
        self._release_held()
        self.summary.version_ranges = self._evidence.fingerprint.ranges

    @property
    def waits(self) -> bool:
        """Whether the next line, whatever it is, matters for an earlier one."""
        return not (self._unfinished is None and self._failed is None and self._block is None)

    @property
    def is_settled(self) -> bool:
        """Whether no line so far depends on a later one."""
        return not (self.waits or self._held or self._timeless or self._last_ts_us is None)

    @property
    def is_alone(self) -> bool:
        """Whether the next line is read by itself."""
        return not self.waits

    def take_times(
        self, layout: str, ts_us: Int64s, repeats_us: Int64s, has_event: NDArray[np.bool_]
    ) -> LineTimes:
        """Return the times of lines in a row, which a broker wrote in whole milliseconds.

        Args:
            layout: Layout of the lines.
            ts_us: Times as written.
            repeats_us: Time to add to each if the clocks had already gone back.
            has_event: Whether each line gives an event.
        """
        clock = self._clocks.get((True, layout), LineClock)
        times = clock.read_all(ts_us, repeats_us, err_us=1_000)
        own_us = times.ts_us[has_event]
        if len(own_us) and self._last_ts_us is not None:
            before_us = np.concatenate([[self._last_ts_us], own_us[:-1]])
            late = (own_us < before_us) | ~times.is_measured[has_event]
            self.summary.clock_regressions += int(late.sum())
            self._last_ts_us = int(own_us[-1])
        return times

    def note_departure(self, group_id: str, departure: log_state.Departure) -> None:
        """Take note of a departure that was read with other lines; the latest of a group counts."""
        self._departures.note(group_id, departure)

    def drain(self) -> list[TraceEvent]:
        """Return the events that wait for nothing any more, and count them."""
        ready, self._ready = self._ready, []
        for event in ready:
            self.summary.count_event(event)
        return ready

    def _take(self, number: int, line: str) -> None:
        if self._unfinished is not None:
            if self._joins(line):
                return
            self._give_up_joining()
        if not has_token(line):
            return
        text = clean(line)
        envelope = self._with_time(peel(text, self._reader))
        if printed_settings.MARK in text and self._begins_block(number, envelope, text):
            return
        if self._may_go_on(envelope):
            self._unfinished = log_state.Unfinished(number, (text,))
        else:
            self._read_line(number, envelope, text)

    def _begins_block(self, number: int, envelope: Envelope, raw: str) -> bool:
        """Whether a line begins a block of settings; if so it is consumed."""
        line = event_builder.Line(
            number, envelope, *self._time_of(number, envelope), truncated=False, raw=raw
        )
        columns = event_builder.base_columns(
            line, Source.CONSUMER_LOG, self.source_ref, keep_raw=self.keep_raw
        )
        self._block = printed_settings.begun(raw, columns)
        if self._block is not None:
            self.summary.count_layout(envelope.layout)
        return self._block is not None

    def _continues_block(self, line: str) -> bool:
        """Whether a line goes on with a block of settings; if so it is consumed."""
        text = clean(line)
        block = None if self._block is None else printed_settings.continued(self._block, text)
        is_end = block is None and printed_settings.is_end(text)
        if block is None:
            self._end_block()
        else:
            self._block = block
        self.summary.continuations += block is not None or is_end
        return block is not None or is_end

    def _end_block(self) -> None:
        """Emit the settings of a block that no line goes on with."""
        block, self._block = self._block, None
        if block is None:
            return
        event = printed_settings.ended(block)
        if event is None:
            self.summary.known += 1
        else:
            self.summary.parsed += 1
            self._emit(event)

    def _may_go_on(self, envelope: Envelope) -> bool:
        if envelope.has_tail or envelope.layout in ("jul", "librdkafka", "json"):
            return False
        message = envelope.message
        return is_open(message) or (is_brokers(envelope) and find(message) is None)

    def _joins(self, line: str) -> bool:
        """Whether the line may continue the unfinished one; if so it is consumed."""
        unfinished = self._unfinished
        text = clean(line)
        if unfinished is None or not text or is_stack_trace(line):
            return False
        if len(unfinished.parts) > _JOIN_LIMIT or self._has_own_time(text):
            return False
        parts = (*unfinished.parts, text)
        self._unfinished = log_state.Unfinished(unfinished.number, parts)
        if self._join(parts).has_tail:
            self._finish_joining(len(parts))
        return True

    def _join(self, parts: tuple[str, ...]) -> Envelope:
        """Join a wrapped message; each break is either inside a word or between two words.

        The way that parses most of the message wins; there are at most 16.
        """
        best, most = peel("".join(parts), self._reader), -1
        for breaks in product(("", " "), repeat=len(parts) - 1):
            text = parts[0] + "".join(map(add, breaks, parts[1:]))
            envelope = peel(text, self._reader)
            found = find(envelope.message)
            understood = -1 if found is None else sum(map(bool, found[1].groups()))
            if understood > most:
                best, most = envelope, understood
        return best

    def _give_up_joining(self) -> None:
        """Join the fewest lines that make a whole message, as no logger came; split the rest."""
        if self._unfinished is None:
            return
        parts = self._unfinished.parts
        counts = range(1, len(parts) + 1)
        whole = (count for count in counts if not self._may_go_on(self._join(parts[:count])))
        self._finish_joining(next(whole, 1))

    def _finish_joining(self, count: int) -> None:
        """Read the first `count` lines of the unfinished one as one line, the rest separately."""
        unfinished, self._unfinished = self._unfinished, None
        if unfinished is None:
            return
        number, parts = unfinished.number, unfinished.parts
        self.summary.continuations += count - 1
        envelope = self._with_time(self._join(parts[:count]))
        self._read_line(number, envelope, " ".join(parts[:count]))
        for offset, text in enumerate(parts[count:], count):
            if has_token(text):
                self._read_line(number + offset, peel(text, self._reader), text)

    def _has_own_time(self, text: str) -> bool:
        is_native = text.startswith(("{", "%")) or NATIVE.match(text) is not None
        return is_native or bool(self._reader.find_all(text[:_TIME_WITHIN]))

    def _with_time(self, envelope: Envelope) -> Envelope:
        """Take the time of a two-line layout from the line before."""
        if envelope.instant is not None:
            return envelope
        previous = clean(self.previous)[:_TIME_WITHIN]
        instants = self._reader.find_all(previous)
        if not instants or instants[0].start > 1:
            return envelope
        after = previous[instants[0].end :].strip(" ]|")
        is_header = envelope.layout == "jul" or not after
        if not is_header:
            return envelope
        layout = "jul" if after else "dual-ts"
        return msgspec.structs.replace(envelope, instant=instants[0], layout=layout)

    def _read_line(self, number: int, envelope: Envelope, raw: str) -> None:
        if not self._seen_tail:
            above = envelope if envelope.has_tail else peel(clean(self.previous), self._reader)
            self._seen_tail = above.has_tail and above.layout != "json"
        ts_us, kind, err_us = self._time_of(number, envelope)
        line = event_builder.Line(
            number, envelope, ts_us, kind, err_us, self._is_truncated(envelope), raw
        )
        events = self._events_of(line)
        if events is None:
            return
        self.summary.count_layout(envelope.layout)
        for event in events:
            self._emit(event)

    def _time_of(self, number: int, envelope: Envelope) -> tuple[int, TimeKind, int]:
        """Return when the line was written: brokers and clients in one log have separate clocks."""
        instant = envelope.instant
        if instant is None:
            return self._last_ts_us or 0, TimeKind.INFERRED, 0
        writer = (is_brokers(envelope), envelope.layout)
        time = self._clocks.get(writer, LineClock).read(instant)
        if time.set_back_us:
            self.summary.set_backs[number] = time.set_back_us
        kind = TimeKind.LOGGED if time.is_measured else TimeKind.INFERRED
        return time.ts_us, kind, time.err_us

    def _is_truncated(self, envelope: Envelope) -> bool:
        if envelope.has_tail:
            return "…" in envelope.message
        return is_open(envelope.message) or (
            self._seen_tail
            and not envelope.logger  # It stood before the message: no tail is missing.
            and envelope.layout not in ("jul", "librdkafka", "json", "python")
        )

    def _events_of(self, line: event_builder.Line) -> list[TraceEvent] | None:
        """Return the line's events; None when it is not a coordinator's or a client's."""
        if is_brokers(line.envelope):
            return self._broker_events(line)
        log = ClientLog(self.source_ref, self._clients, keep_raw=self.keep_raw)
        events = log.read(line)
        if events is None:
            return None
        if events:
            self.summary.parsed += 1
        else:
            self.summary.known += 1
        return events

    def _broker_events(self, line: event_builder.Line) -> list[TraceEvent]:
        message = line.envelope.message
        found = find(message)
        if found is None:
            if line.envelope.level in _QUIET_LEVELS:
                self.summary.known += 1
                return []
            return [self._unparsed(line)]
        match = event_builder.read_match(found[0], found[1], line)
        if match.lost_group:
            return [self._unparsed(line)]
        if match.row.name == "static-no-rebalance":
            self._mark_quiet_replacement()
        columns = event_builder.base_columns(
            line, Source.BROKER_LOG, self.source_ref, keep_raw=self.keep_raw
        )
        fill_prefix(message, columns)
        attrs = event_builder.line_attrs(line, match.row.attrs)
        events = event_builder.build_events(match, line, columns, attrs)
        if events:
            self.summary.parsed += 1
        else:
            self.summary.known += 1
        wording = (match.row.name, *match.values, str(columns.get("reason")))
        return self._with_fingerprint(events, wording, line)

    def _unparsed(self, line: event_builder.Line) -> TraceEvent:
        pattern = pattern_of(line.envelope.message)
        self.summary.count_unparsed(pattern)
        columns = event_builder.base_columns(
            line, Source.BROKER_LOG, self.source_ref, keep_raw=self.keep_raw
        )
        fill_prefix(line.envelope.message, columns)
        attrs = event_builder.line_attrs(line, {"pattern": pattern})
        return TraceEvent(event=Event.UNPARSED, attrs=attrs, **columns)  # type: ignore[arg-type]

    def _with_fingerprint(
        self, events: list[TraceEvent], wording: tuple[str, ...], line: event_builder.Line
    ) -> list[TraceEvent]:
        """Note version evidence: each wording counts once, on the event that narrows the range."""
        wording = (*wording, str(line.truncated))
        if self._evidence.knows(wording):
            return events
        envelope = line.envelope
        current = self._evidence.observe(
            *(wording, envelope.message, envelope.logger),
            is_whole=not line.truncated,
            has_event=bool(events),
        )
        if current is None:
            return events
        attrs = events[0].attrs | {"broker_version_range": current}
        return [msgspec.structs.replace(events[0], attrs=attrs), *events[1:]]

    def _emit(self, event: TraceEvent) -> None:
        is_inferred = event.ts_kind is TimeKind.INFERRED
        if is_inferred and self._last_ts_us is None:
            self._timeless.append(event)
            return
        if self._last_ts_us is None:
            self._release_timeless(event.ts_us)
        elif event.ts_us < self._last_ts_us or (is_inferred and event.ts_err_us):
            self.summary.clock_regressions += 1
        self._last_ts_us = event.ts_us
        self._settle_failure("")
        if event.event in _FAILURES and "error" not in event.attrs:
            self._failed = event
        else:
            self._release(self._with_cause(event))

    def _settle_failure(self, line: str) -> None:
        """Emit the waiting failure, with the exception in the line below it."""
        event, self._failed = self._failed, None
        if event is None:
            return
        if is_exception(line):
            self.summary.continuations += 1
            attrs = event.attrs | {"error": line.strip()[:_ERROR_LENGTH]}
            event = msgspec.structs.replace(event, attrs=attrs)
        self._release(event)

    def _release_timeless(self, ts_us: int) -> None:
        """Emit lines without a time before the first line with one, at that line's time."""
        timeless, self._timeless = self._timeless, []
        for event in timeless:
            self._release(msgspec.structs.replace(event, ts_us=ts_us))

    def _with_cause(self, event: TraceEvent) -> TraceEvent:
        """Add a cause where brokers before 2.1 log none: the departure just before.

        Source: kafka 0.11 to 2.0, GroupCoordinator.scala, onExpireHeartbeat and handleLeaveGroup.
        """
        group_id = event.group_id
        if group_id is None:
            return event
        if event.event in _CAUSES:
            departed = log_state.Departure(event.event, event.ts_us, event.seq, event.member_id)
            self._departures.note(group_id, departed)
        if event.event is not Event.PREPARE_REBALANCE or event.reason_text is not None:
            return event
        self.fold_departures()
        departure = self._departures.take(group_id, event.ts_us)
        if departure is None:
            return event
        return msgspec.structs.replace(
            event,
            reason=_CAUSES[departure.event],
            member_id=departure.member_id,
            attrs=event.attrs | {"reason_inferred": "1"},
        )

    def _release(self, event: TraceEvent) -> None:
        """Emit an event; a static member's return waits for the line that explains it."""
        if self._held:
            late = abs(event.ts_us - self._held[0].ts_us) > log_state.NEARBY_US
            if late or len(self._held) >= _HELD_LIMIT:
                self._release_held()
        if self._held or event.event is Event.STATIC_REPLACED:
            self._held.append(event)
        else:
            self._ready.append(event)

    def _release_held(self) -> None:
        held, self._held = self._held, []
        self._ready.extend(held)

    def _mark_quiet_replacement(self) -> None:
        """Mark the latest held replacement: the message names no group."""
        for index in range(len(self._held) - 1, -1, -1):
            event = self._held[index]
            if event.event is Event.STATIC_REPLACED:
                attrs = event.attrs | {"rebalance": "0"}
                self._held[index] = msgspec.structs.replace(event, attrs=attrs)
                return
