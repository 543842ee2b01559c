"""What a day costs that is appended to a month, beside the day alone and the month read again.

Run with `python -m benchmarks append`. A broker's log of a month is cut at midnight. The last day
is appended to the trace of the others; the same day is ingested alone, and with the whole month.
What an append costs beyond the day alone is the reading of what is kept of 2,000 groups, and the
comparison of the day's lines with those of the day before, which files of one import need, too.
"""

import gc
import shutil
import tempfile
import time
from collections.abc import Callable
from datetime import UTC
from itertools import groupby
from pathlib import Path
from typing import Final

from benchmarks.ingest import month_events, write_lines
from coordinator_sim.ingest.appending import Appending
from coordinator_sim.ingest.importing import Options, prepare
from coordinator_sim.ingest.writing import write_trace
from coordinator_sim.kafka.profiles import PROFILES
from coordinator_sim.logtext.writing.writer import broker_log
from coordinator_sim.trace.schema import APPENDABLE_NAME

_REBALANCES: Final = 120_000
_RUNS: Final = 3
_OPTIONS: Final = Options(zone=UTC)


def write_days(folder: Path) -> list[Path]:
    """Write a month's log, one file a day."""
    lines = broker_log(month_events(_REBALANCES), PROFILES["4.4"])
    days = []
    for day, own in groupby(lines, key=lambda line: line[1:11]):
        days.append(folder / f"server.log.{day}")
        write_lines(days[-1], own)
    return days


def ingested(paths: list[Path], out: Path) -> None:
    """Ingest files into a trace of their own."""
    write_trace(prepare(paths), _OPTIONS, out, lambda _used: None)


def appended(paths: list[Path], trace: Path) -> None:
    """Append files to a trace."""
    appending = Appending(trace)
    appending.write(appending.prepare(paths), lambda _used: None)


def cpu_s(job: Callable[[], None]) -> float:
    """Return the CPU-seconds of a job."""
    started = time.process_time()
    job()
    return time.process_time() - started


def main() -> None:
    """Print the CPU-seconds of each, and the ratios."""
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        # The last rebalance ends after the last midnight.
        *month, last = write_days(folder)[:-1]
        whole_s = cpu_s(lambda: ingested([*month, last], folder / "whole"))
        ingested(month, folder / "month")
        # A command begins with few objects.
        gc.collect()
        gc.freeze()
        alone_s, append_s = [], []
        for _ in range(_RUNS):
            alone_s.append(cpu_s(lambda: ingested([last], folder / "day")))
            shutil.rmtree(folder / "trace", ignore_errors=True)
            shutil.copytree(folder / "month", folder / "trace")
            append_s.append(cpu_s(lambda: appended([last], folder / "trace")))
        kept = (folder / "trace" / APPENDABLE_NAME).stat().st_size
    print(
        f"{len(month)} days and one of {_REBALANCES:,} rebalances: the day alone "
        f"{min(alone_s):.2f} CPU-s, appended {min(append_s):.2f} (ratio "
        f"{min(append_s) / min(alone_s):.2f}), everything read again {whole_s:.2f} (ratio "
        f"{whole_s / min(alone_s):.1f}); kept for the next day: {kept / 1_000:,.0f} KB"
    )


if __name__ == "__main__":
    main()
