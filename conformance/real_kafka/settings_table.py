"""Records the settings that a release of Kafka knows, into the tables of `mini_broker`."""

import json
import sys
from pathlib import Path
from typing import Any

from conformance.real_kafka.kafka import HERE, run_java
from coordinator_sim.errors import DataError


def settings_of(version: str) -> list[dict[str, Any]]:
    """Every setting of a broker, a topic and a group, in the order of their definition.

    Raises:
        DataError: the release's classes are not as expected; the message holds what Java said.
    """
    done = run_java(version, str(HERE / "SettingsTable.java"))
    if done.returncode:
        raise DataError(f"settings of {version}: {done.stderr.strip()[-1000:]}")
    return [json.loads(line) for line in done.stdout.splitlines()]


def record_settings(version: str, path: Path) -> None:
    """Write the settings of a release, one a line."""
    lines = (json.dumps(each, separators=(",", ":")) for each in settings_of(version))
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    record_settings(sys.argv[1], Path(sys.argv[2]))
