"""Fault rules: what they fit and how often they act."""

import msgspec
import pytest

from coordinator_sim.broker.cluster import Cluster
from coordinator_sim.broker.contract import Call, Instants
from coordinator_sim.broker.faults.faults import (
    Action,
    Close,
    Delay,
    Drop,
    Duplicate,
    Fail,
    FailAppend,
    Fault,
    Faults,
    Match,
    MoveCoordinator,
    Phase,
    Reorder,
)
from coordinator_sim.broker.settings import ClusterSettings
from coordinator_sim.errors import ConfigError
from coordinator_sim.kafka.api_keys import ApiKey
from coordinator_sim.kafka.context import RequestContext
from coordinator_sim.kafka.errors import ErrorCode
from coordinator_sim.messages import join_group, offset_commit
from coordinator_sim.messages.catalogue import newest_version
from coordinator_sim.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from coordinator_sim_conformance.field_frames import message_from
from tests.unit.broker.frames_client import FramesClient


def call(
    api: ApiKey = ApiKey.HEARTBEAT, version: int = 4, client: str = "app-1", **request: object
) -> Call:
    """A request at broker 1 on connection 7."""
    return Call(
        broker_id=1,
        api=api,
        request=message_from(api, newest_version(api), request, response=False),
        context=RequestContext(token=1, api_version=version, client_id=client),
        now=Instants(0, 0),
        connection=7,
    )


def asked(match: Match, *calls: Call) -> list[Action | None]:
    """What one rule with that match does to each of the calls."""
    faults = Faults(lambda: 0.5)
    faults.add(Fault(match=match, action=Close()))
    return [faults.before(each) for each in calls]


HIT = Close()


@pytest.mark.parametrize("name", ["JoinGroup", "JOIN_GROUP", "join-group", "joingroup"])
def test_api_is_named_in_any_spelling(name: str) -> None:
    """Kafka's name and the one in code mean the same API."""
    match = Match(api=name)
    assert asked(match, call(ApiKey.JOIN_GROUP), call(ApiKey.HEARTBEAT)) == [HIT, None]


def test_versions_are_a_range_with_both_ends() -> None:
    """A range takes the versions at its ends."""
    match = Match(min_version=2, max_version=3)
    calls = [call(version=version) for version in (1, 2, 3, 4)]
    assert asked(match, *calls) == [None, HIT, HIT, None]


def test_group_is_found_wherever_a_request_names_it() -> None:
    """One group, groups by name or in structs, and a coordinator's key are all groups."""
    assert asked(
        Match(group="orders"),
        call(groupId="orders"),
        call(groupId="orders-2"),
        call(ApiKey.OFFSET_FETCH, groups=[{"groupId": "a"}, {"groupId": "orders"}]),
        call(ApiKey.DESCRIBE_GROUPS, groups=["orders"]),
        call(ApiKey.DELETE_GROUPS, groupsNames=["orders"]),
        call(ApiKey.FIND_COORDINATOR, keyType=0, coordinatorKeys=["orders"]),
        call(ApiKey.FIND_COORDINATOR, keyType=1, coordinatorKeys=["orders"]),
    ) == [HIT, None, HIT, HIT, HIT, HIT, None]


def test_member_is_an_id_or_an_instance_id() -> None:
    """Static members are found by their lasting name, also among those that leave."""
    assert asked(
        Match(member="pod-3"),
        call(memberId="pod-3"),
        call(memberId="pod-3-5e", groupInstanceId="pod-3"),
        call(ApiKey.LEAVE_GROUP, members=[{"memberId": "", "groupInstanceId": "pod-3"}]),
        call(memberId="pod-4", groupInstanceId=None),
    ) == [HIT, HIT, HIT, None]


def test_role_is_that_of_the_member_in_its_group() -> None:
    """A member may lead one group and follow in another; whoever is in none has no role."""
    roles = {("a", "m"): "leader", ("b", "m"): "follower", ("b", "pod-3"): "leader"}
    faults = Faults(lambda: 0.5)
    faults.role_of = lambda group_id, name: roles.get((group_id, name))
    faults.add(Fault(match=Match(role="leader", group="[ab]"), action=Close()))
    both = [{"groupId": "b", "memberId": "m"}, {"groupId": "a", "memberId": "m"}]
    calls = (
        call(groupId="a", memberId="m"),
        call(groupId="b", memberId="m"),
        call(groupId="b", memberId="other", groupInstanceId="pod-3"),
        call(ApiKey.OFFSET_FETCH, groups=both),
        call(ApiKey.OFFSET_FETCH, groups=both[:1]),
        call(groupId="a", memberId=""),
    )
    assert [faults.before(each) for each in calls] == [HIT, None, HIT, HIT, None, None]


def test_texts_may_have_wildcards() -> None:
    """Patterns are those of a shell."""
    match = Match(client_id="app-*")
    assert asked(match, call(client="app-2"), call(client="tool")) == [HIT, None]


def test_place_of_a_request_is_its_broker_and_connection() -> None:
    """A rule may be about one broker or one connection."""
    assert asked(Match(broker=1), call()) == [HIT]
    assert asked(Match(broker=2), call()) == [None]
    assert asked(Match(connection=7), call()) == [HIT]
    assert asked(Match(connection=8), call()) == [None]


def test_nth_counts_only_what_the_rest_fits() -> None:
    """The second heartbeat of a group is met, whoever else beats in between."""
    match = Match(group="g", nth=2)
    calls = [call(groupId=group) for group in ("g", "h", "g", "g")]
    assert asked(match, *calls) == [None, None, HIT, None]


def test_times_bounds_the_hits() -> None:
    """A rule that acted often enough lets the rest pass, and says how often it did."""
    faults = Faults(lambda: 0.0)
    faults.add(Fault(action=Drop(), times=2))
    assert [faults.before(call()) for _ in range(3)] == [Drop(), Drop(), None]
    (state,) = faults.states()
    assert state.hits == 2


def test_probability_asks_chance_once_per_fitting_request() -> None:
    """Chance below the probability is a hit."""
    draws = iter([0.1, 0.9, 0.29])
    faults = Faults(lambda: next(draws))
    faults.add(Fault(match=Match(probability=0.3), action=Drop()))
    assert [faults.before(call()) for _ in range(3)] == [Drop(), None, Drop()]
    assert faults.states()[0].fitting == 3


def test_first_rule_that_acts_wins() -> None:
    """Rules are asked in order; one that is used up gives way to the next."""
    faults = Faults(lambda: 0.0)
    faults.add(Fault(action=Delay(5), times=1))
    faults.add(Fault(action=Close()))
    assert [faults.before(call()) for _ in range(2)] == [Delay(5), Close()]


def test_phases_are_apart() -> None:
    """A rule about answers does not touch requests."""
    faults = Faults(lambda: 0.0)
    faults.add(Fault(action=Drop(), phase=Phase.AFTER))
    assert faults.before(call()) is None
    assert faults.after(call()) == Drop()


def test_removed_rule_acts_no_more_and_its_number_is_not_used_again() -> None:
    """Rules go one by one or all together."""
    faults = Faults(lambda: 0.0)
    first = faults.add(Fault(action=Drop()))
    assert faults.remove(first.fault_id)
    assert not faults.remove(first.fault_id)
    assert not faults.rules
    assert faults.add(Fault(action=Drop())).fault_id == first.fault_id + 1
    faults.clear()
    assert faults.states() == ()


def test_every_hit_is_heard_of() -> None:
    """Whoever listens learns of the rule, the request and the action."""
    heard = []
    faults = Faults(lambda: 0.0)
    faults.heard = lambda fault_id, hit, action: heard.append((fault_id, hit.api, action))
    faults.add(Fault(match=Match(api="Heartbeat"), action=Drop()))
    faults.before(call())
    faults.before(call(ApiKey.FETCH))
    assert heard == [(1, ApiKey.HEARTBEAT, Drop())]


@pytest.mark.parametrize(
    "fault",
    [
        Fault(match=Match(api="JoinTheGroup"), action=Drop()),
        Fault(action=Fail("NO_SUCH_ERROR")),
        Fault(action=Fail("NONE")),
        Fault(action=Delay(-1)),
        Fault(match=Match(nth=0), action=Drop()),
        Fault(match=Match(probability=1.5), action=Drop()),
        Fault(action=Drop(), times=0),
        Fault(action=FailAppend(), phase=Phase.AFTER),
        Fault(action=MoveCoordinator(), phase=Phase.AFTER),
    ],
)
def test_rule_that_cannot_be_is_refused(fault: Fault) -> None:
    """A rule that no request can fit is refused when it is added."""
    faults = Faults(lambda: 0.0)
    with pytest.raises(ConfigError):
        faults.add(fault)
    assert not faults.rules


def test_rule_is_plain_json() -> None:
    """A rule reads and writes as one would say it; unknown names are errors."""
    text = b'{"action":{"do":"error","error":"NOT_COORDINATOR"},"match":{"api":"Heartbeat"}}'
    fault = msgspec.json.decode(text, type=Fault)
    assert fault == Fault(match=Match(api="Heartbeat"), action=Fail("NOT_COORDINATOR"))
    assert msgspec.json.encode(fault) == text
    with pytest.raises(msgspec.ValidationError, match="unknown field"):
        msgspec.json.decode(b'{"action":{"do":"drop"},"when":"now"}', type=Fault)


@pytest.mark.parametrize(
    ("fault", "reason"),
    [
        ({"action": {"do": "delay", "ms": 10**30}}, "delay ms out of 32 bits: wants 0 to 86400000"),
        ({"match": {"min_version": 5, "max_version": 4}}, "min_version 5 is above max_version 4"),
        ({"match": {"min_version": -1}}, "min_version -1: wants 0 to 32767"),
        ({"match": {"probability": 0.0}}, "probability 0.0: wants above 0"),
        ({"match": {"member": ""}}, "member is empty"),
        (
            {"match": {"member": "leader"}},
            r"is a role: wants .* write role=leader, or \[l\]eader for an instance",
        ),
        ({"match": {"role": "boss"}}, "role 'boss': wants leader or follower"),
        ({"match": {"api": "Metadata", "role": "leader"}}, "Metadata names no member"),
        ({"match": {"api": "ConsumerGroupHeartbeat", "role": "leader"}}, "of a classic group"),
        (
            {"match": {"api": "LeaveGroup", "role": "leader"}, "phase": "after"},
            "role 'leader' after LeaveGroup: who left has none; leave out phase",
        ),
        (
            {"match": {"api": "Heartbeat"}, "action": {"do": "fail-append"}},
            "fail-append: Heartbeat appends nothing, as Produce or OffsetCommit does",
        ),
        (
            {"match": {"api": "EndTxn", "group": "g"}, "action": {"do": "fail-append"}},
            "EndTxn names no group",
        ),
        (
            {"match": {"api": "InitProducerId"}, "action": {"do": "slow-append", "ms": 5}},
            "slow-append: InitProducerId appends nothing that waits for replicas",
        ),
        ({"action": {"do": "slow-append", "ms": 0}}, "slow-append ms 0: wants 1 to 86400000"),
        ({"action": {"do": "duplicate"}}, "done to answers: give phase after"),
        ({"action": {"do": "reorder", "ms": 0}, "phase": "after"}, "reorder ms 0: wants 1 to"),
        ({"match": {"api": "JoinGrup"}}, "no API is called 'JoinGrup'; .* are JOIN_GROUP$"),
        ({"match": {"api": "x" * 5_000}}, r"no API is called 'x{60}\.\.\.'; .* JoinGroup, Fetch"),
        (
            {"action": {"do": "error", "error": "NOT_COORDINATR"}},
            "no error is called 'NOT_COORDINATR'; .* are NOT_COORDINATOR$",
        ),
        ({"match": {"nth": 10**5_000}}, "nth out of 32 bits"),
        ({"match": {"broker": 99}}, "broker 99: there is none; the brokers are 1, 2"),
        ({"action": {"do": "move-coordinator", "to": 99}}, "broker 99: there is none"),
        ({"match": {"api": "PushTelemetry"}}, "this cluster does not offer it"),
        ({"match": {"api": "Heartbeat", "min_version": 5}}, "Heartbeat has 0 to 4"),
        ({"match": {"min_version": 900}}, "versions from 900: this cluster has"),
        ({"match": {"api": "Fetch", "group": "g"}}, "Fetch names no group"),
        ({"match": {"api": "Metadata", "member": "m"}}, "Metadata names no member"),
        (
            {"match": {"api": "Metadata", "max_version": 0}, "action": {"do": "move-coordinator"}},
            "Metadata names no group whose coordinator could move",
        ),
    ],
)
def test_rule_that_could_never_act_is_refused(fault: dict[str, object], reason: str) -> None:
    """One line has the value and the bound, and no rule is added."""
    cluster = Cluster(ClusterSettings(broker_ids=(1, 2)), endpoint=lambda _id, _name: None)
    with pytest.raises(ConfigError, match=reason) as refused:
        cluster.faults.add(msgspec.convert({"action": {"do": "drop"}, **fault}, Fault))
    assert str(refused.value).isprintable()
    assert not cluster.faults.rules


@pytest.mark.parametrize(
    "match",
    [
        {"api": "Heartbeat", "min_version": 4, "max_version": 9, "member": "[l]eader"},
        {"api": "OffsetFetch", "group": "g", "member": "m"},
        {"api": "FindCoordinator", "group": "g"},
        {"api": "LeaveGroup", "role": "follower"},
        {"group": "g"},
        {"broker": 2, "client_id": ""},
    ],
)
def test_rule_that_some_request_fits_is_taken(match: dict[str, object]) -> None:
    """A rule is accepted when one version of one API carries what it matches on."""
    cluster = Cluster(ClusterSettings(broker_ids=(1, 2)), endpoint=lambda _id, _name: None)
    cluster.faults.add(msgspec.convert({"action": {"do": "drop"}, "match": match}, Fault))
    assert cluster.faults.rules


def test_member_of_an_offset_fetch_is_named_among_its_groups() -> None:
    """From version 9 on each group of the request has a member."""
    fetch = call(ApiKey.OFFSET_FETCH, groups=[{"groupId": "g", "memberId": "m-1"}])
    assert asked(Match(member="m-1"), fetch) == [HIT]


# -- Fault rules at the requests of a connection -----------------------------------------------


NOW_MS = 1_000_000
BEAT = HeartbeatRequest(group_id="g", generation_id=1, member_id="nobody")
JOIN = join_group.JoinGroupRequest(
    group_id="g",
    session_timeout_ms=10_000,
    rebalance_timeout_ms=60_000,
    member_id="",
    protocol_type="consumer",
    protocols=(join_group.JoinGroupRequestProtocol("range", b"x"),),
)


def disturb(cluster: Cluster, api: str, action: Action, phase: Phase = Phase.BEFORE) -> None:
    """Add one rule."""
    cluster.faults.add(Fault(match=Match(api=api), action=action, phase=phase))


def errors(client: FramesClient) -> list[ErrorCode]:
    """The error codes of the Heartbeats answered so far."""
    return [
        answer.error_code
        for _, answer in client.answers()
        if isinstance(answer, HeartbeatResponse | join_group.JoinGroupResponse)
    ]


@pytest.mark.parametrize("phase", Phase)
def test_error_takes_the_place_of_the_answer(
    cluster: Cluster, client: FramesClient, phase: Phase
) -> None:
    """Other APIs go on as ever."""
    disturb(cluster, "Heartbeat", Fail("REBALANCE_IN_PROGRESS"), phase)
    client.send(BEAT, 4)
    client.send(JOIN, 3)
    assert errors(client) == [ErrorCode.REBALANCE_IN_PROGRESS, ErrorCode.NONE]


@pytest.mark.parametrize(("phase", "is_member"), [(Phase.BEFORE, False), (Phase.AFTER, True)])
def test_phase_decides_whether_a_refused_join_had_its_effect(
    cluster: Cluster, client: FramesClient, phase: Phase, is_member: bool
) -> None:
    """Refused before, nobody has joined; refused after, the member is there."""
    disturb(cluster, "JoinGroup", Fail("NOT_COORDINATOR"), phase)
    client.send(JOIN, 3)
    assert errors(client) == [ErrorCode.NOT_COORDINATOR]
    group = cluster.groups.living[1].coordinator.group("g")
    assert (group is not None and bool(group.members)) is is_member


@pytest.mark.parametrize("phase", Phase)
def test_dropped_answer_holds_back_those_behind_it(
    cluster: Cluster, client: FramesClient, phase: Phase
) -> None:
    """Later answers of the connection wait behind a dropped one; other connections get theirs."""
    disturb(cluster, "Heartbeat", Drop(), phase)
    client.send(BEAT, 4)
    cluster.faults.clear()
    client.send(BEAT, 4)
    assert client.frames == []
    other = FramesClient(cluster, number=2)
    other.send(BEAT, 4)
    assert errors(other) == [ErrorCode.UNKNOWN_MEMBER_ID]


@pytest.mark.parametrize("phase", Phase)
def test_delay_is_on_the_wall_clock(cluster: Cluster, client: FramesClient, phase: Phase) -> None:
    """The answer leaves when the wall clock says so, whatever group time is."""
    disturb(cluster, "Heartbeat", Delay(250), phase)
    client.send(BEAT, 4)
    assert cluster.next_wall_deadline_ms() == NOW_MS + 250
    cluster.expire(Instants(NOW_MS + 100_000, NOW_MS + 249))
    assert client.frames == []
    cluster.expire(Instants(NOW_MS + 100_000, NOW_MS + 250))
    assert errors(client) == [ErrorCode.UNKNOWN_MEMBER_ID]


@pytest.mark.parametrize("phase", Phase)
def test_closed_connection_has_no_answer(
    cluster: Cluster, client: FramesClient, phase: Phase
) -> None:
    """The log says that a rule did it."""
    disturb(cluster, "Heartbeat", Close(), phase)
    client.send(BEAT, 4)
    assert (client.frames, client.closed) == ([], "a fault rule")


def test_role_is_asked_of_the_group_as_it_is(cluster: Cluster, client: FramesClient) -> None:
    """Before it has joined, a member has no role; the only member of a group leads it."""
    rule = Fault(match=Match(role="leader"), action=Fail("NOT_COORDINATOR"), phase=Phase.AFTER)
    cluster.faults.add(rule)
    client.send(JOIN, 3)
    group = cluster.groups.living[1].coordinator.group("g")
    assert group is not None
    assert group.leader_id is not None
    client.send(HeartbeatRequest(group_id="g", generation_id=1, member_id=group.leader_id), 4)
    client.send(BEAT, 4)
    told = [ErrorCode.NONE, ErrorCode.NOT_COORDINATOR, ErrorCode.UNKNOWN_MEMBER_ID]
    assert errors(client) == told
    assert cluster.groups.role_of("g", group.leader_id) == "leader"
    assert cluster.groups.role_of("g", "nobody") is None


def test_duplicated_answer_comes_twice(cluster: Cluster, client: FramesClient) -> None:
    """Both copies have the correlation id of the one request; the next answer comes once."""
    cluster.faults.add(Fault(action=Duplicate(), phase=Phase.AFTER, times=1))
    client.send(BEAT, 4)
    client.send(BEAT, 4)
    assert [number for number, _ in client.answers()] == [0, 0, 1]


def test_next_answer_overtakes_a_reordered_one(cluster: Cluster, client: FramesClient) -> None:
    """The request behind it is worked on at once, and its answer comes first."""
    cluster.faults.add(Fault(action=Reorder(), phase=Phase.AFTER, times=1))
    client.send(BEAT, 4)
    assert client.frames == []
    client.send(BEAT, 4)
    client.send(BEAT, 4)
    assert [number for number, _ in client.answers()] == [1, 0, 2]
    cluster.expire(Instants(NOW_MS + 1_000, NOW_MS + 1_000))
    assert len(client.frames) == 3


def test_answer_that_nothing_overtakes_goes_alone(cluster: Cluster, client: FramesClient) -> None:
    """A client with one request at a time is not stuck for good, unless it is gone."""
    cluster.faults.add(Fault(action=Reorder(250), phase=Phase.AFTER))
    client.send(BEAT, 4)
    cluster.expire(Instants(NOW_MS, NOW_MS + 249))
    assert client.frames == []
    cluster.expire(Instants(NOW_MS, NOW_MS + 250))
    assert errors(client) == [ErrorCode.UNKNOWN_MEMBER_ID]
    client.send(BEAT, 4)
    client.connection.closed()
    cluster.expire(Instants(NOW_MS, NOW_MS + 5_000))
    assert len(client.frames) == 1


def test_failed_append_is_told_in_the_coordinator_s_words(
    cluster: Cluster, client: FramesClient
) -> None:
    """A commit that cannot be stored is refused as Kafka does, and the next one is stored."""
    partition = offset_commit.OffsetCommitRequestPartition(partition_index=0, committed_offset=7)
    cluster.topics.create_spread("t", 1, Instants(NOW_MS, NOW_MS))
    request = offset_commit.OffsetCommitRequest(
        group_id="g",
        generation_id_or_member_epoch=-1,
        member_id="",
        topics=(offset_commit.OffsetCommitRequestTopic("t", partitions=(partition,)),),
    )
    cluster.faults.add(Fault(match=Match(api="OffsetCommit"), action=FailAppend(), times=1))
    for _ in range(2):
        client.send(request, 8)
    found = [
        answer
        for _, answer in client.answers()
        if isinstance(answer, offset_commit.OffsetCommitResponse)
    ]
    assert [each.topics[0].partitions[0].error_code for each in found] == [
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.NONE,
    ]
