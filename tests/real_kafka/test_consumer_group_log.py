"""Consumer groups in the log and in the offsets topic of a real broker, against our coordinator.

The same heartbeats go to Kafka and to our coordinator. What we write as a log is what Kafka logs,
and what is read from Kafka's log and from its segments is what our trace tells.
"""

import re
from collections.abc import Iterator
from datetime import UTC
from pathlib import Path

import pytest

from coordinator_sim.coordinator.contract import CoordinatorConfig
from coordinator_sim.harness.group_driver import answer
from coordinator_sim.harness.harness import Harness
from coordinator_sim.kafka.api_keys import ApiKey
from coordinator_sim.kafka.profiles import profile_named
from coordinator_sim.logtext.reading.broker_log import parse_broker_log
from coordinator_sim.logtext.writing.writer import broker_log
from coordinator_sim.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
    TopicPartitions,
)
from coordinator_sim.runs.run_directory import read_run
from coordinator_sim.trace.events import Event, TraceEvent
from coordinator_sim_conformance.field_frames import Fields
from coordinator_sim_conformance.real_kafka.kafka import Broker
from coordinator_sim_conformance.real_kafka.raw_client import RawClient
from tests.command_line import run_here

pytestmark = pytest.mark.real_kafka

GROUP = "orders-service"
SESSION_MS = 3_000
REBALANCE_MS = 1_000
PROPERTIES = {
    "offsets.topic.num.partitions": "1",
    "group.consumer.assignment.interval.ms": "0",
    "group.consumer.assignor.offload.enable": "false",
    "group.consumer.session.timeout.ms": str(SESSION_MS),
    "group.consumer.min.session.timeout.ms": str(SESSION_MS),
    "group.consumer.heartbeat.interval.ms": "1000",
    "group.consumer.min.heartbeat.interval.ms": "1000",
}


class Twins:
    """A real broker and our coordinator, which hear the same heartbeats."""

    def __init__(self, client: RawClient) -> None:
        self._client = client
        topic = {"name": "orders", "numPartitions": 6, "replicationFactor": 1}
        created = client.call(
            ApiKey.CREATE_TOPICS,
            7,
            {"topics": [{**topic, "assignments": [], "configs": []}], "timeoutMs": 30_000},
        )
        self.topic_id: bytes = created["topics"][0]["topicId"]
        config = CoordinatorConfig(
            broker_id=1,
            offsets_topic_num_partitions=1,
            group_consumer_assignment_interval_ms=0,
            group_consumer_session_timeout_ms=SESSION_MS,
            group_coordinator_append_linger_ms=0,
        )
        self.ours = Harness(config, profile_named("4.4"))
        self.ours.set_topic("orders", 6, self.topic_id)
        self.events: list[TraceEvent] = []
        self.ours.told = self.events.extend
        self._epochs: dict[str, int] = {}
        self._held: dict[str, tuple[int, ...]] = {}

    def join(self, member: str, instance: str | None = None) -> None:
        """A heartbeat that joins, at both; they answer alike."""
        self._held[member] = ()
        self._beat(member, 0, instance, ("orders",))

    def beat(self, member: str, epoch: int | None = None, instance: str | None = None) -> None:
        """A heartbeat of a member that has what it was last told to have."""
        self._beat(member, self._epochs.get(member, 1) if epoch is None else epoch, instance)

    def settle(self, *members: str) -> None:
        """Heartbeats in turn, until nobody has anything to do."""
        for _ in range(3):
            for member in members:
                self.beat(member)

    def wait(self, ms: int) -> None:
        """Time passes at both."""
        self._client.wait(ms)
        self.ours.advance(ms)

    def _beat(
        self, member: str, epoch: int, instance: str | None, topics: tuple[str, ...] | None = None
    ) -> None:
        held = self._held.get(member, ())
        owned = (TopicPartitions(self.topic_id, held),) if held else ()
        request = ConsumerGroupHeartbeatRequest(
            group_id=GROUP,
            member_id=member,
            member_epoch=epoch,
            instance_id=instance,
            rebalance_timeout_ms=REBALANCE_MS if epoch == 0 else -1,
            subscribed_topic_names=topics,
            topic_partitions=owned,
        )
        fields: Fields = {
            "groupId": GROUP,
            "memberId": member,
            "memberEpoch": epoch,
            "instanceId": instance,
            "rackId": None,
            "rebalanceTimeoutMs": request.rebalance_timeout_ms,
            "subscribedTopicNames": None if topics is None else list(topics),
            "subscribedTopicRegex": None,
            "serverAssignor": None,
            "topicPartitions": [
                {"topicId": each.topic_id, "partitions": list(each.partitions)} for each in owned
            ],
        }
        theirs = self._client.call(ApiKey.CONSUMER_GROUP_HEARTBEAT, 1, fields)
        ours = answer(self.ours.call(request, api_version=1), ConsumerGroupHeartbeatResponse)
        assert (theirs["errorCode"], theirs["memberEpoch"]) == (
            int(ours.error_code),
            ours.member_epoch,
        )
        if ours.assignment is not None:
            given = ours.assignment.topic_partitions
            self._held[member] = given[0].partitions if given else ()
        if ours.error_code == 0:
            self._epochs[member] = ours.member_epoch


def play(twins: Twins) -> None:
    """Members come, hand over, are static, away, replaced, fenced, leave, are late and silent."""
    twins.join("m1")
    twins.join("m2")
    twins.settle("m1", "m2")
    twins.join("s1", "i-1")
    twins.settle("m1", "m2")
    twins.beat("s1", -2, "i-1")
    twins.join("s2", "i-1")
    twins.beat("s9", 3, "i-1")
    twins.join("s9", "i-1")
    twins.beat("s2", -1, "i-1")
    twins.settle("m1", "m2")
    twins.beat("m2", -1)
    twins.settle("m1")
    twins.join("m3")
    twins.beat("m1")
    twins.wait(REBALANCE_MS + 500)
    twins.settle("m3")
    twins.wait(SESSION_MS + 500)


@pytest.fixture(scope="module")
def story(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Broker, Twins]]:
    """The broker and our coordinator after the story."""
    broker = Broker(tmp_path_factory.mktemp("kafka"), PROPERTIES)
    with broker:
        client = RawClient(broker.bootstrap)
        found = client.call(ApiKey.FIND_COORDINATOR, 4, {"keyType": 0, "coordinatorKeys": [GROUP]})
        while found["coordinators"][0]["errorCode"]:
            client.wait(200)
            found = client.call(
                ApiKey.FIND_COORDINATOR, 4, {"keyType": 0, "coordinatorKeys": [GROUP]}
            )
        client.wait(2_000)
        twins = Twins(client)
        client.wait(1_000)
        play(twins)
        client.close()
        broker.stop()
        yield broker, twins


def told_lines(text: str) -> list[str]:
    """The messages about the group, without how long an assignor took."""
    found = re.findall(rf"\[GroupCoordinator [^]]*\] \[GroupId {GROUP}\] [^(\n]*[^ (\n]", text)
    return [re.sub(r"in \d+ms\.", "in 0ms.", message) for message in found]


def test_our_log_of_a_consumer_group_is_kafkas(story: tuple[Broker, Twins]) -> None:
    """Line by line, with ids, epochs and hashes; only times are left out."""
    broker, twins = story
    ours = "\n".join(broker_log(twins.events, profile_named("4.4")))
    assert told_lines(ours) == told_lines(broker.log.read_text(encoding="utf-8"))


def test_kafkas_log_is_read_as_what_our_trace_tells(story: tuple[Broker, Twins]) -> None:
    """Who came and went and how, epochs and targets: the same events in the same order."""
    broker, twins = story
    lines = broker.log.read_text(encoding="utf-8").splitlines()
    read = [e for e in parse_broker_log(lines, source_ref="x", tz=UTC) if e.group_id == GROUP]
    kinds = {event.event for event in read}
    own = [e for e in twins.events if e.event in kinds and e.event is not Event.MEMBER_FENCED]
    told = [e for e in read if e.event is not Event.MEMBER_FENCED]
    assert [(e.event, e.member_id, e.group_instance_id) for e in told if e.member_id] == [
        (e.event, e.member_id, e.group_instance_id)
        for e in own
        if e.member_id and e.event is not Event.EPOCH_BUMPED
    ]
    epochs = (Event.EPOCH_BUMPED, Event.TARGET_COMPUTED)
    assert [(e.event, e.generation) for e in told if e.event in epochs] == [
        (e.event, e.generation) for e in own if e.event in epochs
    ]
    assert Event.UNPARSED not in kinds


def test_kafkas_segments_are_read_as_what_our_trace_tells(
    story: tuple[Broker, Twins], tmp_path: Path
) -> None:
    """Targets and everybody's steps, with their partitions, from the records alone."""
    broker, twins = story
    segments = sorted((broker.data / "__consumer_offsets-0").glob("*.log"))
    done = run_here("ingest", *segments, "--out", tmp_path / "trace")
    assert done.returncode == 0, done.stderr
    kinds = (Event.TARGET_ASSIGNED, Event.MEMBER_STEP, Event.TARGET_REACHED, Event.EPOCH_BUMPED)
    read = [e for e in read_run(tmp_path / "trace").events() if e.event in kinds]
    own = [e for e in twins.events if e.event in kinds]
    assert [(e.event, e.generation, e.member_id, e.assignment) for e in read] == [
        (e.event, e.generation, e.member_id, e.assignment) for e in own
    ]
