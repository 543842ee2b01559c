"""Keys and values of internal topics, against what a worker of Connect 4.3.1 wrote."""

import json
from base64 import b64decode
from pathlib import Path

import pytest
from msgspec import Struct

from coordinator_sim.connect.effects import TargetState, TopicRecord
from coordinator_sim.connect.stores import config_records, offset_store, status_records
from coordinator_sim.connect.stores.config_table import ConfigTable
from coordinator_sim.connect.stores.json_converter import from_json, to_json
from coordinator_sim.errors import DataError
from coordinator_sim.kafka.partitioning import partition_of_key
from coordinator_sim.kafka.resources import ConnectorTaskId


class Recorded(Struct, frozen=True):
    """A record as it was read with a consumer."""

    topic: str
    partition: int
    offset: int
    timestamp_ms: int
    key: str
    value: str | None

    def as_read(self) -> TopicRecord:
        """The record as a log hands it over."""
        return TopicRecord(
            partition=self.partition,
            offset=self.offset,
            key=self.key.encode(),
            value=None if self.value is None else self.value.encode(),
            timestamp_ms=self.timestamp_ms,
        )


_PATH = Path(__file__).parent / "recorded" / "connect-4.3.1-topics.jsonl"
RECORDED = [Recorded(**json.loads(line)) for line in _PATH.read_text(encoding="utf-8").splitlines()]


def of(topic: str) -> list[Recorded]:
    """The records of one topic, tombstones aside."""
    return [record for record in RECORDED if record.topic == topic and record.value is not None]


def written_again(record: Recorded) -> tuple[str, bytes]:
    """Key and value as the modules here write what was read."""
    value = from_json((record.value or "").encode())
    assert isinstance(value, dict)
    match record.key.split("-"):
        case ["connector", *name]:
            return config_records.connector_key("-".join(name)), _properties(value)
        case ["task", *name, number]:
            task = ConnectorTaskId("-".join(name), int(number))
            return config_records.task_key(task), _properties(value)
        case ["commit", *name]:
            count = int(str(value["tasks"]))
            return config_records.commit_tasks_key("-".join(name)), config_records.commit_value(
                count
            )
        case ["target", "state", *name]:
            state = TargetState(value["state.v2"])
            key = config_records.target_state_key("-".join(name))
            return key, config_records.target_state_value(state)
        case ["tasks", "fencing", *name]:
            key = config_records.task_count_record_key("-".join(name))
            count = int(str(value["task-count"]))
            return key, config_records.task_count_record_value(count)
        case ["session", "key"]:
            session_key = config_records.SessionKey(
                b64decode(str(value["key"])),
                str(value["algorithm"]),
                int(str(value["creation-timestamp"])),
            )
            return record.key, config_records.session_key_value(session_key)
        case ["restart", "connector", *name]:
            request = config_records.RestartRequest(
                "-".join(name), bool(value["only-failed"]), bool(value["include-tasks"])
            )
            key = config_records.restart_key(request.connector)
            return key, config_records.restart_value(request)
        case ["logger", "cluster", *name]:
            key = config_records.logger_cluster_key("-".join(name))
            return key, config_records.logger_level_value(str(value["level"]))
    raise AssertionError(record.key)


def _properties(value: dict[str, object]) -> bytes:
    properties = value["properties"]
    assert isinstance(properties, dict)
    return config_records.properties_value(properties)


@pytest.mark.parametrize("record", of("configs"), ids=lambda record: f"{record.offset}")
def test_config_records_are_written_as_by_java(record: Recorded) -> None:
    """Every kind of record of the config topic, byte for byte."""
    assert written_again(record) == (record.key, (record.value or "").encode())


def test_every_kind_of_config_record_was_recorded() -> None:
    """The recording has all eight prefixes, and both target states' tombstones."""
    kinds = {record.key.split("-")[0] for record in of("configs")}
    assert kinds == {
        *("connector", "task", "commit", "target", "tasks", "session", "restart", "logger")
    }


@pytest.mark.parametrize("record", of("status"), ids=lambda record: record.key)
def test_status_records_are_written_as_by_java(record: Recorded) -> None:
    """Statuses of connectors, tasks and topics, byte for byte."""
    data = (record.value or "").encode()
    if record.key.startswith(status_records.TOPIC_STATUS_PREFIX):
        topic = status_records.parse_topic_status(from_json(data))
        assert topic is not None
        assert status_records.topic_status_key(topic.topic, topic.connector) == record.key
        assert status_records.topic_status_value(topic) == data
        return
    subject = status_records.task_of_status_key(record.key) if "task" in record.key else None
    name = record.key.removeprefix(status_records.CONNECTOR_STATUS_PREFIX)
    status = status_records.parse_status(subject or name, from_json(data))
    assert status is not None
    assert status_records.status_key(status.subject) == record.key
    assert status_records.status_value(status) == data


def test_offset_records_are_written_as_by_java() -> None:
    """A list of the connector and its source partition; the offset as it is."""
    (record,) = of("offsets")
    assert offset_store.offset_key("quelle-1", {"filename": "in.txt"}) == record.key.encode()
    assert offset_store.offset_value({"position": 6}) == (record.value or "").encode()
    assert offset_store.source_partition_of(record.key.encode()) == (
        "quelle-1",
        {"filename": "in.txt"},
    )


def test_task_configurations_have_the_order_of_a_hash_map() -> None:
    """A worker puts a task's properties into a HashMap before the leader writes them."""
    for record in of("configs"):
        if record.key.startswith("task-"):
            properties = json.loads(record.value or "")["properties"]
            assert list(config_records.as_hash_map(dict(sorted(properties.items())))) == list(
                properties
            )


def test_the_recorded_config_topic_is_read_as_java_read_it() -> None:
    """The connectors, tasks and states that the recorded worker ended with."""
    table = ConfigTable()
    for record in RECORDED:
        if record.topic == "configs":
            table.read(record.as_read())
    state = table.snapshot()
    assert sorted(state.connectors()) == ["broken", "quelle-1", "sink-a-b"]
    assert state.offset == 1 + max(r.offset for r in RECORDED if r.topic == "configs")
    assert [state.task_count(name) for name in ("broken", "quelle-1", "sink-a-b")] == [1, 1, 3]
    assert state.target_state("sink-a-b") is TargetState.STARTED
    assert state.task_config_generation("sink-a-b") == 2
    assert state.task_count_record("quelle-1") == 1
    assert [state.pending_fencing(name) for name in ("quelle-1", "sink-a-b")] == [False, True]
    assert not state.inconsistent_connectors


@pytest.mark.parametrize(
    ("value", "data"),
    [
        ({"a": "é\x1f\x7f\n"}, '{"a":"é\\u001F\x7f\\n"}'.encode()),
        ({"\\u001f": "\\"}, b'{"\\\\u001f":"\\\\"}'),
        ({"n": None, "b": True, "i": 1}, b'{"n":null,"b":true,"i":1}'),
        ({"a": "😀"}, b'{"a":"\\uD83D\\uDE00"}'),
    ],
)
def test_json_is_written_as_jackson_does(value: dict[str, object], data: bytes) -> None:
    """Capital digits, surrogates as escapes, nothing else escaped; and it reads back."""
    assert to_json(value) == data
    assert from_json(data) == value


@pytest.mark.parametrize(
    ("data", "value"),
    [
        (b"", None),
        (b" \n", None),
        (b'{"a":01,"b":"01"}', {"a": 1, "b": "01"}),
        (b"[00,-007,10,1.05e05]", [0, -7, 10, 1.05e5]),
        (b'{"tasks":2} trailing', {"tasks": 2}),
    ],
)
def test_json_is_read_as_leniently_as_jackson_does(data: bytes, value: object) -> None:
    """Empty input is null, numbers may have leading zeros, and text behind a value is ignored."""
    assert from_json(data) == value


@pytest.mark.parametrize("data", [b"{", b"NaN", b"\xff", b"config"])
def test_what_is_no_json_is_refused(data: bytes) -> None:
    """The owner of the topic then leaves the record out."""
    with pytest.raises(DataError):
        from_json(data)


@pytest.mark.parametrize(
    ("key", "task"),
    [
        ("task-a-b-3", ConnectorTaskId("a-b", 3)),
        ("task-a-+7", ConnectorTaskId("a", 7)),
        ("task-a-1-", ConnectorTaskId("a", 1)),
        ("task-a", None),
        ("task-a-b", None),
        ("task-a-2147483648", None),
        ("task-a-٣", None),
    ],
)
def test_a_task_key_is_read_from_the_right(key: str, task: ConnectorTaskId | None) -> None:
    """The last part is the number, the rest the connector's name."""
    assert config_records.task_of_key(key) == task


def test_keys_go_to_the_partitions_that_javas_producer_chose() -> None:
    """By their murmur2 hash, over the two partitions that the recorded topics had."""
    spread = [record for record in RECORDED if record.topic != "configs"]
    assert len(spread) > 40
    for record in spread:
        assert partition_of_key(record.key.encode(), 2) == record.partition
