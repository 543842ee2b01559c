"""Heartbeat round trips of the whole simulator beside bare simpy, in CPU-seconds of one run.

A round trip is the client port's timer, the request to the broker, the group coordinator, and the
answer to the port. Bare simpy does no more than fire the same three callbacks.
"""

import time
from collections.abc import Callable
from typing import Final

import msgspec
import simpy

from coordinator_sim.sim.runner import Simulation
from coordinator_sim.sim.scenario import (
    ConsumerGroupSpec,
    ConsumerSpec,
    NetworkSpec,
    Scenario,
    SlowPoll,
    TableLatency,
    TopicSpec,
)
from coordinator_sim.trace.events import Event, TraceEvent
from coordinator_sim.trace.recorder import NullRecorder

GROUPS: Final = (10, 100)
MEMBERS_PER_GROUP: Final = 10
"""A hundred members fit the CPU's cache; the bar is for a thousand, as bare simpy was measured."""
BUSY_FROM_MS: Final = 30_000
BUSY_FOR_MS: Final = 80_000_000
WARM_UP_US: Final = 40_000_000
ROUND_TRIPS: Final = 40_000
"""Of each measurement: about half a CPU-second."""
HEARTBEAT_US: Final = 3_000_000
LATENCY_US: Final = 500
BAR: Final = 0.3
"""Least share of bare simpy's rate, with constant latency."""
ROUNDS: Final = 5
"""Best of five, interleaved: the machine may be shared."""


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


def steady_groups(group_count: int = GROUPS[-1]) -> Scenario:
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
        for group in range(group_count)
    )
    return Scenario(
        name="steady-groups",
        title="Nothing but heartbeats",
        story="Stable groups of consumers that are busy processing.",
        duration_ms=BUSY_FOR_MS,
        topics=(TopicSpec(name="orders", partitions=MEMBERS_PER_GROUP, records_per_s=0),),
        groups=groups,
        happenings=tuple(
            SlowPoll(at_ms=BUSY_FROM_MS, member=member.name, for_ms=BUSY_FOR_MS)
            for group in groups
            for member in group.members
        ),
    )


def span_us(scenario: Scenario) -> int:
    """Virtual time that holds the wanted number of round trips."""
    return ROUND_TRIPS * HEARTBEAT_US // len(scenario.members())


def heartbeat_count(scenario: Scenario) -> int:
    """Heartbeats of the measured span, by the trace: with it off the run is the same."""
    recorder = HeartbeatCount()
    simulation = Simulation(scenario, recorder=recorder)
    simulation.run_until(WARM_UP_US)
    before = recorder.count
    simulation.run_until(WARM_UP_US + span_us(scenario))
    return recorder.count - before


def simulator_cpu_s(scenario: Scenario) -> float:
    """CPU-seconds of the measured span, trace off."""
    simulation = Simulation(scenario, recorder=NullRecorder())
    simulation.run_until(WARM_UP_US)
    started = time.process_time()
    simulation.run_until(WARM_UP_US + span_us(scenario))
    return time.process_time() - started


def bare_rate(timer_count: int) -> float:
    """Three-callback round trips per CPU-second of bare simpy, with as many timers."""
    environment = simpy.Environment()
    trips = [
        BareRoundTrip(environment, index * 2_711 % HEARTBEAT_US) for index in range(timer_count)
    ]
    started = time.process_time()
    environment.run(until=ROUND_TRIPS * HEARTBEAT_US // timer_count)
    return sum(trip.count for trip in trips) / (time.process_time() - started)


def measure(group_count: int) -> float:
    """Print the rates with so many groups; answers the ratio at constant latency."""
    constant = steady_groups(group_count)
    drawn = msgspec.structs.replace(constant, network=NetworkSpec(latency=TableLatency()))
    counts = {"constant": heartbeat_count(constant), "drawn": heartbeat_count(drawn)}
    best = {"bare": 0.0, "constant": 0.0, "drawn": 0.0}
    for _ in range(ROUNDS):
        rates = {
            "bare": bare_rate(len(constant.members())),
            "constant": counts["constant"] / simulator_cpu_s(constant),
            "drawn": counts["drawn"] / simulator_cpu_s(drawn),
        }
        best = {name: max(best[name], rate) for name, rate in rates.items()}
    print(f"{len(constant.members())} members, round trips per CPU-second")
    print(f"  bare simpy, three callbacks {best['bare']:>10,.0f}")
    for name, label in (("constant", "constant latency"), ("drawn", "drawn latencies")):
        ratio = best[name] / best["bare"]
        print(f"  simulator, {label:<16} {best[name]:>10,.0f}  ratio {ratio:.2f}")
    return best["constant"] / best["bare"]


def main() -> None:
    """Print rates and ratios; the last line says whether the bar is met."""
    ratios = [measure(group_count) for group_count in GROUPS]
    verdict = "met" if ratios[-1] >= BAR else "MISSED"
    print(f"bar: ratio >= {BAR} with constant latency and the most members: {verdict}")


if __name__ == "__main__":
    main()
