"""Incremental fetch sessions (KIP-227)."""

from typing import Any

import pytest

from coordinator_sim.broker.metadata.changes import TopicCreated, TopicDeleted
from coordinator_sim.broker.records.families import DataSettings
from coordinator_sim.broker.records.fetch_sessions import next_epoch
from coordinator_sim.kafka.api_keys import ApiKey
from coordinator_sim.kafka.errors import ErrorCode
from coordinator_sim_conformance.field_frames import Fields
from tests.unit.broker.data_world import TOPIC_ID, DataWorld, batch_of


@pytest.fixture
def world() -> DataWorld:
    """Two brokers and a topic."""
    return DataWorld()


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
