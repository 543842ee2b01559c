"""Every case of every scenario."""

from functools import cache
from importlib import import_module
from typing import Final

from coordinator_sim_conformance.scenario_cases.case import ScenarioCase

MODULES: Final = (
    "consumers",
    "consumer_failures",
    "new_consumers",
    "share_and_streams",
    "kubernetes",
    "client_models",
    "connect",
    "connect_failures",
)
"""The modules of this package that hold cases."""


@cache
def all_scenario_cases() -> tuple[ScenarioCase, ...]:
    """Return every case, module by module."""
    modules = [
        import_module(f"coordinator_sim_conformance.scenario_cases.{name}") for name in MODULES
    ]
    return tuple(case for module in modules for case in module.CASES)
