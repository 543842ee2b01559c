"""Scenarios with members of the consumer protocol: what is refused, and what moves."""

import pytest
from msgspec import structs

from coordinator_sim.errors import ConfigError, ScenarioError
from coordinator_sim.sim.polled_consumer import PolledConsumer
from coordinator_sim.sim.runner import Simulation, run_scenario
from coordinator_sim.sim.scenario import (
    ConsumerGroupSpec,
    ConsumerSpec,
    DropResponse,
    RestartMember,
    Scenario,
    StopMember,
    TopicSpec,
)
from coordinator_sim.sim.scenario.scenario import with_assignor, with_client, with_settings
from coordinator_sim.sim.scenario.world import Client
from coordinator_sim.trace.events import Event, TraceEvent
from coordinator_sim.trace.recorder import MemoryRecorder
from coordinator_sim_scenarios.catalog import scenario_named
from tests.simulated import scenario_of

NEW = {"group.protocol": "consumer"}


def scenario(*members: ConsumerSpec, profile: str = "4.4", **settings: str) -> Scenario:
    """One group with one topic, for a minute."""
    own = {name.replace("_", "."): value for name, value in settings.items()}
    return scenario_of(
        name="new",
        duration_ms=60_000,
        profile=profile,
        topics=(TopicSpec(name="t", partitions=4),),
        groups=(
            ConsumerGroupSpec(
                group_id="g",
                topics=("t",),
                settings={**NEW, **own},
                members=members or (ConsumerSpec(name="a"),),
            ),
        ),
    )


def events_of(scenario: Scenario) -> list[tuple[Event, str | None]]:
    """What the members of a run were given and gave up, with their clients."""
    recorder = MemoryRecorder()
    run_scenario(scenario, seed=1, recorder=recorder)
    kinds = (Event.ASSIGNED, Event.REVOKED, Event.LOST)
    return [(each.event, each.client_id) for each in recorder.events if each.event in kinds]


def test_brokers_that_are_too_old_are_named() -> None:
    """With what to do."""
    with pytest.raises(
        ScenarioError, match=r"profile '3\.9' have no such groups; use profile 4\.0"
    ):
        scenario(profile="3.9")


def test_clients_without_a_model_are_named() -> None:
    """With what to do."""
    with pytest.raises(ScenarioError, match=r"'franz-go' is .* alone; use java or librdkafka"):
        scenario(ConsumerSpec(name="a", client="franz-go"))


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"session_timeout_ms": "9000"}, r"session\.timeout\.ms does not go with"),
        ({"group_remote_assignor": "sticky"}, "must be one of uniform, range"),
        ({"group_protocol": "share"}, "must be one of classic, consumer"),
    ],
)
def test_settings_that_do_not_go_with_it_are_named(settings: dict[str, str], words: str) -> None:
    """Before anything is run."""
    with pytest.raises(ConfigError, match=words):
        scenario(**settings)


def test_workloads_consume_with_the_classic_protocol() -> None:
    """A task that wants otherwise is told so."""
    world = Simulation(scenario(), recorder=MemoryRecorder()).world
    with pytest.raises(ConfigError, match="workloads consume with the classic protocol"):
        PolledConsumer(world, NEW, host="agent", woken=lambda: None)


@pytest.mark.parametrize("profile", ["4.0", "4.1", "4.2", "4.3", "4.4"])
def test_every_release_with_such_groups_shares_the_partitions(profile: str) -> None:
    """The first member has all, then gives up the newcomer's half."""
    two = (ConsumerSpec(name="a"), ConsumerSpec(name="b", start_ms=10_000))
    wanted = [(Event.ASSIGNED, "a"), (Event.REVOKED, "a"), (Event.ASSIGNED, "b")]

    assert events_of(scenario(*two, profile=profile)) == wanted


CLIENTS: tuple[Client, ...] = ("java", "librdkafka")


@pytest.mark.parametrize("first", CLIENTS)
@pytest.mark.parametrize("second", CLIENTS)
def test_members_of_different_clients_share_a_group(first: Client, second: Client) -> None:
    """Each gives up, takes over and leaves as the other expects it."""
    two = (
        ConsumerSpec(name="a", client=first),
        ConsumerSpec(name="b", client=second, start_ms=10_000),
    )
    leaving = structs.replace(scenario(*two), happenings=(StopMember(at_ms=40_000, member="b"),))
    wanted = [
        (Event.ASSIGNED, "a"),
        (Event.REVOKED, "a"),
        (Event.ASSIGNED, "b"),
        (Event.REVOKED, "b"),
        (Event.ASSIGNED, "a"),
    ]

    assert events_of(leaving) == wanted


def test_librdkafka_reads_by_an_expression_with_this_protocol_alone() -> None:
    """The coordinator resolves it; a classic member is refused."""
    read = scenario(ConsumerSpec(name="a", client="librdkafka"))
    (group,) = read.groups
    assert isinstance(group, ConsumerGroupSpec)
    by_pattern = structs.replace(group, topics=(), pattern="t.*")

    assert events_of(structs.replace(read, groups=(by_pattern,))) == [(Event.ASSIGNED, "a")]
    with pytest.raises(ScenarioError, match=r"librdkafka consumers have one with group\.protocol"):
        structs.replace(read, groups=(structs.replace(by_pattern, settings={}),))


def upgrade_of_librdkafka(assignor: str) -> list[TraceEvent]:
    """The events of an upgrade by restarts of a group of librdkafka's members."""
    recorder = MemoryRecorder()
    upgrade = with_client(with_assignor(scenario_named("online-upgrade"), assignor), "librdkafka")
    run_scenario(upgrade, seed=1, recorder=recorder)
    return recorder.events


def test_a_classic_group_of_librdkafka_is_upgraded_by_restarts() -> None:
    """The first restarted member converts the group, and the last one converts it back."""
    events = upgrade_of_librdkafka("range")
    converted = [
        (each.ts_us // 1_000_000, each.attrs["to_type"])
        for each in events
        if each.reason_text == "group converted"
    ]

    assert converted == [(68, "consumer"), (570, "classic")]


def test_a_group_of_librdkafkas_cooperative_sticky_cannot_be_upgraded() -> None:
    """Its assignments have user data, which Kafka takes for that of an unknown assignor.

    The recording `librdkafka-consumer-upgrade-sticky` shows it with a real 4.4.0.
    """
    events = upgrade_of_librdkafka("cooperative-sticky")
    ends = [each.client_id for each in events if "GroupIdNotFound" in (each.reason_text or "")]

    assert ends[0] == "consumer-1"
    with pytest.raises(ScenarioError, match="librdkafka has no `sticky`"):
        upgrade_of_librdkafka("sticky")


def test_one_client_is_put_in_the_place_of_all() -> None:
    """What is no client, or has no consumer to replace, is named."""
    replaced = with_client(scenario_named("new-rolling-deploy"), "librdkafka")
    clients = [each.client for each in replaced.members() if isinstance(each, ConsumerSpec)]
    assert clients == ["librdkafka"] * 8
    with pytest.raises(ConfigError, match="'kafka-python' is unknown: must be one of java"):
        with_client(replaced, "kafka-python")
    with pytest.raises(ConfigError, match="'connect-leader-lost' has no consumer group"):
        with_client(scenario_named("connect-leader-lost"), "librdkafka")


def test_static_members_keep_their_partitions_over_a_restart() -> None:
    """In a rolling bounce of static members nothing moves: each is given what it had."""
    bounce = with_settings(
        structs.replace(scenario_named("static-rolling-bounce"), groups=static_groups()), NEW
    )
    recorder = MemoryRecorder()
    run_scenario(bounce, seed=1, recorder=recorder)
    owners: dict[str, list[str]] = {}
    for event in recorder.events:
        if event.event is Event.ASSIGNED and event.ts_us > 20_000_000:
            for resource in event.attrs["resources"].split():
                owners.setdefault(resource, []).append(event.client_id or "")

    assert owners
    assert all(len(dict.fromkeys(clients)) == 1 for clients in owners.values()), owners


def static_groups() -> tuple[ConsumerGroupSpec, ...]:
    """The groups of the static rolling bounce, without settings of the classic protocol."""
    groups = scenario_named("static-rolling-bounce").groups
    return tuple(
        structs.replace(group, settings={})
        for group in groups
        if isinstance(group, ConsumerGroupSpec)
    )


def test_a_lost_answer_to_a_heartbeat_is_waited_for() -> None:
    """The member's request times out, it tells everything again, and nothing is lost."""
    lossy = structs.replace(
        scenario(request_timeout_ms="10000"),
        happenings=(
            DropResponse(at_ms=20_000, member="a", api="CONSUMER_GROUP_HEARTBEAT", count=1),
        ),
    )

    assert events_of(lossy) == [(Event.ASSIGNED, "a")]


def test_a_deploy_that_changes_the_protocol_takes_out_what_it_refuses() -> None:
    """Java's consumer does not start with the other protocol's settings; both ways work."""
    classic = {"group.protocol": "classic", "session.timeout.ms": "9000"}
    base = scenario(group_remote_assignor="range")
    there = RestartMember(at_ms=10_000, member="a", down_ms=1_000, settings=classic)
    back = RestartMember(at_ms=30_000, member="a", down_ms=1_000, settings=NEW)
    recorder = MemoryRecorder()
    run_scenario(structs.replace(base, happenings=(there, back)), seed=1, recorder=recorder)
    joins = [each for each in recorder.events if "protocols" in each.attrs]
    assert {each.session_timeout_ms for each in joins} == {9_000}, "of JoinGroups"
    steps = [each.ts_us for each in recorder.events if each.event is Event.MEMBER_STEP]
    assert min(steps) < joins[0].ts_us < joins[-1].ts_us < max(steps)
