"""A topology in one line: how partitions are spread, and when its members are restarted."""

import pytest
from hypothesis import given, reject
from hypothesis import strategies as st

from coordinator_sim.errors import ConfigError
from coordinator_sim.sim.scenario import topology


@given(topics=st.integers(1, 60), extra=st.integers(0, 2_000))
def test_partitions_are_spread_evenly(topics: int, extra: int) -> None:
    """All of them, and no topic has two more than another."""
    spread = topology.spread_partitions(topics, topics + extra)
    assert sum(spread.values()) == topics + extra
    assert len(spread) == topics
    assert max(spread.values()) - min(spread.values()) <= 1


@given(
    members=st.integers(1, 40),
    pace_ms=st.integers(0, 60_000),
    every_min=st.integers(1, 600),
    crashes=st.integers(0, 20),
    hours=st.integers(1, 200),
)
def test_deploys_and_crashes_keep_apart(
    members: int, pace_ms: int, every_min: int, crashes: int, hours: int
) -> None:
    """Each deploy restarts everybody once, and is over before the next; crashes fall between."""
    names = list(topology.named_members(members, static=False))
    deploys = topology.Deploys(every_ms=every_min * 60_000, pace_ms=pace_ms)
    duration_ms = hours * 3_600_000
    try:
        planned = topology.deploy_restarts(names, deploys, duration_ms)
        crashed = topology.crash_restarts(
            names, crashes, duration_ms, down_ms=deploys.down_ms, planned=planned
        )
    except ConfigError:
        reject()
    assert len(planned) % members == 0
    for start in range(0, len(planned), members):
        assert [each.member for each in planned[start : start + members]] == names
    for before, after in zip(
        planned[members - 1 :: members], planned[members::members], strict=False
    ):
        assert after.at_ms - before.at_ms >= deploys.down_ms + topology.SETTLE_MS
    assert len(crashed) == crashes
    for crash in crashed:
        nearest = min(
            (abs(crash.at_ms - each.at_ms) for each in planned), default=topology.SETTLE_MS
        )
        assert nearest >= topology.SETTLE_MS
        assert crash.at_ms + crash.down_ms < duration_ms
    assert len(topology.in_order(planned, crashed)) == len(planned) + crashes


def test_a_deploy_that_does_not_fit_is_refused() -> None:
    """Neither one that is longer than its rhythm, nor a run that ends before the first."""
    names = list(topology.named_members(37, static=False))
    with pytest.raises(ConfigError, match=r"restarting 37 members one every 30 s takes 1,148 s"):
        topology.deploy_restarts(names, topology.Deploys(every_ms=600_000), 10**9)
    with pytest.raises(ConfigError, match="hold no deploy: the first begins after 302,400 s"):
        topology.deploy_restarts(names, topology.Deploys(every_ms=604_800_000), 3_600_000)
    with pytest.raises(ConfigError, match=r"--crashes 1000: must be from 0 to \d+"):
        topology.crash_restarts(names, 1_000, 3_600_000, down_ms=8_000)
