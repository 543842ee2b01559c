"""Reads the settings that a release of Kafka knows from its classes."""

from typing import Final

from coordinator_sim.errors import DataError
from coordinator_sim_conformance.real_kafka.kafka import HERE, run_java

_SILENT_BROKER: Final = "0.10.2.2"
"""Broker that does not report its own settings, which are not needed.

See `broker.configs.configs`.
"""


def documentation_of(version: str) -> list[str]:
    """Return the documentation of every setting that has one, as `settings_of`."""
    return _lines(version, "documentation")


def settings_of(version: str) -> list[str]:
    """Return every setting of broker, topic and group, in the order of definition.

    A setting is a line of JSON.

    Raises:
        DataError: the release's classes are not as expected; the message holds what Java said.
    """
    lines = _lines(version)
    if version == _SILENT_BROKER:
        lines = [line for line in lines if not line.startswith('{"of":"broker"')]
    return lines


def _lines(version: str, *arguments: str) -> list[str]:
    done = run_java(version, str(HERE / "SettingsTable.java"), *arguments)
    if done.returncode:
        raise DataError(f"settings of {version}: {done.stderr.strip()[-1000:]}")
    return done.stdout.splitlines()
