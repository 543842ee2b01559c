"""Records that a consumer awaits: those of all its partitions, looked at one by one."""

from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import UNSET

from coordinator_sim.kafka.resources import TopicPartition
from coordinator_sim.sim.scenario import TopicSpec
from coordinator_sim.sim.scenario.load import ConstantLoad, Load, ZipfKeys
from coordinator_sim.sim.topic_logs import AwaitedRecords, TopicLogs
from coordinator_sim_scenarios.strategies import loads

PARTITIONS = [TopicPartition("t", number) for number in (5, *range(5), *range(6, 16))]
MOST = 2


def logs_with(load: Load, *, skewed: bool = False) -> TopicLogs:
    """A topic of sixteen partitions with a load."""
    keys = ZipfKeys() if skewed else UNSET
    return TopicLogs((TopicSpec(name="t", partitions=16, load=load, keys=keys),))


@settings(max_examples=60)
@given(
    loads(), st.booleans(), st.lists(st.integers(0, 100_000), max_size=20), st.integers(0, 9_000)
)
def test_what_is_taken_is_what_every_partition_has(
    load: Load,
    skewed: bool,
    waits_us: list[int],
    first: int,
) -> None:
    """Partitions come in the consumer's order; too many are left to others."""
    logs = logs_with(load, skewed=skewed)
    awaited = AwaitedRecords(logs)
    now_us = first
    positions = {each: logs.end_offset(each, now_us) for each in PARTITIONS}
    awaited.watch(positions)
    for wait_us in waits_us:
        assert awaited.watches(positions)
        assert awaited.first_us == logs.first_arrival_us(positions)
        now_us += wait_us
        ends = {each: logs.end_offset(each, now_us) for each in PARTITIONS}
        wanted = [(each, positions[each], ends[each]) for each in PARTITIONS]
        wanted = [(each, begin, end) for each, begin, end in wanted if end > begin]
        taken = awaited.take(now_us, MOST)
        if sum(end - begin for _, begin, end in wanted) > MOST or 4 * len(wanted) > 16:
            assert taken is None
            assert not awaited.watches(positions)
            awaited.watch(ends)
        else:
            assert taken == wanted
        positions = ends


def test_changed_topic_is_not_watched_as_before() -> None:
    """Further partitions change what every partition gets; so do records written by hand."""
    logs = logs_with(ConstantLoad(total_per_s=30))
    awaited = AwaitedRecords(logs)
    positions = dict.fromkeys(PARTITIONS, 0)
    awaited.watch(positions)
    logs.grow("t", 20, 100)
    assert not awaited.watches(positions)

    awaited.watch(positions)
    assert awaited.watches(positions)
    logs.append(PARTITIONS[0], 1, 200)
    assert not awaited.watches(positions)
    awaited.watch(positions)
    assert not awaited.watches(positions)


def test_other_positions_are_not_watched() -> None:
    """Whoever resets a position has to watch it anew."""
    awaited = AwaitedRecords(logs_with(ConstantLoad(total_per_s=30)))
    positions = dict.fromkeys(PARTITIONS, 0)
    awaited.watch(positions)

    assert not awaited.watches({**positions, PARTITIONS[1]: 1})
    awaited.forget()
    assert not awaited.watches(positions)
