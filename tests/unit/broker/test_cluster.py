import pytest

from coordinator_sim.broker import Cluster, Outcome
from coordinator_sim.broker.discovery import Discovery
from coordinator_sim.broker.passage import Access
from coordinator_sim.coordinator.contract import CoordinatorConfig
from coordinator_sim.coordinator.coordinator import GroupCoordinator
from coordinator_sim.errors import ScenarioError
from coordinator_sim.messages.find_coordinator import FindCoordinatorRequest
from coordinator_sim.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from coordinator_sim.messages.join_group import (
    JoinGroupRequest,
    JoinGroupRequestProtocol,
    JoinGroupResponse,
)
from coordinator_sim.messages.metadata import MetadataResponse
from coordinator_sim.messages.requests import Request, Response, metadata_request
from coordinator_sim.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment
from coordinator_sim.protocol.context import RequestContext
from coordinator_sim.protocol.errors import ErrorCode
from coordinator_sim.protocol.partitioning import OFFSETS_TOPIC
from coordinator_sim.protocol.profiles import DEFAULT_PROFILE
from coordinator_sim.scenario import Choices, ChosenIds

GROUP = "my-group"
PARTITION = 12
"""Partition of `my-group` among fifty."""
LEADER = 13 % 3 or 3


def make_cluster(broker_count: int = 3) -> Cluster:
    """Three living brokers with fifty offsets partitions and one topic."""
    choices = Choices(0)

    def make(broker_id: int) -> GroupCoordinator:
        config = CoordinatorConfig(broker_id=broker_id, group_initial_rebalance_delay_ms=0)
        ids = ChosenIds(choices, f"broker-{broker_id}")
        return GroupCoordinator(config, DEFAULT_PROFILE, ids=ids)

    cluster = Cluster(broker_count, offsets_partitions=50, make_coordinator=make)
    cluster.create_topic("orders", 4)
    return cluster


def ask(cluster: Cluster, broker_id: int, request: Request, now_ms: int = 0) -> Response:
    """The broker's answer, at once or by a timer of 0 ms; what it appends is stored."""
    broker = cluster.brokers[broker_id]
    handle = broker.handler_of(type(request))
    result = handle(request, RequestContext(token=1, api_version=9), now_ms)
    replies, batches = result.replies, result.batches
    if not replies:
        result = broker.coordinator.expire(now_ms)
        replies, batches = result.replies, (*batches, *result.batches)
    cluster.store(batches, broker_id)
    return replies[0].response


def form_group(cluster: Cluster) -> str:
    """A stable group of one static member; answers its member id."""
    joined = ask(
        cluster,
        LEADER,
        JoinGroupRequest(
            group_id=GROUP,
            session_timeout_ms=10_000,
            rebalance_timeout_ms=10_000,
            member_id="",
            group_instance_id="i",
            protocol_type="consumer",
            protocols=(JoinGroupRequestProtocol("range", b""),),
        ),
    )
    assert isinstance(joined, JoinGroupResponse)
    ask(
        cluster,
        LEADER,
        SyncGroupRequest(
            group_id=GROUP,
            generation_id=joined.generation_id,
            member_id=joined.member_id,
            protocol_type="consumer",
            protocol_name="range",
            assignments=(SyncGroupRequestAssignment(joined.member_id, b"all"),),
        ),
    )
    return joined.member_id


def heartbeat(cluster: Cluster, broker_id: int, member_id: str) -> ErrorCode:
    """The error of a heartbeat of generation 1."""
    request = HeartbeatRequest(group_id=GROUP, generation_id=1, member_id=member_id)
    response = ask(cluster, broker_id, request)
    assert isinstance(response, HeartbeatResponse)
    return response.error_code


def finish_loads(cluster: Cluster, outcomes: tuple[Outcome, ...]) -> None:
    """End every load that the outcomes began."""
    for outcome in outcomes:
        if outcome.load is not None:
            cluster.finish_load(outcome.load, 0)


def coordinator_of(cluster: Cluster, group_id: str) -> tuple[int, ErrorCode]:
    """Node and error that any broker answers to a FindCoordinator."""
    request = FindCoordinatorRequest(coordinator_keys=(group_id,))
    context = RequestContext(token=1, api_version=6)
    found = Discovery(cluster.view, Access(None)).find(request, context)
    return found.coordinators[0].node_id, found.coordinators[0].error_code


def test_partitions_are_spread_over_the_brokers() -> None:
    """Partition p of the offsets topic is led by broker (p mod N) + 1 at the start."""
    cluster = make_cluster()

    assert [cluster.leader_of(partition) for partition in range(4)] == [1, 2, 3, 1]


def test_any_broker_names_the_groups_coordinator() -> None:
    """FindCoordinator answers the leader of the group's partition."""
    assert coordinator_of(make_cluster(), GROUP) == (LEADER, ErrorCode.NONE)


def test_only_the_leader_coordinates_the_group() -> None:
    """Another broker answers NOT_COORDINATOR."""
    cluster = make_cluster()
    member_id = form_group(cluster)

    assert heartbeat(cluster, LEADER, member_id) is ErrorCode.NONE
    assert heartbeat(cluster, LEADER + 1, member_id) is ErrorCode.NOT_COORDINATOR


def test_a_moved_group_lives_on_at_the_new_leader() -> None:
    """The new leader replays the log and knows the generation; the old one gives it up."""
    cluster = make_cluster()
    member_id = form_group(cluster)

    outcomes = cluster.move(PARTITION, 3, 0)
    assert heartbeat(cluster, LEADER, member_id) is ErrorCode.NOT_COORDINATOR
    finish_loads(cluster, outcomes)

    assert heartbeat(cluster, 3, member_id) is ErrorCode.NONE


def test_a_move_to_where_it_is_changes_nothing() -> None:
    """Neither to the present leader nor to a dead broker."""
    cluster = make_cluster()
    cluster.crash(3)

    assert cluster.move(PARTITION, LEADER, 0) == ()
    assert cluster.move(PARTITION, 3, 0) == ()


def test_a_dead_broker_is_replaced_when_the_controller_notices() -> None:
    """Until then lookups still name it; afterwards a living broker takes its groups over."""
    cluster = make_cluster()
    member_id = form_group(cluster)
    cluster.crash(LEADER)
    assert coordinator_of(cluster, GROUP) == (LEADER, ErrorCode.NONE)

    finish_loads(cluster, cluster.fence(LEADER, 0))
    successor, error = coordinator_of(cluster, GROUP)

    assert error is ErrorCode.NONE
    assert successor != LEADER
    assert heartbeat(cluster, successor, member_id) is ErrorCode.NONE


def test_a_quick_restart_keeps_the_partitions() -> None:
    """A broker back before anybody noticed loads what it led, from the log."""
    cluster = make_cluster()
    member_id = form_group(cluster)
    cluster.crash(LEADER)

    finish_loads(cluster, cluster.restart(LEADER, 0))

    assert cluster.fence(LEADER, 0) == ()
    assert heartbeat(cluster, LEADER, member_id) is ErrorCode.NONE


def test_without_a_living_broker_there_is_no_coordinator() -> None:
    """COORDINATOR_NOT_AVAILABLE until the only broker is back."""
    cluster = make_cluster(1)
    cluster.crash(1)
    cluster.fence(1, 0)
    assert coordinator_of(cluster, GROUP) == (-1, ErrorCode.COORDINATOR_NOT_AVAILABLE)

    finish_loads(cluster, cluster.restart(1, 0))

    assert coordinator_of(cluster, GROUP) == (1, ErrorCode.NONE)


def test_a_stale_load_is_not_finished() -> None:
    """A partition that moved on during its load is not served by the loader."""
    cluster = make_cluster()
    first = cluster.move(PARTITION, 3, 0)
    cluster.move(PARTITION, 2, 0)
    load = first[-1].load
    assert load is not None

    assert cluster.finish_load(load, 0) == ()


def test_metadata_names_topics_and_living_brokers() -> None:
    """A fenced broker is missing, an unknown topic has its error."""
    cluster = make_cluster()
    cluster.crash(3)
    cluster.fence(3, 0)

    metadata = ask(cluster, 1, metadata_request(("orders", "nothing")))

    assert isinstance(metadata, MetadataResponse)
    assert [node.node_id for node in metadata.brokers] == [1, 2]
    assert len(metadata.topics[0].partitions) == 4
    assert 3 not in [partition.leader_id for partition in metadata.topics[0].partitions]
    assert metadata.topics[1].error_code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def test_metadata_of_everything_tells_the_brokers_own_topics_apart() -> None:
    """A client's pattern may pass internal topics by."""
    cluster = make_cluster()
    metadata = ask(cluster, 1, metadata_request(None))

    assert isinstance(metadata, MetadataResponse)
    internal = {topic.name for topic in metadata.topics if topic.is_internal}
    assert internal == {OFFSETS_TOPIC}


def test_a_topic_grows_but_does_not_shrink() -> None:
    """Added partitions appear in metadata; fewer than there are is refused."""
    cluster = make_cluster()
    cluster.create_topic("orders", 6)

    assert len(cluster.view.topics["orders"]) == 6
    with pytest.raises(ScenarioError, match="it cannot shrink to 5"):
        cluster.create_topic("orders", 5)
