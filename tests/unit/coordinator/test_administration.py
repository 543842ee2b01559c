"""Groups described, listed and deleted, as the coordinators of Kafka do it."""

import pytest

from coordinator_sim.coordinator.contract import CoordinatorConfig
from coordinator_sim.harness.group_driver import GroupDriver, answer
from coordinator_sim.harness.harness import Harness
from coordinator_sim.kafka.errors import ErrorCode
from coordinator_sim.kafka.profiles import profile_named
from coordinator_sim.kafka.records import GroupMetadataKey, OffsetCommitKey
from coordinator_sim.messages.delete_groups import (
    DeletableGroupResult,
    DeleteGroupsRequest,
    DeleteGroupsResponse,
)
from coordinator_sim.messages.describe_groups import (
    DescribedGroup,
    DescribeGroupsRequest,
    DescribeGroupsResponse,
)
from coordinator_sim.messages.list_groups import ListedGroup, ListGroupsRequest, ListGroupsResponse

FAMILIES = ("java-4.x", "scala-3.x", "legacy-0.10.2")


def make_harness(profile: str = "java-4.x", partitions: int = 50) -> Harness:
    """A broker without initial delay."""
    config = CoordinatorConfig(
        offsets_topic_num_partitions=partitions, group_initial_rebalance_delay_ms=0
    )
    return Harness(config, profile_named(profile))


def describe(harness: Harness, *names: str, version: int = 5) -> tuple[DescribedGroup, ...]:
    """The descriptions, in the order of the answer."""
    step = harness.call(DescribeGroupsRequest(groups=names), api_version=version)
    return answer(step, DescribeGroupsResponse).groups


def list_groups(
    harness: Harness, *, states: tuple[str, ...] = (), types: tuple[str, ...] = ()
) -> ListGroupsResponse:
    """The whole answer."""
    request = ListGroupsRequest(states_filter=states, types_filter=types)
    return answer(harness.call(request, api_version=5), ListGroupsResponse)


def names_of(listing: ListGroupsResponse) -> list[str]:
    """The listed ids."""
    return [group.group_id for group in listing.groups]


def delete(harness: Harness, *names: str) -> tuple[DeletableGroupResult, ...]:
    """The outcomes, in the order of the answer."""
    step = harness.call(DeleteGroupsRequest(groups_names=names), api_version=2)
    return answer(step, DeleteGroupsResponse).results


# -- DescribeGroups ------------------------------------------------------------------------


@pytest.mark.parametrize("profile", FAMILIES)
def test_unknown_group_is_dead(profile: str) -> None:
    """Up to version 5 an unknown group is described as Dead, without an error."""
    (group,) = describe(make_harness(profile), "nobody")
    assert group == DescribedGroup(group_id="nobody", group_state="Dead")


def test_unknown_group_is_an_error_from_version_6() -> None:
    """From version 6 on an unknown group is Dead and GROUP_ID_NOT_FOUND, with a message."""
    (group,) = describe(make_harness(), "nobody", version=6)
    assert (group.group_state, group.error_code) == ("Dead", ErrorCode.GROUP_ID_NOT_FOUND)
    assert group.error_message == "Group nobody not found."


@pytest.mark.parametrize("profile", ["2.8", "4.4"])
def test_group_that_is_named_often_is_looked_at_once(profile: str) -> None:
    """A short request would otherwise cost members times names; each name has its answer."""
    groups = describe(make_harness(profile), "b", "a", "b", "a", "b")

    assert sorted(each.group_id for each in groups) == ["a", "a", "b", "b", "b"]
    assert len({id(each) for each in groups}) == len({each.group_id for each in groups})


@pytest.mark.parametrize("profile", FAMILIES)
def test_stable_group_shows_all(profile: str) -> None:
    """The protocol, the subscriptions and the assignments of a Stable group are shown."""
    group = GroupDriver(make_harness(profile))
    (leader,) = group.stable(1)
    (described,) = describe(group.harness, "g")
    (member,) = described.members
    assert (described.group_state, described.protocol_data) == ("Stable", "range")
    assert (member.member_metadata, member.member_assignment) == (b"range", leader.encode())
    assert (member.client_id, member.client_host) == ("client", "/127.0.0.1")


@pytest.mark.parametrize(
    ("profile", "shown"), [("java-4.x", True), ("scala-3.x", False), ("legacy-0.10.2", False)]
)
def test_old_assignment_while_rebalancing(profile: str, *, shown: bool) -> None:
    """Outside Stable no protocol and subscription is shown; Java still shows the assignment."""
    group = GroupDriver(make_harness(profile))
    leader, _ = group.stable(2)
    group.join(leader)
    (described,) = describe(group.harness, "g")
    assert (described.group_state, described.protocol_data) == ("PreparingRebalance", "")
    assert {member.member_metadata for member in described.members} == {b""}
    assert all(bool(member.member_assignment) is shown for member in described.members)


@pytest.mark.parametrize(
    ("profile", "name"),
    [
        ("java-4.x", "CompletingRebalance"),
        ("2.8", "CompletingRebalance"),
        ("0.10.2", "AwaitingSync"),
    ],
)
def test_name_of_the_state_before_stable(profile: str, name: str) -> None:
    """The state in which the assignment is awaited has another name since 1.1."""
    group = GroupDriver(make_harness(profile))
    group.join(version=3)
    (described,) = describe(group.harness, "g")
    assert described.group_state == name
    assert [listed.group_state for listed in list_groups(group.harness).groups] == [name]


def test_java_describes_partition_by_partition() -> None:
    """Java answers in the order of a HashMap of partitions, Scala in the order asked for."""
    asked = ("g1", "g2", "", "b", "a", "zz", "g1")
    java = [group.group_id for group in describe(make_harness(), *asked)]
    assert java == ["a", "b", "", "g2", "g1", "g1", "zz"]
    scala = [group.group_id for group in describe(make_harness("scala-3.x"), *asked)]
    assert scala == list(asked)


def test_uncommitted_group_is_dead_to_readers() -> None:
    """Java shows a group once its first record is committed, Scala at once."""
    for profile, state in (("java-4.x", "Dead"), ("scala-3.x", "Empty")):
        group = GroupDriver(make_harness(profile))
        group.harness.hold(high_watermark=True)
        group.commit(1)
        assert [found.group_state for found in describe(group.harness, "g")] == [state]
        assert len(names_of(list_groups(group.harness))) == (state == "Empty")
        group.harness.commit()
        assert [found.group_state for found in describe(group.harness, "g")] == ["Empty"]


@pytest.mark.parametrize("profile", ["java-4.x", "scala-3.x"])
def test_errors_are_of_single_groups(profile: str) -> None:
    """A group of a partition that is not led, or is loading, fails alone, with empty fields."""
    harness = make_harness(profile)
    harness.resign(harness.partition_of("b"))
    harness.coordinator.begin_load(harness.partition_of("b"), 7, harness.now_ms)
    harness.resign(harness.partition_of("a"))
    found = {group.group_id: group for group in describe(harness, "a", "b", "g1")}
    assert found["a"] == DescribedGroup(group_id="a", error_code=ErrorCode.NOT_COORDINATOR)
    assert found["b"].error_code is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    assert found["g1"].error_code is ErrorCode.NONE


# -- ListGroups ----------------------------------------------------------------------------


def test_listing_of_a_simple_group() -> None:
    """A group that only stores offsets is Empty and has no protocol type."""
    group = GroupDriver(make_harness())
    group.commit(1)
    expected = ListedGroup(
        group_id="g", protocol_type="", group_state="Empty", group_type="classic"
    )
    assert list_groups(group.harness).groups == (expected,)


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
    group = GroupDriver(make_harness(profile))
    group.stable(1)
    assert bool(list_groups(group.harness, states=(wanted,)).groups) is found


@pytest.mark.parametrize(
    ("types", "found"), [(("Classic",), True), (("consumer",), False), (("x", "CLASSIC"), True)]
)
def test_type_filter(types: tuple[str, ...], *, found: bool) -> None:
    """Types are compared without case; a filter without a known type lets nothing through."""
    group = GroupDriver(make_harness())
    group.commit(1)
    assert bool(list_groups(group.harness, types=types).groups) is found


def test_listing_while_a_partition_loads() -> None:
    """Java fails as a whole, Scala lists the other groups beside the error."""
    for profile, names in (("java-4.x", []), ("scala-3.x", ["g"])):
        group = GroupDriver(make_harness(profile))
        group.commit(1)
        harness = group.harness
        other = (harness.partition_of("g") + 1) % 50
        harness.resign(other)
        harness.coordinator.begin_load(other, 7, harness.now_ms)
        listing = list_groups(harness)
        assert listing.error_code is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
        assert names_of(listing) == names


def test_partitions_not_led_are_left_out() -> None:
    """Groups of a partition that this broker gave up are not listed, without an error."""
    group = GroupDriver(make_harness())
    group.commit(1)
    group.harness.resign(group.harness.partition_of("g"))
    assert list_groups(group.harness) == ListGroupsResponse()


# -- DeleteGroups --------------------------------------------------------------------------


@pytest.mark.parametrize("profile", FAMILIES)
def test_deletion_by_state(profile: str) -> None:
    """An Empty group goes, one with members stays, an unknown one is an error."""
    group = GroupDriver(make_harness(profile))
    group.stable(1)
    simple = GroupDriver(group.harness, "simple")
    simple.commit(5)
    errors = {
        outcome.group_id: outcome.error_code
        for outcome in delete(group.harness, "g", "simple", "nobody", "simple")
    }
    assert errors == {
        "g": ErrorCode.NON_EMPTY_GROUP,
        "simple": ErrorCode.NONE,
        "nobody": ErrorCode.GROUP_ID_NOT_FOUND,
    }
    assert (group.state, simple.state) == ("Stable", "none")


def test_group_tombstone_of_generation_0() -> None:
    """Java always writes the group's tombstone after those of its offsets, Scala hardly ever."""
    for profile, kinds in (
        ("java-4.x", [OffsetCommitKey, GroupMetadataKey]),
        ("scala-3.x", [OffsetCommitKey]),
    ):
        group = GroupDriver(make_harness(profile))
        group.commit(5)
        delete(group.harness, "g")
        *_, batch = group.harness.log(group.harness.partition_of("g"))
        assert [type(record.key) for record in batch.records] == kinds
        assert all(record.value is None for record in batch.records)


def test_scala_writes_the_tombstone_of_a_generation() -> None:
    """A group that had a generation leaves a record, and so a tombstone, in Scala too."""
    group = GroupDriver(make_harness("scala-3.x"))
    (leader,) = group.stable(1)
    group.leave((leader, None))
    delete(group.harness, "g")
    *_, batch = group.harness.log(group.harness.partition_of("g"))
    assert [record.key for record in batch.records] == [GroupMetadataKey("g")]


def test_java_deletion_waits_for_its_tombstones() -> None:
    """The answer waits for the log, and readers see the group until then; writers do not."""
    group = GroupDriver(make_harness())
    group.commit(5)
    harness = group.harness
    harness.hold(high_watermark=True)
    step = harness.call(DeleteGroupsRequest(groups_names=("g",)), api_version=2)
    assert (step.response, group.state) == (None, "none")
    assert names_of(list_groups(harness)) == ["g"]
    assert describe(harness, "g")[0].group_state == "Empty"
    (reply,) = harness.commit().replies
    assert reply.response == DeleteGroupsResponse(results=(DeletableGroupResult(group_id="g"),))
    assert names_of(list_groups(harness)) == []


def test_java_deletion_waits_twice() -> None:
    """Before it begins, a deletion waits for the writes before it, as if for share groups."""
    for profile, exists in (("4.4", True), ("4.0", False)):
        group = GroupDriver(make_harness(profile))
        group.harness.hold(high_watermark=True)
        group.commit(5)
        group.harness.call(DeleteGroupsRequest(groups_names=("g",)), api_version=2)
        assert (group.state == "Empty") is exists


def test_failed_deletion_changes_nothing() -> None:
    """In Java a refused append is the error of every group of the partition; all of them stay."""
    harness = make_harness(partitions=1)
    GroupDriver(harness, "a").commit(5)
    GroupDriver(harness, "b").commit(5)
    harness.fail_appends(ErrorCode.NOT_ENOUGH_REPLICAS)
    outcomes = delete(harness, "a", "b", "c")
    assert {outcome.error_code for outcome in outcomes} == {ErrorCode.COORDINATOR_NOT_AVAILABLE}
    # Kafka's tables list what came back twice, until the next append is committed.
    assert sorted(names_of(list_groups(harness))) == ["a", "a", "b", "b"]
    GroupDriver(harness, "a").commit(6)
    assert sorted(names_of(list_groups(harness))) == ["a", "b"]


def test_late_deletion() -> None:
    """A deletion that is not committed in time is an error, though the group is gone."""
    group = GroupDriver(make_harness())
    group.commit(5)
    group.harness.hold(high_watermark=True)
    group.harness.call(DeleteGroupsRequest(groups_names=("g",)), api_version=2)
    (reply,) = group.harness.advance(5_000).replies
    error = ErrorCode.COORDINATOR_NOT_AVAILABLE
    expected = DeletableGroupResult(group_id="g", error_code=error)
    assert reply.response == DeleteGroupsResponse(results=(expected,))
    assert group.state == "none"


def test_partition_given_up_fails_its_deletions() -> None:
    """Deletions that wait for a partition that is given up are told NOT_COORDINATOR."""
    group = GroupDriver(make_harness())
    group.harness.hold(high_watermark=True)
    group.commit(5)
    group.harness.call(DeleteGroupsRequest(groups_names=("g",)), api_version=2)
    replies = group.harness.resign().replies
    expected = DeletableGroupResult(group_id="g", error_code=ErrorCode.NOT_COORDINATOR)
    assert replies[-1].response == DeleteGroupsResponse(results=(expected,))


def test_scala_deletion_does_not_ask_the_log() -> None:
    """Scala answers at once, whether or not the tombstones are replicated."""
    group = GroupDriver(make_harness("scala-3.x"))
    group.commit(5)
    group.harness.hold(high_watermark=True)
    (outcome,) = delete(group.harness, "g")
    assert outcome.error_code is ErrorCode.NONE
    assert names_of(list_groups(group.harness)) == []


def test_deleted_group_starts_again() -> None:
    """A later commit makes a simple group of the same id."""
    group = GroupDriver(make_harness())
    group.commit(5)
    delete(group.harness, "g")
    group.commit(6)
    assert (group.state, group.generation_id) == ("Empty", 0)


def test_pending_member_does_not_protect_its_group() -> None:
    """A group with a handed-out id alone is Empty and goes; the id is unknown afterwards."""
    group = GroupDriver(make_harness())
    group.join()
    (outcome,) = delete(group.harness, "g")
    assert (outcome.error_code, group.state) == (ErrorCode.NONE, "none")


@pytest.mark.parametrize("profile", FAMILIES)
def test_requests_without_groups(profile: str) -> None:
    """Requests that name no group are answered with empty lists."""
    harness = make_harness(profile)
    assert (describe(harness), delete(harness)) == ((), ())


def test_order_of_outcomes() -> None:
    """Java goes by partition; Scala hands out a map of the names."""
    asked = ("g1", "nope", "g2", "", "a", "b", "a")
    java = [outcome.group_id for outcome in delete(make_harness(), *asked)]
    assert java == ["a", "b", "", "g2", "g1", "nope"]
    scala = [outcome.group_id for outcome in delete(make_harness("scala-3.x"), *asked)]
    assert scala == ["", "a", "b", "nope", "g1", "g2"]


def test_a_deleted_group_is_listed_until_its_tombstone_is_committed() -> None:
    """Readers see what is committed."""
    harness = make_harness()
    GroupDriver(harness).commit(1)
    harness.hold(high_watermark=True)
    step = harness.call(DeleteGroupsRequest(groups_names=("g",)), api_version=2)
    assert step.replies == ()
    assert names_of(list_groups(harness)) == ["g"]
    harness.commit()
    assert names_of(list_groups(harness)) == []
