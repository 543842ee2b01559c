"""Hypothesis strategies that draw scenarios: worlds, and faults that end.

A drawn scenario is the first phase of a property: things happen, and every one of them ends. The
second phase, calm until the group must have converged, is added by `conformance.scenario_timing`.
Values shrink towards few members, few happenings and round times. Needs the extra `conformance`.

`scenarios()` draws all of it. Its arguments, also those of `consumer_scenarios` and
`connect_scenarios`, say what is one's own:

- settings: Kafka's name -> a value, a list to draw from, or a strategy of values. What is not
  named keeps Kafka's default, or is drawn where no settings are given at all.
- topologies: topic -> number of partitions, a list of such topologies, or a strategy of them.
- faults: kinds of happenings, as `FAULTS` names them; none for a world in which nothing happens.
- assignors: names, or lists of names in order of preference; protocols of Connect alike.
- members: how many, or the least and the most.

Strategies of happenings: what befalls the members, brokers and links of a drawn world.

Every happening begins before `LAST_FAULT_MS` and ends. `faults_of` gives those that suit a group,
by the names of their kinds; worlds and groups are in `strategies`.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from difflib import get_close_matches
from typing import Final, NamedTuple, get_args

import msgspec
from hypothesis import strategies as st
from msgspec import UNSET

from coordinator_sim.assignors.registry import CONSUMER_ASSIGNORS, KAFKA_ASSIGNORS, own_assignors
from coordinator_sim.broker.faults.faults import Action, Close, Delay, Drop, Fail, Fault, Match
from coordinator_sim.errors import ConfigError
from coordinator_sim.kafka.roles import ROLES
from coordinator_sim.sim.scenario import (
    AddConnector,
    AddPartitions,
    ChangeSubscription,
    ChangeTaskCount,
    ConnectGroupSpec,
    ConstantLatency,
    ConsumerGroupSpec,
    ConsumerSpec,
    CrashBroker,
    CrashMember,
    DegradeNetwork,
    DelayResponse,
    DeleteTopic,
    DenyAccess,
    DropResponse,
    DuplicateResponse,
    FailOffsetsReads,
    FailWork,
    FaultRule,
    GroupSpec,
    Happening,
    LagConfigTopic,
    MoveCoordinator,
    NetworkSpec,
    PartitionNetwork,
    PauseBroker,
    PauseMember,
    RemoveConnector,
    ReorderResponses,
    RestartMember,
    RestRequest,
    Scenario,
    SetClock,
    SlowDownstream,
    SlowPoll,
    StartMember,
    StopMember,
    TableLatency,
    TopicSpec,
    UniformLatency,
    WorkerSpec,
    members_of,
)
from coordinator_sim.sim.scenario.load import (
    BurstLoad,
    ConstantLoad,
    DiurnalLoad,
    Load,
    RecordedLoad,
    ZipfKeys,
)
from coordinator_sim.sim.scenario.scenario import with_settings
from coordinator_sim.sim.scenario.settings import (
    CONNECT_PROTOCOL,
    CONNECT_PROTOCOLS,
    SETTINGS,
    STRATEGY,
    Scope,
    check_value,
    known_names,
    unknown_setting,
)
from coordinator_sim.sim.scenario.world import LatencyLaw

LAST_FAULT_MS: Final = 60_000
"""No happening begins later; the first phase of a drawn scenario."""
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
    """

    topics: Sequence[TopicSpec]
    group: GroupSpec
    brokers: int
    upgrades: bool = True


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
    for more in (_world_happenings(world), _own_happenings(world)):
        for name, drawn in more.items():
            kinds.setdefault(name, []).extend(drawn)
    return [
        one for name, drawn in kinds.items() if faults is None or name in faults for one in drawn
    ]


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
    own = (
        _consumer_happenings(group, world.topics)
        if isinstance(group, ConsumerGroupSpec)
        else _connect_happenings(group)
    )
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


MAX_MEMBERS: Final = 5
MAX_HAPPENINGS: Final = 8
BROKERS: Final = 3
TOPICS: Final = ("orders", "payments")
CONSUMERS: Final = "orders-app"
WORKERS: Final = "connect-cluster"
CONNECTORS: Final = ("jdbc", "s3")
_MOST_MEMBERS: Final = 1_000
"""Most members that may be asked for: an example of more takes minutes."""

Value = str | Sequence[str] | st.SearchStrategy[str]
"""A setting's value, values to draw from, or a strategy of values."""
Topology = Mapping[str, int]
"""Topic -> number of partitions."""
Topologies = Topology | Sequence[Topology] | st.SearchStrategy[Topology]
Count = int | tuple[int, int]
"""So many, or from so many to so many."""

_LATENCIES: Final[st.SearchStrategy[LatencyLaw]] = st.sampled_from(
    (ConstantLatency(), UniformLatency(100, 20_000), TableLatency())
)


def _starts() -> st.SearchStrategy[int | None]:
    """When a member starts: within the first seconds, or never by itself."""
    return st.one_of(st.integers(0, 50).map(lambda step: step * 100), st.none())


def _of(*values: int) -> st.SearchStrategy[str]:
    return st.sampled_from([str(value) for value in values])


_CLIENT_SETTINGS: Final = {
    "session.timeout.ms": _of(10_000, 6_000, 20_000),
    "heartbeat.interval.ms": _of(3_000, 1_000),
    "request.timeout.ms": _of(10_000, 30_000),
    "metadata.max.age.ms": st.just("10000"),
}
_CONSUMER_SETTINGS: Final = st.fixed_dictionaries(
    {
        **_CLIENT_SETTINGS,
        "max.poll.interval.ms": _of(20_000, 10_000),
        "enable.auto.commit": st.sampled_from(("true", "false")),
        "auto.commit.interval.ms": st.just("5000"),
    }
)
_CONNECT_SETTINGS: Final = st.fixed_dictionaries(
    {
        **_CLIENT_SETTINGS,
        "rebalance.timeout.ms": _of(20_000, 10_000),
        "scheduled.rebalance.max.delay.ms": _of(10_000, 0, 30_000),
    }
)
_BROKER_SETTINGS: Final = st.fixed_dictionaries({"group.initial.rebalance.delay.ms": _of(3_000, 0)})


class _Wishes(msgspec.Struct, frozen=True):
    """The arguments of a strategy, checked; None is what nothing was said of."""

    settings: dict[str, st.SearchStrategy[str]] | None
    topologies: st.SearchStrategy[Topology] | None
    faults: tuple[str, ...] | None
    assignors: tuple[tuple[str, ...], ...]
    protocols: tuple[str, ...]
    members: tuple[int, int]

    @property
    def allows_upgrades(self) -> bool:
        """Whether members may come back with settings that were drawn."""
        return self.settings is None and not self.assignors and not self.protocols

    def suit(self, scope: Scope) -> bool:
        """Whether groups of a kind can be as it was wished."""
        field, others = (
            (STRATEGY, self.protocols)
            if scope is Scope.CONSUMER
            else (CONNECT_PROTOCOL, self.assignors)
        )
        read = {*SETTINGS[Scope.BROKER], *SETTINGS[scope], field}
        return not others and all(name in read for name in self.settings or ())


def scenarios(
    *,
    settings: Mapping[str, Value] | None = None,
    topologies: Topologies | None = None,
    faults: Sequence[str] | None = None,
    assignors: Sequence[str | Sequence[str]] | None = None,
    members: Count | None = None,
) -> st.SearchStrategy[Scenario]:
    """Worlds with a consumer group or a Connect cluster, and what happens to them.

    Args:
        settings: Settings by Kafka's names, see above; those that only one kind of client reads
            leave groups of that kind alone.
        topologies: Topics and their partitions, see above.
        faults: Kinds of happenings to draw, such as RestartMember; None for all.
        assignors: Assignors of consumers, or protocols of Connect, to draw from.
        members: Number of consumers or workers; 1 to 5 if nothing is said.

    Raises:
        ConfigError: a name is unknown, a value is outside its bounds, or no client reads all of it.
    """
    wishes = _wishes(settings, topologies, faults, assignors, members)
    kinds = []
    if wishes.suit(Scope.CONSUMER):
        kinds.append(_consumer_scenarios(wishes))
    if wishes.suit(Scope.CONNECT):
        kinds.append(_connect_scenarios(wishes))
    if not kinds:
        raise ConfigError(
            "settings and assignors: some are of consumers alone, some of Connect alone; "
            "ask for them apart"
        )
    return st.one_of(kinds)


def consumer_scenarios(
    *,
    settings: Mapping[str, Value] | None = None,
    topologies: Topologies | None = None,
    faults: Sequence[str] | None = None,
    assignors: Sequence[str | Sequence[str]] | None = None,
    members: Count | None = None,
) -> st.SearchStrategy[Scenario]:
    """Worlds with a consumer group of static and dynamic members; arguments as in `scenarios`.

    Raises:
        ConfigError: as `scenarios`; or something is of Connect alone.
    """
    wishes = _wishes(settings, topologies, faults, assignors, members)
    if not wishes.suit(Scope.CONSUMER):
        raise ConfigError("settings and assignors: some are of Connect; take connect_scenarios")
    return _consumer_scenarios(wishes)


def connect_scenarios(
    *,
    settings: Mapping[str, Value] | None = None,
    topologies: Topologies | None = None,
    faults: Sequence[str] | None = None,
    assignors: Sequence[str | Sequence[str]] | None = None,
    members: Count | None = None,
) -> st.SearchStrategy[Scenario]:
    """Worlds with a Connect cluster; arguments as in `scenarios`, with protocols for assignors.

    Raises:
        ConfigError: as `scenarios`; or something is of consumers alone.
    """
    wishes = _wishes(settings, topologies, faults, assignors, members)
    if not wishes.suit(Scope.CONNECT):
        raise ConfigError("settings and assignors: some are of consumers; take consumer_scenarios")
    return _connect_scenarios(wishes)


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
    world = World(scenario.topics, group, scenario.brokers, upgrades=False)
    happenings = _happenings(draw, world, None if faults is None else tuple(faults))
    return msgspec.structs.replace(
        scenario,
        happenings=(*scenario.happenings, *happenings),
        duration_ms=max(scenario.duration_ms, LAST_FAULT_MS),
    )


# What was asked for.


def _wishes(
    settings: Mapping[str, Value] | None,
    topologies: Topologies | None,
    faults: Sequence[str] | None,
    assignors: Sequence[str | Sequence[str]] | None,
    members: Count | None,
) -> _Wishes:
    check_faults(faults or ())
    named = [(one,) if isinstance(one, str) else tuple(one) for one in assignors or ()]
    for name in (name for names in named for name in names):
        if name not in (*CONSUMER_ASSIGNORS, *CONNECT_PROTOCOLS):
            known = ", ".join((*CONSUMER_ASSIGNORS, *CONNECT_PROTOCOLS))
            raise ConfigError(f"assignors: unknown {name!r}: must be of {known}")
    protocols = tuple(name for names in named for name in names if name in CONNECT_PROTOCOLS)
    return _Wishes(
        settings=None if settings is None else _values(settings),
        topologies=None if topologies is None else _topologies(topologies),
        faults=None if faults is None else tuple(faults),
        assignors=tuple(names for names in named if names[0] not in CONNECT_PROTOCOLS),
        protocols=protocols,
        members=_bounds(members),
    )


def _values(settings: Mapping[str, Value]) -> dict[str, st.SearchStrategy[str]]:
    """A strategy for each setting; values that are there already are checked."""
    known = known_names()
    drawn: dict[str, st.SearchStrategy[str]] = {}
    for name, value in settings.items():
        if name not in known:
            raise unknown_setting(name)
        if isinstance(value, st.SearchStrategy):
            drawn[name] = value
            continue
        given = [value] if isinstance(value, str) else list(value)
        for one in given:
            _check_value(name, one)
        drawn[name] = st.sampled_from(given)
    return drawn


def _check_value(name: str, value: str) -> None:
    for scope in Scope:
        setting = SETTINGS[scope].get(name)
        if setting is not None:
            check_value(name, setting, value)


def _topologies(topologies: Topologies) -> st.SearchStrategy[Topology]:
    if isinstance(topologies, st.SearchStrategy):
        return topologies
    if isinstance(topologies, Mapping):
        return st.just(topologies)
    return st.sampled_from(list(topologies))


def _bounds(members: Count | None) -> tuple[int, int]:
    low, high = (
        (1, MAX_MEMBERS)
        if members is None
        else (members, members)
        if isinstance(members, int)
        else members
    )
    if not 1 <= low <= high <= _MOST_MEMBERS:
        raise ConfigError(
            f"members={members}: must be a number from 1 to {_MOST_MEMBERS}, or the least and the "
            "most of them"
        )
    return low, high


# Worlds.


@st.composite
def loads(draw: st.DrawFn) -> Load:
    """What producers write in a minute or so: evenly, by a curve, in bursts, or as recorded."""
    low, high = draw(st.sampled_from((0, 7, 100))), draw(st.sampled_from((1, 40, 2_000)))
    rates = {"base_total_per_s": low, "every_ms": 20_000, "for_ms": draw(st.integers(1, 20_000))}
    bursts = BurstLoad(burst_total_per_s=high, first_at_ms=draw(st.integers(0, 40_000)), **rates)
    curve = DiurnalLoad(
        base_total_per_s=low, peak_total_per_s=low + high, peak_at_ms=20_000, period_ms=60_000
    )
    recorded = RecordedLoad(points=((draw(st.integers(0, 9)), low), (10, high)), repeats=low == 0)
    return draw(st.sampled_from((ConstantLoad(total_per_s=high), curve, bursts, recorded)))


@st.composite
def topics(draw: st.DrawFn) -> tuple[TopicSpec, ...]:
    """One or two topics of up to eight partitions, some with a load and keys that share it."""
    names = TOPICS[: draw(st.integers(1, len(TOPICS)))]
    found: list[TopicSpec] = []
    for name in names:
        topic = TopicSpec(name=name, partitions=draw(st.integers(1, 8)))
        if draw(st.booleans()):
            keys = draw(st.sampled_from((UNSET, ZipfKeys(), ZipfKeys(exponent_percent=30))))
            topic = msgspec.structs.replace(topic, load=draw(loads()), keys=keys)
        found.append(topic)
    return tuple(found)


def _drawn_topics(draw: st.DrawFn, wishes: _Wishes) -> tuple[TopicSpec, ...]:
    if wishes.topologies is None:
        return draw(topics())
    topology = draw(wishes.topologies)
    if not topology:
        raise ConfigError("topologies: one has no topic; give each at least one")
    return tuple(TopicSpec(name=name, partitions=count) for name, count in topology.items())


@st.composite
def _consumer_scenarios(draw: st.DrawFn, wishes: _Wishes) -> Scenario:
    world = _drawn_topics(draw, wishes)
    members = tuple(
        ConsumerSpec(
            name=f"consumer-{number}",
            start_ms=draw(_starts()) if number > 1 else 0,
            instance_id=f"instance-{number}" if draw(st.booleans()) else None,
            processing_ms=draw(st.sampled_from((500, 1_000, 2_000))),
            callback_ms=draw(st.sampled_from((0, 300))),
        )
        for number in range(1, draw(st.integers(*wishes.members)) + 1)
    )
    group = ConsumerGroupSpec(
        group_id=CONSUMERS,
        topics=tuple(topic.name for topic in world),
        members=members,
        assignors=draw(st.sampled_from(wishes.assignors or assignor_lists())),
        settings=draw(_CONSUMER_SETTINGS) if wishes.settings is None else {},
    )
    return _drawn_scenario(draw, group, world, wishes)


@st.composite
def _connect_scenarios(draw: st.DrawFn, wishes: _Wishes) -> Scenario:
    names = CONNECTORS[: draw(st.integers(0, len(CONNECTORS)))]
    group = ConnectGroupSpec(
        group_id=WORKERS,
        workers=tuple(
            WorkerSpec(
                name=f"worker-{number}",
                start_ms=draw(_starts()) if number > 1 else 0,
            )
            for number in range(1, draw(st.integers(*wishes.members)) + 1)
        ),
        connect_protocol=draw(st.sampled_from(wishes.protocols or CONNECT_PROTOCOLS[::-1])),
        connectors={name: draw(st.integers(0, 5)) for name in names},
        settings=draw(_CONNECT_SETTINGS) if wishes.settings is None else {},
    )
    return _drawn_scenario(draw, group, _drawn_topics(draw, wishes), wishes)


def _drawn_scenario(
    draw: st.DrawFn, group: GroupSpec, world: tuple[TopicSpec, ...], wishes: _Wishes
) -> Scenario:
    """The group's world with what happens to it, and the settings that were asked for."""
    drawn_for = World(world, group, BROKERS, upgrades=wishes.allows_upgrades)
    scenario = Scenario(
        name="drawn",
        title="A drawn scenario",
        story="Drawn by a property test.",
        duration_ms=LAST_FAULT_MS,
        topics=world,
        groups=(group,),
        happenings=_happenings(draw, drawn_for, wishes.faults),
        brokers=BROKERS,
        broker_settings=draw(_BROKER_SETTINGS) if wishes.settings is None else {},
        network=NetworkSpec(latency=draw(_LATENCIES)),
    )
    asked = {name: draw(value) for name, value in (wishes.settings or {}).items()}
    return with_settings(scenario, asked)


def _happenings(
    draw: st.DrawFn, world: World, faults: tuple[str, ...] | None
) -> tuple[Happening, ...]:
    """One to `MAX_HAPPENINGS` happenings; none where no kind suits the group."""
    suiting = faults_of(world, faults)
    if not suiting:
        return ()
    return tuple(draw(st.lists(st.one_of(suiting), min_size=1, max_size=MAX_HAPPENINGS)))


__all__ = [
    "ADDED_CONNECTOR",
    "FAULTS",
    "LAST_FAULT_MS",
    "assignor_lists",
    "connect_scenarios",
    "consumer_scenarios",
    "faults_on",
    "loads",
    "scenarios",
    "topics",
]
