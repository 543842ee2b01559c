"""The pytest plugin: a Kafka for tests, in a process of its own, in this one, or in virtual time.

    def test_rebalance(kafka_server):
        consumer = Consumer({"bootstrap.servers": kafka_server.bootstrap, ...})

Before a fixture is used, only the standard library and pytest are imported; the names of
`ASSERTIONS`, `CoordinatorConformance`, `simulated` and `virtual_loop` are loaded on first access.
"""

import importlib
from typing import Any, Final

from coordinator_sim_pytest.plugin import (
    graded_endpoint,
    group_coordinator,
    kafka_server,
    kafka_servers,
    pytest_addoption,
    pytest_configure,
    pytest_load_initial_conftests,
    pytest_report_header,
    pytest_runtest_makereport,
    pytest_terminal_summary,
    virtual_clock,
    virtual_kafka,
)

ASSERTIONS: Final = (
    "answered_in_time",
    "converged_within",
    "generations_grow",
    "invariants_hold",
    "load_brings_back",
    "member_ids_are_issued",
    "no_commit_lost",
    "no_double_ownership",
    "no_healthy_eviction",
    "one_leader",
    "one_member_per_instance",
)
"""Functions over a trace that raise `AssertionError`: from `coordinator_sim_pytest.stories`."""

_HOMES: Final = {
    **dict.fromkeys(ASSERTIONS, "coordinator_sim_pytest.stories"),
    "CoordinatorConformance": "coordinator_sim_pytest.conformance",
    "simulated": "coordinator_sim_pytest.properties",
    "virtual_loop": "coordinator_sim_pytest.virtual",
}


def __getattr__(name: str) -> Any:  # noqa: ANN401 - a module's attributes
    """Load an assertion, or another name with a home of its own, on first access."""
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(home), name)


__all__ = [  # noqa: PLE0604 - the names of the assertions are strings
    *ASSERTIONS,
    "CoordinatorConformance",
    "graded_endpoint",
    "group_coordinator",
    "kafka_server",
    "kafka_servers",
    "pytest_addoption",
    "pytest_configure",
    "pytest_load_initial_conftests",
    "pytest_report_header",
    "pytest_runtest_makereport",
    "pytest_terminal_summary",
    "simulated",
    "virtual_clock",
    "virtual_kafka",
    "virtual_loop",
]
