"""A client of a whole cluster that asks by structs, and waits for answers."""

from collections.abc import Callable

import pytest
from msgspec import Struct

from coordinator_sim.broker.cluster import Cluster
from coordinator_sim.broker.contract import Call, Instants
from coordinator_sim.broker.security.authorizer import Authorizer
from coordinator_sim.broker.settings import ClusterSettings, Endpoint
from coordinator_sim.coordinator.contract import CoordinatorConfig
from coordinator_sim.kafka.context import RequestContext
from coordinator_sim.kafka.partitioning import OFFSETS_TOPIC, partition_for
from coordinator_sim.kafka.profiles import profile_named
from coordinator_sim.messages import offset_commit, offset_fetch
from coordinator_sim.messages.requests import Request

PARTITIONS = 4


class Client:
    """Asks the brokers of one cluster, in the order of the test."""

    def __init__(
        self,
        profile: str = "java-4.x",
        authorizer: Authorizer | None = None,
        *,
        brokers: int = 2,
        load_ms: int = 0,
    ) -> None:
        settings = ClusterSettings(
            profile=profile_named(profile),
            broker_ids=tuple(range(1, brokers + 1)),
            coordinator=CoordinatorConfig(
                offsets_topic_num_partitions=PARTITIONS, group_initial_rebalance_delay_ms=0
            ),
            load_ms=load_ms,
        )
        self.cluster = Cluster(
            settings, endpoint=lambda *_: Endpoint("localhost", 9092), authorizer=authorizer
        )
        self.cluster.operations.election_delay_ms = 1_000
        self.now_ms = 0
        self.answers: dict[int, Struct | None] = {}
        """Every answer so far, by the number of its request, in the order in which they came."""
        self.cluster.topics.create_asked_for(OFFSETS_TOPIC, self.now)
        self.cluster.topics.create_spread("t", 2, self.now)
        self.partition = partition_for("g", PARTITIONS)
        self._asked = 0

    @property
    def now(self) -> Instants:
        """The present on both clocks."""
        return Instants(self.now_ms, self.now_ms)

    def ask(self, broker_id: int, request: Request, version: int) -> Struct | None:
        """The answer, or None while the broker has none; then it comes into `answers`."""
        self._asked += 1
        context = RequestContext(token=self.cluster.new_token(), api_version=version)
        self.cluster.handle(
            Call(
                broker_id=broker_id,
                api=request.api_key,
                request=request,
                context=context,
                now=self.now,
            ),
            _Place(self.answers, self._asked),
        )
        return self.answers.get(self._asked)

    def wait(self, ms: int) -> None:
        """Time passes at every broker."""
        end_ms = self.now_ms + ms
        while (
            due_ms := self.cluster.scheduler.next_deadline_ms()
        ) is not None and due_ms <= end_ms:
            self.now_ms = max(due_ms, self.now_ms)
            self.cluster.expire(self.now)
        self.now_ms = end_ms

    @property
    def leader(self) -> int:
        """Who leads the partition of `g`; -1 for nobody."""
        return self.leader_of(self.partition)

    def leader_of(self, partition: int) -> int:
        """Who leads an offsets partition; -1 for nobody."""
        return self.cluster.image.topics[OFFSETS_TOPIC].partitions[partition].leader_id

    def move(self, to: int | None = None, *, old_notices: bool = True) -> None:
        """Elect another leader for the partition of `g`, the next broker by default."""
        self.cluster.operations.elect(
            OFFSETS_TOPIC, self.partition, to, self.now, old_notices=old_notices
        )

    def commit(self, broker_id: int, offset: int) -> Struct | None:
        """Commit an offset of t-0 in `g`, outside any generation."""
        topics = (
            offset_commit.OffsetCommitRequestTopic(
                "t", partitions=(offset_commit.OffsetCommitRequestPartition(0, offset),)
            ),
        )
        return self.ask(
            broker_id, offset_commit.OffsetCommitRequest(group_id="g", topics=topics), 9
        )

    def offset(
        self, broker_id: int, *, stable: bool = False
    ) -> offset_fetch.OffsetFetchResponsePartitions:
        """What a fetch of t-0 in `g` says."""
        group = offset_fetch.OffsetFetchRequestGroup(
            group_id="g",
            topics=(offset_fetch.OffsetFetchRequestTopics("t", partition_indexes=(0,)),),
        )
        request = offset_fetch.OffsetFetchRequest(groups=(group,), require_stable=stable)
        response = self.ask(broker_id, request, 8)
        assert isinstance(response, offset_fetch.OffsetFetchResponse)
        return response.groups[0].topics[0].partitions[0]


class _Place:
    """Where one answer goes."""

    def __init__(self, answers: dict[int, Struct | None], number: int) -> None:
        self._answers = answers
        self._number = number

    def answered(self, response: Struct | None) -> None:
        """Keep the answer."""
        self._answers[self._number] = response

    def closed(self) -> None:
        """Keep that there is none."""
        self._answers[self._number] = None


@pytest.fixture
def make_client() -> Callable[..., Client]:
    """Makes a client of a new cluster of two brokers."""
    return Client


@pytest.fixture
def client() -> Client:
    """A client of a new cluster of two brokers."""
    return Client()
