"""The alarm of a cluster is armed in time, whoever arms a timer."""

import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from random import Random
from types import FrameType

import pytest

from coordinator_sim.broker.metadata.changes import ConfigsChanged
from coordinator_sim.errors import ConfigError
from coordinator_sim.kafka import partitioning
from coordinator_sim.kafka.api_keys import ApiKey
from coordinator_sim_conformance.field_frames import Fields
from coordinator_sim_conformance.real_kafka.data_questions import batch
from tests.unit.broker.data_world import batch_of
from tests.unit.broker.kept_world import KeptWorld
from tests.unit.broker.shares.share_world import ShareWorld, share_world
from tests.unit.broker.wake_ups import missed_wake_ups

STEPS = 150
MEMBERS = ("a", "b", "c")


class World:
    """Three brokers to which anything happens, by the draws of one seed."""

    def __init__(self, seed: int) -> None:
        self.random = Random(seed)  # noqa: S311 - not for secrets
        self.world: ShareWorld = share_world((1, 2, 3), partitions=2)
        self.cluster = self.world.cluster
        for topic in (partitioning.SHARE_STATE_TOPIC, partitioning.TRANSACTIONS_TOPIC):
            self.cluster.topics.create_asked_for(topic, self.world.now)
        self.world.start()

    def send(self, api: ApiKey, version: int, fields: Fields) -> None:
        """Send a request to a broker that runs, and wait for no answer."""
        running = [each for each in (1, 2, 3) if self.cluster.brokers.is_running(each)]
        if running:
            self.world.connect(self.random.choice(running)).begin(api, version, fields)

    def join(self) -> None:
        """A member of a classic group joins: its session and the rebalance have timers."""
        fields = {
            "groupId": self.random.choice(MEMBERS),
            "groupInstanceId": self.random.choice(MEMBERS),
            "memberId": "",
            "sessionTimeoutMs": self.random.choice((6_000, 30_000)),
            "rebalanceTimeoutMs": 60_000,
            "protocolType": "consumer",
            "protocols": [{"name": "range", "metadata": bytes(10)}],
        }
        self.send(ApiKey.JOIN_GROUP, 5, fields)

    def beat(self) -> None:
        """A member of a new group joins."""
        fields: Fields = {
            "groupId": "new",
            "memberId": self.random.choice(MEMBERS),
            "memberEpoch": 0,
            "rebalanceTimeoutMs": 5_000,
            "subscribedTopicNames": ["lines"],
            "topicPartitions": [],
        }
        self.send(ApiKey.CONSUMER_GROUP_HEARTBEAT, 1, fields)

    def share(self) -> None:
        """A member of the share group fetches, and waits; records are locked."""
        wait_ms = self.random.choice((0, 300))
        member = self.random.choice(MEMBERS)
        self.send(ApiKey.SHARE_FETCH, 2, self.world.fetching(0, member, maxWaitMs=wait_ms))

    def produce(self) -> None:
        """A producer waits for followers."""
        data = batch(b"v", magic=2, start_ms=self.world.clients.now_ms)
        partition = {"index": self.random.randrange(2), "records": data}
        topic = {"name": "lines", "partitionData": [partition]}
        fields = {"acks": -1, "timeoutMs": 700, "topicData": [topic]}
        self.send(ApiKey.PRODUCE, 9, fields)

    def begin_transaction(self) -> None:
        """A producer of transactions begins, and may never end."""
        name = self.random.choice(MEMBERS)
        partitions = self.cluster.image.topics[partitioning.TRANSACTIONS_TOPIC].partitions
        owner = partitions[partitioning.partition_for(name, len(partitions))].leader_id
        if not self.cluster.brokers.is_running(owner):
            return
        client = self.world.connect(owner)
        fields: Fields = {"transactionalId": name, "transactionTimeoutMs": 5_000}
        answer = client.call(ApiKey.INIT_PRODUCER_ID, 2, fields)
        place = {"name": "lines", "partitions": [self.random.randrange(2)]}
        added = {
            "transactionalId": name,
            "producerId": answer["producerId"],
            "producerEpoch": answer["producerEpoch"],
            "topics": [place],
        }
        client.call(ApiKey.ADD_PARTITIONS_TO_TXN, 2, added)

    def hold(self) -> None:
        """Followers lag, or catch up."""
        topic = self.random.choice(
            ("lines", partitioning.OFFSETS_TOPIC, partitioning.SHARE_STATE_TOPIC)
        )
        hold = self.random.random() < 0.5
        self.cluster.operations.hold_high_watermark(topic, 0, hold=hold, now=self.world.now)

    def disturb(self) -> None:
        """A broker is stopped, frozen, or comes back."""
        operations, now = self.cluster.operations, self.world.now
        what = self.random.choice((operations.stop, operations.pause, operations.resume))
        with suppress(ConfigError):  # it runs, or does not
            what(self.random.choice((1, 2, 3)), now)

    def pass_time(self) -> None:
        """Time passes, in small and in large steps."""
        self.world.client.wait(self.random.choice((1, 20, 500, 6_000, 400_000)))


@pytest.mark.parametrize("seed", range(8))
def test_a_pushed_alarm_is_never_later_than_a_deadline(seed: int) -> None:
    """After every request, disturbance and wait, whatever the families have armed."""
    world = World(seed)
    verbs: tuple[Callable[[], None], ...] = (
        *(world.join, world.beat, world.share, world.produce, world.begin_transaction, world.hold),
        *(world.disturb, world.pass_time),
    )
    for number in range(STEPS):
        verb = world.random.choice(verbs)
        verb()
        assert missed_wake_ups(world.cluster) == [], f"step {number}: {verb.__name__}"


def test_the_first_records_arm_the_maintenance_of_logs() -> None:
    """A new cluster arms nothing; its first records do."""
    world = share_world()
    assert world.cluster.next_group_deadline_ms() is not None
    assert missed_wake_ups(world.cluster) == []


def test_a_broker_that_goes_on_arms_its_timers() -> None:
    """A frozen broker's timers arm nothing while others fire, and all again when it goes on."""
    world = World(0)
    for member in MEMBERS:
        fields = {"groupId": member, "memberId": member, "memberEpoch": 0, "topicPartitions": []}
        fields |= {"rebalanceTimeoutMs": 5_000, "subscribedTopicNames": ["lines"]}
        for broker_id in (1, 2, 3):
            world.world.connect(broker_id).begin(ApiKey.CONSUMER_GROUP_HEARTBEAT, 1, fields)
    world.cluster.operations.election_delay_ms = 600_000
    for broker_id in (1, 2, 3):
        world.cluster.operations.pause(broker_id, world.world.now)
    world.world.client.wait(1_000)
    for broker_id in (1, 2, 3):
        world.cluster.operations.resume(broker_id, world.world.now)
        assert missed_wake_ups(world.cluster) == []


def flush_questions(path: Path, partitions: int) -> int:
    """How often a flush deadline is computed for a Produce to that many partitions."""
    world = KeptWorld(path)
    world.create("t", partitions)
    world.cluster.change(ConfigsChanged(2, "t", {"flush.ms": "10000"}))
    records = batch_of(b"x")
    entries = [{"index": index, "records": records} for index in range(partitions)]
    request = {
        "transactionalId": None,
        "acks": -1,
        "timeoutMs": 1_000,
        "topicData": [{"name": "t", "partitionData": entries}],
    }
    found = 0

    def count(frame: FrameType, event: str, _argument: object) -> None:
        nonlocal found
        found += event == "call" and frame.f_code.co_qualname == "FileStore.flush_deadline_ms"

    sys.setprofile(count)
    try:
        world.call(ApiKey.PRODUCE, 9, request)
    finally:
        sys.setprofile(None)
    assert missed_wake_ups(world.cluster) == []
    world.leave()
    return found


def test_an_append_arms_the_flush_of_its_own_log_alone(tmp_path: Path) -> None:
    """Twice the partitions cost twice the questions, and no flush is missed."""
    once, twice = (flush_questions(tmp_path / f"{count}", count) for count in (10, 20))
    assert 0 < twice == 2 * once
