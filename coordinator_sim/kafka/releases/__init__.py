"""The Kafkas we follow: a folder each, with what a broker of that release says of itself.

`tools/record_release.py` writes a folder from the release's own classes and a running broker:

- `api_versions.json`: which APIs, versions and features it offers (`kafka.api_versions`);
- `settings.jsonl`: every setting it knows (`broker.configs.setting_types`).

A release behaves like the one before it, but for the rows of `kafka.switches` that name it.
"""

from importlib.resources import files
from typing import Final

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
