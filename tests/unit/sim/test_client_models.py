import pytest

from coordinator_sim.errors import ScenarioError
from coordinator_sim.sim import scenario as scenarios
from coordinator_sim.sim.scenario.work import CommitPolicy
from coordinator_sim.sim.scenario.world import Client
from coordinator_sim.trace.events import Event, TraceEvent
from tests.simulated import events_of, scenario_of

MODELS: tuple[Client, ...] = ("librdkafka", "franz-go")


def world(
    *members: scenarios.ConsumerSpec,
    happenings: tuple[scenarios.Happening, ...] = (),
    assignor: str = "range",
) -> scenarios.Scenario:
    """A group of consumers of one topic, a minute long."""
    return scenario_of(
        name="models",
        duration_ms=60_000,
        topics=(scenarios.TopicSpec(name="orders", partitions=6),),
        groups=(
            scenarios.ConsumerGroupSpec(
                group_id="readers",
                topics=("orders",),
                assignors=(assignor,),
                members=members,
                settings={"session.timeout.ms": "6000", "max.poll.interval.ms": "8000"},
            ),
        ),
        happenings=happenings,
    )


def of(events: list[TraceEvent], event: Event) -> list[TraceEvent]:
    """The events of one kind."""
    return [each for each in events if each.event is event]


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("assignor", ["range", "cooperative-sticky"])
def test_a_model_shares_a_group_with_java(model: Client, assignor: str) -> None:
    """Both own half of the topic, whoever leads; nobody fails, and both leave in the end."""
    events = events_of(
        world(
            scenarios.ConsumerSpec(name="model", client=model),
            scenarios.ConsumerSpec(name="java", start_ms=10_000),
            assignor=assignor,
            happenings=(
                scenarios.StopMember(at_ms=40_000, member="model"),
                scenarios.StopMember(at_ms=50_000, member="java"),
            ),
        )
    )

    assert of(events, Event.MEMBER_FAILED) == []
    assert [each.client_id for each in of(events, Event.MEMBER_LEFT)] == ["model", "java"]
    last = {
        each.client_id: each
        for each in of(events, Event.ASSIGNED)
        if each.ts_us < 40_000_000 and each.client_id
    }
    assert sorted(last) == ["java", "model"]


@pytest.mark.parametrize("model", MODELS)
def test_a_model_survives_a_move_and_a_crash_of_its_coordinator(model: Client) -> None:
    """The member finds the new coordinator and keeps its generation, without a rebalance."""
    events = events_of(
        world(
            scenarios.ConsumerSpec(name="model", client=model),
            happenings=(scenarios.MoveCoordinator(at_ms=20_000, group_id="readers"),),
        )
    )
    assert len(of(events, Event.JOIN_COMPLETE)) == 1
    assert of(events, Event.MEMBER_FAILED) == []

    events = events_of(
        world(
            scenarios.ConsumerSpec(name="model", client=model),
            happenings=(scenarios.CrashBroker(at_ms=20_000, broker=3, for_ms=10_000),),
        )
    )
    assert of(events, Event.MEMBER_FAILED) == []


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("when", ["auto", "sync", "async", "before", "never"])
def test_an_application_on_a_model_commits_by_its_policy(model: Client, when: str) -> None:
    """Whatever the policy, the application goes on polling until it is stopped."""
    policy = CommitPolicy(when=when)  # type: ignore[arg-type] # one of the moments
    events = events_of(
        world(
            scenarios.ConsumerSpec(name="model", client=model, commits=policy),
            happenings=(scenarios.StopMember(at_ms=40_000, member="model"),),
        )
    )

    assert bool(of(events, Event.OFFSET_COMMIT)) == (when != "never")
    assert [each.client_id for each in of(events, Event.MEMBER_LEFT)] == ["model"]


def test_librdkafka_leaves_when_its_application_does_not_poll() -> None:
    """A member leaves half a second after max.poll.interval.ms at most, and rejoins on a poll."""
    events = events_of(
        world(
            scenarios.ConsumerSpec(name="model", client="librdkafka"),
            happenings=(scenarios.SlowPoll(at_ms=20_000, member="model", for_ms=12_000),),
        )
    )

    (left,) = of(events, Event.MEMBER_LEFT)
    assert 28_000_000 < left.ts_us < 28_900_000
    assert len(of(events, Event.JOIN_COMPLETE)) == 2


def test_librdkafka_is_refused_assignors_that_it_would_refuse() -> None:
    """A scenario says so before it runs."""
    with pytest.raises(ScenarioError, match="librdkafka has no `sticky`"):
        world(scenarios.ConsumerSpec(name="model", client="librdkafka"), assignor="sticky")
