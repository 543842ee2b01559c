"""Simulated years of deploys without their idle time, beside the same day lived through.

    python -m benchmarks.years [--days N]

Three groups of idle consumers, each bounced every day. A year is computed from the CPU-seconds of
the days that were simulated; the bar is for the year. Metadata is refreshed once in 24 days, as a
stretch ends where one of several consumers in step refreshes it.
"""

import argparse
import sys
import time
from collections.abc import Sequence
from typing import Final

from coordinator_sim.sim.runner import Simulation
from coordinator_sim.sim.scenario import (
    ConsumerGroupSpec,
    ConsumerSpec,
    RestartMember,
    Scenario,
    TopicSpec,
)
from coordinator_sim.trace.recorder import NullRecorder

DAY_MS: Final = 86_400_000
DAYS_OF_A_YEAR: Final = 365
BAR_CPU_S: Final = 60
FIRST_AT_MS: Final = 3_600_000
DOWN_MS: Final = 2_000
SAMPLE_US: Final = 600_000_000
"""Of the day that is lived through: ten minutes of it."""
SETTINGS: Final = {
    "enable.auto.commit": "false",
    "metadata.max.age.ms": "2147483647",
}


def year(members: int, days: int, *, every_ms: int, static: bool) -> Scenario:
    """A group whose members are restarted every day, one after another or all at once.

    Args:
        members: How many.
        days: How many days of the year.
        every_ms: Time from one restart to the next; 0 for a wave.
        static: Whether they have instance ids.
    """
    names = tuple(f"consumer-{number}" for number in range(members))
    group = ConsumerGroupSpec(
        group_id="orders-app",
        topics=("orders",),
        assignors=("range",),
        settings=SETTINGS,
        members=tuple(
            ConsumerSpec(
                name=name, start_ms=number * 37 % 3_000, instance_id=name if static else None
            )
            for number, name in enumerate(names)
        ),
    )
    return Scenario(
        name="year",
        title="A year of deploys",
        story="Idle consumers, restarted every day.",
        duration_ms=days * DAY_MS,
        topics=(TopicSpec(name="orders", partitions=members, records_per_s=0),),
        groups=(group,),
        happenings=tuple(
            RestartMember(
                at_ms=day * DAY_MS + FIRST_AT_MS + number * every_ms, member=name, down_ms=DOWN_MS
            )
            for day in range(days)
            for number, name in enumerate(names)
        ),
    )


def cpu_s(scenario: Scenario, *, elide: bool, until_us: int) -> tuple[float, str]:
    """CPU-seconds up to an instant, and how much was elided."""
    simulation = Simulation(scenario, recorder=NullRecorder(), elide=elide)
    started = time.process_time()
    simulation.run_until(until_us)
    took_s = time.process_time() - started
    elided = simulation.result().elided
    return took_s, "" if elided is None else f"{elided.us / until_us:.2%} elided"


def measure(label: str, scenario: Scenario) -> bool:
    """Print a year's cost with and without elision; whether the bar is met."""
    days = scenario.duration_ms // DAY_MS
    short_s, share = cpu_s(scenario, elide=True, until_us=scenario.duration_ms * 1_000)
    sample_s, _ = cpu_s(scenario, elide=False, until_us=SAMPLE_US)
    year_s = short_s / days * DAYS_OF_A_YEAR
    lived_s = sample_s * DAYS_OF_A_YEAR * DAY_MS * 1_000 / SAMPLE_US
    verdict = "met" if year_s <= BAR_CPU_S else "MISSED"
    print(f"{label}: {short_s:.1f} CPU-s for {days} days ({share}), {year_s:,.0f} for a year")
    print(
        f"  lived through, idle: {lived_s:,.0f} for a year; {lived_s / year_s:,.0f} times as much"
    )
    print(f"  bar: at most {BAR_CPU_S} CPU-s: {verdict}")
    return year_s <= BAR_CPU_S


def main(arguments: Sequence[str] = ()) -> None:
    """Print the three years."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--days", type=int, default=1, help="days to simulate of each year")
    parser.add_argument("--members", type=int, default=1_000, help="of the two large groups")
    chosen = parser.parse_args(arguments)
    days, many = chosen.days, chosen.members
    few = year(20, days, every_ms=300_000, static=False)
    measure("20 dynamic members bounced one by one daily", few)
    wave = year(many, days, every_ms=0, static=False)
    measure(f"{many} dynamic members in one wave a day", wave)
    static = year(many, days, every_ms=60_000, static=True)
    measure(f"{many} static members bounced one by one daily", static)


if __name__ == "__main__":
    main(sys.argv[1:])
