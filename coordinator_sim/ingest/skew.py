"""By how much the clocks of two sources of one cluster differ, from the facts that both tell."""

from statistics import median_low
from typing import Final

from coordinator_sim.errors import DataError
from coordinator_sim.trace.events import Event, Source, TraceEvent
from coordinator_sim.trace.sources_read import Skew

_LARGEST_US: Final = 2_000_000
"""Facts of two sources that lie further apart are not recognised as one."""
_FACTS: Final = 100_000
"""Limit of remembered facts of a source."""
_FEWEST: Final = 3
"""Facts that both sources must tell before their clocks are judged."""
_QUARTER_US: Final = 15 * 60 * 1_000_000
"""Zones differ by multiples of a quarter of an hour."""
_ZONED: Final = frozenset({Source.BROKER_LOG, Source.REQUEST_LOG})
"""Sources whose times may name no zone."""

_Fact = tuple[Event, str | None, int | None]


class Skews:
    """Learns the times of the facts that several sources may tell."""

    _times: dict[Source, dict[_Fact, int | None]]

    def __init__(self) -> None:
        self._times = {}

    def note(self, source: Source, event: TraceEvent) -> None:
        """Take an event that numbers a generation; a fact that a source repeats is dropped."""
        times = self._times.setdefault(source, {})
        fact = (event.event, event.group_id, event.generation)
        if fact in times:
            times[fact] = None
        elif len(times) < _FACTS:
            times[fact] = event.ts_us

    def found(self) -> list[Skew]:
        """Every pair of sources with facts in common, in the order they were first seen."""
        found = []
        sources = list(self._times)
        for index, first in enumerate(sources):
            for second in sources[index + 1 :]:
                apart = self._apart(first, second)
                if apart:
                    middle = median_low(apart)
                    widest = max(abs(each - middle) for each in apart)
                    found.append(Skew(first, second, middle, widest, len(apart)))
        return found

    def check(self) -> None:
        """Refuse sources whose clocks differ too much to recognise the facts that both have.

        Raises:
            DataError: Two clocks differ too much; the message gives the difference and a fix.
        """
        for skew in self.found():
            if abs(skew.median_us) <= _LARGEST_US or skew.facts < _FEWEST:
                continue
            off_us = skew.median_us % _QUARTER_US
            is_zone = min(off_us, _QUARTER_US - off_us) <= _LARGEST_US
            can_be_zoned = {skew.first, skew.second} & _ZONED
            fix = (
                "times of text logs without a zone are read in --tz, which names another zone "
                "than that of the brokers; name theirs, such as --tz Europe/Berlin"
                if is_zone and can_be_zoned
                else "ingest each source by itself, with an --out of its own"
            )
            raise DataError(
                f"the {skew.second.value} tells {skew.facts} facts {_shown(skew.median_us)} "
                f"than the {skew.first.value}, more than {_LARGEST_US // 1_000_000} s apart, so "
                f"that they would count twice: {fix}"
            )

    def _apart(self, first: Source, second: Source) -> list[int]:
        mine, theirs = self._times[first], self._times[second]
        apart = []
        for fact, at_us in mine.items():
            other_us = theirs.get(fact)
            if at_us is not None and other_us is not None:
                apart.append(other_us - at_us)
        return apart


def _shown(duration_us: int) -> str:
    seconds = abs(duration_us) / 1_000_000
    hours, rest = divmod(round(seconds), 3600)
    text = f"{hours}:{rest // 60:02}:{rest % 60:02}" if hours else f"{seconds:.3f} s"
    return f"{text} {'later' if duration_us > 0 else 'earlier'}"
