"""Every stream of events of an import, in a form that goes on when further files are appended.

A file of text is a stream of its own. All requests of one kind are one stream, as a group's story
goes on from file to file, and so are all segments of a partition.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import chain

from msgspec import Struct

from coordinator_sim.errors import DataError
from coordinator_sim.ingest import readers
from coordinator_sim.ingest.ahead import EXCHANGES_AHEAD_US, Ahead
from coordinator_sim.ingest.imports import Import
from coordinator_sim.ingest.kinds import SOURCE_OF, Kind
from coordinator_sim.ingest.ordering import SLACK_US, ExchangeFile, ExchangeStream
from coordinator_sim.ingest.segments import PartitionLog, partition_logs
from coordinator_sim.logtext.reading.merging import NO_TIME_US, LogMerge, Rank, TimedLog
from coordinator_sim.trace.batches import EventBatch, batch_of, batches_of
from coordinator_sim.trace.events import TraceEvent
from coordinator_sim.trace.exchange import Exchange
from coordinator_sim.trace.schema import day_of

_PLAIN, _EXCHANGES, _PARTITION = range(3)
"""Kinds of streams, in the order of their ranks."""


class Rest(Struct, frozen=True):
    """A stream as far as it was read and not written for good.

    Args:
        first_us: Time of its first event of all.
        reached_us: Latest time of its events that were written for good.
        events: The events that follow these.
    """

    first_us: int
    reached_us: int
    events: list[TraceEvent]


@dataclass(slots=True)
class Appendable:
    """State from which an import continues when further files come.

    Args:
        settled_us: Events before this time are written for good.
        rests: Streams that are not written for good, by their ranks.
        exchanges: The requests of each kind.
        partitions: Partitions whose segments were read, by what tells them apart.
        plain_count: Number of streams of single files.
    """

    settled_us: int = NO_TIME_US
    rests: dict[Rank, Rest] = field(default_factory=dict)
    exchanges: dict[Kind, ExchangeStream] = field(default_factory=dict)
    partitions: dict[object, PartitionLog] = field(default_factory=dict)
    plain_count: int = 0

    @property
    def unsettled_files(self) -> set[str]:
        """Files of which events are not written for good."""
        events = (event for rest in self.rests.values() for event in rest.events)
        return {event.source_ref for event in events if event.source_ref is not None}


class Streams:
    """The streams of the files of an import.

    Args:
        files: Those that are read now.
        reading: How.
        earlier: What streams of an earlier import go on from.
        apart_us: By how much files that are cut at one moment may end apart.

    Raises:
        DataError: A file begins before the time up to which earlier ones are written for good.
    """

    def __init__(
        self, files: list[Import], reading: readers.Reading, earlier: Appendable, apart_us: int
    ) -> None:
        self._reading = reading
        self._earlier = earlier
        self._logs: dict[Rank, TimedLog] = {}
        self._aheads: dict[Rank, Ahead[EventBatch]] = {}
        asked = self._add_exchanges(files)
        self._ahead_us = apart_us
        for stream in earlier.exchanges.values():
            needed_us = stream.wait_us + SLACK_US + 2 * EXCHANGES_AHEAD_US
            self._ahead_us = max(self._ahead_us, apart_us + needed_us)
        self._add_plain(files)
        for kind, first_us in asked.items():
            stream = earlier.exchanges[kind]
            rank = (_EXCHANGES, list(readers.EXCHANGE_READERS).index(kind))
            self._add(rank, first_us, batches_of(stream.events(), reading.names))
        self._add_partitions(files)
        for rank, rest in earlier.rests.items():
            if rank not in self._logs:
                self._add(rank, rest.first_us, iter(()))

    def merge(self) -> LogMerge:
        """Return what merges the streams, none of which is started."""
        return LogMerge(self._logs.values(), self._ahead_us)

    def settled_us(self) -> int | None:
        """Return before which time events are final, whatever file follows.

        None until all files are read: what is given until then is final.
        """
        if not all(ahead.is_read for ahead in self._aheads.values()):
            return None
        reached_us = max((ahead.read_us for ahead in self._aheads.values()), default=NO_TIME_US)
        return max(self._earlier.settled_us, reached_us - self._ahead_us)

    def count(self, files: list[Import]) -> None:
        """Add to files what of their requests became events, once all are given."""
        by_name = {one.name: one for one in files}
        for stream in self._earlier.exchanges.values():
            for name, counts in stream.counts.items():
                by_name[name].summary.add(counts)

    def appendable(self, merge: LogMerge) -> Appendable:
        """Return what further files can be appended to; all events before `settled_us` are given.

        Args:
            merge: It merges the streams.
        """
        left = merge.left()
        settled_us = self.settled_us()
        rests = {}
        for rank, log in self._logs.items():
            batches = [left[rank]] if rank in left else []
            batches += self._aheads[rank].left()
            events = [event for batch in batches for event in batch.events()]
            reached_us = merge.reached_us.get(rank, log.reached_us)
            if events or rank[0] != _PLAIN:
                rests[rank] = Rest(log.first_us, reached_us, events)
        exchanges = {}
        for number, kind in enumerate(readers.EXCHANGE_READERS):
            stream = self._earlier.exchanges.get(kind)
            if stream is None:
                continue
            rank = (_EXCHANGES, number)
            kept = stream.before_end()
            again = stream.emitted - (stream.emitted if kept is None else kept.emitted)
            rest = rests[rank]
            if kept is not None and again <= len(rest.events):
                events = rest.events[: len(rest.events) - again]
                rests[rank] = Rest(rest.first_us, rest.reached_us, events)
                stream = kept
            exchanges[kind] = stream
        return Appendable(
            *(NO_TIME_US if settled_us is None else settled_us, rests, exchanges),
            partitions=self._earlier.partitions,
            plain_count=self._earlier.plain_count,
        )

    def _add(self, rank: Rank, first_us: int, batches: Iterator[EventBatch]) -> None:
        rest = self._earlier.rests.get(rank, Rest(NO_TIME_US, NO_TIME_US, []))
        # A stream of which nothing was told so far begins with the further files.
        begins_us = first_us if rest.first_us == NO_TIME_US else rest.first_us
        again = [batch_of(rest.events, self._reading.names)] if rest.events else []
        timed = ((int(batch.ts_us.max()), batch) for batch in chain(again, batches))
        ahead = self._aheads[rank] = Ahead(timed, self._ahead_us)
        self._logs[rank] = TimedLog(begins_us, ahead, rank, rest.reached_us)

    def _add_plain(self, files: list[Import]) -> None:
        for one in files:
            for kind in filter(readers.is_plain, one.kinds):
                log = readers.read_plain(kind, one, self._reading)
                if log.first_us != NO_TIME_US:
                    self._check(one.name, log.first_us)
                self._add((_PLAIN, self._earlier.plain_count), log.first_us, log.batches)
                self._earlier.plain_count += 1

    def _add_exchanges(self, files: list[Import]) -> dict[Kind, int]:
        """Open the files with requests; return the time of the first answer of each kind."""
        firsts_us = {}
        for kind in readers.EXCHANGE_READERS:
            asked = [one for one in files if kind in one.kinds]
            stream = self._earlier.exchanges.get(kind)
            if not asked and stream is None:
                continue
            if stream is None:
                stream = self._earlier.exchanges[kind] = ExchangeStream(SOURCE_OF[kind])
            told = [readers.read_exchanges(kind, one, self._reading) for one in asked]
            first = stream.file_count
            opened = [
                ExchangeFile(
                    each.first_us,
                    first + number,
                    Ahead(self._timed(one, each, stream), EXCHANGES_AHEAD_US),
                )
                for number, (one, each) in enumerate(zip(asked, told, strict=True))
            ]
            stream.add(opened, max((each.wait_us for each in told), default=0))
            known_us = (each.first_us for each in told if each.first_us != NO_TIME_US)
            firsts_us[kind] = min(known_us, default=NO_TIME_US)
        return firsts_us

    def _timed(
        self, one: Import, told: readers.TimedExchanges, stream: ExchangeStream
    ) -> Iterator[tuple[int, Exchange]]:
        if told.first_us != NO_TIME_US and told.first_us < stream.reached_us:
            self._refuse(one.name, told.first_us, stream.reached_us)
        for exchange in told.exchanges:
            self._check(one.name, exchange.asked_us)
            yield exchange.sent_us, exchange

    def _add_partitions(self, files: list[Import]) -> None:
        known = self._earlier.partitions
        names, note = self._reading.names, self._reading.note_progress
        fresh = partition_logs([one for one in files if one.kind is Kind.SEGMENT])
        read_elsewhere = self._reading.ready.read_partitions
        elsewhere: Iterator[Iterator[TraceEvent]] = iter(())
        if read_elsewhere is not None and fresh:
            for key, own in fresh.items():
                known.setdefault(key, PartitionLog([])).go_on(own, note)
            elsewhere = iter(read_elsewhere([known[key] for key in fresh]))
        for key, own in fresh.items():
            if key in known:
                rank = (_PARTITION, list(known).index(key))
                if read_elsewhere is None:
                    known[key].go_on(own, note)
                    events = known[key].events()
                else:
                    events = next(elsewhere)
                self._add_further(rank, own, events)
                continue
            trial = PartitionLog([Import(one.path, one.kind) for one in own])
            first = next(trial.events(), None)
            if first is not None:
                self._check(own[0].name, first.ts_us)
            known[key] = PartitionLog(own, note)
            rank = (_PARTITION, len(known) - 1)
            first_us = NO_TIME_US if first is None else first.ts_us
            self._add(rank, first_us, batches_of(known[key].events(), names))

    def _add_further(self, rank: Rank, own: list[Import], events: Iterator[TraceEvent]) -> None:
        """Add events of a partition, the first of which tells when they begin."""
        first = next(events, None)
        if first is not None:
            rest = self._earlier.rests.get(rank, Rest(NO_TIME_US, NO_TIME_US, []))
            reached_us = max([rest.reached_us, *(event.ts_us for event in rest.events)])
            self._check(own[0].name, max(first.ts_us, reached_us))
            events = chain([first], events)
        first_us = NO_TIME_US if first is None else first.ts_us
        self._add(rank, first_us, batches_of(events, self._reading.names))

    def _check(self, name: str, at_us: int) -> None:
        if at_us < self._earlier.settled_us:
            self._refuse(name, at_us, self._earlier.settled_us)

    def _refuse(self, name: str, at_us: int, settled_us: int) -> None:
        raise DataError(
            f"{name} tells of {_instant(at_us)}, and the trace is settled up to "
            f"{_instant(settled_us)}: only files that follow can be appended; ingest all files "
            "together, without --append-to"
        )


def _instant(at_us: int) -> str:
    seconds = at_us // 1_000_000 % 86_400
    return f"{day_of(at_us)} {seconds // 3600:02}:{seconds // 60 % 60:02}:{seconds % 60:02}"
