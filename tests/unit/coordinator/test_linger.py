"""The linger of a release that no setting changes, and the times of records in a batch."""

import pytest

from coordinator_sim.harness.group_driver import GroupDriver
from tests.unit.coordinator.worlds import world_of


def drive(profile: str) -> GroupDriver:
    """One group on a broker whose linger is the release's own."""
    return GroupDriver(world_of(profile))


@pytest.mark.parametrize("profile", ["4.0", "4.1"])
def test_commits_within_the_linger_share_a_batch(profile: str) -> None:
    """The first write opens a batch, 5 ms later it is appended and all are answered."""
    group = drive(profile)
    assert group.commit(1).replies == ()
    assert group.harness.advance(3).replies == ()
    assert group.commit(2).replies == ()
    assert [reply.at_ms for reply in group.harness.advance(2).replies] == [5, 5]
    (batch,) = group.harness.log(0)
    assert [batch.time_of(index) for index in range(2)] == [0, 3]


@pytest.mark.parametrize("profile", ["4.2", "4.3", "4.4"])
def test_later_profiles_append_at_once(profile: str) -> None:
    """From 4.2 on a batch is appended when nothing else is to be done."""
    assert [reply.at_ms for reply in drive(profile).commit(1).replies] == [0]
