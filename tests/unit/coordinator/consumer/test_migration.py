"""Groups that change their type, told by requests. The oracle judges the rest; see `differ`."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from coordinator_sim.coordinator.contract import CoordinatorConfig
from coordinator_sim.coordinator.modern.consumer import embedded
from coordinator_sim.coordinator.properties import configured, properties_of
from coordinator_sim.errors import ConfigError, OperationAborted
from coordinator_sim.harness.group_driver import answer
from coordinator_sim.kafka.errors import ErrorCode
from coordinator_sim.kafka.migration_policy import MigrationPolicy
from coordinator_sim.kafka.profiles import profile_named
from coordinator_sim.kafka.resources import TopicPartition
from coordinator_sim.messages import join_group
from coordinator_sim.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from coordinator_sim.messages.embedded import consumer_protocol
from coordinator_sim.messages.embedded.contents import ConsumerAssignment, Subscription
from coordinator_sim.messages.leave_group import LeaveGroupRequest, MemberIdentity
from coordinator_sim.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment
from tests.unit.coordinator.consumer.test_consumer_groups import Members

KAFKA_43 = profile_named("4.3")


SUBSCRIPTION = consumer_protocol.encode_subscription(Subscription(topics=("foo",)), 1)


def classic_join(members: Members, *protocols: tuple[str, bytes]) -> join_group.JoinGroupResponse:
    """A JoinGroup of version 3, which needs no member id."""
    request = join_group.JoinGroupRequest(
        group_id="g",
        session_timeout_ms=10_000,
        rebalance_timeout_ms=5_000,
        protocol_type="consumer",
        protocols=tuple(join_group.JoinGroupRequestProtocol(*each) for each in protocols),
    )
    return answer(members.broker.call(request, api_version=3), join_group.JoinGroupResponse)


def test_a_member_that_may_not_go_is_not_asked_again_when_its_time_is_over() -> None:
    """QUIRK: the data of the protocol that the others share cannot be read, so the group stays."""
    members = Members(
        group_consumer_migration_policy=MigrationPolicy.BIDIRECTIONAL,
        group_consumer_session_timeout_ms=1_000,
    )
    members.join("new")
    classic_join(members, ("range", SUBSCRIPTION))
    unread = classic_join(members, ("sticky", SUBSCRIPTION), ("range", b""))
    assert unread.error_code is ErrorCode.NONE
    before = members.broker.log(0)
    members.broker.advance(1_000)
    assert members.broker.log(0) == before
    leaving = LeaveGroupRequest("g", members=(MemberIdentity(unread.member_id),))
    members.broker.call(leaving, api_version=3)
    members.broker.advance(1_000)
    assert len(members.describe().members) == 2


def test_an_assignment_of_an_own_assignor_stops_the_upgrade() -> None:
    """Its user data would be lost."""
    members = Members(group_consumer_migration_policy=MigrationPolicy.BIDIRECTIONAL)
    joined = classic_join(members, ("range", SUBSCRIPTION))
    blob = consumer_protocol.encode_assignment(ConsumerAssignment(user_data=b"own"))
    request = SyncGroupRequest(
        group_id="g",
        generation_id=joined.generation_id,
        member_id=joined.member_id,
        assignments=(SyncGroupRequestAssignment(joined.member_id, blob),),
    )
    members.broker.call(request, api_version=3)
    refused = members.join("new")
    assert refused.error_code is ErrorCode.GROUP_ID_NOT_FOUND
    assert refused.error_message is not None
    assert "custom assignor" in refused.error_message


def test_a_group_stays_a_consumer_group_where_only_upgrades_are_allowed() -> None:
    """A classic member alone is left when the only new one goes."""
    members = Members("4.2", group_consumer_migration_policy=MigrationPolicy.UPGRADE)
    members.join("new")
    classic_join(members, ("range", SUBSCRIPTION))
    leaving = ConsumerGroupHeartbeatRequest(group_id="g", member_id="new", member_epoch=-1)
    members.broker.call(leaving, api_version=1)
    assert len(members.describe().members) == 1


def test_the_policy_is_a_property_in_any_case() -> None:
    """Its words are Kafka's; another word is told what there is."""
    base = CoordinatorConfig()
    found = configured(base, {"group.consumer.migration.policy": "Upgrade"})
    assert found.group_consumer_migration_policy is MigrationPolicy.UPGRADE
    assert properties_of(found) == {"group.consumer.migration.policy": "upgrade"}
    with pytest.raises(ConfigError, match="sideways: name one of disabled, upgrade"):
        configured(base, {"group.consumer.migration.policy": "sideways"})


_NAMES = st.text(st.characters(exclude_categories=["Cs"]), max_size=4)
_PLACES = st.lists(st.tuples(_NAMES, st.integers(0, 9)), max_size=4)


@pytest.mark.property
@given(st.lists(_NAMES, max_size=3), _PLACES, st.sampled_from([None, "", "r"]), st.integers(0, 3))
@settings(max_examples=50)
def test_a_broker_reads_what_a_consumer_writes(
    topics: list[str], places: list[tuple[str, int]], rack_id: str | None, version: int
) -> None:
    """Every subscription and assignment of our codec is read back; cut short, it is refused."""
    owned = tuple(TopicPartition(*place) for place in places)
    subscription = Subscription(topics=tuple(topics), owned_partitions=owned, rack_id=rack_id)
    blob = consumer_protocol.encode_subscription(subscription, version)
    found = embedded.read_subscription(blob, KAFKA_43)
    assert sorted(found.topics) == sorted(topics)
    read = {(name, index) for name, indexes in found.owned for index in indexes}
    assert read == ({*places} if version else set())
    assert found.rack_id == ((rack_id or None) if version == 3 else None)
    assigned = embedded.read_assignment(
        consumer_protocol.encode_assignment(ConsumerAssignment(partitions=owned), version), KAFKA_43
    )
    assert {(name, i) for name, held in assigned.partitions for i in held} == {*places}
    for end in range(len(blob)):
        with pytest.raises(OperationAborted):
            embedded.read_subscription(blob[:end], KAFKA_43)


@pytest.mark.parametrize(
    ("blob", "is_malformed"),
    [
        (b"", True),
        (b"\xff\xff", True),
        (b"\0\0", True),
        (b"\0\0\0\0\0\1", False),
        (b"\0\0\0\0\0\1\0", True),
        (b"\0\0\0\0\0\1\0\2t", False),
        (b"\0\0\xff\xff\xff\xff", False),
    ],
)
def test_kafka_tells_two_faults_of_a_blob_apart(blob: bytes, is_malformed: bool) -> None:
    """Numbers that are cut short are malformed; counts and names beyond the end are from 4.4 on."""
    with pytest.raises(OperationAborted) as caught:
        embedded.read_subscription(blob, KAFKA_43)
    assert isinstance(caught.value, embedded.MalformedBlob) is is_malformed
    with pytest.raises(embedded.MalformedBlob):
        embedded.read_subscription(blob, profile_named("4.4"))
