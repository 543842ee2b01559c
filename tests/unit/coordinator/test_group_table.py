"""The order of a partition's groups in Kafka's table."""

from coordinator_sim.harness.group_driver import GroupDriver, answer
from coordinator_sim.messages.group_records import GroupMetadataKey, GroupMetadataValue
from coordinator_sim.messages.list_groups import ListGroupsRequest, ListGroupsResponse
from coordinator_sim.messages.records import LogRecord
from tests.unit.coordinator.worlds import world_of


def record(group_id: str, generation_id: int) -> LogRecord:
    """A generation without members."""
    value = GroupMetadataValue(
        protocol_type="consumer", generation=generation_id, protocol=None, leader=None
    )
    return LogRecord(GroupMetadataKey(group_id), value, 3)


def listed(*records: LogRecord) -> list[str]:
    """The groups that ListGroups names after a load of these records."""
    world = world_of(elect=False)
    world.append(0, records)
    world.elect(0)
    response = world.call(ListGroupsRequest(), api_version=4).response
    assert isinstance(response, ListGroupsResponse)
    return [group.group_id for group in response.groups]


def test_table_grows_for_a_group_that_is_loaded_again() -> None:
    """Two groups have two slots, and four as soon as one of them is put once more.

    As Kafka 4.3.1 and 4.4.0 listed them.
    """
    assert listed(record("b", 0), record("a", 0)) == ["a", "b"]
    assert listed(record("b", 0), record("a", 0), record("b", 2)) == ["b", "a"]


def test_group_made_after_a_load_of_nothing_is_listed_once_it_is_committed() -> None:
    """The log goes on where it ended, though all of it was compacted away."""
    world = world_of()
    first = GroupDriver(world, "first")
    first.commit(1)
    first.commit(2)
    world.resign()
    world.replace_log(0, ())
    world.elect(0, 2)
    world.hold(high_watermark=True)
    GroupDriver(world, "second").join()
    request = ListGroupsRequest()
    assert answer(world.call(request, api_version=4), ListGroupsResponse).groups == ()
    world.commit()
    listed = answer(world.call(request, api_version=4), ListGroupsResponse).groups
    assert [group.group_id for group in listed] == ["second"]
