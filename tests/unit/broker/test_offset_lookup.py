"""ListOffsets, OffsetForLeaderEpoch, DeleteRecords, DescribeLogDirs and DescribeProducers."""

from typing import Any

import pytest

from coordinator_sim.broker.metadata.changes import ConfigsChanged, TopicCreated
from coordinator_sim.broker.records.describe_logs import LogVolume
from coordinator_sim.broker.records.families import DataSettings
from coordinator_sim.broker.security.authorizer import Acl, AclAuthorizer, Operation, ResourceType
from coordinator_sim.kafka.api_keys import ApiKey
from coordinator_sim.kafka.errors import ErrorCode
from coordinator_sim_conformance.field_frames import Fields
from tests.unit.broker.data_world import START_MS, DataWorld, batch_of, partition_of


@pytest.fixture
def world() -> DataWorld:
    """Two brokers and a topic; partition 0 has five records, the first epoch ends after three."""
    world = DataWorld()
    world.produce(batch_of(b"a", b"b", b"c"))
    world.elect(1)
    world.produce(batch_of(b"d", b"e"))
    return world


def _listed(
    world: DataWorld,
    timestamp_ms: int,
    version: int = 11,
    **fields: Any,  # noqa: ANN401 - fields of any type
) -> Fields:
    """What ListOffsets answers of partition 0."""
    terms: Fields = {"partitionIndex": fields.pop("partition", 0), "timestamp": timestamp_ms}
    if version >= 4:
        terms["currentLeaderEpoch"] = fields.pop("epoch", -1)
    if version == 0:
        terms["maxNumOffsets"] = fields.pop("count", 10)
    topics = [{"name": "t", "partitions": [terms]}]
    request = {"replicaId": -1, "topics": topics, **fields}
    _, response = world.call(ApiKey.LIST_OFFSETS, version, request)
    assert response is not None
    return partition_of(response)


@pytest.mark.parametrize(
    ("timestamp_ms", "found"),
    [
        (-1, (-1, 5, 1)),
        (-2, (-1, 0, 0)),
        (-3, (START_MS + 2, 2, 0)),
        (-4, (-1, 0, 0)),
        (-5, (-1, -1, -1)),
        (-6, (-1, -1, -1)),
        (START_MS, (START_MS, 0, 0)),
        (START_MS + 1, (START_MS + 1, 1, 0)),
        (START_MS + 9, (-1, -1, -1)),
    ],
)
def test_offsets_are_found_by_time_and_by_position(
    world: DataWorld, timestamp_ms: int, found: tuple[int, int, int]
) -> None:
    """Timestamp, offset and leader epoch; -1 where there is none."""
    answer = _listed(world, timestamp_ms)
    assert answer["errorCode"] == 0
    assert (answer["timestamp"], answer["offset"], answer["leaderEpoch"]) == found


@pytest.mark.parametrize(("timestamp_ms", "since"), [(-3, 7), (-4, 8), (-5, 9), (-6, 11)])
def test_positions_are_known_from_their_version_on(
    world: DataWorld, timestamp_ms: int, since: int
) -> None:
    """A version before is told that it does not know the position."""
    error = _listed(world, timestamp_ms, since - 1)["errorCode"]
    assert error == ErrorCode.UNSUPPORTED_VERSION
    assert _listed(world, timestamp_ms, since)["errorCode"] == 0
    assert _listed(world, -7)["errorCode"] == ErrorCode.UNSUPPORTED_VERSION


def test_version_0_gets_the_beginnings_of_segments(world: DataWorld) -> None:
    """The newest first, with the end of the log before them."""
    assert _listed(world, -1, 0)["oldStyleOffsets"] == [5, 0]
    assert _listed(world, -1, 0, count=1)["oldStyleOffsets"] == [5]
    assert _listed(world, -2, 0)["oldStyleOffsets"] == [0]
    world.log().hold_high_watermark(5)
    world.produce(batch_of(b"f"))
    assert _listed(world, -1, 0)["oldStyleOffsets"] == [5, 0]


@pytest.mark.parametrize(
    ("fields", "error"),
    [
        ({"partition": 9}, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        ({"partition": 1}, ErrorCode.NOT_LEADER_OR_FOLLOWER),
        ({"epoch": 0}, ErrorCode.FENCED_LEADER_EPOCH),
        ({"epoch": 2}, ErrorCode.UNKNOWN_LEADER_EPOCH),
    ],
)
def test_offsets_of_a_partition_that_is_not_led_are_refused(
    world: DataWorld, fields: dict[str, Any], error: ErrorCode
) -> None:
    """Unknown, led by another broker, or at another epoch."""
    assert _listed(world, -1, **fields)["errorCode"] == error


def test_a_partition_named_twice_is_an_invalid_request(world: DataWorld) -> None:
    """ListOffsets answers a partition named twice once, with INVALID_REQUEST."""
    terms = [{"partitionIndex": 0, "timestamp": each} for each in (-1, -2)]
    request = {"replicaId": -1, "topics": [{"name": "t", "partitions": terms}]}
    _, response = world.call(ApiKey.LIST_OFFSETS, 5, request)
    assert response is not None
    assert partition_of(response)["errorCode"] == ErrorCode.INVALID_REQUEST


def test_a_new_leader_whose_high_watermark_lags_knows_no_end(world: DataWorld) -> None:
    """OFFSET_NOT_AVAILABLE, which versions below 5 are told in older words."""
    world.log().hold_high_watermark(5)
    world.produce(batch_of(b"f"))
    world.elect(1)
    assert _listed(world, -1, 5)["errorCode"] == ErrorCode.OFFSET_NOT_AVAILABLE
    assert _listed(world, -1, 4)["errorCode"] == ErrorCode.LEADER_NOT_AVAILABLE
    assert _listed(world, -2, 5)["offset"] == 0


def test_a_topic_that_may_not_be_described_comes_last(world: DataWorld) -> None:
    """Partitions of a topic that the user may not describe are refused, after all others."""
    rule = Acl(
        operation=Operation.READ, resource_type=ResourceType.TOPIC, name="t", principal="User:*"
    )
    world = DataWorld(authorizer=AclAuthorizer([rule]))
    topics = [
        {"name": name, "partitions": [{"partitionIndex": 0, "timestamp": -1}]}
        for name in ("secret", "t")
    ]
    _, response = world.call(ApiKey.LIST_OFFSETS, 5, {"replicaId": -1, "topics": topics})
    assert response is not None
    told = [(each["name"], each["partitions"][0]["errorCode"]) for each in response["topics"]]
    assert told == [("t", 0), ("secret", ErrorCode.TOPIC_AUTHORIZATION_FAILED)]


# -- epochs ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("epoch", "end"), [(0, (0, 3)), (1, (1, 5)), (2, (-1, -1)), (-1, (-1, -1))]
)
def test_the_end_of_an_epoch_is_where_the_next_begins(
    world: DataWorld, epoch: int, end: tuple[int, int]
) -> None:
    """The present epoch ends at the log's end; one that never was has no end."""
    terms = {"partition": 0, "currentLeaderEpoch": 1, "leaderEpoch": epoch}
    request = {"replicaId": -1, "topics": [{"topic": "t", "partitions": [terms]}]}
    _, response = world.call(ApiKey.OFFSET_FOR_LEADER_EPOCH, 4, request)
    assert response is not None
    answer = partition_of(response)
    assert (answer["leaderEpoch"], answer["endOffset"]) == end


def test_epochs_of_another_leader_or_time_are_refused(world: DataWorld) -> None:
    """The same errors as of a fetch."""
    terms = [
        {"partition": 0, "currentLeaderEpoch": 0, "leaderEpoch": 0},
        {"partition": 1, "currentLeaderEpoch": 0, "leaderEpoch": 0},
        {"partition": 9, "currentLeaderEpoch": 0, "leaderEpoch": 0},
    ]
    request = {"replicaId": -1, "topics": [{"topic": "t", "partitions": terms}]}
    _, response = world.call(ApiKey.OFFSET_FOR_LEADER_EPOCH, 4, request)
    assert response is not None
    assert [each["errorCode"] for each in response["topics"][0]["partitions"]] == [
        ErrorCode.FENCED_LEADER_EPOCH,
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ]


# -- deleting records ------------------------------------------------------------------------


def _deleted(world: DataWorld, offset: int, partition: int = 0, topic: str = "t") -> Fields:
    terms = [{"partitionIndex": partition, "offset": offset}]
    request = {"topics": [{"name": topic, "partitions": terms}], "timeoutMs": 1_000}
    _, response = world.call(ApiKey.DELETE_RECORDS, 2, request)
    assert response is not None
    return partition_of(response)


def test_deleted_records_are_out_of_range(world: DataWorld) -> None:
    """The log begins later, never earlier again; -1 deletes all."""
    assert _deleted(world, 2) == {"partitionIndex": 0, "lowWatermark": 2, "errorCode": 0}
    assert _deleted(world, 1)["lowWatermark"] == 2
    assert world.fetched(1)["errorCode"] == ErrorCode.OFFSET_OUT_OF_RANGE
    assert world.fetched(2)["logStartOffset"] == 2
    assert _deleted(world, -1)["lowWatermark"] == 5


@pytest.mark.parametrize(
    ("offset", "partition", "topic", "error"),
    [
        (6, 0, "t", ErrorCode.OFFSET_OUT_OF_RANGE),
        (-2, 0, "t", ErrorCode.OFFSET_OUT_OF_RANGE),
        (1, 1, "t", ErrorCode.NOT_LEADER_OR_FOLLOWER),
        (1, 9, "t", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        (1, 0, "__consumer_offsets", ErrorCode.INVALID_TOPIC_EXCEPTION),
        (1, 0, "compacted", ErrorCode.POLICY_VIOLATION),
    ],
)
def test_records_that_may_not_be_deleted_stay(
    world: DataWorld, offset: int, partition: int, topic: str, error: ErrorCode
) -> None:
    """Beyond the end, elsewhere, internal, or of a topic that only compacts."""
    world.image.apply(TopicCreated("__consumer_offsets", b"\x02" * 16, ((1,),)))
    world.image.apply(TopicCreated("compacted", b"\x03" * 16, ((1,),)))
    world.image.apply(ConfigsChanged(2, "compacted", {"cleanup.policy": "compact"}))
    answer = _deleted(world, offset, partition, topic)
    assert (answer["errorCode"], answer["lowWatermark"]) == (error, -1)


# -- describing ------------------------------------------------------------------------------


def test_log_dirs_tell_the_sizes_of_all_replicas() -> None:
    """A broker tells of what it hosts, led or not, and of the volume."""
    volume = LogVolume("/data", 1_000, 900)
    world = DataWorld(settings=DataSettings(volume=lambda _: volume))
    world.produce(batch_of(b"a"))
    _, response = world.call(ApiKey.DESCRIBE_LOG_DIRS, 4, {"topics": None}, broker_id=2)
    assert response is not None
    (result,) = response["results"]
    assert (result["logDir"], result["totalBytes"], result["usableBytes"]) == ("/data", 1_000, 900)
    sizes = [each["partitionSize"] for each in result["topics"][0]["partitions"]]
    assert sizes == [len(batch_of(b"a")), 0]
    asked = {"topics": [{"topic": "t", "partitions": [1, 9]}]}
    _, response = world.call(ApiKey.DESCRIBE_LOG_DIRS, 4, asked)
    assert response is not None
    told = response["results"][0]["topics"][0]["partitions"]
    assert [each["partitionIndex"] for each in told] == [1]


def test_producers_are_described_with_their_open_transactions() -> None:
    """Sequence, time and where the transaction began."""
    world = DataWorld()
    world.produce(
        batch_of(b"a", b"b", producer_id=7, producer_epoch=3, base_sequence=0, transactional=True),
        transactionalId="x",
    )
    request = {"topics": [{"name": "t", "partitionIndexes": [0, 9]}]}
    _, response = world.call(ApiKey.DESCRIBE_PRODUCERS, 0, request)
    assert response is not None
    first, second = response["topics"][0]["partitions"]
    (producer,) = first["activeProducers"]
    assert producer == {
        "producerId": 7,
        "producerEpoch": 3,
        "lastSequence": 1,
        "lastTimestamp": START_MS + 1,
        "coordinatorEpoch": -1,
        "currentTxnStartOffset": 0,
    }
    assert second["errorCode"] == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("", "Topic name is invalid: the empty string is not allowed"),
        ("..", "Topic name is invalid: '..' is not allowed"),
        (
            "a b",
            (
                "Topic name is invalid: 'a b' contains one or more characters other than ASCII "
                "alphanumerics, '.', '_' and '-'"
            ),
        ),
        ("absent", "This server does not host this topic-partition."),
    ],
)
def test_producers_of_a_topic_that_cannot_be_are_refused(name: str, message: str) -> None:
    """The answer says why."""
    request = {"topics": [{"name": name, "partitionIndexes": [0]}]}
    _, response = DataWorld().call(ApiKey.DESCRIBE_PRODUCERS, 0, request)
    assert response is not None
    assert partition_of(response)["errorMessage"] == message
