"""When the records of a topic with a load arrive, in closed form and whole numbers.

The records of a topic up to an instant are the area under its load's curve, counted in millionths
of a record. A partition has its share of the area; the fractions of the partitions are spread
evenly, so that their records alternate as those of a producer that goes round. `count` and its
inverse, `arrival_us`, bisect the pieces of the curve, and never loop over records.
"""

from bisect import bisect_left, bisect_right
from decimal import Context, Decimal
from itertools import accumulate
from typing import Final, NamedTuple

from coordinator_sim.sim.scenario import load as loads

_US_PER_MS: Final = 1_000
_US_PER_S: Final = 1_000_000
PARTS: Final = 1_000_000
"""Parts of a record that an area counts: a rate of 1 a second adds one each microsecond."""
_KEPT_AREAS: Final = 256
_STEPS: Final = 48
"""Steps of a diurnal curve: half an hour each in a day."""
_ZIPF_SCALE: Final = 1_000_000_000
_ZIPF_DIGITS: Final = Context(prec=40)
"""Decimal arithmetic is software and the same everywhere; a float's power is not."""


class Curve:
    """The area under a load: a lead of constant rate, then pieces that may repeat.

    Args:
        lead_us: Length of the lead.
        lead_per_s: Rate in it.
        times_us: Ends of the pieces from their beginning, the first 0.
        areas: Area up to each, in parts of a record.
        repeats: Whether the pieces begin again after the last; otherwise nothing comes then.
        shift_us: How far into the pieces the lead ends.
    """

    def __init__(
        self,
        lead_us: int,
        lead_per_s: int,
        times_us: tuple[int, ...],
        areas: tuple[int, ...],
        *,
        repeats: bool = True,
        shift_us: int = 0,
    ) -> None:
        self._lead_us = lead_us
        self._lead_per_s = lead_per_s
        self._times_us = times_us
        self._areas = areas
        self._repeats = repeats
        self._began_us = lead_us - shift_us
        self._began = 0
        """Area at which the pieces began, had there been no lead; below 0 with a shift."""
        self._began = lead_per_s * lead_us - self._after_lead(lead_us)

    def area(self, at_us: int) -> int:
        """Return the area from 0 up to an instant."""
        is_led = at_us <= self._lead_us
        return self._lead_per_s * at_us if is_led else self._after_lead(at_us)

    def reached_us(self, area: int) -> int | None:
        """Return the first instant at which an area above 0 is reached; None for never."""
        if area <= self._lead_per_s * self._lead_us:
            return -(-area // self._lead_per_s)
        times_us, areas = self._times_us, self._areas
        rest = area - self._began
        began_us = self._began_us
        whole = areas[-1]
        if rest > whole:
            if not self._repeats or not whole:
                return None
            turns = (rest - 1) // whole
            rest -= turns * whole
            began_us += turns * times_us[-1]
        piece = bisect_left(areas, rest)
        from_us, before = times_us[piece - 1], areas[piece - 1]
        length_us = times_us[piece] - from_us
        return began_us + from_us - (before - rest) * length_us // (areas[piece] - before)

    def _after_lead(self, at_us: int) -> int:
        times_us, areas = self._times_us, self._areas
        turns, since_us = divmod(at_us - self._began_us, times_us[-1])
        if turns and not self._repeats:
            return self._began + areas[-1]
        piece = bisect_right(times_us, since_us)
        from_us, before = times_us[piece - 1], areas[piece - 1]
        gained = (areas[piece] - before) * (since_us - from_us) // (times_us[piece] - from_us)
        return self._began + turns * areas[-1] + before + gained


def curve_of(load: loads.Load) -> Curve:
    """Return the curve of a load."""
    match load:
        case loads.ConstantLoad(total_per_s=rate):
            return Curve(0, 0, (0, _US_PER_S), (0, rate * _US_PER_S))
        case loads.DiurnalLoad():
            return _diurnal(load)
        case loads.BurstLoad(base_total_per_s=base, burst_total_per_s=burst):
            for_us, every_us = load.for_ms * _US_PER_MS, load.every_ms * _US_PER_MS
            burst_area = burst * for_us
            areas = (0, burst_area, burst_area + base * (every_us - for_us))
            return Curve(load.first_at_ms * _US_PER_MS, base, (0, for_us, every_us), areas)
        case loads.RecordedLoad(points=points, repeats=repeats):
            seconds = [second for second, _ in points]
            seconds.append(2 * seconds[-1] - seconds[-2])
            times_us = tuple((second - seconds[0]) * _US_PER_S for second in seconds)
            counted = tuple(accumulate((records * PARTS for _, records in points), initial=0))
            return Curve(seconds[0] * _US_PER_S, 0, times_us, counted, repeats=repeats)


def _diurnal(load: loads.DiurnalLoad) -> Curve:
    """Return steps that begin with the one around the base, half a period before the peak.

    The rate rises as 3x² - 2x³, which is within a hundredth of a cosine and needs no table.
    """
    period_us, half = load.period_ms * _US_PER_MS, _STEPS // 2
    base, swing = load.base_total_per_s, load.peak_total_per_s - load.base_total_per_s
    times_us, areas = [0], [0]
    for step in range(_STEPS):
        up = min(step, _STEPS - step)
        rate = base + swing * (3 * half * up**2 - 2 * up**3) // half**3
        times_us.append(period_us * (step + 1) // _STEPS)
        areas.append(areas[-1] + rate * (times_us[-1] - times_us[-2]))
    began_us = load.peak_at_ms * _US_PER_MS - period_us // 2 - period_us // (2 * _STEPS)
    return Curve(0, 0, tuple(times_us), tuple(areas), shift_us=-began_us % period_us)


class _Era(NamedTuple):
    """The time in which a topic has the same partitions.

    Args:
        area: The curve's area at its beginning.
        whole: Sum of the weights, in parts.
        counts: Records of the partitions at its beginning.
        phases: Parts of its next record that each partition has then.
    """

    since_us: int
    area: int
    weights: tuple[int, ...]
    whole: int
    counts: tuple[int, ...]
    phases: tuple[int, ...]


def _era(since_us: int, area: int, weights: tuple[int, ...], counts: tuple[int, ...]) -> _Era:
    whole = sum(weights) * PARTS
    phases = tuple(whole * number // len(weights) for number in range(len(weights)))
    return _Era(since_us, area, weights, whole, counts, phases)


class TopicArrivals:
    """The records of one topic with a load.

    Args:
        load: The load.
        keys: Shares of the partitions; None for equal ones.
        partitions: Number of partitions at the start.
    """

    __slots__ = ("_areas", "_curve", "_eras", "_keys")

    def __init__(self, load: loads.Load, keys: loads.Keys | None, partitions: int) -> None:
        self._curve = curve_of(load)
        self._keys = keys
        self._areas: dict[int, int] = {}
        """The curve's area at the instants asked for of late: all partitions ask for the same."""
        self._eras: tuple[_Era, ...] = (_era(0, 0, _weights(keys, partitions), (0,) * partitions),)
        """The latest first."""

    def count(self, partition: int, at_us: int) -> int:
        """Return how many records a partition has received up to an instant, however long ago."""
        area = self._areas.get(at_us)
        if area is None:
            if len(self._areas) >= _KEPT_AREAS:
                self._areas.clear()
            area = self._areas[at_us] = self._curve.area(at_us)
        for since_us, area_then, weights, whole, counts, phases in self._eras:
            if at_us >= since_us and partition < len(counts):
                parts = weights[partition] * (area - area_then) + phases[partition]
                return counts[partition] + parts // whole
        return 0

    def arrival_us(self, partition: int, number: int) -> int | None:
        """Return when a partition's record of a number, from 0, arrives; None for never."""
        for _, area_then, weights, whole, counts, phases in self._eras:
            if partition < len(counts) and number >= counts[partition]:
                weight = weights[partition]
                if not weight:
                    return None
                missing = (number + 1 - counts[partition]) * whole - phases[partition]
                return self._curve.reached_us(area_then - (-missing // weight))
        return None

    def grow(self, partitions: int, now_us: int) -> None:
        """Share records among more partitions from now on; started ones are dropped."""
        counts = tuple(self.count(number, now_us) for number in range(partitions))
        era = _era(now_us, self._curve.area(now_us), _weights(self._keys, partitions), counts)
        self._eras = (era, *self._eras)


def _weights(keys: loads.Keys | None, partitions: int) -> tuple[int, ...]:
    match keys:
        case loads.WeightedKeys(weights=weights):
            return (*weights[:partitions], *(0,) * (partitions - len(weights)))
        case loads.ZipfKeys(exponent_percent=percent):
            power = Decimal(-percent).scaleb(-2)
            shares = (_ZIPF_DIGITS.power(Decimal(rank), power) for rank in range(1, partitions + 1))
            return tuple(max(1, int(share * _ZIPF_SCALE)) for share in shares)
    return (1,) * partitions
