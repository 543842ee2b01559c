"""Which broker coordinates a group, and what an election changes."""

from typing import TYPE_CHECKING

import pytest

from coordinator_sim.kafka.errors import ErrorCode
from coordinator_sim.kafka.partitioning import OFFSETS_TOPIC
from coordinator_sim.messages import find_coordinator, metadata, offset_commit, requests

if TYPE_CHECKING:
    from collections.abc import Callable

    from .conftest import Client


def error_of(response: object) -> ErrorCode:
    """The outcome of the one partition of a commit."""
    assert isinstance(response, offset_commit.OffsetCommitResponse)
    return response.topics[0].partitions[0].error_code


def coordinator_of(client: "Client", broker_id: int) -> tuple[int, ErrorCode]:
    """Node and error that a broker answers to a FindCoordinator for the group g."""
    response = client.ask(
        broker_id, find_coordinator.FindCoordinatorRequest(coordinator_keys=("g",)), 6
    )
    assert isinstance(response, find_coordinator.FindCoordinatorResponse)
    (found,) = response.coordinators
    return found.node_id, found.error_code


def test_partitions_are_spread_over_the_brokers(make_client: "Callable[..., Client]") -> None:
    """Partition p of the offsets topic is led by broker (p mod N) + 1 at the start."""
    client = make_client(brokers=3)
    assert [client.leader_of(partition) for partition in range(4)] == [1, 2, 3, 1]


def test_any_broker_names_the_groups_coordinator(client: "Client") -> None:
    """FindCoordinator answers the leader of the group's partition."""
    assert coordinator_of(client, 1) == coordinator_of(client, 2) == (client.leader, ErrorCode.NONE)


def test_only_the_leader_coordinates_the_group(client: "Client") -> None:
    """Another broker answers NOT_COORDINATOR."""
    assert error_of(client.commit(client.leader, 5)) is ErrorCode.NONE
    other = 3 - client.leader
    assert error_of(client.commit(other, 5)) is ErrorCode.NOT_COORDINATOR


def test_load_takes_its_time(make_client: "Callable[..., Client]") -> None:
    """A new leader answers COORDINATOR_LOAD_IN_PROGRESS until it has read the log."""
    client = make_client(load_ms=50)
    assert error_of(client.commit(client.leader, 5)) is ErrorCode.NONE
    client.move()
    assert error_of(client.commit(client.leader, 6)) is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    client.wait(49)
    assert error_of(client.commit(client.leader, 6)) is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    client.wait(1)
    assert client.offset(client.leader).committed_offset == 5


def test_empty_log_is_loaded_at_once(make_client: "Callable[..., Client]") -> None:
    """The load of an empty partition of the offsets log ends within the election."""
    client = make_client(load_ms=50)
    client.move()
    assert error_of(client.commit(client.leader, 6)) is ErrorCode.NONE


def test_stale_load_is_not_finished(make_client: "Callable[..., Client]") -> None:
    """A partition that moved on during its load is not served by the loader."""
    client = make_client(load_ms=50)
    client.commit(client.leader, 5)
    client.move()
    loader = client.leader
    client.wait(20)
    client.move()
    client.wait(100)
    assert client.leader != loader
    assert error_of(client.commit(loader, 6)) is ErrorCode.NOT_COORDINATOR
    assert client.offset(client.leader).committed_offset == 5


def test_loader_that_restarts_begins_anew(make_client: "Callable[..., Client]") -> None:
    """The load of a process that died is not finished for the one that came after it."""
    client = make_client(load_ms=50, brokers=1)
    client.commit(1, 5)
    for _ in range(2):
        client.cluster.operations.stop(1, client.now)
        client.cluster.operations.resume(1, client.now)
        client.wait(30)
    assert error_of(client.commit(1, 6)) is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    client.wait(20)
    assert client.offset(1).committed_offset == 5


def test_held_commits_are_answered_when_the_replicas_catch_up(client: "Client") -> None:
    """What the leader appends meanwhile is not committed, and nobody is told that it is."""
    operations = client.cluster.operations
    operations.hold_high_watermark(OFFSETS_TOPIC, client.partition, hold=True, now=client.now)
    assert client.commit(client.leader, 5) is None
    client.wait(1_000)
    assert not client.answers
    operations.hold_high_watermark(OFFSETS_TOPIC, client.partition, hold=False, now=client.now)
    assert error_of(client.answers[1]) is ErrorCode.NONE
    assert error_of(client.commit(client.leader, 6)) is ErrorCode.NONE


def test_fencing_is_told(make_client: "Callable[..., Client]") -> None:
    """Whoever listens hears when the controller gives a dead broker up, and not of a short loss."""
    client = make_client(brokers=3)
    fenced: list[int] = []
    client.cluster.cluster_events.broker_fenced.append(fenced.append)
    client.cluster.operations.stop(2, client.now)
    client.wait(999)
    client.cluster.operations.resume(2, client.now)
    client.cluster.operations.stop(3, client.now)
    client.wait(1_000)
    assert fenced == [3]


def test_metadata_names_topics_and_living_brokers(make_client: "Callable[..., Client]") -> None:
    """A fenced broker is missing, and internal topics say that they are."""
    client = make_client(brokers=3)
    client.cluster.operations.stop(3, client.now)
    client.wait(1_000)
    response = client.ask(1, requests.metadata_request(None), 12)
    assert isinstance(response, metadata.MetadataResponse)
    assert [node.node_id for node in response.brokers] == [1, 2]
    assert {topic.name: topic.is_internal for topic in response.topics} == {
        OFFSETS_TOPIC: True,
        "t": False,
    }


@pytest.mark.parametrize(("profile", "moves"), [("2.8", 0), ("3.9", 0), ("4.0", 2), ("4.4", 2)])
def test_offsets_topic_that_is_made_anew_begins_anew(
    make_client: "Callable[..., Client]", profile: str, moves: int
) -> None:
    """Whoever led a partition of the old one; what was committed there is gone.

    QUIRK: in Scala a broker that led it at a later epoch than 0 does not load the new one.
    Source: GroupMetadataManager.maybeUpdateCoordinatorEpoch.
    """
    client = make_client(profile)

    def commit(offset: int) -> int:
        before = client.offset(client.leader).committed_offset
        client.commit(client.leader, offset)
        client.wait(100)
        return before

    commit(1)
    for _ in range(moves):
        client.move()
        assert commit(1) == 1
    client.cluster.topics.delete(OFFSETS_TOPIC, client.now)
    client.cluster.topics.create_asked_for(OFFSETS_TOPIC, client.now)

    assert (commit(2), commit(3)) == (-1, 2)
    client.move()
    assert (commit(4), commit(5)) == (3, 4)
