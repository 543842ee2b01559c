"""A log whose older records were cleaned away loads to the same state."""

from coordinator_sim.coordinator.contract import CoordinatorConfig
from coordinator_sim.harness.group_driver import GroupDriver, answer
from coordinator_sim.harness.harness import Harness
from coordinator_sim.protocol.errors import ErrorCode
from coordinator_sim.protocol.messages import (
    FetchedGroup,
    OffsetFetchGroup,
    OffsetFetchRequest,
    OffsetFetchResponse,
)
from coordinator_sim.protocol.records import LogKey, LogRecord


def loaded(records: list[LogRecord]) -> GroupDriver:
    """The group of a broker that loads these records."""
    group = GroupDriver(Harness(CoordinatorConfig(group_initial_rebalance_delay_ms=0)))
    group.harness.resign()
    group.harness.append(group.harness.partition_of(group.group_id), tuple(records))
    group.harness.elect(leader_epoch=2)
    return group


def offsets_of(group: GroupDriver) -> FetchedGroup:
    """Everything the group has committed."""
    request = OffsetFetchRequest(groups=(OffsetFetchGroup(group_id=group.group_id),))
    return answer(group.harness.call(request, api_version=8), OffsetFetchResponse).groups[0]


def test_compaction_does_not_change_the_loaded_state() -> None:
    """OLOAD-020: the last record of each key is enough."""
    group = GroupDriver(Harness(CoordinatorConfig(group_initial_rebalance_delay_ms=0)))
    group.commit(1)
    leader, _ = group.stable(2)
    group.commit(5, member_id=leader, generation_id=group.generation_id)
    batches = group.harness.log(group.harness.partition_of(group.group_id))
    full = [record for batch in batches for record in batch.records]
    last: dict[LogKey, LogRecord] = {}
    for record in full:
        last.pop(record.key, None)
        last[record.key] = record

    before, after = loaded(full), loaded(list(last.values()))

    assert len(last) < len(full)
    assert (after.state, after.generation_id) == (before.state, before.generation_id)
    assert offsets_of(after) == offsets_of(before)
    assert after.heartbeat(leader, after.generation_id).error_code is ErrorCode.NONE
