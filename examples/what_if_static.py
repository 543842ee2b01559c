"""A deploy, twice: as it is, and with static membership. Which rebalances disappear?

Run it: python examples/what_if_static.py
"""

from collections import Counter

import msgspec

from coordinator_sim.sim.runner import run_scenario
from coordinator_sim.sim.scenario import Scenario
from coordinator_sim.sim.scenario.world import ConsumerGroupSpec
from coordinator_sim.trace.events import Event
from coordinator_sim.trace.recorder import MemoryRecorder
from coordinator_sim_conformance.checkers import check_all
from coordinator_sim_scenarios.catalog import scenario_named


def with_static_members(scenario: Scenario) -> Scenario:
    """The same scenario, every consumer with a `group.instance.id` of its own."""
    groups = []
    for group in scenario.groups:
        if isinstance(group, ConsumerGroupSpec):
            members = tuple(
                msgspec.structs.replace(member, instance_id=member.name) for member in group.members
            )
            group = msgspec.structs.replace(group, members=members)  # noqa: PLW2901 - a copy
        groups.append(group)
    return msgspec.structs.replace(scenario, groups=tuple(groups))


def main() -> None:
    """Run both and print the reasons of their rebalances."""
    dynamic = scenario_named("consumer-rolling-deploy")
    for label, scenario in (("dynamic", dynamic), ("static", with_static_members(dynamic))):
        recorder = MemoryRecorder()
        run_scenario(scenario, seed=1, recorder=recorder)
        reasons = Counter(
            event.reason.value
            for event in recorder.events
            if event.event is Event.PREPARE_REBALANCE and event.reason is not None
        )
        print(f"{label:<8} {sum(reasons.values()):>3} rebalances  {dict(sorted(reasons.items()))}")
        assert not check_all(recorder.events).violations


if __name__ == "__main__":
    main()
