"""A leader that was deposed without noticing answers, but loses nothing that was acknowledged."""

from itertools import pairwise
from typing import TYPE_CHECKING

import pytest

from coordinator_sim.kafka.errors import ErrorCode
from coordinator_sim.messages.offset_commit import OffsetCommitResponse

if TYPE_CHECKING:
    from collections.abc import Callable

    from .conftest import Client


def error_of(response: object) -> ErrorCode:
    """The outcome of the one partition of a commit."""
    assert isinstance(response, OffsetCommitResponse)
    return response.topics[0].partitions[0].error_code


def depose(client: "Client") -> tuple[int, int]:
    """Elect another leader, loaded, while the old one notices nothing: old and new leader."""
    old = client.leader
    client.move(old_notices=False)
    return old, client.leader


@pytest.mark.parametrize("profile", ["java-4.x", "scala-3.x"])
def test_old_leader_acknowledges_nothing(
    make_client: "Callable[..., Client]", profile: str
) -> None:
    """What only the old leader has is not committed, and so its client waits until it fails."""
    client = make_client(profile)
    assert error_of(client.commit(client.leader, 5)) is ErrorCode.NONE
    old, new = depose(client)
    assert old != new
    assert client.commit(old, 6) is None
    assert client.offset(old).committed_offset == 5
    assert error_of(client.commit(new, 7)) is ErrorCode.NONE
    before = set(client.answers)
    client.wait(5_000)
    (late,) = [answer for number, answer in client.answers.items() if number not in before]
    assert error_of(late) is not ErrorCode.NONE
    assert client.offset(new).committed_offset == 7


def test_error_of_a_commit_that_is_not_replicated(client: "Client") -> None:
    """After offsets.commit.timeout.ms Java says COORDINATOR_NOT_AVAILABLE."""
    old, _ = depose(client)
    client.commit(old, 6)
    client.wait(4_999)
    assert not client.answers
    client.wait(1)
    (late,) = client.answers.values()
    assert error_of(late) is ErrorCode.COORDINATOR_NOT_AVAILABLE


def test_old_leader_notices(client: "Client") -> None:
    """When it notices, what waits is told NOT_COORDINATOR, and the divergent end is dropped."""
    assert error_of(client.commit(client.leader, 5)) is ErrorCode.NONE
    old, new = depose(client)
    assert client.commit(old, 6) is None
    client.cluster.groups.notice(client.partition, client.now)
    assert error_of(client.answers[max(client.answers)]) is ErrorCode.NOT_COORDINATOR
    assert error_of(client.commit(old, 8)) is ErrorCode.NOT_COORDINATOR
    assert client.offset(new).committed_offset == 5
    before = dict(client.answers)
    client.cluster.groups.notice(client.partition, client.now)
    assert client.answers == before


def test_old_leader_is_elected_again(client: "Client") -> None:
    """A leader elected again loads the other replicas' log; what it appended alone is gone."""
    assert error_of(client.commit(client.leader, 5)) is ErrorCode.NONE
    old, new = depose(client)
    client.commit(old, 6)
    assert error_of(client.commit(new, 7)) is ErrorCode.NONE
    client.move(old)
    assert client.leader == old
    assert client.offset(old).committed_offset == 7
    assert error_of(client.commit(old, 9)) is ErrorCode.NONE
    log = client.cluster.groups.offsets_topic.batches(client.partition)
    ends = [(batch.base_offset, batch.next_offset) for batch in log]
    assert len(ends) == 3
    assert all(end == begin for (_, end), (begin, _) in pairwise(ends))


def test_dead_leader_needs_no_notice(client: "Client") -> None:
    """A deposed leader that dies has nothing more to say."""
    old, _ = depose(client)
    client.commit(old, 6)
    client.cluster.operations.stop(old, client.now)
    client.cluster.groups.notice(client.partition, client.now)
    client.wait(10_000)
    assert not client.answers
