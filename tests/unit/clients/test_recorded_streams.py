"""The port of the streams member beside what Kafka Streams 4.4 sent to a real broker."""

from collections.abc import Iterator
from itertools import tee
from pathlib import Path

import msgspec
import pytest

from coordinator_sim.clients.streams_member import (
    GroupMembershipOperation,
    StreamsMember,
    StreamsRebalanceData,
    Subtopology,
    TopicInfo,
    streams_config,
)
from coordinator_sim.clients.streams_member.rebalance_data import OffsetSums
from coordinator_sim.kafka.api_keys import ApiKey
from coordinator_sim.kafka.resources import StreamsTaskId
from coordinator_sim.messages.streams_group_heartbeat import StreamsGroupHeartbeatRequest
from coordinator_sim_conformance.recorded.recording import (
    NODE,
    TOPIC,
    Recording,
    read_recording,
)
from coordinator_sim_conformance.recorded.rehearsal import Difference, Rehearsal

RECORDED = Path(__file__).parent / "recorded"
BEAT = ApiKey.STREAMS_GROUP_HEARTBEAT
SITUATIONS = [
    ("trio", "a", 0),
    ("trio", "b", 0),
    ("trio", "c", 0),
    ("static-close", "a", 0),
    ("static-close", "a", 1),
    ("refused", "a", 0),
    ("missing", "a", 0),
    ("shutdown", "a", 0),
    ("shutdown", "b", 0),
]


def recording_of(situation: str, instance: str, process: int) -> Recording:
    """One recorded process, whose member polls from its first heartbeat on.

    Until then a new JVM loads classes.
    """
    client_id = f"{instance}-StreamThread-1-consumer"
    recording = read_recording(
        RECORDED / f"streams-{situation}.jsonl",
        client_id,
        process=process,
        coordinator_apis=(BEAT,),
    )
    joined_ms = next(each.at_ms for each in recording.exchanges if each.api is BEAT)
    notes = tuple((joined_ms if note == "subscribe" else ms, note) for ms, note in recording.notes)
    return msgspec.structs.replace(recording, notes=notes)


def port_of(situation: str, recording: Recording, **settings: str) -> StreamsMember:
    """The port, configured as the recorded program was: it counts words."""
    beats = (each.request for each in recording.exchanges)
    first = next(each for each in beats if isinstance(each, StreamsGroupHeartbeatRequest))
    group_id = f"streams-{situation}"
    words = f"{group_id}-words-repartition"
    offsets, ends = tee(offsets_of(recording))
    data = StreamsRebalanceData(
        process_id=first.process_id or "",
        task_offset_sums=lambda: next(offsets)[0],
        task_end_offset_sums=lambda: next(ends)[1],
        subtopologies={
            "0": Subtopology(
                source_topics=("nowhere" if situation == "missing" else TOPIC,),
                repartition_sink_topics=(words,),
            ),
            "1": Subtopology(
                repartition_source_topics=(
                    TopicInfo(
                        name=words,
                        configs={
                            "cleanup.policy": "delete",
                            "message.timestamp.type": "CreateTime",
                            "retention.ms": "-1",
                            "segment.bytes": "52428800",
                        },
                    ),
                ),
                state_changelog_topics=(
                    TopicInfo(
                        name=f"{group_id}-totals-changelog",
                        configs={
                            "cleanup.policy": "compact",
                            "message.timestamp.type": "CreateTime",
                        },
                    ),
                ),
            ),
        },
    )
    chosen = {}
    if first.instance_id is not None:
        chosen["group.instance.id"] = first.instance_id
    return StreamsMember(
        streams_config({"group.protocol": "consumer", **chosen, **settings}),
        rebalance_data=data,
        client_id="a",
        group_id=group_id,
        topics=data.source_topics,
        assignors=(),
        bootstrap=(NODE,),
        member_id=first.member_id,
    )


def offsets_of(recording: Recording) -> Iterator[tuple[OffsetSums, OffsetSums]]:
    """Yield what the thread told of its tasks' offsets, for one heartbeat after the other."""
    for _, note in recording.notes:
        match note.split(" "):
            case ["offsets", *words]:
                place = words.index("/")
                yield sums(words[:place]), sums(words[place + 1 :])
            case _:
                pass
    while True:
        yield {}, {}


def sums(words: list[str]) -> OffsetSums:
    """Read `task=sum` words."""
    found = {}
    for word in words:
        task, total = word.split("=")
        subtopology, number = task.split("_")
        found[StreamsTaskId(subtopology, int(number))] = int(total)
    return found


def differences_of(recording: Recording, port: StreamsMember) -> list[Difference]:
    """Play a recording with a port whose thread does as the recorded one."""

    def note(text: str) -> None:
        match text.split(" "):
            case ["closing", operation]:
                port.leaves_by = GroupMembershipOperation(operation)
            case ["shutdown"]:
                port.rebalance_data.shutdown_requested = True
            case _:
                pass

    rehearsal = Rehearsal(
        recording, port, compared=(BEAT,), poll_ms=10, on_note=note, tolerance_ms=150
    )
    return rehearsal.play()


@pytest.mark.parametrize(("situation", "instance", "process"), SITUATIONS)
def test_the_port_sends_what_kafka_streams_sent(
    situation: str, instance: str, process: int
) -> None:
    """Every heartbeat of the recording comes, with its fields, at its time; no other does."""
    recording = recording_of(situation, instance, process)

    assert differences_of(recording, port_of(situation, recording)) == []


@pytest.mark.parametrize(
    ("situation", "setting", "value", "difference"),
    [
        ("trio", "max.poll.interval.ms", "5000", "rebalance_timeout_ms=5000"),
        ("trio", "group.instance.id", "two", "instance_id='two'"),
        ("refused", "retry.backoff.ms", "1000", "STREAMS_GROUP_HEARTBEAT number"),
    ],
)
def test_a_port_that_behaves_otherwise_is_found_out(
    situation: str, setting: str, value: str, difference: str
) -> None:
    """Another field or another instant is a difference."""
    recording = recording_of(situation, "a", 0)
    differences = differences_of(recording, port_of(situation, recording, **{setting: value}))

    assert any(difference in found.what for found in differences), differences


def test_offsets_that_a_thread_does_not_tell_are_missed() -> None:
    """The fields of task offsets are compared, too."""
    recording = recording_of("trio", "a", 0)
    port = port_of("trio", recording)
    port.rebalance_data.task_offset_sums = dict

    assert any("task_offsets" in found.what for found in differences_of(recording, port))
