"""Coordinators of brokers that stand still: what they miss, and hear of when they go on."""

from typing import TYPE_CHECKING

from coordinator_sim.kafka.errors import ErrorCode
from coordinator_sim.kafka.partitioning import OFFSETS_TOPIC
from coordinator_sim.messages.offset_commit import OffsetCommitResponse

if TYPE_CHECKING:
    from collections.abc import Callable

    from .conftest import Client

FOREVER_MS = 1 << 40


def error_of(response: object) -> ErrorCode:
    """The outcome of the one partition of a commit."""
    assert isinstance(response, OffsetCommitResponse)
    return response.topics[0].partitions[0].error_code


def test_a_broker_that_goes_on_before_it_is_missed_leads_on(client: "Client") -> None:
    """The cluster never knew of the pause: the same leader at the same epoch."""
    old = client.leader
    epoch = client.cluster.image.topics[OFFSETS_TOPIC].partitions[client.partition].leader_epoch
    client.cluster.operations.pause(old, client.now)
    client.wait(500)
    client.cluster.operations.resume(old, client.now)
    client.wait(5_000)

    state = client.cluster.image.topics[OFFSETS_TOPIC].partitions[client.partition]
    assert (state.leader_id, state.leader_epoch) == (old, epoch)
    assert error_of(client.commit(old, 5)) is ErrorCode.NONE


def test_a_broker_hears_at_last_that_it_leads_no_more(client: "Client") -> None:
    """What it takes meanwhile is committed by nobody, and refused when it goes on."""
    old = client.leader
    client.cluster.operations.pause(old, client.now)
    client.wait(1_000)
    assert client.leader != old
    assert client.commit(old, 6) is None
    client.cluster.operations.resume(old, client.now)

    assert error_of(client.answers[max(client.answers)]) is ErrorCode.NOT_COORDINATOR
    assert error_of(client.commit(client.leader, 7)) is ErrorCode.NONE
    assert client.offset(client.leader).committed_offset == 7


def test_a_broker_that_is_elected_while_it_stands_still_loads_when_it_goes_on(
    client: "Client",
) -> None:
    """The controller has not missed it yet when the old leader dies."""
    assert error_of(client.commit(client.leader, 5)) is ErrorCode.NONE
    old = client.leader
    (new,) = {1, 2} - {old}
    operations = client.cluster.operations
    operations.stop(old, client.now)
    operations.election_delay_ms = FOREVER_MS
    operations.pause(new, client.now)
    client.wait(1_000)
    assert client.leader == new
    assert error_of(client.commit(new, 6)) is ErrorCode.NOT_COORDINATOR
    operations.resume(new, client.now)

    assert client.offset(new).committed_offset == 5
    assert error_of(client.commit(new, 6)) is ErrorCode.NONE


def test_a_load_ends_when_its_broker_goes_on(make_client: "Callable[..., Client]") -> None:
    """The time that a load takes does not pass for a process that stands still."""
    client = make_client(load_ms=200)
    assert error_of(client.commit(client.leader, 5)) is ErrorCode.NONE
    client.move()
    new = client.leader
    client.cluster.operations.pause(new, client.now)
    client.wait(500)
    assert error_of(client.commit(new, 6)) is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    client.cluster.operations.resume(new, client.now)

    assert error_of(client.commit(new, 6)) is ErrorCode.NONE


def test_a_broker_that_dies_while_it_stands_still_has_missed_nothing(client: "Client") -> None:
    """A new process knows only what it is told."""
    old = client.leader
    operations = client.cluster.operations
    operations.pause(old, client.now)
    client.wait(1_000)
    operations.stop(old, client.now)
    operations.resume(old, client.now)
    client.wait(5_000)

    assert client.leader != old
    assert error_of(client.commit(old, 6)) is ErrorCode.NOT_COORDINATOR
    assert error_of(client.commit(client.leader, 6)) is ErrorCode.NONE


def test_a_topic_that_goes_while_a_broker_stands_still_is_given_up(client: "Client") -> None:
    """The election that it has missed was of a partition that is not there any more."""
    old = client.leader
    client.cluster.operations.pause(old, client.now)
    client.wait(1_000)
    client.cluster.topics.delete(OFFSETS_TOPIC, client.now)
    client.cluster.operations.resume(old, client.now)

    assert error_of(client.commit(old, 6)) is ErrorCode.NOT_COORDINATOR
