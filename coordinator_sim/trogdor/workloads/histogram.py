"""How samples are distributed, as workloads report it.

Source: kafka trunk, trogdor/.../trogdor/workload/Histogram.java.
"""

from collections import Counter
from collections.abc import Iterator
from typing import Final

from msgspec import Struct

from coordinator_sim.trogdor.java_numbers import as_single, shortest_single

FRACTIONS: Final = (0.5, 0.95, 0.99)
"""The percentiles that every workload reports. Source: StatusData.PERCENTILES."""


class Summary(Struct, frozen=True):
    """Summary of a histogram: count, average and percentiles of its samples.

    Args:
        count: Number of samples.
        average: As a Java float, in its shortest form; 0 without samples.
        percentiles: The values at `FRACTIONS`.
    """

    count: int
    average: float
    percentiles: tuple[int, int, int]


class Histogram:
    """Samples from 0 to a largest value, to which larger ones are cut.

    Args:
        largest: The largest value that is told apart.
    """

    def __init__(self, largest: int) -> None:
        self._largest = largest
        self._counts: Counter[int] = Counter()

    def add(self, value: int) -> None:
        """Count a sample, 0 or more."""
        self._counts[min(value, self._largest)] += 1

    def summary(self) -> Summary:
        """What was counted; the sum behind the average is one of Java floats, and rounds as one."""
        values = sorted(self._counts)
        count = self._counts.total()
        total = 0.0
        for value in values:
            total = as_single(total + as_single(value * self._counts[value]))
        average = as_single(total / as_single(count)) if count else 0.0
        p50, p95, p99 = self._percentiles(values, count)
        return Summary(count, shortest_single(average), (p50, p95, p99))

    def _percentiles(self, values: list[int], count: int) -> Iterator[int]:
        """The smallest value with at least a fraction of all samples up to it.

        QUIRK: the fraction of the samples is rounded down, so that few samples have percentiles of
        0, which is not even one of them.
        """
        for fraction in FRACTIONS:
            wanted = int(as_single(as_single(count) * as_single(fraction)))
            seen = 0
            found = 0 if wanted == 0 else self._largest
            for value in values if wanted else ():
                seen += self._counts[value]
                if seen >= wanted:
                    found = value
                    break
            yield found
