"""Hypothesis strategies that draw scenarios: worlds, and faults that end.

A drawn scenario is the first phase of a property: things happen, and every one of them ends. The
second phase, calm until the group must have converged, is added by `conformance.scenario_timing`.
Values shrink towards few members, few happenings and round times. Needs the extra `conformance`.
"""

from collections.abc import Sequence
from typing import Final

from hypothesis import strategies as st

from coordinator_sim.assignors.registry import KAFKA_ASSIGNORS, own_assignors
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
    DropResponse,
    DuplicateResponse,
    FailOffsetsReads,
    FailWork,
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
    SlowPoll,
    StartMember,
    StopMember,
    TableLatency,
    TopicSpec,
    UniformLatency,
    WorkerSpec,
    members_of,
)
from coordinator_sim.sim.scenario.settings import CONNECT_PROTOCOL, CONNECT_PROTOCOLS, STRATEGY
from coordinator_sim.sim.scenario.world import LatencyLaw

MAX_MEMBERS: Final = 5
MAX_HAPPENINGS: Final = 8
BROKERS: Final = 3
LAST_FAULT_MS: Final = 60_000
"""No happening begins later; the first phase of a drawn scenario."""
_MOMENT_MS: Final = 10_000
OF_MEMBERS: Final = ("HEARTBEAT", "JOIN_GROUP", "SYNC_GROUP", "OFFSET_COMMIT")
OF_MEMBERSHIP: Final = OF_MEMBERS[:3]
"""Those of OF_MEMBERS that Connect workers send too."""
APIS: Final = (*OF_MEMBERS, "FIND_COORDINATOR")
TOPICS: Final = ("orders", "payments")
CONSUMERS: Final = "orders-app"
WORKERS: Final = "connect-cluster"
CONNECTORS: Final = ("jdbc", "s3")
ADDED_CONNECTOR: Final = "elastic"

_LATENCIES: Final[st.SearchStrategy[LatencyLaw]] = st.sampled_from(
    (ConstantLatency(), UniformLatency(100, 20_000), TableLatency())
)


def assignor_lists() -> tuple[tuple[str, ...], ...]:
    """Return the lists of assignors that groups are drawn with, the user's own at the end."""
    return (
        *((name,) for name in KAFKA_ASSIGNORS),
        ("range", "cooperative-sticky"),
        *((name,) for name in own_assignors()),
    )


def _instants() -> st.SearchStrategy[int]:
    """Instants in the first four seconds of each ten, so that happenings meet in one rebalance.

    A rebalance lasts until the next heartbeats, a few seconds; instants drawn evenly from a minute
    would seldom fall into one that another happening began.
    """
    moments = st.integers(0, LAST_FAULT_MS // _MOMENT_MS - 1)
    return st.builds(
        lambda moment, step: moment * _MOMENT_MS + step * 100, moments, st.integers(0, 40)
    )


def _starts() -> st.SearchStrategy[int | None]:
    """When a member starts: within the first seconds, or never by itself."""
    return st.one_of(st.integers(0, 50).map(lambda step: step * 100), st.none())


def _durations(low_ms: int, high_ms: int) -> st.SearchStrategy[int]:
    return st.integers(low_ms // 100, high_ms // 100).map(lambda step: step * 100)


def _of(*values: int) -> st.SearchStrategy[str]:
    return st.sampled_from([str(value) for value in values])


def _added_latencies() -> st.SearchStrategy[int]:
    """From a slow network to one that outlasts session timeouts."""
    return st.sampled_from((100, 1_000, 7_000))


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


@st.composite
def topics(draw: st.DrawFn) -> tuple[TopicSpec, ...]:
    """One or two topics of up to eight partitions."""
    names = TOPICS[: draw(st.integers(1, len(TOPICS)))]
    return tuple(TopicSpec(name=name, partitions=draw(st.integers(1, 8))) for name in names)


@st.composite
def consumer_groups(draw: st.DrawFn, world: Sequence[TopicSpec]) -> ConsumerGroupSpec:
    """A consumer group of static and dynamic members."""
    count = draw(st.integers(1, MAX_MEMBERS))
    members = tuple(
        ConsumerSpec(
            name=f"consumer-{number}",
            start_ms=draw(_starts()) if number > 1 else 0,
            instance_id=f"instance-{number}" if draw(st.booleans()) else None,
            processing_ms=draw(st.sampled_from((500, 1_000, 2_000))),
            callback_ms=draw(st.sampled_from((0, 300))),
        )
        for number in range(1, count + 1)
    )
    return ConsumerGroupSpec(
        group_id=CONSUMERS,
        topics=tuple(topic.name for topic in world),
        members=members,
        assignors=draw(st.sampled_from(assignor_lists())),
        settings=draw(_CONSUMER_SETTINGS),
    )


@st.composite
def connect_groups(draw: st.DrawFn) -> ConnectGroupSpec:
    """A Connect cluster of up to four workers."""
    count = draw(st.integers(1, MAX_MEMBERS - 1))
    names = CONNECTORS[: draw(st.integers(0, len(CONNECTORS)))]
    return ConnectGroupSpec(
        group_id=WORKERS,
        workers=tuple(
            WorkerSpec(
                name=f"worker-{number}",
                start_ms=draw(_starts()) if number > 1 else 0,
            )
            for number in range(1, count + 1)
        ),
        connect_protocol=draw(st.sampled_from(("sessioned", "compatible", "eager"))),
        connectors={name: draw(st.integers(0, 5)) for name in names},
        settings=draw(_CONNECT_SETTINGS),
    )


def _clock_set(*, at_ms: int, member: str, skew_ms: int, drift_ppm: int) -> Happening:
    """A step to an instant that is not before the start of the run, and a drift."""
    step_ms = max(skew_ms, -at_ms)
    return SetClock(at_ms=at_ms, member=member, skew_ms=step_ms, drift_ppm=drift_ppm)


def _member_happenings(names: Sequence[str], group_id: str) -> st.SearchStrategy[Happening]:
    at_ms, member = _instants(), st.sampled_from(names)
    of_role = {"at_ms": at_ms, "group_id": st.just(group_id), "role": st.sampled_from(ROLES)}
    return st.one_of(
        st.builds(StartMember, at_ms=at_ms, member=member),
        st.builds(StopMember, at_ms=at_ms, member=member),
        st.builds(CrashMember, at_ms=at_ms, member=member),
        st.builds(
            RestartMember,
            at_ms=at_ms,
            member=member,
            down_ms=_durations(0, 20_000),
            graceful=st.booleans(),
        ),
        st.builds(PauseMember, at_ms=at_ms, member=member, for_ms=_durations(100, 30_000)),
        st.builds(SlowPoll, at_ms=at_ms, member=member, for_ms=_durations(100, 30_000)),
        st.builds(
            DropResponse,
            at_ms=at_ms,
            member=member,
            api=st.sampled_from(APIS),
            count=st.integers(1, 2),
        ),
        st.builds(
            DelayResponse,
            at_ms=at_ms,
            member=member,
            api=st.sampled_from(APIS),
            by_ms=_durations(100, 15_000),
            count=st.integers(1, 2),
        ),
        *(
            st.builds(kind, at_ms=at_ms, member=member, api=st.sampled_from(OF_MEMBERSHIP))
            for kind in (DuplicateResponse, ReorderResponses)
        ),
        st.builds(
            _clock_set,
            at_ms=at_ms,
            member=member,
            skew_ms=st.integers(-30_000, 30_000),
            drift_ppm=st.integers(-500, 500),
        ),
        st.builds(DropResponse, **of_role, api=st.sampled_from(OF_MEMBERS)),
        st.builds(
            DelayResponse, **of_role, api=st.sampled_from(OF_MEMBERS), by_ms=_durations(100, 9_000)
        ),
    )


def _world_happenings(names: Sequence[str], group: GroupSpec) -> st.SearchStrategy[Happening]:
    """Happenings to brokers and links.

    HoldReplication is not drawn: a heartbeat that waits for replication is in the trace when it is
    answered, and its session counts from when it arrived, which I6 cannot see.
    """
    at_ms, broker = _instants(), st.integers(1, BROKERS)
    cut_off = {"at_ms": at_ms, "for_ms": _durations(100, 20_000)}
    return st.one_of(
        st.builds(
            MoveCoordinator,
            at_ms=at_ms,
            group_id=st.just(group.group_id),
            to_broker=st.one_of(st.none(), broker),
        ),
        st.builds(PartitionNetwork, **cut_off, member=st.sampled_from(names)),
        st.builds(PartitionNetwork, **cut_off, broker=broker),
        st.builds(PartitionNetwork, **cut_off, broker=broker, member=st.sampled_from(names)),
        st.builds(
            DegradeNetwork, **cut_off, member=st.sampled_from(names), latency_ms=_added_latencies()
        ),
        st.builds(DegradeNetwork, **cut_off, broker=broker, latency_ms=_added_latencies()),
        st.builds(
            SetClock,
            at_ms=at_ms,
            broker=broker,
            skew_ms=st.sampled_from((0, 30_000, 8 * 24 * 3_600_000)),
            drift_ppm=st.integers(-500, 500),
        ),
        st.builds(FailOffsetsReads, at_ms=at_ms, broker=broker, for_ms=_durations(100, 20_000)),
        st.builds(PauseBroker, at_ms=at_ms, broker=broker, for_ms=_durations(100, 20_000)),
        st.builds(CrashBroker, at_ms=at_ms, broker=broker, for_ms=_durations(100, 20_000)),
    )


def _consumer_happenings(
    group: ConsumerGroupSpec, world: Sequence[TopicSpec]
) -> st.SearchStrategy[Happening]:
    names = [member.name for member in group.members]
    subscriptions = st.lists(st.sampled_from(group.topics), min_size=1, unique=True).map(tuple)
    return st.one_of(
        st.builds(
            ChangeSubscription,
            at_ms=_instants(),
            member=st.sampled_from(names),
            topics=subscriptions,
        ),
        st.builds(AddPartitions, at_ms=_instants(), topic=st.just(world[0].name), to=st.just(10)),
        st.builds(
            RestartMember,
            at_ms=_instants(),
            member=st.sampled_from(names),
            down_ms=_durations(0, 5_000),
            settings=st.sampled_from(_upgrades(group)),
        ),
    )


def _upgrades(group: ConsumerGroupSpec) -> list[dict[str, str]]:
    """Settings of a new process that get on with the assignors of the old ones."""
    first = group.assignors[0]
    others = [name for names in assignor_lists() for name in names if name != first]
    return [
        {STRATEGY: ",".join((other, *group.assignors)), "session.timeout.ms": "15000"}
        for other in dict.fromkeys(others)
        if other not in group.assignors
    ]


def _connect_happenings(group: ConnectGroupSpec) -> st.SearchStrategy[Happening]:
    common = {"at_ms": _instants(), "group_id": st.just(group.group_id)}
    tasks = st.integers(0, 5)
    choices: list[st.SearchStrategy[Happening]] = [
        st.builds(AddConnector, **common, connector=st.just(ADDED_CONNECTOR), tasks=tasks),
        st.builds(
            LagConfigTopic,
            at_ms=_instants(),
            member=st.sampled_from([worker.name for worker in group.workers]),
            for_ms=_durations(100, 20_000),
        ),
        st.builds(
            RestartMember,
            at_ms=_instants(),
            member=st.sampled_from([worker.name for worker in group.workers]),
            down_ms=_durations(0, 5_000),
            settings=st.sampled_from([{CONNECT_PROTOCOL: name} for name in CONNECT_PROTOCOLS]),
        ),
    ]
    if group.connectors:
        present = st.sampled_from(list(group.connectors))
        choices.append(st.builds(ChangeTaskCount, **common, connector=present, tasks=tasks))
        choices.append(st.builds(RemoveConnector, **common, connector=present))
        number = st.one_of(st.none(), st.integers(0, 5))
        choices.append(st.builds(FailWork, **common, connector=present, task=number))
        choices.append(_rest_requests(group))
    return st.one_of(choices)


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
        _instants(),
        st.sampled_from([worker.name for worker in group.workers]),
        st.sampled_from(list(group.connectors)),
        verbs,
    )


@st.composite
def scenarios(draw: st.DrawFn) -> Scenario:
    """A world with a consumer group or a Connect cluster, and things that happen to it."""
    world = draw(topics())
    group: GroupSpec = draw(st.one_of(consumer_groups(world), connect_groups()))
    return draw(_happening_to(group, world))


@st.composite
def consumer_scenarios(draw: st.DrawFn) -> Scenario:
    """A world with a consumer group, and things that happen to it."""
    world = draw(topics())
    return draw(_happening_to(draw(consumer_groups(world)), world))


@st.composite
def connect_scenarios(draw: st.DrawFn) -> Scenario:
    """A world with a Connect cluster, and things that happen to it."""
    return draw(_happening_to(draw(connect_groups()), draw(topics())))


@st.composite
def _happening_to(draw: st.DrawFn, group: GroupSpec, world: tuple[TopicSpec, ...]) -> Scenario:
    """The group's world with one to `MAX_HAPPENINGS` happenings."""
    names = [member.name for member in members_of(group)]
    own = (
        _consumer_happenings(group, world)
        if isinstance(group, ConsumerGroupSpec)
        else _connect_happenings(group)
    )
    anything = st.one_of(
        _member_happenings(names, group.group_id), _world_happenings(names, group), own
    )
    happenings = tuple(draw(st.lists(anything, min_size=1, max_size=MAX_HAPPENINGS)))
    return Scenario(
        name="drawn",
        title="A drawn scenario",
        story="Drawn by a property test.",
        duration_ms=LAST_FAULT_MS,
        topics=world,
        groups=(group,),
        happenings=happenings,
        brokers=BROKERS,
        broker_settings=draw(_BROKER_SETTINGS),
        network=NetworkSpec(latency=draw(_LATENCIES)),
    )
