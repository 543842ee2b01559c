"""Requests that take long: others are answered meanwhile, and nothing else is different."""

from collections.abc import Callable, Iterator

import pytest

from coordinator_sim.broker.cluster import Cluster
from coordinator_sim.broker.connection import Connection
from coordinator_sim.broker.contract import Instants
from coordinator_sim.broker.settings import ClusterSettings, Endpoint
from coordinator_sim.kafka.api_keys import ApiKey
from coordinator_sim.kafka.errors import ErrorCode
from coordinator_sim.log.format.compression import Compression
from coordinator_sim.messages.codec.frames import RequestHeader, encode_request
from coordinator_sim.messages.heartbeat import HeartbeatRequest
from coordinator_sim.messages.metadata import MetadataRequest
from coordinator_sim.messages.schema import ZERO_UUID
from coordinator_sim_conformance.field_frames import Fields, read_response_frame, request_frame
from tests.unit.broker.data_world import partition_of
from tests.unit.broker.fields_client import START, FieldsClient
from tests.unit.log.test_large_batches import NO_KEY, batch

NOW = Instants(1_700_000_000_000, 1_700_000_000_000)
MANY = 60_000
BOMB = batch(NO_KEY * MANY, MANY, Compression.ZSTD)
VERSION = 9


class Client:
    """A connection that remembers who was answered, in a list that all share."""

    def __init__(self, cluster: Cluster, name: str, answered: list[tuple[str, bytes]]) -> None:
        self._name = name
        self._answered = answered
        self.ended: list[str] = []
        self.connection = Connection(
            cluster,
            1,
            number=len(name) + ord(name[-1]),
            listener="PLAINTEXT",
            client_host="/127.0.0.1",
            output=self,
        )

    def write(self, data: bytes) -> None:
        """As `Output.write`."""
        self._answered.append((self._name, data[4:]))

    def close(self, reason: str) -> None:
        """As `Output.close`."""
        self.ended.append(reason)

    def produce(self, *records: bytes, acks: int = 1) -> None:
        """Send one Produce, to a partition each."""
        partitions = [{"index": index, "records": each} for index, each in enumerate(records)]
        fields: Fields = {
            "transactionalId": None,
            "acks": acks,
            "timeoutMs": 1_000,
            "topicData": [{"name": "t", "partitionData": partitions}],
        }
        header = RequestHeader(api_key=ApiKey.PRODUCE, api_version=VERSION, correlation_id=0)
        self.connection.received(request_frame(header, fields), NOW)

    def beat(self) -> None:
        """Send a Heartbeat."""
        beat = HeartbeatRequest(group_id="g", generation_id=1, member_id="m")
        self.connection.received(encode_request(beat, 3, correlation_id=0, client_id="c"), NOW)


class World:
    """A cluster of two brokers, a topic of two partitions, and clients."""

    def __init__(self) -> None:
        self.cluster = Cluster(
            ClusterSettings(broker_ids=(1, 2)), endpoint=lambda _id, _name: Endpoint("h", 1)
        )
        self.cluster.topics.create("t", ((1, 2), (1, 2)), NOW)
        self.answered: list[tuple[str, bytes]] = []

    def client(self, name: str) -> Client:
        """A client of broker 1."""
        return Client(self.cluster, name, self.answered)

    def slices(self) -> Iterator[int]:
        """Work until nothing is left, slice by slice."""
        count = 0
        while self.cluster.has_work:
            self.cluster.work(NOW)
            count += 1
            yield count

    def names(self) -> list[str]:
        """Who was answered, in order."""
        return [name for name, _ in self.answered]

    def told(self, index: int) -> Fields:
        """What a Produce was told."""
        return partition_of(
            read_response_frame(ApiKey.PRODUCE, VERSION, self.answered[index][1])[1]
        )

    def end_offset(self, partition: int = 0) -> int:
        """The end offset of a partition's log."""
        log = self.cluster.logs.log_of("t", partition)
        assert log is not None
        return log.end_offset


@pytest.fixture
def world() -> World:
    """See `World`."""
    return World()


def test_others_are_answered_while_a_bomb_is_looked_at(world: World) -> None:
    """A heartbeat is answered at once; the bomb when it is through, and it is in the log then."""
    producer, member = world.client("producer"), world.client("member")
    producer.produce(BOMB)
    assert world.answered == []
    for _ in world.slices():
        if len(world.answered) < 3:
            member.beat()
    assert world.names() == ["member", "member", "member", "producer"]
    assert world.told(-1)["errorCode"] == ErrorCode.NONE
    assert world.end_offset() == MANY


def test_two_bombs_have_their_turns(world: World) -> None:
    """A small request of a third is never behind more than one slice, and neither starves."""
    first, second = world.client("first"), world.client("second")
    first.produce(BOMB)
    second.produce(b"", BOMB)
    counts = list(world.slices())
    assert world.names() == ["first", "second"]
    assert len(counts) > 10


def test_ordinary_requests_are_answered_in_one_go(world: World) -> None:
    """No driver has to work for them."""
    producer = world.client("producer")
    producer.produce(batch(NO_KEY * 300, 300, Compression.LZ4))
    assert (world.names(), world.cluster.has_work) == (["producer"], False)


def test_requests_of_one_connection_keep_their_order(world: World) -> None:
    """What was sent behind the bomb waits for it, as on a muted channel."""
    producer = world.client("producer")
    producer.produce(BOMB)
    producer.produce(batch(NO_KEY, 1))
    producer.beat()
    assert world.answered == []
    list(world.slices())
    assert world.names() == ["producer"] * 3
    assert [world.told(index)["baseOffset"] for index in (0, 1)] == [0, MANY]


def test_others_append_meanwhile(world: World) -> None:
    """The bomb gets the offsets that follow, whatever the log's end was when it came."""
    producer, other = world.client("producer"), world.client("other")
    producer.produce(BOMB)
    other.produce(batch(NO_KEY, 1))
    list(world.slices())
    assert [world.told(index)["baseOffset"] for index in (0, 1)] == [0, 1]


def test_leadership_that_moved_meanwhile_counts(world: World) -> None:
    """Leadership is checked again before the append: a broker that lost it writes nothing."""
    producer = world.client("producer")
    producer.produce(BOMB)
    world.cluster.leadership.elect("t", 0, 2, NOW)
    list(world.slices())
    assert world.told(0)["errorCode"] == ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert world.end_offset() == 0


def test_a_topic_that_is_gone_meanwhile_counts(world: World) -> None:
    """The client of a topic that was deleted meanwhile is told so."""
    producer = world.client("producer")
    producer.produce(BOMB)
    world.cluster.topics.delete("t", NOW)
    list(world.slices())
    assert world.told(0)["errorCode"] == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


@pytest.mark.parametrize("acks", [0, 1])
def test_a_client_that_leaves_gets_no_answer(world: World, acks: int) -> None:
    """What it sent was received, and is finished, as at a broker."""
    producer = world.client("producer")
    producer.produce(BOMB, acks=acks)
    producer.connection.closed()
    list(world.slices())
    assert (world.answered, producer.ended, world.end_offset()) == ([], [], MANY)


def test_a_bug_in_a_later_slice_ends_one_connection(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The driver hears of it, and the others go on."""
    producer, other = world.client("producer"), world.client("other")
    producer.produce(BOMB)
    other.produce(b"", BOMB)

    def fail(*_: object) -> None:
        raise KeyError("a bug")

    with monkeypatch.context() as patch:
        patch.setattr("coordinator_sim.log.format.record_scan.RecordScan._look_at_whole", fail)
        with pytest.raises(KeyError):
            world.cluster.work(NOW)
    assert len(producer.ended) == 1
    list(world.slices())
    assert world.names() == ["other"]


def test_requests_behind_a_waiting_one_have_their_turns(world: World) -> None:
    """Of a hundred that waited some are answered at once, then others have their turn."""
    patient, member = world.client("patient"), world.client("member")
    topics = [{"topic": "t", "partitions": [{"partition": 0, "partitionMaxBytes": 9}]}]
    fetch: Fields = {"maxWaitMs": 500, "minBytes": 1, "topics": topics}
    header = RequestHeader(api_key=ApiKey.FETCH, api_version=VERSION, correlation_id=0)
    patient.connection.received(request_frame(header, fetch), NOW)
    for _ in range(100):
        patient.beat()
    assert world.answered == []
    later = Instants(NOW.group_ms + 500, NOW.wall_ms + 500)
    world.cluster.expire(later)
    first = len(world.answered)
    assert 1 < first < 50
    member.beat()
    assert world.names()[first] == "member"
    assert world.cluster.has_work
    for _ in world.slices():
        pass
    assert len(world.answered) == 102


def _ask(client: Client, api: ApiKey, version: int, fields: Fields) -> None:
    header = RequestHeader(api_key=api, api_version=version, correlation_id=0)
    client.connection.received(request_frame(header, fields), NOW)


def test_others_are_answered_while_many_topics_are_deleted(world: World) -> None:
    """A topic that another client deletes meanwhile is told as unknown."""
    names = [f"d{number}" for number in range(40)]
    for name in names:
        world.cluster.topics.create(name, ((1,),), NOW)
    admin, other = world.client("admin"), world.client("other")
    _ask(admin, ApiKey.DELETE_TOPICS, 5, {"topicNames": names, "timeoutMs": 1_000})
    assert world.answered == []
    _ask(other, ApiKey.DELETE_TOPICS, 5, {"topicNames": ["d39"], "timeoutMs": 1_000})
    for _ in world.slices():
        pass
    assert world.names() == ["other", "admin"]
    _, answer = read_response_frame(ApiKey.DELETE_TOPICS, 5, world.answered[-1][1])
    codes = [each["errorCode"] for each in answer["responses"]]
    assert codes == [ErrorCode.NONE] * 39 + [ErrorCode.UNKNOWN_TOPIC_ID]
    assert not set(names) & set(world.cluster.image.topics)


def test_an_answer_whose_client_is_gone_is_not_written_further(world: World) -> None:
    """Clients that ask for much and close would otherwise cost its memory, however many come."""
    for number in range(60):
        world.cluster.topics.create(f"t{number}", ((1,),) * 800, NOW)
    metadata = MetadataRequest(topics=None)
    frame = encode_request(metadata, 8, correlation_id=0, client_id="c")
    world.client("x").connection.received(frame, NOW)
    needed = len(list(world.slices()))

    gone = world.client("y")
    gone.connection.received(frame, NOW)
    for _ in range(needed - 2):
        world.cluster.work(NOW)
    gone.connection.closed(NOW)
    assert len(list(world.slices())) <= 1
    assert world.names() == ["x"]


# -- Long requests of administrators, in slices: others are answered, and may be faster --------


COUNT = 400
NAMES = [f"topic-{index:03}" for index in range(COUNT)]


def creation(*names: str) -> Fields:
    """A CreateTopics request."""
    topics = [{"name": name, "numPartitions": 1, "replicationFactor": 1} for name in names]
    return {"topics": topics, "timeoutMs": 1_000}


def deletion(*names: str) -> Fields:
    """A DeleteTopics request."""
    topics = [{"name": name, "topicId": ZERO_UUID} for name in names]
    return {"topics": topics, "timeoutMs": 1_000}


def description(*names: str) -> Fields:
    """A DescribeConfigs request."""
    return {"resources": [{"resourceType": 2, "resourceName": name} for name in names]}


def alteration(*names: str) -> Fields:
    """An IncrementalAlterConfigs request."""
    configs = [{"name": "retention.ms", "configOperation": 0, "value": "5000"}]
    return {
        "resources": [
            {"resourceType": 2, "resourceName": name, "configs": configs} for name in names
        ]
    }


def metadata(*names: str) -> Fields:
    """A Metadata request."""
    return {"topics": [{"name": name, "topicId": ZERO_UUID} for name in names]}


def first_partitions(*names: str) -> Fields:
    """A DeleteRecords, DescribeProducers or OffsetForLeaderEpoch request."""
    partitions = [{"partitionIndex": 0, "offset": 0, "partition": 0, "leaderEpoch": 0}]
    topics = [
        {"name": name, "topic": name, "partitions": partitions, "partitionIndexes": [0]}
        for name in names
    ]
    return {"topics": topics, "replicaId": -1}


def finished(client: FieldsClient, api: ApiKey, version: int) -> Fields:
    """The answer to what a client began, worked on to its end."""
    cluster = client.cluster
    while cluster.has_work:
        cluster.work(Instants(START, START))
    (frame,) = client.frames
    return read_response_frame(api, version, frame)[1]


@pytest.mark.parametrize(
    ("api", "version", "request_of"),
    [
        (ApiKey.CREATE_TOPICS, 7, creation),
        (ApiKey.DELETE_TOPICS, 6, deletion),
        (ApiKey.DESCRIBE_CONFIGS, 4, description),
        (ApiKey.INCREMENTAL_ALTER_CONFIGS, 1, alteration),
        (ApiKey.METADATA, 12, metadata),
        (ApiKey.DESCRIBE_TOPIC_PARTITIONS, 0, metadata),
        (ApiKey.DELETE_RECORDS, 2, first_partitions),
        (ApiKey.DESCRIBE_PRODUCERS, 0, first_partitions),
        (ApiKey.OFFSET_FOR_LEADER_EPOCH, 4, first_partitions),
    ],
)
def test_others_are_answered_before_a_long_request_ends(
    cluster: Cluster, api: ApiKey, version: int, request_of: Callable[..., Fields]
) -> None:
    """A request of 400 topics takes several slices."""
    long, short = FieldsClient(cluster, number=1), FieldsClient(cluster, number=2)
    if api is not ApiKey.CREATE_TOPICS:
        long.call(ApiKey.CREATE_TOPICS, 7, creation(*NAMES))
    long.begin(api, version, request_of(*NAMES))
    short.begin(ApiKey.METADATA, 1, {"topics": []})

    assert not long.frames
    assert short.frames
    assert finished(long, api, version)


def test_topic_that_another_creates_meanwhile_exists_already(cluster: Cluster) -> None:
    """The faster request wins the last topic; the long one creates all others."""
    long, short = FieldsClient(cluster, number=1), FieldsClient(cluster, number=2)
    long.begin(ApiKey.CREATE_TOPICS, 7, creation(*NAMES))
    short.begin(ApiKey.CREATE_TOPICS, 7, creation(NAMES[-1]))
    topic_id = cluster.image.topics[NAMES[-1]].topic_id

    *others, last = finished(long, ApiKey.CREATE_TOPICS, 7)["topics"]
    assert {each["errorCode"] for each in others} == {ErrorCode.NONE}
    assert last["errorCode"] == ErrorCode.TOPIC_ALREADY_EXISTS
    assert cluster.image.topics[NAMES[-1]].topic_id == topic_id


def test_topic_that_another_deletes_meanwhile_is_unknown(cluster: Cluster) -> None:
    """The faster request deletes the last topic; one that is created anew is left alone."""
    long, short = FieldsClient(cluster, number=1), FieldsClient(cluster, number=2)
    short.call(ApiKey.CREATE_TOPICS, 7, creation(*NAMES))
    long.begin(ApiKey.DELETE_TOPICS, 6, deletion(*NAMES))
    short.begin(ApiKey.DELETE_TOPICS, 6, deletion(NAMES[-1]))
    short.begin(ApiKey.CREATE_TOPICS, 7, creation(NAMES[-1]))

    *others, last = finished(long, ApiKey.DELETE_TOPICS, 6)["responses"]
    assert {each["errorCode"] for each in others} == {ErrorCode.NONE}
    assert last["errorCode"] == ErrorCode.UNKNOWN_TOPIC_ID
    assert list(cluster.image.topics) == ["__consumer_offsets", NAMES[-1]]
