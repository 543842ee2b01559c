"""Two recordings of Connect 4.3.1, replayed as scenarios: generation for generation the same."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Final, cast

import pytest
from msgspec import Struct, structs

from coordinator_sim.kafka.api_keys import ApiKey
from coordinator_sim.kafka.errors import ErrorCode
from coordinator_sim.kafka.partitioning import java_string_hash
from coordinator_sim.messages.embedded.connect_protocol import decode_connect_assignment
from coordinator_sim.messages.embedded.contents import ConnectAssignment
from coordinator_sim.sim.runner import run_scenario
from coordinator_sim.sim.scenario import Choice
from coordinator_sim.trace.events import Event, TraceEvent
from coordinator_sim.trace.recorder import MemoryRecorder
from coordinator_sim_conformance.field_frames import read_request_frame, read_response_frame
from coordinator_sim_scenarios.catalog import scenario_named

RECORDINGS: Final = Path(__file__).resolve().parents[2] / "data" / "wire"
WORKERS: Final = {
    "connect-sessioned-3-workers": {"19301": "worker-1", "19302": "worker-2", "19303": "worker-3"},
    "connect-eager-to-sessioned-upgrade": {"19306": "worker-1", "19307": "worker-2"},
}
"""By the port at the end of the recorded client id."""
BROKER: Final = "broker-1"


class Share(Struct, frozen=True):
    """What one worker is told in one generation."""

    added: tuple[str, ...]
    revoked: tuple[str, ...]
    delay_ms: int


class Round(Struct, frozen=True):
    """One generation: its protocol, leader, config offset, and everyone's share by name."""

    generation: int
    protocol: str
    leader: str
    config_offset: int
    shares: dict[str, Share]


def share_of(assignment: ConnectAssignment) -> Share:
    """An assignment in the order of the wire."""
    added = (*assignment.connectors, *(f"{t.connector}-{t.task}" for t in assignment.tasks))
    revoked = (
        *assignment.revoked_connectors,
        *(f"{t.connector}-{t.task}" for t in assignment.revoked_tasks),
    )
    return Share(added, revoked, assignment.delay_ms)


def round_of(generation: int, protocol: str, told: dict[str, ConnectAssignment]) -> Round:
    """One generation from the assignments in it, by worker name; the leader by its member id."""
    (leader,) = {assignment.leader for assignment in told.values()}
    (offset,) = {assignment.config_offset for assignment in told.values()}
    shares = {name: share_of(told[name]) for name in sorted(told)}
    return Round(generation, protocol, leader, offset, shares)


class Recording:
    """The generations of a recording, and the member ids in the order given out."""

    def __init__(self, name: str) -> None:
        self._workers = WORKERS[name]
        self._asked: dict[tuple[int, int], dict[str, object]] = {}
        self._names: dict[str, str] = {}
        told: dict[int, dict[str, ConnectAssignment]] = {}
        protocols: dict[int, str] = {}
        for worker, api, asked, answer in self._answers(RECORDINGS / f"{name}.jsonl"):
            if api is ApiKey.JOIN_GROUP:
                if answer["errorCode"] == ErrorCode.MEMBER_ID_REQUIRED:
                    self._names[cast("str", answer["memberId"])] = worker
            elif answer["errorCode"] == ErrorCode.NONE:
                generation = cast("int", asked["generationId"])
                blob = cast("bytes", answer["assignment"])
                told.setdefault(generation, {})[worker] = decode_connect_assignment(blob)
                protocols[generation] = cast("str", answer["protocolName"])
        self.member_ids = list(self._names)
        self.rounds = [
            self._named(round_of(generation, protocols[generation], told[generation]))
            for generation in sorted(told)
        ]

    def worker_of(self, member_id: str) -> str:
        """The scenario's name for a recorded member."""
        return self._names[member_id]

    def _named(self, one: Round) -> Round:
        return structs.replace(one, leader=self._names[one.leader])

    def _answers(
        self, path: Path
    ) -> Iterator[tuple[str, ApiKey, dict[str, object], dict[str, object]]]:
        for line in path.read_text("utf-8").splitlines():
            row = json.loads(line)
            if row["api_key"] not in (ApiKey.JOIN_GROUP, ApiKey.SYNC_GROUP):
                continue
            frame, call = bytes.fromhex(row["frame"]), (row["conn"], row["correlation_id"])
            if row["dir"] == "req":
                self._asked[call] = dict(read_request_frame(frame)[1])
                continue
            api = ApiKey(row["api_key"])
            _, answer = read_response_frame(api, row["api_version"], frame)
            worker = self._workers[row["client_id"].rpartition(":")[2]]
            yield worker, api, self._asked[call], dict(answer)


def bucket(member_id: str) -> int:
    """Where a Java hash table of 16 buckets has a string."""
    hashed = java_string_hash(member_id) & 0xFFFFFFFF
    return (hashed ^ hashed >> 16) & 15


def tape_of(recording: Recording) -> list[Choice]:
    """The broker's random ids, such that each has its recorded member's place in hash tables.

    Kafka's leader and Kafka's broker walk over hash tables of member ids, so that the ids decide
    who is taken from first. Names differ here, and so the ids have to.
    """
    tape: list[Choice] = []
    for index, member_id in enumerate(recording.member_ids):
        name, wanted = recording.worker_of(member_id), bucket(member_id)
        low = next(
            low
            for low in range(1 << 12)
            if bucket(f"{name}-{uuid_text(low + index + 1)}") == wanted
        )
        for use, chosen in ((2 * index, 0), (2 * index + 1, low)):
            tape.append(Choice("uuid", BROKER, use, 1 << 60, chosen))
    return tape


def uuid_text(low: int) -> str:
    """What the broker makes of a high half of 0 and a low half."""
    node = f"{low:015x}"
    return f"00000000-0000-4000-a{node[:3]}-{node[3:]}"


def rounds_of(events: list[TraceEvent]) -> list[Round]:
    """The generations of a simulated run."""
    names = {event.member_id: event.client_id for event in events if event.client_id}
    protocols = {
        event.generation: event.protocol_name
        for event in events
        if event.event is Event.JOIN_COMPLETE
    }
    told: dict[int, dict[str, ConnectAssignment]] = {}
    for event in events:
        if event.event is Event.ASSIGNED and event.generation is not None:
            assignment = decode_connect_assignment(event.assignment or b"")
            told.setdefault(event.generation, {})[names[event.member_id] or ""] = assignment
    rounds = []
    for generation, assignments in sorted(told.items()):
        one = round_of(generation, protocols[generation] or "", assignments)
        rounds.append(structs.replace(one, leader=names[one.leader] or ""))
    return rounds


@pytest.mark.parametrize(
    ("name", "count"),
    [("connect-sessioned-3-workers", 16), ("connect-eager-to-sessioned-upgrade", 15)],
)
def test_scenario_repeats_the_recorded_generations(name: str, count: int) -> None:
    """Protocol, leader, what is added and revoked for whom, and the delay: all as recorded."""
    recording = Recording(name)
    recorder = MemoryRecorder()

    run_scenario(scenario_named(name), seed=0, recorder=recorder, tape=tape_of(recording))

    assert len(recording.rounds) == count
    assert rounds_of(list(recorder.events)) == recording.rounds
