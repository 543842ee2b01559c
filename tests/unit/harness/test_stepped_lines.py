"""A world that its driver takes step by step, over the line protocol."""

import json
from pathlib import Path
from typing import Any

import pytest

from coordinator_sim.harness.lines import Lines

MALFORMED = Path(__file__).with_name("malformed_steps.jsonl")
"""Commands of another shape, and the error of each."""

Json = dict[str, Any]
FOO = {"name": "foo", "id": "AAAAAAAAAAAAAAAAAAAAAQ", "partitions": 2}


class Stepped:
    """A stepped world of one offsets partition, with the topic `foo`."""

    def __init__(self) -> None:
        self._lines = Lines()
        names = ("group.coordinator.append.linger.ms", "group.streams.initial.rebalance.delay.ms")
        config = dict.fromkeys(names, 0)
        self.do("init", stepped=True, partitions=1, startMs=1_000, config=config)
        self.do("topics", set=[FOO])

    def do(self, op: str, **fields: object) -> Json:
        """The answer to a command."""
        return self._lines.answer({"op": op, **fields})

    def beat(self, api: str = "ConsumerGroupHeartbeat", **fields: object) -> Json:
        """The answer to the heartbeat by which member `m` joins group `g`."""
        data = {"groupId": "g", "memberId": "m", "memberEpoch": 0, "subscribedTopicNames": ["foo"]}
        if api == "ConsumerGroupHeartbeat":
            data |= {"topicPartitions": [], "rebalanceTimeoutMs": 5_000}
        return self.do("call", api=api, data=data | fields)


def _types(answer: Json) -> list[int]:
    return [record["key"]["type"] for record in answer.get("records", [])]


def test_a_prepared_result_is_the_target_of_a_consumer_group() -> None:
    """The assignor's own rules play no part, whatever its name is."""
    world = Stepped()
    world.do("assignors", names=["mine"])
    world.do("prepare", protocol="consumer", members={"m": {FOO["id"]: [1]}})
    assignment = world.beat()["replies"][0]["data"]["assignment"]
    assert assignment == {"topicPartitions": [{"topicId": FOO["id"], "partitions": [1]}]}
    assert world.do("timers")["prepared"] == 0


def test_a_prepared_failure_refuses_the_heartbeat() -> None:
    """As PartitionAssignorException does."""
    world = Stepped()
    world.do("assignors", names=["mine"])
    world.do("prepare", protocol="consumer", fails="no wish")
    assert world.beat()["replies"][0]["data"]["errorCode"] == -1


def test_an_assignor_without_a_prepared_result_is_an_error() -> None:
    """A driver that expects no assignment hears of one."""
    world = Stepped()
    world.do("assignors", names=["mine"])
    assert world.beat()["error"] == "an assignor of consumer groups is asked, no result is prepared"


def test_a_streams_member_that_the_assignor_does_not_name_gets_an_empty_target() -> None:
    """Source: streams TargetAssignmentBuilder.newMemberAssignment."""
    world = Stepped()
    world.do("assignors", names=["mine"])
    world.do("prepare", protocol="streams", members={})
    subtopology = {"subtopologyId": "0", "sourceTopics": ["foo"]}
    subtopology |= {"sourceTopicRegex": [], "stateChangelogTopics": []}
    subtopology |= {"repartitionSinkTopics": [], "repartitionSourceTopics": []}
    subtopology |= {"copartitionGroups": []}
    data = {"groupId": "g", "memberId": "m", "memberEpoch": 0, "processId": "p"}
    data |= {"topology": {"epoch": 0, "subtopologies": [subtopology]}, "rebalanceTimeoutMs": 5_000}
    data |= {"activeTasks": [], "standbyTasks": [], "warmupTasks": [], "clientTags": []}
    answer = world.do("call", api="StreamsGroupHeartbeat", data=data)
    assert 21 in _types(answer), answer  # StreamsGroupTargetAssignmentMember


def test_only_a_timer_that_is_named_fires_however_late() -> None:
    """The member is fenced at the present, not at its deadline."""
    world = Stepped()
    world.beat()
    world.do("clock", at=100_000)
    assert world.do("timers")["timers"] == {"session-timeout-g-m": 46_000}
    fired = world.do("fire", timer="session-timeout-g-m")
    assert fired["now"] == 100_000
    assert _types(fired) == [8, 7, 5, 3, 6]
    assert world.do("timers")["timers"] == {}


@pytest.mark.parametrize(
    ("timer", "why"),
    [
        ("session-timeout-g-x", "timer 'session-timeout-g-x' is not armed"),
        ("session-timeout-g-m", "timer 'session-timeout-g-m' is due at 46000, now is 1000"),
    ],
)
def test_a_timer_that_is_not_due_does_not_fire(timer: str, why: str) -> None:
    """The answer says why."""
    world = Stepped()
    world.beat()
    assert world.do("fire", timer=timer)["error"] == why


def test_replayed_records_get_timers_when_the_world_opens() -> None:
    """A replay alone arms none, as in Kafka's unit tests."""
    world = Stepped()
    written = world.beat()["records"]
    again = Stepped()
    assert "error" not in again.do("replay", records=written)
    assert again.do("timers")["timers"] == {}
    again.do("open")
    assert again.do("timers")["timers"] == {"session-timeout-g-m": 46_000}


def test_expressions_are_resolved_in_the_background() -> None:
    """The heartbeat writes what it knows; the rest comes when told."""
    world = Stepped()
    joined = world.beat(subscribedTopicNames=[], subscribedTopicRegex="f.*")
    assert 16 not in _types(joined)  # ConsumerGroupRegularExpression
    assert 16 in _types(world.do("background"))
    assert world.do("background")["error"] == "no other thread has work"


def test_a_refused_write_fails_what_waits_for_it() -> None:
    """The answer of a heartbeat whose records are not replicated."""
    world = Stepped()
    world.do("hold", hw=True)
    assert "replies" not in world.beat()
    refused = world.do("refuse", error="NOT_LEADER_OR_FOLLOWER")
    assert refused["replies"][0]["data"]["errorCode"] == 16  # NOT_COORDINATOR


def test_offsets_of_a_transaction_count_once_its_marker_is_replayed() -> None:
    """And offsets of a deleted topic go."""
    world = Stepped()
    key = {"type": 1, "data": {"group": "g", "topic": "foo", "partition": 0}}
    value = {"offset": 7, "leaderEpoch": -1, "metadata": "", "commitTimestamp": 1_000}
    record = {"key": key, "value": {"version": 3, "data": value}}
    fetch = {"groups": [{"groupId": "g", "topics": None}], "requireStable": False}

    def offsets() -> list[int]:
        answer = world.do("call", api="OffsetFetch", v=8, data=fetch)
        topics = answer["replies"][0]["data"]["groups"][0]["topics"]
        return [each["committedOffset"] for topic in topics for each in topic["partitions"]]

    world.do("replay", records=[record], producerId=5)
    assert offsets() == []
    world.do("replay", producerId=5, control="COMMIT")
    assert offsets() == [7]
    assert _types(world.do("topicsDeleted", topics=[FOO])) == [1]
    assert offsets() == []


def test_offsets_expire_when_told() -> None:
    """Whatever the interval of looking for them is."""
    world = Stepped()
    key = {"type": 1, "data": {"group": "g", "topic": "foo", "partition": 0}}
    value = {"offset": 7, "leaderEpoch": -1, "metadata": "", "commitTimestamp": 1_000}
    world.do("replay", records=[{"key": key, "value": {"version": 3, "data": value}}])
    assert _types(world.do("expire")) == []
    world.do("clock", at=1_000 + 7 * 86_400_000 + 1)
    assert _types(world.do("expire")) == [1, 2]


def test_a_group_goes_by_settings_of_its_own() -> None:
    """Of a share group too: its heartbeats and its sessions."""
    world = Stepped()
    own = {"share.heartbeat.interval.ms": 7_000, "share.session.timeout.ms": 50_000}
    world.do("groupConfig", group="g", config=own)
    joined = world.beat("ShareGroupHeartbeat")
    assert joined["replies"][0]["data"]["heartbeatIntervalMs"] == 7_000
    assert world.do("timers")["timers"] == {"session-timeout-g-m": 51_000}


def test_other_worlds_are_not_stepped() -> None:
    """The answer says what `init` must have."""
    lines = Lines()
    lines.answer({"op": "init"})
    refused = lines.answer({"op": "fire", "timer": "join-g"})
    assert refused["error"] == "fire: is for a world that `init` made with stepped: true"


@pytest.mark.parametrize("line", MALFORMED.read_text("utf-8").splitlines())
def test_malformed_step_is_refused(line: str) -> None:
    """One line says what is wrong, and the world goes on."""
    case = json.loads(line)
    world = Stepped()
    assert world.do(**case["command"])["error"] == case["error"]
    assert world.do("timers")["timers"] == {}


@pytest.mark.parametrize("op", ["replay", "expire", "open", "refuse"])
def test_step_of_a_partition_that_is_not_led_is_refused(op: str) -> None:
    """Nothing is written to its log either."""
    world = Stepped()
    world.do("resign")
    refused = world.do(op, error="NOT_COORDINATOR")
    assert refused["error"] == "partition 0 is not led: elect it first"
    assert "records" not in refused
