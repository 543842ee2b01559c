import json
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from types import FrameType
from typing import Any

import msgspec
import pytest

from coordinator_sim.errors import ConfigError, ScenarioError
from coordinator_sim.kafka.partitioning import partition_for
from coordinator_sim.sim.scenario import (
    AddConnector,
    ConnectGroupSpec,
    ConsumerGroupSpec,
    ConsumerSpec,
    FailOffsetsReads,
    Happening,
    MoveCoordinator,
    NetworkSpec,
    PartitionNetwork,
    RestartMember,
    Scenario,
    StartMember,
    TableLatency,
    TopicSpec,
    UniformLatency,
    WorkerSpec,
    load_scenario,
    rolling_bounce,
    scale_out,
    scenario_from_json,
    scenario_to_json,
    with_assignor,
    with_settings,
)
from coordinator_sim.trace.events import Event, TraceEvent
from coordinator_sim_conformance.checkers import check_all
from coordinator_sim_conformance.scenario_timing import circumstances_of
from tests.simulated import events_of, scenario_of

IMPOSSIBLE = Path(__file__).with_name("impossible_happenings.jsonl")
"""Happenings that the scenario below cannot have, and the pattern of their refusals."""


def make_scenario(*happenings: Happening, **fields: Any) -> Scenario:  # noqa: ANN401 - any field
    """Two consumers on one topic beside a Connect cluster of one worker."""
    given: dict[str, Any] = {
        "name": "small",
        "title": "A small world",
        "story": "Nothing happens.",
        "duration_ms": 60_000,
        "topics": (TopicSpec(name="orders", partitions=4),),
        "groups": (
            ConsumerGroupSpec(
                group_id="readers",
                topics=("orders",),
                members=(ConsumerSpec(name="a"), ConsumerSpec(name="b", instance_id="b-0")),
            ),
            ConnectGroupSpec(
                group_id="connect", workers=(WorkerSpec(name="w"),), connectors={"sink": 2}
            ),
        ),
        "happenings": happenings,
    }
    return Scenario(**{**given, **fields})


def test_json_round_trip_keeps_everything(tmp_path: Path) -> None:
    """A scenario written to a file and read again is the same scenario."""
    scenario = make_scenario(
        RestartMember(at_ms=1_000, member="a", down_ms=500),
        PartitionNetwork(at_ms=2_000, broker=2, for_ms=10),
        AddConnector(at_ms=3_000, group_id="connect", connector="source", tasks=3),
        network=NetworkSpec(latency=TableLatency()),
        broker_settings={"group.max.size": "10"},
    )
    path = tmp_path / "small.json"
    path.write_bytes(scenario_to_json(scenario))

    assert load_scenario(path) == scenario


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "scenario: Input data was truncated"),
        ("[]", "Expected `object`, got `array`"),
        ("{}", "missing required field `name`"),
        ('{"name": "x", "colour": 1}', "unknown field `colour`"),
    ],
)
def test_text_that_is_no_scenario_is_refused(text: str, message: str) -> None:
    """What cannot be read says what is wrong with it."""
    with pytest.raises(ScenarioError, match=message):
        scenario_from_json(text)


@pytest.mark.parametrize("line", IMPOSSIBLE.read_text("utf-8").splitlines())
def test_impossible_happening_is_refused(line: str) -> None:
    """The message names the value, the bound and what there is."""
    case = json.loads(line)
    happening = msgspec.convert(case["happening"], Happening)
    with pytest.raises(ScenarioError, match=case["message"]):
        make_scenario(happening)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"max.poll.interval": "1"}, "unknown setting 'max.poll.interval': did you mean max.poll"),
        ({"connect.protocol": "eager"}, "unknown setting 'connect.protocol'"),
        ({"partition.assignment.strategy": "best"}, "unknown assignor 'best'"),
        ({"session.timeout.ms": "0"}, "session.timeout.ms=0: must be from 1"),
    ],
)
def test_settings_of_a_restart_are_checked(settings: dict[str, str], message: str) -> None:
    """Settings of a restart are checked as a group's; only what the member reads is taken."""
    with pytest.raises(ConfigError, match=message):
        make_scenario(RestartMember(at_ms=0, member="a", down_ms=1, settings=settings))
    with pytest.raises(ConfigError, match=message):
        make_scenario(StartMember(at_ms=0, member="a", settings=settings))


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"name": " x"}, "name ' x'"),
        ({"duration_ms": 0}, "duration_ms=0: must be from 1"),
        ({"brokers": 0}, "brokers=0: must be from 1 to 1000"),
        ({"kubernetes_nodes": 5_001}, "kubernetes_nodes=5001: must be from 1 to 5000"),
        ({"load_ms": -1}, "load_ms=-1"),
        ({"topics": ()}, "unknown topic 'orders'"),
        ({"topics": (TopicSpec(name="orders", partitions=0),)}, "partitions of topic 'orders'=0"),
        ({"topics": (TopicSpec(name="orders", partitions=1),) * 2}, "topic 'orders' .* twice"),
        ({"network": NetworkSpec(latency=UniformLatency(5, 4))}, "high_us=4: must be from 5"),
        ({"network": NetworkSpec(latency=TableLatency((1,)))}, "give at least two"),
        ({"network": NetworkSpec(latency=TableLatency((2, 1)))}, r"quantiles_us\[1\]=1"),
    ],
)
def test_impossible_world_is_refused(fields: dict[str, Any], message: str) -> None:
    """A world that cannot be is refused when it is written down."""
    with pytest.raises(ScenarioError, match=message):
        make_scenario(**fields)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"topics": ("orders",)}, "has topics and a pattern"),
        ({"pattern": "(", "topics": ()}, "pattern '\\('"),
        (
            {"topics": (), "members": (ConsumerSpec(name="f", client="franz-go"),)},
            r"franz-go consumers have one with group\.protocol=consumer alone",
        ),
    ],
)
def test_impossible_pattern_is_refused(fields: dict[str, Any], message: str) -> None:
    """A pattern stands alone, is a regular expression, and not for a classic model's members."""
    given: dict[str, Any] = {"members": (ConsumerSpec(name="p"),), "pattern": "o.*", **fields}
    with pytest.raises(ScenarioError, match=message):
        make_scenario(groups=(ConsumerGroupSpec(group_id="matchers", **given),))


def test_group_defined_twice_is_refused() -> None:
    """Two groups of one id are one too many."""
    group = ConsumerGroupSpec(group_id="g", topics=("orders",), members=())

    with pytest.raises(ScenarioError, match="group 'g' is defined twice"):
        make_scenario(groups=(group, group))


def test_member_defined_twice_is_refused() -> None:
    """Names of members are unique over all groups, as they are client ids."""
    first = ConsumerGroupSpec(group_id="g", topics=("orders",), members=(ConsumerSpec(name="a"),))
    second = ConnectGroupSpec(group_id="h", workers=(WorkerSpec(name="a"),))

    with pytest.raises(ScenarioError, match="member 'a' is defined twice"):
        make_scenario(groups=(first, second))


def test_instance_id_used_twice_is_refused() -> None:
    """Two members of one instance id would fence each other for ever."""
    members = tuple(ConsumerSpec(name=name, instance_id="i") for name in ("a", "b"))

    with pytest.raises(ScenarioError, match="instance id of group 'g' 'i' is defined twice"):
        make_scenario(
            groups=(ConsumerGroupSpec(group_id="g", topics=("orders",), members=members),)
        )


def test_settings_reach_who_reads_them() -> None:
    """A broker setting goes to the brokers, a client setting to every group that knows it."""
    changed = with_settings(make_scenario(), {"group.max.size": "3", "session.timeout.ms": "20000"})

    assert changed.broker_settings == {"group.max.size": "3"}
    assert [group.settings for group in changed.groups] == [{"session.timeout.ms": "20000"}] * 2


def test_settings_that_depend_on_each_other_change_together() -> None:
    """A short session is fine when the heartbeat interval shrinks with it."""
    changed = with_settings(
        make_scenario(), {"session.timeout.ms": "2000", "heartbeat.interval.ms": "500"}
    )

    assert changed.groups[0].settings["heartbeat.interval.ms"] == "500"


def test_settings_replace_those_of_single_members() -> None:
    """What the user sets holds for everyone."""
    own = ConsumerSpec(name="a", settings={"session.timeout.ms": "9000"})
    scenario = make_scenario(
        groups=(ConsumerGroupSpec(group_id="g", topics=("orders",), members=(own,)),)
    )

    changed = with_settings(scenario, {"session.timeout.ms": "20000"})

    assert changed.members()[0].settings == {}


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"session.timeout.ms": "-1"}, "session.timeout.ms=-1: must be from 1 to 2147483647"),
        ({"session.timeout.ms": "ten"}, "session.timeout.ms=ten: must be a whole number"),
        ({"session.timeout.ms": "3000"}, "heartbeat.interval.ms=3000: must be below"),
        ({"sesion.timeout.ms": "1"}, "unknown setting 'sesion.timeout.ms': did you mean session"),
        ({"zzz": "1"}, "unknown setting 'zzz': known: auto.commit.interval.ms"),
        ({"group.max.size": "0"}, "group.max.size=0: must be from 1"),
        ({"enable.auto.commit": "yes"}, "enable.auto.commit=yes: must be one of true, false"),
        ({"connect.protocol": "lazy"}, "connect.protocol=lazy: must be one of eager"),
        ({"partition.assignment.strategy": "luck"}, "unknown assignor 'luck': use one of range"),
    ],
)
def test_absurd_setting_is_refused(settings: dict[str, str], message: str) -> None:
    """One clear line names the setting, the value and the bound."""
    with pytest.raises(ConfigError, match=message):
        with_settings(make_scenario(), settings)


def test_setting_that_nobody_reads_is_refused() -> None:
    """A Connect setting on a scenario of consumers alone would change nothing, so it says so."""
    scenario = make_scenario(groups=make_scenario().groups[:1])

    with pytest.raises(ConfigError, match="no group of scenario 'small' reads it"):
        with_settings(scenario, {"worker.sync.timeout.ms": "1"})


def test_setting_in_the_wrong_place_is_refused() -> None:
    """A broker setting in a group's settings is told where it belongs."""
    group = ConsumerGroupSpec(
        group_id="g", topics=("orders",), members=(), settings={"group.max.size": "3"}
    )

    with pytest.raises(
        ConfigError, match=r"group\.max\.size is a broker setting, not a consumer one"
    ):
        make_scenario(groups=(group,))


def test_assignor_of_the_scenario_can_be_replaced() -> None:
    """One name replaces the assignors of consumer groups, or the protocol of Connect clusters."""
    sticky = with_assignor(make_scenario(), "sticky").groups[0]
    eager = with_assignor(make_scenario(), "eager").groups[1]

    assert isinstance(sticky, ConsumerGroupSpec)
    assert sticky.assignors == ("sticky",)
    assert isinstance(eager, ConnectGroupSpec)
    assert eager.connect_protocol == "eager"


def test_unknown_assignor_is_refused() -> None:
    """The message lists what there is."""
    with pytest.raises(ConfigError, match="unknown assignor 'fair': must be one of range"):
        with_assignor(make_scenario(), "fair")


def test_rolling_bounce_restarts_one_after_another() -> None:
    """The n-th member is stopped n intervals after the first."""
    bounce = rolling_bounce(("a", "b"), first_at_ms=10, every_ms=5, down_ms=1)

    assert [(step.member, step.at_ms) for step in bounce] == [("a", 10), ("b", 15)]


def test_calm_begins_after_the_last_effect() -> None:
    """A restart is over when the process is back, and a late starter disturbs too."""
    scenario = make_scenario(
        RestartMember(at_ms=10_000, member="a", down_ms=7_000),
        *scale_out(("b",), first_at_ms=12_000, every_ms=0),
    )

    assert scenario.calm_from_ms() == 17_000


# -- Brokers whose files of the offsets topic cannot be read -----------------------------------


COORDINATOR = 1
"""The broker that leads the offsets partition of `g`."""


def run(*happenings: Happening, brokers: int = 3) -> list[TraceEvent]:
    """The events of a minute of a consumer that commits every five seconds."""
    scenario = scenario_of(
        name="unreadable",
        duration_ms=60_000,
        brokers=brokers,
        topics=(TopicSpec(name="orders", partitions=2),),
        groups=(
            ConsumerGroupSpec(group_id="g", topics=("orders",), members=(ConsumerSpec(name="a"),)),
        ),
        happenings=happenings,
    )
    events = events_of(scenario)
    assert not check_all(events, circumstances_of(scenario)).violations
    return list(events)


def faults(events: Sequence[TraceEvent]) -> list[tuple[int, str | None]]:
    """What happened to brokers, in ms."""
    return [
        (e.ts_us // 1_000, e.reason_text)
        for e in events
        if e.event is Event.FAULT and e.broker_id is not None
    ]


def unreadable(broker: int, for_ms: int = 15_000, prefix: str = "__consumer_offsets") -> Happening:
    """The fault, from 20 s on."""
    return FailOffsetsReads(at_ms=20_000, broker=broker, for_ms=for_ms, prefix=prefix)


def test_a_commit_that_followers_cannot_fetch_halts_its_coordinator() -> None:
    """Nobody answers it; the member commits again at the coordinator that is elected."""
    events = run(unreadable(COORDINATOR))

    (halted, fenced, back) = faults(events)
    assert halted[1] == "LogDirectoryFailed"
    assert 20_000 < halted[0] < 25_000
    assert fenced == (halted[0] + 1_000, "BrokerFenced")
    assert back == (35_000, "BrokerRestarted")
    committed = [
        e for e in events if e.event is Event.OFFSET_COMMIT and e.ts_us >= halted[0] * 1_000
    ]
    assert {e.broker_id for e in committed} == {2}
    assert committed[0].ts_us >= fenced[0] * 1_000
    assert not any(e.error_code for e in committed)


def test_a_generation_that_followers_cannot_fetch_is_lost() -> None:
    """The leader's assignment reaches nobody; the member joins anew where the group was loaded."""
    events = run(RestartMember(at_ms=19_000, member="a", down_ms=1_500), unreadable(COORDINATOR))

    before, after = (e for e in events if e.event is Event.GROUP_STABLE)
    (loaded,) = (e for e in events if e.event is Event.GROUP_LOADED)
    assert (before.broker_id, loaded.broker_id, after.broker_id) == (1, 2, 2)
    assert loaded.generation == 2  # the group was stored as empty when the member left
    assert after.generation == 3
    assert len([e for e in events if e.event is Event.JOIN_COMPLETE and e.generation == 3]) == 2


def test_a_partition_that_cannot_be_loaded_halts_its_new_leader() -> None:
    """It leads for no instant; the old leader is elected again, or another one."""
    events = run(unreadable(2), MoveCoordinator(at_ms=21_000, group_id="g", to_broker=2))

    assert [what for _, what in faults(events)] == [
        "LogDirectoryFailed",
        "BrokerFenced",
        "BrokerRestarted",
    ]
    (loaded,) = (e for e in events if e.event is Event.GROUP_LOADED)
    assert loaded.broker_id not in (None, 2)


def test_what_nobody_reads_does_not_fail() -> None:
    """Without a follower nothing is fetched, and nothing is loaded; nor is another folder read."""
    other = f"__consumer_offsets-{(partition_for('g', 50) + 1) % 50}"

    assert faults(run(unreadable(1), brokers=1)) == []
    assert faults(run(unreadable(COORDINATOR, prefix=other))) == []
    assert faults(run(unreadable(COORDINATOR, for_ms=100))) == []


# -- The work of checking a scenario grows with the scenario: members and happenings, together -


WORKLOAD = "org.apache.kafka.trogdor.workload.ConsumeBenchSpec"
PROCESS_STOP = "org.apache.kafka.trogdor.fault.ProcessStopFaultSpec"
WORLD: dict[str, Any] = {
    "name": "growing",
    "title": "A growing world",
    "story": "As many happenings as members.",
    "duration_ms": 60_000,
    "topics": [{"name": "t", "partitions": 2}],
}


def restarts(count: int) -> dict[str, Any]:
    """Every member restarts with settings of its own."""
    members = [{"name": f"c{number}"} for number in range(count)]
    group = {"type": "consumer", "group_id": "g", "topics": ["t"], "members": members}
    happenings = [
        {
            "kind": "RestartMember",
            "at_ms": number,
            "member": f"c{number}",
            "down_ms": 5,
            "settings": {"session.timeout.ms": str(10_000 + number)},
        }
        for number in range(count)
    ]
    return {**WORLD, "groups": [group], "happenings": happenings}


def stopped_workloads(count: int) -> dict[str, Any]:
    """A workload on every node, and a task that stops it."""
    tasks: list[dict[str, Any]] = []
    for number in range(count):
        times = {"startMs": number, "durationMs": 1_000}
        workload = {"consumerNode": f"n{number}", "consumerGroup": "g", "activeTopics": ["t"]}
        stop = {"nodeNames": [f"n{number}"], "javaProcessName": "ConsumeBenchSpec"}
        tasks += [
            {"id": f"w{number}", "spec": {"class": WORKLOAD, **times, **workload}},
            {"id": f"s{number}", "spec": {"class": PROCESS_STOP, **times, **stop}},
        ]
    return {**WORLD, "tasks": tasks}


def lines_run(text: bytes) -> int:
    """The lines of code that reading a scenario runs, each turn of a loop counted."""
    count = 0

    def trace(_frame: FrameType, event: str, _value: object) -> Callable[..., Any]:
        nonlocal count
        count += event == "line"
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        scenario_from_json(text)
    finally:
        sys.settrace(before)
    return count


@pytest.mark.parametrize("world", [restarts, stopped_workloads])
def test_twice_the_members_and_happenings_are_twice_the_work(
    world: Callable[[int], dict[str, Any]],
) -> None:
    """No happening looks at all members."""
    texts = [msgspec.json.encode(world(count)) for count in (50, 100, 200)]
    lines_run(texts[0])  # What is compiled at first use is not counted.
    small, middle, large = map(lines_run, texts)
    assert large - middle < 2.2 * (middle - small)
