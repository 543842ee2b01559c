"""Moves between generations from the dense form: CPU of the pass beside a numpy floor.

500 groups of 200 partitions, 100 generations by default (10 million assignments), 1000 with
`--full` (100 million). Bar: 25 CPU-seconds for 100 million, within 4 GB. The floor compares the
same owner arrays in numpy, in one thread, and must find the same number of moves.
"""

import os
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Final, Self

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from coordinator_sim.trace.events import Source
from coordinator_sim.trace.schema import event_schema, generation_schema, resource_schema
from coordinator_sim_reports.local_engine import LocalEngine
from coordinator_sim_reports.transforms.groups import Records, group_pass
from coordinator_sim_reports.workers.dense_files import pieces_of_rows
from coordinator_sim_reports.workers.group import RunFacts

GROUPS: Final = 500
PARTITIONS: Final = 200
MEMBERS: Final = 24
RESHUFFLE_EVERY: Final = 50
BAR_CPU_S_PER_100M: Final = 25.0
LIMIT_GB: Final = 4
RUN: Final = RunFacts(
    source=Source.SIM,
    scenario=None,
    assignor=None,
    profile="4.4",
    version="",
    seed=None,
    undecodable_assignments=0,
    first_ts_us=0,
    last_ts_us=0,
    end_us=0,
)
CLUSTER: Final = pa.field("cluster_id", pa.string())
SUMS: Final = "SELECT CAST(sum(moved) AS BIGINT) AS moved FROM {moves}"
_TICKS: Final = os.sysconf("SC_CLK_TCK")
_PAGE: Final = os.sysconf("SC_PAGE_SIZE")
_SAMPLE_S: Final = 0.2


def make_group(group: int, generations: int) -> list[np.ndarray]:
    """Owner numbers of one group: small sticky moves, and a reshuffle now and then."""
    chance = np.random.default_rng(group)
    owners = chance.integers(0, MEMBERS, PARTITIONS, dtype=np.int32)
    rows = []
    for number in range(generations):
        if (number + 1) % RESHUFFLE_EVERY == 0:
            owners = chance.integers(0, MEMBERS, PARTITIONS, dtype=np.int32)
        else:
            moved = chance.integers(0, PARTITIONS, PARTITIONS // 10)
            owners = owners.copy()
            owners[moved] = chance.integers(0, MEMBERS, moved.size, dtype=np.int32)
        rows.append(owners)
    return rows


def write_generations(directory: Path, generations: int) -> None:
    """Write the dense tables, a row group per group."""
    schema = generation_schema()
    ids = [
        f"consumer-{number:02d}-6f1c0d5a-8b7e-4c2d-9a31-5e4f3b2a1c0d" for number in range(MEMBERS)
    ]
    directory.mkdir()
    with pq.ParquetWriter(directory / "part-00000.parquet", schema, compression="zstd") as writer:
        for group in range(GROUPS):
            rows = make_group(group, generations)
            loads = [np.bincount(row, minlength=MEMBERS).astype(np.int32) for row in rows]
            constant = {
                "trace_id": "bench",
                "cluster_id": "c",
                "group_id": f"group-{group:03d}",
                "incarnation": 0,
                "protocol_type": "consumer",
                "protocol_name": "sticky",
                "subscriptions_equal": True,
                "delay_ms": 0,
                "member_ids": ids,
                "member_keys": ids,
                "resource_list_id": 0,
            }
            columns = {name: [value] * generations for name, value in constant.items()}
            columns["generation"] = list(range(1, generations + 1))
            columns["sync_us"] = [number * 1_000_000 for number in range(generations)]
            columns["join_done_us"] = columns["sync_us"]
            columns["leader_id"] = [ids[0]] * generations
            arrays = [
                _lists(loads)
                if name == "loads"
                else _lists(rows)
                if name == "owners"
                else pa.array(columns[name], type=schema.field(name).type)
                for name in schema.names
            ]
            writer.write_table(pa.Table.from_arrays(arrays, schema=schema))


def _lists(rows: list[np.ndarray]) -> pa.ListArray:
    offsets = np.arange(len(rows) + 1, dtype=np.int32) * rows[0].size
    return pa.ListArray.from_arrays(pa.array(offsets), pa.array(np.concatenate(rows)))


def count_in_numpy(directory: Path) -> int:
    """Moves by comparing neighbouring owner arrays; every member survives here."""
    table = pq.read_table(directory, columns=["group_id", "owners"], use_threads=False)
    owners = table["owners"].combine_chunks().values.to_numpy().reshape(-1, PARTITIONS)
    changed = np.count_nonzero(owners[1:] != owners[:-1], axis=1)
    same = table["group_id"].dictionary_encode().combine_chunks().indices.to_numpy()
    return int(changed[same[1:] == same[:-1]].sum())


def processes(root: int | None = None) -> dict[int, tuple[float, int]]:
    """CPU-seconds and resident bytes of a process and every living descendant, by pid.

    Args:
        root: Its pid; this process, if none is given.
    """
    table: dict[int, tuple[int, float, int]] = {}
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            fields = (entry / "stat").read_text().rsplit(")", 1)[1].split()
        except (FileNotFoundError, ProcessLookupError):
            continue  # it ended between the listing and the reading
        cpu_s = sum(map(int, fields[11:13])) / _TICKS
        table[int(entry.name)] = (int(fields[1]), cpu_s, int(fields[21]) * _PAGE)
    found = {}
    pending = [os.getpid() if root is None else root]
    while pending:
        pid = pending.pop()
        if pid in table:
            found[pid] = table[pid][1:]
            pending += [child for child, (parent, _, _) in table.items() if parent == pid]
    return found


class Usage:
    """CPU-seconds, wall seconds and peak memory of a block: driver, JVM and workers together.

    Pages that processes share count once: a JVM that starts a program is two processes of one
    memory for a moment. A process counts until it was last seen, also where nobody waits for its
    end.

    Args:
        own: Whether this process counts too. It does not where it only starts what is measured:
            on a host of many processes the sampling alone takes a twentieth of a core.
    """

    def __init__(self, *, own: bool = True) -> None:
        self._own = own

    def __enter__(self) -> Self:
        self.peak_bytes = 0
        self._own_s: dict[int, float] = {}
        self._done = threading.Event()
        self._watch = threading.Thread(target=self._sample)
        self._watch.start()
        self._started_s = time.perf_counter()
        self._before_s = self._total_cpu_s()
        return self

    def __exit__(self, *error: object) -> None:
        self.cpu_s = self._total_cpu_s() - self._before_s
        self.wall_s = time.perf_counter() - self._started_s
        self._done.set()
        self._watch.join()

    def _total_cpu_s(self) -> float:
        self._own_s |= {pid: cpu_s for pid, (cpu_s, _) in self._alive().items()}
        return sum(self._own_s.values())

    def _alive(self) -> dict[int, tuple[float, int]]:
        found = processes()
        if not self._own:
            del found[os.getpid()]
        return found

    def _sample(self) -> None:
        while not self._done.wait(_SAMPLE_S):
            alive = self._alive()
            self._own_s |= {pid: cpu_s for pid, (cpu_s, _) in alive.items()}
            self.peak_bytes = max(self.peak_bytes, sum(map(_held_bytes, alive)))


def _held_bytes(pid: int) -> int:
    """Return the resident bytes of a process, of shared pages its share; 0 once it has ended."""
    try:
        lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    except (FileNotFoundError, ProcessLookupError):
        return 0
    return sum(int(line.split()[1]) * 1024 for line in lines if line.startswith("Pss:"))


def main() -> None:
    """Generate, measure, print."""
    generations = 1000 if "--full" in sys.argv else 100
    count = GROUPS * generations * PARTITIONS
    with tempfile.TemporaryDirectory() as scratch:
        directory = Path(scratch) / "generations"
        write_generations(directory, generations)
        before_s = time.process_time()
        floor = count_in_numpy(directory)
        floor_s = time.process_time() - before_s
        with Usage() as whole, LocalEngine(Path(scratch), str, ()) as engine:
            dense = pq.ParquetFile(directory / "part-00000.parquet").iter_batches(generations)
            names = ("bench", 0, [f"p:orders-{number}" for number in range(PARTITIONS)])
            records = Records(
                events=engine.frame_of(event_schema().append(CLUSTER).empty_table()),
                kinds=(),
                dense_pieces=engine.pieces_of(pieces_of_rows(dense)),
                resources=engine.listed([names], resource_schema()),
            )
            moves = group_pass(engine, records, {"bench": RUN}, ("moves",)).table("moves")
            (row,) = engine.rows(engine.sql(SUMS, moves=moves))
    if row["moved"] != floor:
        raise SystemExit(f"churn: the pass found {row['moved']} moves, numpy {floor}")
    per_100m = whole.cpu_s * 100_000_000 / count
    print(
        f"churn: {count / 1e6:.0f} M assignments, {floor / 1e6:.1f} M moves: "
        f"{whole.cpu_s:.1f} CPU-s, {whole.wall_s:.1f} s wall, peak {whole.peak_bytes / 1e9:.1f} GB "
        f"resident (limit {LIMIT_GB}); numpy floor {floor_s:.2f} CPU-s, "
        f"ratio {whole.cpu_s / floor_s:.1f}; {per_100m:.1f} CPU-s per 100 M "
        f"(bar {BAR_CPU_S_PER_100M:.0f}, at --full)"
    )


if __name__ == "__main__":
    main()
