"""The stories of the catalogue that replay can drive whole."""

from typing import Final

import msgspec

from coordinator_sim.sim.scenario import ShareGroupSpec, StreamsGroupSpec
from coordinator_sim_scenarios.catalog import all_scenarios

CLASSIC_STORIES: Final = [
    name
    for name, scenario in sorted(all_scenarios().items())
    if b'"group.protocol"' not in msgspec.json.encode(scenario)
    and not any(isinstance(group, ShareGroupSpec | StreamsGroupSpec) for group in scenario.groups)
]
"""Names of those all of whose members are of the classic protocol."""
