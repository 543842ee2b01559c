"""Speed-up of jobs on a standalone Spark cluster from one worker to two, each of one core.

Run with `python -m benchmarks cluster`. The workers' Python lacks this package. Each job is the one
that its command runs, without the start of Spark. Two ratios are printed: of the wall, and of the
CPU-seconds on the longest way (the driver's and the busiest worker's), which is the wall of idle
cores. Driver, master and workers share this machine's cores with whatever else runs, so that on two
busy cores the wall says little; how busy they are stands beside it.
"""

import os
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from datetime import UTC
from itertools import chain, islice, repeat
from pathlib import Path
from typing import Final

from msgspec import Struct

from benchmarks.churn import processes
from benchmarks.ingest import month_events, other_lines, write_lines
from benchmarks.month import write_month
from benchmarks.segments import commit_batches, write_segments
from benchmarks.standalone import (
    StandaloneCluster,
    has_our_package,
    plain_python,
    python_of_workers,
)
from coordinator_sim.disk.segment_sources import find_logs
from coordinator_sim.ingest.importing import Options, prepare
from coordinator_sim.ingest.writing import write_trace
from coordinator_sim.kafka.profiles import PROFILES
from coordinator_sim.log.format.compression import Compression
from coordinator_sim.log.format.log_batches import BatchForm, encode_batch
from coordinator_sim.logtext.writing.writer import broker_log
from coordinator_sim_reports.jobs import build_report
from coordinator_sim_reports.log_ingest import logs_on_spark
from coordinator_sim_reports.offsets import read_on_spark
from coordinator_sim_reports.session import spark_session

BAR: Final = 1.7
"""Least speed-up from one worker to two."""
_RUNS: Final = 2
"""Runs of a job of which the best counts, after one that is not timed."""
_SEGMENTS: Final = 20
"""Segments of 600,000 commits each."""
_REBALANCES: Final = 40_000
_OTHERS: Final = 20
"""Other lines of a broker for each line about a group."""

Job = Callable[[str], object]
"""A job on the cluster of a URL."""


class Taken(Struct, frozen=True, order=True):
    """What one run of a job took.

    Args:
        wall_s: Seconds on the wall.
        longest_s: CPU-seconds of the driver and of the busiest worker.
    """

    wall_s: float
    longest_s: float


def measure(jobs: dict[str, Job], directory: Path, workers: int) -> dict[str, Taken]:
    """Return what each job takes on a cluster of so many workers."""
    best: dict[str, Taken] = {}
    python = plain_python(directory / "python")
    if has_our_package(python):
        raise SystemExit(f"{python} has this package; its workers would not need to be sent it")
    with (
        StandaloneCluster(directory / "cluster", workers) as cluster,
        python_of_workers(python),
        spark_session(cluster.url, small=True),
    ):
        for name, job in jobs.items():
            job(cluster.url)
            runs = [_taken(job, cluster) for _ in range(_RUNS)]
            best[name] = Taken(min(run.wall_s for run in runs), min(run.longest_s for run in runs))
    return best


def _taken(job: Job, cluster: StandaloneCluster) -> Taken:
    started_s = time.perf_counter()
    driver_s, workers_s = _cpu(cluster)
    job(cluster.url)
    after_s, workers_after_s = _cpu(cluster)
    each_s = [after - before for before, after in zip(workers_s, workers_after_s, strict=True)]
    return Taken(time.perf_counter() - started_s, after_s - driver_s + max(each_s))


def _cpu(cluster: StandaloneCluster) -> tuple[float, list[float]]:
    """CPU-seconds so far of the driver, and of each worker with its processes."""
    pids = [process.pid for process in (cluster.master, *cluster.processes)]
    master_s, *workers_s = (sum(cpu_s for cpu_s, _ in processes(pid).values()) for pid in pids)
    own_s = sum(cpu_s for cpu_s, _ in processes().values())
    return own_s - master_s - sum(workers_s), workers_s


def offsets_job(folder: Path) -> Job:
    """Return the job of `log offsets --spark`, over a partition of several segments."""
    batches = commit_batches()
    count = sum(len(batch.records) for batch in batches)
    form = BatchForm(compression=Compression.NONE)
    data = b"".join([encode_batch(batch, form) for batch in batches])
    write_segments(folder / "__consumer_offsets-7", data, count, _SEGMENTS)
    logs = find_logs([folder]).logs
    return lambda url: read_on_spark(logs, master=url)


def ingest_job(folder: Path, others: int) -> Job:
    """Return the job of `ingest --spark`, over a broker's log.

    Args:
        folder: Where its files are.
        others: Lines that tell nothing, for each that does.
    """
    folder.mkdir()
    log = folder / "server.log"
    events = month_events(_REBALANCES // (1 + others // 8))
    told = broker_log(events, PROFILES["4.4"])
    write_lines(log, _among(told, others))

    def job(url: str) -> None:
        options = Options(zone=UTC)
        with logs_on_spark(options, master=url) as logs:
            importing = prepare([log], logs.contents_of)
            reader = logs.reader(importing)
            write_trace(importing, options, folder / "trace", lambda _used: None, reader)

    return job


def _among(told: Iterator[str], others: int) -> Iterator[str]:
    rest = chain.from_iterable(repeat(list(other_lines(1_000))))
    for line in told:
        yield line
        yield from islice(rest, others)


def report_job(folder: Path) -> Job:
    """Return the job of `report --master`, over a quarter of a month."""
    write_month(folder / "trace", rebalances=_REBALANCES)
    return lambda url: build_report([folder / "trace"], folder / "report", master=url)


def main() -> None:
    """Print the ratios of each job."""
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        jobs: dict[str, Callable[[], Job]] = {
            "offsets": lambda: offsets_job(folder / "kafka-logs"),
            "ingest": lambda: ingest_job(folder / "lines", 0),
            "ingest-among-others": lambda: ingest_job(folder / "others", _OTHERS),
            "report": lambda: report_job(folder / "month"),
        }
        names = [name for name in jobs if name in sys.argv] or list(jobs)
        chosen = {name: jobs[name]() for name in names}
        busy = os.getloadavg()[0] / (os.cpu_count() or 1)
        one = measure(chosen, folder / "one", 1)
        two = measure(chosen, folder / "two", 2)
    print(f"load before: {busy:.1f} a core; bar {BAR}")
    for name in chosen:
        print(
            f"{name}: wall {one[name].wall_s:.1f} and {two[name].wall_s:.1f} s, ratio "
            f"{one[name].wall_s / two[name].wall_s:.2f}; longest way {one[name].longest_s:.1f} and "
            f"{two[name].longest_s:.1f} CPU-s, ratio "
            f"{one[name].longest_s / two[name].longest_s:.2f}"
        )


if __name__ == "__main__":
    main()
