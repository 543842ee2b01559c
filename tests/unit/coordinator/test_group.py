"""A group's own consistency: what must not happen to it raises, whatever led there."""

import pytest

from coordinator_sim.coordinator.classic.group import Group, Member
from coordinator_sim.coordinator.contract import CoordinatorConfig
from coordinator_sim.coordinator.runtime import Runtime
from coordinator_sim.errors import InvariantViolation, OperationAborted
from coordinator_sim.kafka.profiles import DEFAULT_PROFILE
from coordinator_sim.kafka.seeded_ids import SeededIds
from coordinator_sim.messages.join_group import JoinGroupRequestProtocol


def make_group(*members: Member) -> Group:
    """A group of these members."""
    runtime = Runtime(CoordinatorConfig(), DEFAULT_PROFILE, SeededIds(), None)
    group = Group(runtime, "g", 0)
    for member in members:
        group.add(member)
    return group


def make_member(
    member_id: str, *, instance_id: str | None = None, protocol: str = "range"
) -> Member:
    """A member that offers one protocol."""
    offered = (JoinGroupRequestProtocol(protocol, b""),)
    return Member(member_id, instance_id, "c", "/h", 10_000, 60_000, "consumer", offered)


def test_instance_cannot_be_in_a_group_twice() -> None:
    """A second member of one instance id would leave the first one unreachable."""
    with pytest.raises(InvariantViolation, match="instance i is already in g"):
        make_group(make_member("a", instance_id="i"), make_member("b", instance_id="i"))


def test_group_without_common_protocol_cannot_choose() -> None:
    """Admission keeps such members apart; together they have no protocol."""
    group = make_group(make_member("a"), make_member("b", protocol="sticky"))
    with pytest.raises(OperationAborted, match="g has no common protocol"):
        group.select_protocol()


def test_metadata_of_a_protocol_not_offered() -> None:
    """A member has no subscription for an assignor it does not support."""
    with pytest.raises(OperationAborted, match="a does not support 'sticky'"):
        make_member("a").metadata("sticky")


def test_dynamic_member_cannot_be_replaced() -> None:
    """Only an instance id ties a new member id to an old one."""
    member = make_member("a")
    with pytest.raises(InvariantViolation, match="a of g is not static"):
        make_group(member).replace_static(member, "b")


@pytest.mark.parametrize("odd_one", ["a", "b", "c"])
def test_majority_decides_the_protocol_whoever_comes_first(odd_one: str) -> None:
    """Two of three prefer sticky. Source: ClassicGroup.selectProtocol."""
    group = make_group()
    for member_id in ("a", "b", "c"):
        names = ("range", "sticky") if member_id == odd_one else ("sticky", "range")
        offered = tuple(JoinGroupRequestProtocol(name, b"") for name in names)
        group.add(Member(member_id, None, "c", "/h", 10_000, 60_000, "consumer", offered))
    assert group.select_protocol() == "sticky"
