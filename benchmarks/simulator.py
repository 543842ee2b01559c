"""Heartbeat round trips of the whole simulator beside bare simpy, in CPU-seconds of one run.

A round trip is the client port's timer, the request to the broker, the group coordinator, and the
answer to the port. Bare simpy does no more than fire the same three callbacks.
"""

import time
from collections.abc import Callable
from typing import Final

import msgspec
import simpy

from coordinator_sim.scenario import (
    ConsumerGroupSpec,
    ConsumerSpec,
    NetworkSpec,
    Scenario,
    SlowPoll,
    TableLatency,
    TopicSpec,
)
from coordinator_sim.sim.runner import Simulation
from coordinator_sim.trace.events import Event, TraceEvent
from coordinator_sim.trace.recorder import NullRecorder

GROUPS: Final = 100
MEMBERS_PER_GROUP: Final = 10
"""A thousand periodic timers, as in the measurements that the bar was set by."""
BUSY_FROM_MS: Final = 30_000
BUSY_FOR_MS: Final = 80_000_000
WARM_UP_US: Final = 40_000_000
MEASURED_US: Final = 120_000_000
HEARTBEAT_US: Final = 3_000_000
LATENCY_US: Final = 500
BAR: Final = 0.3
"""Least share of bare simpy's rate, with constant latency."""
ROUNDS: Final = 3
"""Best of three: the machine is shared."""


class HeartbeatCount:
    """A recorder that only counts heartbeats."""

    def __init__(self) -> None:
        self.count = 0

    def record(self, event: TraceEvent) -> None:
        """Count the event if it is a heartbeat."""
        self.count += event.event is Event.HEARTBEAT


class BareRoundTrip:
    """One periodic timer of bare simpy with the two deliveries that follow it."""

    def __init__(self, environment: simpy.Environment, offset_us: int) -> None:
        self.environment = environment
        self.count = 0
        self.call(offset_us, self.beat)

    def call(self, delay_us: int, callback: Callable[[simpy.Event], None]) -> None:
        """Fire the callback after a delay, as simpy's own API does it."""
        self.environment.timeout(delay_us).callbacks.append(callback)

    def beat(self, _: simpy.Event) -> None:
        """The timer."""
        self.call(LATENCY_US, self.request)

    def request(self, _: simpy.Event) -> None:
        """The request's arrival."""
        self.call(LATENCY_US, self.response)

    def response(self, _: simpy.Event) -> None:
        """The response's arrival, which arms the next timer."""
        self.count += 1
        self.call(HEARTBEAT_US - 2 * LATENCY_US, self.beat)


def steady_groups() -> Scenario:
    """Stable groups whose members do nothing but heartbeat: their applications stay busy."""
    groups = tuple(
        ConsumerGroupSpec(
            group_id=f"group-{group}",
            topics=("orders",),
            assignors=("range",),
            settings={"max.poll.interval.ms": "86400000"},
            members=tuple(
                ConsumerSpec(name=f"group-{group}-{member}", start_ms=(group * 37) % 3_000)
                for member in range(MEMBERS_PER_GROUP)
            ),
        )
        for group in range(GROUPS)
    )
    return Scenario(
        name="steady-groups",
        title="Nothing but heartbeats",
        story="Stable groups of consumers that are busy processing.",
        duration_ms=(WARM_UP_US + MEASURED_US) // 1_000,
        topics=(TopicSpec(name="orders", partitions=MEMBERS_PER_GROUP, records_per_s=0),),
        groups=groups,
        happenings=tuple(
            SlowPoll(at_ms=BUSY_FROM_MS, member=member.name, for_ms=BUSY_FOR_MS)
            for group in groups
            for member in group.members
        ),
    )


def heartbeat_count(scenario: Scenario) -> int:
    """Heartbeats of the measured span, by the trace: with it off the run is the same."""
    recorder = HeartbeatCount()
    simulation = Simulation(scenario, recorder=recorder)
    simulation.run_until(WARM_UP_US)
    before = recorder.count
    simulation.run_until(WARM_UP_US + MEASURED_US)
    return recorder.count - before


def simulator_cpu_s(scenario: Scenario) -> float:
    """CPU-seconds of the measured span, trace off."""
    simulation = Simulation(scenario, recorder=NullRecorder())
    simulation.run_until(WARM_UP_US)
    started = time.process_time()
    simulation.run_until(WARM_UP_US + MEASURED_US)
    return time.process_time() - started


def bare_rate() -> float:
    """Three-callback round trips per CPU-second of bare simpy, with as many timers."""
    environment = simpy.Environment()
    trips = [
        BareRoundTrip(environment, index * 2_711 % HEARTBEAT_US)
        for index in range(GROUPS * MEMBERS_PER_GROUP)
    ]
    started = time.process_time()
    environment.run(until=MEASURED_US)
    return sum(trip.count for trip in trips) / (time.process_time() - started)


def main() -> None:
    """Print rates and ratios; the last line says whether the bar is met."""
    constant = steady_groups()
    drawn = msgspec.structs.replace(constant, network=NetworkSpec(latency=TableLatency()))
    counts = {"constant": heartbeat_count(constant), "drawn": heartbeat_count(drawn)}
    rates: dict[str, list[float]] = {"bare": [], "constant": [], "drawn": []}
    for _ in range(ROUNDS):
        rates["bare"].append(bare_rate())
        rates["constant"].append(counts["constant"] / simulator_cpu_s(constant))
        rates["drawn"].append(counts["drawn"] / simulator_cpu_s(drawn))
    best = {name: max(found) for name, found in rates.items()}
    print(f"bare simpy, three callbacks      {best['bare']:>10,.0f} round trips/CPU-s")
    for name, label in (("constant", "constant latency"), ("drawn", "drawn latencies")):
        share = best[name] / best["bare"]
        print(f"simulator, {label:<20} {best[name]:>11,.0f} round trips/CPU-s  ratio {share:.2f}")
    met = best["constant"] / best["bare"] >= BAR
    print(f"bar: ratio >= {BAR} with constant latency: {'met' if met else 'MISSED'}")


if __name__ == "__main__":
    main()
