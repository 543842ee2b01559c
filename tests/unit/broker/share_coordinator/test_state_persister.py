"""How share partitions and group coordinators reach the share coordinators."""

from typing import Any

import pytest

from coordinator_sim.broker.contract import Instants
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
from coordinator_sim.coordinator.modern.share.persister import (
    DeleteState,
    InitializeState,
    PartitionOutcome,
    PartitionStart,
    PersisterAnswer,
)
from coordinator_sim.kafka.errors import ErrorCode
from coordinator_sim.kafka.partitioning import SHARE_STATE_TOPIC
from tests.unit.broker.fields_client import FieldsClient
from tests.unit.broker.share_coordinator.share_world import GROUP, served, topic_id


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
