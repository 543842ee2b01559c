"""A release is a folder: nothing else has to know of it."""

import os
import subprocess
import sys
from pathlib import Path
from shutil import copytree, ignore_patterns

import coordinator_sim
from coordinator_sim.kafka.releases import RELEASES

_NEWEST = """
from inspect import signature

from coordinator_sim.broker.configs.configs import Configs
from coordinator_sim.broker.metadata.image import MetadataImage
from coordinator_sim.kafka.api_versions import recorded_versions
from coordinator_sim.kafka.profiles import DEFAULT_PROFILE
from coordinator_sim.sim.scenario import Scenario

configs = Configs(DEFAULT_PROFILE, {}, MetadataImage())
print(
    DEFAULT_PROFILE.name,
    signature(Scenario).parameters["profile"].default,
    recorded_versions(DEFAULT_PROFILE).kafka_version,
    configs.broker_value("num.partitions"),
)
"""


def test_releases_are_oldest_first() -> None:
    """The order is that of numbers, in which 0.10 and 4.10 come after 0.9 and 4.9."""
    numbers = [tuple(int(part) for part in name.split(".")) for name in RELEASES]
    assert numbers == sorted(numbers)
    assert RELEASES[0] == "0.10.2"


def test_a_folder_makes_a_release(tmp_path: Path) -> None:
    """Profile, scenarios, API versions and settings find the new one, here a copy of the last."""
    package = tmp_path / "coordinator_sim"
    source = Path(coordinator_sim.__file__).parent
    copytree(source, package, ignore=ignore_patterns("__pycache__"))
    releases = package / "kafka" / "releases"
    folder = copytree(releases / RELEASES[-1], releases / "9.10")
    answer = folder / "api_versions.json"
    answer.write_text(answer.read_text().replace('"kafka_version": "', '"kafka_version": "9.10.'))

    done = subprocess.run(
        [sys.executable, "-c", _NEWEST],
        env={**os.environ, "PYTHONPATH": str(tmp_path)},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
    )

    assert done.stdout.split()[:2] == ["9.10", "9.10"]
    assert done.stdout.split()[2].startswith("9.10.")
    assert done.stdout.split()[3] == "1"
