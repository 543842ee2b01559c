"""A simulated run in the forms in which a real cluster would have left it."""

from datetime import UTC
from pathlib import Path

from msgspec import Struct

from coordinator_sim.disk.offsets_log import write_log
from coordinator_sim.ingest.importing import Importing, Options, prepare
from coordinator_sim.ingest.writing import write_trace
from coordinator_sim.kafka.profiles import profile_named
from coordinator_sim.log.format.log_batches import form_of
from coordinator_sim.logtext.writing.request_log import request_line
from coordinator_sim.logtext.writing.writer import broker_log
from coordinator_sim.runs.ownership import dense_rows
from coordinator_sim.runs.run_directory import read_run
from coordinator_sim.sim.runner import run_scenario
from coordinator_sim.sim.scenario.scenario import Scenario
from coordinator_sim.trace.events import TraceEvent
from coordinator_sim.trace.exchange import Exchange
from coordinator_sim.trace.recorder import MemoryRecorder
from coordinator_sim.trace.schema import GenerationRow, ResourceRow


class Told(Struct, frozen=True):
    """What a generation was, as a source tells it.

    Args:
        joined_us: When its join phase ended.
        synced_us: When its assignment was accepted.
    """

    members: tuple[str, ...]
    owners: tuple[tuple[str, str], ...]
    protocol: str | None
    leader: str | None
    joined_us: int
    synced_us: int

    def agrees(self, other: "Told") -> bool:
        """Whether both tell the same, and times a millisecond apart at most."""
        same = (self.members, self.owners, self.protocol, self.leader) == (
            *(other.members, other.owners, other.protocol, other.leader),
        )
        apart_us = (abs(self.joined_us - other.joined_us), abs(self.synced_us - other.synced_us))
        return same and max(apart_us) <= 1_000


Generations = dict[tuple[str, int, int], Told]


class LeftBehind(Struct):
    """A run, and the files that it would have left on a cluster's disks."""

    events: list[TraceEvent]
    exchanges: list[Exchange]
    broker_log: Path
    request_log: Path
    log_dir: Path


def leave_behind(scenario: Scenario, folder: Path, seed: int = 0) -> LeftBehind:
    """Run a scenario and write what its brokers would have written."""
    recorder = MemoryRecorder()
    exchanges: list[Exchange] = []
    result = run_scenario(scenario, seed=seed, recorder=recorder, on_exchange=exchanges.append)
    profile = profile_named(scenario.profile)
    folder.mkdir(parents=True, exist_ok=True)
    found = LeftBehind(
        recorder.events,
        exchanges,
        folder / "server.log",
        folder / "kafka-request.log",
        folder / "logs",
    )
    found.broker_log.write_text(
        "".join(f"{line}\n" for line in broker_log(recorder.events, profile))
    )
    found.request_log.write_text("".join(f"{request_line(each)}\n" for each in exchanges))
    write_log(found.log_dir, result.offsets_log, form_of(profile))
    return found


def read_again(out: Path, *paths: Path) -> Importing:
    """Ingest files into a run directory."""
    importing = prepare(list(paths))
    write_trace(importing, Options(zone=UTC, trace_format="jsonl"), out, lambda _used: None)
    return importing


def generations_in(out: Path) -> Generations:
    """The generations with members of a trace on disk."""
    run = read_run(out)
    return _told(list(run.generations()), list(run.resources()))


def generations_of(events: list[TraceEvent]) -> Generations:
    """The generations with members of a run."""
    return _told(*dense_rows(events, "t", "c"))


def _told(rows: list[GenerationRow], lists: list[ResourceRow]) -> Generations:
    names = {each.resource_list_id: each.resources for each in lists}
    return {
        (row.group_id, row.incarnation, row.generation): Told(
            members=row.member_ids,
            owners=tuple(
                (resource, row.member_keys[owner])
                for resource, owner in zip(names[row.resource_list_id], row.owners, strict=False)
                if owner >= 0
            ),
            protocol=row.protocol_name,
            leader=row.leader_id,
            joined_us=row.join_done_us or 0,
            synced_us=row.sync_us or 0,
        )
        for row in rows
        if row.member_ids
    }
