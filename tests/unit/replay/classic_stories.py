"""The stories of the catalogue that replay can drive whole."""

from typing import Final

import msgspec

from coordinator_sim.sim.scenario import ShareGroupSpec, StreamsGroupSpec
from coordinator_sim_scenarios.catalog import all_scenarios

STORIES: Final = [
    name
    for name, scenario in sorted(all_scenarios().items())
    if not any(isinstance(group, ShareGroupSpec | StreamsGroupSpec) for group in scenario.groups)
]
"""Names of those with consumers or Connect workers; lines of other groups tell members alone."""
CLASSIC_STORIES: Final = [
    name
    for name in STORIES
    if b'"group.protocol"' not in msgspec.json.encode(all_scenarios()[name])
]
"""Names of those all of whose members are of the classic protocol."""
