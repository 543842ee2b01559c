"""The edge of a broker: rights, topics and shapes around the group coordinator."""

from typing import TypeVar

import pytest

from coordinator_sim.broker.metadata.image import topic_id_for
from coordinator_sim.broker.security.authorizer import Acl, AclAuthorizer, Operation, ResourceType
from coordinator_sim.coordinator.contract import CoordinatorConfig
from coordinator_sim.harness.group_driver import GroupDriver, answer
from coordinator_sim.harness.harness import Harness
from coordinator_sim.kafka.errors import ErrorCode
from coordinator_sim.kafka.profiles import profile_named
from coordinator_sim.messages.delete_groups import DeleteGroupsRequest, DeleteGroupsResponse
from coordinator_sim.messages.describe_groups import DescribeGroupsRequest, DescribeGroupsResponse
from coordinator_sim.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from coordinator_sim.messages.join_group import JoinGroupRequest, JoinGroupResponse
from coordinator_sim.messages.leave_group import LeaveGroupRequest, LeaveGroupResponse
from coordinator_sim.messages.list_groups import ListGroupsRequest, ListGroupsResponse
from coordinator_sim.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
)
from coordinator_sim.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
    OffsetDeleteResponse,
    OffsetDeleteResponsePartition,
    OffsetDeleteResponseTopic,
)
from coordinator_sim.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
    OffsetFetchResponse,
    OffsetFetchResponsePartitions,
    OffsetFetchResponseTopics,
)
from coordinator_sim.messages.requests import GroupRequest, Response
from coordinator_sim.messages.sync_group import SyncGroupRequest, SyncGroupResponse
from coordinator_sim.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitResponse,
)

R = TypeVar("R", bound=Response)

ALICE = "User:alice"
T_ID, U_ID, NO_ID = topic_id_for("t"), topic_id_for("u"), topic_id_for("nowhere")
UNKNOWN = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
DENIED = ErrorCode.TOPIC_AUTHORIZATION_FAILED
NO_GROUP = ErrorCode.GROUP_AUTHORIZATION_FAILED


def make_harness(profile: str = "java-4.x") -> Harness:
    """A broker that knows the topics t and u, of two partitions each."""
    config = CoordinatorConfig(group_initial_rebalance_delay_ms=0)
    harness = Harness(config, profile_named(profile))
    harness.set_topic("t", 2, T_ID)
    harness.set_topic("u", 2, U_ID)
    return harness


def allow(harness: Harness, *rules: tuple[Operation, ResourceType, str]) -> None:
    """Allow Alice this alone, and nobody else anything."""
    harness.authorize(
        AclAuthorizer(
            Acl(operation=operation, resource_type=kind, name=name, principal=ALICE)
            for operation, kind, name in rules
        )
    )


def ask(harness: Harness, request: GroupRequest, kind: type[R], version: int) -> R:
    """Alice's request, answered at once."""
    return answer(harness.call(request, api_version=version, principal=ALICE), kind)


def commit_of(*names: str, topic_id: bytes | None = None) -> OffsetCommitRequest:
    """A commit of partitions 0 and 7 of each topic."""
    partitions = (OffsetCommitRequestPartition(0, 5), OffsetCommitRequestPartition(7, 5))
    topics = tuple(
        OffsetCommitRequestTopic(name, partitions=partitions, topic_id=topic_id) for name in names
    )
    return OffsetCommitRequest(group_id="g", topics=topics)


def outcomes(response: OffsetCommitResponse | TxnOffsetCommitResponse) -> dict[str, list[str]]:
    """Topic to what was said of its partitions, in the order of the answer."""
    return {
        topic.name: [f"{p.partition_index} {p.error_code.name}" for p in topic.partitions]
        for topic in response.topics
    }


# -- OffsetCommit --------------------------------------------------------------------------


def test_refusals_before_outcomes() -> None:
    """What does not exist is refused; the refusals of a topic come before its outcomes."""
    response = ask(make_harness(), commit_of("t", "v"), OffsetCommitResponse, 9)
    assert outcomes(response) == {
        "t": [f"7 {UNKNOWN.name}", "0 NONE"],
        "v": [f"0 {UNKNOWN.name}", f"7 {UNKNOWN.name}"],
    }


def test_nothing_left_is_answered_without_the_group() -> None:
    """A commit to unknown topics alone shows no error of the group."""
    response = ask(make_harness(), commit_of("v"), OffsetCommitResponse, 9)
    assert set(outcomes(response)) == {"v"}
    request = OffsetCommitRequest(
        group_id="g", generation_id_or_member_epoch=9, topics=commit_of("v").topics
    )
    assert ask(make_harness(), request, OffsetCommitResponse, 9) == response


def test_0_10_2_does_not_look_at_partitions() -> None:
    """In 0.10.2 a partition that does not exist may be committed, a topic may not."""
    response = ask(make_harness("0.10.2"), commit_of("t", "v"), OffsetCommitResponse, 2)
    assert outcomes(response)["t"] == ["0 NONE", "7 NONE"]
    assert outcomes(response)["v"] == [f"0 {UNKNOWN.name}", f"7 {UNKNOWN.name}"]


def test_commit_by_topic_id() -> None:
    """From version 10 on topics have ids; one of nobody is UNKNOWN_TOPIC_ID."""
    harness = make_harness()
    for topic_id, said in (
        (T_ID, {"t": [f"7 {UNKNOWN.name}", "0 NONE"]}),
        (NO_ID, {"": ["0 UNKNOWN_TOPIC_ID", "7 UNKNOWN_TOPIC_ID"]}),
    ):
        request = commit_of("", topic_id=topic_id)
        response = ask(harness, request, OffsetCommitResponse, 10)
        assert outcomes(response) == said
        assert [topic.topic_id for topic in response.topics] == [topic_id]


def test_commit_needs_read_on_the_group() -> None:
    """Without READ on the group each partition is refused, unknown ones too."""
    harness = make_harness()
    allow(harness, (Operation.DESCRIBE, ResourceType.GROUP, "g"))
    response = ask(harness, commit_of("v"), OffsetCommitResponse, 9)
    assert outcomes(response) == {"v": [f"0 {NO_GROUP.name}", f"7 {NO_GROUP.name}"]}


def test_commit_needs_read_on_topics() -> None:
    """A topic that may not be read is refused, whether it exists or not."""
    harness = make_harness()
    allow(
        harness,
        (Operation.READ, ResourceType.GROUP, "g"),
        (Operation.READ, ResourceType.TOPIC, "t"),
        (Operation.DESCRIBE, ResourceType.TOPIC, "u"),
    )
    response = ask(harness, commit_of("t", "u", "v"), OffsetCommitResponse, 9)
    denied = [f"0 {DENIED.name}", f"7 {DENIED.name}"]
    assert outcomes(response) == {"t": [f"7 {UNKNOWN.name}", "0 NONE"], "u": denied, "v": denied}


def test_0_10_2_conceals_topics() -> None:
    """In 0.10.2 a topic that may not be described looks like one that does not exist."""
    harness = make_harness("0.10.2")
    allow(
        harness,
        (Operation.READ, ResourceType.GROUP, "g"),
        (Operation.DESCRIBE, ResourceType.TOPIC, "u"),
    )
    response = ask(harness, commit_of("t", "u"), OffsetCommitResponse, 2)
    assert outcomes(response)["t"][0] == f"0 {UNKNOWN.name}"
    assert outcomes(response)["u"][0] == f"0 {DENIED.name}"


def test_parked_commit_is_completed_when_it_is_answered() -> None:
    """The refusals of a commit that waits for the log are told with its outcomes."""
    harness = make_harness()
    harness.hold(high_watermark=True)
    assert harness.call(commit_of("t"), api_version=9).response is None
    (reply,) = harness.commit().replies
    assert isinstance(reply.response, OffsetCommitResponse)
    assert outcomes(reply.response) == {"t": [f"7 {UNKNOWN.name}", "0 NONE"]}


# -- TxnOffsetCommit -----------------------------------------------------------------------


def txn_commit_of(*names: str) -> TxnOffsetCommitRequest:
    """The same commit in a transaction."""
    return TxnOffsetCommitRequest(
        transactional_id="x",
        group_id="g",
        producer_id=1,
        producer_epoch=0,
        topics=commit_of(*names).topics,
    )


def test_txn_commit_asks_for_both_rights() -> None:
    """WRITE on the transactional id is asked first, then READ on the group, then the topics."""
    write = (Operation.WRITE, ResourceType.TRANSACTIONAL_ID, "x")
    read = (Operation.READ, ResourceType.GROUP, "g")
    no_id = ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED.name
    for rules, said in (((), no_id), ((write,), NO_GROUP.name), ((write, read), DENIED.name)):
        harness = make_harness()
        allow(harness, *rules)
        response = ask(harness, txn_commit_of("t"), TxnOffsetCommitResponse, 3)
        assert outcomes(response) == {"t": [f"0 {said}", f"7 {said}"]}


@pytest.mark.parametrize(
    ("version", "error"),
    [(1, ErrorCode.COORDINATOR_NOT_AVAILABLE), (2, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)],
)
def test_old_producers_do_not_know_loading(version: int, error: ErrorCode) -> None:
    """Before version 2 a load under way is told as COORDINATOR_NOT_AVAILABLE."""
    harness = make_harness()
    partition = harness.partition_of("g")
    harness.resign(partition)
    harness.coordinator.begin_load(partition, 9, harness.now_ms)
    response = ask(harness, txn_commit_of("t"), TxnOffsetCommitResponse, version)
    assert outcomes(response)["t"] == [f"7 {UNKNOWN.name}", f"0 {error.name}"]


# -- OffsetDelete --------------------------------------------------------------------------


def delete_of(*names: str) -> OffsetDeleteRequest:
    """Delete partitions 0 and 7 of each topic."""
    return OffsetDeleteRequest(
        group_id="g",
        topics=tuple(
            OffsetDeleteRequestTopic(
                name, (OffsetDeleteRequestPartition(0), OffsetDeleteRequestPartition(7))
            )
            for name in names
        ),
    )


def test_delete_merges_refusals() -> None:
    """What does not exist is refused, the rest deleted; the refusals come first."""
    harness = make_harness()
    GroupDriver(harness).commit(1)
    response = ask(harness, delete_of("t", "v"), OffsetDeleteResponse, 0)
    assert response.topics == (
        OffsetDeleteResponseTopic(
            "t", (OffsetDeleteResponsePartition(7, UNKNOWN), OffsetDeleteResponsePartition(0))
        ),
        OffsetDeleteResponseTopic(
            "v",
            (OffsetDeleteResponsePartition(0, UNKNOWN), OffsetDeleteResponsePartition(7, UNKNOWN)),
        ),
    )


def test_error_of_the_group_replaces_refusals() -> None:
    """An unknown group is the whole answer, even when no partition was left to ask about."""
    expected = OffsetDeleteResponse(error_code=ErrorCode.GROUP_ID_NOT_FOUND)
    assert ask(make_harness(), delete_of("v"), OffsetDeleteResponse, 0) == expected


def test_delete_rights() -> None:
    """DELETE on the group, READ on each topic."""
    harness = make_harness()
    GroupDriver(harness).commit(1)
    allow(harness, (Operation.READ, ResourceType.GROUP, "g"))
    response = ask(harness, delete_of("t"), OffsetDeleteResponse, 0)
    assert response == OffsetDeleteResponse(error_code=NO_GROUP)
    allow(harness, (Operation.DELETE, ResourceType.GROUP, "g"))
    response = ask(harness, delete_of("t"), OffsetDeleteResponse, 0)
    refused = (OffsetDeleteResponsePartition(0, DENIED), OffsetDeleteResponsePartition(7, DENIED))
    assert response.topics == (OffsetDeleteResponseTopic("t", refused),)


# -- OffsetFetch ---------------------------------------------------------------------------


def fetch_of(*groups: OffsetFetchRequestGroup) -> OffsetFetchRequest:
    """A fetch of those groups."""
    return OffsetFetchRequest(groups=groups)


def test_fetch_does_not_ask_whether_topics_exist() -> None:
    """An unknown topic has no offset, and no error."""
    asked = OffsetFetchRequestGroup(
        group_id="g", topics=(OffsetFetchRequestTopics("v", partition_indexes=(0,)),)
    )
    response = ask(make_harness(), fetch_of(asked), OffsetFetchResponse, 8)
    assert response.groups[0].topics == (
        OffsetFetchResponseTopics(
            "v", partitions=(OffsetFetchResponsePartitions(0, committed_offset=-1),)
        ),
    )


def test_fetch_rights() -> None:
    """Groups fail alone; refused topics follow the others; all topics are those visible."""
    harness = make_harness()
    GroupDriver(harness).commit(4)
    allow(
        harness,
        (Operation.DESCRIBE, ResourceType.GROUP, "g"),
        (Operation.DESCRIBE, ResourceType.TOPIC, "t"),
    )
    named = (
        OffsetFetchRequestTopics("u", partition_indexes=(0,)),
        OffsetFetchRequestTopics("t", partition_indexes=(0,)),
    )
    response = ask(
        harness,
        fetch_of(
            OffsetFetchRequestGroup(group_id="other", topics=None),
            OffsetFetchRequestGroup(group_id="g", topics=named),
            OffsetFetchRequestGroup(group_id="g", topics=None),
        ),
        OffsetFetchResponse,
        8,
    )
    other, of_names, of_all = response.groups
    assert (other.group_id, other.error_code) == ("other", NO_GROUP)
    assert [topic.name for topic in of_names.topics] == ["t", "u"]
    assert of_names.topics[1].partitions == (
        OffsetFetchResponsePartitions(0, error_code=DENIED, committed_offset=-1),
    )
    assert [topic.name for topic in of_all.topics] == ["t"]
    allow(harness, (Operation.DESCRIBE, ResourceType.GROUP, "g"))
    response = ask(
        harness,
        fetch_of(OffsetFetchRequestGroup(group_id="g", topics=None)),
        OffsetFetchResponse,
        8,
    )
    assert response.groups[0].topics == ()


def test_only_refused_groups() -> None:
    """A request for refused groups alone never reaches the coordinator."""
    harness = make_harness()
    allow(harness)
    response = ask(
        harness,
        fetch_of(OffsetFetchRequestGroup(group_id="g", topics=None)),
        OffsetFetchResponse,
        8,
    )
    assert [group.error_code for group in response.groups] == [NO_GROUP]


def test_0_10_2_fetch_needs_read() -> None:
    """In 0.10.2 READ on the group is asked, and a concealed topic is an unknown one."""
    harness = make_harness("0.10.2")
    asked = fetch_of(
        OffsetFetchRequestGroup(
            group_id="g", topics=(OffsetFetchRequestTopics("t", partition_indexes=(0,)),)
        )
    )
    allow(harness, (Operation.DESCRIBE, ResourceType.GROUP, "g"))
    assert ask(harness, asked, OffsetFetchResponse, 1).groups[0].error_code is NO_GROUP
    allow(harness, (Operation.READ, ResourceType.GROUP, "g"))
    (group,) = ask(harness, asked, OffsetFetchResponse, 1).groups
    assert group.topics == (
        OffsetFetchResponseTopics(
            "t",
            partitions=(OffsetFetchResponsePartitions(0, error_code=UNKNOWN, committed_offset=-1),),
        ),
    )


def test_fetch_by_topic_id() -> None:
    """From version 10 on topics have ids; those of all topics are added, or the topic left out."""
    harness = make_harness()
    GroupDriver(harness).commit(4)
    topics = (
        OffsetFetchRequestTopics("", partition_indexes=(0,), topic_id=NO_ID),
        OffsetFetchRequestTopics("", partition_indexes=(0,), topic_id=T_ID),
    )
    request = fetch_of(
        OffsetFetchRequestGroup(group_id="g", topics=topics),
        OffsetFetchRequestGroup(group_id="g", topics=None),
    )
    named, every = ask(harness, request, OffsetFetchResponse, 10).groups
    assert [(topic.topic_id, topic.partitions[0].committed_offset) for topic in named.topics] == [
        (T_ID, 4),
        (NO_ID, -1),
    ]
    assert named.topics[1].partitions[0].error_code is ErrorCode.UNKNOWN_TOPIC_ID
    assert [topic.topic_id for topic in every.topics] == [T_ID]


# -- membership ----------------------------------------------------------------------------


def member_requests(instance_id: str | None = None) -> list[tuple[GroupRequest, type[Response]]]:
    """One request of each kind of a member."""
    return [
        (
            JoinGroupRequest(
                group_id="g",
                session_timeout_ms=10_000,
                member_id="",
                protocol_type="consumer",
                protocols=(),
                group_instance_id=instance_id,
            ),
            JoinGroupResponse,
        ),
        (
            SyncGroupRequest(
                group_id="g", generation_id=1, member_id="m", group_instance_id=instance_id
            ),
            SyncGroupResponse,
        ),
        (
            HeartbeatRequest(
                group_id="g", generation_id=1, member_id="m", group_instance_id=instance_id
            ),
            HeartbeatResponse,
        ),
        (LeaveGroupRequest(group_id="g", members=()), LeaveGroupResponse),
    ]


def error_of(response: Response) -> ErrorCode:
    """The error at the top of a member's answer."""
    assert isinstance(
        response, JoinGroupResponse | SyncGroupResponse | HeartbeatResponse | LeaveGroupResponse
    )
    return response.error_code


def test_members_need_read() -> None:
    """Join, sync, heartbeat and leave ask for READ on the group."""
    harness = make_harness()
    allow(harness, (Operation.DESCRIBE, ResourceType.GROUP, "g"))
    for request, kind in member_requests():
        assert error_of(ask(harness, request, kind, 4)) is NO_GROUP
    allow(harness, (Operation.READ, ResourceType.GROUP, "g"))
    for request, kind in member_requests():
        assert error_of(ask(harness, request, kind, 4)) is not NO_GROUP


def test_static_members_need_a_kafka_that_knows_them() -> None:
    """In 0.10.2 an instance id is UNSUPPORTED_VERSION, before rights are asked."""
    harness = make_harness("0.10.2")
    allow(harness)
    for request, kind in member_requests("i")[:3]:
        assert error_of(ask(harness, request, kind, 3)) is ErrorCode.UNSUPPORTED_VERSION
    request = OffsetCommitRequest(group_id="g", group_instance_id="i", topics=commit_of("t").topics)
    harness.authorize(None)
    said = outcomes(ask(harness, request, OffsetCommitResponse, 2))
    assert said["t"][0] == "0 UNSUPPORTED_VERSION"


@pytest.mark.parametrize(
    ("version", "kind", "name", "refused"),
    [
        (5, None, "range", True),
        (5, "consumer", None, True),
        (5, "consumer", "range", False),
        (4, None, None, False),
    ],
)
def test_sync_5_names_its_protocol(
    version: int, kind: str | None, name: str | None, *, refused: bool
) -> None:
    """From version 5 on a SyncGroup without protocol type or name is inconsistent."""
    request = SyncGroupRequest(
        group_id="g", generation_id=1, member_id="m", protocol_type=kind, protocol_name=name
    )
    response = ask(make_harness(), request, SyncGroupResponse, version)
    assert (response.error_code is ErrorCode.INCONSISTENT_GROUP_PROTOCOL) is refused


# -- administration ------------------------------------------------------------------------


def describe(harness: Harness, *names: str, version: int = 5) -> DescribeGroupsResponse:
    """Alice describes groups, and asks what she may do to them."""
    request = DescribeGroupsRequest(groups=names, include_authorized_operations=True)
    return ask(harness, request, DescribeGroupsResponse, version)


def test_groups_refused_are_described_first() -> None:
    """Who may not describe a group is told so before the others are described."""
    harness = make_harness()
    allow(harness, (Operation.READ, ResourceType.GROUP, "g"))
    response = describe(harness, "g", "other")
    assert [group.group_id for group in response.groups] == ["other", "g"]
    assert response.groups[0].error_code is NO_GROUP


@pytest.mark.parametrize(
    ("profile", "everything"), [("java-4.x", 0b1101_0100_1000), ("scala-3.x", 0b1_0100_1000)]
)
def test_authorised_operations(profile: str, everything: int) -> None:
    """The operations that the sender may do are bits, from version 3 on, if asked for."""
    harness = make_harness(profile)
    assert describe(harness, "g").groups[0].authorized_operations == everything
    assert describe(harness, "g", version=2).groups[0].authorized_operations == -(1 << 31)
    allow(harness, (Operation.READ, ResourceType.GROUP, "g"))
    assert describe(harness, "g").groups[0].authorized_operations == 0b1_0000_1000


def test_operations_of_a_failed_description() -> None:
    """A description that failed says nothing of operations."""
    harness = make_harness()
    harness.resign()
    assert describe(harness, "g").groups[0].authorized_operations == -(1 << 31)


def test_listing_rights() -> None:
    """Who may describe the cluster sees all groups, others those they may describe."""
    for profile, names in (("java-4.x", ["a"]), ("scala-3.x", ["a"])):
        harness = make_harness(profile)
        GroupDriver(harness, "a").commit(1)
        GroupDriver(harness, "b").commit(1)
        allow(harness, (Operation.DESCRIBE, ResourceType.GROUP, "a"))
        listing = ask(harness, ListGroupsRequest(), ListGroupsResponse, 5)
        assert [group.group_id for group in listing.groups] == names
        allow(harness, (Operation.DESCRIBE, ResourceType.CLUSTER, "kafka-cluster"))
        listing = ask(harness, ListGroupsRequest(), ListGroupsResponse, 5)
        assert sorted(group.group_id for group in listing.groups) == ["a", "b"]


def test_0_10_2_listing_needs_the_cluster() -> None:
    """In 0.10.2 a listing without rights to the cluster is refused as a whole."""
    harness = make_harness("0.10.2")
    allow(harness, (Operation.DESCRIBE, ResourceType.GROUP, "a"))
    listing = ask(harness, ListGroupsRequest(), ListGroupsResponse, 0)
    assert listing == ListGroupsResponse(error_code=ErrorCode.CLUSTER_AUTHORIZATION_FAILED)


def test_deletion_rights() -> None:
    """Groups that may not be deleted are told so after the others."""
    harness = make_harness()
    GroupDriver(harness, "a").commit(1)
    allow(harness, (Operation.DELETE, ResourceType.GROUP, "a"))
    request = DeleteGroupsRequest(groups_names=("b", "a", "b"))
    response = ask(harness, request, DeleteGroupsResponse, 2)
    said = [(result.group_id, result.error_code) for result in response.results]
    assert said == [("a", ErrorCode.NONE), ("b", NO_GROUP)]
