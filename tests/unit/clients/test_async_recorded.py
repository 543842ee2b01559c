"""The port of Java's new consumer beside what Java 4.3.1 sent to a real broker."""

import json
from pathlib import Path
from typing import NamedTuple

import pytest

from coordinator_sim.clients.async_consumer import AsyncConsumer
from coordinator_sim.clients.config import ConsumerConfig
from coordinator_sim.clients.effects import ResetPositions
from coordinator_sim.kafka.api_keys import ApiKey
from coordinator_sim.kafka.errors import ErrorCode
from coordinator_sim.messages.codec.frames import decode_request, decode_response
from coordinator_sim.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
)
from coordinator_sim.messages.find_coordinator import (
    Coordinator,
    FindCoordinatorRequest,
    FindCoordinatorResponse,
)
from coordinator_sim.messages.metadata import (
    MetadataResponse,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from coordinator_sim.messages.offset_fetch import OffsetFetchRequest, OffsetFetchResponse
from coordinator_sim.messages.requests import Request
from coordinator_sim_conformance.client_cases.bench import BROKER, Bench, PortBench

WIRE = Path(__file__).resolve().parents[4] / "shared" / "samples" / "wire"
RECORDING = WIRE / "kip848-java-and-librdkafka.jsonl"
TOPIC = "tmix"
TOPIC_ID = bytes.fromhex("22c92d200a294d018535c254c724db12")
GROUP = "mix-848"
SLACK_MS = 600
"""A fetch without records ends after 500 ms, and only then does the application look around."""

pytestmark = pytest.mark.skipif(
    not RECORDING.is_file(), reason="../shared/samples/wire has the recordings"
)


class Recorded(NamedTuple):
    """One consumer's group traffic."""

    beats: list[tuple[int, ConsumerGroupHeartbeatRequest]]
    answers: list[tuple[int, ConsumerGroupHeartbeatResponse | OffsetFetchResponse]]


def recorded(connection: int) -> Recorded:
    """The heartbeats of one connection with their instants, and the answers that came on it."""
    found = Recorded([], [])
    for line in RECORDING.read_text(encoding="utf-8").splitlines():
        told = json.loads(line)
        if told["conn"] != connection:
            continue
        api, frame, at_ms = ApiKey(told["api_key"]), bytes.fromhex(told["frame"]), told["t_ms"]
        if told["dir"] == "resp" and api in (ApiKey.CONSUMER_GROUP_HEARTBEAT, ApiKey.OFFSET_FETCH):
            found.answers.append((at_ms, decode_response(api, told["api_version"], frame)[1]))
        elif told["dir"] == "req" and api is ApiKey.CONSUMER_GROUP_HEARTBEAT:
            found.beats.append((at_ms, decode_request(frame)[1]))
    return found


class RecordedBench(PortBench[AsyncConsumer]):
    """A cluster with the topic of the recording, which knows where its partitions begin."""

    def metadata(self) -> MetadataResponse:
        """Return the topic."""
        partitions = tuple(MetadataResponsePartition(partition_index=n) for n in range(6))
        topic = MetadataResponseTopic(name=TOPIC, topic_id=TOPIC_ID, partitions=partitions)
        return MetadataResponse(brokers=(BROKER,), topics=(topic,))

    def find(self, error: ErrorCode = ErrorCode.NONE) -> None:
        """Answer a FindCoordinator with this broker."""
        found = Coordinator(key=GROUP, node_id=BROKER.node_id, error_code=error)
        self.answer(FindCoordinatorRequest, FindCoordinatorResponse(coordinators=(found,)))

    def wait_for(self, kind: type[Request]) -> None:
        """Let time pass until a request of this kind waits, but not for long."""
        end_ms = self.now_ms + SLACK_MS
        while not self.waiting(kind) and self.now_ms < end_ms:
            self.advance(1)

    def find_positions(self) -> None:
        """Answer all that the port asked for."""
        wanted: list[ResetPositions] = list(self.resets)
        self.resets.clear()
        for reset in wanted:
            found = dict.fromkeys(reset.partitions, 0)
            self.do(self.port.positions_found(found, self.now_ms))


@pytest.mark.parametrize("connection", [2, 8])
def test_the_port_sends_the_heartbeats_that_java_sent(connection: int) -> None:
    """Each with the same fields, in the same order, up to the leave; at its time, within 600 ms.

    The application of the recording has no callbacks, which spares it a turn of its loop.
    """
    story = recorded(connection)
    port = AsyncConsumer(
        ConsumerConfig.from_settings(
            {
                "group.protocol": "consumer",
                "enable.auto.commit": "false",
                "auto.offset.reset": "earliest",
            }
        ),
        client_id="c",
        group_id=GROUP,
        topics=(TOPIC,),
        assignors=(),
        bootstrap=(BROKER,),
        member_id=story.beats[0][1].member_id,
    )
    bench = RecordedBench(Bench(), port)
    bench.now_ms = story.beats[0][0]
    left_ms = story.beats[-1][0]
    bench.poll()
    for at_ms, answer in story.answers:
        if at_ms >= left_ms:
            break
        bench.run(at_ms)
        is_offsets = isinstance(answer, OffsetFetchResponse)
        kind = OffsetFetchRequest if is_offsets else ConsumerGroupHeartbeatRequest
        bench.wait_for(kind)
        bench.answer(kind, answer)
        bench.find_positions()
    bench.run(left_ms)
    bench.wakeup()
    bench.close()

    assert bench.sent(ConsumerGroupHeartbeatRequest) == [beat for _, beat in story.beats]
    assert len(story.beats) >= 7
    wanted = [at_ms for at_ms, _ in story.beats]
    seen = bench.sent_at(ConsumerGroupHeartbeatRequest)
    off = [abs(at - other) for at, other in zip(seen, wanted, strict=True)]
    assert max(off) <= SLACK_MS
