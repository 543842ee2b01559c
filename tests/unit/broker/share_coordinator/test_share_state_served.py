"""The APIs of share coordinators of a whole served cluster: state, rights, leaders, restarts."""

from pathlib import Path
from typing import Any

import pytest

from coordinator_sim.broker.contract import Instants
from coordinator_sim.broker.metadata.image import TOPIC_RESOURCE
from coordinator_sim.broker.security.authorizer import Acl, Operation, ResourceType
from coordinator_sim.broker.settings import ClusterSettings
from coordinator_sim.broker.share_coordinator.persister import backoff_ms
from coordinator_sim.broker.shares.persister import (
    ReadState,
    SharePartitionKey,
    StateBatch,
    StateRead,
    StateSummary,
    StateWritten,
    WriteState,
)
from coordinator_sim.broker.shares.share_values import state_partition
from coordinator_sim.coordinator.modern.share.persister import (
    DeleteState,
    InitializeState,
    PartitionOutcome,
    PartitionStart,
    PersisterAnswer,
)
from coordinator_sim.disk.losses import LossError
from coordinator_sim.kafka.api_keys import ApiKey
from coordinator_sim.kafka.error_texts import error_message
from coordinator_sim.kafka.errors import ErrorCode
from coordinator_sim.kafka.partitioning import SHARE_STATE_TOPIC
from coordinator_sim.kafka.profiles import PROFILES
from coordinator_sim_conformance.field_frames import Fields
from tests.unit.broker.fields_client import FieldsClient
from tests.unit.broker.kept_world import NOW, KeptWorld
from tests.unit.broker.share_coordinator import share_world
from tests.unit.broker.share_coordinator.share_world import GROUP, served, topic_id

UPDATES_PER_SNAPSHOT = "share.coordinator.snapshot.update.records.per.snapshot"


def rule(operation: Operation, kind: ResourceType, name: str) -> Acl:
    """Everybody may do that."""
    return Acl(operation=operation, resource_type=kind, name=name, principal="User:*")


def test_state_is_kept() -> None:
    """What a leader writes is what the next one reads, and what administration is told."""
    states = share_world.States(share_world.served())
    assert states.initialize(state_epoch=1, start_offset=10)["errorCode"] == ErrorCode.NONE
    batches = ((10, 19, 2, 1), (20, 24, 0, 1))
    assert states.write(*batches, startOffset=10, deliveryCompleteCount=10) == {
        "partition": 0,
        "errorCode": 0,
        "errorMessage": None,
    }
    read = states.read(leader_epoch=3)
    assert share_world.batches_of(read) == [(10, 19, 2, 1), (20, 24, 0, 1)]
    assert (read["startOffset"], read["stateEpoch"]) == (10, 1)
    summary = states.summary()
    told = ("startOffset", "stateEpoch", "leaderEpoch", "deliveryCompleteCount")
    assert [summary[name] for name in told] == [10, 1, 3, 10]


def test_state_is_deleted() -> None:
    """A deleted share partition is as one that never was, and may be deleted again."""
    states = share_world.States(share_world.served())
    states.initialize(state_epoch=5, start_offset=3)
    assert states.delete()["errorCode"] == ErrorCode.NONE
    assert states.delete()["errorCode"] == ErrorCode.NONE
    refused = states.read()
    assert refused["errorCode"] == ErrorCode.INVALID_REQUEST
    assert refused["errorMessage"] == (
        "Read operation on uninitialized share partition not allowed."
    )
    assert states.summary()["startOffset"] == -1


def test_only_brokers_may_ask() -> None:
    """CLUSTER_ACTION is asked for; every partition is refused."""
    states = share_world.States(share_world.served(rule(Operation.READ, ResourceType.GROUP, "g")))
    text = error_message(ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
    for refused in (
        states.initialize(),
        states.read(),
        states.write(),
        states.summary(),
        states.delete(),
    ):
        told = (refused["errorCode"], refused["errorMessage"])
        assert told == (ErrorCode.CLUSTER_AUTHORIZATION_FAILED, text)


def test_the_topic_has_kafkas_settings() -> None:
    """Deleted rather than compacted, kept for ever, as many partitions as the settings say."""
    cluster = share_world.served(share_state_min_isr=1).cluster
    assert len(cluster.image.topics[SHARE_STATE_TOPIC].partitions) == 3
    assert cluster.image.configs_of(TOPIC_RESOURCE, SHARE_STATE_TOPIC) == {
        "cleanup.policy": "delete",
        "compression.type": "producer",
        "segment.bytes": "104857600",
        "min.insync.replicas": "1",
        "retention.ms": "-1",
    }


def led() -> tuple[share_world.States, share_world.States, int]:
    """Two brokers: the leader of the state of t-0, the other one, and the partition's number."""
    client = share_world.served(broker_ids=(1, 2), load_ms=500)
    place = state_partition(SharePartitionKey("g", share_world.topic_id(client.cluster), 0), 3)
    leader_id = client.cluster.image.topics[SHARE_STATE_TOPIC].partitions[place].leader_id
    leader, other = (FieldsClient(client.cluster, each) for each in (leader_id, 3 - leader_id))
    return share_world.States(leader), share_world.States(other), place


def test_a_new_leader_of_the_topic_knows_the_state() -> None:
    """The old coordinator refuses; the new one does while it reads the log."""
    states, other, place = led()
    states.initialize()
    states.write((0, 4, 2, 1))
    assert other.read()["errorCode"] == ErrorCode.NOT_COORDINATOR
    client = other.client
    now = Instants(client.now_ms, client.now_ms)
    client.cluster.operations.elect(SHARE_STATE_TOPIC, place, client.connection.broker_id, now)
    refused = states.read()
    assert refused["errorCode"] == ErrorCode.NOT_COORDINATOR
    assert refused["errorMessage"] == (
        "Unable to read share group state: This is not the correct coordinator."
    )
    assert other.read()["errorCode"] == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    client.wait(501)
    assert share_world.batches_of(other.read()) == [(0, 4, 2, 1)]


def test_state_outlives_the_process(tmp_path: Path) -> None:
    """With a log directory; updates and snapshots are read again."""
    settings = ClusterSettings(
        share_state_partitions=2, given={UPDATES_PER_SNAPSHOT: "1"}, share_state_min_isr=1
    )
    world = KeptWorld(tmp_path, settings=settings)
    for name in (SHARE_STATE_TOPIC, "t"):
        world.cluster.topics.create_asked_for(name, NOW)
    states = share_world.States(FieldsClient(world.cluster))
    states.initialize(start_offset=3)
    for first in (3, 5, 7):
        states.write((first, first, 2, 1), deliveryCompleteCount=first)
    before = states.read(leader_epoch=2), states.summary()
    world.leave()
    again = share_world.States(FieldsClient(world.cluster))
    assert (again.read(leader_epoch=2), again.summary()) == before
    world.kill()
    again = share_world.States(FieldsClient(world.cluster))
    assert (again.read(leader_epoch=2), again.summary()) == before


def test_a_write_waits_for_the_high_watermark() -> None:
    """It times out where nothing is committed, and what it wrote counts once that is."""
    client = share_world.served(given={"share.coordinator.write.timeout.ms": "1500"})
    states = share_world.States(client)
    states.initialize()
    place = state_partition(SharePartitionKey("g", states.topic_id, 0), 3)
    now = Instants(client.now_ms, client.now_ms)
    hold = client.cluster.operations.hold_high_watermark
    hold(SHARE_STATE_TOPIC, place, hold=True, now=now)
    refused = states.write((0, 4, 2, 1))
    assert refused["errorCode"] == ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert refused["errorMessage"] == (
        "Unable to write share group state: "
        "CoordinatorWriteEvent(name=write-share-group-state) timed out after 1500ms"
    )
    assert client.now_ms == now.group_ms + 1_500
    hold(SHARE_STATE_TOPIC, place, hold=False, now=now)
    assert share_world.batches_of(states.read()) == [(0, 4, 2, 1)]


def test_slow_followers_hold_a_write_up() -> None:
    """It is answered when the high watermark has passed it."""
    client = share_world.served(share_state_partitions=1)
    states = share_world.States(client)
    states.initialize()
    client.cluster.operations.slow_appends.set_delay(SHARE_STATE_TOPIC, 0, 700)
    began_ms = client.now_ms
    assert states.write((0, 4, 2, 1))["errorCode"] == ErrorCode.NONE
    assert client.now_ms == began_ms + 700


def test_a_damaged_topic_is_a_loss(tmp_path: Path) -> None:
    """What share groups are done with is missing: the next start says so."""
    world = KeptWorld(tmp_path, settings=ClusterSettings(share_state_partitions=1))
    for name in (SHARE_STATE_TOPIC, "t"):
        world.cluster.topics.create_asked_for(name, NOW)
    share_world.States(FieldsClient(world.cluster)).initialize()
    world.cluster.leave()
    (segment,) = tmp_path.rglob(f"{SHARE_STATE_TOPIC}-0/*.log")
    segment.write_bytes(segment.read_bytes()[:-5])
    with pytest.raises(LossError, match="what share groups are done with"):
        world.begin()


def test_a_refused_append_is_taken_back() -> None:
    """What was never written is not read; the error is the coordinator's."""
    client = share_world.served()
    states = share_world.States(client)
    states.initialize()
    client.cluster.hosted.append_failure = ErrorCode.NOT_ENOUGH_REPLICAS
    refused = states.write((0, 4, 2, 1))
    assert refused["errorCode"] == ErrorCode.COORDINATOR_NOT_AVAILABLE
    client.cluster.hosted.append_failure = ErrorCode.NONE
    assert share_world.batches_of(states.read()) == []


def test_the_log_is_cut_short() -> None:
    """Upkeep deletes what snapshots have replaced, and snapshots what is cold."""
    client = share_world.served(share_state_partitions=1, given={UPDATES_PER_SNAPSHOT: "2"})
    states = share_world.States(client)
    log = client.cluster.logs.log_of(SHARE_STATE_TOPIC, 0)
    assert log is not None
    assert client.cluster.next_group_deadline_ms() is None
    states.initialize()
    for _ in range(4):
        states.write((0, 0, 2, 1))
    client.wait(300_001)
    assert (log.log_start_offset, log.end_offset) == (3, 6)
    client.wait(300_000)
    assert (log.log_start_offset, log.end_offset) == (5, 6)
    assert states.read()["errorCode"] == ErrorCode.NONE


def test_a_deleted_topic_takes_its_states_along() -> None:
    """Tombstones are written for its share partitions."""
    client = share_world.served(share_state_partitions=1)
    states = share_world.States(client)
    states.initialize()
    log = client.cluster.logs.log_of(SHARE_STATE_TOPIC, 0)
    assert log is not None
    now = Instants(client.now_ms, client.now_ms)
    client.cluster.topics.delete("t", now)
    assert log.end_offset == 2
    coordinator = client.cluster.share_coordinators.hosting.coordinator(1, now)
    assert len(coordinator.runtime.partitions[0]) == 0


def test_kafka_4_1_does_not_offer_its_preview() -> None:
    """The APIs are offered where share groups are known."""
    for release, versions in (("4.1", None), ("4.2", (0, 1))):
        cluster = share_world.served(profile=PROFILES[release]).cluster
        assert cluster.versions.ranges.get(ApiKey.WRITE_SHARE_GROUP_STATE) == versions


# -- FindCoordinator -------------------------------------------------------------------------


def found(client: FieldsClient, key: str, version: int = 6) -> Fields:
    """What FindCoordinator says of one key."""
    fields = {"keyType": 2, "coordinatorKeys": [key], "key": key}
    answer = client.call(ApiKey.FIND_COORDINATOR, version, fields)
    return answer["coordinators"][0] if version > 3 else answer  # type: ignore[no-any-return]


def test_share_partitions_have_coordinators() -> None:
    """The key names group, topic and partition; it is hashed as Kafka prints it."""
    client = share_world.served()
    assert found(client, share_world.share_key(client))["nodeId"] == 1
    assert found(client, share_world.share_key(client, group="a:b"))["nodeId"] == 1


@pytest.mark.parametrize(
    "key", ["g", "g:0", "g:short:0", ":{topic}:0", "g:{topic}:x", "g:{topic}:"]
)
def test_a_malformed_key_is_refused(key: str) -> None:
    """INVALID_REQUEST without words."""
    client = share_world.served()
    topic = share_world.share_key(client).split(":")[1]
    refused = found(client, key.replace("{topic}", topic))
    assert (refused["errorCode"], refused["errorMessage"]) == (ErrorCode.INVALID_REQUEST, "")


def test_old_versions_know_no_share_coordinators() -> None:
    """Key type 2 came with version 6."""
    client = share_world.served()
    for version in (3, 5):
        refused = found(client, share_world.share_key(client), version)
        assert refused["errorCode"] == ErrorCode.INVALID_REQUEST


def test_asking_for_a_coordinator_creates_the_topic() -> None:
    """It is not there yet in the same answer."""
    client = share_world.served()
    now = Instants(client.now_ms, client.now_ms)
    client.cluster.topics.delete(SHARE_STATE_TOPIC, now)
    error = found(client, share_world.share_key(client))["errorCode"]
    assert error == ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert found(client, share_world.share_key(client))["errorCode"] == ErrorCode.NONE


def test_only_brokers_may_find_share_coordinators() -> None:
    """CLUSTER_ACTION is asked for."""
    client = share_world.served(rule(Operation.DESCRIBE, ResourceType.GROUP, "g"))
    error = found(client, share_world.share_key(client))["errorCode"]
    assert error == ErrorCode.CLUSTER_AUTHORIZATION_FAILED


# -- How share partitions and group coordinators reach the share coordinators ------------------


class Asker:
    """Asks the persister of a cluster, and keeps what it is told.

    Args:
        client: Has the cluster, and lets time pass.
    """

    def __init__(self, client: FieldsClient) -> None:
        self.client = client
        self.topic_id = topic_id(client.cluster)
        self.key = SharePartitionKey(GROUP, self.topic_id, 0)
        self.told: list[Any] = []

    @property
    def now(self) -> Instants:
        """The present."""
        return Instants(self.client.now_ms, self.client.now_ms)

    def ask(self, verb: str, request: Any) -> None:  # noqa: ANN401 - any request of the port
        """Ask for something."""
        self.client.cluster.latest = self.now
        persister = self.client.cluster.share_coordinators.persister
        getattr(persister, verb)(request, self.told.append, self.now)

    def initialize(self, *partitions: int, start_offset: int = 3) -> None:
        """Begin to keep the state of partitions of the topic."""
        starts = tuple(PartitionStart(each, 1, start_offset) for each in partitions)
        self.ask("initialize", InitializeState(GROUP, ((self.topic_id, starts),)))


def test_state_goes_there_and_back() -> None:
    """All five, where the coordinator is there: each is told before the call returns."""
    asker = Asker(served())
    asker.initialize(0, 1)
    batches = (StateBatch(3, 5, 2, 1),)
    asker.ask("write", WriteState(asker.key, 1, 0, 6, 3, batches))
    asker.ask("read", ReadState(asker.key, 2))
    asker.ask("summary", ReadState(asker.key, -1))
    asker.ask("delete", DeleteState(GROUP, ((asker.topic_id, (0, 1)),)))
    asker.ask("read", ReadState(asker.key, 2))
    both = PersisterAnswer(((asker.topic_id, (PartitionOutcome(0), PartitionOutcome(1))),))
    assert asker.told == [
        both,
        StateWritten(),
        StateRead(1, 6, ()),
        StateSummary(1, 2, 6, 3),
        both,
        StateRead(
            error=ErrorCode.INVALID_REQUEST,
            message="Error in read state RPC. "
            "Read operation on uninitialized share partition not allowed.",
        ),
    ]


def test_the_topic_is_created_when_it_is_needed() -> None:
    """Whoever asks first waits for the second attempt, about 2 seconds."""
    asker = Asker(served())
    asker.client.cluster.topics.delete(SHARE_STATE_TOPIC, asker.now)
    began_ms = asker.client.now_ms
    asker.initialize(0)
    assert SHARE_STATE_TOPIC in asker.client.cluster.image.topics
    assert asker.told == []
    asker.client.wait(1_500)
    assert asker.told == []
    asker.client.wait(1_000)
    assert asker.told == [PersisterAnswer(((asker.topic_id, (PartitionOutcome(0),)),))]
    assert asker.client.now_ms == began_ms + 2_500


def test_a_coordinator_that_is_away_is_asked_again() -> None:
    """Its broker is stopped; after another election the call goes on."""
    client = served(broker_ids=(1, 2), share_state_partitions=1, share_state_min_isr=1)
    asker = Asker(client)
    asker.initialize(0)
    client.cluster.operations.stop(1, asker.now)
    asker.ask("read", ReadState(asker.key, 1))
    assert len(asker.told) == 1
    client.wait(5_000)
    assert asker.told[1:] == [StateRead(1, 3)]


def test_a_call_gives_up_after_five_attempts() -> None:
    """2, 4, 8 and 16 seconds lie between them, a fifth more or less; then the error is told."""
    client = served(share_state_partitions=1)
    asker = Asker(client)
    client.cluster.hosted.append_failure = ErrorCode.NOT_ENOUGH_REPLICAS
    asker.initialize(0)
    client.wait(23_900)
    assert asker.told == []
    client.wait(12_200)
    outcome = PartitionOutcome(0, ErrorCode.COORDINATOR_NOT_AVAILABLE)
    assert asker.told == [PersisterAnswer(((asker.topic_id, (outcome,)),))]


def test_a_lookup_gives_up_too() -> None:
    """Without a leader of the topic's partition."""
    client = served(share_state_partitions=1)
    asker = Asker(client)
    client.cluster.leadership.elect(SHARE_STATE_TOPIC, 0, -1, asker.now)
    asker.ask("write", WriteState(asker.key, 1, 0, 6, 3, ()))
    client.wait(37_000)
    text = "Exhausted max retries to find coordinator without success."
    error = ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert asker.told == [StateWritten(error, f"Error in find coordinator. {text}")]


def test_a_call_about_nothing_fails_as_a_whole() -> None:
    """As Kafka's parameters do that are not valid."""
    asker = Asker(served())
    asker.ask("delete", DeleteState(GROUP, ()))
    asker.initialize()
    failed = PersisterAnswer(failure=ErrorCode.UNKNOWN_SERVER_ERROR)
    assert asker.told == [failed, failed]


@pytest.mark.parametrize(
    ("attempts", "drawn", "expected"),
    [(1, 0.5, 2_000), (1, 0.0, 1_600), (2, 0.5, 4_000), (4, 0.5, 16_000), (9, 0.9, 30_000)],
)
def test_backoff_doubles_up_to_half_a_minute(attempts: int, drawn: float, expected: int) -> None:
    """Source: ExponentialBackoff.backoff."""
    assert backoff_ms(attempts, drawn) == expected
