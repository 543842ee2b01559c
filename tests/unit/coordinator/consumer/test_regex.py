"""Expressions that cost much: which are refused, and how the others are resolved in slices."""

import pytest

from coordinator_sim.broker.metadata.image import Topic
from coordinator_sim.coordinator.contract import CoordinatorConfig
from coordinator_sim.coordinator.modern.consumer.regex import compiled
from coordinator_sim.harness.harness import Harness
from coordinator_sim.kafka.context import RequestContext
from coordinator_sim.kafka.errors import ErrorCode
from coordinator_sim.kafka.profiles import profile_named
from coordinator_sim.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
)

TOPIC_COUNT = 2_000
DEAR = "(a?){1000}.*"
"""An expression of 4,012 instructions that matches every topic."""


class Broker:
    """A coordinator with many topics; its clock stands still."""

    def __init__(self) -> None:
        config = CoordinatorConfig(
            offsets_topic_num_partitions=1, group_coordinator_append_linger_ms=0
        )
        self.harness = Harness(config, profile_named("4.4"))
        self.harness.change_topics(
            {
                f"topic-{index:04}": Topic(index.to_bytes(16), 1)
                for index in range(1, TOPIC_COUNT + 1)
            }
        )
        self.coordinator = self.harness.coordinator
        self.now_ms = self.harness.now_ms

    def heartbeat(self, member_id: str, regex: str) -> ConsumerGroupHeartbeatResponse:
        """The answer to a member that joins with an expression; nothing else is done."""
        request = ConsumerGroupHeartbeatRequest(
            group_id="g",
            member_id=member_id,
            rebalance_timeout_ms=5_000,
            subscribed_topic_regex=regex,
            topic_partitions=(),
        )
        context = RequestContext(
            token=1, api_version=1, client_id="c", client_host="/h", principal="User:a"
        )
        (reply,) = self.coordinator.handle(request, context, self.now_ms).replies
        assert isinstance(reply.response, ConsumerGroupHeartbeatResponse)
        return reply.response

    @property
    def has_work(self) -> bool:
        """Whether `expire` has something to do now."""
        due_ms = self.coordinator.next_deadline_ms()
        return due_ms is not None and due_ms <= self.now_ms

    def work(self) -> int:
        """Do what there is; return the number of slices."""
        count = 0
        while self.has_work:
            self.coordinator.expire(self.now_ms)
            count += 1
        return count


@pytest.mark.parametrize(
    ("regex", "fault"),
    [
        ("(a*|b*)*" * 4_000, "it compiles to 40004 instructions, more than 16384"),
        ("[^a]" * 8_000, "it compiles to more than 16384 instructions"),
        (
            "".join(f"(?P<n{index}>a?)" for index in range(200)),
            "it compiles to 161604 instructions, more than 16384",
        ),
        (r"\pL" * 5_000, "5000 Unicode classes are more than 128"),
    ],
)
def test_expression_beyond_the_budget_is_the_members_error(regex: str, fault: str) -> None:
    """The message names the cost and the bound; the group is not made."""
    answer = Broker().heartbeat("m1", regex)

    assert answer.error_code is ErrorCode.INVALID_REGULAR_EXPRESSION
    assert answer.error_message is not None
    assert answer.error_message.endswith(f"is not a valid regular expression: {fault}.")


@pytest.mark.parametrize(
    "regex",
    [
        DEAR,
        "|".join(f"team{index % 7}.orders-{index * 7919 % 100_003:05}" for index in range(500)),
        r"\pL+-[\p{Nd}]{4}",
    ],
)
def test_expression_within_the_budget_is_resolved(regex: str) -> None:
    """Long repetitions and hundreds of names are within it."""
    assert not isinstance(compiled(regex), str)
    assert Broker().heartbeat("m1", regex).error_code is ErrorCode.NONE


def test_dear_expression_is_resolved_in_slices() -> None:
    """Others are answered between two slices; the topics are found with the last one."""
    broker = Broker()
    broker.heartbeat("m1", DEAR)
    broker.coordinator.expire(broker.now_ms)
    assert broker.has_work

    assert broker.heartbeat("m2", DEAR).error_code is ErrorCode.NONE
    assert broker.has_work
    assert broker.work() > 50
    found = broker.heartbeat("m3", DEAR).assignment
    assert found is not None
    assert sum(len(topic.partitions) for topic in found.topic_partitions) > 0


def test_second_resolution_of_a_group_waits_for_the_first() -> None:
    """A heartbeat during a resolution schedules no other, so that it costs no further slice."""
    counts = []
    for member_count in (1, 9):
        broker = Broker()
        for index in range(member_count):
            broker.heartbeat(f"m{index}", DEAR)
        counts.append(broker.work())

    assert counts[0] == counts[1]


def test_unloaded_partition_drops_its_resolutions() -> None:
    """Nothing is left to do, and nothing is written, once another broker leads the group."""
    broker = Broker()
    broker.heartbeat("m1", DEAR)
    broker.coordinator.expire(broker.now_ms)
    broker.harness.resign()

    assert not broker.has_work
