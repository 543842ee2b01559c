"""Strategies of happenings: what befalls the members, brokers and links of a drawn world.

Every happening begins before `LAST_FAULT_MS` and ends. `faults_of` gives those that suit a group,
by the names of their kinds; worlds and groups are in `strategies`.
"""

from collections.abc import Collection, Iterable, Sequence
from difflib import get_close_matches
from typing import Final, NamedTuple, get_args

import msgspec
from hypothesis import strategies as st

from coordinator_sim.assignors.registry import KAFKA_ASSIGNORS, own_assignors
from coordinator_sim.broker.faults.faults import Action, Close, Delay, Drop, Fail, Fault, Match
from coordinator_sim.errors import ConfigError
from coordinator_sim.kafka.roles import ROLES
from coordinator_sim.sim.scenario import (
    AddConnector,
    AddPartitions,
    ChangeSubscription,
    ChangeTaskCount,
    ConnectGroupSpec,
    ConsumerGroupSpec,
    CrashBroker,
    CrashMember,
    DegradeNetwork,
    DelayResponse,
    DeleteTopic,
    DenyAccess,
    DrainNode,
    DropResponse,
    DuplicateResponse,
    EvictPod,
    FailOffsetsReads,
    FailWork,
    FaultRule,
    GroupSpec,
    Happening,
    LagConfigTopic,
    MoveCoordinator,
    PartitionNetwork,
    PauseBroker,
    PauseMember,
    RemoveConnector,
    ReorderResponses,
    RestartMember,
    RestRequest,
    RollBrokers,
    RollOut,
    ScaleWorkload,
    Scenario,
    SetClock,
    ShareGroupSpec,
    SlowDownstream,
    SlowPoll,
    StartMember,
    StopMember,
    TopicSpec,
    WorkloadSpec,
    members_of,
)
from coordinator_sim.sim.scenario.kubernetes import pods_of
from coordinator_sim.sim.scenario.settings import (
    CONNECT_PROTOCOL,
    CONNECT_PROTOCOLS,
    STRATEGY,
)

LAST_FAULT_MS: Final = 60_000
"""No happening begins later; the first phase of a drawn scenario."""
MAX_HAPPENINGS: Final = 8
_MOMENT_MS: Final = 10_000
OF_MEMBERS: Final = ("HEARTBEAT", "JOIN_GROUP", "SYNC_GROUP", "OFFSET_COMMIT")
OF_MEMBERSHIP: Final = OF_MEMBERS[:3]
"""Those of OF_MEMBERS that Connect workers send too."""
APIS: Final = (*OF_MEMBERS, "FIND_COORDINATOR")
ADDED_CONNECTOR: Final = "elastic"
_LEAST_GROWN: Final = 10
"""Least number of partitions that a topic grows to."""
_NOT_DRAWN: Final = frozenset({"HoldReplication", "CreateTopic", "ChangeConfig"})
"""HoldReplication: a heartbeat that waits for replication is in the trace when it is answered, and
its session counts from when it arrived, which I6 cannot see. CreateTopic: no drawn group has a
pattern. ChangeConfig: no config of a drawn group, which is classic, can change while it runs."""
REFUSALS: Final = (
    "COORDINATOR_LOAD_IN_PROGRESS",
    "COORDINATOR_NOT_AVAILABLE",
    "NOT_COORDINATOR",
    "REBALANCE_IN_PROGRESS",
    "UNKNOWN_MEMBER_ID",
)
"""Errors of drawn fault rules, after which a client comes back by itself."""
FAULTS: Final = tuple(
    sorted(
        kind.__name__
        for part in get_args(Happening)
        for kind in (get_args(part) or (part,))
        if kind.__name__ not in _NOT_DRAWN
    )
)
"""The kinds of happenings that can be drawn, as a scenario's file calls them."""


def assignor_lists() -> tuple[tuple[str, ...], ...]:
    """Return the lists of assignors that groups are drawn with, the user's own at the end."""
    return (
        *((name,) for name in KAFKA_ASSIGNORS),
        ("range", "cooperative-sticky"),
        *((name,) for name in own_assignors()),
    )


class World(NamedTuple):
    """The world that happenings are drawn for.

    Args:
        topics: At least one.
        group: Whose members they befall.
        brokers: Number of brokers.
        upgrades: Whether a member may come back with other settings.
        workloads: Those whose pods are the group's members.
    """

    topics: Sequence[TopicSpec]
    group: GroupSpec
    brokers: int
    upgrades: bool = True
    workloads: Sequence[WorkloadSpec] = ()


Faults = list[st.SearchStrategy[Happening]]
_Kinds = dict[str, Faults]
"""Strategies by the kind that they draw."""


def check_faults(faults: Iterable[str]) -> None:
    """Refuse kinds of happenings that cannot be drawn.

    Raises:
        ConfigError: names the kind, and those that are near.
    """
    for name in faults:
        if name not in FAULTS:
            near = get_close_matches(name, FAULTS, n=3)
            hint = f"did you mean {' or '.join(near)}?" if near else f"known: {', '.join(FAULTS)}"
            raise ConfigError(f"faults: {name!r} cannot be drawn: {hint}")


def faults_of(world: World, faults: Collection[str] | None) -> Faults:
    """Strategies of the happenings that suit the world's group; empty where none does.

    Args:
        world: What they befall.
        faults: Kinds to draw, by their names; None for all.
    """
    kinds = _member_happenings(world)
    if world.workloads:
        del kinds["StartMember"], kinds["RestartMember"]  # Kubernetes starts pods.
    for more in (_world_happenings(world), _own_happenings(world), _pod_happenings(world)):
        for name, drawn in more.items():
            kinds.setdefault(name, []).extend(drawn)
    return [
        one for name, drawn in kinds.items() if faults is None or name in faults for one in drawn
    ]


def happenings(
    draw: st.DrawFn, world: World, faults: tuple[str, ...] | None
) -> tuple[Happening, ...]:
    """One to `MAX_HAPPENINGS` happenings; none where no kind suits the group."""
    suiting = faults_of(world, faults)
    if not suiting:
        return ()
    return tuple(draw(st.lists(st.one_of(suiting), min_size=1, max_size=MAX_HAPPENINGS)))


@st.composite
def faults_on(
    draw: st.DrawFn, scenario: Scenario, *, faults: Sequence[str] | None = None
) -> Scenario:
    """A scenario of one's own with more happenings to one of its groups.

    Args:
        draw: Hypothesis gives it.
        scenario: A world with at least one topic and one group, such as a file's.
        faults: Kinds of happenings to draw; None for all.

    Raises:
        ConfigError: a kind is unknown, or the scenario has no topic or no group.
    """
    check_faults(faults or ())
    if not scenario.topics or not scenario.groups:
        raise ConfigError(f"scenario {scenario.name!r}: faults need a topic and a group")
    group = draw(st.sampled_from(scenario.groups))
    workloads = [each for each in scenario.kubernetes if each.group_id == group.group_id]
    world = World(scenario.topics, group, scenario.brokers, upgrades=False, workloads=workloads)
    more = happenings(draw, world, None if faults is None else tuple(faults))
    return msgspec.structs.replace(
        scenario,
        happenings=(*scenario.happenings, *more),
        duration_ms=max(scenario.duration_ms, LAST_FAULT_MS),
    )


def starts() -> st.SearchStrategy[int | None]:
    """When a member starts: within the first seconds, or never by itself."""
    return st.one_of(st.integers(0, 50).map(lambda step: step * 100), st.none())


def instants() -> st.SearchStrategy[int]:
    """Instants in the first four seconds of each ten, so that happenings meet in one rebalance.

    A rebalance lasts until the next heartbeats, a few seconds; instants drawn evenly from a minute
    would seldom fall into one that another happening began.
    """
    moments = st.integers(0, LAST_FAULT_MS // _MOMENT_MS - 1)
    return st.builds(
        lambda moment, step: moment * _MOMENT_MS + step * 100, moments, st.integers(0, 40)
    )


def _durations(low_ms: int, high_ms: int) -> st.SearchStrategy[int]:
    return st.integers(low_ms // 100, high_ms // 100).map(lambda step: step * 100)


def _added_latencies() -> st.SearchStrategy[int]:
    """From a slow network to one that outlasts session timeouts."""
    return st.sampled_from((100, 1_000, 7_000))


def _clock_set(*, at_ms: int, member: str, skew_ms: int, drift_ppm: int) -> Happening:
    """A step to an instant that is not before the start of the run, and a drift."""
    step_ms = max(skew_ms, -at_ms)
    return SetClock(at_ms=at_ms, member=member, skew_ms=step_ms, drift_ppm=drift_ppm)


def _drawn(kind: type[Happening], **fields: object) -> st.SearchStrategy[Happening]:
    return st.builds(kind, **fields)  # type: ignore[arg-type] # fields of the kind


def _member_happenings(world: World) -> _Kinds:
    names = [member.name for member in members_of(world.group)]
    member = {"at_ms": instants(), "member": st.sampled_from(names)}
    for_ms, apis = _durations(100, 30_000), st.sampled_from(APIS)
    of_role = {
        "at_ms": instants(),
        "group_id": st.just(world.group.group_id),
        "role": st.sampled_from(ROLES),
        "api": st.sampled_from(OF_MEMBERS),
    }
    clock_set = st.builds(
        _clock_set,
        **member,
        skew_ms=st.integers(-30_000, 30_000),
        drift_ppm=st.integers(-500, 500),
    )
    restarted = _drawn(
        RestartMember, **member, down_ms=_durations(0, 20_000), graceful=st.booleans()
    )
    counted = {**member, "api": apis, "count": st.integers(1, 2)}
    in_turn = {**member, "api": st.sampled_from(OF_MEMBERSHIP)}
    return {
        "StartMember": [_drawn(StartMember, **member)],
        "StopMember": [_drawn(StopMember, **member)],
        "CrashMember": [_drawn(CrashMember, **member)],
        "RestartMember": [restarted],
        "PauseMember": [_drawn(PauseMember, **member, for_ms=for_ms)],
        "SlowPoll": [_drawn(SlowPoll, **member, for_ms=for_ms)],
        "DropResponse": [_drawn(DropResponse, **counted), _drawn(DropResponse, **of_role)],
        "DelayResponse": [
            _drawn(DelayResponse, **counted, by_ms=_durations(100, 15_000)),
            _drawn(DelayResponse, **of_role, by_ms=_durations(100, 9_000)),
        ],
        "DuplicateResponse": [_drawn(DuplicateResponse, **in_turn)],
        "ReorderResponses": [_drawn(ReorderResponses, **in_turn)],
        "SetClock": [clock_set],
        "FaultRule": [_refusals(names)],
        "DenyAccess": [
            _drawn(
                DenyAccess,
                at_ms=instants(),
                for_ms=_durations(100, 20_000),
                operation=st.just("READ"),
                group_id=st.just(world.group.group_id),
                member=st.one_of(st.none(), st.sampled_from(names)),
            )
        ],
    }


def _refusals(names: list[str]) -> st.SearchStrategy[Happening]:
    """Requests of a member that are refused, late, hanging or cut off for some seconds."""
    actions: st.SearchStrategy[Action] = st.one_of(
        st.sampled_from(REFUSALS).map(Fail),
        st.just(Close()),
        st.just(Drop()),
        _durations(100, 9_000).map(Delay),
    )
    rules = st.builds(
        Fault,
        action=actions,
        match=st.builds(
            Match,
            api=st.sampled_from(OF_MEMBERSHIP),
            client_id=st.sampled_from(names),
            every=st.sampled_from((None, 2)),
        ),
        times=st.integers(1, 3),
        for_ms=_durations(100, 15_000),
    )
    return st.builds(FaultRule, at_ms=instants(), rule=rules)


def _world_happenings(world: World) -> _Kinds:
    """Happenings to brokers and links."""
    names = st.sampled_from([member.name for member in members_of(world.group)])
    at_ms, broker = instants(), st.integers(1, world.brokers)
    cut_off = {"at_ms": at_ms, "for_ms": _durations(100, 20_000)}
    late = {**cut_off, "latency_ms": _added_latencies()}
    moved = _drawn(
        MoveCoordinator,
        at_ms=at_ms,
        group_id=st.just(world.group.group_id),
        to_broker=st.one_of(st.none(), broker),
    )
    clock_set = _drawn(
        SetClock,
        at_ms=at_ms,
        broker=broker,
        skew_ms=st.sampled_from((0, 30_000, 8 * 24 * 3_600_000)),
        drift_ppm=st.integers(-500, 500),
    )
    return {
        "MoveCoordinator": [moved],
        "PartitionNetwork": [
            _drawn(PartitionNetwork, **cut_off, member=names),
            _drawn(PartitionNetwork, **cut_off, broker=broker),
            _drawn(PartitionNetwork, **cut_off, broker=broker, member=names),
        ],
        "DegradeNetwork": [
            _drawn(DegradeNetwork, **late, member=names),
            _drawn(DegradeNetwork, **late, broker=broker),
        ],
        "SetClock": [clock_set],
        "FailOffsetsReads": [_drawn(FailOffsetsReads, **cut_off, broker=broker)],
        "PauseBroker": [_drawn(PauseBroker, **cut_off, broker=broker)],
        "CrashBroker": [_drawn(CrashBroker, **cut_off, broker=broker)],
    }


def _own_happenings(world: World) -> _Kinds:
    """Happenings to groups of one kind alone."""
    group = world.group
    own: _Kinds = {}
    if isinstance(group, ConsumerGroupSpec):
        own = _consumer_happenings(group, world.topics)
    elif isinstance(group, ConnectGroupSpec):
        own = _connect_happenings(group)
    if world.upgrades:
        own["RestartMember"] = [_upgraded(group)]
    return own


def _consumer_happenings(group: ConsumerGroupSpec, topics: Sequence[TopicSpec]) -> _Kinds:
    names = [member.name for member in group.members]
    grown = max(_LEAST_GROWN, topics[0].partitions + 1)
    kinds: _Kinds = {
        "DeleteTopic": [
            _drawn(DeleteTopic, at_ms=instants(), topic=st.just(topics[-1].name)),
        ],
        "AddPartitions": [
            _drawn(
                AddPartitions, at_ms=instants(), topic=st.just(topics[0].name), to=st.just(grown)
            )
        ],
        "SlowDownstream": [
            _drawn(
                SlowDownstream,
                at_ms=instants(),
                group_id=st.just(group.group_id),
                percent=st.sampled_from((200, 1_000)),
                for_ms=_durations(100, 30_000),
            )
        ],
    }
    if group.topics:
        subscriptions = st.lists(st.sampled_from(group.topics), min_size=1, unique=True)
        kinds["ChangeSubscription"] = [
            _drawn(
                ChangeSubscription,
                at_ms=instants(),
                member=st.sampled_from(names),
                topics=subscriptions.map(tuple),
            )
        ]
    return kinds


def _pod_happenings(world: World) -> _Kinds:
    """Happenings to workloads and their pods."""
    if not world.workloads:
        return {}
    pods = {spec.name: pods_of(spec, world.group) for spec in world.workloads}
    workload = {"at_ms": instants(), "workload": st.sampled_from(list(pods))}
    most = min(map(len, pods.values())) // 2
    names = [name for each in pods.values() for name in each]
    notices = st.sampled_from((None, 0, 100))
    drained = {"node": st.just(1), "for_ms": _durations(100, 60_000), "notice_ms": notices}
    rolled = {"down_ms": _durations(100, 20_000), "controller": st.integers(0, world.brokers)}
    return {
        "DrainNode": [_drawn(DrainNode, at_ms=instants(), **drained)],
        "RollBrokers": [_drawn(RollBrokers, at_ms=instants(), **rolled)],
        "RollOut": [_drawn(RollOut, **workload)],
        "ScaleWorkload": [_drawn(ScaleWorkload, **workload, replicas=st.integers(0, most))],
        "EvictPod": [_drawn(EvictPod, at_ms=instants(), member=st.sampled_from(names))],
    }


def _upgraded(group: GroupSpec) -> st.SearchStrategy[Happening]:
    """A member that comes back with an assignor or a protocol more."""
    return _drawn(
        RestartMember,
        at_ms=instants(),
        member=st.sampled_from([member.name for member in members_of(group)]),
        down_ms=_durations(0, 5_000),
        settings=st.sampled_from(_upgrades(group)),
    )


def _upgrades(group: GroupSpec) -> list[dict[str, str]]:
    """Settings of a new process that get on with those of the old ones."""
    if isinstance(group, ConnectGroupSpec):
        return [{CONNECT_PROTOCOL: name} for name in CONNECT_PROTOCOLS]
    if isinstance(group, ShareGroupSpec):
        return [{"max.poll.records": "10"}]
    first = group.assignors[0]
    others = [name for names in assignor_lists() for name in names if name != first]
    return [
        {STRATEGY: ",".join((other, *group.assignors)), "session.timeout.ms": "15000"}
        for other in dict.fromkeys(others)
        if other not in group.assignors
    ]


def _connect_happenings(group: ConnectGroupSpec) -> _Kinds:
    common = {"at_ms": instants(), "group_id": st.just(group.group_id)}
    tasks = st.integers(0, 5)
    lagging = _drawn(
        LagConfigTopic,
        at_ms=instants(),
        member=st.sampled_from([worker.name for worker in group.workers]),
        for_ms=_durations(100, 20_000),
    )
    kinds: _Kinds = {
        "AddConnector": [
            _drawn(AddConnector, **common, connector=st.just(ADDED_CONNECTOR), tasks=tasks)
        ],
        "LagConfigTopic": [lagging],
    }
    if group.connectors:
        present = {**common, "connector": st.sampled_from(list(group.connectors))}
        number = st.one_of(st.none(), st.integers(0, 5))
        kinds["ChangeTaskCount"] = [_drawn(ChangeTaskCount, **present, tasks=tasks)]
        kinds["RemoveConnector"] = [_drawn(RemoveConnector, **present)]
        kinds["FailWork"] = [_drawn(FailWork, **present, task=number)]
        kinds["RestRequest"] = [_rest_requests(group)]
    return kinds


def _rest_requests(group: ConnectGroupSpec) -> st.SearchStrategy[Happening]:
    """What an operator does to a connector that exists from the start."""
    verbs = st.sampled_from(
        [
            ("PUT", "pause"),
            ("PUT", "resume"),
            ("PUT", "stop"),
            ("POST", "restart"),
            ("POST", "restart?includeTasks=true&onlyFailed=true"),
            ("POST", "tasks/0/restart"),
        ]
    )
    return st.builds(
        lambda at_ms, worker, connector, verb: RestRequest(
            at_ms=at_ms,
            member=worker,
            method=verb[0],
            target=f"/connectors/{connector}/{verb[1]}",
        ),
        instants(),
        st.sampled_from([worker.name for worker in group.workers]),
        st.sampled_from(list(group.connectors)),
        verbs,
    )
