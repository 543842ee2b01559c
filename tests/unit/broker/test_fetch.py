"""Fetch without sockets: reading, limits, waiting."""

import time
from typing import Any

import pytest

from coordinator_sim.broker.metadata.changes import TopicCreated, TopicDeleted
from coordinator_sim.broker.records.families import DataSettings
from coordinator_sim.broker.records.fetch_sessions import next_epoch
from coordinator_sim.broker.security.authorizer import Acl, AclAuthorizer, Operation, ResourceType
from coordinator_sim.kafka.api_keys import ApiKey
from coordinator_sim.kafka.errors import ErrorCode
from coordinator_sim.log.log_config import LogConfig
from coordinator_sim.messages.records import EndTransactionMarker
from coordinator_sim_conformance.field_frames import Fields
from tests.unit.broker.data_world import TOPIC_ID, DataWorld, batch_of, partition_of


@pytest.fixture
def world() -> DataWorld:
    """Two brokers and a topic."""
    return DataWorld()


def test_records_come_from_the_batch_that_holds_the_offset(world: DataWorld) -> None:
    """A fetch in the middle of a batch gets all of it; high watermark and start are told."""
    world.produce(batch_of(b"a", b"b"))
    world.produce(batch_of(b"c"))
    answer = world.fetched(1)
    assert answer["errorCode"] == 0
    assert answer["highWatermark"] == answer["lastStableOffset"] == 3
    assert answer["logStartOffset"] == 0
    assert answer["abortedTransactions"] is None
    assert len(answer["records"]) == len(batch_of(b"a", b"b")) + len(batch_of(b"c"))
    assert world.fetched(3)["records"] == b""


@pytest.mark.parametrize(
    ("fields", "error"),
    [
        ({"offset": 2}, ErrorCode.OFFSET_OUT_OF_RANGE),
        ({"partition": 9}, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        ({"epoch": 1}, ErrorCode.UNKNOWN_LEADER_EPOCH),
        ({"version": 13, "topic_id": b"\x01" * 16}, ErrorCode.UNKNOWN_TOPIC_ID),
        ({"partition": 1, "version": 10}, ErrorCode.NOT_LEADER_OR_FOLLOWER),
        ({"replicaId": 7}, ErrorCode.NOT_LEADER_OR_FOLLOWER),
        ({"replicaId": 7, "epoch": 0}, ErrorCode.UNKNOWN_LEADER_EPOCH),
    ],
)
def test_what_cannot_be_fetched_is_refused(
    world: DataWorld, fields: dict[str, Any], error: ErrorCode
) -> None:
    """Errors are told at once, without offsets and with empty records."""
    world.produce(batch_of(b"a"))
    answer = world.fetched(fields.pop("offset", 0), maxWaitMs=500, **fields)
    assert answer["errorCode"] == error
    assert (answer["highWatermark"], answer["logStartOffset"], answer["records"]) == (-1, -1, b"")


def test_an_older_epoch_is_fenced_and_told_the_leader(world: DataWorld) -> None:
    """FENCED_LEADER_EPOCH comes with the leader from version 16 on."""
    world.elect(1)
    _, response = world.fetch(epoch=0, version=16)
    assert response is not None
    answer = partition_of(response)
    assert answer["errorCode"] == ErrorCode.FENCED_LEADER_EPOCH
    assert answer["currentLeader"] == {"leaderId": 1, "leaderEpoch": 1}
    assert [node["nodeId"] for node in response["nodeEndpoints"]] == [1]


def test_consumers_may_read_from_followers_from_version_11_on(world: DataWorld) -> None:
    """Version 10 is sent to the leader, version 11 served by any replica."""
    world.produce(batch_of(b"a"), partition=1, broker_id=2)
    error = world.fetched(partition=1, version=10)["errorCode"]
    assert error == ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert world.fetched(partition=1, version=11)["records"]


def test_a_deleted_and_recreated_topic_is_unknown_by_its_old_id(world: DataWorld) -> None:
    """A topic id is one topic's life."""
    world.image.apply(TopicDeleted("t"))
    world.image.apply(TopicCreated("t", b"\x09" * 16, ((1, 2),)))
    assert world.fetched(version=13)["errorCode"] == ErrorCode.UNKNOWN_TOPIC_ID
    assert world.fetched(version=13, topic_id=b"\x09" * 16)["errorCode"] == 0


def test_a_fetched_epoch_that_ended_before_the_offset_diverges(world: DataWorld) -> None:
    """Version 12 is told where its log parts from the leader's."""
    world.produce(batch_of(b"a", b"b"))
    world.elect(1)
    world.produce(batch_of(b"c"))
    answer = world.fetched(3, last_epoch=0, maxWaitMs=500)
    assert answer["divergingEpoch"] == {"epoch": 0, "endOffset": 2}
    assert (answer["errorCode"], answer["records"]) == (0, b"")
    assert world.fetched(3, last_epoch=1)["divergingEpoch"]["epoch"] == -1
    assert world.fetched(3, last_epoch=7)["errorCode"] == ErrorCode.OFFSET_OUT_OF_RANGE


# -- limits ----------------------------------------------------------------------------------


def test_the_first_batch_comes_even_when_it_is_above_the_limits(world: DataWorld) -> None:
    """A consumer gets past a large batch; a second partition then gets nothing."""
    size = len(batch_of(b"a" * 100))
    for partition, broker_id in ((0, 1), (1, 2)):
        world.produce(batch_of(b"a" * 100), partition=partition, broker_id=broker_id)
        world.produce(batch_of(b"a" * 100), partition=partition, broker_id=broker_id)
    terms = [
        {"partition": each, "fetchOffset": 0, "partitionMaxBytes": 10, "lastFetchedEpoch": -1}
        for each in (0, 1)
    ]
    request = {
        "maxWaitMs": 0,
        "minBytes": 1,
        "maxBytes": 10,
        "topics": [{"topic": "t", "partitions": terms}],
    }
    _, response = world.call(ApiKey.FETCH, 12, request)
    assert response is not None
    sizes = [len(each["records"]) for each in response["responses"][0]["partitions"]]
    assert sizes == [size, 0]


def test_old_versions_get_a_torn_batch_up_to_the_limit() -> None:
    """Before version 3 the limits are hard, and a consumer sees that its limit is too small."""
    world = DataWorld(base=LogConfig(message_format_magic=1))
    world.produce(batch_of(b"a" * 100, magic=1), version=2)
    assert len(world.fetched(version=2, partition_max_bytes=30)["records"]) == 30
    assert len(world.fetched(version=3, partition_max_bytes=30)["records"]) > 100


def test_records_that_must_be_converted_are_not_torn(world: DataWorld) -> None:
    """What an old version cannot read is converted batch by batch."""
    world.produce(batch_of(b"a" * 100))
    assert world.fetched(version=2, partition_max_bytes=30)["records"] == b""
    assert world.fetched(version=2)["records"]


# -- isolation -------------------------------------------------------------------------------


def _produce_in_transaction(world: DataWorld) -> None:
    world.produce(
        batch_of(b"a", producer_id=7, producer_epoch=0, base_sequence=0, transactional=True),
        transactionalId="x",
    )


def _end(world: DataWorld, *, committed: bool) -> None:
    marker = EndTransactionMarker(committed=committed, coordinator_epoch=0)
    world.log().append_marker(7, 0, marker, now_ms=world.now_ms, leader_epoch=0)
    world.apis.touched(("t", 0))


def test_readers_of_committed_records_stop_at_an_open_transaction(world: DataWorld) -> None:
    """READ_COMMITTED ends at the last stable offset, and lists transactions aborted before it."""
    _produce_in_transaction(world)
    answer = world.fetched(isolationLevel=1)
    assert (answer["records"], answer["lastStableOffset"], answer["highWatermark"]) == (b"", 0, 1)
    assert answer["abortedTransactions"] == []
    assert world.fetched()["records"]
    _end(world, committed=False)
    answer = world.fetched(isolationLevel=1)
    assert answer["abortedTransactions"] == [{"producerId": 7, "firstOffset": 0}]
    assert answer["lastStableOffset"] == 2


def test_a_marker_wakes_readers_of_committed_records(world: DataWorld) -> None:
    """What a parked reader may see grows when the transaction ends."""
    _produce_in_transaction(world)
    token, response = world.fetch(isolationLevel=1, maxWaitMs=500)
    assert response is None
    _end(world, committed=True)
    late = world.late(ApiKey.FETCH, 12, token)
    assert late is not None
    assert partition_of(late)["records"]


# -- waiting ---------------------------------------------------------------------------------


def test_a_fetch_waits_for_records(world: DataWorld) -> None:
    """An append of enough bytes answers it, with the records."""
    token, response = world.fetch(maxWaitMs=500)
    assert response is None
    world.produce(batch_of(b"a"))
    late = world.late(ApiKey.FETCH, 12, token)
    assert late is not None
    assert partition_of(late)["highWatermark"] == 1
    assert not world.apis.fetches.purgatory


def test_a_fetch_waits_for_min_bytes_and_no_longer_than_max_wait(world: DataWorld) -> None:
    """Too few bytes leave it waiting; when its time is over it gets what there is."""
    token, _ = world.fetch(maxWaitMs=500, minBytes=10_000)
    world.produce(batch_of(b"a"))
    assert not world.answers
    assert world.scheduler.wall_ms == world.now_ms + 500
    world.pass_time(499)
    assert not world.answers
    world.pass_time(1)
    late = world.late(ApiKey.FETCH, 12, token)
    assert late is not None
    assert partition_of(late)["records"]


def test_a_held_high_watermark_keeps_a_fetch_waiting(world: DataWorld) -> None:
    """Records that are not safe yet are not seen."""
    world.log().hold_high_watermark(0)
    token, _ = world.fetch(maxWaitMs=500)
    world.produce(batch_of(b"a"))
    assert token not in world.answers
    world.log().hold_high_watermark(None)
    world.apis.touched(("t", 0))
    assert token in world.answers


def test_another_leader_or_the_end_of_the_topic_answers_a_waiting_fetch(world: DataWorld) -> None:
    """A waiting Fetch is answered when its partition's leader changes or its topic is deleted."""
    token, _ = world.fetch(maxWaitMs=500, version=10)
    world.elect(2)
    late = world.late(ApiKey.FETCH, 10, token)
    assert late is not None
    assert partition_of(late)["errorCode"] == ErrorCode.NOT_LEADER_OR_FOLLOWER
    token, _ = world.fetch(maxWaitMs=500)
    world.image.apply(TopicDeleted("t"))
    world.apis.touched(("t", 0))
    late = world.late(ApiKey.FETCH, 12, token)
    assert late is not None
    assert partition_of(late)["errorCode"] == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def test_a_closed_connection_frees_what_waits_on_it(world: DataWorld) -> None:
    """The waiting fetches of a closed connection are forgotten without an answer."""
    token, _ = world.fetch(maxWaitMs=500, connection=5)
    world.apis.disconnected(5)
    assert world.answers == {token: None}
    world.produce(batch_of(b"a"))
    assert world.answers == {token: None}
    assert not world.apis.fetches.purgatory


def test_an_append_does_not_look_at_fetches_of_other_partitions(world: DataWorld) -> None:
    """5,000 fetches that wait elsewhere cost an append nothing."""
    for connection in range(5_000):
        world.fetch(maxWaitMs=500, partition=1, connection=connection)
    began_s = time.perf_counter()
    for _ in range(100):
        world.produce(batch_of(b"a"))
    assert time.perf_counter() - began_s < 2
    assert len(world.apis.fetches.purgatory) == 5_000


def test_a_touched_partition_is_the_only_one_that_is_counted_anew(
    world: DataWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An append looks at its own partition of a waiting Fetch, however many others that names."""
    count = 1_000
    world.image.apply(TopicCreated("wide", b"\x09" * 16, ((1,),) * count))
    terms = {"fetchOffset": 0, "currentLeaderEpoch": -1, "lastFetchedEpoch": -1}
    partitions = [
        {"partition": each, "partitionMaxBytes": 1 << 20, **terms} for each in range(count)
    ]
    wait: dict[str, Any] = {"maxWaitMs": 500, "minBytes": 200}
    _, answer = world.fetch(topics=[{"topic": "wide", "partitions": partitions}], **wait)
    assert answer is None
    reader = world.apis.fetches.reader
    looked: list[int] = []
    plain = type(reader).available_bytes

    def counting(*given: Any) -> int | None:  # noqa: ANN401 - as the method's
        looked.append(given[3].partition)
        return plain(*given)

    monkeypatch.setattr(type(reader), "available_bytes", counting)
    for partition in (7, 8):
        world.produce(batch_of(b"a"), topic="wide", partition=partition)
    assert not world.answers
    assert (len(looked), looked[-1]) == (count + 2, 8)
    world.produce(batch_of(b"a"), topic="wide", partition=9)
    assert len(world.answers) == 1


def test_reading_needs_the_right_to() -> None:
    """A topic that may not be read is refused before it is looked for."""
    rule = Acl(
        operation=Operation.WRITE, resource_type=ResourceType.TOPIC, name="t", principal="User:*"
    )
    world = DataWorld(authorizer=AclAuthorizer([rule]))
    assert world.fetched()["errorCode"] == ErrorCode.TOPIC_AUTHORIZATION_FAILED
    error = world.fetched(replicaId=2)["errorCode"]
    assert error == ErrorCode.TOPIC_AUTHORIZATION_FAILED


# -- Incremental fetch sessions (KIP-227) ------------------------------------------------------


def _fetch(
    world: DataWorld,
    session: tuple[int, int],
    offsets: dict[int, int] | None = None,
    **fields: Any,  # noqa: ANN401 - fields of any type
) -> Fields:
    """Fetch in a session: its id and epoch, and what it wants of which partitions."""
    version = fields.pop("version", 12)
    topic_id = fields.pop("topic_id", TOPIC_ID)
    partitions = [
        {"partition": each, "fetchOffset": offset, "partitionMaxBytes": 1 << 20}
        for each, offset in (offsets or {}).items()
    ]
    topic = {"topic": "t", "topicId": topic_id, "partitions": partitions}
    request = {
        "maxWaitMs": 0,
        "minBytes": 1,
        "sessionId": session[0],
        "sessionEpoch": session[1],
        "topics": [topic] if partitions else [],
        **fields,
    }
    token, response = world.call(ApiKey.FETCH, version, request)
    if response is None:
        response = world.late(ApiKey.FETCH, version, token)
    assert response is not None
    return response


def _told(response: Fields) -> list[int]:
    """Partitions that an answer tells of, in order."""
    return [
        each["partitionIndex"] for topic in response["responses"] for each in topic["partitions"]
    ]


def test_a_full_fetch_founds_a_session_and_later_ones_tell_only_what_is_new(
    world: DataWorld,
) -> None:
    """An unchanged partition is left out; one with records, or another high watermark, is told."""
    first = _fetch(world, (0, 0), {0: 0, 1: 0})
    session_id = first["sessionId"]
    assert session_id
    assert _told(first) == [0, 1]
    assert _told(_fetch(world, (session_id, 1))) == []
    world.produce(batch_of(b"a"))
    assert _told(_fetch(world, (session_id, 2))) == [0]
    # The consumer moves on: no records, and the high watermark is known.
    assert _told(_fetch(world, (session_id, 3), {0: 1})) == []


def test_the_final_epoch_asks_for_no_session(world: DataWorld) -> None:
    """A fetch without a session gets everything and no id, and ends a session that it names."""
    assert _fetch(world, (0, -1), {0: 0})["sessionId"] == 0
    session_id = _fetch(world, (0, 0), {0: 0})["sessionId"]
    assert _fetch(world, (session_id, -1), {0: 0})["sessionId"] == 0
    answer = _fetch(world, (session_id, 1))
    assert answer["errorCode"] == ErrorCode.FETCH_SESSION_ID_NOT_FOUND


def test_partitions_with_records_are_read_last_the_next_time(world: DataWorld) -> None:
    """A partition that gave records moves to the end, so that no other starves behind it."""
    world.image.apply(TopicDeleted("t"))
    world.image.apply(TopicCreated("t", TOPIC_ID, ((1,), (1,), (1,))))
    session_id = _fetch(world, (0, 0), {0: 0, 1: 0, 2: 0})["sessionId"]
    for partition in (0, 1, 2):
        world.produce(batch_of(b"a"), partition=partition)
    size = len(batch_of(b"a"))
    first = _fetch(world, (session_id, 1), maxBytes=size)
    assert [len(each["records"]) for each in first["responses"][0]["partitions"]] == [size, 0, 0]
    second = _fetch(world, (session_id, 2), maxBytes=size)
    assert _told(second) == [1]
    assert _told(_fetch(world, (session_id, 3), maxBytes=size)) == [2]
    assert _told(_fetch(world, (session_id, 4), maxBytes=size)) == [0]


def test_forgotten_partitions_are_not_told_any_more(world: DataWorld) -> None:
    """When none is left the session ends."""
    session_id = _fetch(world, (0, 0), {0: 0, 1: 0})["sessionId"]
    world.produce(batch_of(b"a"))
    gone = [{"topic": "t", "topicId": TOPIC_ID, "partitions": [0]}]
    assert _told(_fetch(world, (session_id, 1), forgottenTopicsData=gone)) == []
    gone[0]["partitions"] = [1]
    answer = _fetch(world, (session_id, 2), forgottenTopicsData=gone)
    assert (answer["errorCode"], answer["sessionId"]) == (0, 0)
    assert len(world.apis.fetches.sessions(1)) == 0


def test_a_wrong_epoch_is_invalid(world: DataWorld) -> None:
    """Each request of a session has the next epoch."""
    session_id = _fetch(world, (0, 0), {0: 0})["sessionId"]
    answer = _fetch(world, (session_id, 2))
    assert answer["errorCode"] == ErrorCode.INVALID_FETCH_SESSION_EPOCH
    assert (answer["sessionId"], answer["responses"]) == (0, [])


def test_a_session_is_by_name_or_by_id(world: DataWorld) -> None:
    """A fetch session that began with topic names refuses topic ids."""
    session_id = _fetch(world, (0, 0), {0: 0}, version=12)["sessionId"]
    answer = _fetch(world, (session_id, 1), version=13)
    assert answer["errorCode"] == ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR


def test_a_topic_that_comes_later_is_known_to_the_session_by_its_id(world: DataWorld) -> None:
    """A partition that was unknown is looked up anew with each request."""
    late = b"\x05" * 16
    first = _fetch(world, (0, 0), {0: 0}, version=13, topic_id=late)
    error = first["responses"][0]["partitions"][0]["errorCode"]
    assert error == ErrorCode.UNKNOWN_TOPIC_ID
    world.image.apply(TopicCreated("later", late, ((1,),)))
    second = _fetch(world, (first["sessionId"], 1), version=13)
    assert second["responses"][0]["partitions"][0]["errorCode"] == 0


def test_an_error_is_told_each_time_and_its_end_too(world: DataWorld) -> None:
    """After an error the partition is told even when nothing else changed."""
    session_id = _fetch(world, (0, 0), {0: 0}, version=10)["sessionId"]
    world.elect(2)
    for epoch in (1, 2):
        answer = _fetch(world, (session_id, epoch), version=10)
        error = answer["responses"][0]["partitions"][0]["errorCode"]
        assert error == ErrorCode.NOT_LEADER_OR_FOLLOWER
    world.elect(1)
    assert _told(_fetch(world, (session_id, 3), version=10)) == [0]
    assert _told(_fetch(world, (session_id, 4), version=10)) == []


def test_a_second_request_of_a_session_makes_the_waiting_one_invalid(world: DataWorld) -> None:
    """A client that did not wait for its answer is told that its epoch is over."""
    session_id = _fetch(world, (0, 0), {0: 0})["sessionId"]
    request = {
        "maxWaitMs": 500,
        "minBytes": 1,
        "sessionId": session_id,
        "sessionEpoch": 1,
        "topics": [],
    }
    token, response = world.call(ApiKey.FETCH, 12, request)
    assert response is None
    _fetch(world, (session_id, 2))
    world.produce(batch_of(b"a"))
    late = world.late(ApiKey.FETCH, 12, token)
    assert late is not None
    assert late["errorCode"] == ErrorCode.INVALID_FETCH_SESSION_EPOCH
    assert late["sessionId"] == session_id


def test_a_restarted_broker_knows_no_session(world: DataWorld) -> None:
    """Sessions are a process's memory."""
    session_id = _fetch(world, (0, 0), {0: 0})["sessionId"]
    world.apis.fetches.forget_broker(1)
    answer = _fetch(world, (session_id, 1))
    assert answer["errorCode"] == ErrorCode.FETCH_SESSION_ID_NOT_FOUND


# -- the cache -------------------------------------------------------------------------------


def _small_cache(slots: int) -> DataWorld:
    return DataWorld(settings=DataSettings(fetch_session_slots=slots, fetch_session_shards=1))


def test_without_slots_there_are_no_sessions() -> None:
    """Consumers then fetch in full each time."""
    assert _fetch(_small_cache(0), (0, 0), {0: 0})["sessionId"] == 0


def test_a_full_cache_keeps_young_sessions() -> None:
    """A session is safe for two minutes after its last use."""
    world = _small_cache(1)
    session_id = _fetch(world, (0, 0), {0: 0})["sessionId"]
    assert _fetch(world, (0, 0), {0: 0})["sessionId"] == 0
    world.pass_time(120_000)
    assert _fetch(world, (0, 0), {0: 0})["sessionId"] == 0
    world.pass_time(1)
    assert _fetch(world, (0, 0), {0: 0})["sessionId"] not in (0, session_id)
    answer = _fetch(world, (session_id, 1))
    assert answer["errorCode"] == ErrorCode.FETCH_SESSION_ID_NOT_FOUND


def _old_session(world: DataWorld, offsets: dict[int, int]) -> int:
    """A session that is used, and older than two minutes."""
    session_id = int(_fetch(world, (0, 0), offsets)["sessionId"])
    for epoch in (1, 2):
        world.pass_time(100_000)
        _fetch(world, (session_id, epoch))
    return session_id


def test_a_larger_fetch_pushes_out_a_smaller_old_session() -> None:
    """A session that lives long gives way to one that is worth more."""
    world = _small_cache(1)
    session_id = _old_session(world, {0: 0})
    assert _fetch(world, (0, 0), {0: 0, 1: 0})["sessionId"] not in (0, session_id)


def test_an_equal_fetch_does_not_push_out_an_old_session() -> None:
    """Among equals the lower id goes first, and a new session counts as id 0."""
    world = _small_cache(1)
    _old_session(world, {0: 0})
    assert _fetch(world, (0, 0), {0: 0})["sessionId"] == 0


def test_epochs_go_round_and_the_final_one_stays() -> None:
    """The largest epoch is followed by 1."""
    assert [next_epoch(each) for each in (0, 1, 2**31 - 1, -1)] == [1, 2, 1, -1]
