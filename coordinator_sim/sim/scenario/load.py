"""Loads of topics: how many records producers write at which time, and to which partitions.

Plain data and its checks; `coordinator_sim.sim.arrivals` counts. Every rate is of the whole topic:
records per second to all its partitions together. The keys share them out among the partitions.
"""

from itertools import chain
from typing import Final

from msgspec import Struct

from coordinator_sim.errors import ScenarioError

_DAY_MS: Final = 86_400_000
_LONGEST_MS: Final = 366 * _DAY_MS
_MOST_PER_S: Final = 10**9
_LARGEST_PERCENT: Final = 1_000
_LONGEST_POISON_MS: Final = 7 * _DAY_MS


class _Part(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Base of the parts that a topic's load is described with."""


class ConstantLoad(_Part, frozen=True, kw_only=True, tag="constant"):
    """The topic receives `total_per_s` records every second."""

    total_per_s: int


class DiurnalLoad(_Part, frozen=True, kw_only=True, tag="diurnal"):
    """A day's curve: from the base to the peak and back, in 48 steps of a constant rate each.

    Args:
        base_total_per_s: Rate half a period before and after the peak.
        peak_total_per_s: Rate around the peak.
        peak_at_ms: When the first peak is, from 0 to the period; 14:00 by default.
        period_ms: From one peak to the next.
    """

    base_total_per_s: int
    peak_total_per_s: int
    peak_at_ms: int = 14 * 3_600_000
    period_ms: int = _DAY_MS


class BurstLoad(_Part, frozen=True, kw_only=True, tag="bursts"):
    """Bursts of `for_ms` every `every_ms`, the first at `first_at_ms`, over a constant base."""

    base_total_per_s: int
    burst_total_per_s: int
    for_ms: int
    every_ms: int
    first_at_ms: int = 0


class RecordedLoad(_Part, frozen=True, kw_only=True, tag="recorded"):
    """Counts from a metrics system: the records that arrived from one second to the next one given.

    Args:
        points: At least two pairs of a second and a number of records, the seconds ascending. The
            records of a pair arrive evenly until the next pair's second; the last pair lasts as
            long as the one before it. Nothing arrives before the first.
        repeats: Whether the recording begins again at its end; otherwise nothing arrives then.
    """

    points: tuple[tuple[int, int], ...]
    repeats: bool = False


class ZipfKeys(_Part, frozen=True, kw_only=True, tag="zipf"):
    """Partition n has a share proportional to (n + 1) ** -s, so that partition 0 is the hottest.

    Args:
        exponent_percent: 100 times s: 100 is the classic law, 0 shares evenly.
    """

    exponent_percent: int = 100


class WeightedKeys(_Part, frozen=True, kw_only=True, tag="weights"):
    """A share for each partition by number: its weight of the sum of all weights."""

    weights: tuple[int, ...]


class PoisonRecords(_Part, frozen=True, kw_only=True):
    """Records that keep whoever processes them for a long time, and the next owner again.

    Args:
        ms: Time that each takes, in addition to what the application takes for a record.
        every: One of so many consecutive records of each partition is poison, at a place that a
            hash of partition and number gives; 0 for none.
        at: Single poison records, as pairs of partition and offset.
    """

    ms: int
    every: int = 0
    at: tuple[tuple[int, int], ...] = ()


Load = ConstantLoad | DiurnalLoad | BurstLoad | RecordedLoad
Keys = ZipfKeys | WeightedKeys
"""Shares of the partitions; a topic without keys shares evenly."""


def check_load(topic: str, load: Load) -> None:
    """Refuse a load that cannot be: negative rates, bursts longer than their interval.

    Raises:
        ScenarioError: names the topic, the field, the value, the bound and the fix.
    """
    where = f"load of topic {topic!r}"
    for name in load.__struct_fields__:
        if name.endswith("total_per_s"):
            _within(f"{name} of {where}", getattr(load, name), 0, _MOST_PER_S)
    match load:
        case DiurnalLoad(period_ms=period_ms, peak_at_ms=peak_at_ms):
            _within(f"period_ms of {where}", period_ms, 1_000, _LONGEST_MS)
            _within(f"peak_at_ms of {where}", peak_at_ms, 0, period_ms)
        case BurstLoad(every_ms=every_ms):
            _within(f"every_ms of {where}", every_ms, 1, _LONGEST_MS)
            _within(f"for_ms of {where}", load.for_ms, 1, every_ms)
            _within(f"first_at_ms of {where}", load.first_at_ms, 0, _LONGEST_MS)
        case RecordedLoad(points=points):
            if len(points) < 2:  # noqa: PLR2004 - the last interval is as long as the one before
                raise ScenarioError(f"points of {where}: {list(points)} must be at least two pairs")
            least = 0
            for second, records in points:
                _within(f"a second in points of {where}", second, least, _LONGEST_MS // 1_000)
                _within(f"records at second {second} of {where}", records, 0, _MOST_PER_S * 1_000)
                least = second + 1


def check_shares(
    topic: str, keys: Keys | None, poison: PoisonRecords | None, *, first: int, most: int
) -> None:
    """Refuse keys that do not fit a topic's partitions, and poison that hits nothing.

    Args:
        topic: Its name.
        keys: Shares of its partitions.
        poison: Its poison records.
        first: Partitions at the start.
        most: Partitions that it ever has.

    Raises:
        ScenarioError: names the topic, the value, the bound and the fix.
    """
    where = f"topic {topic!r}"
    if isinstance(keys, ZipfKeys):
        _within(f"exponent_percent of {where}", keys.exponent_percent, 0, _LARGEST_PERCENT)
    elif keys is not None:
        if len(keys.weights) != most:
            raise ScenarioError(
                f"weights of {where}: {len(keys.weights)} for {most} partitions; give one for each "
                "that it ever has"
            )
        _within(f"smallest weight of {where}", min(keys.weights), 0, _MOST_PER_S)
        _within(f"sum of the first weights of {where}", sum(keys.weights[:first]), 1, _MOST_PER_S)
        _within(f"sum of weights of {where}", sum(keys.weights), 1, _MOST_PER_S)
    if poison is not None:
        _within(f"ms of poison in {where}", poison.ms, 1, _LONGEST_POISON_MS)
        for number in (poison.every, *chain.from_iterable(poison.at)):
            _within(f"a number of poison in {where}", number, 0, 1 << 60)
        if not poison.every and not poison.at:
            raise ScenarioError(f"poison in {where} hits no record: give every or at")


def _within(name: str, value: int, low: int, high: int) -> None:
    if not low <= value <= high:
        raise ScenarioError(f"{name}={value}: must be from {low} to {high}")
