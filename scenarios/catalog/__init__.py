"""The catalogue: one scenario a module, each telling its story in its docstring.

A module of this package that defines `SCENARIO` is part of the catalogue.
"""

from difflib import get_close_matches
from importlib import import_module
from pkgutil import iter_modules

from coordinator_sim.errors import ScenarioError
from coordinator_sim.sim.scenario import Scenario


def all_scenarios() -> dict[str, Scenario]:
    """Every scenario of the catalogue by name, sorted by name.

    Raises:
        ScenarioError: Two modules define scenarios of one name.
    """
    scenarios: dict[str, Scenario] = {}
    for module in sorted(info.name for info in iter_modules(__path__)):
        scenario: Scenario = import_module(f"{__name__}.{module}").SCENARIO
        if scenario.name in scenarios:
            raise ScenarioError(f"scenario {scenario.name!r} is in the catalogue twice: rename one")
        scenarios[scenario.name] = scenario
    return dict(sorted(scenarios.items()))


def scenario_named(name: str) -> Scenario:
    """The scenario of that name.

    Raises:
        ScenarioError: There is none; the message lists the nearest names.
    """
    scenarios = all_scenarios()
    if name not in scenarios:
        near = get_close_matches(name, scenarios, n=3, cutoff=0.5)
        hint = f"did you mean {' or '.join(near)}?" if near else f"known: {', '.join(scenarios)}"
        raise ScenarioError(f"unknown scenario {name!r}: {hint}")
    return scenarios[name]
