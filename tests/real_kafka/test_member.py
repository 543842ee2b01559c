"""Our member, a Java consumer and librdkafka in one group on real brokers."""

import json
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer
from confluent_kafka.admin import AdminClient, NewTopic

from coordinator_sim_conformance.real_kafka.kafka import (
    BROKER_VERSION,
    OLD_BROKER_VERSION,
    TOOLS_VERSION,
    Broker,
    java_command,
)

pytestmark = pytest.mark.real_kafka

AIOKAFKA = """
import asyncio, json, sys
from aiokafka import AIOKafkaConsumer
from aiokafka.coordinator.assignors.range import RangePartitionAssignor

async def main():
    consumer = AIOKafkaConsumer(
        "orders", bootstrap_servers=sys.argv[1], group_id="g", session_timeout_ms=3000,
        heartbeat_interval_ms=300, partition_assignment_strategy=(RangePartitionAssignor,),
    )
    await consumer.start()
    while True:
        await consumer.getmany(timeout_ms=200)
        print(json.dumps({"owned": len(consumer.assignment())}), flush=True)

asyncio.run(main())
"""
KAFKA_PYTHON = """
import json, sys
from kafka import KafkaConsumer
from kafka.coordinator.assignors.range import RangePartitionAssignor

consumer = KafkaConsumer(
    "orders", bootstrap_servers=sys.argv[1], group_id="g", session_timeout_ms=3000,
    heartbeat_interval_ms=300, partition_assignment_strategy=(RangePartitionAssignor,),
)
while True:
    consumer.poll(200)
    print(json.dumps({"owned": len(consumer.assignment())}), flush=True)
"""
PARTITIONS = 4
SETTINGS = {"group.min.session.timeout.ms": "1000", "group.initial.rebalance.delay.ms": "500"}
SESSION_MS = 3000
DEADLINE_S = 30


class Lines:
    """A process that prints one JSON object a line."""

    def __init__(self, command: list[str], log: Path) -> None:
        self._log = log
        with log.open("wb") as out:
            self.process = subprocess.Popen(
                command, stdout=out, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL
            )

    @property
    def rows(self) -> list[dict[str, object]]:
        """What it has printed by now."""
        lines = self._log.read_text(encoding="utf-8").splitlines()
        return [json.loads(line) for line in lines if line.startswith("{") and line[-1] == "}"]

    def end(self, number: int) -> int:
        """Send a signal and wait; the exit code."""
        self.process.send_signal(number)
        return self.process.wait(DEADLINE_S)


def our_member(
    broker: Broker, folder: Path, name: str = "ours", *more: str, pattern: str = ""
) -> Lines:
    """Our member, started; of `orders`, or of a pattern."""
    topics = ("--pattern", pattern) if pattern else ("--topics", "orders")
    options = (
        *("--bootstrap", broker.bootstrap, "--group", "g", *topics, "--json"),
        *("--client-id", name, "--protocol-log", str(folder / f"{name}.frames")),
        *("--set", f"session.timeout.ms={SESSION_MS}", "--set", "heartbeat.interval.ms=300"),
        *("--set", "auto.commit.interval.ms=200"),
        *("--set", "auto.offset.reset=earliest"),
    )
    command = [sys.executable, "-m", "coordinator_sim", "member", *options, *more]
    return Lines(command, folder / f"{name}.jsonl")


def java_member(broker: Broker, folder: Path) -> Lines:
    """A Java consumer of the classic protocol, started."""
    settings = folder / "java.properties"
    settings.write_text("heartbeat.interval.ms=300\n", encoding="utf-8")
    options = (
        *("--bootstrap-server", broker.bootstrap, "--group-id", "g", "--topic", "orders"),
        *("--session-timeout", str(SESSION_MS), "--group-protocol", "classic"),
        *("--assignment-strategy", "org.apache.kafka.clients.consumer.RangeAssignor"),
        *("--reset-policy", "earliest", "--command-config", str(settings)),
    )
    tool = "org.apache.kafka.tools.VerifiableConsumer"
    return Lines(java_command(TOOLS_VERSION, tool, *options), folder / "java.jsonl")


def owned_by_ours(member: Lines) -> int:
    """How many partitions it owns after the newest assignment."""
    owned = 0
    for row in member.rows:
        if row["event"] == "ASSIGNED":
            owned = len(row["owned"])  # type: ignore[arg-type] # a list of names
        elif row["event"] in ("REVOKED", "LOST"):
            owned -= len(row["partitions"])  # type: ignore[arg-type] # as above
    return owned


def owned_by_java(member: Lines) -> int:
    """How many partitions it owns after the newest assignment."""
    owned = 0
    for row in member.rows:
        if row["name"] == "partitions_assigned":
            owned = len(row["partitions"])  # type: ignore[arg-type] # a list
        elif row["name"] == "partitions_revoked":
            owned = 0
    return owned


def consumed_by_ours(member: Lines) -> int:
    """How many records it consumed."""
    return sum(int(row["count"]) for row in member.rows if row["event"] == "CONSUMED")  # type: ignore[call-overload] # a number


def consumed_by_java(member: Lines) -> int:
    """How many records it consumed."""
    rows = [row for row in member.rows if row["name"] == "records_consumed"]
    return sum(int(row["count"]) for row in rows)  # type: ignore[call-overload] # a number


def await_true(condition: Callable[[], bool], what: str) -> None:
    """Wait for something that takes a rebalance or two."""
    deadline_s = time.monotonic() + DEADLINE_S
    while not condition():
        assert time.monotonic() < deadline_s, what
        time.sleep(0.1)


def produce(broker: Broker, count: int) -> None:
    """Write so many records to every partition."""
    producer = Producer({"bootstrap.servers": broker.bootstrap, "log_level": 0})
    for number in range(count * PARTITIONS):
        producer.produce("orders", str(number).encode(), partition=number % PARTITIONS)
    assert producer.flush(DEADLINE_S) == 0


@pytest.fixture(
    params=[BROKER_VERSION, pytest.param(OLD_BROKER_VERSION, marks=pytest.mark.nightly)]
)
def broker(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Broker]:
    """A real broker of two generations, with one topic."""
    with Broker(tmp_path / "broker", SETTINGS, version=request.param) as running:
        admin = AdminClient({"bootstrap.servers": running.bootstrap})
        for done in admin.create_topics([NewTopic("orders", PARTITIONS, 1)]).values():
            done.result()
        yield running


def test_our_member_shares_a_group_with_java_and_librdkafka(broker: Broker, tmp_path: Path) -> None:
    """All get partitions, each record is consumed once, and who is killed loses its work."""
    ours, java = our_member(broker, tmp_path), java_member(broker, tmp_path)
    try:
        await_true(
            lambda: (owned_by_ours(ours), owned_by_java(java)) == (2, 2), "two and two partitions"
        )
        produce(broker, 10)
        await_true(
            lambda: (consumed_by_ours(ours), consumed_by_java(java)) == (20, 20),
            "twenty records each",
        )

        java.end(signal.SIGKILL)
        await_true(lambda: owned_by_ours(ours) == PARTITIONS, "the dead consumer's partitions")
        produce(broker, 10)
        await_true(lambda: consumed_by_ours(ours) == 60, "all new records, none twice")

        check_librdkafka_takes_over(broker, ours)
    finally:
        for each in (ours, java):
            each.process.kill()
            each.process.wait()
    frames = [json.loads(line) for line in (tmp_path / "ours.frames").read_text().splitlines()]
    assert {frame["dir"] for frame in frames} == {"req", "resp"}


def check_librdkafka_takes_over(broker: Broker, ours: Lines) -> None:
    """The third client joins, shares, and gets everything when our member is killed."""
    consumer = Consumer(
        {
            "bootstrap.servers": broker.bootstrap,
            "log_level": 0,
            "group.id": "g",
            "session.timeout.ms": SESSION_MS,
            "heartbeat.interval.ms": 300,
            "partition.assignment.strategy": "range",
            "auto.offset.reset": "earliest",
        }
    )
    consumer.subscribe(["orders"])
    seen: Counter[tuple[int, int]] = Counter()

    def read() -> None:
        for message in consumer.consume(100, 0.1):
            if message.error() is None:
                seen[message.partition(), message.offset()] += 1

    def shares() -> bool:
        read()
        return owned_by_ours(ours) == len(consumer.assignment()) == PARTITIONS // 2

    def has(count: int) -> Callable[[], bool]:
        def enough() -> bool:
            read()
            return seen.total() == count

        return enough

    await_true(shares, "two partitions for librdkafka")
    produce(broker, 10)
    await_true(has(20), "half of the new records")
    await_true(lambda: consumed_by_ours(ours) == 80, "the other half")
    time.sleep(1)  # for the commit of what was consumed
    ours.end(signal.SIGKILL)
    produce(broker, 10)
    await_true(has(60), "all records after our member's death")
    assert set(seen.values()) == {1}
    consumer.close()


def test_our_member_leaves_at_once_when_told(broker: Broker, tmp_path: Path) -> None:
    """SIGTERM ends with LeaveGroup, so that the next member does not wait for a session."""
    first, second = our_member(broker, tmp_path, "a"), our_member(broker, tmp_path, "b")
    try:
        await_true(lambda: owned_by_ours(first) == owned_by_ours(second) == 2, "both have two")
        assert first.end(signal.SIGTERM) == 0
        assert first.rows[-1]["event"] == "LEFT"
        left_ms = int(first.rows[-1]["ts_ms"])  # type: ignore[call-overload] # a number
        await_true(lambda: owned_by_ours(second) == PARTITIONS, "all four")
        taken_ms = int(second.rows[-1]["ts_ms"])  # type: ignore[call-overload] # a number
        assert taken_ms - left_ms < SESSION_MS
    finally:
        for each in (first, second):
            each.process.kill()
            each.process.wait()


def test_a_second_process_of_a_static_member_ends_the_first(broker: Broker, tmp_path: Path) -> None:
    """The first is fenced and ends with exit code 1; the second has its partitions at once."""
    static = ("--instance-id", "i")
    first = our_member(broker, tmp_path, "a", *static)
    second = None
    try:
        await_true(lambda: owned_by_ours(first) == PARTITIONS, "all four")
        second = our_member(broker, tmp_path, "b", *static)
        assert first.process.wait(DEADLINE_S) == 1
        failed = [row["error"] for row in first.rows if row["event"] == "FAILED"]
        assert failed == ["FencedInstanceIdException"]
        assert owned_by_ours(second) == PARTITIONS
        assert second.end(signal.SIGINT) == 0
        assert "LEFT" not in [row["event"] for row in second.rows]
    finally:
        for each in (first, second):
            if each is not None:
                each.process.kill()
                each.process.wait()


def test_cooperative_members_give_up_only_what_moves(broker: Broker, tmp_path: Path) -> None:
    """The other gets half; our member keeps the other half through both rebalances."""
    ours = our_member(broker, tmp_path, "ours", "--assignor", "cooperative-sticky")
    consumer = Consumer(
        {
            "bootstrap.servers": broker.bootstrap,
            "log_level": 0,
            "group.id": "g",
            "session.timeout.ms": SESSION_MS,
            "heartbeat.interval.ms": 300,
            "partition.assignment.strategy": "cooperative-sticky",
        }
    )
    try:
        await_true(lambda: owned_by_ours(ours) == PARTITIONS, "all four")
        consumer.subscribe(["orders"])

        def shared() -> bool:
            consumer.consume(10, 0.1)
            return len(consumer.assignment()) == PARTITIONS // 2

        await_true(shared, "half for librdkafka")
        revoked = [row for row in ours.rows if row["event"] == "REVOKED"]
        assert [len(row["partitions"]) for row in revoked] == [PARTITIONS // 2]  # type: ignore[arg-type] # a list
        consumer.close()
        await_true(lambda: owned_by_ours(ours) == PARTITIONS, "all four again")
    finally:
        ours.process.kill()
        ours.process.wait()


def test_our_member_shares_a_group_with_clients_in_python(broker: Broker, tmp_path: Path) -> None:
    """Aiokafka and kafka-python are assigned by us or assign to us; when they die, all is ours."""
    pytest.importorskip("aiokafka")
    pytest.importorskip("kafka")
    ours = our_member(broker, tmp_path)
    others = [
        Lines([sys.executable, "-c", script, broker.bootstrap], tmp_path / name)
        for name, script in (("aiokafka", AIOKAFKA), ("kafka-python", KAFKA_PYTHON))
    ]

    def shared() -> bool:
        owned = [rows[-1]["owned"] if (rows := other.rows) else 0 for other in others]
        return sorted([*owned, owned_by_ours(ours)]) == [1, 1, 2]  # type: ignore[list-item] # numbers

    try:
        await_true(shared, "one, one and two partitions")
        for other in others:
            other.end(signal.SIGKILL)
        await_true(lambda: owned_by_ours(ours) == PARTITIONS, "all four")
    finally:
        for each in (ours, *others):
            each.process.kill()
            each.process.wait()


def test_our_member_of_a_pattern_finds_new_topics(broker: Broker, tmp_path: Path) -> None:
    """A topic that is created later joins at the next refresh; internal ones never do."""
    often = ("--set", "metadata.max.age.ms=500")
    ours = our_member(broker, tmp_path, "ours", *often, pattern=".*")
    try:
        await_true(lambda: owned_by_ours(ours) == PARTITIONS, "all four")
        admin = AdminClient({"bootstrap.servers": broker.bootstrap})
        for done in admin.create_topics([NewTopic("later", 2, 1)]).values():
            done.result()
        await_true(lambda: owned_by_ours(ours) == PARTITIONS + 2, "those of the new topic")
        names = {name for row in ours.rows for name in row.get("partitions", ())}  # type: ignore[attr-defined] # a list
        assert not [name for name in names if name.startswith("__")]
        assert ours.end(signal.SIGTERM) == 0
    finally:
        ours.process.kill()
        ours.process.wait()
