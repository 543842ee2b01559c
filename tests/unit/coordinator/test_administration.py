"""Groups described, listed and deleted, as the coordinators of Kafka do it."""

import pytest

from coordinator_sim.harness.group_driver import GroupDriver, answer
from coordinator_sim.harness.harness import Harness
from coordinator_sim.kafka.errors import ErrorCode
from coordinator_sim.messages import delete_groups, describe_groups
from coordinator_sim.messages.list_groups import ListGroupsRequest, ListGroupsResponse
from tests.unit.coordinator.worlds import world_of

FAMILIES = ("java-4.x", "scala-3.x", "legacy-0.10.2")


def describe(
    harness: Harness, *names: str, version: int = 5
) -> tuple[describe_groups.DescribedGroup, ...]:
    """The descriptions, in the order of the answer."""
    step = harness.call(describe_groups.DescribeGroupsRequest(groups=names), api_version=version)
    return answer(step, describe_groups.DescribeGroupsResponse).groups


def list_groups(
    harness: Harness, *, states: tuple[str, ...] = (), types: tuple[str, ...] = ()
) -> ListGroupsResponse:
    """The whole answer."""
    request = ListGroupsRequest(states_filter=states, types_filter=types)
    return answer(harness.call(request, api_version=5), ListGroupsResponse)


def delete(harness: Harness, *names: str) -> tuple[delete_groups.DeletableGroupResult, ...]:
    """The outcomes, in the order of the answer."""
    step = harness.call(delete_groups.DeleteGroupsRequest(groups_names=names), api_version=2)
    return answer(step, delete_groups.DeleteGroupsResponse).results


# -- DescribeGroups ------------------------------------------------------------------------


def test_unknown_group_is_an_error_from_version_6() -> None:
    """From version 6 on an unknown group is Dead and GROUP_ID_NOT_FOUND, with a message."""
    (group,) = describe(world_of(), "nobody", version=6)
    assert (group.group_state, group.error_code) == ("Dead", ErrorCode.GROUP_ID_NOT_FOUND)
    assert group.error_message == "Group nobody not found."


@pytest.mark.parametrize("profile", ["2.8", "4.4"])
def test_group_that_is_named_often_is_looked_at_once(profile: str) -> None:
    """A short request would otherwise cost members times names; each name has its answer."""
    groups = describe(world_of(profile), "b", "a", "b", "a", "b")

    assert sorted(each.group_id for each in groups) == ["a", "a", "b", "b", "b"]
    assert len({id(each) for each in groups}) == len({each.group_id for each in groups})


# -- ListGroups ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("profile", "wanted", "found"),
    [
        ("java-4.x", " STABLE\t", True),
        ("java-4.x", "\u00a0stable", False),
        ("scala-3.x", "STABLE", True),
        ("scala-3.x", " stable", False),
        ("2.8", "Stable", True),
        ("2.8", "stable", False),
        ("java-4.x", "nonsense", False),
    ],
)
def test_state_filter(profile: str, wanted: str, *, found: bool) -> None:
    """Case and blanks in the filter count in some Kafkas; an unknown name matches nothing."""
    group = GroupDriver(world_of(profile))
    group.stable(1)
    assert bool(list_groups(group.harness, states=(wanted,)).groups) is found


# -- DeleteGroups --------------------------------------------------------------------------


@pytest.mark.parametrize("profile", FAMILIES)
def test_requests_without_groups(profile: str) -> None:
    """Requests that name no group are answered with empty lists."""
    harness = world_of(profile)
    assert (describe(harness), delete(harness)) == ((), ())
