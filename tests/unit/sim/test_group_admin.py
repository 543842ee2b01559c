"""A worker's admin client and a sink's consumer group, at the group's coordinator."""

from coordinator_sim.connect import effects
from coordinator_sim.kafka.resources import TopicPartition
from tests.unit.sim.test_data_plane import Bench

T0, T1, U0 = TopicPartition("t", 0), TopicPartition("t", 1), TopicPartition("u", 0)


def test_offsets_of_a_group_are_altered_listed_and_deleted() -> None:
    """All by the coordinator; what is gone is no longer listed, and a group without any is gone."""
    bench = Bench()
    bench.topic("t", 2)
    bench.topic("u", 1)
    bench.run(1_000)
    bench.plane.carry_out(effects.AlterGroupOffsets(1, "connect-x", {T1: 7, U0: 3, T0: 5}))
    assert bench.run(1_000) == [(1, None, None)]
    bench.plane.carry_out(effects.ListGroupOffsets(2, "connect-x"))
    assert bench.run(1_000) == [(2, {T0: 5, T1: 7, U0: 3}, None)]
    bench.plane.carry_out(effects.DeleteGroupOffsets(3, "connect-x", (T1,)))
    assert bench.run(1_000) == [(3, None, None)]
    bench.plane.carry_out(effects.ListGroupOffsets(4, "connect-x"))
    assert bench.run(1_000) == [(4, {T0: 5, U0: 3}, None)]
    bench.plane.carry_out(effects.DeleteGroup(5, "connect-x"))
    assert bench.run(1_000) == [(5, None, None)]
    bench.plane.carry_out(effects.DeleteGroup(6, "connect-x"))
    assert bench.run(1_000) == [(6, None, "GroupIdNotFoundException")]


def test_the_coordinator_is_looked_for_as_long_as_the_api_may_take() -> None:
    """While no broker lives the call waits, and fails after a minute."""
    bench = Bench(brokers=1)
    bench.brokers.crash(1, 600_000)
    bench.plane.carry_out(effects.ListGroupOffsets(1, "connect-x"))
    assert bench.run(59_000) == []
    assert bench.run(35_000) == [(1, None, "TimeoutException")]
