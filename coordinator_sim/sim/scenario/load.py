"""Loads of topics: how many records producers write at which time, and to which partitions.

Plain data and its checks; `coordinator_sim.sim.arrivals` counts. Every rate is of the whole topic:
records per second to all its partitions together. The keys share them out among the partitions.
"""

from collections.abc import Iterable
from csv import reader
from pathlib import Path
from typing import Final

from msgspec import Struct

from coordinator_sim.errors import ScenarioError

_DAY_MS: Final = 86_400_000
_LONGEST_MS: Final = 366 * _DAY_MS
_MOST_PER_S: Final = 10**9
_LARGEST_PERCENT: Final = 1_000
_LONGEST_POISON_MS: Final = 7 * _DAY_MS


class ConstantLoad(Struct, frozen=True, kw_only=True, tag="constant", forbid_unknown_fields=True):
    """The topic receives `total_per_s` records every second."""

    total_per_s: int


class DiurnalLoad(Struct, frozen=True, kw_only=True, tag="diurnal", forbid_unknown_fields=True):
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


class BurstLoad(Struct, frozen=True, kw_only=True, tag="bursts", forbid_unknown_fields=True):
    """Bursts of `for_ms` every `every_ms`, the first at `first_at_ms`, over a constant base."""

    base_total_per_s: int
    burst_total_per_s: int
    for_ms: int
    every_ms: int
    first_at_ms: int = 0


class RecordedLoad(Struct, frozen=True, kw_only=True, tag="recorded", forbid_unknown_fields=True):
    """Counts from a metrics system: the records that arrived from one second to the next one given.

    Args:
        points: At least two pairs of a second and a number of records, the seconds ascending. The
            records of a pair arrive evenly until the next pair's second; the last pair lasts as
            long as the one before it. Nothing arrives before the first.
        repeats: Whether the recording begins again at its end; otherwise nothing arrives then.
    """

    points: tuple[tuple[int, int], ...]
    repeats: bool = False


Load = ConstantLoad | DiurnalLoad | BurstLoad | RecordedLoad


class ZipfKeys(Struct, frozen=True, kw_only=True, tag="zipf", forbid_unknown_fields=True):
    """Partition n has a share proportional to (n + 1) ** -s, so that partition 0 is the hottest.

    Args:
        exponent_percent: 100 times s: 100 is the classic law, 0 shares evenly.
    """

    exponent_percent: int = 100


class WeightedKeys(Struct, frozen=True, kw_only=True, tag="weights", forbid_unknown_fields=True):
    """A share for each partition by number: its weight of the sum of all weights."""

    weights: tuple[int, ...]


Keys = ZipfKeys | WeightedKeys
"""Shares of the partitions; a topic without keys shares evenly."""


class PoisonRecords(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
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


def read_recorded_load(path: Path, *, repeats: bool = False) -> RecordedLoad:
    """Read a recording from a CSV file with the columns `second,records`, a header or none.

    Raises:
        ScenarioError: a row has another form; names the file and the line.
        OSError: the file cannot be read.
    """
    points: list[tuple[int, int]] = []
    with path.open(encoding="utf-8", newline="") as file:
        for number, row in enumerate(reader(file), 1):
            cells = [cell.strip() for cell in row]
            if not any(cells) or (number == 1 and cells == ["second", "records"]):
                continue
            if len(cells) != 2 or not all(map(str.isdecimal, cells)):  # noqa: PLR2004 - two columns
                raise ScenarioError(
                    f"{path}:{number}: {','.join(row)!r}: give a whole second and a whole number "
                    "of records, as 60,2000"
                )
            points.append((int(cells[0]), int(cells[1])))
    load = RecordedLoad(points=tuple(points), repeats=repeats)
    check_load(str(path), load)
    return load


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
        case DiurnalLoad(period_ms=period_ms):
            _within(f"period_ms of {where}", period_ms, 1_000, _LONGEST_MS)
            _within(f"peak_at_ms of {where}", load.peak_at_ms, 0, period_ms)
        case BurstLoad(every_ms=every_ms):
            _within(f"every_ms of {where}", every_ms, 1, _LONGEST_MS)
            _within(f"for_ms of {where}", load.for_ms, 1, every_ms)
            _within(f"first_at_ms of {where}", load.first_at_ms, 0, _LONGEST_MS)
        case RecordedLoad(points=points):
            _check_points(where, points)


def _check_points(where: str, points: tuple[tuple[int, int], ...]) -> None:
    if len(points) < 2:  # noqa: PLR2004 - the length of the last interval is that of the one before
        raise ScenarioError(f"points of {where}: {list(points)} must be at least two pairs")
    before = -1
    for second, records in points:
        _within(f"a second in points of {where}", second, before + 1, _LONGEST_MS // 1_000)
        _within(f"records of second {second} of {where}", records, 0, _MOST_PER_S * 1_000)
        before = second


def check_keys(topic: str, keys: Keys, partitions: int) -> None:
    """Refuse shares that do not fit the partitions.

    Args:
        topic: Name of the topic.
        keys: Its shares.
        partitions: The most partitions that it has in the scenario.

    Raises:
        ScenarioError: names the topic, the value, the bound and the fix.
    """
    match keys:
        case ZipfKeys(exponent_percent=percent):
            _within(f"exponent_percent of topic {topic!r}", percent, 0, _LARGEST_PERCENT)
        case WeightedKeys(weights=weights):
            if len(weights) != partitions:
                raise ScenarioError(
                    f"weights of topic {topic!r}: {len(weights)} for {partitions} partitions; give "
                    "one for each that it ever has"
                )
            for weight in weights:
                _within(f"a weight of topic {topic!r}", weight, 0, _MOST_PER_S)
            _within(f"sum of weights of topic {topic!r}", sum(weights), 1, _MOST_PER_S * partitions)


def check_poison(topic: str, poison: PoisonRecords) -> None:
    """Refuse poison that hits nothing or takes absurd time.

    Raises:
        ScenarioError: names the topic, the value, the bound and the fix.
    """
    _within(f"ms of poison in topic {topic!r}", poison.ms, 1, _LONGEST_POISON_MS)
    _within(f"every of poison in topic {topic!r}", poison.every, 0, 1 << 60)
    for number in _numbers(poison.at):
        _within(f"at of poison in topic {topic!r}", number, 0, 1 << 60)
    if not poison.every and not poison.at:
        raise ScenarioError(f"poison in topic {topic!r} hits no record: give every or at")


def _numbers(pairs: Iterable[tuple[int, int]]) -> list[int]:
    return [number for pair in pairs for number in pair]


def _within(name: str, value: int, low: int, high: int) -> None:
    if not low <= value <= high:
        raise ScenarioError(f"{name}={value}: must be from {low} to {high}")
