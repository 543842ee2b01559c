"""The records that a poll takes from the world's topics."""

from collections.abc import Mapping
from typing import Final

from coordinator_sim.clients.contract import ConsumerPort
from coordinator_sim.kafka.resources import TopicPartition
from coordinator_sim.sim.processing import Records
from coordinator_sim.sim.work_ledger import WorkLedger
from coordinator_sim.sim.world import World

MAX_POLL_RECORDS: Final = 500
"""Default of `max.poll.records`."""


def take_records(
    world: World, consumer: ConsumerPort, ledger: WorkLedger, host: str
) -> list[Records]:
    """Move positions past up to `MAX_POLL_RECORDS` records, and return these.

    Args:
        world: The topics, and the network to their leaders.
        consumer: Whose positions they are.
        ledger: Told what is held.
        host: Member on whose machine the consumer runs.
    """
    is_whole, is_told = world.network.is_whole, ledger.is_on
    fetchable = consumer.fetchable
    if is_whole:
        level = _level_records(world, consumer, fetchable)
        if level is not None:
            if is_told:
                position = next(iter(fetchable.values()))
                end = level[0].end if level else position
                ledger.hold_level(fetchable, position, end)
            return level
    now_us, end_offset = world.environment.now_us, world.topic_logs.end_offset
    room = MAX_POLL_RECORDS
    found: list[Records] = []
    for partition, position in fetchable.items():
        end = end_offset(partition, now_us)
        if is_told:
            ledger.hold(partition, position, end)
        if not is_whole and not world.reaches_leader(host, partition):
            continue
        taken = min(end - position, room)
        if taken > 0:
            consumer.advance_position(partition, position + taken)
            found.append(Records(partition, position, position + taken))
            room -= taken
    return found


def _level_records(
    world: World, consumer: ConsumerPort, fetchable: Mapping[TopicPartition, int]
) -> list[Records] | None:
    """Take all records of partitions that are level with each other, as most always are.

    Returns:
        None, and nothing is taken, where they are not level, are ahead of their ends, or the poll
        has no room for all.
    """
    offsets = set(fetchable.values())
    if len(offsets) != 1:
        return None
    position = offsets.pop()
    end = world.topic_logs.common_end(fetchable, world.environment.now_us)
    if end is None or not 0 <= (end - position) * len(fetchable) <= MAX_POLL_RECORDS:
        return None
    if end == position:
        return []
    if not consumer.advance_all(fetchable, end):
        return None
    return [Records(partition, position, end) for partition in fetchable]
