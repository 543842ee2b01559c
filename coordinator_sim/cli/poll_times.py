"""How long the records of one poll take, from a histogram of single records."""

from pathlib import Path
from typing import Final

import numpy as np
from msgspec import Struct

from coordinator_sim.errors import DataError

_CELLS: Final = 1 << 18
"""Cells that the time of a whole poll is divided into."""
_MOST_MS: Final = 10**9
_NOISE: Final = 1e-12
"""Probabilities below this are rounding errors of the transform."""


class Histogram(Struct, frozen=True):
    """Processing times of records.

    Args:
        times_ms: Times in milliseconds, from 0.
        counts: How many records took each.
    """

    times_ms: tuple[float, ...]
    counts: tuple[float, ...]

    @property
    def mean_ms(self) -> float:
        """Mean time of a record."""
        return float(np.average(self.times_ms, weights=self.counts))


def read_histogram(path: Path) -> Histogram:
    """Read a histogram: a line `MILLISECONDS COUNT` for each time; `#` begins a comment.

    Raises:
        DataError: a line is something else, or no record is counted.
        OSError: the file cannot be read.
    """
    times_ms: list[float] = []
    counts: list[float] = []
    for number, line in enumerate(path.read_text("utf-8", errors="replace").splitlines(), 1):
        fields = line.partition("#")[0].replace(",", " ").split()
        if not fields:
            continue
        try:
            time_ms, count = map(float, fields)
        except ValueError:
            time_ms = count = -1.0
        if not (0 <= time_ms <= _MOST_MS and 0 <= count < float("inf")):
            raise DataError(
                f"{path}:{number}: {line.strip()[:60]!r}: wants MILLISECONDS COUNT, a time from 0 "
                f"to {_MOST_MS} and how many records took it"
            )
        times_ms.append(time_ms)
        counts.append(count)
    if sum(counts) == 0:
        raise DataError(f"{path}: no record is counted; write a line MILLISECONDS COUNT for each")
    return Histogram(tuple(times_ms), tuple(counts))


def exceeds(histogram: Histogram, records: int, limit_ms: int) -> float:
    """Return the probability that so many records take longer than a limit, one after another.

    Times are independent. Each is split over the two nearest cells so that its mean stays, and the
    distribution of the sum is a power of its Fourier transform: the sum is off by at most a few
    cells, of which there are a quarter of a million.

    Args:
        histogram: Times of single records.
        records: Records of a poll, from 1.
        limit_ms: `max.poll.interval.ms`.
    """
    longest_ms = records * max(
        time_ms
        for time_ms, count in zip(histogram.times_ms, histogram.counts, strict=True)
        if count
    )
    if longest_ms <= limit_ms:
        return 0.0
    cell_ms = longest_ms / (_CELLS - records - 1)
    places = np.array(histogram.times_ms) / cell_ms
    low = np.floor(places).astype(np.int64)
    shares = np.array(histogram.counts) / sum(histogram.counts)
    one = np.zeros(_CELLS)
    np.add.at(one, low, shares * (1 - (places - low)))
    np.add.at(one, low + 1, shares * (places - low))
    whole = np.fft.irfft(np.fft.rfft(one) ** records, _CELLS)
    found = float(whole[int(limit_ms / cell_ms) + 1 :].sum())
    return found if found > _NOISE else 0.0
