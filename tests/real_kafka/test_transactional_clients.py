"""Transactions of real clients: Java's see what a real broker shows them, librdkafka's work."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from coordinator_sim_conformance.real_kafka import kafka
from tests.unit.cli.test_serve import serving

pytestmark = pytest.mark.real_kafka

SOURCE = Path(__file__).parents[2] / "conformance" / "real_kafka" / "TransactionalClient.java"
SWEEP = "transaction.abort.timed.out.transaction.cleanup.interval.ms"
PROFILES = {kafka.TOOLS_VERSION: "4.3", kafka.OLD_BROKER_VERSION: "3.9"}
TIMEOUT_S = 10


def java(version: str, bootstrap: str) -> list[str]:
    """What the clients of a release print."""
    done = kafka.run_java(version, str(SOURCE), bootstrap)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout.splitlines()


@pytest.mark.parametrize(
    ("brokers", "version"),
    [
        (3, kafka.TOOLS_VERSION),
        pytest.param(1, kafka.TOOLS_VERSION, marks=pytest.mark.nightly),
        (1, kafka.OLD_BROKER_VERSION),
        pytest.param(3, kafka.OLD_BROKER_VERSION, marks=pytest.mark.nightly),
    ],
)
def test_java_sees_what_it_sees_at_a_real_broker(
    tmp_path: Path, version: str, brokers: int
) -> None:
    """Commits, aborts, offsets, fencing, an operator's verbs and a timeout."""
    properties = {"num.partitions": "2", SWEEP: "200"}
    with kafka.Broker(tmp_path, properties, version) as broker:
        theirs = java(version, broker.bootstrap)
    topics = ("--topics", "out:2,copy:2", "--profile", PROFILES[version])
    settings = ("--port", "0", "--brokers", str(brokers), "--set", f"{SWEEP}=200")
    with serving(*topics, *settings) as ready:
        ours = java(version, ready["bootstrap"])
    assert ours == theirs


@pytest.mark.parametrize("profile", ["4.4", "3.9"])
def test_librdkafka_commits_aborts_and_is_fenced(profile: str) -> None:
    """Records of committed transactions alone are read, offsets go with them."""
    clients = pytest.importorskip("confluent_kafka")
    topics = ("--topics", "in:1,out:2", "--profile", profile)
    with serving("--port", "0", "--brokers", "3", *topics) as ready:
        common = {"bootstrap.servers": ready["bootstrap"]}

        def producer() -> Any:  # noqa: ANN401 - of an untyped package
            made = clients.Producer({**common, "transactional.id": "rd"})
            made.init_transactions(TIMEOUT_S)
            return made

        first = producer()
        transact(first, lambda: first.produce("out", b"1", partition=0), committed=True)
        transact(first, lambda: first.produce("out", b"2", partition=1), committed=False)
        group = {**common, "group.id": "g", "enable.auto.commit": False}
        with_offsets = clients.Consumer(group)
        with_offsets.subscribe(["in"])
        while not with_offsets.assignment():
            with_offsets.poll(0.1)
        offset = clients.TopicPartition("in", 0, 7)
        metadata = with_offsets.consumer_group_metadata()
        transact(
            first,
            lambda: first.send_offsets_to_transaction([offset], metadata, TIMEOUT_S),
            committed=True,
        )
        (found,) = with_offsets.committed([clients.TopicPartition("in", 0)], TIMEOUT_S)
        assert found.offset == 7
        with_offsets.close()

        second = producer()
        with pytest.raises(clients.KafkaException) as fenced:
            transact(first, lambda: first.produce("out", b"3", partition=0), committed=True)
        assert fenced.value.args[0].fatal()
        transact(second, lambda: second.produce("out", b"4", partition=0), committed=True)

        reader = clients.Consumer({**common, "group.id": "r", "isolation.level": "read_committed"})
        reader.assign([clients.TopicPartition("out", index, 0) for index in (0, 1)])
        values = []
        while len(values) < 2:
            message = reader.poll(TIMEOUT_S)
            assert message is not None, values
            assert message.error() is None
            values.append(message.value())
        assert reader.poll(1) is None
        reader.close()
        assert values == [b"1", b"4"]


def transact(
    producer: Any,  # noqa: ANN401 - of an untyped package
    act: Callable[[], None],
    *,
    committed: bool,
) -> None:
    """One transaction."""
    producer.begin_transaction()
    act()
    producer.flush(TIMEOUT_S)
    if committed:
        producer.commit_transaction(TIMEOUT_S)
    else:
        producer.abort_transaction(TIMEOUT_S)
