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
"""

from collections.abc import Mapping, Sequence
from typing import Final

import msgspec
from hypothesis import strategies as st
from msgspec import UNSET

from coordinator_sim.assignors.registry import CONSUMER_ASSIGNORS
from coordinator_sim.errors import ConfigError
from coordinator_sim.sim.scenario import (
    ConnectGroupSpec,
    ConstantLatency,
    ConsumerGroupSpec,
    ConsumerSpec,
    GroupSpec,
    NetworkSpec,
    Scenario,
    TableLatency,
    TopicSpec,
    UniformLatency,
    WorkerSpec,
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
from coordinator_sim_scenarios.drawn_happenings import (
    ADDED_CONNECTOR,
    FAULTS,
    LAST_FAULT_MS,
    OF_MEMBERSHIP,
    World,
    assignor_lists,
    check_faults,
    faults_on,
    happenings,
    starts,
)
from coordinator_sim_scenarios.drawn_worlds import (
    share_scenarios,
    streams_scenarios,
    workload_scenarios,
)

MAX_MEMBERS: Final = 5
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
    kinds: tuple[Load, ...] = (ConstantLoad(total_per_s=high), curve, bursts, recorded)
    return draw(st.sampled_from(kinds))


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
            start_ms=draw(starts()) if number > 1 else 0,
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
                start_ms=draw(starts()) if number > 1 else 0,
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
        happenings=happenings(draw, drawn_for, wishes.faults),
        brokers=BROKERS,
        broker_settings=draw(_BROKER_SETTINGS) if wishes.settings is None else {},
        network=NetworkSpec(latency=draw(_LATENCIES)),
    )
    asked = {name: draw(value) for name, value in (wishes.settings or {}).items()}
    return with_settings(scenario, asked)


__all__ = [
    "ADDED_CONNECTOR",
    "FAULTS",
    "LAST_FAULT_MS",
    "OF_MEMBERSHIP",
    "assignor_lists",
    "connect_scenarios",
    "consumer_scenarios",
    "faults_on",
    "loads",
    "scenarios",
    "share_scenarios",
    "streams_scenarios",
    "topics",
    "workload_scenarios",
]
