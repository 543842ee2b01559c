"""A cluster whose coordinators check producers, and a client of it that waits for answers."""

from collections.abc import Callable

import pytest

from coordinator_sim.broker import Cluster, make_services
from coordinator_sim.broker.authorizer import Authorizer
from coordinator_sim.broker.transactions import ProducerVerifier
from coordinator_sim.coordinator.contract import CoordinatorConfig, CoordinatorResult
from coordinator_sim.coordinator.coordinator import GroupCoordinator
from coordinator_sim.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from coordinator_sim.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
    OffsetFetchResponse,
    OffsetFetchResponsePartitions,
)
from coordinator_sim.messages.requests import Request, Response
from coordinator_sim.protocol.context import RequestContext
from coordinator_sim.protocol.partitioning import partition_for
from coordinator_sim.protocol.profiles import profile_named
from coordinator_sim.protocol.seeded_ids import SeededIds

PARTITIONS = 4


class Client:
    """Asks the brokers of one cluster, in the order of the test."""

    def __init__(self, profile: str = "java-4.x", authorizer: Authorizer | None = None) -> None:
        chosen = profile_named(profile)
        self.services = services = make_services(PARTITIONS, chosen, authorizer)

        def make(broker_id: int) -> GroupCoordinator:
            config = CoordinatorConfig(
                broker_id=broker_id,
                offsets_topic_num_partitions=PARTITIONS,
                group_initial_rebalance_delay_ms=0,
            )
            return GroupCoordinator(
                config,
                chosen,
                ids=SeededIds(broker_id),
                append_policy=services.offsets_logs,
                verifier=ProducerVerifier(services.transactions, services.offsets_logs),
            )

        self.cluster = Cluster(
            2, offsets_partitions=PARTITIONS, make_coordinator=make, services=services
        )
        self.cluster.create_topic("t", 2)
        self.partition = partition_for("g", PARTITIONS)
        self.now_ms = 0
        self.answers: dict[int, Response] = {}
        self._token = 0

    def ask(self, broker_id: int, request: Request, version: int) -> Response | None:
        """The answer, or None while the broker has none; then it comes into `answers`."""
        self._token += 1
        handler = self.cluster.brokers[broker_id].handler_of(type(request))
        context = RequestContext(token=self._token, api_version=version)
        self.take(broker_id, handler(request, context, self.now_ms))
        return self.answers.get(self._token)

    def take(self, broker_id: int, result: CoordinatorResult) -> None:
        """What a verb caused at a broker."""
        broker = self.cluster.brokers[broker_id]
        passed = broker.pass_on(result)
        self.cluster.store(passed.batches, broker_id)
        self.answers |= {reply.token: reply.response for reply in passed.replies}

    def wait(self, ms: int) -> None:
        """Time passes at every broker."""
        self.now_ms += ms
        for broker_id, broker in self.cluster.brokers.items():
            self.take(broker_id, broker.coordinator.expire(self.now_ms))

    @property
    def leader(self) -> int:
        """Who leads the partition of `g`."""
        return self.cluster.leader_of(self.partition)

    def commit(self, broker_id: int, offset: int) -> Response | None:
        """Commit an offset of t-0 in `g`, outside any generation."""
        topics = (
            OffsetCommitRequestTopic("t", partitions=(OffsetCommitRequestPartition(0, offset),)),
        )
        return self.ask(broker_id, OffsetCommitRequest(group_id="g", topics=topics), 9)

    def offset(self, broker_id: int, *, stable: bool = False) -> OffsetFetchResponsePartitions:
        """What a fetch of t-0 in `g` says."""
        group = OffsetFetchRequestGroup(
            group_id="g", topics=(OffsetFetchRequestTopics("t", partition_indexes=(0,)),)
        )
        request = OffsetFetchRequest(groups=(group,), require_stable=stable)
        response = self.ask(broker_id, request, 8)
        assert isinstance(response, OffsetFetchResponse)
        return response.groups[0].topics[0].partitions[0]


@pytest.fixture
def make_client() -> Callable[..., Client]:
    """Makes a client of a new cluster of two brokers."""
    return Client


@pytest.fixture
def client() -> Client:
    """A client of a new cluster of two brokers."""
    return Client()
