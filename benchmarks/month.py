"""A report of a month of a large cluster: CPU and memory of the whole command.

2,000 groups, 120,000 rebalances, 30 days, as a broker log tells them; a few groups have most of
the rebalances. With `--assignments` every generation hands out eight partitions too, as a request
log tells. Bar, without assignments: 60 CPU-seconds and 1.5 GB for the whole process tree of the
command, without the benchmark's own process. Modules have their bytecode, as installed packages
have: a small report is made first, and not counted.
"""

import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any, Final

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.churn import Usage
from coordinator_sim import __version__
from coordinator_sim.trace.events import Source
from coordinator_sim.trace.schema import (
    EVENTS_DIR,
    GENERATIONS_DIR,
    MANIFEST_NAME,
    RESOURCES_DIR,
    RunManifest,
    event_schema,
    generation_schema,
    resource_schema,
)

GROUPS: Final = 2_000
REBALANCES: Final = 120_000
DAYS: Final = 30
PARTITIONS: Final = 8
MEMBERS: Final = 4
BAR_CPU_S: Final = 60.0
BAR_GB: Final = 1.5
_START_US: Final = 1_767_225_600_000_000
"""2026-01-01 UTC."""
_DAY_US: Final = 86_400_000_000
_TRACE_ID: Final = "month"
_STEPS: Final = ("MEMBER_LEFT", "PREPARE_REBALANCE", "JOIN_COMPLETE", "SYNC_LEADER")
"""Events of a rebalance; members' own requests and answers come behind them."""
_REQUESTS: Final = ("JOIN_REQ",) * MEMBERS + ("SYNC_RESP",) * MEMBERS
_REASONS: Final = ("MEMBER_LEFT", "MEMBER_JOINED", "MEMBER_FAILED", "METADATA_CHANGED")


def write_month(
    path: Path,
    *,
    groups: int = GROUPS,
    rebalances: int = REBALANCES,
    days: int = DAYS,
    assignments: bool = False,
) -> None:
    """Write a trace straight from arrays, the same one each time.

    Args:
        path: The run directory to make.
        groups: Each has one rebalance at least; a Zipf law shares out the rest.
        rebalances: At least as many as groups.
        days: The span over which each group's rebalances are spread.
        assignments: Whether generations hand out partitions.
    """
    chance = np.random.default_rng(1)
    weights = 1 / np.arange(1, groups + 1)
    extra = chance.multinomial(rebalances - groups, weights / weights.sum())
    group_of = chance.permutation(np.repeat(np.arange(groups), extra + 1))
    starts = _START_US + np.sort(chance.integers(0, days * _DAY_US, rebalances))
    generation = _running_number(group_of) + 1
    room_us = _until_next(group_of, starts)
    joins_us = np.minimum(chance.integers(1_000_000, 60_000_000, rebalances), room_us // 2)
    syncs_us = np.minimum(chance.integers(1_000, 2_000_000, rebalances), room_us // 4)
    begun = np.zeros(rebalances, np.int64)
    after = [begun - 1_000, begun, joins_us, joins_us + syncs_us]
    if assignments:
        after += [begun + 1_000] * MEMBERS + [joins_us + syncs_us + 1_000] * MEMBERS
    times = starts[:, None] + np.stack(after, axis=1)
    _write_events(path, group_of, generation, times, chance)
    if assignments:
        _write_generations(path, group_of, generation, times, chance)
    manifest = RunManifest(
        trace_id=_TRACE_ID,
        source=Source.REQUEST_LOG if assignments else Source.BROKER_LOG,
        cluster_id="production",
        version=__version__,
        profile="ingested",
        format="parquet",
        digest="",
        counts={"events": times.size, "event_rows": times.size},
        first_ts_us=int(times.min()),
        last_ts_us=int(times.max()),
    )
    (path / MANIFEST_NAME).write_bytes(msgspec.json.encode(manifest))


def _running_number(group_of: np.ndarray) -> np.ndarray:
    """How many elements of the same group stand before each."""
    order = np.argsort(group_of, kind="stable")
    sorted_groups = group_of[order]
    first = np.r_[True, sorted_groups[1:] != sorted_groups[:-1]]
    begins = np.maximum.accumulate(np.where(first, np.arange(group_of.size), 0))
    numbers = np.empty(group_of.size, np.int64)
    numbers[order] = np.arange(group_of.size) - begins
    return numbers


def _until_next(group_of: np.ndarray, starts: np.ndarray) -> np.ndarray:
    """Microseconds from each start to the next one of the same group; a day for the last."""
    order = np.argsort(group_of, kind="stable")
    gaps = np.diff(starts[order], append=0)
    last = np.r_[group_of[order][1:] != group_of[order][:-1], True]
    room = np.empty_like(starts)
    room[order] = np.where(last, _DAY_US, gaps)
    return room


def _write_events(
    path: Path,
    group_of: np.ndarray,
    generation: np.ndarray,
    times: np.ndarray,
    chance: np.random.Generator,
) -> None:
    count = times.size
    in_time = np.argsort(times, axis=None, kind="stable")
    rebalance, step = np.divmod(in_time, times.shape[1])
    names = np.array(_STEPS + _REQUESTS)
    is_new = np.isin(names, ("JOIN_COMPLETE", "SYNC_LEADER", "SYNC_RESP"))[step]
    whole_group = np.isin(names, ("JOIN_COMPLETE", "SYNC_LEADER"))[step]
    reasons = pa.array(_REASONS).take(pa.array(chance.integers(0, len(_REASONS), count)))
    columns: dict[str, Any] = {
        "trace_id": _repeated(_TRACE_ID, count),
        "source": _repeated("broker_log", count),
        "source_ref": _repeated("server.log", count),
        "seq": pa.array(np.arange(count)),
        "ordinal": pa.array(np.arange(count)),
        "ts_us": pa.array(times.ravel()[in_time]),
        "ts_kind": _repeated("logged", count),
        "ts_err_us": pa.array(np.full(count, 1_000)),
        "group_id": pa.array([f"group-{n:04d}" for n in range(group_of.max() + 1)]).take(
            pa.array(group_of[rebalance])
        ),
        "incarnation": pa.array(np.zeros(count, np.int32)),
        "generation": pa.array(generation[rebalance] + is_new - 1, pa.int32()),
        "event": pa.array(names).take(pa.array(step)),
        "member_id": pa.array([f"consumer-{n}" for n in range(MEMBERS)]).take(
            pa.array(step % MEMBERS)
        ),
        "members": pa.array(np.full(count, MEMBERS, np.int32), mask=~whole_group),
        "reason": pa.array(reasons.to_numpy(zero_copy_only=False), mask=step != 1),
        "confidence": pa.array(np.ones(count)),
    }
    _write(path / EVENTS_DIR / "cluster_id=production" / "day=all", event_schema(), columns)


def _write_generations(
    path: Path,
    group_of: np.ndarray,
    generation: np.ndarray,
    times: np.ndarray,
    chance: np.random.Generator,
) -> None:
    count = group_of.size
    ids = [f"consumer-{n}" for n in range(MEMBERS)]
    owners = chance.integers(0, MEMBERS, (count, PARTITIONS), dtype=np.int32)
    loads = (owners[:, :, None] == np.arange(MEMBERS)).sum(axis=1).astype(np.int32)
    columns: dict[str, Any] = {
        "trace_id": _repeated(_TRACE_ID, count),
        "cluster_id": _repeated("production", count),
        "group_id": pa.array([f"group-{n:04d}" for n in range(group_of.max() + 1)]).take(
            pa.array(group_of)
        ),
        "incarnation": pa.array(np.zeros(count, np.int32)),
        "generation": pa.array(generation, pa.int32()),
        "join_done_us": pa.array(times[:, 2]),
        "sync_us": pa.array(times[:, 3]),
        "protocol_type": _repeated("consumer", count),
        "protocol_name": _repeated("range", count),
        "subscriptions_equal": pa.array(np.ones(count, bool)),
        "delay_ms": pa.array(np.zeros(count, np.int64)),
        "member_ids": _lists(pa.array(ids * count), MEMBERS),
        "member_keys": _lists(pa.array(ids * count), MEMBERS),
        "loads": _lists(pa.array(loads.ravel()), MEMBERS),
        "resource_list_id": pa.array(np.zeros(count, np.int64)),
        "owners": _lists(pa.array(owners.ravel()), PARTITIONS),
    }
    _write(path / GENERATIONS_DIR, generation_schema(), columns)
    names = pa.array([f"p:orders-{n}" for n in range(PARTITIONS)])
    listed = {
        "trace_id": _repeated(_TRACE_ID, 1),
        "resource_list_id": pa.array([0]),
        "resources": _lists(names, PARTITIONS),
    }
    _write(path / RESOURCES_DIR, resource_schema(), listed)


def _repeated(value: str, count: int) -> pa.Array:
    return pa.array([value]).take(pa.array(np.zeros(count, np.int64)))


def _lists(values: pa.Array, size: int) -> pa.ListArray:
    return pa.ListArray.from_arrays(
        pa.array(np.arange(0, len(values) + 1, size), pa.int32()), values
    )


def _write(directory: Path, schema: pa.Schema, columns: dict[str, Any]) -> None:
    """Write one file; columns that are not given are null, and `attrs` is empty."""
    count = len(next(iter(columns.values())))
    columns.setdefault("attrs", pa.array([[]] * count, pa.map_(pa.string(), pa.string())))
    arrays = [
        columns[name].cast(schema.field(name).type)
        if name in columns
        else pa.nulls(count, schema.field(name).type)
        for name in schema.names
    ]
    directory.mkdir(parents=True, exist_ok=True)
    table = pa.Table.from_arrays(arrays, schema=schema)
    pq.write_table(table, directory / "part-00000.parquet", compression="zstd")


def main() -> None:
    """Generate, report in a process of its own, print what it took."""
    assignments = "--assignments" in sys.argv
    with tempfile.TemporaryDirectory() as scratch:
        trace, out = Path(scratch) / "trace", Path(scratch) / "report"
        write_month(trace, assignments=assignments)
        command = [sys.executable, "-m", "coordinator_sim", "report", trace, "--out", out]
        environment = dict(os.environ, PYTHONPYCACHEPREFIX=str(Path(scratch) / "bytecode"))
        environment.pop("PYTHONDONTWRITEBYTECODE", None)
        small = Path(scratch) / "small"
        write_month(small, groups=10, rebalances=100, days=1, assignments=assignments)
        warm = [*command[:4], small, "--out", Path(scratch) / "of-small"]
        subprocess.run(warm, check=True, stdout=subprocess.DEVNULL, env=environment)
        with Usage(own=False) as usage:
            process = subprocess.run(
                command, check=True, stdout=subprocess.DEVNULL, env=environment
            )
        page_kb = (out / "report.html").stat().st_size // 1_000
    del process
    print(
        f"month: {GROUPS:,} groups, {REBALANCES:,} rebalances, {DAYS} days"
        f"{', with assignments' if assignments else ''}: {usage.cpu_s:.1f} CPU-s, "
        f"{usage.wall_s:.1f} s wall, peak {usage.peak_bytes / 1e9:.1f} GB resident, page "
        f"{page_kb:,} kB (bar without assignments {BAR_CPU_S:.0f} CPU-s, {BAR_GB} GB)"
    )


if __name__ == "__main__":
    main()
