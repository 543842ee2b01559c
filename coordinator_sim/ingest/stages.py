"""`Stages`: what becomes of the merged events of all files until they are written."""

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

from coordinator_sim.ingest.imports import Import
from coordinator_sim.ingest.kinds import Kind
from coordinator_sim.ingest.precedence import Precedence
from coordinator_sim.ingest.skew import Skews
from coordinator_sim.logtext.reading.incarnations import IncarnationCounter
from coordinator_sim.logtext.reading.repeats import OneCluster, RepeatedLines
from coordinator_sim.trace.batches import EventBatch, Names, batch_of
from coordinator_sim.trace.events import TraceEvent
from coordinator_sim.trace.history import SteadyTimes

_SIMPLE: tuple[frozenset[Kind], ...] = (frozenset({Kind.LOG}), frozenset({Kind.SEGMENT}))
"""Kinds of which each tells a fact once."""


class Stages:
    """Leaves out what was told already, numbers the lives of groups and steadies times.

    Args:
        files: Every file, which is told what of its events is left out.
        kinds: All kinds of lines in them.
        overlaps: `LogContents.overlaps`.
        has_several: Whether there are several streams, which may tell one line twice.

    Attributes:
        names: Numbers of groups and files.
        kinds: As above.
        precedence: What several kinds of sources tell; None where there is one.
        skews: How far the clocks of the sources are apart.
    """

    names: Names
    kinds: tuple[Kind, ...]
    skews: Skews
    _by_name: dict[str, Import]
    _repeats: RepeatedLines
    _has_several: bool
    precedence: Precedence | None
    _counter: IncarnationCounter
    _times: SteadyTimes
    _cluster: OneCluster

    def __init__(
        self,
        files: Iterable[Import],
        kinds: tuple[Kind, ...],
        overlaps: dict[str, str],
        *,
        has_several: bool,
    ) -> None:
        self.names = Names()
        self.kinds = kinds
        self.skews = Skews()
        self._by_name = {one.name: one for one in files}
        self._repeats = RepeatedLines(overlaps)
        self._has_several = has_several
        is_simple = any(simple.issuperset(kinds) for simple in _SIMPLE)
        self.precedence = None if is_simple else Precedence(self.skews, self._drop)
        self._counter = IncarnationCounter()
        self._times = SteadyTimes()
        self._cluster = OneCluster()

    def add(self, files: Iterable[Import]) -> None:
        """Take further files."""
        self._by_name |= {one.name: one for one in files}
        self._has_several = True

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        if self.precedence is not None:
            self.precedence.drop = self._drop

    def pass_on(self, batch: EventBatch) -> Iterator[EventBatch]:
        """Yield what is to be written of the next events of all files.

        Raises:
            DataError: The files are those of two clusters.
        """
        if self._has_several:
            repeated = self._repeats.are_repeated(batch)
            if repeated.any():
                for event in batch.take(repeated).events():
                    self._by_name[event.source_ref or ""].summary.count_repeated(event)
                batch = batch.take(np.flatnonzero(~repeated))
        if self.precedence is not None:
            batch = batch_of(list(self.precedence.chosen(batch.events())), self.names)
        yield from self._numbered(batch)

    def finish(self) -> Iterator[EventBatch]:
        """Yield what waited for further events.

        Raises:
            DataError: The clocks of the sources are too far apart.
        """
        if self.precedence is None:
            return
        yield from self._numbered(batch_of(list(self.precedence.finish()), self.names))
        self.skews.check()

    def _numbered(self, batch: EventBatch) -> Iterator[EventBatch]:
        if len(batch):
            steady = self._times.steady(self._counter.number(batch))
            self._cluster.check(steady)
            yield steady

    def _drop(self, event: TraceEvent, has_own_kind: bool) -> None:
        summary = self._by_name[event.source_ref or ""].summary
        summary.take_back(event)
        summary.repeated += has_own_kind
