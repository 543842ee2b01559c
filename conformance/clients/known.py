"""The clients that the suite drives by itself."""

import importlib.util
import sys
from pathlib import Path
from typing import Final

from coordinator_sim.errors import ConfigError, MissingDependencyError
from coordinator_sim_conformance.clients.driver import Program

DRIVERS: Final = Path(__file__).parent / "drivers"
_PYTHON: Final = {
    "librdkafka": ("confluent_kafka", "confluent-kafka"),
    "aiokafka": ("aiokafka", "aiokafka"),
    "kafka-python": ("kafka", "kafka-python"),
}
"""Module and distribution of each client that this Python runs."""
KNOWN: Final = tuple(_PYTHON)


def known_client(name: str) -> Program:
    """Return the program of a client, built if need be.

    Raises:
        ConfigError: no client is called so.
        MissingDependencyError: it, or what builds it, is not installed.
    """
    if name not in KNOWN:
        raise ConfigError(
            f"no client is called {name!r}: use one of {', '.join(KNOWN)}, or --command"
        )
    module, distribution = _PYTHON[name]
    if importlib.util.find_spec(module) is None:
        raise MissingDependencyError(f"{name} is not installed: pip install {distribution}")
    driver = DRIVERS / "python_clients.py"
    words = (sys.executable, str(driver), name, "{bootstrap}", "{group}", "{topic}")
    return Program(command=words)
