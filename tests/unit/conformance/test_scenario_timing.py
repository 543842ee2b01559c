"""What a scenario says of how long its groups may take."""

from coordinator_sim.sim import scenario as scenarios
from coordinator_sim.sim.scenario.variants import with_variety
from coordinator_sim_conformance import scenario_timing
from coordinator_sim_conformance.bounds import convergence_bound_ms
from coordinator_sim_scenarios.catalog import scenario_named
from tests.simulated import scenario_of


def scenario(*happenings: scenarios.Happening) -> scenarios.Scenario:
    """Two consumers, one of them slower to be given up, and one Connect worker."""
    return scenario_of(
        name="timed",
        duration_ms=60_000,
        topics=(scenarios.TopicSpec(name="orders", partitions=1),),
        groups=(
            scenarios.ConsumerGroupSpec(
                group_id="orders-app",
                topics=("orders",),
                members=(
                    scenarios.ConsumerSpec(name="one", processing_ms=700, callback_ms=40),
                    scenarios.ConsumerSpec(name="two", settings={"session.timeout.ms": "50000"}),
                ),
                settings={"max.poll.interval.ms": "90000", "session.timeout.ms": "8000"},
            ),
            scenarios.ConnectGroupSpec(
                group_id="cluster", workers=(scenarios.WorkerSpec(name="worker"),)
            ),
        ),
        broker_settings={"group.initial.rebalance.delay.ms": "0"},
        network=scenarios.NetworkSpec(latency=scenarios.UniformLatency(100, 2_000)),
        happenings=happenings,
    )


def test_consumer_timing_takes_the_largest_of_its_members() -> None:
    """A group waits for its slowest member."""
    timing = scenario_timing.timings_of(scenario())["orders-app"]

    assert timing.session_timeout_ms == 50_000
    assert timing.rebalance_timeout_ms == 90_000
    assert (timing.poll_interval_ms, timing.callback_ms) == (1_200, 40)
    assert timing.group_initial_rebalance_delay_ms == 0
    assert timing.round_trip_ms == 5
    assert timing.scheduled_rebalance_max_delay_ms == 0


def test_worker_timing_has_connects_defaults() -> None:
    """Connect's defaults differ from the consumer's."""
    timing = scenario_timing.timings_of(scenario())["cluster"]

    assert timing.session_timeout_ms == 10_000
    assert timing.rebalance_timeout_ms == 60_000
    assert timing.scheduled_rebalance_max_delay_ms == 300_000


def test_responses_yet_to_be_lost_count() -> None:
    """Each of them may hit at a bad moment after the last happening."""
    lost = scenarios.DropResponse(at_ms=0, member="one", api="JOIN_GROUP", count=2)

    assert scenario_timing.timings_of(scenario(lost))["orders-app"].lost_response_count == 2


def test_late_responses_and_unread_configurations_are_waited_for() -> None:
    """A late response may be as good as lost, and a worker sleeps before it reads again."""
    late = scenarios.DelayResponse(at_ms=5_000, member="one", api="HEARTBEAT", by_ms=1_000, count=2)
    lag = scenarios.LagConfigTopic(at_ms=5_000, member="worker", for_ms=1_000)

    assert scenario_timing.timings_of(scenario(late))["orders-app"].lost_response_count == 2
    assert scenario_timing.calm_from_ms(scenario(late)) == 6_000 + 2 * 1_000
    assert scenario_timing.calm_from_ms(scenario(lag)) == 6_000 + 300_000


def test_settings_of_a_restart_count() -> None:
    """The new process may be slower to be given up than all others."""
    settings = {"session.timeout.ms": "70000"}
    restart = scenarios.RestartMember(at_ms=0, member="one", down_ms=1, settings=settings)

    assert scenario_timing.timings_of(scenario(restart))["orders-app"].session_timeout_ms == 70_000


def test_calm_begins_when_queued_faults_are_over() -> None:
    """A pause may begin late, so its length counts twice."""
    happenings = (
        scenarios.PauseMember(at_ms=10_000, member="one", for_ms=5_000),
        scenarios.RestartMember(at_ms=11_000, member="two", down_ms=1_000),
    )

    assert scenario_timing.calm_from_ms(scenario()) == 0
    assert scenario_timing.calm_from_ms(scenario(*happenings)) == 15_000 + 5_000 + 1_000


def test_calm_lasts_longer_than_every_bound() -> None:
    """A calm is long enough for liveness to be judged."""
    calm = scenario_timing.with_calm(scenario())

    slowest = max(
        convergence_bound_ms(timing) for timing in scenario_timing.timings_of(calm).values()
    )
    assert calm.duration_ms > slowest
    assert scenario_timing.circumstances_of(calm).ends_at_us == calm.duration_ms * 1_000


def test_a_varied_world_is_never_calm() -> None:
    """Garbage collections go on to its end, so nothing is claimed of when it comes to rest."""
    varied = with_variety(scenario_named("member-crash"), scenarios.Variety())
    assert scenario_timing.calm_from_ms(varied) == varied.duration_ms
