"""Recorded data of the Kafka releases that are simulated, a folder per release.

`tools/record_release.py` writes a folder from the release's own classes and a running broker:

- `api_versions.json`: which APIs, versions and features it offers (`kafka.api_versions`);
- `settings.jsonl`: every setting it knows (`broker.configs.setting_types`).

`documentation.jsonl.gz`, beside the folders, has the documentation of the settings of all releases.
Its texts are those of Apache Kafka, copyright of the Apache Software Foundation and licensed under
the Apache License 2.0, from the `ConfigDef` of `KafkaConfig`, `LogConfig`, `GroupConfig` and
`ClientMetricsConfigs`. It is read when a client asks for documentation.

A release behaves like the one before it, but for the rows of `kafka.switches` that name it.
"""

import gzip
from functools import cache
from importlib.resources import files
from typing import Final

import msgspec
from msgspec import Struct

_FOLDERS: Final = files(__name__)


def _numbers(release: str) -> tuple[int, ...]:
    return tuple(int(part) for part in release.split("."))


RELEASES: Final = tuple(
    sorted((each.name for each in _FOLDERS.iterdir() if each.name[0].isdigit()), key=_numbers)
)
"""The Kafkas that have a profile, oldest first, by the numbers that name their line."""


def recording(release: str, name: str) -> bytes:
    """The content of one file of a release."""
    return _FOLDERS.joinpath(release, name).read_bytes()


class Documentation(Struct, frozen=True):
    """What some releases say of one setting.

    Args:
        of: broker, topic, group or client-metrics.
        name: Name of the setting.
        text: The documentation, with HTML.
        releases: The releases that say so.
    """

    of: str
    name: str
    text: str
    releases: tuple[str, ...]


@cache
def recorded_documentation() -> tuple[Documentation, ...]:
    """The documentation of all settings in all releases that can tell it, since 2.8."""
    lines = gzip.decompress(_FOLDERS.joinpath("documentation.jsonl.gz").read_bytes())
    return tuple(msgspec.json.Decoder(Documentation).decode_lines(lines))


@cache
def documentation(release: str, of: str) -> dict[str, str]:
    """The documentation of the settings of one kind, by name."""
    found = recorded_documentation()
    return {each.name: each.text for each in found if each.of == of and release in each.releases}
