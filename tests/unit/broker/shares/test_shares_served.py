"""Share partitions of a served cluster: what members, administrators and other brokers see."""

import pytest

from coordinator_sim.broker.contract import Instants
from coordinator_sim.broker.metadata.changes import QuotaSet
from coordinator_sim.broker.records.fetch_sessions import FetchPlace
from coordinator_sim.broker.shares.share_partition_manager import rotated
from coordinator_sim.errors import ConfigError
from coordinator_sim.kafka.api_keys import ApiKey
from coordinator_sim.kafka.errors import ErrorCode
from coordinator_sim.messages.schema import ZERO_UUID
from coordinator_sim_conformance.real_kafka.data_questions import batch
from tests.unit.broker.shares.share_world import (
    ACCEPT,
    AUTHORIZER,
    DESCRIBE,
    GROUP,
    GROUP_ACL,
    MEMBER,
    READ,
    REJECT,
    RELEASE,
    TOPIC_ACL,
    acquired,
    errors,
    share_world,
)


@pytest.mark.parametrize("profile", ["4.2", "4.3", "4.4"])
@pytest.mark.parametrize("version", [1, 2])
def test_records_are_acquired_and_acknowledged(profile: str, version: int) -> None:
    """What is released comes again, with one delivery more; the rest is done with."""
    world = share_world(profile=profile)
    world.start()

    first = world.fetch(version=version)
    done = world.acknowledge(
        1, (0, 1, ACCEPT), (2, 2, RELEASE), (3, 3, REJECT), (4, 4, ACCEPT), version=version
    )
    second = world.fetch(2, version=version)

    assert acquired(first) == {0: [(0, 4, 1)]}
    assert first["acquisitionLockTimeoutMs"] == 30_000
    assert (done["errorCode"], errors(done)) == (0, [0])
    assert acquired(second) == {0: [(2, 2, 2)]}


def test_offsets_are_described_with_their_lag() -> None:
    """From version 1 on; where a group has begun nothing there is nothing to tell."""
    world = share_world()
    before = world.offsets()
    world.start()
    world.fetch()
    world.acknowledge(1, (0, 1, ACCEPT))
    world.acknowledge(2, (3, 3, ACCEPT))

    (topic,) = world.offsets()["topics"]
    (without,) = world.offsets(version=0)["topics"]

    assert before["topics"] == []
    (partition,) = topic["partitions"]
    assert (topic["topicName"], partition["startOffset"], partition["lag"]) == ("lines", 2, 2)
    assert without["partitions"][0]["startOffset"] == 2


def test_a_fetch_waits_for_records() -> None:
    """Whoever asked first gets what comes; the others get nothing when they have waited enough."""
    world = share_world()
    world.start(5)
    world.fetch(maxWaitMs=0)
    other = world.connect()
    world.fetch(member="other", client=other, maxWaitMs=0)
    world.cluster.scheduler.at_wall_ms(world.clients.now_ms + 200, lambda _: world.produce(2))

    began_ms = world.clients.now_ms
    found = world.fetch(1)
    waited_ms = world.clients.now_ms - began_ms
    nothing = world.fetch(1, member="other", client=other)

    assert (acquired(found), waited_ms) == ({0: [(5, 6, 1)]}, 200)
    assert (acquired(nothing), world.clients.now_ms - began_ms) == ({}, 700)


def test_a_produce_request_wakes_a_fetch_that_waits() -> None:
    """A member has the records when they are appended, not when its wait is over."""
    world = share_world()
    world.start(5)
    producer = world.connect()
    data = {"index": 0, "records": batch(b"5", magic=2, start_ms=world.clients.now_ms)}
    topic = {"name": "lines", "partitionData": [data]}
    produce = {"acks": 1, "timeoutMs": 5_000, "topicData": [topic]}
    began_ms = world.clients.now_ms

    def send(_now: Instants) -> None:
        producer.begin(ApiKey.PRODUCE, 9, produce)

    world.cluster.scheduler.at_wall_ms(began_ms + 200, send)
    found = world.fetch(maxWaitMs=10_000)

    assert (acquired(found), world.clients.now_ms - began_ms) == ({0: [(5, 5, 1)]}, 200)


def test_what_one_member_gives_up_wakes_another() -> None:
    """By an acknowledgement, by the end of a lock, by a connection that closes."""
    world = share_world()
    world.start()
    other = world.connect()
    world.fetch()
    world.fetch(member="other", client=other, maxWaitMs=0)

    at_ms = world.clients.now_ms

    def give_up(now: Instants) -> None:
        world.clients.now_ms = now.wall_ms
        world.acknowledge(1, (0, 4, RELEASE))

    world.cluster.scheduler.at_wall_ms(at_ms + 100, give_up)
    released = world.fetch(1, member="other", client=other, maxWaitMs=1_000)
    back = world.fetch(2, maxWaitMs=40_000)
    lasted_ms = world.clients.now_ms - at_ms
    other.close()

    assert acquired(released) == {0: [(0, 4, 2)]}
    assert (acquired(back), lasted_ms) == ({0: [(0, 4, 3)]}, 30_100)


def test_a_member_whose_connection_is_gone_leaves_its_records_to_others() -> None:
    """At once; its session is gone too."""
    world = share_world()
    world.start()
    lost = world.connect()
    world.fetch(client=lost)
    lost.close()

    again = world.fetch(1)
    other = world.fetch(member="other")

    assert again["errorCode"] == ErrorCode.SHARE_SESSION_NOT_FOUND
    assert acquired(other) == {0: [(0, 4, 2)]}


def test_a_fetch_whose_client_goes_acquires_nothing() -> None:
    """What comes afterwards is for others, and has not been delivered before."""
    world = share_world()
    world.start(5)
    lost = world.connect()
    world.fetch(client=lost, maxWaitMs=0)
    at_ms = world.clients.now_ms
    world.cluster.scheduler.at_wall_ms(at_ms + 100, lambda _: lost.close())
    world.cluster.scheduler.at_wall_ms(at_ms + 200, lambda _: world.produce(1))
    other = world.connect()

    lost.begin(ApiKey.SHARE_FETCH, 2, world.fetching(1, maxWaitMs=10_000))
    found = world.fetch(member="other", client=other, maxWaitMs=10_000)

    assert acquired(found) == {0: [(5, 5, 1)]}


def test_partitions_take_turns_to_be_first() -> None:
    """By the epoch of the session, so that none starves."""
    world = share_world(partitions=3)
    world.start()

    found = [list(acquired(world.fetch(epoch, maxRecords=1))) for epoch in range(3)]

    assert found == [[0], [1], [2]]
    places = tuple(FetchPlace(b"t", "t", index) for index in range(3))
    turns = [[place.partition for place in rotated(places, epoch)] for epoch in range(4)]
    assert turns == [[0, 1, 2], [1, 2, 0], [2, 0, 1], [0, 1, 2]]


def test_leaders_and_their_endpoints_are_told_at_the_wrong_broker() -> None:
    """A share partition is where the partition's leader is, and begins anew with another leader."""
    world = share_world(brokers=(1, 2), partitions=1)
    world.start()
    leader_id = world.cluster.image.topics["lines"].partitions[0].leader_id
    other_id = 3 - leader_id
    there, elsewhere = world.connect(leader_id), world.connect(other_id)

    first = world.fetch(client=there)
    wrong = world.fetch(client=elsewhere)
    world.cluster.operations.elect("lines", 0, other_id, world.now)
    moved = world.fetch(1, client=there)
    taken = world.fetch(client=elsewhere)

    assert acquired(first) == {0: [(0, 4, 1)]}
    assert errors(wrong) == [ErrorCode.NOT_LEADER_OR_FOLLOWER]
    (partition,) = wrong["responses"][0]["partitions"]
    assert partition["currentLeader"] == {"leaderId": leader_id, "leaderEpoch": 0}
    (node,) = wrong["nodeEndpoints"]
    assert (node["nodeId"], node["port"]) == (leader_id, 9090 + leader_id)
    assert errors(moved) == [ErrorCode.NOT_LEADER_OR_FOLLOWER]
    # What was handed out and not acknowledged is nowhere written.
    assert acquired(taken) == {0: [(0, 4, 1)]}


def test_an_acknowledgement_at_a_leader_of_the_past_is_refused() -> None:
    """The share partition is not there any more."""
    world = share_world(brokers=(1, 2))
    world.start()
    leader_id = world.cluster.image.topics["lines"].partitions[0].leader_id
    world.client = world.connect(leader_id)
    world.fetch()
    world.cluster.operations.elect("lines", 0, 3 - leader_id, world.now)

    assert errors(world.acknowledge(1, (0, 4, ACCEPT))) == [ErrorCode.UNKNOWN_TOPIC_OR_PARTITION]


def test_a_broker_that_starts_again_knows_no_session() -> None:
    """What was acknowledged before is kept by the share coordinator."""
    world = share_world()
    world.start()
    world.fetch()
    world.acknowledge(1, (0, 2, ACCEPT))
    world.cluster.operations.election_delay_ms = 0
    world.cluster.operations.stop(1, world.now)
    world.cluster.operations.resume(1, world.now)
    world.client = world.connect()

    lost = world.fetch(2)
    found = world.fetch()

    assert lost["errorCode"] == ErrorCode.SHARE_SESSION_NOT_FOUND
    assert acquired(found) == {0: [(3, 4, 1)]}


def test_a_broker_that_stands_still_lets_no_lock_run_out() -> None:
    """Its timers go on when it does."""
    world = share_world(brokers=(1, 2))
    world.start()
    leader_id = world.cluster.image.topics["lines"].partitions[0].leader_id
    there = world.connect(leader_id)
    world.fetch(client=there)
    world.cluster.operations.election_delay_ms = 1_000_000
    world.cluster.operations.pause(leader_id, world.now)
    world.client.wait(40_000)
    held = world.cluster.shares.next_group_deadline_ms()
    world.cluster.operations.resume(leader_id, world.now)
    due_ms = world.cluster.shares.next_group_deadline_ms()

    assert held is None
    assert due_ms is not None
    assert due_ms < world.clients.now_ms


def test_reading_needs_rights_on_group_and_topic() -> None:
    """READ on both; a topic without it is refused alone."""
    world = share_world(authorizer_class_name=AUTHORIZER)
    no_group = world.fetch()
    not_acknowledged = world.acknowledge(1, (0, 0, ACCEPT))
    world.allow(GROUP_ACL, GROUP, READ)
    no_topic = world.fetch(maxWaitMs=0)
    world.allow(TOPIC_ACL, "lines", READ)
    world.start()
    allowed = world.fetch()

    denied = ErrorCode.GROUP_AUTHORIZATION_FAILED
    assert (no_group["errorCode"], not_acknowledged["errorCode"]) == (denied, denied)
    assert errors(no_topic) == [ErrorCode.TOPIC_AUTHORIZATION_FAILED]
    assert acquired(allowed) == {0: [(0, 4, 1)]}


def test_describing_offsets_needs_rights_on_group_and_topic() -> None:
    """DESCRIBE on both; of all topics those without it are left out, of some they are refused."""
    world = share_world(authorizer_class_name=AUTHORIZER)
    asked = [{"topicName": "lines", "partitions": [0]}]
    no_group = world.offsets()
    world.allow(GROUP_ACL, GROUP, READ, DESCRIBE)
    world.allow(TOPIC_ACL, "lines", READ)
    world.start()
    world.cluster.image.acls.clear()
    world.allow(GROUP_ACL, GROUP, DESCRIBE)
    hidden, refused = world.offsets(), world.offsets(topics=asked)
    world.allow(TOPIC_ACL, "lines", DESCRIBE)
    seen = world.offsets(topics=asked)

    assert no_group["errorCode"] == ErrorCode.GROUP_AUTHORIZATION_FAILED
    assert (hidden["errorCode"], hidden["topics"]) == (0, [])
    (partition,) = refused["topics"][0]["partitions"]
    assert (partition["errorCode"], partition["startOffset"]) == (
        ErrorCode.TOPIC_AUTHORIZATION_FAILED,
        -1,
    )
    assert seen["topics"][0]["partitions"][0]["errorCode"] == 0


def test_a_deleted_topic_takes_its_share_partitions_along() -> None:
    """The session still names it, and is told so."""
    world = share_world()
    world.start()
    world.fetch()
    fields = {"topics": [{"name": "lines", "topicId": ZERO_UUID}], "timeoutMs": 5_000}
    world.client.call(ApiKey.DELETE_TOPICS, 6, fields)
    gone = world.fetch(1)
    # One of the same name is another topic, of which nothing is kept.
    world.cluster.topics.create_spread("lines", 1, world.now)
    other = world.fetch(2)

    assert errors(gone) == [ErrorCode.UNKNOWN_TOPIC_OR_PARTITION]
    assert errors(other) == [ErrorCode.UNKNOWN_SERVER_ERROR]


def test_settings_of_a_group_count_at_once() -> None:
    """Locks, deliveries, isolation: with the next fetch."""
    world = share_world(group_share_min_record_lock_duration_ms="1000")
    world.start()
    before = world.fetch()
    world.set(share_record_lock_duration_ms="1000", share_delivery_count_limit="2")
    world.acknowledge(1, (0, 4, RELEASE))
    second = world.fetch(2)
    world.client.wait(1_000)
    nothing = world.fetch(3)

    assert before["acquisitionLockTimeoutMs"] == 30_000
    assert (acquired(second), second["acquisitionLockTimeoutMs"]) == ({0: [(0, 4, 2)]}, 1_000)
    assert acquired(nothing) == {}
    (partition,) = world.offsets()["topics"][0]["partitions"]
    assert partition["lag"] == 0


@pytest.mark.parametrize("name", ["", "org.apache.kafka.server.share.persister.NoOpStatePersister"])
def test_without_a_persister_a_group_reads_and_keeps_no_state(name: str) -> None:
    """Heartbeats, fetches and acknowledgements succeed; no topic is created for the state."""
    world = share_world(group_share_persister_class_name=name)
    world.set(share_auto_offset_reset="earliest")
    joined = world.beat()

    assert (joined["errorCode"], acquired(world.fetch())) == (0, {0: [(0, 4, 1)]})
    assert errors(world.acknowledge(1, (0, 4, ACCEPT))) == [0]
    assert acquired(world.fetch(2, maxWaitMs=0)) == {}
    assert "__share_group_state" not in world.cluster.image.topics
    (partition,) = world.offsets()["topics"][0]["partitions"]
    assert (partition["startOffset"], partition["errorCode"]) == (-1, 0)


@pytest.mark.parametrize(
    ("name", "fix"),
    [
        (
            "group.share.persister.class.name",
            (
                "use org.apache.kafka.server.share.persister.NoOpStatePersister or "
                "org.apache.kafka.server.share.persister.DefaultStatePersister, or leave it empty"
            ),
        ),
        ("group.streams.topology.description.plugin.class", "leave it out"),
    ],
)
def test_setting_that_names_another_class_is_refused(name: str, fix: str) -> None:
    """In one line: the value, and what it may be."""
    with pytest.raises(ConfigError) as refused:
        share_world(**{name.replace(".", "_"): "com.example.Mine"})

    assert str(refused.value) == f"{name}=com.example.Mine: no class can be loaded here; {fix}"


def test_a_session_ends_with_its_last_epoch() -> None:
    """Its records are others', those that it accepts with its last words are not."""
    world = share_world()
    world.start()
    world.fetch()
    done = world.acknowledge(-1, (0, 1, ACCEPT))
    gone = world.acknowledge(2, (2, 2, ACCEPT))

    assert errors(done) == [0]
    assert gone["errorCode"] == ErrorCode.SHARE_SESSION_NOT_FOUND
    assert acquired(world.fetch(member="other")) == {0: [(2, 4, 2)]}


def test_member_ids_are_looked_at_before_sessions() -> None:
    """By both APIs alike."""
    world = share_world()
    for member in ("", "x" * 37):
        answers = (world.fetch(member=member), world.acknowledge(1, member=member))
        assert {each["errorCode"] for each in answers} == {ErrorCode.INVALID_REQUEST}
    assert world.fetch(member=MEMBER, maxWaitMs=0)["errorCode"] == 0


@pytest.mark.parametrize(
    ("asked", "answered"),
    [
        ([17, 3, 0, 16, 1], [16, 0, 1, 17, 3]),
        ([*range(12), 16], [16, *range(12)]),
        ([*range(12), 16, 0], [*range(12), 16]),
    ],
)
def test_offsets_are_described_in_the_order_of_javas_map(
    asked: list[int], answered: list[int]
) -> None:
    """The newest of a bucket comes first; a repeated partition can make the map grow.

    The first is what brokers 4.2.1 and 4.4.0 answered.
    """
    world = share_world()
    (topic,) = world.offsets(topics=[{"topicName": "lines", "partitions": asked}])["topics"]
    assert [each["partitionIndex"] for each in topic["partitions"]] == answered


def test_a_group_without_a_name_is_refused_by_the_persister() -> None:
    """Kafka's persister throws: one error for the group that is described, one for a partition."""
    world = share_world()
    topics = [{"topicName": "lines", "partitions": [0]}]
    asked = {"groups": [{"groupId": "", "topics": topics}, {"groupId": GROUP, "topics": topics}]}

    described = world.client.call(ApiKey.DESCRIBE_SHARE_GROUP_OFFSETS, 1, asked)["groups"]
    fetched = world.fetch(groupId="")
    negative = world.offsets(topics=[{"topicName": "lines", "partitions": [0, -1]}])
    without = world.offsets(topics=[{"topicName": "lines", "partitions": []}])

    unknown = int(ErrorCode.UNKNOWN_SERVER_ERROR)
    assert [(each["errorCode"], len(each["topics"])) for each in described] == [
        (unknown, 0),
        (0, 1),
    ]
    assert (fetched["errorCode"], errors(fetched)) == (0, [unknown])
    assert (negative["errorCode"], without["errorCode"]) == (unknown, unknown)


def test_member_over_its_quota_is_sent_no_records() -> None:
    """What it acquired is locked all the same, and given out again when the lock runs out."""
    world = share_world()
    world.start()
    world.cluster.change(QuotaSet((("user", None),), "consumer_byte_rate", 100.0))
    world.produce(100)
    assert acquired(world.fetch(maxRecords=5, batchSize=5)) == {0: [(0, 4, 1)]}

    over = world.fetch(1, maxRecords=500)
    again = world.fetch(2, maxWaitMs=0)

    assert (over["responses"], over["errorCode"]) == ([], 0)
    assert over["throttleTimeMs"] > 0
    assert again["responses"] == []
    world.client.wait(60_000)
    assert acquired(world.fetch(3)) != {}
