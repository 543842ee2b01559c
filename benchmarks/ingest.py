"""How fast broker logs become a trace: lines per CPU-second of all stages, in one process.

Run with `python -m benchmarks ingest`, or `python -m benchmarks.ingest --full` for a whole month.
The month is one of 2,000 groups, in the words of Kafka 3.9 and of 4.x; a few groups have most of
the rebalances. Beside each figure stands a limit of the same run, which reads the lines,
searches each with one regex and writes the same Parquet rows from ready columns.
"""

import re
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator
from datetime import UTC
from itertools import islice
from pathlib import Path
from random import Random
from typing import Final

import pyarrow.parquet as pq

from coordinator_sim.kafka.profiles import PROFILES
from coordinator_sim.logtext.writing.writer import broker_log
from coordinator_sim.trace.events import Event, RebalanceReason, TraceEvent

GROUPS: Final = 2_000
REBALANCES: Final = 120_000
"""A month's; each tells four to five lines."""
DAYS: Final = 30
_START_US: Final = 1_767_225_600_000_000
"""2026-01-01 UTC."""
_DAY_US: Final = 86_400_000_000
_BROKER_ID: Final = 1
_PARTITIONS: Final = 50
_TIMES: Final = 3
"""Runs of which the best counts."""
_SCAN: Final = re.compile(rb"^\[(.*?)\] (\w+) (.*) \((.*)\)$")
_KINDS: Final = ("joined", "left", "failed", "metadata")
_SHARES: Final = (40, 25, 20, 15)
_JOIN_REASON: Final = "; client reason: not provided"
_LEAVE_REASON: Final = "the consumer is being closed"


def month_events(rebalances: int, *, groups: int = GROUPS, seed: int = 1) -> list[TraceEvent]:
    """Return the events of a broker's month in time order, the same ones each time.

    Args:
        rebalances: Number of rebalances of all groups together.
        groups: Number of groups; a Zipf law shares the rebalances out.
        seed: Seed of the draws.
    """
    chance = Random(seed)  # noqa: S311 - drawn worlds, not secrets
    weights = [1 / rank for rank in range(1, groups + 1)]
    chosen = chance.choices(range(groups), weights, k=rebalances)
    span_us = DAYS * _DAY_US * rebalances // REBALANCES
    starts = sorted(chance.randrange(span_us) for _ in chosen)
    generations = [0] * groups
    free_us = [0] * groups
    events: list[TraceEvent] = []
    for group, start in zip(chosen, starts, strict=True):
        at_us = max(_START_US + start // 1_000 * 1_000, free_us[group])
        told = list(_rebalance(chance, group, generations[group], at_us))
        generations[group] += 1
        free_us[group] = told[-1].ts_us + 1_000
        events += told
    return sorted(events, key=lambda event: event.ts_us)


def _rebalance(chance: Random, group: int, generation: int, at_us: int) -> Iterator[TraceEvent]:
    member_id = f"consumer-app-{group}-{chance.randrange(9)}-{_uuid(chance)}"
    leader_id = f"consumer-app-{group}-1-{_uuid(chance)}"
    partition = group % _PARTITIONS
    members = chance.randrange(2, 40)

    def event(kind: Event, ts_us: int, **columns: object) -> TraceEvent:
        shared = {"group_id": f"orders-service-{group:04}", "broker_id": _BROKER_ID}
        shared |= {"offsets_partition": partition, "generation": generation}
        return TraceEvent(event=kind, ts_us=ts_us, **(shared | columns))  # type: ignore[arg-type]

    (kind,) = chance.choices(_KINDS, _SHARES)
    cause, text, reason = _cause(kind, member_id)
    if cause is not None:
        state = {"in_state": "Stable", "protocols": "range,cooperative-sticky"}
        yield event(
            *(cause, at_us),
            member_id=member_id,
            client_id=member_id[:-37],
            client_host="/10.1.2.3",
            session_timeout_ms=45_000,
            rebalance_timeout_ms=300_000,
            client_reason=_LEAVE_REASON,
            attrs=state,
        )
    attrs = {"in_state": "PreparingRebalance"}
    yield event(Event.PREPARE_REBALANCE, at_us, reason=reason, reason_text=text, attrs=attrs)
    joined_us = at_us + chance.randrange(3_000, 60_000) * 1_000
    yield event(Event.JOIN_COMPLETE, joined_us, generation=generation + 1, members=members)
    yield event(
        Event.SYNC_LEADER,
        joined_us + chance.randrange(1, 900) * 1_000,
        generation=generation + 1,
        leader_id=leader_id,
        members=members,
        static_members=0,
    )


def _cause(kind: str, member_id: str) -> tuple[Event | None, str, RebalanceReason]:
    """Return the event before a rebalance, and the rebalance's reason in the core's words."""
    match kind:
        case "joined":
            text = f"Adding new member {member_id} with group instance id null{_JOIN_REASON}"
            return Event.MEMBER_ID_ASSIGNED, text, RebalanceReason.MEMBER_JOINED
        case "left":
            text = f"explicit `LeaveGroup` request for ({member_id}) members."
            return Event.MEMBER_LEFT, text, RebalanceReason.MEMBER_LEFT
        case "failed":
            text = f"removing member {member_id} on heartbeat expiration."
            return Event.MEMBER_FAILED, text, RebalanceReason.MEMBER_FAILED
        case _:
            text = f"Updating metadata for member {member_id} during Stable{_JOIN_REASON}"
            return None, text, RebalanceReason.METADATA_CHANGED


def _uuid(chance: Random) -> str:
    digits = f"{chance.getrandbits(128):032x}"
    return "-".join((digits[:8], digits[8:12], digits[12:16], digits[16:20], digits[20:]))


def other_lines(count: int) -> Iterator[str]:
    """Yield what a broker logs about its partitions: nothing for a trace."""
    for index in range(count):
        yield (
            f"[2024-05-06 12:{index // 60 % 60:02}:{index % 60:02},250] INFO [UnifiedLog "
            f"partition=orders-{index % 64}, dir=/var/lib/kafka] Rolled new log segment at offset "
            f"{index * 1000} in 2 ms. (kafka.log.UnifiedLog)"
        )


def write_lines(path: Path, lines: Iterable[str]) -> int:
    """Write a log; return the number of its lines."""
    count = 0
    with path.open("w", encoding="utf-8") as file:
        for line in lines:
            file.write(f"{line}\n")
            count += 1
    return count


def ingested(paths: list[Path], out: Path) -> tuple[float, int]:
    """Ingest logs as the command does, in this process; return CPU-seconds and events."""
    from coordinator_sim.ingest.importing import Options, prepare
    from coordinator_sim.ingest.writing import write_trace

    started = time.process_time()
    importing = prepare(paths)
    write_trace(importing, Options(zone=UTC), out, lambda _used: None)
    cpu_s = time.process_time() - started
    return cpu_s, sum(one.summary.events for one in importing.files)


def peak_mb(log: Path) -> float:
    """Ingest a log by the command; return the most memory that it or an earlier one had."""
    command = [sys.executable, "-m", "coordinator_sim", "ingest", log, "--out", log.parent / "told"]
    subprocess.run(command, check=True, capture_output=True)
    return resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1_000


def limit(paths: list[Path], trace: Path, out: Path) -> float:
    """Read lines, search each once, write the trace's rows anew; return CPU-seconds."""
    tables = [pq.ParquetFile(path).read() for path in sorted(trace.glob("events/*/*/*.parquet"))]
    started = time.process_time()
    found = 0
    for path in paths:
        with path.open("rb") as file:
            found += sum(1 for line in file if _SCAN.search(line))
    for number, table in enumerate(tables):
        pq.write_table(table, out / f"{number}.parquet", compression="zstd")
    return time.process_time() - started


def main() -> None:
    """Print the rate of each wording and of other lines, each beside its limit."""
    rebalances = REBALANCES if "--full" in sys.argv else REBALANCES // 4
    _import_all()
    for profile in ("3.9", "4.4"):
        events = month_events(rebalances)
        with tempfile.TemporaryDirectory() as scratch:
            log = Path(scratch) / "server.log"
            lines = write_lines(log, broker_log(events, PROFILES[profile]))
            _show(f"a month in the words of {profile}", [log], lines)
            tenth = Path(scratch) / "tenth.log"
            with log.open(encoding="utf-8") as file:
                write_lines(tenth, (line.rstrip("\n") for line in islice(file, lines // 10)))
            print(
                f"  peak of the command: {peak_mb(tenth):.0f} MB for a tenth, {peak_mb(log):.0f} MB"
            )
    with tempfile.TemporaryDirectory() as scratch:
        log = Path(scratch) / "server.log"
        lines = write_lines(log, other_lines(rebalances * 4))
        _show("other lines", [log], lines)


def _import_all() -> None:
    """Ingest a line, so that no figure holds the time of imports."""
    with tempfile.TemporaryDirectory() as scratch:
        log = Path(scratch) / "server.log"
        write_lines(log, broker_log(month_events(20)[:1], PROFILES["3.9"]))
        ingested([log], Path(scratch) / "trace")


def _show(name: str, paths: list[Path], lines: int) -> None:
    scratch = paths[0].parent
    (scratch / "limit").mkdir()
    cpu_s, events = min(ingested(paths, scratch / "trace") for _ in range(_TIMES))
    limit_s = min(limit(paths, scratch / "trace", scratch / "limit") for _ in range(_TIMES))
    print(
        f"{name}: {lines:,} lines, {events:,} events, {lines / cpu_s:,.0f} lines/CPU-s; "
        f"limit {lines / limit_s:,.0f}, ratio {limit_s / cpu_s:.2f}",
        flush=True,
    )


if __name__ == "__main__":
    main()
