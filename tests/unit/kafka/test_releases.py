"""A release is a folder: nothing else has to know of it."""

from pathlib import Path
from shutil import copytree

from coordinator_sim.kafka.releases import RELEASES
from tests.library_copy import library_copy, printed_by

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
    package = library_copy(tmp_path)
    releases = package / "kafka" / "releases"
    folder = copytree(releases / RELEASES[-1], releases / "9.10")
    answer = folder / "api_versions.json"
    answer.write_text(answer.read_text().replace('"kafka_version": "', '"kafka_version": "9.10.'))

    profile, of_scenarios, version, partitions = printed_by(package, _NEWEST)

    assert (profile, of_scenarios) == ("9.10", "9.10")
    assert version.startswith("9.10.")
    assert partitions == "1"
