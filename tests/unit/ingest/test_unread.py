"""Files of Kafka's that hold nothing of a group are named as what they are."""

from pathlib import Path

import pytest

from coordinator_sim.errors import DataError
from coordinator_sim.ingest.importing import Importing, check_told, prepare
from coordinator_sim.trace.events import Event

LOG4J = "[2024-05-06 12:00:01,250] INFO {}\n"
FILES = {
    "%3|1715000000.123|FAIL|till-1#consumer-3| [thrd:b1:9092/1]: b1:9092/1: refused\n": (
        "a librdkafka log without debug lines of groups; set debug=cgrp"
    ),
    "%3|1715000000.123|FAIL|till-1#producer-1| [thrd:b1:9092/1]: b1:9092/1: refused\n": (
        "a librdkafka log of producers, which are in no group"
    ),
    '{"level":"ERROR","logger":"kafkajs","message":"[Connection] Connection timeout"}\n': (
        "a kafkajs log without lines of a consumer"
    ),
    "[sarama] 2024/05/06 12:00:01 client/metadata fetching metadata for all topics\n": (
        "a Sarama log, not read"
    ),
    "[INFO] new group session begun; added: pay[0 1], lost:\n": "a franz-go log",
    "INFO [ShareConsumer clientId=c, groupId=q] Reconciling assignment with local epoch 1\n": (
        "a log of share consumers"
    ),
    "2024/05/06 joined group tills as member m-1 in generation 3\n": "a kafka-go (segmentio) log",
    LOG4J.format("Snapshotting: 0x0 (org.apache.zookeeper.server.ZooKeeperServer)"): (
        "a ZooKeeper log"
    ),
    "[2024-05-06T12:00:01.250+0000][info][gc,start] GC(3) Pause Young\n": "garbage collection",
    LOG4J.format("[Broker id=1] Leader pay-0 (state.change.logger)"): "state-change.log",
    LOG4J.format("[Controller id=1] New leader (kafka.controller.KafkaController)"): (
        "a controller's log"
    ),
    LOG4J.format("Beginning cleaning of log pay-0 (kafka.log.LogCleaner)"): "log-cleaner.log",
    LOG4J.format("Principal = User:a is Allowed (kafka.authorizer.logger)"): (
        "a broker's kafka-authorizer.log"
    ),
    LOG4J.format("stream-thread [t-1] State transition (o.StreamThread)"): "a Kafka Streams log",
    LOG4J.format("[Consumer clientId=c-1, groupId=tills] Cluster ID: x (o.Metadata)"): (
        "a Java consumer's log without lines of a group"
    ),
    LOG4J.format("[Producer clientId=p-1] Cluster ID: x (o.Metadata)"): "a Java producer's log",
    LOG4J.format("Kafka Connect starting (org.apache.kafka.connect.runtime.Connect)"): (
        "a Connect log without lines of the worker's group"
    ),
    "INFO:kafka.conn:connected to b1\n": "a Python client's log without lines",
}


def prepared(tmp_path: Path, text: str) -> Importing:
    """Return an import of a file with this text, none of which is an event."""
    file = tmp_path / "some.log"
    file.write_text(text, encoding="utf-8")
    return prepare([file])


@pytest.mark.parametrize(("text", "what"), FILES.items(), ids=FILES.values())
def test_file_without_groups_is_named(tmp_path: Path, text: str, what: str) -> None:
    """The error says what the file is, and what to do."""
    with pytest.raises(DataError) as failure:
        check_told(prepared(tmp_path, text))

    message = str(failure.value)
    assert message.startswith(f"{tmp_path / 'some.log'} is ")
    assert what in message
    assert any(fix in message for fix in ("set ", "name the broker's", "at INFO"))


def test_file_beside_others_gets_a_note(tmp_path: Path) -> None:
    """Where another file has events, the file that has none is noted, and no error is raised."""
    importing = prepared(tmp_path, next(iter(FILES)))
    (tmp_path / "other.log").write_text("x\n", encoding="utf-8")
    other = prepare([tmp_path / "other.log"]).files[0]
    other.summary.by_event[Event.JOIN_REQ] = 1
    importing.files.append(other)

    check_told(importing)

    assert [one.notes for one in importing.files] == [
        ["a librdkafka log without debug lines of groups; set debug=cgrp."],
        [],
    ]
