"""A Kafka Streams application with the streams protocol, as it was recorded beside a real broker.

Two threads of Kafka Streams 4.3.1 join, wait for the initial delay and for internal topics, are
assigned, go on and leave. Our coordinator of that release answers each request as the broker did.
"""

import json
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from coordinator_sim.coordinator.contract import CoordinatorConfig
from coordinator_sim.harness.harness import Harness
from coordinator_sim.kafka.api_keys import ApiKey
from coordinator_sim.kafka.profiles import profile_named
from coordinator_sim.messages.codec import frames
from coordinator_sim.messages.streams_group_heartbeat import StreamsGroupHeartbeatResponse

SAMPLES = Path(__file__).resolve().parents[5] / "shared" / "samples" / "wire"
SAMPLE = SAMPLES / "streams-classic-and-kip1071.jsonl"
TOPIC_COUNT = 6
REPLICATION = "; Creation failed"
"""What a broker adds to a status when it could not create a topic yet."""

Json = dict[str, Any]


def recorded() -> list[Json]:
    """The heartbeats and their answers, in order."""
    if not SAMPLE.is_file():
        pytest.skip("no folder shared/samples/wire beside the project")
    rows = [json.loads(line) for line in SAMPLE.read_text("utf-8").splitlines()]
    return [row for row in rows if row["api_key"] == ApiKey.STREAMS_GROUP_HEARTBEAT]


def without_creation(response: StreamsGroupHeartbeatResponse) -> StreamsGroupHeartbeatResponse:
    """An answer as the coordinator gave it, its tasks in order."""
    statuses = tuple(
        replace(each, status_detail=each.status_detail.split(REPLICATION)[0])
        for each in response.status or ()
    )
    tasks = response.active_tasks
    ordered = None if tasks is None else tuple(sorted(tasks, key=lambda each: each.subtopology_id))
    return replace(response, status=statuses, active_tasks=ordered)


def test_the_application_is_answered_as_by_the_broker() -> None:
    """Every answer of the recording, in our virtual time, and every frame of its requests."""
    rows = recorded()
    broker = Harness(CoordinatorConfig(offsets_topic_num_partitions=1), profile_named("4.3"))
    broker.set_topic("tmix", TOPIC_COUNT, bytes(15) + b"\1")
    started_ms, first_ms = broker.now_ms, rows[0]["t_ms"]
    wanted: dict[str, int] = {}
    answers: dict[tuple[int, int], StreamsGroupHeartbeatResponse] = {}
    told = 0
    for row in rows:
        place, frame = (row["conn"], row["correlation_id"]), bytes.fromhex(row["frame"])
        if row["dir"] == "resp":
            api = ApiKey.STREAMS_GROUP_HEARTBEAT
            _, theirs = frames.decode_response(api, row["api_version"], frame)
            assert isinstance(theirs, StreamsGroupHeartbeatResponse)
            sent = frames.encode_response(answers[place], row["api_version"], correlation_id=0)
            _, ours = frames.decode_response(api, row["api_version"], sent)
            assert without_creation(ours) == without_creation(theirs)
            told += 1
            continue
        header, request = frames.decode_request(frame)
        again = frames.encode_request(
            request,
            header.api_version,
            correlation_id=header.correlation_id,
            client_id=header.client_id,
        )
        assert again == frame
        at_ms = started_ms + row["t_ms"] - first_ms
        if at_ms - started_ms > 3_000:
            # The broker's controller has created them while the group waited for the delay.
            for number, (name, count) in enumerate(wanted.items(), 2):
                broker.set_topic(name, count, bytes(15) + bytes([number]))
            wanted.clear()
        broker.advance(at_ms - broker.now_ms)
        (reply,) = broker.call(request, api_version=header.api_version).replies
        assert isinstance(reply.response, StreamsGroupHeartbeatResponse)
        answers[place] = reply.response
        wanted |= {topic.name: topic.partition_count for topic in reply.internal_topics}
    assert told == len(rows) // 2 > 10
